"""Did all settings answer with the same? Pure.

The figure ``response_bytes`` of a load is the mean size of a response. Where it differs among the
cells, some setting answers with another page, compressed or with an error page, and its rate is
not that of the same work.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from concurve.analysis.sentences.naming import name
from concurve.definition.indicator_names import split_name
from concurve.findings.cells import CellFindings
from concurve.findings.run import Finding
from concurve.planning.plan import Plan

#: The figure, of whichever role.
FIGURE = "response_bytes"

#: Sizes differ by more than this factor: a date in a page, or three printed digits, makes less.
_DIFFERENT = 1.05


def size_sentences(plan: Plan, cells: Sequence[CellFindings]) -> Iterator[Finding]:
    """A warning for each load whose responses differ in size among the cells."""
    named = dict.fromkeys(every for cell in cells for every in cell.indicators)
    for figure in (every for every in named if split_name(every)[1] == FIGURE):
        sizes = [
            (found.value, cell)
            for cell in cells
            if (found := cell.indicators.get(figure)) is not None and found.value > 0
        ]
        if not sizes:
            continue
        least = min(sizes, key=lambda it: it[0])
        most = max(sizes, key=lambda it: it[0])
        if most[0] > _DIFFERENT * least[0]:
            yield Finding(
                kind="warning",
                sentence=f"The responses differ in size: {most[0]:,.0f} bytes in the mean with "
                f"{name(plan, most[1].parameters)}, {least[0]:,.0f} with "
                f"{name(plan, least[1].parameters)}. "
                "Is each the answer that was meant? Smaller ones are less work.",
                subject=figure,
            )
