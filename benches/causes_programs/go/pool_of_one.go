// Handlers that compute a little and then ask a database over the one connection of a pool. The database
// listens on loopback and sleeps for each query: a goroutine of this program, or with "process" a process
// of its own.
package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

const queries = 360

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func serve(listener net.Listener, last func()) {
	connection, err := listener.Accept()
	check(err)
	lines := bufio.NewReader(connection)
	for {
		query, err := lines.ReadString('\n')
		if err != nil {
			last()
			return
		}
		time.Sleep(2 * time.Millisecond)
		fmt.Fprintf(connection, "row %s", query)
	}
}

// Where the database listens, and what waits for its end.
func database(ownProcess bool) (string, func()) {
	if !ownProcess {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		check(err)
		go serve(listener, func() {})
		return listener.Addr().String(), func() {}
	}
	child := exec.Command(os.Args[0], "database")
	said, err := child.StdoutPipe()
	check(err)
	check(child.Start())
	address, err := bufio.NewReader(said).ReadString('\n')
	check(err)
	return strings.TrimSpace(address), func() { child.Wait() }
}

func ask(pool chan net.Conn, query string) {
	connection := <-pool
	defer func() { pool <- connection }()
	fmt.Fprintln(connection, query)
	_, err := bufio.NewReader(connection).ReadString('\n')
	check(err)
}

func compute(number int) uint64 {
	hash := uint64(number)
	for turn := uint64(0); turn < 150000; turn++ {
		hash ^= hash >> 31
		hash = hash*0x9E3779B97F4A7C15 + turn
	}
	return hash
}

func main() {
	if os.Args[1] == "database" {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		check(err)
		fmt.Println(listener.Addr())
		serve(listener, func() { os.Exit(0) })
	}
	workers, _ := strconv.Atoi(os.Args[1])
	ownProcess := len(os.Args) > 2 && os.Args[2] == "process"
	address, ended := database(ownProcess)
	connection, err := net.Dial("tcp", address)
	check(err)
	pool := make(chan net.Conn, 1)
	pool <- connection
	var group sync.WaitGroup
	for worker := 0; worker < workers; worker++ {
		group.Add(1)
		go func(first int) {
			defer group.Done()
			for number := first; number < queries; number += workers {
				ask(pool, fmt.Sprintf("select %d", compute(number)%1000))
			}
		}(worker)
	}
	group.Wait()
	connection.Close()
	ended()
}
