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


def test_stored_rows_are_the_same() -> None:
    stored = [(*row.outcome.key, row.outcome.verdict, row.outcome.value, row.outcome.seconds,
               row.outcome.cause, row.outcome.detail, row.figures) for row in ROWS]  # fmt: skip
    assert Trials.stored(stored) == Trials.of(ROWS)


def test_no_trials() -> None:
    assert list(Trials.stored([])) == [] == list(Outcomes.of([]))


def test_keys() -> None:
    outcomes = Outcomes.of(row.outcome for row in ROWS)
    assert outcomes.keys() == [row.outcome.key for row in ROWS]
    assert outcomes.key(2) == TrialKey(1, 0, 1)


def test_a_damaged_store_holds_other_types_than_bytes() -> None:
    assert [as_bytes(value) for value in (b"x", "text", 5)] == [b"x", b"text", b"5"]
