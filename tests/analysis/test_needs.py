"""Claims that need cells to differ: judged where these do, and nowhere else."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from concurve.analysis.campaign.answers import _claim as in_a_sentence
from concurve.analysis.claims import judge_claims
from concurve.analysis.samples import MissingError
from concurve.definition.claim_kinds import Needs, Ratio, at_levels, check_claims, parse_test
from concurve.definition.origins import Origins
from concurve.definition.study import Claim
from concurve.errors import StudyError
from concurve.findings.claims import ClaimFinding
from concurve.terms import Level
from tests.helpers.columns import column_samples
from tests.helpers.fakes import small_study

#: Two levels that the claim compares, and the control.
NEW, OLD, CONTROL = "new", "old", "control"
NEEDS = {"cells": [{"form": CONTROL}, {"form": NEW}, {"form": OLD}], "differ_by": 0.03}


def trials(centre: float, sd: float = 0.002, seed: int = 1, n: int = 12) -> list[float]:
    rng = random.Random(f"{centre} {seed}")
    return [centre * rng.lognormvariate(0, sd) for _ in range(n)]


def judged(
    cells: dict[Level, list[float]], needs: dict[str, Any] | None = None, **test: Any
) -> ClaimFinding:
    given: dict[str, Any] = {
        "of": {"form": NEW}, "over": {"form": OLD}, "at_least": 1.0,
        "needs": NEEDS if needs is None else needs, **test,
    }  # fmt: skip
    claim = Claim(id="c", says="It is so.", kind="ratio", test=given)
    study = msgspec.structs.replace(
        small_study(None, form=(NEW, OLD, CONTROL, "other")), claims=(claim,)
    )
    check_claims(study, Origins("test"))

    def values(parameters: Mapping[str, Level], indicator: str) -> Sequence[float]:
        if parameters["form"] not in cells:
            raise MissingError("was not run", f"form={parameters['form']}")
        return cells[parameters["form"]]

    (finding,) = judge_claims(study, column_samples(values, lambda _: list(cells)))
    return finding


def forms(new: float, old: float, control: float, sd: float = 0.002) -> dict[Level, list[float]]:
    return {NEW: trials(new, sd, 1), OLD: trials(old, sd, 2), CONTROL: trials(control, sd, 3)}


@pytest.mark.parametrize(("new", "alone"), [(0.99, "refuted"), (1.01, "supported")])
def test_where_all_cells_are_alike_no_verdict_stands(new: float, alone: str) -> None:
    cells = forms(new, 1.0, 1.0)
    found = judged(cells)
    assert found.verdict == "cannot be decided"
    assert found.reason.startswith("what it compares makes no difference here: form=")
    assert "and the claim needs more than 3 %" in found.reason
    assert found.threshold == "at least 1, where cells differ by more than 3 %"
    assert found.differ_by == 0.03
    assert found.differ is not None and found.differ.high is not None
    assert 0.005 < found.differ.value < found.differ.high <= 0.03
    assert found.estimate is not None, "what the claim compares is shown all the same"
    needs = {**NEEDS, "differ_by": 0.001}
    assert judged(cells, needs).verdict == alone, "the same figures decide where 0.1 % counts"


@pytest.mark.parametrize(
    ("cells", "verdict"),
    [
        (forms(1.1, 1.0, 1.0), "supported"),
        (forms(0.9, 1.0, 1.0), "refuted"),
        # The control alone shows that there is something to tell apart.
        (forms(1.01, 1.0, 1.5), "supported"),
        (forms(1.0, 1.0, 1.5, sd=0.2), "undecided"),
    ],
)
def test_where_some_cells_differ_the_claim_is_judged(
    cells: dict[Level, list[float]], verdict: str
) -> None:
    assert judged(cells).verdict == verdict


def test_where_it_is_open_whether_they_differ_the_claim_is_open() -> None:
    found = judged(forms(1.028, 1.0, 1.0, sd=0.004))
    assert found.verdict == "undecided"
    assert found.reason.startswith("it is open whether its cells differ: form=new, the greatest")
    assert found.trials is not None and found.trials > 12
    assert "trials of each would decide it" in found.reason


def test_a_control_that_was_not_run_shows_nothing() -> None:
    alike, apart = forms(1.01, 1.0, 1.0), forms(1.1, 1.0, 1.0)
    del alike[CONTROL], apart[CONTROL]
    found = judged(alike)
    assert found.verdict == "undecided"
    assert found.reason.endswith("form=control was not run")
    assert judged(apart).verdict == "supported", "the others differ already"
    del apart[OLD]
    assert judged(apart).verdict == "not testable here"
    no_pair = {"cells": [{"form": CONTROL}, {"form": OLD}], "differ_by": 0.03}
    beside = {"of": {"form": NEW}, "over": {"form": "other"}}
    found = judged({**apart, "other": trials(1.0)}, no_pair, **beside)
    assert found.verdict == "not testable here"
    assert "form=control and form=old have no wall_seconds" in found.reason


@pytest.mark.simulation
def test_no_verdict_is_wrong_more_often_than_it_may_be() -> None:
    """The claim is false and the cells lie a little further apart than they need to: every other
    verdict than "refuted" or "undecided" is wrong, and in all they come in at most 5 % of runs."""
    wrong = 0
    for seed in range(300):
        rng = random.Random(seed)
        cells: dict[Level, list[float]] = {
            form: [centre * rng.lognormvariate(0, 0.02) for _ in range(10)]
            for form, centre in ((NEW, 0.9999), (OLD, 1.0), (CONTROL, 1.0301))
        }
        wrong += judged(cells).verdict in ("supported", "cannot be decided")
    assert wrong <= 0.05 * 300


@pytest.mark.parametrize(
    ("needs", "message"),
    [
        ({**NEEDS, "differ_by": 0}, "differ_by: 0 is no share above 0"),
        ({**NEEDS, "cells": [{"form": NEW}]}, "at least two different ones"),
        ({**NEEDS, "cells": [{"form": NEW}, {"form": NEW}]}, "at least two different ones"),
        ({**NEEDS, "cells": [{"from": NEW}, {"form": OLD}]}, "'from' is no factor"),
        ({"cells": NEEDS["cells"]}, "differ_by"),
        ({**NEEDS, "by": 1}, "by"),
    ],
)
def test_what_cannot_be_compared_is_refused(needs: dict[str, Any], message: str) -> None:
    with pytest.raises(StudyError, match=message):
        judged(forms(1.0, 1.0, 1.0), needs)


def test_exact_readings_need_nothing() -> None:
    claim = Claim(id="c", says="", kind="same", test={"factor": "threads", "needs": {
        "cells": [{"threads": 1}, {"threads": 2}], "differ_by": 0.1}})  # fmt: skip
    study = msgspec.structs.replace(small_study(threads=(1, 2)), claims=(claim,))
    with pytest.raises(StudyError, match="needs no other cells"):
        check_claims(study, Origins("test"))


def test_a_level_that_is_written_in_two_ways_is_one() -> None:
    claim = Claim(id="c", says="", kind="ratio", test={
        "of": {"threads": 1}, "over": {"threads": 2}, "at_least": 1, "needs": {
            "cells": [{"threads": it} for it in (1, "1", 1.0)], "differ_by": 0.1}})  # fmt: skip
    study = msgspec.structs.replace(small_study(threads=(1, 2)), claims=(claim,))
    with pytest.raises(StudyError, match="at least two different ones"):
        check_claims(study, Origins("test"))


def test_the_cells_are_narrowed_to_the_levels_of_each() -> None:
    claim = Claim(id="c", says="", kind="ratio", test={
        "of": {"form": NEW}, "over": {"form": OLD}, "at_least": 1, "each": ["cpus"],
        "needs": NEEDS})  # fmt: skip
    test = at_levels(parse_test(claim, "test"), {"cpus": 2})
    assert isinstance(test, Ratio)
    assert test.needs == Needs(
        cells=tuple({"form": form, "cpus": 2} for form in (CONTROL, NEW, OLD)), differ_by=0.03
    )


def finding(verdict: str, **setting: Level) -> ClaimFinding:
    return ClaimFinding(id="c", says="It is slower.", source="", kind="ratio",
                        verdict=verdict, reason="", setting=setting)  # type: ignore[arg-type]  # fmt: skip


def test_a_campaign_says_the_factor_that_decides_the_verdict() -> None:
    found = [
        finding("refuted" if cpu < 300 else "cannot be decided", depth=depth, cpu=cpu)
        for depth in (1, 4)
        for cpu in (0, 100, 1200)
    ]
    assert list(in_a_sentence(found)) == [
        "It is slower: refuted with cpu=0 and 100; cannot be decided with cpu=1200."
    ]
    mixed = [*found[:-1], finding("undecided", depth=4, cpu=1200)]
    (said,) = in_a_sentence(mixed)
    assert said.startswith("It is slower: refuted in 4 of 6 settings, ")
