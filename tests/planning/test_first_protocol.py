"""Runs of version 0.1.0 are shown and resumed by the rules of their time."""

from __future__ import annotations

import math
import random
from typing import Any

import msgspec
import pytest

from concurve.definition.study import Rules
from concurve.errors import RunError
from concurve.planning.plan import Plan, make_plan
from concurve.planning.protocol import Protocol, Stop, replay
from concurve.stats.moments import mean, stdev, t_quantile
from concurve.store.rows import Outcome, TrialKey
from concurve.store.run_head import FIRST_PROTOCOL
from tests.helpers.fakes import small_study


def plan_of(cells: int = 2, seed: int = 7, **rules: Any) -> Plan:
    study = small_study(Rules(**rules), threads=tuple(range(1, cells + 1)))
    return msgspec.structs.replace(make_plan(study, "normal", seed), protocol=FIRST_PROTOCOL)


def ok(key: TrialKey, value: float) -> Outcome:
    return Outcome(key, "ok", value, 1.0)


def drive(protocol: Protocol, values: list[list[float]]) -> list[Outcome]:
    """A run to its end; each cell takes its values in turn, then its first one."""
    outcomes: list[Outcome] = []
    while not isinstance(key := protocol.next(), Stop):
        own = values[key.cell]
        outcomes.append(ok(key, own.pop(0) if len(own) > 1 else own[0]))
        protocol.record(outcomes[-1])
    return outcomes


def test_a_wild_value_was_redone_once_and_kept_as_a_reject() -> None:
    plan = plan_of(cells=1, repeats_max=5)
    protocol = Protocol(plan)
    outcomes = drive(protocol, [[1.0, 1.01, 0.99, 1.02, 5.0, 1.0]])
    assert [o.key.attempt for o in outcomes] == [0, 0, 0, 0, 0, 1]
    shown = replay(plan, outcomes, "r")
    ((key, (cause, detail)),) = shown.rejected.items()
    assert (key.block, cause) == (4, "outlier")
    assert detail.endswith("median deviations off the median")
    assert max(shown.cells[0].values()) < 1.1
    now = msgspec.structs.replace(plan, protocol=FIRST_PROTOCOL + 1)
    with pytest.raises(RunError, match="where the plan has"):
        replay(now, outcomes, "r")


def test_a_precise_cell_left_the_later_blocks_and_steins_rule_for_the_mean_held() -> None:
    rng = random.Random(3)
    noisy = [math.exp(rng.gauss(0, 0.05)) for _ in range(200)]
    protocol = Protocol(plan_of(precision=0.02, repeats_max=100))
    outcomes = drive(protocol, [[1.0], list(noisy)])
    pilot = noisy[:5]
    wanted = math.ceil((t_quantile(0.975, 4) * stdev(pilot) / (0.02 * mean(pilot))) ** 2)
    assert [len(cell.used) for cell in protocol.cells] == [5, wanted]
    assert replay(protocol.plan, outcomes, "r").cells[1].needed == wanted


@pytest.mark.parametrize("cause", ["run_queue", "steal"])
def test_every_cause_was_redone(cause: str) -> None:
    plan = plan_of(repeats_max=5, time_allowed_seconds=12)
    protocol, outcomes = Protocol(plan), []
    for _ in range(12):
        key = protocol.upcoming()
        assert isinstance(key, TrialKey)
        outcomes.append(Outcome(key, "contaminated", 1.0, 1.0, cause))
        protocol.record(outcomes[-1])
    assert protocol.upcoming() == Stop("complete", "all trials done")
    assert len(protocol.rejected) == 2, "a fifth of ten trials, and the allowance did not matter"
    assert [cell.used for cell in replay(plan, outcomes, "r").cells] == [
        cell.used for cell in protocol.cells
    ]


def test_a_pilot_that_ran_over_its_allowance_is_shown_and_ends() -> None:
    """Version 0.1.0 looked at the allowance only after the pilot."""
    plan = plan_of(repeats_max=20, time_allowed_seconds=7)
    protocol, outcomes = Protocol(plan), []
    for _ in range(10):
        key = protocol.upcoming()
        assert isinstance(key, TrialKey)
        outcomes.append(ok(key, 1.0 + 0.1 * key.block))
        protocol.record(outcomes[-1])
    shown = replay(plan, outcomes, "r")
    assert [len(cell.used) for cell in shown.cells] == [5, 5]
    stop = shown.next()
    assert isinstance(stop, Stop) and stop.kind == "time"
