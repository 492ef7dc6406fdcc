"""Findings made by hand, for the tests of the views and for looking at them."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Mapping

import msgspec

from concurve.estimate import Estimate
from concurve.findings.cells import CellFindings, Dot, Reject
from concurve.findings.claims import AssumedRatio, ClaimFinding, Dependence
from concurve.findings.explanation import CellExplanation, Explanation
from concurve.findings.published import Agreement, PublishedComparison, PublishedTable
from concurve.findings.run import Finding, Report, RunInfo
from concurve.findings.timelines import (
    ThreadLane,
    ThreadState,
    ThreadTimelines,
    TrialThreads,
)
from concurve.findings.workers import ProgramFact
from concurve.terms import Factor, IndicatorInfo, Level

HOSTILE = '<script>alert("x")</script> | `tick` \x1b[31mred\x1b[0m\nline'

INDICATORS = (
    IndicatorInfo(name="wall_seconds", label="wall time", unit="s", better="lower"),
    IndicatorInfo(name="cpu_seconds", label="CPU time", unit="s", better="lower"),
    IndicatorInfo(name="speedup", label="speed-up", better="higher"),
    IndicatorInfo(name="efficiency", label="efficiency", better="higher"),
    IndicatorInfo(name="voluntary_switches", label="voluntary switches", better="lower"),
    IndicatorInfo(name="involuntary_switches", label="involuntary switches", better="lower"),
    IndicatorInfo(name="migrations", label="migrations", better="lower"),
    IndicatorInfo(name="threads_peak", label="threads at peak"),
    IndicatorInfo(name="rss_bytes_max", label="peak memory", unit="bytes", better="lower"),
)

MACHINE: dict[str, object] = {
    "hostname": "bench-1",
    "cpu": {"model": "Example 3000 @ 2.40GHz", "sockets": 1, "cores": 2, "smt": False},
    "memory_bytes": 25_769_803_776,
    "kernel": "6.18.0",
    "governor": None,
    "cpus_online": [0, 1],
    "versions": {"concurve": "0.1.0", "python": "3.11.7", "renderer": "1.2"},
}

Wall = Callable[[Mapping[str, Level]], float]


def _estimate(values: list[float], unit: str = "") -> Estimate:
    """Mean with a t-like interval, good enough for a picture."""
    n = len(values)
    mean = sum(values) / n
    if n < 2:
        return Estimate(value=mean, n=n, unit=unit, median=mean, min=mean, max=mean)
    stdev = math.sqrt(sum((value - mean) ** 2 for value in values) / (n - 1))
    half = 2.8 * stdev / math.sqrt(n)
    return Estimate(
        value=mean,
        low=mean - half,
        high=mean + half,
        n=n,
        unit=unit,
        median=sorted(values)[n // 2],
        min=min(values),
        max=max(values),
        stdev=stdev,
    )


def study(
    factors: tuple[Factor, ...],
    wall: Wall,
    *,
    trials: int = 5,
    name: str = "thread-scaling",
    question: str = "How does a multithreaded program scale with its threads?",
    again: str = "concurve sweep -P threads 1,2,8 -- ./renderer --threads {threads}",
    sentences: tuple[Finding, ...] = (),
) -> Report:
    """A full factorial whose wall times follow ``wall``, with noise from a fixed seed."""
    rng = random.Random(1)
    cells: list[CellFindings] = []
    dots: list[Dot] = []
    work = next((factor.name for factor in factors if factor.work), None)
    base_of: dict[tuple[tuple[str, Level], ...], int] = {}
    combinations = itertools.product(*(factor.levels for factor in factors))
    for index, levels in enumerate(combinations):
        parameters: dict[str, Level] = dict(
            zip((factor.name for factor in factors), levels, strict=True)
        )
        others = tuple(item for item in parameters.items() if item[0] != work)
        base = base_of.setdefault(others, index)
        truth = wall(parameters)
        columns: dict[str, list[float]] = {info.name: [] for info in INDICATORS}
        for block in range(trials):
            seconds = truth * rng.lognormvariate(0, 0.02)
            values = {
                "wall_seconds": seconds,
                "cpu_seconds": 3.0 * rng.lognormvariate(0.01, 0.01),
                "voluntary_switches": float(rng.randrange(20, 60)),
                "involuntary_switches": float(rng.randrange(900, 12_000)),
                "migrations": float(rng.randrange(0, 9)),
                "threads_peak": float(parameters.get("threads", 1)) if work else 1.0,
                "rss_bytes_max": rng.uniform(9e6, 11e6),
            }
            for key, value in values.items():
                columns[key].append(value)
            dots.append(Dot(cell=index, block=block, attempt=0, used=True, values=values))
        units = {info.name: info.unit for info in INDICATORS}
        indicators = {
            key: _estimate(values, units[key]) for key, values in columns.items() if values
        }
        if work:
            mine = indicators["wall_seconds"]
            reference = cells[base].indicators["wall_seconds"] if base < index else mine
            ratio = reference.value / mine.value
            spread = (mine.precision or 0.0) + (reference.precision or 0.0)
            spread = 0.0 if base == index else spread * ratio
            grain = float(parameters[work]) / float(
                (cells[base].parameters if base < index else parameters)[work]
            )
            for key, value in (("speedup", ratio), ("efficiency", ratio / grain)):
                half = spread if key == "speedup" else spread / grain
                indicators[key] = Estimate(value=value, low=value - half, high=value + half, n=5)
        cells.append(
            CellFindings(
                index=index,
                parameters=parameters,
                status="ok",
                indicators=indicators,
                base=base if work else None,
                trials=trials,
                stop_reason="enough for the spread",
            )
        )
    return Report(
        run=RunInfo(
            id="20261121-093000-7f3a",
            study=name,
            effort="quick",
            seed=20_261_121,
            started="2026-11-21T09:30:00Z",
            state="complete",
            reason="every cell reached its precision",
            trials=len(dots),
            rejected=0,
            duration_seconds=71.4,
            again=again,
            version="0.1.0",
        ),
        question=question,
        source="document 002, §10.1",
        factors=factors,
        primary="wall_seconds",
        indicators=INDICATORS,
        cells=tuple(cells),
        sentences=sentences,
        rejects=(),
        dots=tuple(dots),
        machine=MACHINE,
        roles=("target",),
        scaling=(),
        explanation=None,
        facts=(),
        shares=None,
        timelines=None,
        threads=None,
    )


def thread_scaling() -> Report:
    """Twelve cells as in document 002: two CPUs, up to 512 threads."""
    return study(
        (
            Factor(name="cpus", levels=(1, 2)),
            Factor(name="threads", levels=(1, 2, 8, 32, 128, 512), work=True),
        ),
        lambda p: (
            1.5
            * (1 + 0.01 * math.log2(float(p["threads"])))
            / min(float(p["cpus"]), float(p["threads"]), 1.93)
        ),
        question=(
            "How does a multithreaded program scale with its threads on one and on two CPUs?"
        ),
        again=(
            "concurve sweep -P cpus 1,2 -P threads 1,2,8,32,128,512 --cpus {cpus} "
            "--seed 20261121 -- ./renderer --threads {threads}"
        ),
        sentences=(
            Finding(
                kind="answer",
                sentence="On 2 CPUs, 2 threads are fastest: 1.93 times as fast as one thread "
                "(95 % interval 1.89 to 1.97).",
            ),
            Finding(kind="answer", sentence="On 1 CPU, no number of threads beats one thread."),
            Finding(
                kind="warning",
                sentence="The machine is virtual: figures hold for this host and its load.",
            ),
            Finding(kind="note", sentence="Efficiency stays above 0.9 up to 2 threads."),
        ),
    )


def text_factor() -> Report:
    """A factor of words and none that counts as concurrency; one word is hostile."""
    return study(
        (
            Factor(name="sync", levels=("none", "method", "object", "cas", HOSTILE)),
            Factor(name="collector", levels=("serial", "数据库 収集")),
        ),
        lambda p: 0.004 + 0.001 * len(str(p["sync"])[:6]),
        name="synchronisation",
        question=f"What does synchronisation cost? {HOSTILE}",
        again=f"concurve sweep -P sync none,method -- ./bench '{HOSTILE}'",
        sentences=(Finding(kind="answer", sentence=f"Level none is fastest. {HOSTILE}"),),
    )


def single_cell() -> Report:
    """One cell, one trial: no interval anywhere."""
    return study(
        (), lambda _: 0.00123, trials=1, name="sweep", question="", again="concurve sweep -- true"
    )


def troubled() -> Report:
    """Skipped and pending cells, rejects, absent readings, an interrupted run."""
    base = thread_scaling()
    cells = list(base.cells)
    cells[3] = CellFindings(
        index=3,
        parameters=cells[3].parameters,
        status="skipped",
        indicators={},
        absent={"wall_seconds": "the cell was skipped"},
        stop_reason="two program errors",
        note="exit code 1 twice: cannot create thread",
    )
    cells[11] = CellFindings(
        index=11, parameters=cells[11].parameters, status="pending", indicators={}
    )
    kept = {k: v for k, v in cells[5].indicators.items() if k != "migrations"}
    cells[5] = CellFindings(
        index=5,
        parameters=cells[5].parameters,
        status="partial",
        indicators=kept,
        absent={"migrations": "perf_event_paranoid is 3"},
        including_rejects=kept["wall_seconds"],
        base=0,
        trials=5,
        stop_reason="time allowance used up",
    )
    rejects = (
        Reject(
            cell=5,
            parameters=cells[5].parameters,
            block=1,
            attempt=0,
            cause="contaminated",
            detail="others used 0.31 s of CPU",
        ),
        Reject(
            cell=3,
            parameters=cells[3].parameters,
            block=0,
            attempt=0,
            cause="error",
            detail=f"exit code 1: {HOSTILE}",
        ),
        Reject(
            cell=3,
            parameters=cells[3].parameters,
            block=0,
            attempt=1,
            cause="error",
            detail="exit code 1",
        ),
        Reject(
            cell=2,
            parameters=cells[2].parameters,
            block=4,
            attempt=2,
            cause="contaminated",
            detail="steal 12 %",
            used=True,
        ),
    )
    dots = [dot for dot in base.dots if dot.cell not in (3, 11)]
    dots.append(Dot(cell=5, block=1, attempt=0, used=False, values={"wall_seconds": 1.95}))
    run = base.run
    return Report(
        run=RunInfo(
            id=run.id,
            study=run.study,
            effort=run.effort,
            seed=run.seed,
            started=run.started,
            state="interrupted",
            reason="stopped by SIGINT in block 5",
            trials=len(dots),
            rejected=3,
            duration_seconds=4000.0,
            again=run.again,
            version=run.version,
        ),
        question=base.question,
        source=base.source,
        factors=base.factors,
        primary=base.primary,
        indicators=base.indicators,
        cells=tuple(cells),
        sentences=base.sentences,
        rejects=rejects,
        dots=tuple(dots),
        machine=base.machine,
        roles=("target", "background"),
        scaling=(),
        explanation=None,
        facts=(),
        shares=None,
        timelines=None,
        threads=None,
    )


def many_cells() -> Report:
    """120 cells: 6 × 4 × 5, so twenty curves."""
    return study(
        (
            Factor(name="sync", levels=("none", "method", "object", "cas")),
            Factor(name="grain", levels=("pixel", "line", "tile", "block", "frame")),
            Factor(name="threads", levels=(1, 2, 3, 4, 6, 8), work=True),
        ),
        lambda p: 0.2 + (1.0 + len(str(p["grain"])) / 8) / float(p["threads"]),
    )


def _per_operation(total: float, waiting: float, locked: float) -> dict[str, Estimate]:
    names = {"total": total, "cpu": total - waiting - locked, "run_queue": waiting,
             "blocked": locked}  # fmt: skip
    return {
        name: Estimate(value=ns, low=0.98 * ns, high=1.02 * ns, n=5, unit="ns")
        for name, ns in names.items()
    }


def judged() -> Report:
    """All that a source, the records and the program itself say of a run."""
    base = study(
        (Factor(name="threads", levels=(1, 2), work=True),), lambda p: 2.0 / float(p["threads"])
    )
    ratio = Estimate(value=1.96, low=1.91, high=2.01, n=5)
    lock = {"cpu": 0.6, "run_queue": 0.1, "futex": 0.3}
    figures: tuple[tuple[int, str, float, Estimate, Agreement], ...] = (
        (1, "70.1", 1.0, Estimate(value=1.0), "base"),
        (2, "35.9", 0.512, Estimate(value=0.51, low=0.49, high=0.53, n=5), "agrees"),
    )
    comparisons = tuple(
        PublishedComparison(
            row="time", column=f"{n} threads", printed=printed, unit="s", indicator="wall_seconds",
            parameters={"threads": n}, base={"threads": 1}, compare="ratio", verdict=verdict,
            reason="", published=published, ours=ours,
        )
        for n, printed, published, ours, verdict in figures
    )  # fmt: skip
    return msgspec.structs.replace(
        base,
        claims=(
            ClaimFinding(
                id="halves", says="Two threads halve the time.", source="§3, table 7",
                kind="speedup", verdict="supported", reason="", threshold="at least 1.9",
                estimate=ratio, published=1.95, indicator="wall_seconds", cell={"threads": 2},
            ),
            ClaimFinding(
                id="many", says=f"A hundred threads do no harm. {HOSTILE}", source="§4",
                kind="ratio", verdict="not testable here", reason="threads=100 was not run",
            ),
            ClaimFinding(
                id="pinned-8192", says="Pinned threads are faster.", source="§5",
                kind="ratio", verdict="cannot be decided", threshold="at most 1",
                reason="what it compares makes no difference here", claim="pinned",
                estimate=Estimate(value=0.998, low=0.994, high=1.002, n=5),
                setting={"cache": 8192}, differ_by=0.03,
                differ=Estimate(value=0.004, low=0.0, high=0.009, n=5),
            ),
        ),
        dependences=(
            Dependence(claim="halves", says="Two threads halve the time.", factor="cache", level=0,
                       settings=3, ratio=ratio),
            Dependence(claim="halves", says="Two threads halve the time.", factor="cache",
                       level=8192, settings=3, ratio=ratio, change=Estimate(value=1.05)),
        ),
        assumed_ratios=tuple(
            AssumedRatio(indicator="wall_seconds", factor="threads", base=1, level=2,
                         assumption="cache", at=at, settings=3, published=0.512,
                         alike_within=0.03,
                         ratio=Estimate(value=value, low=value - 0.01, high=value + 0.01, n=5))
            for at, value in ((0, 0.51), (8192, 0.998))
        ),
        published=(
            PublishedTable(number="7", title="Times", rows=("time",),
                           columns=("1 threads", "2 threads"), figures=comparisons),
        ),
        explanation=Explanation(
            run=base.run.id,
            study=base.run.study,
            factors=("threads",),
            work="threads",
            operation="reported by the program; the threads are those of the role target",
            cells=(
                CellExplanation(
                    parameters={"threads": 1}, cause="none", index=0, trials=5,
                    evidence="With threads=1 an operation takes 1 ms of thread time.",
                    per_operation=_per_operation(1e6, 0, 0), shares={"cpu": 1.0},
                ),
                CellExplanation(
                    parameters={"threads": 2}, cause="lock", index=1, trials=5,
                    evidence="With threads=2 an operation takes 1.7 × the thread time.",
                    per_operation=_per_operation(1.7e6, 0.17e6, 0.51e6), shares=lock,
                ),
            ),
            missing={"steal": "no hypervisor says it"},
        ),
        threads=_threads(),
        facts=(
            ProgramFact(name="threads_limited_by", value="pids.max = 300", where={"threads": 2},
                        cells=1, among=1),
        ),
    )  # fmt: skip


def _threads() -> ThreadTimelines:
    """Of the cell with two threads: both run, and wait for a lock in turns."""
    lanes = tuple(
        ThreadLane(
            role="target", tid=100 + thread, name="worker",
            states=tuple(
                ThreadState(begin / 10, (begin + 1) / 10, 0.5 + 0.4 * ((begin + thread) % 2),
                            0.05, "futex", "add (table.cc:7)")
                for begin in range(12)
            ),
        )
        for thread in (1, 2)
    )  # fmt: skip
    cell = TrialThreads(parameters={"threads": 2}, lanes=lanes, threads=2)
    return ThreadTimelines(factors=("threads",), cells=(cell,), remark="1 of 2 cells.")


ALL: dict[str, Callable[[], Report]] = {
    "thread_scaling": thread_scaling,
    "text_factor": text_factor,
    "single_cell": single_cell,
    "troubled": troubled,
    "many_cells": many_cells,
    "judged": judged,
}
