// Goroutines with tasks of their own, which say on a channel that they are done. The first of them
// has four times as much to do as each of the others; with one, it does all.
package main

import (
	"os"
	"strconv"
)

const all = 400000000

func compute(iterations int, done chan<- uint64) {
	seed := uint64(iterations)
	for i := 0; i < iterations; i++ {
		seed = seed*6364136223846793005 + 1442695040888963407
	}
	done <- seed
}

func main() {
	goroutines, _ := strconv.Atoi(os.Args[1])
	done := make(chan uint64)
	share := all / (goroutines + 3)
	go compute(4*share, done)
	for g := 1; g < goroutines; g++ {
		go compute(share, done)
	}
	sum := uint64(0)
	for g := 0; g < goroutines; g++ {
		sum += <-done
	}
	if sum == 0 {
		panic("the work was left out")
	}
}
