#!/usr/bin/env bash
# Question:     Which GOMAXPROCS should a Go server have whose answers cost CPU time?
# Needs:        go
# Right answer: As many as there are CPUs, or more.
. "$(dirname "$0")/../common.sh"
needs go golang

# Without cgo the standard library compiles in seconds, and nothing is fetched.
export CGO_ENABLED=0 GOTOOLCHAIN=local GO111MODULE=off
go build -o server "$HERE/server.go"
go build -o client "$HERE/client.go"

# The server's variable stands in the server's own command: --env would set that of the client.
concurve sweep -P procs 1,2,4 --effort quick --max-time 100s \
    --server 'env GOMAXPROCS={procs} ./server -listen 127.0.0.1:{free_port}' --ready tcp:{free_port} \
    --extract 'rate=([0-9.]+) answers per second:1/s:higher' -- \
    ./client -url http://127.0.0.1:{free_port}/ -sessions 16 -duration 1s

check best last --by rate --right cpus..
