// An HTTP server whose answers cost a few milliseconds of CPU time: server -listen HOST:PORT
package main

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"log"
	"net/http"
)

const rounds = 20000

func answer(writer http.ResponseWriter, _ *http.Request) {
	sum := sha256.Sum256([]byte("concurve"))
	for round := 1; round < rounds; round++ {
		sum = sha256.Sum256(sum[:])
	}
	fmt.Fprintf(writer, "%x\n", sum)
}

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address to listen on")
	flag.Parse()
	http.HandleFunc("/", answer)
	log.Fatal(http.ListenAndServe(*listen, nil))
}
