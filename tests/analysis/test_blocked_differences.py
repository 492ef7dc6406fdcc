"""Where two runs were blocked: which cells are shown, in which order, and why there may be none."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from concurve.analysis.comparison import compare_several
from concurve.analysis.comparison.several import BLOCKED_MAX
from concurve.assemble import report_of
from concurve.errors import ComparisonError
from concurve.findings.explanation import Explanation
from concurve.findings.run import Report
from concurve.findings.several import Several
from concurve.findings.stacks import BlockedStack
from concurve.report.html import to_fragment
from concurve.report.sections.several import several_document
from concurve.store import Store
from tests.helpers.made import made_run
from tests.helpers.waiting import waiting_run

pytestmark = pytest.mark.usefixtures("empty_charts")

TABLE, LOG = {"Table::add": 90, "Log::write": 10}, {"Table::add": 10, "Log::write": 90}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "runs.db"))


def waiting(
    store: Store, seed: int, places: dict[str, int], waits: float = 0.5, sampled: bool = True
) -> Report:
    return report_of(store, store.find_run(waiting_run(store, seed, places, waits, sampled)))


def explained(report: Report) -> Explanation:
    assert report.explanation is not None
    return report.explanation


def text_of(found: Several) -> str:
    return to_fragment(several_document(found))


def test_cells_that_wait_elsewhere_differ(store: Store) -> None:
    base, moved = waiting(store, 1, TABLE), waiting(store, 2, LOG, waits=0.8)
    found = compare_several([base], [[moved]])
    assert [pair.parameters for pair in found.blocked] == [{"threads": 2}, {"threads": 4}]
    assert found.blocked_cells == 2 and found.not_blocked == ()
    for pair in found.blocked:
        assert (pair.new, pair.base) == (moved.run.id, base.run.id)
        # 90 % of 0.5 ms became 10 % of 0.8 ms, and the reverse.
        assert pair.difference_ns == pytest.approx(1e6 * (0.45 - 0.08 + 0.72 - 0.05), rel=0.01)
    text = text_of(found)
    assert text.index("What limits each cell") < text.index("Where blocked time differs")
    assert f"Where blocked time goes, threads=4: {moved.run.id}" in text
    assert f"500 in {moved.run.id} and 500 in {base.run.id}" in text, "readings of all trials"


def test_a_run_that_waits_no_more_is_shown_against_its_base(store: Store) -> None:
    base, mended = waiting(store, 1, TABLE), waiting(store, 2, {}, waits=0.0)
    found = compare_several([base], [[mended]])
    assert len(found.blocked) == 2
    assert {pair.of_new.blocked_ns for pair in found.blocked} == {0.0}


def test_lines_that_moved_are_no_difference(store: Store) -> None:
    reports = []
    for seed, line in ((1, 7), (2, 12)):
        report = waiting(store, seed, TABLE)
        cells = tuple(
            msgspec.structs.replace(
                cell, stacks=(BlockedStack(("locks", f"Table::add:{line}"), 5e5),)
            )
            for cell in explained(report).cells
        )
        moved = msgspec.structs.replace(explained(report), cells=cells)
        reports.append(msgspec.structs.replace(report, explanation=moved))
    found = compare_several([reports[0]], [[reports[1]]])
    assert {pair.difference_ns for pair in found.blocked} == {0.0}


def test_so_many_cells_at_most(store: Store) -> None:
    base, far = waiting(store, 1, TABLE), waiting(store, 4, LOG, waits=0.9)
    near = [waiting(store, seed, TABLE, waits=0.6) for seed in (2, 3)]
    found = compare_several([base], [[near[0]], [far], [near[1]]])
    assert len(found.blocked) == BLOCKED_MAX and found.blocked_cells == 6
    assert {pair.new for pair in found.blocked[:2]} == {far.run.id}
    sizes = [pair.difference_ns for pair in found.blocked]
    assert sizes == sorted(sizes, reverse=True)
    assert "Of 6 cells, the 4 with the greatest differences are drawn." in text_of(found)


def test_why_there_is_none(store: Store) -> None:
    base = waiting(store, 1, TABLE)
    unsampled = waiting(store, 2, TABLE, sampled=False)
    silent = made_run(store, lambda threads: 1.0, seed=3, threads=(1, 2, 4))
    found = compare_several([base], [[unsampled], [silent]])
    assert found.blocked == () and found.blocked_cells == 0
    assert found.not_blocked == (
        f"{unsampled.run.id} has no samples of what its threads waited for: kernel says no.",
        f"The report of {silent.run.id} does not say where its thread time goes.",
    )
    text = text_of(found)
    assert "Where blocked time differs" in text and "kernel says no" in text
    assert "The upper graph" not in text


def test_a_base_without_samples_is_said_once(store: Store) -> None:
    base = waiting(store, 1, TABLE, sampled=False)
    others = [[waiting(store, seed, TABLE)] for seed in (2, 3)]
    assert len(compare_several([base], others).not_blocked) == 1


def test_nothing_blocked_and_no_place_known(store: Store) -> None:
    busy, also = (waiting(store, seed, {}, waits=0.0) for seed in (1, 2))
    (said,) = compare_several([busy], [[also]]).not_blocked
    assert "blocked for less than 2 % of their time" in said
    nowhere = waiting(store, 3, {}, waits=0.5)
    (said,) = compare_several([busy], [[nowhere]]).not_blocked
    assert said.startswith("No place is known") and nowhere.run.id in said


def test_operations_of_another_kind_are_not_compared(store: Store) -> None:
    base, other = waiting(store, 1, TABLE), waiting(store, 2, LOG)
    whole = msgspec.structs.replace(explained(other), operation="a whole run")
    found = compare_several([base], [[msgspec.structs.replace(other, explanation=whole)]])
    (said,) = found.not_blocked
    assert found.blocked == () and said == (
        f"An operation is not the same in {other.run.id} (a whole run) and in "
        f"{base.run.id} (reported by the program)."
    )


def test_two_runs_without_a_common_cell_are_refused_as_before(store: Store) -> None:
    base = waiting(store, 1, TABLE)
    other = made_run(store, lambda threads: 1.0, seed=3, threads=(3, 5))
    with pytest.raises(ComparisonError, match="no cell in common"):
        compare_several([base], [[other]])
