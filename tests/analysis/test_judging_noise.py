"""What is said of copies of one program, by the real protocol and analysis, under the noise that
machines have: the share of false differences, of differences found, and of wrong verdicts."""

from __future__ import annotations

import pytest

from concurve.analysis.comparison import compare_levels
from concurve.definition.study import Claim, EffortName
from tests.helpers.noises import NOISES, TICK, copies

RUNS = 400
EFFORTS: tuple[EffortName, ...] = ("quick", "normal")

#: Until ratios are judged by blocks and claims are corrected for their number.
pytestmark = pytest.mark.xfail(reason="judged by means, each claim alone", strict=False)

every_noise = pytest.mark.parametrize("kind", NOISES)
every_effort = pytest.mark.parametrize("effort", EFFORTS)


@every_noise
@every_effort
def test_a_program_is_seldom_told_from_itself(kind: str, effort: EffortName) -> None:
    false = 0
    for seed in range(RUNS):
        (cell,) = compare_levels(copies(effort, seed, kind), "copy").cells
        false += cell.verdict in ("faster", "slower")
    assert false <= 0.05 * RUNS


@every_noise
def test_the_interval_of_a_comparison_holds_the_truth(kind: str) -> None:
    """At normal effort, of a copy that takes twice as long."""
    held = 0
    for seed in range(RUNS):
        (cell,) = compare_levels(copies("normal", seed, kind, (1.0, 2.0)), "copy").cells
        assert cell.ratio is not None
        assert cell.ratio.low is not None
        assert cell.ratio.high is not None
        held += cell.ratio.low <= 2 <= cell.ratio.high
    assert held >= 0.93 * RUNS


def test_a_slow_down_of_5_percent_is_found() -> None:
    found = 0
    for seed in range(RUNS):
        run = copies("normal", seed, "log-normal 2 %", (1.0, 1.05))
        (cell,) = compare_levels(run, "copy").cells
        found += cell.verdict == "slower"
    assert found >= 0.9 * RUNS


@every_noise
@every_effort
def test_the_best_setting_stays_in_the_set(kind: str, effort: EffortName) -> None:
    """Of six copies that are all equal, the first is as much the best as any."""
    held = 0
    for seed in range(RUNS):
        best = copies(effort, seed, kind, (1.0,) * 6).best_overall
        assert best is not None
        held += {"copy": 1} in best.settings
    assert held >= 0.95 * RUNS


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
def test_all_verdicts_of_a_study_hold_together(kind: str, effort: EffortName) -> None:
    """Where nothing differs, none of 14 claims is decided in 95 % of runs."""
    wrong = 0
    for seed in range(RUNS // 2):
        run = copies(effort, seed, kind, (1.0,) * 6, FOURTEEN)
        wrong += any(claim.verdict in ("supported", "refuted") for claim in run.claims)
    assert wrong <= 0.05 * RUNS // 2


@pytest.mark.parametrize("kind", ["speedup", "ratio", "order", "constant_within", "best_ratio"])
@every_effort
def test_what_lies_within_a_tick_of_the_clock_is_not_decided(kind: str, effort: EffortName) -> None:
    """Two copies differ by half a tick, of which most readings show nothing."""
    first, second = {"copy": 1}, {"copy": 2}
    tests: dict[str, dict[str, object]] = {
        "speedup": {"of": first, "over": second, "at_least": 1.001},
        "ratio": {"of": first, "over": second, "at_most": 0.999},
        "order": {"cells": [first, second]},
        "constant_within": {"factor": "copy", "within": TICK / 4},
        "best_ratio": {"factor": "copy", "of": {}, "over_value": 1.0, "at_most": 0.999},
    }
    claim = Claim(id="c", says="It is so.", kind=kind, test=tests[kind])
    for seed in range(20):
        times = 1 - 0.1 * TICK, 1 + 0.45 * TICK
        (found,) = copies(effort, seed, "quantised", times, (claim,)).claims
        assert found.verdict == "undecided"
        if found.estimate is not None:
            assert found.estimate.low is not None
            assert found.estimate.high is not None
            assert found.estimate.high > found.estimate.low
