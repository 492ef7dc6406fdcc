// Goroutines that do a little whenever their ticker ticks: they wait for the time of day, and
// nothing limits them.
package main

import (
	"os"
	"strconv"
	"sync"
	"time"
)

func main() {
	goroutines, _ := strconv.Atoi(os.Args[1])
	var group sync.WaitGroup
	for g := 0; g < goroutines; g++ {
		group.Add(1)
		go func(seed uint64) {
			defer group.Done()
			ticker := time.NewTicker(4 * time.Millisecond)
			defer ticker.Stop()
			for i := 0; i < 100/goroutines; i++ {
				<-ticker.C
				for step := 0; step < 50000; step++ {
					seed = seed*6364136223846793005 + 1442695040888963407
				}
			}
			if seed == 0 {
				panic("the work was left out")
			}
		}(uint64(g) + 1)
	}
	group.Wait()
}
