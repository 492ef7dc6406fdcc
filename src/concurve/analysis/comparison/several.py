"""Several runs against one base →
:class:`~concurve.findings.several.Several`. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from concurve.analysis.comparison.blocked import blocked_differences
from concurve.analysis.comparison.compare import compare_with_base
from concurve.analysis.comparison.options import DEFAULTS, Options
from concurve.errors import ComparisonError
from concurve.estimate import Estimate
from concurve.findings.cells import CellFindings, Dot
from concurve.findings.comparison import Comparison
from concurve.findings.explanation import CellExplanation
from concurve.findings.run import Report
from concurve.findings.several import CausesOfCell, Difference, Several
from concurve.terms import CellKey, Factor, Level, cell_key

#: So many runs are compared with a base at once: more curves than colours cannot be told apart.
NEWS_MAX = 7
#: The blocked time of so many cells is shown place by place, those that differ most.
BLOCKED_MAX = 4


def compare_several(
    base: Sequence[Report], news: Sequence[Sequence[Report]], options: Options = DEFAULTS
) -> Several:
    """Each of some runs against a base. Several reports on a side are sessions of one experiment;
    its curves, causes and blocked time are those of the first.

    Raises:
        ComparisonError: none or too many, one of them twice, or two that cannot be compared.
    """
    check_number(len(news))
    ids = [run.run.id for side in news for run in side]
    if twice := sorted({id_ for id_ in ids if ids.count(id_) > 1}):
        raise ComparisonError(f"run {twice[0]} is given twice", "each run once")
    found = compare_with_base(base, news, options)
    runs = [side[0] for side in (base, *news)]
    blocked, not_blocked = blocked_differences(base, news)
    factor = _free_name({name for run in runs for name in (item.name for item in run.factors)})
    return Several(
        base=found[0].base,
        news=tuple(item.new for item in found),
        comparisons=tuple(found),
        differences=tuple(_differences(found)),
        overlaid=_overlaid(runs, factor),
        run_factor=factor,
        causes=tuple(_causes(runs)),
        blocked=tuple(blocked[:BLOCKED_MAX]),
        blocked_cells=len(blocked),
        not_blocked=tuple(not_blocked),
    )


def check_number(news: int) -> None:
    """Refuse a number of runs that are not compared with a base at once.

    Raises:
        ComparisonError: none, or too many.
    """
    if not 1 <= news <= NEWS_MAX:
        raise ComparisonError(f"{news} runs against a base", f"one to {NEWS_MAX} of them at a time")


def significance_of(ratio: Estimate) -> float:
    """How many times the half of its interval a ratio is from 1, on the scale of logarithms; 0
    where it has no interval."""
    if ratio.low is None or ratio.high is None or min(ratio.low, ratio.value) <= 0:
        return 0.0
    half = (math.log(ratio.high) - math.log(ratio.low)) / 2
    away = abs(math.log(ratio.value))
    return away / half if half > 0 else math.inf


def _differences(found: Sequence[Comparison]) -> list[Difference]:
    """The cells that are faster or slower, the most significant first, and of equal ones those
    with the greater ratio."""
    differences = [
        Difference(new=item.new, cell=cell, significance=significance_of(cell.ratio))
        for item in found
        for cell in item.cells
        if cell.verdict in ("faster", "slower") and cell.ratio is not None
    ]
    return sorted(differences, key=lambda item: (-item.significance, -_size(item)))


def _size(item: Difference) -> float:
    return abs(math.log(item.cell.ratio.value)) if item.cell.ratio is not None else 0.0


def _free_name(taken: set[str]) -> str:
    """A name for the factor that tells runs apart, which none of theirs has."""
    return next(name for name in ("run", "stored run", "run ") if name not in taken)


def _overlaid(runs: Sequence[Report], factor: str) -> Report:
    """A report with the cells of all runs, each of which is a level of one more factor. What is
    found by comparing the cells of one run is not in it."""
    ids = tuple(run.run.id for run in runs)
    factors = tuple(_joined(runs))
    cells: list[CellFindings] = []
    dots: list[Dot] = []
    for run in runs:
        index = {cell.index: len(cells) + place for place, cell in enumerate(run.cells)}
        cells += [
            msgspec.structs.replace(
                cell,
                index=index[cell.index],
                parameters={factor: run.run.id, **_as_joined(cell.parameters, factors)},
                base=None if cell.base is None else index.get(cell.base),
            )
            for cell in run.cells
        ]
        dots += [
            msgspec.structs.replace(dot, cell=index[dot.cell])
            for dot in run.dots
            if dot.cell in index
        ]
    return msgspec.structs.replace(
        runs[0],
        factors=(Factor(name=factor, levels=ids), *factors),
        cells=tuple(cells),
        dots=tuple(dots),
        best=(),
        claims=(),
        scaling=(),
        explanation=None,
        shares=None,
        timelines=None,
        threads=None,
    )


def _as_joined(parameters: Mapping[str, Level], factors: Sequence[Factor]) -> dict[str, Level]:
    """The levels of a cell as the factors of all runs have them."""
    known = {item.name: {str(level): level for level in item.levels} for item in factors}
    return {name: known.get(name, {}).get(str(it), it) for name, it in parameters.items()}


def _joined(runs: Sequence[Report]) -> Iterator[Factor]:
    """The factors of all runs, each with the levels of all. A level that is a number in one run and
    a text in another one is what it is in the first."""
    known = {item.name: item for run in reversed(runs) for item in run.factors}
    names = dict.fromkeys(item.name for run in runs for item in run.factors)
    for name in names:
        levels: dict[str, Level] = {}
        for run in runs:
            for item in run.factors:
                for level in item.levels if item.name == name else ():
                    levels.setdefault(str(level), level)
        yield msgspec.structs.replace(known[name], levels=tuple(levels.values()))


def _causes(runs: Sequence[Report]) -> Iterator[CausesOfCell]:
    by_run: list[dict[CellKey, CellExplanation]] = [
        {cell_key(cell.parameters): cell for cell in run.explanation.cells}
        if run.explanation is not None
        else {}
        for run in runs
    ]
    for key in dict.fromkeys(key for cells in by_run for key in cells):
        causes = tuple(cells.get(key) for cells in by_run)
        if not any(cell is not None and _says_something(cell) for cell in causes):
            continue
        first = next(cell for cell in causes if cell is not None)
        yield CausesOfCell(parameters=first.parameters, causes=causes)


def _says_something(cell: CellExplanation) -> bool:
    """Does it name a cause, or why it cannot?"""
    return cell.cause != "none" or bool(cell.doubt)
