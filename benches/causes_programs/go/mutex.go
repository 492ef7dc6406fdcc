// Goroutines that fight for one sync.Mutex: most of each operation is done under it. GOMAXPROCS is
// the number of threads.
package main

import (
	"os"
	"strconv"
	"sync"
)

func compute(iterations int, seed uint64) uint64 {
	for i := 0; i < iterations; i++ {
		seed = seed*6364136223846793005 + 1442695040888963407
	}
	return seed
}

func main() {
	goroutines, _ := strconv.Atoi(os.Args[1])
	var group sync.WaitGroup
	var lock sync.Mutex
	shared := uint64(1)
	for g := 0; g < goroutines; g++ {
		group.Add(1)
		go func(own uint64) {
			defer group.Done()
			for i := 0; i < 400000/goroutines; i++ {
				own = compute(100, own)
				lock.Lock()
				shared = compute(800, shared)
				lock.Unlock()
			}
		}(uint64(g))
	}
	group.Wait()
	if shared == 0 {
		panic("the work was left out")
	}
}
