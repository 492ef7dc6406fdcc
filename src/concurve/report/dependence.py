"""On what the ratios of a simulation hang, as rows of text: one form for every view."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

from rich.text import Text

from concurve.estimate import Estimate
from concurve.findings.claims import Dependence
from concurve.findings.run import Findings
from concurve.report import format as fmt
from concurve.report.prose import wrapped

TITLE = "On what the ratios hang"
HEADING = ("ratio of the claim", "assumption", "at", "ratio", "times the first")
SUBJECT = (
    "Each assumption by itself: the geometric mean over all settings of the others, and how many "
    "times that at the first level it is, both block by block."
)


class DependenceRow(NamedTuple):
    """A ratio at a level of an assumption. ``says`` and ``factor`` are empty where they are those
    of the row above."""

    says: str
    factor: str
    level: str
    ratio: str
    change: str


def dependence_rows(findings: Findings) -> list[DependenceRow]:
    """Claim by claim, assumption by assumption."""
    pairs = itertools.pairwise((None, *findings.dependences))
    return [_row(item, above) for above, item in pairs if item is not None]


def to_markdown(findings: Findings) -> Iterator[str]:
    """The rows as a table; nothing if there are none."""
    from concurve.report.markdown import grid, text

    rows = [[text(word) for word in row] for row in dependence_rows(findings)]
    if rows:
        yield from grid(HEADING, rows)
        yield ""
        yield SUBJECT
        yield ""


def lines(findings: Findings, width: int) -> Iterator[Text]:
    """The rows as lines of a terminal, none wider than ``width`` cells."""
    rows = dependence_rows(findings)
    if rows:
        yield Text("on what the ratios hang, each assumption by itself:")
    for item, row in zip(findings.dependences, rows, strict=True):
        if row.says:
            yield from wrapped(Text(row.says), width)
        change = f", × {row.change}" if row.change else ""
        told = f"{fmt.clean(item.factor)}={row.level}: {row.ratio}{change}"
        yield from wrapped(Text(told, "dim"), width, indent="  ")


def _row(item: Dependence, above: Dependence | None) -> DependenceRow:
    is_same_claim = above is not None and above.claim == item.claim
    is_same_factor = is_same_claim and above is not None and above.factor == item.factor
    return DependenceRow(
        says="" if is_same_claim else fmt.clean(item.says),
        factor="" if is_same_factor else fmt.clean(item.factor),
        level=fmt.clean(str(item.level)),
        ratio=_text(item.ratio),
        change=_text(item.change) if item.change else "",
    )


def _text(estimate: Estimate) -> str:
    return fmt.estimate(estimate, fmt.scale_for([estimate.value], estimate.unit)).text
