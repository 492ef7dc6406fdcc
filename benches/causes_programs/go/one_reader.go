// One goroutine splits the input into records and hands them on through an unbuffered channel;
// whoever takes one needs a small part of the
// time for it that the reader did.
package main

import (
	"bufio"
	"bytes"
	"hash/fnv"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

func read(text []byte, times int, records chan<- []string) {
	for time := 0; time < times; time++ {
		lines := bufio.NewScanner(bytes.NewReader(text))
		var record []string
		for lines.Scan() {
			record = append(record, strings.Fields(lines.Text())...)
			if len(record) > 2000 {
				records <- record
				record = nil
			}
		}
	}
	close(records)
}

func main() {
	workers, _ := strconv.Atoi(os.Args[1])
	text := bytes.Repeat([]byte("GET /images/logo.png 200 5120 0.013\n"), 40000)
	records := make(chan []string)
	go read(text, 24, records)
	var total atomic.Int64
	var group sync.WaitGroup
	for w := 0; w < workers; w++ {
		group.Add(1)
		go func() {
			defer group.Done()
			hash := fnv.New64a()
			for record := range records {
				for _, field := range record {
					hash.Write([]byte(field))
				}
			}
			total.Add(int64(hash.Sum64() >> 1))
		}()
	}
	group.Wait()
	if total.Load() == 0 {
		panic("the work was left out")
	}
}
