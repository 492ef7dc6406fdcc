"""How long a plan will take, and what will not fit."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from concurve.definition.study import Rules, Study
from concurve.errors import RunError
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.planning.forecast import Bought, forecast, shortfall, trials_that_fit
from concurve.planning.plan import Plan, make_plan
from concurve.store import Store
from concurve.store.run_head import FORMAT
from tests.helpers.fakes import FakeClock, FakeEngine, small_study


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "s.db"))


def measured(store: Store, study: Study, effort: str = "normal") -> str:
    """A run of the study in the store, with trials of half a second."""
    runner = Runner(new_head(study, effort, 1, "again"), store, FakeEngine(), clock=FakeClock(0.5))
    runner.start()
    return runner.head.id


def study_of(threads: tuple[int, ...] = (1, 2), **rules: float) -> Study:
    defaults: dict[str, float] = {"repeats_min": 2, "repeats_max": 4}
    return small_study(msgspec.convert(defaults | rules, Rules), threads=threads)


def plan_of(study: Study, effort: str = "normal") -> Plan:
    return make_plan(study, effort, 2)


def test_without_an_earlier_run_nothing_is_known(store: Store) -> None:
    expected = forecast(plan_of(study_of()), store)
    assert expected is None
    assert shortfall(plan_of(study_of(time_allowed_seconds=1e-9)), expected) == ""


def test_an_earlier_run_tells_the_time(store: Store) -> None:
    run = measured(store, study_of())
    expected = forecast(plan_of(study_of(repeats_min=10, repeats_max=40)), store)
    assert expected is not None
    assert (expected.run, expected.pilot_seconds, expected.longest_seconds) == (run, 10.0, 40.0)
    capped = forecast(
        plan_of(study_of(repeats_min=10, repeats_max=40, time_allowed_seconds=15)), store
    )
    assert capped is not None and capped.longest_seconds == 15.0


def test_what_broke_off_tells_no_time(store: Store) -> None:
    known = measured(store, study_of())
    head = new_head(study_of(), "normal", 1, "again")
    failing = FakeEngine(kind_of=lambda spec: "not_ready")
    with pytest.raises(RunError):
        Runner(head, store, failing, clock=FakeClock(7.0)).start()
    expected = forecast(plan_of(study_of()), store)
    assert expected is not None and expected.run == known


def test_a_run_of_a_newer_version_tells_nothing_and_stops_nobody(store: Store) -> None:
    run = measured(store, study_of())
    newer = store.find_run(run)
    head = json.loads(newer.head) | {"format": FORMAT + 1}
    store.add_run(newer._replace(id=f"{run}-newer", head=json.dumps(head).encode()))
    expected = forecast(plan_of(study_of()), store)
    assert expected is not None and expected.run == run


def test_fewer_cells_need_less(store: Store) -> None:
    measured(store, study_of((1, 2, 4)))
    expected = forecast(plan_of(study_of((2,))), store)
    assert expected is not None and expected.pilot_seconds == 1.0


def test_a_run_that_does_not_tell_is_passed_over(store: Store) -> None:
    older = measured(store, study_of((1, 2, 8)))
    measured(store, study_of((1, 2)))
    expected = forecast(plan_of(study_of((1, 8))), store)
    assert expected is not None and expected.run == older, "the newer one has no 8 threads"
    assert forecast(plan_of(study_of((1, 16))), store) is None
    assert forecast(plan_of(study_of((1, 2)), "quick"), store) is None, "another effort"
    role = msgspec.structs.replace(study_of().roles[0], command=("other", "{threads}"))
    other = msgspec.structs.replace(study_of(), roles=(role,))
    assert forecast(plan_of(other), store) is None, "another command"


def test_a_plan_longer_than_its_allowance_says_what_will_fit(store: Store) -> None:
    run = measured(store, study_of())
    plan = plan_of(study_of(repeats_min=200, repeats_max=200, time_allowed_seconds=60))
    said = shortfall(plan, forecast(plan, store))
    assert f"2 cells × 200 trials need about 3 min 20 s (as run {run} took)" in said
    assert "60 s are allowed: of 200 blocks 60 fit; --max-time 6m has room for all" in said
    short = plan_of(study_of(time_allowed_seconds=0.9))
    assert "of 2 blocks not even one fits" in shortfall(short, forecast(short, store))
    fits = plan_of(study_of(repeats_min=200, repeats_max=200, time_allowed_seconds=200))
    assert shortfall(fits, forecast(fits, store)) == ""


def test_trials_that_fit_in_an_allowance(store: Store) -> None:
    """A block of two cells takes a second."""
    measured(store, study_of())

    def fit(seconds: float) -> Bought:
        plan = plan_of(study_of(repeats_max=40, time_allowed_seconds=seconds))
        expected = forecast(plan, store)
        assert expected is not None
        return trials_that_fit(plan, expected)

    assert fit(30.5) == Bought(30, False)
    assert fit(40.5) == Bought(40, True)
    assert fit(0.5) == Bought(0, False)
