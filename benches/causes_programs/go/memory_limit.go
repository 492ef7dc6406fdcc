// Goroutines that allocate beside a live heap that nearly fills the limit of memory: the collector
// works again and again, as often as it may.
package main

import (
	"os"
	"runtime/debug"
	"strconv"
	"sync"
)

type entry struct {
	next  *entry
	value [6]uint64
}

func list(length int) *entry {
	var first *entry
	for i := 0; i < length; i++ {
		first = &entry{next: first}
	}
	return first
}

var live [64]*entry

func main() {
	goroutines, _ := strconv.Atoi(os.Args[1])
	for i := range live {
		live[i] = list(12000)
	}
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(64 << 20)
	var group sync.WaitGroup
	for g := 0; g < goroutines; g++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := 0; i < 5000/goroutines; i++ {
				if list(500).value[0] != 0 {
					panic("the work was left out")
				}
			}
		}()
	}
	group.Wait()
}
