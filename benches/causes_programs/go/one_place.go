// Goroutines that need the one place of a channel for two thirds of each operation: a lock that is
// made of a channel.
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
	places := make(chan struct{}, 1)
	shared := uint64(1)
	var group sync.WaitGroup
	for g := 0; g < goroutines; g++ {
		group.Add(1)
		go func(own uint64) {
			defer group.Done()
			for i := 0; i < 8000/goroutines; i++ {
				own = compute(20000+int(own>>33)%20000, own)
				places <- struct{}{}
				shared = compute(40000+int(shared>>33)%40000, shared)
				<-places
			}
		}(uint64(g) + 1)
	}
	group.Wait()
	if shared == 0 {
		panic("the work was left out")
	}
}
