"""The warning of intervals that are wider than the precision asked for goes by those printed."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from concurve.definition.study import Rules
from concurve.findings.run import Findings
from concurve.store import Store
from concurve.wire.spec import TrialSpec
from tests.helpers.made import made_run

STAGED = Rules(repeats_min=5, repeats_max=8, precision=0.02)
FIXED = Rules(repeats_min=5, repeats_max=5, precision=0.02)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "s.db"))


def warning(found: Findings) -> str:
    (said,) = (item.sentence for item in found.sentences if "missed the precision" in item.sentence)
    return said


def wide(found: Findings) -> int:
    """Cells whose printed interval is wider than 2 %."""
    shown = (cell.indicators["wall_seconds"].precision for cell in found.cells)
    return sum(precision is not None and precision > 0.02 for precision in shown)


def alternating() -> Callable[..., float]:
    reads = itertools.cycle((0.02, 0.03, 0.03, 0.02, 0.02))
    return lambda n: next(reads) if n == "1" else 0.02


def test_all_cells_of_a_coarse_clock_are_counted_and_the_clock_is_named(store: Store) -> None:
    """A cell with equal readings has reached the precision by its spread, not by its interval."""
    found = made_run(store, alternating(), cv=0, rules=STAGED, n=(1, 2, 3, 4))
    assert wide(found) == 4
    said = warning(found)
    assert said.startswith("4 of 4 cells missed the precision of ±2 %, n=")
    assert said.endswith("The step of the clock alone is as wide: longer trials, or a finer clock.")


def test_only_the_cells_with_wide_intervals_are_counted(store: Store) -> None:
    found = made_run(store, float, cv=0.08, rules=STAGED, n=(1, 2))
    assert wide(found) == 2
    said = warning(found)
    assert said.startswith("2 of 2 cells missed")
    assert "clock" not in said
    worst = max(
        precision
        for cell in found.cells
        if (precision := cell.indicators["wall_seconds"].precision) is not None
    )
    options = re.search(r"A new run with --repeats 5\.\.(\d+) should reach it", said)
    assert options is not None
    assert 1 <= int(options[1]) / (8 * (worst / 0.02) ** 2) < 1.1


def test_where_nothing_is_decided_one_number_of_trials_is_told(store: Store) -> None:
    found = made_run(store, lambda n: 1.0 + 0.04 * int(n), cv=0.08, rules=STAGED, n=(1, 2, 3))
    answers = [item.sentence for item in found.sentences if item.kind == "answer"]
    assert any(text.startswith("Not decided") and "would decide" in text for text in answers)
    assert found.best_overall is not None and found.best_overall.new_run is not None
    assert "--repeats" in found.best_overall.new_run.options
    assert warning(found).startswith("3 of 3 cells missed") and "--repeats" not in warning(found)


def test_a_longer_run_than_the_allowance_is_told_with_its_time(store: Store) -> None:
    rules = msgspec.structs.replace(STAGED, time_allowed_seconds=0.1)
    said = warning(made_run(store, float, cv=0.08, rules=rules, n=(1, 2)))
    assert re.search(r"--repeats 5\.\.\d+ --max-time 1s should reach it, in about \d+ ms", said)


def test_cells_with_enough_trials_missed_it_too_where_time_ended_the_run(store: Store) -> None:
    """Nor does a new run with more trials help then."""
    rules = Rules(repeats_min=5, repeats_max=50, precision=0.02, time_allowed_seconds=0.02)
    found = made_run(store, float, cv=0.08, rules=rules, n=(1, 2, 3))
    assert "time allowance" in found.run.reason
    assert [cell.status for cell in found.cells] == ["ok", "ok", "ok"], "or this tests nothing"
    assert warning(found).startswith("3 of 3 cells missed")
    assert "A new run" not in warning(found)


@pytest.mark.parametrize(
    ("doubted", "who"),
    [
        ((), "4 of 4 cells"),
        ((1, 2), "2 of the 2 cells that are not in doubt"),
        ((1, 2, 3), "The only cell that is not in doubt"),
    ],
)
def test_cells_in_doubt_are_not_counted_and_it_is_said(
    store: Store, doubted: tuple[int, ...], who: str
) -> None:
    """All cells have too wide intervals: "2 of 4 cells" would say that the others are precise."""
    rules = msgspec.structs.replace(STAGED, redo_max=0, redo_share=0.0)

    def taken(spec: TrialSpec) -> int:
        return 10**9 if int(spec.roles[0].argv[1]) in doubted else 0

    found = made_run(store, float, cv=0.08, rules=rules, steal=taken, n=(1, 2, 3, 4))
    assert wide(found) == 4, "or this tests nothing"
    assert warning(found).startswith(f"{who} missed the precision of ±2 %")


CUT = msgspec.structs.replace(FIXED, time_allowed_seconds=0.02)


@pytest.mark.parametrize(("rules", "cv"), [(FIXED, 0.08), (CUT, 0.08), (STAGED, 0.001)])
def test_there_is_no_warning_where_none_is_due(store: Store, rules: Rules, cv: float) -> None:
    """A fixed number of trials asks for no precision."""
    found = made_run(store, float, cv=cv, rules=rules, n=(1, 2))
    assert not any("missed the precision" in item.sentence for item in found.sentences)


def test_an_interval_about_0_is_wide_as_no_share_of_0_is_reached(store: Store) -> None:
    """Failures of which most trials have none."""
    seconds = itertools.cycle((0.0, 0.0, 3.0, 0.0, 0.0))
    found = made_run(
        store, lambda n: next(seconds) if n == "1" else 1.0, cv=0, rules=STAGED, n=(1, 2)
    )
    figure = found.cells[0].indicators["wall_seconds"]
    assert (figure.value, figure.precision) == (0.0, None) and figure.half_width
    assert "n=1" in warning(found) and "(its centre is 0)" in warning(found)
