"""Runs on a busy machine: they end in their allowance, with whole blocks where these fit."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concurve.definition.study import Rules
from concurve.planning.plan import Plan, make_plan
from concurve.planning.protocol import CUT, Protocol, Stop, StopReason, replay
from concurve.store.rows import Outcome, TrialKey, Verdict
from tests.helpers.fakes import small_study

Seconds = Callable[[TrialKey], float]


def plan_of(threads: tuple[int, ...] = (1, 2, 4, 8), seed: int = 7, **rules: Any) -> Plan:
    return make_plan(small_study(Rules(**rules), threads=threads), "normal", seed)


def with_time(plan: Plan, seconds: float) -> Plan:
    """The plan of a run that was resumed with another allowance."""
    rules = msgspec.structs.replace(plan.rules, time_allowed_seconds=seconds)
    return msgspec.structs.replace(plan, rules=rules)


def drive(
    protocol: Protocol, seconds: Seconds, verdict: Verdict = "ok", cause: str = ""
) -> list[Outcome]:
    outcomes: list[Outcome] = []
    while not isinstance(key := protocol.next(), Stop):
        outcomes.append(Outcome(key, verdict, 1.0, seconds(key), cause))
        protocol.record(outcomes[-1])
    return outcomes


def stop_of(protocol: Protocol) -> Stop:
    assert protocol.stop is not None
    return protocol.stop


def test_whole_blocks_are_run_while_they_fit() -> None:
    protocol = Protocol(plan_of(time_allowed_seconds=14.5))
    outcomes = drive(protocol, lambda key: 1.0)
    assert len(outcomes) == 12, "three blocks of four cells; a fourth would end at 16 s"
    assert [sorted(cell.used) for cell in protocol.cells] == [[0, 1, 2]] * 4
    assert stop_of(protocol).kind == "time"
    assert all(cell.stop is StopReason.TIME for cell in protocol.cells)
    assert "3 of 5 blocks" in stop_of(protocol).reason
    shown = replay(protocol.plan, outcomes, "r")
    assert shown.stop == protocol.stop
    assert all(cell.stop is StopReason.TIME for cell in shown.cells), "a stored run says so too"


def test_where_no_block_fits_the_cells_that_answer_most_come_first() -> None:
    plan = plan_of(threads=tuple(range(1, 10)), time_allowed_seconds=5.5)
    protocol = Protocol(plan)
    measured = [o.key.cell for o in drive(protocol, lambda key: 1.0)]
    first = plan.order(0)[0]
    important = [cell for cell in (0, 8, 4) if cell != first]
    assert measured[0] == first, "before the first trial nobody knows how long one takes"
    assert measured[1 : 1 + len(important)] == important, "the base, the extreme, the middle"
    assert len(measured) == 5
    reason = stop_of(protocol).reason
    left = [level for level in range(1, 10) if level - 1 not in measured]
    assert "4 of 9 cells were not measured" in reason
    assert all(f"threads={level}" in reason for level in left)


def test_the_bases_of_all_series_come_first() -> None:
    study = small_study(Rules(time_allowed_seconds=4.5), kind=("a", "b"), threads=(1, 2, 3, 4))
    plan = make_plan(study, "normal", 3)
    order = plan.by_importance()
    assert set(order[:2]) == {0, 4}, "threads=1 of both kinds"
    assert set(order[2:4]) == {3, 7}, "then threads=4"
    assert sorted(order) == list(range(8))


def test_a_plan_without_a_work_factor_keeps_its_base_first() -> None:
    study = small_study(Rules(), colour=("red", "blue", "green"))
    plan = make_plan(study, "normal", 3)
    assert plan.by_importance()[0] == plan.cells[0].base == 0
    assert sorted(plan.by_importance()) == [0, 1, 2]


def test_one_trial_longer_than_the_allowance_is_still_a_result() -> None:
    protocol = Protocol(plan_of(time_allowed_seconds=10))
    assert len(drive(protocol, lambda key: 60.0)) == 1
    assert stop_of(protocol).kind == "time"
    assert sum(len(cell.used) for cell in protocol.cells) == 1


def test_redos_never_take_the_time_of_the_pilot() -> None:
    """Every trial is disturbed, and five blocks of four cells just fit."""
    protocol = Protocol(plan_of(time_allowed_seconds=20.5, repeats_max=5))
    outcomes = drive(protocol, lambda key: 1.0, "contaminated", "foreign_cpu")
    assert len(outcomes) == 20 and protocol.redos == 0
    assert len(protocol.doubtful) == 20, "each is used, with its doubt"
    roomy = Protocol(plan_of(time_allowed_seconds=100, repeats_max=5))
    drive(roomy, lambda key: 1.0, "contaminated", "foreign_cpu")
    assert roomy.redos == 4 + 6, "20 % of the pilot, and six more"


def test_a_trial_that_the_allowance_cut_is_no_error_of_its_cell() -> None:
    plan = plan_of(time_allowed_seconds=10)
    protocol = Protocol(plan)
    outcomes: list[Outcome] = []
    while not isinstance(key := protocol.next(), Stop):
        outcomes.append(
            Outcome(key, "program_error", None, 4.0, CUT)
            if protocol.elapsed == 6
            else Outcome(key, "ok", 1.0, 2.0)
        )
        protocol.record(outcomes[-1])
    assert stop_of(protocol).kind == "time"
    assert not any(cell.skipped or cell.errors for cell in protocol.cells)
    assert [cause for cause, _ in protocol.rejected.values()] == [CUT]
    longer = replay(with_time(plan, 1000), outcomes, "r")
    drive(longer, lambda key: 1.0)
    assert [len(cell.used) for cell in longer.cells] == [5] * 4


@pytest.mark.parametrize("cells", [1, 3])
def test_trials_that_all_end_in_a_time_out_end_the_run_too(cells: int) -> None:
    protocol = Protocol(plan_of(tuple(range(1, cells + 1)), time_allowed_seconds=10))
    outcomes = drive(protocol, lambda key: 4.0, "program_error", "timed_out")
    assert sum(o.seconds for o in outcomes[:-1]) < 10


@given(
    seed=st.integers(0, 10_000),
    cells=st.integers(1, 7),
    allowed=st.floats(0.1, 200),
    longer=st.floats(1, 50),
    busy=st.sampled_from([0.0, 0.3, 1.0]),
)
@settings(max_examples=150, deadline=None)
def test_any_run_ends_in_its_allowance_and_goes_on_with_a_longer_one(
    seed: int, cells: int, allowed: float, longer: float, busy: float
) -> None:
    rng = random.Random(seed)

    def seconds() -> float:
        return rng.expovariate(1) * (4 if rng.random() < busy else 1)

    def drive_on(protocol: Protocol) -> list[Outcome]:
        outcomes: list[Outcome] = []
        while not isinstance(key := protocol.next(), Stop):
            verdict: Verdict = "contaminated" if rng.random() < busy else "ok"
            outcomes.append(
                Outcome(key, verdict, rng.gauss(10, 1), seconds(), "steal" if busy else "")
            )
            protocol.record(outcomes[-1])
        return outcomes

    plan = plan_of(tuple(range(1, cells + 1)), seed, time_allowed_seconds=allowed)
    protocol = Protocol(plan)
    outcomes = drive_on(protocol)
    assert outcomes, "at least one trial"
    assert len(outcomes) == 1 or sum(o.seconds for o in outcomes[:-1]) <= allowed
    if stop_of(protocol).kind == "time":
        counts = {len(cell.used) for cell in protocol.cells}
        assert max(counts) - min(counts) <= 1, "no cell is ahead of the others"

    resumed = replay(with_time(plan, allowed * longer), outcomes, "r")
    following = drive_on(resumed)
    keys = [o.key for o in (*outcomes, *following)]
    assert len(set(keys)) == len(keys), "no trial twice"
    whole = replay(with_time(plan, allowed * longer), (*outcomes, *following), "r")
    assert [cell.used for cell in whole.cells] == [cell.used for cell in resumed.cells]
    shown = replay(plan, (*outcomes, *following), "r")
    assert [cell.used for cell in shown.cells] == [cell.used for cell in resumed.cells]
