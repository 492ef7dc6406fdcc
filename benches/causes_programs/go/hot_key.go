// Goroutines that exchange the value of one key of a sync.Map: whichever way the map keeps the key,
// all of them write the same place.
package main

import (
	"os"
	"strconv"
	"sync"
)

func main() {
	goroutines, _ := strconv.Atoi(os.Args[1])
	var sessions sync.Map
	var group sync.WaitGroup
	for g := 0; g < goroutines; g++ {
		group.Add(1)
		go func(g int) {
			defer group.Done()
			var value any = &group
			for i := 0; i < 5000000/goroutines; i++ {
				sessions.Swap("last", value)
			}
		}(g)
	}
	group.Wait()
}
