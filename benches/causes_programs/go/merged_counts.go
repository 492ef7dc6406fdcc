// Goroutines that count words in a map each; when they are done, one adds up the counts of all
// words, in the order of the alphabet.
package main

import (
	"os"
	"sort"
	"strconv"
	"sync"
)

const words = 250000

func count(shares int, seed uint64) map[uint64]int {
	counts := make(map[uint64]int, words)
	for i := 0; i < shares; i++ {
		seed = seed*6364136223846793005 + 1442695040888963407
		counts[seed>>33%words]++
	}
	return counts
}

func main() {
	goroutines, _ := strconv.Atoi(os.Args[1])
	parts := make([]map[uint64]int, goroutines)
	var group sync.WaitGroup
	for g := 0; g < goroutines; g++ {
		group.Add(1)
		go func(g int) {
			defer group.Done()
			parts[g] = count(6000000/goroutines, uint64(g)+1)
		}(g)
	}
	group.Wait()
	total := make(map[string]int, words)
	for _, part := range parts {
		for word, counted := range part {
			total[strconv.FormatUint(word, 36)] += counted
		}
	}
	names := make([]string, 0, len(total))
	for name := range total {
		names = append(names, name)
	}
	sort.Strings(names)
	if len(names) == 0 {
		panic("the work was left out")
	}
}
