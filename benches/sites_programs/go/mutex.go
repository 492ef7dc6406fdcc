// A sync.Mutex that is taken in a function and in a method. What each goroutine waits for stands in
// `truth`, as in the programs in C; goroutines are named by the numbers that the runtime gives them.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

const threadsMax = 16

type slot struct {
	site    uint64
	padding [7]uint64
}

var truth [threadsMax]slot
var table sync.Mutex
var total uint64 = 1

// WAIT writes the number of the site, and returns the lock that the line then waits for.
func WAIT(thread int, number uint64, lock *sync.Mutex) *sync.Mutex {
	atomic.StoreUint64(&truth[thread].site, number)
	return lock
}

// DONE says that the thread waits no more.
func DONE(thread int) {
	atomic.StoreUint64(&truth[thread].site, 0)
}

func compute(iterations uint64, seed uint64) uint64 {
	for i := uint64(0); i < iterations; i++ {
		seed = seed*6364136223846793005 + 1442695040888963407
	}
	return seed
}

//go:noinline
func addLeft(thread int) {
	WAIT(thread, 1, &table).Lock() // main.addLeft
	DONE(thread)
	total = compute(60000+total%50000, total)
	table.Unlock()
}

type shelf struct{ thread int }

func (it *shelf) addRight() {
	WAIT(it.thread, 2, &table).Lock() // main.(*shelf).addRight
	DONE(it.thread)
	total = compute(60000+total%50000, total)
	table.Unlock()
}

func own() string {
	bytes := make([]byte, 64)
	text := string(bytes[:runtime.Stack(bytes, false)])
	return strings.Fields(text)[1]
}

func main() {
	threads, _ := strconv.Atoi(os.Args[1])
	names := make(chan string)
	begin := make(chan bool)
	for index := 0; index < threads; index++ {
		thread := index
		go func() {
			names <- fmt.Sprintf("thread %d %s", thread, own())
			<-begin
			it := &shelf{thread}
			for round := thread; ; round++ {
				if round%2 == 0 {
					addLeft(thread)
				} else {
					it.addRight()
				}
				compute(2000, uint64(round))
			}
		}()
	}
	fmt.Printf("truth %p %d\n", &truth, 64)
	for thread := 0; thread < threads; thread++ {
		fmt.Println(<-names)
	}
	fmt.Println("ready")
	close(begin)
	os.Stdin.Read(make([]byte, 1))
}
