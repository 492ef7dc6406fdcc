"""How the ratios of a simulation depend on its assumptions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from concurve.estimate import Estimate
from concurve.findings.claims import Dependence
from concurve.findings.run import Findings
from concurve.report import format as fmt
from concurve.report.document import Block, Column, Paragraph, Role, Section, Table, Tone

_HOW = (
    "Each assumption alone: the geometric mean over all settings of the others, and this mean "
    "divided by that at the first level, both block by block (signed ranks)."
)


def section(findings: Findings) -> Section | None:
    """Claim by claim the ratio at each level of each assumption."""
    if not findings.dependences:
        return None
    blocks: list[Block] = []
    for _, group in groupby(findings.dependences, lambda item: item.claim):
        items = list(group)
        blocks += [Paragraph(items[0].says), _table(items)]
    family = max(item.family for item in findings.dependences)
    blocks.append(Paragraph(_HOW, Tone.SOFT))
    if family > 1:
        blocks.append(
            Paragraph(
                f"What is said of the changes holds together at 95 %: corrected for {family} "
                "comparisons (Holm).",
                Tone.SOFT,
            )
        )
    return Section("What the ratios depend on", tuple(blocks), anchor="dependences", folded=True)


def _table(items: Sequence[Dependence]) -> Table:
    above = (None, *items)
    factors = [
        "" if before is not None and before.factor == item.factor else item.factor
        for before, item in zip(above, items, strict=False)
    ]
    return Table(
        (
            Column("assumption", factors, Role.KEY),
            Column("at", [str(item.level) for item in items], Role.KEY),
            Column("ratio of the claim", [_shown(item.ratio) for item in items], short="ratio"),
            Column("times the first", [_shown(item.change) for item in items]),
        )
    )


def _shown(figure: Estimate | None) -> str:
    if figure is None:
        return ""
    return fmt.estimate(figure, fmt.scale_for([figure.value], figure.unit)).text
