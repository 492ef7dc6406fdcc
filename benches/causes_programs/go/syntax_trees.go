// Short-lived syntax trees beside a live forest of 600,000 nodes, with the collector set to 40 %: for
// each 12 MB of new nodes (8 to 10 ms of a worker) all live ones are marked again (about as long). One
// worker leaves a CPU to the marking, two must share theirs with it: what the second gains is lost to
// the collector. The symbol table is locked once in 16 statements, for 1 % of the time.
package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"sync"
)

const (
	live       = 600_000
	statements = 400_000
)

type node struct {
	left, right *node
	name        string
	value       int64
	operator    byte
}

type symbols struct {
	mutex sync.Mutex
	uses  map[string]int
}

var names = [...]string{"alpha", "beta", "gamma", "delta", "sum", "index", "limit", "total"}

func (s *symbols) used(name string) {
	s.mutex.Lock()
	s.uses[name]++
	s.mutex.Unlock()
}

func parse(depth int, seed uint64) *node {
	seed = seed*6364136223846793005 + 1442695040888963407
	it := &node{name: names[seed>>61], value: int64(seed >> 40), operator: byte(seed >> 33 & 3)}
	if depth > 0 {
		it.left = parse(depth-1, seed)
		it.right = parse(depth-1, seed+1)
	}
	return it
}

func (it *node) evaluate() int64 {
	if it.left == nil {
		return it.value
	}
	left, right := it.left.evaluate(), it.right.evaluate()
	switch it.operator {
	case 0:
		return left + right
	case 1:
		return left - right
	case 2:
		return left ^ right
	}
	return left * right
}

func main() {
	workers, _ := strconv.Atoi(os.Args[1])
	debug.SetGCPercent(40)
	table := &symbols{uses: make(map[string]int)}
	totals := make([]int64, workers*16)
	var group sync.WaitGroup
	for w := 0; w < workers; w++ {
		group.Add(1)
		go func(w int) {
			defer group.Done()
			forest := make([]*node, 0, live/31/workers)
			for tree := 0; tree < live/31/workers; tree++ {
				forest = append(forest, parse(4, uint64(w*live+tree)))
			}
			total := int64(0)
			for s := 0; s < statements/workers; s++ {
				statement := parse(4, uint64(total)+uint64(s))
				total += statement.evaluate()
				if s%16 == 0 {
					table.used(statement.name)
				}
			}
			for _, tree := range forest {
				total += tree.value
			}
			totals[w*16] = total
		}(w)
	}
	group.Wait()
	fmt.Println(totals[0], len(table.uses))
}
