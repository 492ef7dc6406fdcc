"""That more than the greatest level may be better is said where the growth goes on to it."""

from __future__ import annotations

import pytest

from concurve.findings.run import Report, TrialFindings
from concurve.store import Store
from tests.analysis.message_kinds import served
from tests.helpers.made import made_run

MORE = "is the greatest level measured: more may be better."


def said(found: TrialFindings) -> bool:
    return any(item.sentence.endswith(MORE) for item in found.sentences if item.kind == "answer")


def test_a_server_that_gains_up_to_the_greatest_level_may_gain_from_more() -> None:
    assert said(served({"8": 1.0, "16": 0.5, "32": 0.25}))


@pytest.mark.parametrize("last", [0.5, 0.9])
def test_where_the_growth_stopped_before_more_is_no_better(last: float) -> None:
    assert not said(served({"8": 1.0, "16": 0.5, "32": last}))


def test_a_small_gain_by_the_last_step_promises_no_more() -> None:
    """As where a server has used up the CPUs, and gets what its load gives up."""
    assert not said(served({"8": 1.0, "16": 0.5, "32": 0.48}))


def test_of_workers_that_serve_nobody_no_more_are_advised_than_cpus() -> None:
    machine = {"cpus_allowed": [0, 1, 2, 3]}
    for levels, is_said in (((1, 2), True), ((1, 2, 4), False)):
        found = made_run(
            Store(), lambda threads: 4.0 / int(threads), cv=0.005, threads=levels, machine=machine
        )
        assert said(found) == is_said


#: The time with so many threads, where it falls on and where it does not.
FALLS = {1: 1.0, 2: 0.5, 4: 0.25}
FLAT = {1: 1.0, 2: 0.5, 4: 0.5}


def under_keys(*curves: dict[int, float]) -> Report:
    """A run on a machine of many CPUs, with a condition for each of these curves."""
    return made_run(
        Store(), lambda keys, threads: curves[int(keys)][int(threads)], cv=0.005,
        machine={"cpus_allowed": list(range(64))}, conditions=("keys",),
        keys=tuple(range(len(curves))), threads=(1, 2, 4),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("curves", "under"),
    [
        ((FALLS, FALLS), "under each condition, "),
        ((FALLS, FLAT), "with keys=0, "),
        ((FLAT, FALLS, FALLS), "with keys=1 and keys=2, "),
        ((FALLS, FALLS, FALLS, FLAT), "under 3 of 4 conditions, "),
    ],
)
def test_it_is_said_under_which_conditions_the_growth_goes_on(
    curves: tuple[dict[int, float], ...], under: str
) -> None:
    answers = [it.sentence for it in under_keys(*curves).sentences if it.kind == "answer"]
    (more,) = (text for text in answers if "greatest level" in text)
    assert more == f"4 is the greatest level measured: {under}more may be better."


def test_where_the_growth_stopped_under_every_condition_more_is_no_better() -> None:
    said = under_keys(FLAT, FLAT).sentences
    assert not any("greatest level" in item.sentence for item in said)
