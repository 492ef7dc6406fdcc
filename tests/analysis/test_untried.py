"""That more than the greatest level may be better is said where the growth goes on to it."""

from __future__ import annotations

import pytest

from concurve.findings.run import TrialFindings
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


def test_of_workers_that_serve_nobody_no_more_are_advised_than_cpus() -> None:
    machine = {"cpus_allowed": [0, 1, 2, 3]}
    for levels, is_said in (((1, 2), True), ((1, 2, 4), False)):
        found = made_run(
            Store(), lambda threads: 4.0 / int(threads), cv=0.005, threads=levels, machine=machine
        )
        assert said(found) == is_said
