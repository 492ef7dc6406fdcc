"""What a run measured, where it leaves no setting to choose: the figures of its cells.

Nothing is chosen where each factor has one level, or is a condition: a server that runs already,
say, has the settings that it has. The answer is then the figure that was asked for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from concurve import words
from concurve.analysis.sentences.naming import varied
from concurve.estimate import Estimate
from concurve.findings.cells import CellFindings
from concurve.planning.plan import Plan, describe
from concurve.terms import IndicatorInfo

#: So many cells are named, each with its figure; of more, the two ends.
CELLS_NAMED = 4


def measured(plan: Plan, cells: Sequence[CellFindings], asked: IndicatorInfo) -> Iterator[str]:
    """``Time per lock: 9.31 µs [9.10, 9.52] with processes=50.``, by the indicator that is asked
    for; nothing where a run compares settings, or no cell has the figure."""
    name = asked.name
    found = [(cell, cell.indicators[name]) for cell in cells if name in cell.indicators]
    if not found or any(_is_chosen(plan, factor) for factor in plan.cells[0].parameters):
        return
    label = asked.label or name
    lead = f"{label[:1].upper()}{label[1:]}"
    if len(found) <= CELLS_NAMED:
        yield f"{lead}: {words.listed([_figure(plan, *item) for item in found])}."
    else:
        ordered = sorted(found, key=lambda item: item[1].value)
        least, most = (_figure(plan, *item) for item in (ordered[0], ordered[-1]))
        yield f"{lead}: from {least} to {most}, in {len(found)} cells."
    if plan.work is not None:
        yield (
            f"Which level of {plan.work} is best cannot be said: only "
            f"{plan.work}={plan.cells[0].parameters[plan.work]} was measured. Measure "
            "another one in a run of its own, then: concurve compare RUN1 RUN2 (the ids that "
            "concurve runs lists)."
        )


def _is_chosen(plan: Plan, factor: str) -> bool:
    """Does the run compare levels of this factor, for its reader to choose one?"""
    levels = {cell.parameters[factor] for cell in plan.cells}
    return len(levels) > 1 and factor not in plan.study.conditions


def _figure(plan: Plan, cell: CellFindings, figure: Estimate) -> str:
    """``9.31 µs [9.10, 9.52] with processes=50``."""
    text = words.quantity_with_interval(figure.value, figure.low, figure.high, figure.unit)
    doubt = " (in doubt)" if figure.in_doubt else ""
    where = varied(plan, cell.parameters)
    return f"{text}{f' with {describe(where)}' if where else ''}{doubt}"
