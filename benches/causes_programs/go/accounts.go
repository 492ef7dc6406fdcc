// Transfers between 256 accounts, each with a mutex; the score that comes before takes some 8 us, both
// locks together are held for 50 ns. That the other worker holds one of the two just then has a chance
// of about 1 in 10,000, and the lines of the accounts that it wrote last cost 0.2 us in 8 us. Every
// 1,000th transfer goes to a logger. Transfers are dealt out evenly and cost the same: none.
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync"
)

const transfers = 60000
const features = 64

type account struct {
	mutex   sync.Mutex
	balance int64
	_       [48]byte
}

var accounts [256]account
var weights [features]float64

func score(amount float64) float64 {
	risk := amount
	for day := 0; day < 48; day++ {
		for i := 0; i < features; i++ {
			risk = risk*0.999 + weights[i]
		}
	}
	return risk
}

func transfer(from, to int, amount int64) {
	first, second := &accounts[from], &accounts[to]
	if from > to {
		first, second = second, first
	}
	first.mutex.Lock()
	second.mutex.Lock()
	accounts[from].balance -= amount
	accounts[to].balance += amount
	second.mutex.Unlock()
	first.mutex.Unlock()
}

func main() {
	workers, _ := strconv.Atoi(os.Args[1])
	for i := range weights {
		weights[i] = float64(i%7) / 100
	}
	log := make(chan int, 16)
	logged := make(chan int)
	go func() {
		lines := 0
		for range log {
			lines++
		}
		logged <- lines
	}()
	var group sync.WaitGroup
	for w := 0; w < workers; w++ {
		group.Add(1)
		go func(w int) {
			defer group.Done()
			random := uint32(w)*7919 + 1
			for n := transfers * w / workers; n < transfers*(w+1)/workers; n++ {
				random = random*1664525 + 1013904223
				from := int(random>>8) % 256
				to := (from + 1 + int(random>>16)%255) % 256
				amount := int64(random>>24) + 1
				if score(float64(amount)) > 1e12 {
					continue
				}
				transfer(from, to, amount)
				if n%1000 == 0 {
					log <- n
				}
			}
		}(w)
	}
	group.Wait()
	close(log)
	lines := <-logged
	sum := int64(0)
	for i := range accounts {
		sum += accounts[i].balance
	}
	fmt.Println(lines, sum)
}
