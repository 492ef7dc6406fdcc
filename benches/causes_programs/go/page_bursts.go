// A pool gets chapters of three equal pages (3 ms each); when all three are set, the main goroutine
// writes the index (0.4 ms) and sends the next chapter. With two workers a chapter takes two pages, not
// one and a half: 6.4 ms of 9.4, the ideal is 4.7. Of the loss 1.5 is the worker that waits for the
// third page (imbalance), 0.2 the index (serial).
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync"
)

const (
	chapters = 50
	pages    = 3
	widths   = 34
	letters  = 64 * 1024
)

type page struct {
	text []byte
	best *uint64
	done *sync.WaitGroup
}

// How bad the lines are, at the best of the widths; each letter counts in all that follow.
func layout(text []byte) uint64 {
	best := ^uint64(0)
	for width := 40; width < 40+widths; width++ {
		bad, column := uint64(14695981039346656037), 0
		for _, letter := range text {
			bad = (bad ^ uint64(letter)) * 1099511628211
			column++
			if column > width {
				column = 0
				bad ^= uint64(width)
			}
		}
		best = min(best, bad)
	}
	return best
}

func index(text []byte) uint64 {
	sum := uint64(1)
	for repeat := 0; repeat < 4; repeat++ {
		for _, letter := range text {
			sum = (sum ^ uint64(letter)) * 1099511628211
		}
	}
	return sum
}

func main() {
	workers, _ := strconv.Atoi(os.Args[1])
	queue := make(chan page, pages)
	var ended sync.WaitGroup
	for w := 0; w < workers; w++ {
		ended.Add(1)
		go func() {
			defer ended.Done()
			for it := range queue {
				*it.best = layout(it.text)
				it.done.Done()
			}
		}()
	}
	text := make([]byte, letters)
	seed := uint64(1)
	for i := range text {
		seed = seed*6364136223846793005 + 1442695040888963407
		text[i] = 'a' + byte(seed>>59)%26
	}
	total := uint64(0)
	for chapter := 0; chapter < chapters; chapter++ {
		var best [pages]uint64
		var done sync.WaitGroup
		done.Add(pages)
		for p := 0; p < pages; p++ {
			queue <- page{text, &best[p], &done}
		}
		done.Wait()
		for _, it := range best {
			total += it
		}
		total += index(text)
	}
	close(queue)
	ended.Wait()
	fmt.Println(total)
}
