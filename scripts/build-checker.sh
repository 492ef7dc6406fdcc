#!/bin/sh
# Builds the checker of histories (tests/histories/checker) with Go. Where Go is missing, or its modules
# cannot be had, it says so and the tests of histories are skipped. Usage: build-checker.sh PROGRAM
set -u
program=$(realpath -m "$1")
cd "$(dirname "$0")/../tests/histories/checker" || exit 1

without() { # why
    printf '%s; the tests of histories will be skipped\n' "$1" >&2
    exit 0
}

command -v go >/dev/null || without "Go is missing: apt-get install golang-go"
# Never another version of Go from the network; the module's content is what go.sum says.
# -trimpath for the vetting, too: else Go compiles its library once for each of the two.
export GOTOOLCHAIN=local GOFLAGS="-mod=readonly -buildvcs=false -trimpath"
if ! timeout 120 go mod download; then
    without "the modules of tests/histories/checker/go.mod cannot be downloaded"
fi
mkdir -p "$(dirname "$program")"
go vet ./... && go build -o "$program" .
