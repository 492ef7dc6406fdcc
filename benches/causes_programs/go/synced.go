// Goroutines that append a record to a file each and force it to the disk.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

func main() {
	goroutines, _ := strconv.Atoi(os.Args[1])
	var group sync.WaitGroup
	for g := 0; g < goroutines; g++ {
		group.Add(1)
		go func(g int) {
			defer group.Done()
			path := filepath.Join(os.Args[2], fmt.Sprintf("synced-%d", g))
			file, err := os.Create(path)
			if err != nil {
				panic(err)
			}
			defer os.Remove(path)
			defer file.Close()
			record := make([]byte, 512)
			for i := 0; i < 300/goroutines; i++ {
				if _, err := file.Write(record); err != nil {
					panic(err)
				}
				if err := file.Sync(); err != nil {
					panic(err)
				}
			}
		}(g)
	}
	group.Wait()
}
