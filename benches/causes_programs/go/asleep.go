// Goroutines take tasks from a channel, sleep for each as for an answer, and count it under a mutex.
package main

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"
)

const tasks = 80

func main() {
	workers, _ := strconv.Atoi(os.Args[1])
	queue := make(chan int, 16)
	var done sync.WaitGroup
	var lock sync.Mutex
	answered := 0
	for range workers {
		done.Add(1)
		go func() {
			defer done.Done()
			for range queue {
				time.Sleep(12 * time.Millisecond)
				lock.Lock()
				answered++
				lock.Unlock()
			}
		}()
	}
	for task := range tasks {
		queue <- task
	}
	close(queue)
	done.Wait()
	fmt.Println(answered)
}
