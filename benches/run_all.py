#!/usr/bin/env python3
"""Measure what the project promises of itself; exit with 1 if a bound is missed.

make bench
.venv/bin/python benches/run_all.py --only exact --only light
.venv/bin/python benches/run_all.py --quick          # a smoke run, judges nothing
"""

from __future__ import annotations

import argparse
import sys

import aa
import by_hand
import causes
import confirm
import demo
import disk
import disturbed
import engines
import exact
import hostile
import kernel
import kernel_modes
import latches
import light
import load
import postgres
import probing
import rates
import report_page
import scale
import server
import sites
import statements
import threads
import web_pages
import web_watched
import web_window
from measuring.figures import Bench
from measuring.showing import exit_code, quiet_warning, show

import examples
import hosts
import models
import monitor
from concurve.host.machine import allowed_cpus, describe_machine

SUBJECTS: dict[str, Bench] = {
    "exact": exact.figures,  # as exact as hyperfine, perf and the kernel's own accounts
    "light": light.figures,  # what a trial costs beyond the command
    "load": load.figures,  # the load generator beside redis-benchmark
    "rates": rates.figures,  # how often the interval of --slo holds, on simulated servers
    "postgres": postgres.figures,  # the load generator beside pgbench
    "engines": engines.figures,  # the record engine beside SQLite and LMDB
    "probing": probing.figures,  # what it costs to watch 1 … 512 busy threads
    "by-hand": by_hand.figures,  # programs that switch often, by hand and under the runner
    "page": report_page.figures,  # how soon the page of a long run is painted
    "web": web_pages.figures,  # how soon the pages of concurve web are painted
    "window": web_window.figures,  # how soon a picture is shown, and what showing it adds
    "watched": web_watched.figures,  # a run that a browser watches, beside one that none does
    "scale": scale.figures,  # showing a very long run
    "models": models.figures,  # fitting a thousand curves
    "kernel": kernel.figures,  # the Mandelbrot kernel beside plain C
    "disk": disk.figures,  # the speed of the simulator
    "threads": threads.figures,  # the kernels of document 002, native and JVM
    "aa": aa.figures,  # a program against itself, and against one that is 5 % slower
    "causes": causes.figures,  # what limits programs of known behaviour
    "confirm": confirm.figures,  # causes confirmed by experiment, and the gain of a shorter lock
    "sites": sites.figures,  # the function and the line of a sampled wait for a lock
    "server": server.figures,  # what a lock costs, and the reference server beside Redis
    "hostile": hostile.figures,  # what hostile clients cost those that have logged in
    "hosts": hosts.figures,  # starts, clocks and engines over several hosts
    "kernel-modes": kernel_modes.figures,  # engines that are threads beside processes
    "monitor": monitor.figures,  # what it costs to read the server's counters
    "statements": statements.figures,  # prepared statements beside PostgreSQL's
    "latches": latches.figures,  # counted latches and the shared heap beside those of others
    "disturbed": disturbed.figures,  # servers beside other work
    "demo": demo.figures,  # make demo
    "examples": examples.figures,  # the answers of the examples, beside busy processes too
}


def main() -> int:
    """Measure the chosen subjects and judge their bounds."""
    options = parse_options()
    print_machine()
    chosen = [SUBJECTS[name] for name in options.only or SUBJECTS]
    figures = show(chosen, options.quick)
    missed = [figure.name for figure in figures if figure.held is False]
    if missed and not options.quick:
        print(f"\nmissed: {'; '.join(missed)}")
    return exit_code(figures, options.quick)


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", action="append", choices=SUBJECTS, help="repeatable")
    parser.add_argument("--quick", action="store_true", help="a smoke run; judges no bound")
    return parser.parse_args()


def print_machine() -> None:
    """Figures mean little without the machine, and less on a busy one."""
    machine = describe_machine()
    print(f"{machine['cpu_model']}, {len(allowed_cpus())} CPUs, Linux {machine['kernel']}")
    if warning := quiet_warning():
        print(warning)
    print()


if __name__ == "__main__":
    sys.exit(main())
