"""Noise as machines have it, and runs of it through the real plan, protocol and analysis.

Each kind of noise gives factors by which the trials of a run deviate, in the order in which they
are made, so that drift and steps go on from one cell to the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from concurve.analysis.run.findings import StoredRun, analyse, with_trials
from concurve.analysis.run.tables import in_use_of
from concurve.definition.study import Claim, EffortName, Study
from concurve.figures import decode_figures, encode_figures
from concurve.findings.run import TrialFindings
from concurve.planning.plan import plan_of
from concurve.planning.protocol import Protocol, Stop
from concurve.store import run_head
from concurve.store.rows import Outcome, RunRow, TrialRow
from concurve.store.run_head import RunHead
from concurve.terms import Level
from tests.helpers.fakes import small_study

Factors = NDArray[np.float64]
Noise = Callable[[np.random.Generator, int], Factors]

#: One tick of the coarse clock; a trial takes about 1.
TICK = 0.05


def log_normal(cv: float) -> Noise:
    """Errors of one spread."""
    return lambda generator, n: generator.lognormal(0, cv, n)


def slow(generator: np.random.Generator, n: int) -> Factors:
    """One trial in ten is slow by an exponential share with the mean 0.5."""
    slowed = generator.random(n) < 0.1
    return generator.lognormal(0, 0.02, n) * (1 + slowed * generator.exponential(0.5, n))


def bimodal(share: float) -> Noise:
    """A second level 15 % higher, in this share of the trials."""
    return lambda generator, n: (
        generator.lognormal(0, 0.01, n) * np.where(generator.random(n) < share, 1.15, 1.0)
    )


def drift(generator: np.random.Generator, n: int) -> Factors:
    """A first-order autoregression of 3 %, ρ = 0.95."""
    steps = generator.normal(0, math.sqrt(1 - 0.95**2), n)
    level = np.empty(n)
    level[0] = generator.normal()
    for index in range(1, n):
        level[index] = 0.95 * level[index - 1] + steps[index]
    return np.exp(0.03 * level + generator.normal(0, 0.003, n))


def step(generator: np.random.Generator, n: int) -> Factors:
    """8 % slower after the 14th trial."""
    return generator.lognormal(0, 0.02, n) * np.where(np.arange(n) < 14, 1.0, 1.08)


def quantised(generator: np.random.Generator, n: int) -> Factors:
    """Read by a clock that ticks twenty times a trial; :func:`simulated` rounds."""
    return generator.lognormal(0, 0.02, n)


NOISES: dict[str, Noise] = {
    "log-normal 2 %": log_normal(0.02),
    "log-normal 3 %": log_normal(0.03),
    "10 % slow": slow,
    "bimodal 80/20": bimodal(0.2),
    "bimodal 50/50": bimodal(0.5),
    "drift": drift,
    "step": step,
    "quantised": quantised,
}


def simulated(
    study: Study,
    effort: EffortName,
    seed: int,
    noise: Noise,
    seconds: Callable[[Mapping[str, Level]], float],
    tick: float = 0.0,
    cpu_cv: float | None = None,
) -> TrialFindings:
    """The findings of a run whose trials take ``seconds`` of their cell times the noise; with a
    ``tick``, all times are whole multiples of it. The CPU time is the same, or varies by itself by
    ``cpu_cv``."""
    head = RunHead(
        format=run_head.FORMAT,
        id=f"2026-{seed}",
        study=study,
        effort=effort,
        seed=seed,
        started="2026-11-22T10:00:00+00:00",
        again="concurve sweep …",
        machine={},
        programs={},
        versions={},
        rules=study.efforts[effort].rules,
    )
    plan = plan_of(head)
    protocol, trials = Protocol(plan), list[TrialRow]()
    most = len(plan.cells) * (plan.rules.repeats_max + 2 * plan.rules.repeats_min)
    factors = noise(np.random.default_rng([seed, 15]), most)
    alone = np.random.default_rng([seed, 16])
    while not isinstance(key := protocol.next(), Stop):
        value = seconds(plan.cells[key.cell].parameters) * float(factors[len(trials)])
        value = max(1, round(value / tick)) * tick if tick else value
        outcome = Outcome(key, "ok", value, 0.001)
        protocol.record(outcome)
        cpu = value
        if cpu_cv is not None:
            cpu = seconds(plan.cells[key.cell].parameters) * float(alone.lognormal(0, cpu_cv))
        figures = {"wall_seconds": value, "cpu_seconds": cpu}
        trials.append(TrialRow(outcome, encode_figures(figures)))
    return _findings(head, protocol, trials)


def _findings(head: RunHead, protocol: Protocol, trials: Sequence[TrialRow]) -> TrialFindings:
    row = RunRow(head.id, head.study.name, head.started, "complete", "", b"")
    table = decode_figures(trial.figures for trial in trials)
    stored = StoredRun(
        head, row, protocol.plan, protocol, trials, table, in_use_of(protocol, trials)
    )
    return with_trials(analyse(stored, None), stored)


def copies(
    effort: EffortName,
    seed: int,
    kind: str,
    slower: Sequence[float] = (1.0, 1.0),
    claims: Sequence[Claim] = (),
    cpu_cv: float | None = None,
) -> TrialFindings:
    """A run over copies of one program, each ``slower`` by its own factor. ``kind`` is a name in
    :data:`NOISES`."""
    study = small_study(None, copy=tuple(range(1, len(slower) + 1)))
    study = msgspec.structs.replace(study, claims=tuple(claims))
    tick = TICK if kind == "quantised" else 0.0
    times: dict[Level, float] = dict(enumerate(slower, start=1))
    return simulated(
        study, effort, seed, NOISES[kind], lambda cell: times[cell["copy"]], tick, cpu_cv
    )
