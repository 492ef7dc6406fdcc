// Goroutines that map, touch and unmap memory against each other, and take turns at a lock in between.
// mappers THREADS ROUNDS: the rounds are divided among the goroutines.
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
	"unsafe"
)

const (
	bytes  = 64 << 10
	page   = 4 << 10
	held   = 20000
	access = syscall.PROT_READ | syscall.PROT_WRITE
	kind   = syscall.MAP_PRIVATE | syscall.MAP_ANON
)

var table sync.Mutex
var total uint64 = 1

// Not by syscall.Mmap, which has a lock of its own.
func change() {
	none := ^uintptr(0)
	at, _, failed := syscall.Syscall6(syscall.SYS_MMAP, 0, bytes, access, kind, none, 0)
	if failed != 0 {
		fmt.Fprintln(os.Stderr, "mmap:", failed)
		os.Exit(1)
	}
	memory := *(*unsafe.Pointer)(unsafe.Pointer(&at))
	for offset := 0; offset < bytes; offset += page {
		*(*byte)(unsafe.Add(memory, offset)) = 1
	}
	syscall.Syscall(syscall.SYS_MUNMAP, at, bytes, 0)
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "mappers THREADS ROUNDS")
		os.Exit(2)
	}
	threads, _ := strconv.Atoi(os.Args[1])
	rounds, _ := strconv.Atoi(os.Args[2])
	var all sync.WaitGroup
	for thread := 0; thread < threads; thread++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for round := 0; round < rounds/threads; round++ {
				change()
				table.Lock()
				for i := 0; i < held; i++ {
					total = total*6364136223846793005 + 1
				}
				table.Unlock()
			}
		}()
	}
	all.Wait()
}
