"""What a second host changes in packaged studies: the same cells with the load beside the server,
and with the load on another host.

Hosts that are network namespaces share the CPUs of this machine. What changes then is the network
between the load and its server, and what Ray takes; not, as with the hosts of a file, the CPU time
that the server has.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from measuring.estimates import SEED, ratio_of_medians
from measuring.figures import Figure, MissingToolError
from measuring.over_ray import running
from measuring.running import scratch
from tests.helpers.clusters import Cluster

from concurve.analysis.run import trial_findings_of
from concurve.estimate import Estimate
from concurve.store import Store

ROUNDS = 3
"""Runs of each study on one host and on two, in turns."""

REPEATS, REPEATS_QUICK = 5, 2
"""Trials of each cell of a run."""

RATE = "rate_per_second"


class Reduced(NamedTuple):
    """A packaged study with fewer levels."""

    name: str
    levels: tuple[str, ...]


STUDIES = (
    Reduced("enqueue-io-threads", ("target=worker,redis", "cpus=2", "io-threads=1,4")),
    Reduced("tpcb-multicore/service", ("latching=global,record", "sessions=8,32")),
    Reduced("tpcb-multicore/relational", ("engines=threads", "sessions=8,32")),
    Reduced("kernel-mode/modes", ("clients=2,8",)),
)

CELLS_QUICK = (
    ("target=worker", "cpus=2", "io-threads=1,4"),
    ("latching=global,record", "sessions=8"),
    ("engines=threads", "sessions=8"),
    ("clients=2",),
)


class Stored(NamedTuple):
    """A run: the rates of each cell, and the settings that it recommends under each condition."""

    rates: dict[str, list[float]]
    recommended: str


def figures(rounds: int, quick: bool) -> Iterator[Figure]:
    """The rate of each cell, two hosts over one, and what is recommended on either."""
    try:
        # The studies ask for both CPUs of a small machine.
        with running(is_pinned=False) as cluster:
            for study, levels in zip(STUDIES, CELLS_QUICK, strict=True):
                chosen = study._replace(levels=levels) if quick else study
                yield from changed(cluster, chosen, rounds, REPEATS_QUICK if quick else REPEATS)
    except MissingToolError as error:
        yield Figure("studies: two hosts / one", "three hosts", missing=str(error))


def changed(cluster: Cluster, study: Reduced, rounds: int, repeats: int) -> Iterator[Figure]:
    """The figures of a study."""
    sides = ["one", "two"]
    runs: dict[str, list[Stored]] = defaultdict(list)
    shuffle = random.Random(SEED).shuffle
    for _ in range(rounds):
        shuffle(sides)
        for side in sides:
            runs[side].append(run(cluster, study, side == "two", repeats))
    how = f"{study.name}, {RATE}: {rounds} runs on each in turns, {repeats} trials a cell"
    for cell in runs["one"][0].rates:
        one, two = ([it for ran in runs[side] for it in ran.rates[cell]] for side in ("one", "two"))
        count = min(len(one), len(two))  # a trial that does not count is in neither
        ratio = ratio_of_medians(two[:count], one[:count])
        yield Figure(f"two hosts / one: {cell} ", how, ratio)
    yield agreement(study, runs["one"], runs["two"])


def agreement(study: Reduced, one: Sequence[Stored], two: Sequence[Stored]) -> Figure:
    """How many pairs of runs recommend the same, and what is recommended."""
    equal = sum(a.recommended == b.recommended for a, b in zip(one, two, strict=True))
    said = "; ".join(
        f"{where}: {', or '.join(dict.fromkeys(ran.recommended for ran in runs))}"
        for where, runs in (("one host", one), ("two hosts", two))
    )
    name = f"pairs that recommend the same, of {len(one)}"
    return Figure(name, f"{study.name}: {said}", Estimate(value=equal, n=len(one)))


def run(cluster: Cluster, study: Reduced, over: bool, repeats: int) -> Stored:
    """Run a study at effort quick.

    Raises:
        SystemExit: the run failed.
    """
    with scratch() as folder:
        store, exported = folder / "runs.db", folder / "run.json"
        words = [
            sys.executable, "-P", "-c", "from concurve.cli import main; main()", "run", study.name,
            "--effort", "quick", "--repeats", f"{repeats}..{repeats}", "--max-time", "10m",
            "--db", str(store), "--export-json", str(exported),
            *(word for levels in study.levels for word in ("--set", levels)),
        ]  # fmt: skip
        if over:
            words = cluster.laboratory([*words, "--hosts", str(cluster.file)])
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            where = "two hosts" if over else "one host"
            raise SystemExit(f"{study.name} on {where}: {done.stderr.strip()[-1500:]}")
        return read(store, exported)


def read(store: Path, exported: Path) -> Stored:
    """The run that was stored last, and its export."""
    opened = Store(str(store))
    found = json.loads(exported.read_text(encoding="utf-8"))
    names = {cell["index"]: named(cell["parameters"], found) for cell in found["cells"]}
    rates: dict[str, list[float]] = {name: [] for name in names.values()}
    for dot in trial_findings_of(opened, opened.runs()[-1]).dots:
        if dot.used and RATE in dot.values:
            rates[names[dot.cell]].append(dot.values[RATE])
    best = [found["best"], *found["best"].get("groups", [])] if "best" in found else []
    sets = found.get("best_by_condition", best)
    return Stored(rates, ", ".join(recommendation(it) for it in sets) or "none")


def named(parameters: dict[str, Any], found: dict[str, Any]) -> str:
    """A cell by the levels of the factors that vary in its run."""
    every = [cell["parameters"] for cell in found["cells"]]
    varied = [name for name in parameters if len({str(one[name]) for one in every}) > 1]
    return ", ".join(f"{name}={parameters[name]}" for name in varied)


def recommendation(found: dict[str, Any]) -> str:
    """A setting that a run recommends, and under which condition."""
    group = ", ".join(f"{name}={level}" for name, level in found.get("group", {}).items())
    setting = found.get("recommended", "none")
    if isinstance(setting, dict):
        setting = ", ".join(f"{name}={level}" for name, level in setting.items())
    return f"{group}: {setting}" if group else str(setting)
