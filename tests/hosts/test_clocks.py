"""Offsets of clocks: the stated bound holds whatever the way takes, grows with drift, and a clock
that jumps is seen."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concurve.hosts.clocks import (
    ClockJumpError,
    Exchange,
    Offset,
    at,
    combined,
    estimate,
    measured,
    spanning,
)

MS = 1_000_000
TRUTH = st.integers(-(10**18), 10**18)
DELAY = st.integers(0, 10**9)
WAYS = st.lists(st.tuples(DELAY, DELAY), min_size=1, max_size=20)


def exchange(sent: int, there: int, back: int, truth: int) -> Exchange:
    """An exchange whose question took ``there`` and whose answer took ``back``."""
    return Exchange(sent, sent + there + truth, sent + there + back)


@given(TRUTH, WAYS, st.integers(0, 10**15))
def test_the_truth_is_within_the_stated_error_whatever_either_way_took(
    truth: int, ways: list[tuple[int, int]], begin: int
) -> None:
    found = estimate([exchange(begin, there, back, truth) for there, back in ways])
    assert abs(found.ns - truth) <= found.error_ns
    assert found.error_ns <= min(there + back for there, back in ways) // 2 + 1


@given(TRUTH, DELAY)
def test_a_way_of_equal_lengths_gives_the_truth(truth: int, delay: int) -> None:
    assert estimate([exchange(0, delay, delay, truth)]).ns == truth


@given(TRUTH, WAYS, st.floats(-1, 1), st.integers(0, 3600 * 10**9))
def test_the_bound_holds_later_if_the_clocks_drift_no_faster_than_stated(
    truth: int, ways: list[tuple[int, int]], drift: float, later_ns: int
) -> None:
    offset = estimate([exchange(0, there, back, truth) for there, back in ways])
    moved = at(offset, offset.at_ns + later_ns, drift=1e-4)
    drifted = truth + round(later_ns * drift * 1e-4)
    assert abs(moved.ns - drifted) <= moved.error_ns + 1


@given(TRUTH, st.lists(WAYS, min_size=1, max_size=5))
def test_several_estimates_say_no_less_than_each(
    truth: int, several: list[list[tuple[int, int]]]
) -> None:
    offsets = [
        estimate([exchange(number * 10**9, there, back, truth) for there, back in ways])
        for number, ways in enumerate(several)
    ]
    now = max(offset.at_ns for offset in offsets)
    found = combined(offsets, now)
    assert abs(found.ns - truth) <= found.error_ns
    assert found.error_ns <= min(at(offset, now).error_ns for offset in offsets) + 1


@given(TRUTH, st.integers(2 * MS, 10**12), st.sampled_from([-1, 1]))
def test_a_clock_that_jumps_is_seen(truth: int, jump: int, sign: int) -> None:
    before = estimate([exchange(0, 1000, 1000, truth)])
    after = estimate([exchange(10**9, 1000, 1000, truth + sign * jump)])
    with pytest.raises(ClockJumpError, match="its clock moved by"):
        combined([before, after], 10**9)


def test_a_jump_that_drift_explains_is_none() -> None:
    before = estimate([exchange(0, 1000, 1000, 0)])
    after = estimate([exchange(10**9, 1000, 1000, 100_000)])
    assert combined([before, after], 10**9).error_ns > 0


def test_delays_that_vary_are_covered_every_time() -> None:
    generator, truth = random.Random(7), 123_456_789
    covered = 0
    for _ in range(200):
        ways = [
            (round(generator.gauss(5, 1) * MS), round(generator.gauss(5, 1) * MS))
            for _ in range(32)
        ]
        found = estimate([exchange(0, abs(a), abs(b), truth) for a, b in ways])
        covered += abs(found.ns - truth) <= found.error_ns
        assert found.error_ns < 5 * MS
    assert covered == 200


@given(st.integers(), st.integers())
def test_times_are_translated_both_ways(offset_ns: int, time_ns: int) -> None:
    offset = Offset(offset_ns, 5, 0)
    assert offset.ours(offset.remote(time_ns)) == time_ns
    assert offset.remote(time_ns) - time_ns == offset_ns


def test_nothing_to_estimate_from() -> None:
    with pytest.raises(ValueError, match="no exchange"):
        estimate([])
    with pytest.raises(ValueError, match="before it was sent"):
        estimate([Exchange(10, 5, 9)])
    with pytest.raises(ValueError, match="no estimate"):
        combined([], 0)


def test_exchanges_are_measured_with_the_clocks_given() -> None:
    ours, theirs = iter(range(0, 100, 10)), iter([105, 125])
    found = measured(lambda: next(theirs), lambda: next(ours), 2)
    assert found == [Exchange(0, 105, 10), Exchange(20, 125, 30)]
    assert estimate(found) == Offset(100, 5, 5)


@given(TRUTH, WAYS, WAYS, st.integers(-(10**9), 10**9), st.floats(0, 1))
def test_the_bound_of_a_trial_holds_while_a_clock_drifts_through_it(
    truth: int, before: list[tuple[int, int]], after: list[tuple[int, int]], drift: int, when: float
) -> None:
    first = estimate([exchange(0, there, back, truth) for there, back in before])
    last = estimate([exchange(10**12, there, back, truth + drift) for there, back in after])
    found = spanning(first, last)
    assert abs(found.ns - (truth + round(drift * when))) <= found.error_ns
    assert spanning(first, first).ns == first.ns
    assert spanning(first, first).error_ns == first.error_ns
