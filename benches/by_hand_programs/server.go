// An HTTP server whose answers cost some tens of microseconds: server -listen HOST:PORT
package main

import (
	"crypto/sha256"
	"encoding/json"
	"flag"
	"log"
	"net/http"
)

const rounds = 100

func answer(writer http.ResponseWriter, request *http.Request) {
	sum := sha256.Sum256([]byte(request.URL.RawQuery))
	for round := 1; round < rounds; round++ {
		sum = sha256.Sum256(sum[:])
	}
	json.NewEncoder(writer).Encode(map[string]any{"of": request.URL.RawQuery, "sum": sum[:]})
}

func main() {
	listen := flag.String("listen", "127.0.0.1:8080", "address to listen on")
	flag.Parse()
	http.HandleFunc("/", answer)
	log.Fatal(http.ListenAndServe(*listen, nil))
}
