"""Which of the cells that were explained a reader is told of first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from concurve.findings.best import BestFinding
from concurve.findings.cells import CellFindings
from concurve.findings.explanation import (
    CPUS,
    NOTHING_LOST_MAX,
    CellExplanation,
    Explanation,
    Limit,
)
from concurve.findings.run import Findings
from concurve.terms import Level

#: Causes that say nothing of the program.
_NO_NEWS = ("none", "in doubt", "contamination")


def recommended_below(findings: Findings, limit: Limit) -> dict[str, Level]:
    """The recommended level of the work factor, if the cell that is explained has a greater one:
    more brings nothing from there on. Else empty."""
    best = _best_of(findings, limit.under)
    level = best.recommended if best is not None else None
    return _below(findings, level, limit.cell.parameters)


def limits_told(findings: Findings, explanation: Explanation) -> tuple[Limit, ...]:
    """What limits the cells that a reader is told of, by the explanation of all cells."""
    return tuple(
        told(findings, Limit(group, cell), explanation.cells)
        for group, wanted in findings.limits_by
        for cell in explanation.cells
        if cell.parameters == wanted.parameters
    )


def named_cells(findings: Findings) -> Iterator[CellFindings]:
    """The cells of the settings that a reader is told of, recommended ones or those that seem best,
    where a cell with more concurrency is the one whose limit is told else."""
    for group, greatest in findings.limits_by:
        if level := _named_below(findings, group, greatest.parameters):
            wanted = {**greatest.parameters, **level}
            yield from (cell for cell in findings.cells if cell.parameters == wanted)


def told(findings: Findings, limit: Limit, cells: Iterable[CellExplanation]) -> Limit:
    """What is told where ``limit`` is of the cell with the most concurrency: the limit of the
    setting that a reader is told to use, or that seems best, where that is a smaller one, and then
    that of the greatest, where it is another one. That no cause was found of what it loses is told,
    too: the limit of another setting is no answer to it. A base loses nothing, and of one it may be
    known only that a part of a server is used up."""
    greatest = _judged(findings, limit)
    level = _named_below(findings, limit.under, limit.cell.parameters)
    if not level:
        return greatest
    wanted = {**limit.cell.parameters, **level}
    found = next((cell for cell in cells if cell.parameters == wanted), None)
    if found is None:
        return greatest
    named = _judged(findings, limit._replace(cell=found))
    is_known = found.cause not in _NO_NEWS or found.is_at_ceiling
    if found.base is None and (found.few or not is_known):
        return greatest
    is_other = not greatest.cell.few and _is_news(greatest.cell, found)
    return named._replace(beyond=greatest.cell if is_other else None)


def _is_news(greatest: CellExplanation, named: CellExplanation) -> bool:
    """Does something else limit the greatest setting? That more workers share the CPUs at whose
    ceiling the named one is, is told, too."""
    if greatest.cause in _NO_NEWS:
        return share_cpus(greatest, named)
    is_other = (greatest.cause, greatest.limit) != (named.cause, named.limit)
    return is_other or share_cpus(greatest, named)


def share_cpus(greatest: CellExplanation, named: CellExplanation) -> bool:
    """Is all that can be said of the greatest setting that more workers share the CPUs at whose
    ceiling the named one is?"""
    if not named.is_at_ceiling:
        return False
    is_of_cpus = greatest.cause == "cpu" and greatest.limit in ("", CPUS)
    is_alike = greatest.ceiling == named.ceiling and greatest.cause == named.cause
    return is_of_cpus or is_alike or greatest.is_at_ceiling


def _named_below(
    findings: Findings, group: dict[str, Level], parameters: dict[str, Level]
) -> dict[str, Level]:
    """The level of the work factor in the setting that a reader is told of, if it is below that of
    these parameters; else empty."""
    best = _best_of(findings, group)
    return _below(findings, best.named if best is not None else None, parameters)


def _best_of(findings: Findings, group: dict[str, Level]) -> BestFinding | None:
    return next((item for item in findings.best if item.group == group), None)


def _below(
    findings: Findings, setting: dict[str, Level] | None, parameters: dict[str, Level]
) -> dict[str, Level]:
    work = findings.work
    if setting is None or work is None:
        return {}
    level, own = setting.get(work.name), parameters.get(work.name)
    is_below = isinstance(level, int | float) and isinstance(own, int | float) and level < own
    return {work.name: level} if level is not None and is_below else {}


def _judged(findings: Findings, limit: Limit) -> Limit:
    """The limit with whether hardly any of the speed-up is lost that so many workers can give, and
    surely little."""
    cell = limit.cell
    figures = findings.cells[cell.index]
    efficiency = figures.indicators.get("efficiency")
    is_compared = figures.base not in (None, figures.index)
    if cell.cause != "none" or not is_compared or efficiency is None or efficiency.in_doubt:
        return limit
    is_sure = efficiency.low is not None and efficiency.low >= 1 - 2 * NOTHING_LOST_MAX
    return limit._replace(is_full=is_sure and efficiency.value >= 1 - NOTHING_LOST_MAX)
