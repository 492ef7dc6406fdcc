// One goroutine that computes and allocates, however many are asked for; the other threads are those
// of the runtime.
package main

func compute(iterations int, seed uint64) uint64 {
	for i := 0; i < iterations; i++ {
		seed = seed*6364136223846793005 + 1442695040888963407
	}
	return seed
}

func main() {
	var kept [8][]uint64
	for part := 0; part < 400; part++ {
		own := make([]uint64, 4096)
		for at := range own {
			own[at] = compute(200, uint64(at))
		}
		kept[part%len(kept)] = own
	}
	if kept[0][0] == 0 {
		panic("the work was left out")
	}
}
