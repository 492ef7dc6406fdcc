"""Change points of made-up series: found where they are, and seldom where there are none."""

from __future__ import annotations

import json
import math
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import msgspec
import numpy as np
import pytest

from concurve.analysis.history import history_of
from concurve.analysis.run import findings_of
from concurve.definition.study import Indicator
from concurve.errors import ComparisonError
from concurve.findings.run import Findings
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.report.json.history import to_json
from concurve.report.sections.history import history_document
from concurve.report.terminal import lines
from concurve.stats.changes import LENGTH_MIN, change_points, change_points_of_all
from concurve.store import Store
from concurve.terms import Level
from tests.helpers.counts import at_most, few_or_many
from tests.helpers.fakes import FakeClock, FakeEngine, small_study
from tests.helpers.made import made_run
from tests.helpers.meant import CASES, run_of

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "schema" / "history.schema.json").read_text(encoding="utf-8")
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "s.db"))


def series(*levels: tuple[float, int], seed: int = 1, cv: float = 0.01) -> list[float]:
    rng = np.random.default_rng(seed)
    return [level * rng.lognormal(0, cv) for level, count in levels for _ in range(count)]


def starts(values: list[float]) -> list[int]:
    return [change.start for change in change_points(values)]


def test_a_step_is_found_where_it_is() -> None:
    assert starts(series((1.0, 7), (1.08, 5))) == [7]
    assert starts(series((1.0, 10), (0.9, 10), (1.1, 10))) == [10, 20]
    assert starts([-value for value in series((1.0, 8), (2.0, 8))]) == [8], "signed values, too"


@pytest.mark.simulation
def test_few_series_without_a_change_are_said_to_have_one() -> None:
    false = sum(bool(starts(series((1.0, 40), seed=seed))) for seed in range(100))
    assert false <= 11, "5 % nominal, three standard errors of chance"


def noise(kind: str, count: int, rng: np.random.Generator) -> np.ndarray:
    """Logarithms of figures that did not change: normal, with a tail, or of two modes."""
    if kind == "tail":
        return 0.01 * rng.standard_t(3, count)
    small = rng.normal(0, 0.01, count)
    return small if kind == "normal" else small + 0.1 * (rng.random(count) < 0.4)


@pytest.mark.simulation
@pytest.mark.parametrize("runs", [8, 20])
@pytest.mark.parametrize("histories", few_or_many(12, 40))
def test_few_histories_of_many_cells_are_said_to_have_changed(runs: int, histories: int) -> None:
    """Each of 40 cells by itself would say so in 80 % of the histories."""
    false, kinds = 0, ("normal", "tail", "modes")
    for history in range(histories):
        rng = np.random.default_rng(history)
        logs = (noise(kinds[cell % len(kinds)], runs, rng) for cell in range(40))
        false += any(change_points_of_all([list(np.exp(each)) for each in logs]))
    assert false <= math.ceil(at_most(0.05, histories)), "5 % nominal, and what chance makes"


def test_a_great_change_of_one_cell_of_many_is_told() -> None:
    cells = [series((1.0, 20), seed=cell) for cell in range(40)]
    cells[7] = series((1.0, 10), (1.3, 10), seed=7)
    found = change_points_of_all(cells)
    assert [change.start for change in found[7]] == [10]


@pytest.mark.parametrize("cells", [1, 2, 40])
@pytest.mark.parametrize(("before", "after"), [(4, 4), (5, 3), (18, 2)])
def test_a_great_change_is_told_after_as_many_runs_in_any_number_of_cells(
    cells: int, before: int, after: int
) -> None:
    """Of its own runs alone no order is rarer than 1 in 28 to 1 in 95."""
    every = [series((1.0, before + after), seed=cell) for cell in range(cells)]
    every[0] = series((1.0, before), (10.0, after), seed=99)
    found = [[change.start for change in each] for each in change_points_of_all(every)]
    assert found == [[before], *[[]] * (cells - 1)]


def test_each_of_four_changes_of_one_cell_of_many_is_told() -> None:
    cells = [series((1.0, 40), seed=cell) for cell in range(40)]
    cells[7] = series((1.0, 8), (10.0, 8), (1.0, 8), (10.0, 8), (1.0, 8), seed=77)
    assert [change.start for change in change_points_of_all(cells)[7]] == [8, 16, 24, 32]


def test_what_changes_in_half_of_the_cells_is_told_of_each() -> None:
    cells = [series((1.0, 20), seed=cell) for cell in range(10)]
    cells += [series((1.0, 12), (1.06, 8), seed=cell) for cell in range(10, 20)]
    found = [[change.start for change in each] for each in change_points_of_all(cells)]
    assert all(12 in each for each in found[10:])


def test_a_cell_of_fewer_runs_is_held_against_the_last_ones_of_the_others() -> None:
    """And a figure that is the same in all runs is never clear by chance."""
    cells = [series((1.0, 20), seed=cell) for cell in range(20, 40)] + [[3.0] * 20] * 20
    cells.append(series((1.0, 4), (10.0, 4), seed=99))
    found = change_points_of_all(cells)
    assert [change.start for change in found[-1]] == [4] and not any(found[:-1])


def test_two_changes_must_each_stand_a_stricter_test() -> None:
    """Of 4 + 4 values no split is rarer than 1 in 35: enough for one change, not for two."""
    assert starts(series((1.0, 4), (1.08, 4))) == [4]
    assert starts(series((1.0, 4), (1.08, 4), (1.0, 4))) == []


def test_one_wild_value_is_no_change() -> None:
    assert starts([*series((1.0, 8)), 1.5, *series((1.0, 8), seed=2)]) == []


def test_short_or_constant_series_have_none() -> None:
    assert starts(series((1.0, 4), (2.0, 3))) == []
    assert starts([1.0] * 20) == []
    assert LENGTH_MIN == 8


def runs(store: Store, count: int, slow_from: int = 99, **more: object) -> list[Findings]:
    return [
        made_run(
            store,
            lambda n, k=k: float(n) * (1.1 if k >= slow_from else 1.0),
            seed=k,
            n=(1, 2),
            **more,  # type: ignore[arg-type]
        )
        for k in range(count)
    ]


def test_a_history_marks_the_first_run_after_a_change(store: Store) -> None:
    found = history_of(runs(store, 12, slow_from=8))
    for cell in found.cells:
        marked = [index for index, point in enumerate(cell.points) if point.verdict]
        assert marked == [8] and cell.points[8].verdict == "slower"
        change = cell.points[8].change
        assert change is not None and change.value == pytest.approx(1.1, rel=0.01)
    text = [line.plain for line in lines(history_document(found), 80)]
    assert sum("< slower: 1." in line for line in text) == 2
    assert max(map(len, text)) <= 80
    written = json.loads(to_json(found))
    jsonschema.validate(written, SCHEMA)
    points = written["cells"][0]["points"]
    assert points[8]["change"]["verdict"] == "slower" and "change" not in points[7]


def test_too_few_runs_say_so(store: Store) -> None:
    found = history_of(runs(store, 3))
    assert all("3 runs are too few" in cell.note for cell in found.cells)
    assert any("too few" in line.plain for line in lines(history_document(found), 80))


def test_runs_of_other_machines_are_left_out_unless_asked_for(store: Store) -> None:
    machines: list[dict[str, object]] = [{"cpu_model": "A"}, {"cpu_model": "B"}]
    mixed = [*runs(store, 2, machine=machines[0]), *runs(store, 3, machine=machines[1])]
    found = history_of(mixed)
    assert found.runs == 3 and "2 runs of other machines are left out" in found.warnings[0]
    assert history_of(mixed, across_machines=True).runs == 5


def test_runs_of_another_command_are_told(store: Store) -> None:
    """They may have one name: `java -jar a.jar` and `java -jar b.jar` do."""
    own = [
        msgspec.structs.replace(run, run=msgspec.structs.replace(run.run, again=f"{again} {scene}"))
        for again in ["concurve sweep --seed 1 -P threads 1,2 -- ./renderer"]
        for run, scene in zip(runs(store, 4), ("small", "small", "large", "large"), strict=True)
    ]
    (said,) = [text for text in history_of(own).warnings if "command" in text]
    assert said.startswith("2 runs measure another command than the newest")
    assert "./renderer small and ./renderer large" in said
    assert not any("command" in text for text in history_of(own[2:]).warnings)


def test_a_history_goes_by_the_figure_that_compares() -> None:
    """Also where the newest run was stopped before it could recognise that."""
    case = next(case for case in CASES if "a rate that is known to move" in case.name)
    own = [run_of(case, Store(), seed) for seed in (1, 2, 3)]
    assert {run.ranked for run in own} == {"tps"} != {own[0].primary}
    assert history_of(own).indicator.name == "tps"
    stopped = msgspec.structs.replace(own[2], best=(), cells=own[2].cells[:1])
    assert history_of([*own[:2], stopped]).indicator.name == "tps"
    empty = msgspec.structs.replace(
        own[0], cells=tuple(msgspec.structs.replace(c, indicators={}) for c in own[0].cells)
    )
    assert history_of([empty, *own[1:]]).indicator.name == "tps"


def test_figures_that_compare_nothing_are_warned_of() -> None:
    case = next(case for case in CASES if "--best-by tps:higher" in case.says)
    (said,) = history_of([run_of(case, Store()), run_of(case, Store(), 2)]).warnings
    assert "may tell nothing of 2 runs" in said and "fixed time" in said


def test_an_unknown_indicator_is_refused(store: Store) -> None:
    with pytest.raises(ComparisonError, match="no run of small has the indicator 'x'"):
        history_of(runs(store, 2), "x")
    with pytest.raises(ComparisonError, match="no run is stored"):
        history_of([])


def test_a_history_knows_a_level_as_a_number_and_as_a_text(store: Store) -> None:
    levels: tuple[tuple[Level, ...], ...] = (("3.9", "3.10"), (3.9, 3.11))
    own = [
        made_run(store, lambda _: 1.0, seed=seed, version=given)
        for seed, given in enumerate(levels, start=1)
    ]
    assert [len(cell.points) for cell in history_of(own).cells] == [2, 1]


def test_a_cell_that_was_skipped_or_whose_load_failed_has_no_point(store: Store) -> None:
    """Its figures are of the trials until it broke off, or of errors: they are no change."""
    own = runs(store, 12, slow_from=10)
    changed = [
        msgspec.structs.replace(
            run,
            cells=(
                msgspec.structs.replace(run.cells[0], **(marks if number >= 10 else {})),
                msgspec.structs.replace(run.cells[1], status="skipped"),
            ),
        )
        for marks in [{"status": "skipped"}, {"load_failed": "failed responses: all 12,107"}]
        for number, run in enumerate(own)
    ]
    for found in (history_of(changed[:12]), history_of(changed[12:])):
        first, second = found.cells
        assert len(first.points) == 10 and not any(point.verdict for point in first.points)
        assert first.note == ""
        assert second.points == ()
        why = "no figure is left: the cell was skipped, or its load failed, in 12 runs"
        assert second.note == why
        assert found.warnings == (
            "14 figures are left out: of a cell that was skipped, or whose load failed",
        )
        assert why in "\n".join(line.plain for line in lines(history_document(found), 100))


def test_what_counts_failures_is_a_figure_of_a_cell_whose_load_failed(store: Store) -> None:
    """Its rise is what a history of it is asked for; but what was skipped has no figure."""
    counts = {"failures": ("wall_seconds",), "primary": "wall_seconds"}
    own = [
        msgspec.structs.replace(
            run,
            cells=(
                msgspec.structs.replace(run.cells[0], load_failed="failures: 12 of 50 (24 %)"),
                msgspec.structs.replace(run.cells[1], load_failed="…", status="skipped"),
            ),
            **counts,
        )
        for run in runs(store, 12, slow_from=8)
    ]
    first, second = history_of(own).cells
    assert [place for place, point in enumerate(first.points) if point.verdict] == [8]
    assert second.points == ()
    assert all(cell.points == () for cell in history_of(own, "cpu_seconds").cells)


def test_a_run_says_which_of_its_figures_count_failures(store: Store) -> None:
    study = msgspec.structs.replace(
        small_study(n=(1, 2)),
        indicators=(
            Indicator(name="wall_seconds"),
            Indicator(name="refused", better="lower", failures="share"),
            Indicator(name="late", better="lower", failures="expected"),
        ),
    )
    head = new_head(study, "quick", 1, "concurve sweep …")
    Runner(head, store, FakeEngine(), clock=FakeClock(0.001)).start()
    assert findings_of(store, store.find_run(head.id)).failures == ("refused",)
