"""Trials by column read like their rows."""

from __future__ import annotations

import pytest

from concurve.store.rows import Outcome, Outcomes, TrialKey, TrialRow, Trials, as_bytes

ROWS = [
    TrialRow(Outcome(TrialKey(0, 0, 0), "ok", 1.5, 0.25), b"figures"),
    TrialRow(Outcome(TrialKey(1, 0, 0), "program_error", None, 0.1, "exit", "code 3"), b""),
    TrialRow(Outcome(TrialKey(1, 0, 1), "contaminated", 2.5, 0.3, "steal", "why"), b"more"),
]


def test_rows_come_back_in_order() -> None:
    trials = Trials.of(ROWS)
    assert list(trials) == ROWS
    assert len(trials) == 3
    assert trials[-1] == ROWS[-1]
    assert trials[1:] == ROWS[1:]
    assert trials == Trials.of(ROWS)
    with pytest.raises(IndexError):
        trials[3]


def is_usual(row: TrialRow, heading: bytes) -> bool:
    outcome = row.outcome
    was_accepted = outcome == outcome._replace(key=outcome.key._replace(attempt=0), verdict="ok",
                                               cause="", detail="")  # fmt: skip
    return was_accepted and row.figures.startswith(heading)


def stored(rows: list[TrialRow], heading: bytes) -> Trials:
    """Trials as the store reads them."""
    usual = [
        (out.key.cell, out.key.block, out.value, out.seconds,
         row.figures.removeprefix(heading) if is_usual(row, heading) else None)
        for row in rows
        for out in [row.outcome]
    ]  # fmt: skip
    others = [
        (out.key.attempt, out.verdict, out.cause, out.detail, row.figures)
        for row in rows
        for out in [row.outcome]
        if not is_usual(row, heading)
    ]
    halves = [usual[:2], usual[2:]]
    return Trials.stored(halves, lambda: others, heading)


@pytest.mark.parametrize("heading", [b"", b"fig", b"figures", b"more"])
def test_stored_rows_are_the_same(heading: bytes) -> None:
    trials = stored(ROWS, heading)
    assert list(trials) == ROWS
    assert trials[-1] == ROWS[-1] and trials[1:] == ROWS[1:]


def test_a_trial_that_came_between_two_queries_is_left_out() -> None:
    usual = [(0, 0, 1.5, 0.25, b"x"), (1, 0, None, 0.1, None)]
    others = [(1, "contaminated", "steal", "why", b"one"), (0, "ok", "", "", b"two")]
    first, second = Trials.stored([usual], lambda: others, b"")
    assert first.figures == b"x" and second.figures == b"one"
    assert second.outcome.cause == "steal"


def test_no_trials() -> None:
    assert list(Trials.stored([])) == [] == list(Outcomes.of([]))


def test_keys() -> None:
    outcomes = Outcomes.of(row.outcome for row in ROWS)
    assert outcomes.keys() == [row.outcome.key for row in ROWS]
    assert outcomes.key(2) == TrialKey(1, 0, 1)


def test_a_damaged_store_holds_other_types_than_bytes() -> None:
    assert [as_bytes(value) for value in (b"x", "text", 5)] == [b"x", b"text", b"5"]
