// Goroutines that draw numbers; when they have said on a channel that they are done, the first one
// sorts the numbers of all.
package main

import (
	"os"
	"slices"
	"strconv"
)

const numbers = 1000000

func draw(part []uint64, seed uint64) {
	for i := range part {
		for again := 0; again < 200; again++ {
			seed = seed*6364136223846793005 + 1442695040888963407
		}
		part[i] = seed
	}
}

func main() {
	goroutines, _ := strconv.Atoi(os.Args[1])
	drawn := make([]uint64, numbers)
	done := make(chan bool)
	for g := 0; g < goroutines; g++ {
		share := drawn[g*numbers/goroutines : (g+1)*numbers/goroutines]
		go func(seed uint64) {
			draw(share, seed)
			done <- true
		}(uint64(g) + 1)
	}
	for g := 0; g < goroutines; g++ {
		<-done
	}
	slices.Sort(drawn)
	if drawn[0] > drawn[numbers-1] {
		panic("the numbers are not sorted")
	}
}
