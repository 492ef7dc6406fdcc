"""Claims on exact readings, on the ratio of two ratios, and at each level of a factor."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
import pytest

from concurve.analysis.claims import judge_claims
from concurve.analysis.claims.ratios import ratio_of_ratios
from concurve.analysis.samples import MissingError, Samples
from concurve.definition.claim_kinds import RatioOfRatios, check_claims
from concurve.definition.origins import Origins
from concurve.definition.study import Claim
from concurve.errors import StudyError
from concurve.findings.claims import ClaimFinding
from concurve.terms import Level
from tests.helpers.columns import column_samples
from tests.helpers.fakes import small_study

Reading = Callable[[str, int], Sequence[float]]

PRIORITIES = tuple(range(1, 11))
CLASSES = ("normal", "high")


def windows(class_: str, priority: int) -> Sequence[float]:
    """Table 15 of document 002: two Java priorities a step, HIGH three above the last class."""
    return [{"normal": 6, "high": 11}[class_] + (priority - 1) // 2] * 3


def judged(kind: str, reading: Reading = windows, /, **test: Any) -> list[ClaimFinding]:
    """The verdicts on one claim over class and priority."""
    claim = Claim(id="c", says="It is so.", kind=kind, test={"indicator": "priority"} | test)
    factors: dict[str, tuple[Level, ...]] = {"class": CLASSES, "priority": PRIORITIES}
    study = msgspec.structs.replace(small_study(None, **factors), claims=(claim,))
    check_claims(study, Origins("test"))

    def values(parameters: Mapping[str, Level], indicator: str) -> Sequence[float]:
        class_, priority = parameters["class"], parameters["priority"]
        if class_ not in CLASSES or priority not in PRIORITIES:
            raise MissingError(f"{class_} {priority} was not run")
        return reading(str(class_), int(priority))

    samples = column_samples(values, lambda name: factors[name])
    return list(judge_claims(study, samples))


def verdict(kind: str, reading: Reading = windows, /, **test: Any) -> str:
    (finding,) = judged(kind, reading, **test)
    return finding.verdict


NORMAL = {"class": "normal"}


def test_a_staircase_of_two_is_linear_and_a_jump_is_not() -> None:
    assert verdict("linear", factor="priority", where=NORMAL) == "supported"
    assert verdict("linear", lambda c, p: [p + 5 * (p > 8)], factor="priority", where=NORMAL) == (
        "refuted"
    )
    level = judged("linear", lambda c, p: [0.0], factor="priority", where=NORMAL)
    assert (level[0].verdict, level[0].reason) == ("refuted", "the line is level")


def test_words_have_no_line() -> None:
    (finding,) = judged("linear", factor="class", where={"priority": 1})
    assert finding.verdict == "not testable here"
    assert "no numbers" in finding.reason


def test_distinct_counts_readings() -> None:
    (finding,) = judged("distinct", factor="priority", where=NORMAL, at_least=5, at_most=5)
    assert finding.verdict == "supported"
    assert finding.estimate is not None and finding.estimate.value == 5
    ten: Reading = lambda c, p: [p]  # noqa: E731
    assert verdict("distinct", ten, factor="priority", where=NORMAL, at_most=9) == "refuted"


def test_a_step_is_exact_and_needs_no_interval() -> None:
    cells = {"of": {"class": "high", "priority": 5}, "over": {"class": "normal", "priority": 5}}
    (finding,) = judged("step", **cells, at_least=3, published=3)
    assert finding.verdict == "supported" and finding.reason == "from 8 to 13"
    assert verdict("step", lambda c, p: [0.0], **cells, at_least=3) == "refuted"


def test_a_step_is_out_of_proportion_relative_to_another() -> None:
    cells = {
        "of": {"class": "high", "priority": 5},
        "over": {"class": "normal", "priority": 5},
        "than_of": {"class": "normal", "priority": 3},
        "than_over": {"class": "normal", "priority": 1},
    }
    (finding,) = judged("ratio_of_steps", **cells, at_least=1.5, published=5)
    assert finding.verdict == "supported"
    assert finding.reason == "a step of 5 (from 8 to 13) against one of 1 (from 6 to 7)"
    assert finding.estimate is not None and finding.estimate.value == 5
    # On a scale whose steps are all five times as great nothing is out of proportion.
    even: Reading = lambda c, p: [{"normal": 0, "high": 10}[c] + 5 * p]  # noqa: E731
    assert verdict("ratio_of_steps", even, **cells, at_least=1.5) == "refuted"
    flat: Reading = lambda c, p: [0.0]  # noqa: E731
    assert verdict("ratio_of_steps", flat, **cells, at_least=1.5) == "refuted", "no step at all"
    alone: Reading = lambda c, p: [{"normal": 0.0, "high": 22.0}[c]]  # noqa: E731
    (finding,) = judged("ratio_of_steps", alone, **cells, at_least=1.5)
    assert (finding.verdict, finding.estimate) == ("supported", None)


@pytest.mark.parametrize("kind", ["step", "ratio_of_steps", "linear", "distinct", "overlap"])
def test_readings_that_differ_between_trials_leave_it_undecided(kind: str) -> None:
    tests: dict[str, dict[str, Any]] = {
        "step": {"of": {**NORMAL, "priority": 1}, "over": {**NORMAL, "priority": 2}, "at_most": 0},
        "ratio_of_steps": {
            "of": {**NORMAL, "priority": 1},
            "over": {**NORMAL, "priority": 2},
            "than_of": {**NORMAL, "priority": 3},
            "than_over": {**NORMAL, "priority": 4},
            "at_most": 0,
        },
        "linear": {"factor": "priority", "where": NORMAL},
        "distinct": {"factor": "priority", "where": NORMAL, "at_most": 9},
        "overlap": {"factor": "class", "across": "priority"},
    }
    (finding,) = judged(kind, lambda c, p: [1.0, 2.0], **tests[kind])
    assert finding.verdict == "undecided" and "gave 1, 2" in finding.reason


def test_overlaps_are_named() -> None:
    wide: Reading = lambda c, p: [{"normal": 6, "high": 10}[c] + (p - 1) // 2]  # noqa: E731
    (finding,) = judged("overlap", wide, factor="class", across="priority")
    assert finding.verdict == "supported" and finding.reason == "10 by normal, high"
    assert verdict("overlap", factor="class", across="priority") == "refuted", "6..10 and 11..15"
    alone = {"factor": "class", "across": "priority", "among": ["normal"]}
    assert verdict("overlap", wide, **alone) == "refuted"


def test_the_same_at_every_level() -> None:
    test = {"factor": "priority", "where": NORMAL}
    assert verdict("same", lambda c, p: [13.0], **test) == "supported"
    (finding,) = judged("same", lambda c, p: [13.0 + (p == 3)], **test)
    assert finding.verdict == "refuted" and "3 gave 14" in finding.reason
    assert verdict("same", lambda c, p: [13.0 + (p == 3)], **test, among=[1, 2]) == "supported"
    assert verdict("same", **test, among=[1, 11]) == "not testable here"


def test_an_untestable_claim_says_why_and_must() -> None:
    (finding,) = judged("untestable", reason="the limit of another machine")
    assert (finding.verdict, finding.reason) == (
        "not testable here",
        "the limit of another machine",
    )
    with pytest.raises(StudyError) as refused:
        judged("untestable")
    assert "reason" in refused.value.what


def test_each_gives_a_verdict_at_every_level() -> None:
    test = {"factor": "priority", "at_least": 5, "at_most": 5, "each": ["class"]}
    mixed: Reading = lambda c, p: windows(c, p) if c == "normal" else [p]  # noqa: E731
    found = judged("distinct", mixed, **test)
    assert [(f.id, f.verdict) for f in found] == [("c-normal", "supported"), ("c-high", "refuted")]
    assert found[1].says == "It is so. [class=high]"
    named = judged("distinct", mixed, **{**test, "each": {"class": ["high"]}})
    assert [f.id for f in named] == ["c-high"]
    assert len(judged("distinct", mixed, **{**test, "each": {"class": []}})) == 2
    ratio = judged("ratio", of={"priority": 10}, over={"priority": 1}, at_least=1.5, each=["class"])
    assert [round(f.estimate.value, 3) for f in ratio if f.estimate] == [1.667, 1.364]
    order = judged(
        "order", indicator="wall_seconds", cells=[{"priority": 1}, {"priority": 9}], each=["class"]
    )
    assert [f.verdict for f in order] == ["supported", "supported"]
    with pytest.raises(StudyError) as refused:
        judged("distinct", factor="priority", at_least=5, each=["clas"])
    assert refused.value.remedy == "did you mean 'class'?"


def test_the_ratio_of_ratios_holds_its_level() -> None:
    """An effect of 2 here and 1.25 there, at a CV of 3 % and blocks that vary by a factor of e: the
    nominal 95 % interval holds 1.6."""
    import random

    rng = random.Random(4)
    truth = {("high", 10): 2.0, ("high", 1): 1.0, ("normal", 10): 5.0, ("normal", 1): 4.0}
    cells = {
        "of": {"class": "high", "priority": 10},
        "over": {"class": "high", "priority": 1},
        "than_of": {"class": "normal", "priority": 10},
        "than_over": {"class": "normal", "priority": 1},
    }
    test = msgspec.convert({**cells, "at_least": 1.0}, RatioOfRatios)
    inside = 0
    for _ in range(1000):
        effects = [rng.lognormvariate(0, 1) for _ in range(8)]
        drawn = {
            cell: {
                block: centre * effect * rng.gauss(1, 0.03) for block, effect in enumerate(effects)
            }
            for cell, centre in truth.items()
        }
        samples = Samples(
            lambda cell, _, drawn=drawn: drawn[str(cell["class"]), int(cell["priority"])],  # type: ignore[misc]
            lambda _: [],
            lambda _: "lower",
        )
        estimate = ratio_of_ratios(test, samples, 0.95).estimate
        assert estimate is not None and estimate.low is not None and estimate.high is not None
        inside += estimate.low <= 1.6 <= estimate.high
    assert 935 <= inside <= 985


def test_a_ratio_of_ratios_needs_values_above_0_and_an_interval_two_blocks() -> None:
    cells = {
        "of": {"class": "high", "priority": 10},
        "over": {"class": "high", "priority": 1},
        "than_of": {"class": "normal", "priority": 10},
        "than_over": {"class": "normal", "priority": 1},
    }
    zero: Reading = lambda c, p: [0.0 if p == 1 else 1.0]  # noqa: E731
    assert verdict("ratio_of_ratios", zero, **cells, at_least=1.0) == "not testable here"
    (one,) = judged("ratio_of_ratios", lambda c, p: [1.0 + p], **cells, at_least=1.0)
    assert one.verdict == "undecided"
    assert one.estimate is not None
    assert one.estimate.value == pytest.approx(1.0)
    assert one.estimate.low is None


def test_the_ratio_of_ratios_is_a_claim() -> None:
    cells = {
        "of": {"class": "high", "priority": 10},
        "over": {"class": "high", "priority": 1},
        "than_of": {"class": "normal", "priority": 10},
        "than_over": {"class": "normal", "priority": 1},
    }
    spread: Reading = lambda c, p: [windows(c, p)[0] * (1 + s) for s in (-0.001, 0, 0.001)]  # noqa: E731
    assert verdict("ratio_of_ratios", spread, **cells, at_most=0.9) == "supported"
    assert verdict("ratio_of_ratios", spread, **cells, at_least=1.0) == "refuted"
    for missing in itertools.islice(cells, 1):
        with pytest.raises(StudyError):
            judged("ratio_of_ratios", **{k: v for k, v in cells.items() if k != missing})
