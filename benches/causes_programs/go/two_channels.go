// A pool of goroutines that takes jobs from one channel and sends results to another. A job is long
// compared with what the channels cost: nothing limits it.
package main

import (
	"crypto/sha256"
	"encoding/binary"
	"os"
	"strconv"
	"sync"
)

func work(job int, block []byte) [32]byte {
	binary.LittleEndian.PutUint64(block, uint64(job))
	sum := sha256.Sum256(block)
	for i := 0; i < 7; i++ {
		copy(block[8:], sum[:])
		sum = sha256.Sum256(block)
	}
	return sum
}

func main() {
	workers, _ := strconv.Atoi(os.Args[1])
	jobs, results := make(chan int), make(chan [32]byte)
	go func() {
		for job := 0; job < 3000; job++ {
			jobs <- job
		}
		close(jobs)
	}()
	var group sync.WaitGroup
	for w := 0; w < workers; w++ {
		group.Add(1)
		go func() {
			defer group.Done()
			block := make([]byte, 1<<16)
			for job := range jobs {
				results <- work(job, block)
			}
		}()
	}
	go func() {
		group.Wait()
		close(results)
	}()
	var all [32]byte
	for sum := range results {
		for i, part := range sum {
			all[i] ^= part
		}
	}
	if all == [32]byte{} {
		panic("the work was left out")
	}
}
