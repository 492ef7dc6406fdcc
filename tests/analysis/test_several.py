"""Several runs against one base: ranked differences, curves over each other, causes."""

from __future__ import annotations

import math
from pathlib import Path
from typing import cast

import msgspec
import pytest

from concurve.analysis.comparison import compare_several
from concurve.analysis.comparison.several import NEWS_MAX, significance_of
from concurve.errors import ComparisonError
from concurve.estimate import Estimate
from concurve.findings.explanation import Cause, CellExplanation, Explanation
from concurve.findings.run import Report
from concurve.report.markdown import to_markdown
from concurve.report.sections.several import several_document
from concurve.store import Store
from tests.helpers.made import made_run

pytestmark = pytest.mark.usefixtures("empty_charts")


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "runs.db"))


def run(
    store: Store, seed: int, factor: float = 1.0, at_4: float = 1.0, cv: float = 0.01
) -> Report:
    """A run of three cells; ``factor`` slows all of them, ``at_4`` the last one besides."""

    def seconds(threads: str) -> float:
        return factor / int(threads) * (at_4 if threads == "4" else 1.0)

    return made_run(store, seconds, seed=seed, cv=cv, threads=(1, 2, 4))


def explained(report: Report, **causes: str) -> Report:
    """The report with a cause for each number of threads."""
    cells = tuple(
        CellExplanation(parameters=cell.parameters, cause=cast("Cause", cause), evidence="")
        for cell in report.cells
        for cause in [causes.get(f"at_{cell.parameters['threads']}")]
        if cause is not None
    )
    explanation = Explanation(
        run=report.run.id, study="small", factors=("threads",), work="threads", operation="one",
        cells=cells,
    )  # fmt: skip
    return msgspec.structs.replace(report, explanation=explanation)


def test_what_differs_is_ranked_and_the_rest_is_left_out(store: Store) -> None:
    base, alike = run(store, 1), run(store, 2)
    slower, much = run(store, 3, at_4=1.1), run(store, 4, factor=0.5)
    found = compare_several([base], [[alike], [slower], [much]])
    assert found.base == base.run.id
    assert found.news == (alike.run.id, slower.run.id, much.run.id)
    ranks = [item.significance for item in found.differences]
    assert ranks == sorted(ranks, reverse=True) and ranks[-1] > 1
    differing = {(item.new, item.cell.parameters["threads"]) for item in found.differences}
    assert differing == {(slower.run.id, 4), *((much.run.id, n) for n in (1, 2, 4))}
    # Half the time is further from 1 than a tenth more, at equal noise.
    assert [item.new for item in found.differences] == [much.run.id] * 3 + [slower.run.id]
    verdicts = {item.cell.verdict for item in found.differences}
    assert verdicts == {"faster", "slower"}


def test_verdicts_hold_together(store: Store) -> None:
    """Against many runs that are alike, a difference needs more evidence than against one."""
    base = run(store, 1, cv=0.05)
    others = [[run(store, seed, cv=0.05)] for seed in range(2, 2 + NEWS_MAX)]
    together = compare_several([base], others)
    alone = [compare_several([base], [other]) for other in others]
    assert len(together.differences) <= sum(len(item.differences) for item in alone)
    assert all(
        cell.ratio == single.ratio
        for one, item in zip(alone, together.comparisons, strict=True)
        for cell, single in zip(item.cells, one.comparisons[0].cells, strict=True)
    ), "the ratios themselves are the same"


def test_the_cells_of_all_runs_are_laid_over_each_other(store: Store) -> None:
    base, other = run(store, 1), run(store, 2)
    over = compare_several([base], [[other]]).overlaid
    assert [cell.index for cell in over.cells] == list(range(6))
    assert over.factors[0].levels == (base.run.id, other.run.id)
    for report, first in ((base, 0), (other, 3)):
        mine = [cell for cell in over.cells if cell.parameters["run"] == report.run.id]
        assert [cell.indicators for cell in mine] == [cell.indicators for cell in report.cells]
        values = report.columns("wall_seconds")
        assert {cell - first: kept for cell, kept in over.columns("wall_seconds").items()
                if first <= cell < first + 3} == values  # fmt: skip


def test_a_level_is_one_in_all_runs_whether_it_is_a_number_or_a_text(store: Store) -> None:
    base = made_run(store, lambda _: 1.0, seed=1, version=("3.9", "3.10"))
    other = made_run(store, lambda _: 1.0, seed=2, version=(3.9, 3.11))
    over = compare_several([base], [[other]]).overlaid
    assert over.factors[1].levels == ("3.9", "3.10", 3.11)
    assert [cell.parameters["version"] for cell in over.cells] == ["3.9", "3.10", "3.9", 3.11]


def test_causes_stand_side_by_side(store: Store) -> None:
    base = explained(run(store, 1), at_1="none", at_2="cpu", at_4="lock")
    other = explained(run(store, 2), at_1="none", at_2="cpu", at_4="memory")
    silent = run(store, 3)
    found = compare_several([base], [[other], [silent]])
    assert [cell.parameters["threads"] for cell in found.causes] == [2, 4]
    names = [[None if one is None else one.cause for one in cell.causes] for cell in found.causes]
    assert names == [["cpu", "cpu", None], ["lock", "memory", None]]
    text = to_markdown(several_document(found))
    assert "In 1 cell of 2 the runs name different causes." in text


def test_a_cause_that_a_run_does_not_say_is_not_the_same(store: Store) -> None:
    base = explained(run(store, 1), at_1="none", at_2="cpu", at_4="in doubt")
    other = explained(run(store, 2), at_1="none", at_2="cpu", at_4="in doubt")
    text = to_markdown(several_document(compare_several([base], [[other]])))
    assert "In the 1 cell of 2 whose cause all runs name it is the same." in text


def test_undecided_cells_are_not_said_to_be_alike(store: Store) -> None:
    found = compare_several([run(store, 1)], [[run(store, 2)]])
    [comparison] = found.comparisons
    cells = tuple(
        msgspec.structs.replace(cell, verdict="undecided" if number else "same")
        for number, cell in enumerate(comparison.cells)
    )
    comparison = msgspec.structs.replace(comparison, cells=cells)
    text = to_markdown(several_document(msgspec.structs.replace(found, comparisons=(comparison,))))
    assert f"than that of the base: {len(cells) - 1} are undecided." in text


def test_the_document_says_what_differs_first(store: Store) -> None:
    base, alike, slower = run(store, 1), run(store, 2), run(store, 3, at_4=1.5)
    text = to_markdown(several_document(compare_several([base], [[alike], [slower]])))
    assert text.index("What differs") < text.index("All cells")
    ranked = text[text.index("What differs") : text.index("All cells")]
    assert slower.run.id in ranked and "slower" in ranked and alike.run.id not in ranked
    nothing = to_markdown(several_document(compare_several([base], [[alike]])))
    assert "No cell is faster or slower than that of the base." in nothing


def test_what_cannot_be_compared_at_once(store: Store) -> None:
    base, other = run(store, 1), run(store, 2)
    with pytest.raises(ComparisonError, match="twice"):
        compare_several([base], [[other], [other]])
    with pytest.raises(ComparisonError, match="on both sides"):
        compare_several([base], [[base]])
    for news in ([], [[other]] * (NEWS_MAX + 1)):
        with pytest.raises(ComparisonError, match="against a base") as raised:
            compare_several([base], news)
        assert raised.value.remedy


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [
        (Estimate(value=2.0, low=1.0, high=4.0, n=5, unit="×"), 1.0),
        (Estimate(value=0.5, low=0.25, high=1.0, n=5, unit="×"), 1.0),
        (Estimate(value=4.0, low=2.0, high=8.0, n=5, unit="×"), 2.0),
        (Estimate(value=1.0, low=0.5, high=2.0, n=5, unit="×"), 0.0),
        (Estimate(value=2.0, n=1, unit="×"), 0.0),
        (Estimate(value=2.0, low=2.0, high=2.0, n=5, unit="×"), math.inf),
        (Estimate(value=2.0, low=0.0, high=4.0, n=5, unit="×"), 0.0),
    ],
)
def test_significance(ratio: Estimate, expected: float) -> None:
    assert significance_of(ratio) == pytest.approx(expected)
