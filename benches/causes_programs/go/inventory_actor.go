// An actor owns the stock: workers prepare an order (20 us), send it, and wait for the answer, for
// which the actor prices it (60 us). One worker takes 80 us an order; two or more are bound by the one
// actor, 60 us an order, which then never rests: 1.33. Handing over takes a few us. At 4 workers
// 1.33 CPUs are busy, so that the CPUs do not limit it: stage.
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync"
)

const orders = 6000

type order struct {
	article uint32
	reply   chan uint32
}

func compute(steps int, value uint32) uint32 {
	for i := 0; i < steps; i++ {
		value = value*1664525 + 1013904223
	}
	return value
}

func inventory(inbox chan order) {
	stock := make(map[uint32]uint32)
	for next := range inbox {
		stock[next.article]++
		next.reply <- compute(48000, stock[next.article]+next.article)
	}
}

func main() {
	workers, _ := strconv.Atoi(os.Args[1])
	inbox := make(chan order, 64)
	go inventory(inbox)
	results := make([]uint32, workers*16)
	var group sync.WaitGroup
	for w := 0; w < workers; w++ {
		group.Add(1)
		go func(w int) {
			defer group.Done()
			reply := make(chan uint32, 1)
			sum := uint32(0)
			for n := orders * w / workers; n < orders*(w+1)/workers; n++ {
				inbox <- order{compute(16000, uint32(n)) % 500, reply}
				sum += <-reply
			}
			results[w*16] = sum
		}(w)
	}
	group.Wait()
	close(inbox)
	fmt.Println(results[0])
}
