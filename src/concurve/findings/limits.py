"""Which of the cells that were explained a reader is told of first."""

from __future__ import annotations

from collections.abc import Iterable

from concurve.findings.cells import CellFindings
from concurve.findings.explanation import CPUS, NOTHING_LOST_MAX, CellExplanation, Limit
from concurve.findings.run import Findings
from concurve.terms import Level

#: Causes that a reader is not told of in place of another one.
_NO_NEWS = ("cpu", "none", "in doubt", "contamination")


def recommended_below(findings: Findings, limit: Limit) -> dict[str, Level]:
    """The recommended level of the work factor, if the cell that is explained has a greater one:
    more brings nothing from there on. Else empty."""
    best = next((item for item in findings.best if item.group == limit.under), None)
    work = findings.work
    if best is None or best.recommended is None or work is None:
        return {}
    level, own = best.recommended.get(work.name), limit.cell.parameters.get(work.name)
    is_below = isinstance(level, int | float) and isinstance(own, int | float) and level < own
    return {work.name: level} if level is not None and is_below else {}


def recommended_cells(findings: Findings) -> Iterable[CellFindings]:
    """The cells of the recommended settings, which may be told of in place of greater ones."""
    for best in findings.best:
        if best.recommended is not None:
            wanted = {**best.group, **best.recommended}.items()
            yield from (cell for cell in findings.cells if wanted <= cell.parameters.items())


def told(findings: Findings, limit: Limit, cells: Iterable[CellExplanation]) -> Limit:
    """What is told of a greatest level: where that is only that more workers than CPUs find the
    CPUs used up, which the recommendation of a smaller one says already, what keeps that one from
    the speed-up that was possible, if that is known."""
    if limit.cell.cause == "none" and _is_full(findings, limit.cell):
        return limit._replace(is_full=True)
    level = recommended_below(findings, limit)
    if not level or limit.cell.cause != "cpu" or limit.cell.limit not in ("", CPUS):
        return limit
    wanted = {**limit.cell.parameters, **level}
    found = next((cell for cell in cells if cell.parameters == wanted), None)
    if found is None or found.cause in _NO_NEWS or found.loses_nothing or found.few:
        return limit
    return limit._replace(cell=found)


def _is_full(findings: Findings, cell: CellExplanation) -> bool:
    """Is hardly any of the speed-up lost that so many workers can give, and surely little?"""
    figures = findings.cells[cell.index]
    efficiency = figures.indicators.get("efficiency")
    if figures.base in (None, figures.index) or efficiency is None or efficiency.in_doubt:
        return False
    is_sure = efficiency.low is not None and efficiency.low >= 1 - 2 * NOTHING_LOST_MAX
    return is_sure and efficiency.value >= 1 - NOTHING_LOST_MAX
