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
fuzz -p concurve-load --lib hostile_loads
fuzz -p concurve-server --test server parser_fuzz::
fuzz -p concurve-server --lib any_contents_are_read
fuzz -p concurve-records --test records fuzz::
fuzz -p concurve-records --test records hostile_pages::
fuzz -p concurve-wire --test wire fuzz::
fuzz -p concurve-sites --test sites whatever_stands_on
fuzz -p concurve-trial --lib whatever_a_program
fuzz -p concurve-trial --lib any_text_is_read
fuzz -p concurve-disk --lib any_text_is_a_trace
fuzz -p concurve-mandelbrot --lib any_text_is_a_location
fuzz -p concurve-storage --lib any_contents_are_an_export
.venv/bin/python -m pytest -q -s -n 2 -m fuzz
