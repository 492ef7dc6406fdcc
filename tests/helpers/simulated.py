"""Runs under the noises of :mod:`tests.helpers.noises` through the real plan, protocol and
analysis."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec
import numpy as np

from concurve.analysis.run.findings import StoredRun, analyse, with_trials
from concurve.analysis.run.tables import in_use_of
from concurve.definition.study import Claim, EffortName, Study
from concurve.figures import decode_figures, encode_figures
from concurve.findings.run import TrialFindings
from concurve.planning.plan import plan_of
from concurve.planning.protocol import Protocol, Stop
from concurve.store import run_head
from concurve.store.rows import Outcome, RunRow, TrialRow, Trials
from concurve.store.run_head import RunHead
from concurve.terms import Level
from tests.helpers.fakes import small_study
from tests.helpers.noises import Noise, by_name, draw, read

#: A noise whose clock ticks so coarsely.
TICKING = "3 %, clock of 50 ms"
TICK = by_name(TICKING).tick


#: The noises of the catalogue under which copies of a program are held against each other.
JUDGED = (
    "log-normal 2 %", "log-normal 3 %", "1 in 10 slow, +Exp(.5)", "two levels 80/20",
    "two levels 50/50", "drift alone", "step", "blocks of 5 %, spread of 1 %", TICKING,
)  # fmt: skip


def simulated(
    study: Study,
    effort: EffortName,
    seed: int,
    noise: Noise,
    seconds: Callable[[Mapping[str, Level]], float],
    cpu_cv: float | None = None,
) -> TrialFindings:
    """The findings of a run whose trials take ``seconds`` of their cell times the noise. The CPU
    time is the same, or varies by itself by ``cpu_cv``."""
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
    most = len(plan.cells) * (plan.rules.most + 2 * plan.rules.repeats_min)
    generator = np.random.default_rng([seed, 15])
    path = draw(noise, generator, most, len(plan.cells))
    alone = np.random.default_rng([seed, 16])
    while not isinstance(key := protocol.next(), Stop):
        quiet = seconds(plan.cells[key.cell].parameters)
        value = read(noise, quiet * path.factor(len(trials), key.cell), generator)
        outcome = Outcome(key, "ok", value, 0.001)
        protocol.record(outcome)
        cpu = value
        if cpu_cv is not None:
            cpu = quiet * float(alone.lognormal(0, cpu_cv))
        figures = {"wall_seconds": value, "cpu_seconds": cpu}
        trials.append(TrialRow(outcome, encode_figures(figures)))
    return _findings(head, protocol, trials)


def _findings(head: RunHead, protocol: Protocol, trials: Sequence[TrialRow]) -> TrialFindings:
    row = RunRow(head.id, head.study.name, head.started, "complete", "", b"")
    rows = Trials.of(trials)
    table, in_use = decode_figures(rows.figures), in_use_of(protocol, rows.outcomes)
    stored = StoredRun(head, row, protocol.plan, protocol, rows, table, in_use)
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
    :data:`~tests.helpers.noises.NOISES`."""
    study = small_study(None, copy=tuple(range(1, len(slower) + 1)))
    study = msgspec.structs.replace(study, claims=tuple(claims))
    times: dict[Level, float] = dict(enumerate(slower, start=1))
    return simulated(study, effort, seed, by_name(kind), lambda cell: times[cell["copy"]], cpu_cv)
