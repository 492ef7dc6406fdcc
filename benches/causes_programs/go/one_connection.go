// Goroutines that take the only connection out of a channel for each query, and put it back. The
// database answers after 2 ms; what a goroutine does with an answer takes a fifth of one.
package main

import (
	"os"
	"strconv"
	"sync"
	"time"
)

const queries = 160

func used(seed uint64) uint64 {
	for i := 0; i < 200000; i++ {
		seed = seed*6364136223846793005 + 1
	}
	return seed
}

func main() {
	goroutines, _ := strconv.Atoi(os.Args[1])
	pool := make(chan int, 1)
	pool <- 1
	var group sync.WaitGroup
	for g := 0; g < goroutines; g++ {
		group.Add(1)
		go func(own uint64) {
			defer group.Done()
			for query := 0; query < queries/goroutines; query++ {
				connection := <-pool
				time.Sleep(2 * time.Millisecond)
				pool <- connection
				own = used(own + uint64(connection))
			}
		}(uint64(g))
	}
	group.Wait()
}
