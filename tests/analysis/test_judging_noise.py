"""What is said of copies of one program, by the real protocol and analysis, under the noise that
machines have: the share of false differences, of differences found, and of wrong verdicts."""

from __future__ import annotations

import pytest

from concurve.analysis.comparison import compare_levels
from concurve.definition.study import Claim, EffortName
from tests.helpers.counts import at_most, few_or_many
from tests.helpers.simulated import JUDGED, TICK, TICKING, copies

RUNS = 200
EFFORTS: tuple[EffortName, ...] = ("quick", "normal")

every_noise = pytest.mark.parametrize("kind", JUDGED)
every_effort = pytest.mark.parametrize("effort", EFFORTS)


@every_noise
@pytest.mark.parametrize("runs", few_or_many(50, RUNS))
def test_the_interval_of_a_comparison_holds_the_truth(kind: str, runs: int) -> None:
    """At normal effort, of a copy that takes twice as long."""
    missed = 0
    for seed in range(runs):
        (cell,) = compare_levels(copies("normal", seed, kind, (1.0, 2.0)), "copy").cells
        assert cell.ratio is not None
        assert cell.ratio.low is not None
        assert cell.ratio.high is not None
        missed += not cell.ratio.low <= 2 <= cell.ratio.high
    assert missed <= (0.07 * runs if runs == RUNS else at_most(0.05, runs))


def test_a_slow_down_of_5_percent_is_found() -> None:
    found = 0
    for seed in range(RUNS):
        run = copies("normal", seed, "log-normal 2 %", (1.0, 1.05))
        (cell,) = compare_levels(run, "copy").cells
        found += cell.verdict == "slower"
    assert found >= 0.9 * RUNS


#: All of them are false, or true at their bound, for copies that are equal.
FOURTEEN = tuple(
    Claim(
        id=f"claim-{number}",
        says="One copy is faster.",
        kind=kind,
        test=test,
    )
    for number, (kind, test) in enumerate(
        [
            (kind, {"of": {"copy": ahead}, "over": {"copy": behind}, **bound})
            for kind, bound in (("speedup", {"at_least": 1.0}), ("ratio", {"at_most": 1.0}))
            for ahead, behind in ((1, 2), (2, 3), (3, 4), (4, 5), (5, 6))
        ]
        + [("order", {"cells": [{"copy": n}, {"copy": n + 1}]}) for n in (1, 2, 3)]
        + [("best_setting", {"factor": "copy", "among": [1, 2]})]
    )
)


@every_noise
@every_effort
@pytest.mark.parametrize("part", few_or_many(4, 1))
def test_of_six_copies_none_is_told_from_the_others(
    kind: str, effort: EffortName, part: int
) -> None:
    """Two copies are told apart in at most 5 % of comparisons, the set of the best leaves out the
    best, which is any of them, in at most 5 % of runs, and one of 14 claims is decided in at most
    5 % of runs."""
    # As many as time allows: make coverage has 600.
    runs = (120 if effort == "quick" else 60) // part
    deviations = 0.0 if part == 1 else 2.0
    told_apart = claimed = 0
    kept = 0.0
    pairs = (1, 2), (3, 4), (5, 6)
    for seed in range(runs):
        run = copies(effort, seed, kind, (1.0,) * 6, FOURTEEN)
        for levels in pairs:
            (cell,) = compare_levels(run, "copy", levels).cells
            told_apart += cell.verdict in ("faster", "slower")
        best = run.best_overall
        assert best is not None
        kept += len(best.settings) / 6
        claimed += any(claim.verdict in ("supported", "refuted") for claim in run.claims)
    assert told_apart <= at_most(0.05, runs * len(pairs), deviations)
    assert runs - kept <= at_most(0.05, runs, deviations)
    assert claimed <= at_most(0.05, runs, deviations)


KINDS = (
    "speedup", "ratio", "ratio_of_indicators", "order", "constant_within", "figure", "best_ratio",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@every_effort
def test_what_lies_within_a_tick_of_the_clock_is_not_decided(kind: str, effort: EffortName) -> None:
    """Two copies differ by half a tick, of which most readings show nothing."""
    first, second = {"copy": 1}, {"copy": 2}
    tests: dict[str, dict[str, object]] = {
        "speedup": {"of": first, "over": second, "at_least": 1.001},
        "ratio": {"of": first, "over": second, "at_most": 0.999},
        "ratio_of_indicators": {
            "of": first,
            "over": second,
            "over_indicator": "wall_seconds",
            "at_most": 0.999,
        },
        "order": {"cells": [first, second]},
        "constant_within": {"factor": "copy", "within": TICK / 4},
        "figure": {"of": first, "at_most": 0.999},
        "best_ratio": {"factor": "copy", "of": {}, "over_value": 1.0, "at_most": 0.999},
    }
    claim = Claim(id="c", says="It is so.", kind=kind, test=tests[kind])
    for seed in range(20):
        times = 1 - 0.1 * TICK, 1 + 0.45 * TICK
        (found,) = copies(effort, seed, TICKING, times, (claim,)).claims
        assert found.verdict == "undecided"
        if found.estimate is not None:
            assert found.estimate.low is not None
            assert found.estimate.high is not None
            assert found.estimate.high > found.estimate.low
