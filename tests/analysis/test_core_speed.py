"""Is it told that the machine itself ran faster in some trials than in others?"""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from concurve.analysis.run import trial_findings_of
from concurve.definition.study import Rules
from concurve.findings.run import CORE_SPEED_VARIES, TrialFindings
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.store import Store
from concurve.wire.spec import TrialSpec
from tests.helpers.fakes import FakeClock, FakeEngine, small_study

TRIALS = 10
RULES = Rules(repeats_min=TRIALS, repeats_max=TRIALS)


class OnACore(FakeEngine):
    """Work on a core that runs ``slow`` times slower in some trials than in others, with its
    ``clock``, or with the clock as it was; the work takes as much longer. ``own``: what the
    program spreads by itself."""

    def __init__(self, slow: float, clock: float = 1.0, own: float = 0.01) -> None:
        super().__init__()
        self.slow, self.clock, self.own = slow, clock, own

    def run(self, spec: TrialSpec) -> bytes:
        record: dict[str, Any] = json.loads(super().run(spec))
        rng = random.Random(spec.trial.partition("/")[2])
        # Neighbours come and go, so any share of their work falls into a trial.
        part = rng.random()
        slow, clock = self.slow**part, self.clock**part
        wall = int(1e9 * slow * rng.lognormvariate(0, self.own))
        record["wall_ns"] = record["roles"][0]["wall_ns"] = wall
        readings = [
            {
                "cpu": cpu,
                "chained_per_us": int(3000 / clock * rng.gauss(1, 0.005)),
                "independent_per_us": int(7000 / slow * rng.gauss(1, 0.01)),
            }
            for cpu in (0, 1)
        ]
        record["machine"] |= {"speed_before": readings, "speed_after": readings}
        return json.dumps(record).encode()


def run_on(core: OnACore) -> TrialFindings:
    store = Store()
    head = new_head(small_study(RULES, threads=(1, 2)), "normal", 1, "concurve …")
    Runner(head, store, core, clock=FakeClock(0.001)).start()
    return trial_findings_of(store, store.find_run(head.id))


def said(findings: TrialFindings) -> list[str]:
    return [it.sentence for it in findings.sentences if it.subject == CORE_SPEED_VARIES]


def test_a_core_that_is_shared_is_told_from_a_clock_that_changes() -> None:
    (shared,) = said(run_on(OnACore(1.6)))
    assert "something else seems to share its cores" in shared
    (clocked,) = said(run_on(OnACore(1.6, clock=1.6)))
    assert "the clock frequency changes" in clocked


@pytest.mark.parametrize(
    "core",
    [OnACore(1.0), OnACore(1.0, own=0.3), OnACore(1.05, own=0.3)],
    ids=["steady", "a program that spreads", "a program that spreads more"],
)
def test_a_machine_that_runs_evenly_is_not_accused(core: OnACore) -> None:
    assert not said(run_on(core))


def test_nothing_is_said_where_nothing_spreads() -> None:
    """The work waits for something else, say: a slower core does not show in it."""

    class Waiting(OnACore):
        def run(self, spec: TrialSpec) -> bytes:
            record: dict[str, Any] = json.loads(super().run(spec))
            record["wall_ns"] = record["roles"][0]["wall_ns"] = 1_000_000_000
            return json.dumps(record).encode()

    assert not said(run_on(Waiting(1.6)))


def test_older_records_have_no_speed() -> None:
    store = Store()
    head = new_head(small_study(RULES), "normal", 1, "concurve …")
    noisy = FakeEngine(lambda spec, rng: rng.lognormvariate(0, 0.3))
    Runner(head, store, noisy, clock=FakeClock(0.001)).start()
    assert not said(trial_findings_of(store, store.find_run(head.id)))
