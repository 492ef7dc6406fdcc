"""Runs of simulated trials through the shipped protocol and the shipped analysis, in memory.

Nothing of them is computed here: the protocol asks for trials, each gets a time, and
:func:`concurve.analysis.run.trial_findings_of` reads the outcomes as it reads those of the store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple, cast

import msgspec

from concurve.analysis.run import trial_findings_of
from concurve.definition.study_check import with_rules
from concurve.definition.study_line import sweep_study
from concurve.figures import encode_figures
from concurve.findings.run import TrialFindings
from concurve.measuring.heads import new_head
from concurve.planning.plan import plan_of
from concurve.planning.protocol import Protocol, Stop
from concurve.store import Store
from concurve.store.rows import Outcome, TrialKey, TrialRow, Trials, Verdict
from concurve.store.run_head import RunHead

FACTOR = "setting"

#: Time of a trial beyond what it measures.
_OVERHEAD_SECONDS = 0.01


class Reading(NamedTuple):
    """What a trial gives: its time, and what was read of the machine meanwhile."""

    seconds: float
    verdict: Verdict = "ok"
    cause: str = ""


Trial = Callable[[int, TrialKey], Reading]
"""The number of a trial in the order of time, and its key → its reading."""


class Made(NamedTuple):
    """A run: its findings, and the keys of its trials in the order of time."""

    findings: TrialFindings
    trials: Sequence[TrialKey]


class _Memory:
    """A store of one run's outcomes."""

    def __init__(self, rows: Sequence[TrialRow]) -> None:
        self._trials = Trials.of(rows)

    def trials(self, _: str) -> Trials:
        """All trials."""
        return self._trials

    def records(self, _run: str, _cell: int) -> tuple[()]:
        """No record was kept."""
        return ()


@lru_cache(maxsize=64)
def head_of(cells: int, effort: str) -> RunHead:
    """The head of a run over so many settings. An effort that begins with a number, such as
    ``5 trials``, fixes the number of trials."""
    names = ",".join(level_name(cell) for cell in range(cells))
    study = sweep_study(["true", f"{{{FACTOR}}}"], [(FACTOR, names)], 1, name="simulated")
    count = effort.partition(" ")[0]
    if count.isdigit():
        study = with_rules(study, {"repeats_min": int(count), "repeats_max": int(count)})
        effort = "normal"
    return new_head(study, effort, 1, "simulated")


def level_name(cell: int) -> str:
    """The level of a cell."""
    return f"s{cell}"


def trials_most(cells: int, effort: str) -> int:
    """No run of so many cells has more trials, redos included."""
    rules = head_of(cells, effort).rules
    return cells * rules.most * (1 + rules.redo_max)


def run(cells: int, effort: str, seed: int, trial: Trial) -> Made:
    """Run trials until the protocol stops, and analyse them."""
    head = msgspec.structs.replace(head_of(cells, effort), seed=seed)
    protocol = Protocol(plan_of(head))
    rows: list[TrialRow] = []
    keys: list[TrialKey] = []
    while not isinstance(key := protocol.next(), Stop):
        reading = trial(len(keys), key)
        outcome = Outcome(
            key, reading.verdict, reading.seconds, reading.seconds + _OVERHEAD_SECONDS,
            reading.cause, reading.cause,
        )  # fmt: skip
        rows.append(TrialRow(outcome, encode_figures(_figures(reading.seconds))))
        keys.append(key)
        protocol.record(outcome)
    row = head.row()._replace(state="complete")
    return Made(trial_findings_of(cast(Store, _Memory(rows)), row), keys)


def _figures(seconds: float) -> Mapping[str, float]:
    return {"wall_seconds": seconds}
