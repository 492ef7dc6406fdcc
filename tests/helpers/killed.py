"""A run with a deterministic engine, to be killed:
:mod:`tests.measuring.test_resume_after_kill` starts it as a process of its own."""

from __future__ import annotations

import random

import scipy.special  # noqa: F401  loaded before the fork, so that kills meet the run itself

from concurve.definition.study import Rules
from concurve.measuring.laboratory import Runner
from concurve.store import Store
from concurve.store.run_head import FORMAT, RunHead
from concurve.wire.spec import TrialSpec
from tests.helpers.fakes import FakeClock, FakeEngine, small_study

RUN = "20261121-000000-kill"

#: A power of two, so that differences of the clock are exact.
STEP_SECONDS = 2.0**-10

RULES = Rules(precision=0.02, repeats_min=60, repeats_max=200)


def head() -> RunHead:
    """The same for every process."""
    return RunHead(
        format=FORMAT,
        id=RUN,
        study=small_study(RULES, threads=(1, 2, 3, 4, 5, 6)),
        effort="normal",
        seed=11,
        started="2026-11-21T00:00:00+00:00",
        again="concurve …",
        machine={},
        programs={},
        versions={},
        rules=RULES,
    )


def wall(spec: TrialSpec, rng: random.Random) -> float:
    """Noisy enough for a second stage, with a few wild values."""
    return rng.gauss(1.0, 0.12) * (30 if rng.random() < 0.005 else 1)


def share(spec: TrialSpec, salt: str) -> float:
    """A number from 0 to 1 that only the trial decides."""
    return random.Random(spec.trial + salt).random()


def engine() -> FakeEngine:
    """One cell soon fails for ever, some trials are contaminated, one program error is redone."""
    return FakeEngine(
        wall_of=wall,
        kind_of=lambda spec: (
            "program_failed"
            if spec.roles[0].argv[1] == "6" and share(spec, "kind") < 0.05
            else "ok"
        ),
        steal_of=lambda spec: 10**9 if share(spec, "steal") < 0.05 else 0,
    )


def drive(url: str) -> None:
    """Start the run, or go on with it."""
    store = Store(url)
    runner = Runner(head(), store, engine(), clock=FakeClock(STEP_SECONDS))
    if store.runs():
        runner.resume()
    else:
        runner.start()
