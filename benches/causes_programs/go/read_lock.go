// Goroutines that only read a map, under the read lock of one sync.RWMutex: its counter is written by
// every CPU.
package main

import (
	"os"
	"strconv"
	"sync"
)

func main() {
	goroutines, _ := strconv.Atoi(os.Args[1])
	table := map[int]int{}
	for i := 0; i < 64; i++ {
		table[i] = i
	}
	var lock sync.RWMutex
	var group sync.WaitGroup
	for g := 0; g < goroutines; g++ {
		group.Add(1)
		go func(g int) {
			defer group.Done()
			sum := 0
			for i := 0; i < 12000000/goroutines; i++ {
				lock.RLock()
				sum += table[(i+g)&63]
				lock.RUnlock()
			}
			if sum == 0 {
				panic("the work was left out")
			}
		}(g)
	}
	group.Wait()
}
