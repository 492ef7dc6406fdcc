"""Fairness over workers: published identities, bounds, and the figures of a trial."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from concurve.definition.measured import fairness_info
from concurve.definition.purposes import alone
from concurve.readings.measures import measure
from concurve.readings.operations import Asked
from concurve.stats.fairness import fairness, poisson_floor, windows
from concurve.wire.report import IndicatorLine
from tests.helpers.fakes import record_of
from tests.readings.test_contamination import SPEC

shares = st.lists(st.floats(min_value=0, max_value=1e9), min_size=2, max_size=50)


def test_shares_of_known_fairness() -> None:
    equal = fairness([5.0, 5.0, 5.0, 5.0])
    assert equal == (1.0, 0.0, 1.0, 1.0, 0.0, 0.0)
    one_has_all = fairness([8.0, 0.0, 0.0, 0.0])
    assert one_has_all.jain == pytest.approx(1 / 4)
    assert one_has_all.gini == pytest.approx(3 / 4)
    assert one_has_all.min_over_mean == 0 and one_has_all.max_over_min == math.inf
    # Jain, Chiu & Hawe 1984, §2: half of the users served equally is an index of 0.5.
    assert fairness([1.0, 1.0, 0.0, 0.0]).jain == pytest.approx(0.5)
    # Document 001: 200 to 300 loops of a client.
    assert fairness([200.0, 250.0, 300.0]).range_over_mean == pytest.approx(0.4)
    # Mean difference of 1, 2, 3, 4 is 5/4 over all 16 pairs, twice the mean is 5.
    assert fairness([1.0, 2.0, 3.0, 4.0]).gini == pytest.approx(0.25)


@given(shares)
def test_bounds_and_the_identity_of_jain_and_cv(values: list[float]) -> None:
    assume(max(values) > 0)
    found, n = fairness(values), len(values)
    total = math.fsum(value / max(values) for value in values)
    squares = math.fsum((value / max(values)) ** 2 for value in values)
    assert found.jain == pytest.approx(total**2 / (n * squares))
    assert 1 / n - 1e-9 <= found.jain <= 1
    assert 0 <= found.gini <= 1 - 1 / n + 1e-9
    assert 0 <= found.range_over_mean <= n + 1e-9
    assert 0 <= found.min_over_mean <= 1 + 1e-9 <= found.max_over_min + 1e-9


@given(shares, st.floats(min_value=1e-6, max_value=1e6), st.randoms(use_true_random=False))
def test_neither_unit_nor_order_matters(values: list[float], factor: float, random: object) -> None:
    assume(max(values) > 1e-3)
    assume(all(value == 0 or value > 1e-3 for value in values))
    other = [value * factor for value in values]
    random.shuffle(other)  # type: ignore[attr-defined]
    assert fairness(other) == pytest.approx(fairness(values), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("values", [[], [1.0], [0.0, 0.0], [1.0, -1.0], [1.0, math.nan]])
def test_what_has_no_fairness_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match=r"worker|share"):
        fairness(values)


def test_counts_of_chance_lie_at_the_floor() -> None:
    import numpy as np

    counts = np.random.default_rng(1).poisson(400, size=2000).tolist()
    assert fairness(counts).cv == pytest.approx(poisson_floor(counts), rel=0.05)
    assert poisson_floor([100.0, 100.0]) == pytest.approx(0.1)


def test_windows_need_series_of_one_length() -> None:
    assert windows([[1.0, 2.0], [3.0, 4.0]]) == [[1.0, 3.0], [2.0, 4.0]]
    assert windows([[1.0, 2.0], [3.0]]) == []


def figures(*lines: tuple[str, float, str]) -> tuple[dict[str, float], dict[str, str]]:
    record = record_of(SPEC, 1.0)
    reported = tuple(IndicatorLine(indicator=n, value=v, worker=w) for n, v, w in lines)
    role = msgspec.structs.replace(record.roles[0], indicators=reported)
    found = measure(msgspec.structs.replace(record, roles=(role,)), Asked(alone(role.name)))
    return found.values, found.absent


def test_a_trial_says_how_evenly_its_workers_were_served() -> None:
    values, _ = figures(("worker_operations", 100, "w1"), ("worker_operations", 300, "w2"))
    assert values["worker_operations_jain"] == pytest.approx(0.8)
    assert values["worker_operations_cv"] == pytest.approx(0.5)
    assert values["worker_operations_min_over_mean"] == pytest.approx(0.5)
    assert values["worker_operations_max_over_min"] == pytest.approx(3)
    assert values["worker_operations_cv_floor"] == pytest.approx(1 / math.sqrt(200))
    assert "worker_operations_jain_window_min" not in values
    assert "worker_operations" not in values, "a worker's figure is not the program's"


def test_successive_reports_are_windows() -> None:
    """Taking turns is fair over the whole, and unfair in every window."""
    values, _ = figures(
        ("ops", 100, "a"), ("ops", 0, "b"), ("ops", 0, "a"), ("ops", 100, "b")
    )  # fmt: skip
    assert values["ops_jain"] == pytest.approx(1)
    assert values["ops_jain_window_min"] == pytest.approx(0.5)


def test_what_cannot_be_told_is_absent_with_its_reason() -> None:
    values, absent = figures(("ops", 1, "a"), ("idle", 0, "a"), ("idle", 0, "b"))
    assert "ops_jain" not in values and absent["ops_jain"] == "fewer than two workers"
    assert absent["idle_jain"] == "every share is 0"
    values, absent = figures(("ops", 1, "a"), ("ops", 0, "b"))
    assert absent["ops_max_over_min"] == "a worker has nothing"


def test_figures_of_fairness_describe_themselves() -> None:
    info = fairness_info("worker_operations_jain_window_min")
    assert info is not None and info.better == "higher" and "worst window" in info.label
    assert fairness_info("load.ops_cv_floor") is not None
    assert fairness_info("wall_seconds") is None
