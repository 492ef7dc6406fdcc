#!/bin/sh
# Fuzzes each parser for the given seconds, two at a time, each with fresh seeds that are printed. It ends at
# the first failure. docs/reliability.md lists the targets.
set -eu
cd "$(dirname "$0")/.."
export CONCURVE_FUZZ_SECONDS="${1:-600}"

fuzz() {
    cargo test --profile checked --quiet "$@" -- --test-threads=2 --nocapture
}

fuzz -p concurve-load --lib hostile_servers
fuzz -p concurve-server --test parser_fuzz
fuzz -p concurve-server --lib any_contents_are_read
fuzz -p concurve-records --test fuzz
fuzz -p concurve-records --test hostile_pages
fuzz -p concurve-wire --test fuzz
fuzz -p concurve-trial --lib whatever_a_program
fuzz -p concurve-trial --lib any_text_is_read
.venv/bin/python -m pytest -q -s -n 2 -m fuzz
