"""What the claims of a simulation come to over the levels of what it assumes most of all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from concurve.findings.claims import AssumedRatio, ClaimFinding
from concurve.findings.run import Findings
from concurve.report import format as fmt
from concurve.report.charts.assumed import assumed
from concurve.report.document import Block, Cell, Column, Missing, Role, Section, Table, Text
from concurve.report.sections.claims import TONES
from concurve.terms import Level


def section(findings: Findings) -> Section | None:
    """For each comparison of the claims its ratios and their verdicts, at each level of the
    assumption that changes them most: as a chart, and as a table."""
    if not findings.assumed_ratios:
        return None
    blocks: list[Block] = []
    names: set[str] = set()
    for _, group in groupby(
        findings.assumed_ratios, lambda item: (item.indicator, item.factor, item.base)
    ):
        items = list(group)
        most = [item for item in items if item.assumption == items[0].assumption]
        names.add(items[0].assumption)
        label = findings.indicator(most[0].indicator).label or most[0].indicator
        blocks += [assumed(most, label), _table(most, findings.claims)]
    of = f" of {fmt.clean(names.pop())}" if len(names) == 1 else " of what is assumed"
    return Section(f"Verdicts as a function{of}", tuple(blocks), anchor="assumed")


def _table(items: Sequence[AssumedRatio], claims: Sequence[ClaimFinding]) -> Table:
    """A row a level of the assumption: every ratio, and the verdicts on every claim."""
    first = items[0]
    at = list(dict.fromkeys(item.at for item in items))
    ratios = {(item.level, item.at): item for item in items}
    columns = [Column(first.assumption, [fmt.level(level) for level in at], Role.KEY)]
    for level in dict.fromkeys(item.level for item in items):
        cells = [_ratio(ratios.get((level, place))) for place in at]
        columns.append(Column(f"{fmt.level(level)} / {fmt.level(first.base)}", cells))
    columns += _verdicts(first.assumption, at, claims)
    title = f"One row a level of {first.assumption}: ratios, and the verdicts on each claim."
    return Table(tuple(columns), title=title, as_text=True)


def _ratio(item: AssumedRatio | None) -> Cell:
    return Missing("it was not run") if item is None else fmt.estimate(item.ratio).text


def _verdicts(
    assumption: str, at: Sequence[Level], claims: Sequence[ClaimFinding]
) -> Iterator[Column]:
    """A column a claim that is judged at each of these levels."""
    judged = [claim for claim in claims if assumption in claim.setting]
    for name in dict.fromkeys(claim.claim for claim in judged):
        own = [claim for claim in judged if claim.claim == name]
        cells: list[Cell] = []
        for level in at:
            counts = Counter(c.verdict for c in own if c.setting[assumption] == level)
            shown = tuple(
                Text(verdict if counts.total() == 1 else f"{verdict} ({number})", TONES[verdict])
                for verdict, number in counts.most_common()
            )
            cells.append(shown or Missing("it was not judged"))
        yield Column(f"claim {name}", cells)
