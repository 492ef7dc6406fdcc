"""Runs made up by a fake engine whose times are known, for the tests of what is said of them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import msgspec

from concurve.analysis.run import trial_findings_of
from concurve.definition.study import Indicator, Rules
from concurve.findings.run import Report, TrialFindings
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.store import Store
from concurve.terms import Level
from concurve.wire.spec import TrialSpec
from tests.helpers.fakes import FakeClock, FakeEngine, small_study

FIVE = Rules(repeats_min=5, repeats_max=5)


def made_run(
    store: Store,
    seconds: Callable[..., float],
    seed: int = 1,
    cv: float = 0.01,
    rules: Rules | None = FIVE,
    machine: dict[str, Any] | None = None,
    name: str = "small",
    conditions: tuple[str, ...] = (),
    base: dict[str, Level] | None = None,
    primary: str = "",
    steal: Callable[[TrialSpec], int] | None = None,
    effect: float | None = None,
    **factors: tuple[Level, ...],
) -> Report:
    """A complete run: ``seconds`` gives a cell's true time from its levels as text; trials vary
    around it by ``cv``, and a hypervisor takes ``steal`` (in ns). Its day is that of the seed. It
    is judged by ``effect``, if there is one."""
    study = msgspec.structs.replace(
        small_study(rules, **factors), name=name, conditions=conditions, base=base or {}
    )
    if primary:
        study = msgspec.structs.replace(study, indicators=(Indicator(name=primary),))
    head = new_head(study, "normal", seed, "concurve sweep …")
    started = f"2026-{1 + seed // 28:02d}-{1 + seed % 28:02d}T10:00:00+00:00"
    head = msgspec.structs.replace(head, started=started, effect=effect)
    if machine is not None:
        head = msgspec.structs.replace(head, machine=machine)

    def wall(spec: Any, _: random.Random) -> float:
        place = spec.trial.partition("/")[2]
        rng = random.Random(f"{seed}/{place}")
        return seconds(*spec.roles[0].argv[1:]) * rng.lognormvariate(0, cv)

    engine = FakeEngine(wall, steal_of=steal) if steal else FakeEngine(wall)
    Runner(head, store, engine, clock=FakeClock(0.001)).start()
    return figures_alone(trial_findings_of(store, store.find_run(head.id)))


def looking_run(step: float, cv: float = 0.15) -> Report:
    """A run of a program that looks each ``step`` seconds whether it is done, after a start of
    12 ms."""
    study = small_study(Rules(repeats_min=8, repeats_max=8), threads=(1, 2, 4))
    head = new_head(study, "normal", 1, "concurve sweep …")

    def wall(spec: TrialSpec, rng: random.Random) -> float:
        work: float = 1.0 / int(spec.roles[0].argv[1]) ** 0.5 * rng.lognormvariate(0, cv)
        return 0.012 + 0.004 * rng.random() + math.ceil(work / step) * step

    store = Store()
    Runner(head, store, FakeEngine(wall), clock=FakeClock(0.001)).start()
    return figures_alone(trial_findings_of(store, store.find_run(head.id)))


def figures_alone(findings: TrialFindings) -> Report:
    """A report of a run of which nothing but its figures is known."""
    return Report.of_figures(findings)
