"""The record engine beside SQLite and LMDB, and beside itself, in one process with its load."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from load import run
from measuring.estimates import median_of_ratios, ratio_of_medians
from measuring.figures import Bound, Figure, unless_missing
from measuring.running import ROOT, interleaved, output_of, scratch
from measuring.showing import alone
from measuring.tools import require

from concurve.estimate import Estimate
from concurve.host import native

ROUNDS_BESIDE = 5
"""Beside other engines: what is measured is far from what must hold."""
ROUNDS_OWN = {"none": 15, "group": 9}
"""Coarse against fine, and the greatest number of sessions: closer to it. With ``group`` the disk
decides."""
ROUNDS_ALONE = 25
"""Coarse against fine with one session: closest."""
SECONDS = 1.5
BESIDE_SESSIONS = (1, 8)
OWN_SESSIONS = (8, 16, 32, 64, 96)
"""Those of document 004."""
BRANCHES = 960
"""Ten for each session, so that latches meet more often than transactions. The standard asks for
far more at such rates: one for each transaction a second (TPC-B, clause 4.2)."""
FEW_BRANCHES = 96
"""One for each session: they wait for each other's records, whatever the latches are."""
READERS = (1, 2)
SCALING_BRANCHES = 16
ROUNDS_SCALING = 15
SCALING = {
    ("read", 1): 1.9,
    ("read", 16): 1.9,
    ("tpcb-rw3", 16): 1.85,
    ("tpcb-rw3", 1): 1.5,
    ("update", 1): 1.7,
}
"""Two sessions over one, at least, by workload and sets of files: each has a set of its own, or
they share one."""
ACCOUNTS = 96_000
"""Of all branches: every engine holds everything in memory."""
SERVICES = {"statements": 1.8, "locks": None}
"""Two engines of a service over one, without the network: threads, and processes."""
OVER_SQLITE = 3.0
OVER_LMDB = 1.0
OVER_COARSE = 0.95
AT_MOST_SESSIONS = 0.95
MANY_OVER_COARSE = 5.0
OVER_FLOOR = 0.9
COMMIT_BYTES = 203
"""What a transaction of tpcb-rw3 appends to the log of the record engine with durability ``group``
(decision 78)."""
LOG_BYTES = 16 << 20
"""Of a file of the log, which is overwritten: to force a growing file costs more."""

ADDRESSES = {
    "none": {
        "records": "records:{}/data?durability=none",
        "records coarse": "records:{}/data?durability=none&latching=global",
        "SQLite": "sqlite:{}/data?journal=wal&synchronous=off",
        "LMDB": "lmdb:{}/data?sync=off",
        "LMDB WRITEMAP": "lmdb:{}/data?sync=off&map=write",
    },
    "group": {
        "records": "records:{}/data?durability=group",
        "records coarse": "records:{}/data?durability=group&latching=global",
        "SQLite": "sqlite:{}/data?journal=wal&synchronous=full",
        "LMDB": "lmdb:{}/data?sync=full",
    },
}
"""By durability: a commit waits for no disk, or it is on the disk when it is answered."""

SAME_DATA = {"records coarse": "records", "LMDB WRITEMAP": "LMDB"}
"""Settings of an engine that find the same data."""


class Case(NamedTuple):
    """A measured configuration of an engine."""

    durability: str
    workload: str
    sessions: int
    branches: int = BRANCHES
    files: int = 1

    def text(self) -> str:
        """Its short description."""
        return f"{self.workload}, {self.durability}, {self.sessions}"


class Place(NamedTuple):
    """Where the data are, and for how long each engine is loaded."""

    folder: Path
    seconds: float


def figures(quick: bool) -> Iterator[Figure]:
    """Beside the others; coarse against fine; the greatest number of sessions."""
    with scratch() as folder:
        place = Place(folder, 0.2 if quick else SECONDS)
        beside = 2 if quick else ROUNDS_BESIDE
        for durability in ADDRESSES:
            for sessions in BESIDE_SESSIONS:
                yield from beside_sqlite(place, Case(durability, "tpcb-rw3", sessions), beside)
                yield from beside_lmdb(place, Case(durability, "update", sessions), beside)
            if durability == "group":
                yield beside_floor(place, Case(durability, "tpcb-rw3", 1), beside)
            own = 2 if quick else ROUNDS_OWN[durability]
            pairs = 2 if quick else ROUNDS_ALONE
            yield coarse_and_fine(place, Case(durability, "tpcb-rw3", 1), OVER_COARSE, pairs)
            yield many_sessions(place, durability, BRANCHES, own)._replace(
                bound=Bound(low=AT_MOST_SESSIONS)
            )
        yield many_sessions(place, "none", FEW_BRANCHES, beside)
        most = Case("none", "tpcb-rw3", OWN_SESSIONS[-1])
        yield coarse_and_fine(place, most, MANY_OVER_COARSE, beside)
        for sessions in READERS:
            yield from beside_lmdb(place, Case("none", "read", sessions, SCALING_BRANCHES), beside)
        scaling = 2 if quick else ROUNDS_SCALING
        for (workload, files), low in SCALING.items():
            yield two_sessions(place, workload, files, low, scaling)
        yield from two_engines(place.seconds, scaling)


def beside_sqlite(place: Place, case: Case, rounds: int) -> Iterator[Figure]:
    """Throughput over SQLite's; LMDB's beside it. One session that forces each commit is bounded by
    the disk, whatever the engine is: :func:`beside_floor` judges it."""
    is_of_disk = case.durability == "group" and case.sessions == 1
    bounds = {} if is_of_disk else {"SQLite": Bound(low=OVER_SQLITE)}
    yield from beside_others(place, case, bounds, rounds)


def beside_lmdb(place: Place, case: Case, rounds: int) -> Iterator[Figure]:
    """Throughput over LMDB's; SQLite's beside it."""
    yield from beside_others(place, case, {"LMDB": Bound(low=OVER_LMDB, parity=True)}, rounds)


def beside_others(
    place: Place, case: Case, bounds: Mapping[str, Bound], rounds: int
) -> Iterator[Figure]:
    """The record engine's throughput over that of each other engine."""
    engines = [engine for engine in ADDRESSES[case.durability] if engine != "records coarse"]
    found = measure(place, case, engines, rounds)
    for engine in engines[1:]:
        yield Figure(
            f"records / {engine}: {case.text()}",
            f"transactions per second over those of {engine}, {rounds} rounds in turns",
            ratio_of_medians(found["records"], found[engine]),
            bounds.get(engine),
        )


def beside_floor(place: Place, case: Case, rounds: int) -> Figure:
    """Throughput over what the disk allows: each commit is a write and a force of the log."""
    sides = {"records": partial(rate, place, case, "records"), "floor": partial(floor, place)}
    found = interleaved(rounds, sides)
    return Figure(
        f"records / write and force: {case.text()}",
        f"transactions per second over writes of {COMMIT_BYTES} bytes with fdatasync, one after "
        f"another, {rounds} rounds in turns",
        ratio_of_medians(found["records rate"], found["floor rate"]),
        Bound(low=OVER_FLOOR, parity=True),
    )


def floor(place: Place) -> Mapping[str, float]:
    """Writes a second of a commit's bytes, each forced, to a file that has its blocks."""
    path = place.folder / "floor"
    commit = b"x" * COMMIT_BYTES
    count = 0
    with path.open("wb", buffering=0) as file:
        file.write(bytes(LOG_BYTES))
        os.sync()
        began = time.perf_counter()
        while (passed := time.perf_counter() - began) < place.seconds:
            os.pwrite(file.fileno(), commit, count * COMMIT_BYTES % (LOG_BYTES - COMMIT_BYTES))
            os.fdatasync(file.fileno())
            count += 1
    path.unlink()
    return {"rate": count / passed}


def coarse_and_fine(place: Place, case: Case, low: float, rounds: int) -> Figure:
    """The cost of fine latches without contention."""
    found = measure(place, case, ["records", "records coarse"], rounds)
    return Figure(
        f"fine / coarse latching: {case.text()}",
        f"transactions per second, the median of {rounds} pairs",
        median_of_ratios(found["records"], found["records coarse"]),
        Bound(low=low, parity=low < 1),
    )


def many_sessions(place: Place, durability: str, branches: int, rounds: int) -> Figure:
    """The greatest number of sessions over the best number."""
    cases = {n: Case(durability, "tpcb-rw3", n, branches) for n in OWN_SESSIONS}
    sides = {
        str(sessions): partial(rate, place, case, "records") for sessions, case in cases.items()
    }
    found = interleaved(rounds, sides)
    medians = {sessions: float(np.median(found[f"{sessions} rate"])) for sessions in cases}
    best = max(medians, key=lambda sessions: medians[sessions])
    most = OWN_SESSIONS[-1]
    return Figure(
        f"records: {most} sessions / best, {durability}, {branches}",
        f"transactions per second of tpcb-rw3 on {branches} branches over those of {best} "
        f"sessions, {rounds} rounds in turns",
        ratio_of_medians(found[f"{most} rate"], found[f"{best} rate"]),
    )


def two_sessions(place: Place, workload: str, files: int, low: float, rounds: int) -> Figure:
    """What a second session gains, each on a CPU of its own if there are two."""
    cases = {n: Case("none", workload, n, SCALING_BRANCHES, files) for n in (1, 2)}
    sides = {str(n): partial(rate, place, case, "records") for n, case in cases.items()}
    found = interleaved(rounds, sides)
    sets = "one set of files" if files == 1 else "a set of files each"
    return Figure(
        f"records: 2 sessions / 1, {workload}, {sets}",
        f"transactions per second, the median of {rounds} pairs",
        median_of_ratios(found["2 rate"], found["1 rate"]),
        Bound(low=low) if len(os.sched_getaffinity(0)) > 1 else None,
    )


def two_engines(seconds: float, rounds: int) -> Iterator[Figure]:
    """What a second engine gains a service, in subjects/server/examples/service_scaling.rs."""
    for (service, low), mode in itertools.product(SERVICES.items(), ("threads", "processes")):
        figure = Figure(
            f"{service}: 2 engines / 1, {mode}",
            f"requests per second without the network, the median of {rounds} pairs",
            bound=Bound(low=low) if low and len(os.sched_getaffinity(0)) > 1 else None,
        )
        yield unless_missing(figure, partial(engines_gain, service, mode, seconds, rounds))


def engines_gain(service: str, mode: str, seconds: float, rounds: int) -> Estimate:
    """The rate of two engines over that of one."""
    cargo = require("cargo", "rustup, or Debian's cargo")
    output_of([cargo, "build", "--quiet", "--release", "-p", "concurve-server",
               "--example", "service_scaling", "--target-dir", str(ROOT / "target")])  # fmt: skip
    program = ROOT / "target" / "release" / "examples" / "service_scaling"

    def rate_of(engines: int) -> Mapping[str, float]:
        return {"rate": float(output_of([str(program), service, mode, str(engines), str(seconds)]))}

    found = interleaved(rounds, {str(n): partial(rate_of, n) for n in (1, 2)})
    return median_of_ratios(found["2 rate"], found["1 rate"])


def measure(place: Place, case: Case, engines: list[str], rounds: int) -> dict[str, list[float]]:
    """Transactions a second of each engine, a value a round."""
    found = interleaved(rounds, {engine: partial(rate, place, case, engine) for engine in engines})
    return {engine: found[f"{engine} rate"] for engine in engines}


def rate(place: Place, case: Case, engine: str) -> Mapping[str, float]:
    """Transactions a second on data without earlier changes.

    Raises:
        SystemExit: there were errors, or the data are not what they must be afterwards.
    """
    made = template(place, case, engine)
    with_data = place.folder / "run"
    shutil.copytree(made, with_data)
    # Each measurement begins without unwritten pages of an earlier one.
    os.sync()
    try:
        text, _ = run(
            [*command(with_data, case, engine), "--sessions", str(case.sessions),
             "--duration", f"{place.seconds}s", "--verify", "--json"]
        )  # fmt: skip
    finally:
        shutil.rmtree(with_data)
    found = json.loads(text)
    if found["errors"]:
        raise SystemExit(f"{engine}, {case.text()}: {found['errors_by_kind']}")
    return {"rate": found["rate_per_second"]}


def template(place: Place, case: Case, engine: str) -> Path:
    """A folder with an engine's data, made when it is first asked for."""
    kind = SAME_DATA.get(engine, engine)
    made = place.folder / f"{kind}-{case.workload}-{case.branches}-{case.files}"
    if not made.exists():
        made.mkdir()
        run([*command(made, case, kind), "--init-only"])
    return made


def command(folder: Path, case: Case, engine: str) -> list[str]:
    """The load on an engine whose data are in a folder."""
    address = ADDRESSES[case.durability][engine].format(folder)
    return [
        str(native.binary("concurve-load")), address, "--workload", case.workload,
        "--scale", str(case.branches), "--accounts", str(ACCOUNTS // case.branches),
        "--files", str(case.files),
    ]  # fmt: skip


if __name__ == "__main__":
    sys.exit(alone(figures, __doc__))
