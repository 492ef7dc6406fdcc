"""Centres of indicators keep their intervals where the indicator can be."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concurve.readings.centres import greatest_of, indicator_centre

NEAR_1 = [0.99, 1.0, 0.97]


@pytest.mark.parametrize(
    "name",
    ["load.session_fairness", "worker_operations_jain", "worker_operations_jain_window_min",
     "worker_operations_min_over_mean", "worker_operations_gini", "engine_busy_share",
     "client_threads_busy_share_max", "latch_contention", "latch_procedure_cache_contention",
     "cpu3_busy"],
)  # fmt: skip
def test_the_interval_of_a_part_of_a_whole_ends_at_1(name: str) -> None:
    assert indicator_centre(name, NEAR_1, "").high == 1
    # By Student's quantile for two trials it would reach far beyond.
    assert indicator_centre(name, [0.9, 0.99], "").high == 1
    low = indicator_centre(name, [0.0, 0.0, 0.03], "")
    assert low.low == 0 and low.high is not None and 0 < low.high < 1


@pytest.mark.parametrize(
    ("name", "unit"),
    [("engine_cpu_share", ""), ("io_thread_cpu_share", ""), ("cpus_used", ""), ("speedup", "×"),
     ("load.session_operations_range_over_mean", ""), ("worker_operations_cv", ""),
     ("found_share", "%"), ("engine_busy_share_max_over_min", ""), ("busy_threads_mean", "")],
)  # fmt: skip
def test_the_interval_of_what_may_be_more_than_1_goes_on(name: str, unit: str) -> None:
    assert greatest_of(name, unit) is None
    found = indicator_centre(name, NEAR_1, unit)
    assert found.high is not None and found.high > 1


@given(st.lists(st.floats(min_value=0, max_value=1), min_size=2, max_size=20))
def test_no_interval_of_an_index_leaves_its_range(values: list[float]) -> None:
    found = indicator_centre("load.session_fairness", values, "")
    assert found.low is not None and found.high is not None
    assert 0 <= found.low <= found.value <= found.high <= 1
