"""By hand: programs whose threads switch and sleep often, by hand and under the runner by turns.

What measuring costs such a program is no CPU time of the runner: the kernel does more at each
switch, and timers may behave otherwise.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from measuring.estimates import median_of_ratios
from measuring.figures import Bound, Figure, MissingToolError, unless_missing
from measuring.ports import free_port, wait_for
from measuring.running import ROOT, interleaved, output_of, scratch, trial_of
from measuring.showing import alone
from measuring.tools import require

from concurve.estimate import Estimate
from concurve.wire.spec import ReadyProbe, RoleSpec

PROGRAMS = ROOT / "benches" / "by_hand_programs"
ROUNDS = 25
RATIO = Bound(low=0.95, high=1.05)
#: ``turns`` shows what a switch costs; no program that works is like it.
PROGRAM_BOUNDS = {"turns": None, "naps": RATIO, "crowd": RATIO}
SESSIONS = "16"
READY_S_MAX = 10

_RATE = re.compile(r"Requests/sec: +([0-9.]+)|([0-9.]+) a second")


def figures(quick: bool) -> Iterator[Figure]:
    """Three small programs in C, then a server in Go with its load."""
    with scratch() as folder:
        for name, bound in PROGRAM_BOUNDS.items():
            measure = partial(_of_program, name, folder, quick)
            yield unless_missing(_figure(name, bound, quick), measure)
        figure = _figure("a Go server with wrk", RATIO, quick)
        yield unless_missing(figure, partial(_of_server, folder, quick))


def _figure(of: str, bound: Bound | None, quick: bool) -> Figure:
    return Figure(
        f"{of}: rate under the runner / by hand",
        f"median of the ratios of {_rounds(quick)} rounds, by turns in a random order",
        bound=bound,
    )


def _rounds(quick: bool) -> int:
    return 2 if quick else ROUNDS


def _of_program(name: str, folder: Path, quick: bool) -> Estimate:
    program = str(folder / name)
    compiler = require("gcc", "gcc")
    output_of([compiler, "-O2", "-pthread", "-o", program, str(PROGRAMS / f"{name}.c")])
    command = (program, "0.2" if quick else "1")
    role = RoleSpec(name="target", argv=command)
    return _ratio(lambda: _rate(output_of(command)), lambda: _of_roles(role), quick)


def _of_server(folder: Path, quick: bool) -> Estimate:
    go, wrk = require("go", "golang"), require("wrk", "wrk")
    program = str(folder / "server")
    environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GO111MODULE": "off"}
    build = [go, "build", "-o", program, str(PROGRAMS / "server.go")]
    subprocess.run(build, env=environment, check=True)

    def load(address: str) -> tuple[str, ...]:
        return (wrk, "-t1", f"-c{SESSIONS}", "-d1s" if quick else "-d2s", f"http://{address}/?k=7")

    def by_hand() -> float:
        with _serving(program) as address:
            return _rate(output_of(load(address)))

    def under_the_runner() -> float:
        address = f"127.0.0.1:{free_port()}"
        server = RoleSpec(
            name="server",
            argv=(program, "-listen", address),
            end="serve",
            ready_probe=ReadyProbe(tcp=address),
            ready_limit_ns=READY_S_MAX * 10**9,
        )
        return _of_roles(server, RoleSpec(name="client", argv=load(address)))

    return _ratio(by_hand, under_the_runner, quick)


def _ratio(
    by_hand: Callable[[], float], under_the_runner: Callable[[], float], quick: bool
) -> Estimate:
    found = interleaved(
        _rounds(quick),
        {"hand": lambda: {"rate": by_hand()}, "runner": lambda: {"rate": under_the_runner()}},
    )
    return median_of_ratios(found["runner rate"], found["hand rate"])


def _of_roles(*roles: RoleSpec) -> float:
    """The rate of the last role under a runner that uses all of its sources.

    Raises:
        MissingToolError: it may not: what it does not use costs nothing.
    """
    record = trial_of(*roles)
    if missing := {"perf", "places", "real_time"} - {*record.instrument.sources}:
        raise MissingToolError(f"the runner may not use {', '.join(sorted(missing))} here")
    return _rate(record.roles[-1].stdout.text())


def _rate(text: str) -> float:
    found = _RATE.search(text)
    if found is None:
        raise SystemExit(f"no rate in the output {text!r}")
    return float(found[1] or found[2])


@contextmanager
def _serving(program: str) -> Iterator[str]:
    """The address of a server that runs by hand."""
    port = free_port()
    address = f"127.0.0.1:{port}"
    with subprocess.Popen([program, "-listen", address]) as server:
        try:
            wait_for(port, READY_S_MAX)
            yield address
        finally:
            server.terminate()


if __name__ == "__main__":
    sys.exit(alone(figures, __doc__))
