// Goroutines that allocate small objects beside a large live heap: the collector works most of the
// time, and stops or slows those that allocate. GOGC is set low.
package main

import (
	"os"
	"runtime/debug"
	"strconv"
	"sync"
)

type node struct {
	left, right *node
	value       [4]uint64
}

func tree(depth int) *node {
	if depth == 0 {
		return &node{}
	}
	return &node{left: tree(depth - 1), right: tree(depth - 1)}
}

var live *node

func main() {
	debug.SetGCPercent(5)
	goroutines, _ := strconv.Atoi(os.Args[1])
	live = tree(18)
	var group sync.WaitGroup
	for g := 0; g < goroutines; g++ {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := 0; i < 800/goroutines; i++ {
				tree(10)
			}
		}()
	}
	group.Wait()
}
