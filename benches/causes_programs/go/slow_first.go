// A pipeline of three stages. The first one makes a chain of digests, each from the one before, so it
// cannot be divided; the workers behind it need less time for each, and the last one adds up.
package main

import (
	"crypto/sha256"
	"os"
	"strconv"
	"sync"
)

func digest(block []byte, times int) [32]byte {
	sum := sha256.Sum256(block)
	for i := 1; i < times; i++ {
		copy(block, sum[:])
		sum = sha256.Sum256(block)
	}
	return sum
}

func main() {
	workers, _ := strconv.Atoi(os.Args[1])
	made, done := make(chan [32]byte), make(chan byte, 64)
	go func() {
		block := make([]byte, 1<<14)
		for i := 0; i < 3000; i++ {
			sum := digest(block, 10)
			copy(block[64:], sum[:])
			made <- sum
		}
		close(made)
	}()
	var group sync.WaitGroup
	for w := 0; w < workers; w++ {
		group.Add(1)
		go func() {
			defer group.Done()
			block := make([]byte, 1<<14)
			for sum := range made {
				copy(block, sum[:])
				sum = digest(block, 5)
				done <- sum[0]
			}
		}()
	}
	go func() {
		group.Wait()
		close(done)
	}()
	total := 0
	for one := range done {
		total += int(one)
	}
	if total == 0 {
		panic("the work was left out")
	}
}
