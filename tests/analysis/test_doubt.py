"""Verdicts on a machine that was not quiet: withheld where the quiet trials do not bear them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from concurve.analysis.doubt import claims_in_doubt, published_in_doubt
from concurve.analysis.run import findings_of
from concurve.analysis.samples import MissingError, Samples
from concurve.definition.published import PublishedFigure
from concurve.definition.study import Claim, Rules
from concurve.findings.claims import ClaimFinding
from concurve.findings.published import PublishedComparison
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.report.sections.run import Topic, brief_run_document
from concurve.report.terminal import lines
from concurve.store import Store
from concurve.terms import Level
from concurve.wire.spec import TrialSpec
from tests.helpers.columns import column_samples
from tests.helpers.fakes import FakeClock, FakeEngine, small_study

SLOW, HALF = [2.0, 2.01, 1.99, 2.0], [1.0, 1.005, 0.995, 1.0]
Cells = Mapping[int, Sequence[float]]

HALVES: dict[str, Any] = {"of": {"threads": 2}, "over": {"threads": 1}, "at_least": 1.9}


def samples_of(cells: Cells) -> Samples:
    def values(parameters: Mapping[str, Level], indicator: str) -> Sequence[float]:
        if not cells.get(int(parameters["threads"])):
            raise MissingError("it has none")
        return cells[int(parameters["threads"])]

    return column_samples(values, lambda _: list(cells))


def judged(every: Cells, quiet: Cells | None, kind: str = "speedup", **test: Any) -> ClaimFinding:
    claim = Claim(id="c", says="It halves.", kind=kind, test=test or HALVES)
    study = msgspec.structs.replace(small_study(), claims=(claim,))
    alone = None if quiet is None else samples_of(quiet)
    (found,) = claims_in_doubt(study, samples_of(every), alone)
    return found


def test_without_a_doubt_every_trial_counts() -> None:
    found = judged({1: SLOW, 2: HALF}, None)
    assert (found.verdict, found.doubt) == ("supported", "")


def test_a_verdict_stands_where_the_quiet_trials_alone_give_it() -> None:
    every = {1: SLOW, 2: HALF}
    assert judged(every, {1: SLOW[:3], 2: HALF}).verdict == "supported"
    slower = {1: SLOW, 2: [1.5, 1.5, 1.51]}
    assert judged(slower, {1: SLOW, 2: [1.5, 1.51]}).verdict == "refuted"


@pytest.mark.parametrize(
    ("quiet", "why"),
    [
        ({1: SLOW, 2: [1.0]}, "but not by its quiet trials alone"),
        ({1: SLOW, 2: HALF}, "but not by its quiet trials alone"),
        ({1: SLOW, 2: []}, "but a cell has no other trials"),
    ],
)
def test_a_verdict_that_the_doubtful_trials_bear_is_withheld(quiet: Cells, why: str) -> None:
    found = judged({1: SLOW, 2: [1.6, 1.61, 1.6]}, quiet)
    assert found.verdict == "undecided"
    assert found.reason == found.doubt
    assert found.doubt.startswith("the machine was not quiet: refuted by all trials, ")
    assert found.doubt.endswith(why)
    assert found.estimate is not None and found.estimate.value == pytest.approx(1.25, rel=0.01)


def test_readings_that_no_neighbour_changes_are_judged_all_the_same() -> None:
    table = {"factor": "threads", "table": {"1": 1, "2": 2}}
    assert judged({1: [1.0], 2: [2.0]}, {1: [1.0], 2: []}, "mapping", **table).verdict == (
        "supported"
    )


def compared(every: Cells, quiet: Cells) -> PublishedComparison:
    figure = PublishedFigure(
        table="7", row="time", column="2", value=50.0, printed="50", rounding=0.5,
        indicator="wall_seconds", parameters={"threads": 2}, base={"threads": 1},
        base_value=100.0, compare="ratio",
    )  # fmt: skip
    study = msgspec.structs.replace(small_study(), published=(figure,))
    (table,) = published_in_doubt(study, samples_of(every), samples_of(quiet), {"threads": 1})
    return table.figures[0]


def test_published_figures_are_held_against_quiet_trials_too() -> None:
    every = {1: SLOW, 2: HALF}
    assert compared(every, every).verdict == "agrees"
    found = compared(every, {1: SLOW, 2: [1.0]})
    assert found.verdict == "undecided"
    assert found.reason.startswith("the machine was not quiet: agrees by all trials")


def test_counts_that_every_trial_gave_alike_are_compared_all_the_same() -> None:
    figure = PublishedFigure(
        table="13", row="2", column="threads", value=14, printed="14", rounding=0.5,
        indicator="kernel_threads", parameters={"threads": 2}, base={"threads": 1},
        base_value=13.0, compare="difference",
    )  # fmt: skip
    study = msgspec.structs.replace(small_study(), published=(figure,))
    every, quiet = samples_of({1: [34.0] * 3, 2: [35.0] * 3}), samples_of({1: [34.0], 2: []})
    (table,) = published_in_doubt(study, every, quiet, {"threads": 1})
    assert table.figures[0].verdict == "agrees"


def test_a_run_beside_others_says_so_instead_of_judging(store: Store) -> None:
    """Every trial of two threads lost CPU time to the hypervisor, and no redo helped."""
    rules = Rules(repeats_min=3, repeats_max=3)
    study = small_study(rules, threads=(1, 2))
    claim = Claim(id="c", says="Two halve it.", kind="speedup", test=HALVES)
    study = msgspec.structs.replace(study, claims=(claim,))

    def is_two(spec: TrialSpec) -> bool:
        return spec.roles[0].argv[1] == "2"

    engine = FakeEngine(
        lambda spec, rng: rng.gauss(1.6 if is_two(spec) else 2.0, 0.005),
        steal_of=lambda spec: 10**9 if is_two(spec) else 0,
    )
    head = new_head(study, "normal", 1, "concurve run …")
    Runner(head, store, engine, clock=FakeClock(0.001)).start()
    findings = findings_of(store, store.find_run(head.id))
    (found,) = findings.claims
    assert found.verdict == "undecided"
    document = brief_run_document(findings, topics=[Topic.CLAIMS])
    shown = " ".join(line.plain for line in lines(document, 200))
    assert "the machine was not quiet: refuted by all trials" in shown.split("claims of")[1]


@pytest.fixture
def store() -> Store:
    return Store()
