// Goroutines that send their results, through a channel of 32, to one goroutine, which needs more
// time for each than they do.
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
	results := make(chan uint64, 32)
	var group sync.WaitGroup
	for g := 0; g < goroutines; g++ {
		group.Add(1)
		go func(g int) {
			defer group.Done()
			for i := 0; i < 2000/goroutines; i++ {
				results <- compute(100000, uint64(g))
			}
		}(g)
	}
	go func() {
		group.Wait()
		close(results)
	}()
	sum := uint64(1)
	for result := range results {
		sum = compute(150000, sum^result)
	}
	if sum == 0 {
		panic("the work was left out")
	}
}
