// Goroutines that share nothing; the first has 70 % of the work.
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
	results := make([]uint64, goroutines*8)
	var group sync.WaitGroup
	for g := 0; g < goroutines; g++ {
		work := 400000000
		if goroutines > 1 {
			work = 120000000 / (goroutines - 1)
			if g == 0 {
				work = 280000000
			}
		}
		group.Add(1)
		go func(g, work int) {
			defer group.Done()
			results[g*8] = compute(work, uint64(g)+1)
		}(g, work)
	}
	group.Wait()
	if results[0] == 0 {
		panic("the work was left out")
	}
}
