"""A program that switches often is slowed by being measured, which a note says."""

from __future__ import annotations

import msgspec
import pytest

from concurve.analysis.run import trial_findings_of
from concurve.analysis.sentences.notes import notes_of
from concurve.findings.run import Finding
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.planning.plan import make_plan
from concurve.store import Store
from tests.helpers.fakes import FakeClock, FakeEngine, small_study


def notes_at(*rates: float, simulation: bool = False) -> list[Finding]:
    """The notes on a run whose cells switched so often a second."""
    study = small_study(threads=tuple(range(1, len(rates) + 1)))
    head = new_head(study, "quick", 1, "again")
    store = Store()
    Runner(head, store, FakeEngine(), clock=FakeClock()).start()
    cells = trial_findings_of(store, store.find_run("last")).cells
    often = tuple(
        msgspec.structs.replace(
            cell,
            indicators={
                **cell.indicators,
                "context_switches": msgspec.structs.replace(
                    cell.indicators["wall_seconds"],
                    value=rate * cell.indicators["wall_seconds"].value,
                ),
            },
        )
        for cell, rate in zip(cells, rates, strict=True)
    )
    plan = make_plan(msgspec.structs.replace(study, simulation=simulation), "quick", seed=1)
    return [Finding(kind="note", sentence=text) for text in notes_of(plan, often, None)]


def slowed(*rates: float, simulation: bool = False) -> list[str]:
    said = [item.sentence for item in notes_at(*rates, simulation=simulation)]
    return [text for text in said if "Measuring may slow" in text]


def test_the_cell_that_switches_most_often_is_named() -> None:
    (said,) = slowed(2000, 30_000, 12_000)
    assert "switched 30,000 times a second with threads=2. " in said
    assert len(said.split()) <= 40


@pytest.mark.parametrize("rate", [0, 3000, 9000])
def test_few_switches_are_not_told(rate: float) -> None:
    assert not slowed(rate, rate)


def test_nothing_is_said_of_a_simulation() -> None:
    assert not slowed(30_000, 30_000, simulation=True)
