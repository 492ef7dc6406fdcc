// A lock of the program's own: goroutines swap a word until they have it, and never sleep. It is held
// for two thirds of each operation.
package main

import (
	"os"
	"strconv"
	"sync"
	"sync/atomic"
)

var taken [64]atomic.Int32
var total uint64 = 1

//go:noinline
func compute(iterations, seed uint64) uint64 {
	for i := uint64(0); i < iterations; i++ {
		seed = seed*6364136223846793005 + 1442695040888963407
	}
	return seed
}

func main() {
	threads := 1
	if len(os.Args) > 1 {
		threads, _ = strconv.Atoi(os.Args[1])
	}
	var all sync.WaitGroup
	for t := 0; t < threads; t++ {
		all.Add(1)
		go func(own uint64) {
			defer all.Done()
			for i := 0; i < 2500/threads; i++ {
				own = compute(5000+(own>>33)%20000, own)
				for !taken[32].CompareAndSwap(0, 1) {
				}
				total = compute(20000+(total>>33)%30000, total)
				taken[32].Store(0)
			}
		}(uint64(t + 1))
	}
	all.Wait()
	if total == 0 {
		panic("the work was left out")
	}
}
