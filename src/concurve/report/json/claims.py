"""Claims of the source, on what their ratios hang, and published figures."""

from __future__ import annotations

import msgspec

from concurve.findings.claims import ClaimFinding, Dependence
from concurve.findings.run import Findings
from concurve.report.json.figures import Indicator, indicator_of
from concurve.terms import Level


class Claim(msgspec.Struct, frozen=True, omit_defaults=True):
    """A claim of the source with its verdict."""

    id: str
    says: str
    source: str
    kind: str
    verdict: str
    reason: str
    threshold: str = ""
    indicator: str = ""
    estimate: Indicator | None = None
    published: float | None = None
    cell: dict[str, Level] = {}
    doubt: str = ""


class Published(msgspec.Struct, frozen=True, omit_defaults=True):
    """A published figure beside ours."""

    table: str
    title: str
    row: str
    column: str
    printed: str
    unit: str
    indicator: str
    parameters: dict[str, Level]
    base: dict[str, Level]
    compare: str
    verdict: str
    reason: str
    published: float | None = None
    ours: Indicator | None = None


class DependenceEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a ratio hangs on an assumption."""

    claim: str
    factor: str
    level: Level
    settings: int
    ratio: Indicator | None
    change: Indicator | None = None


def claim_of(claim: ClaimFinding) -> Claim:
    """A claim as it is exported."""
    return Claim(
        id=claim.id,
        says=claim.says,
        source=claim.source,
        kind=claim.kind,
        verdict=claim.verdict,
        reason=claim.reason,
        threshold=claim.threshold,
        indicator=claim.indicator,
        estimate=indicator_of(claim.estimate) if claim.estimate else None,
        published=claim.published,
        cell=claim.cell,
        doubt=claim.doubt,
    )


def dependence_of(item: Dependence) -> DependenceEntry:
    """A dependence as it is exported."""
    return DependenceEntry(
        claim=item.claim,
        factor=item.factor,
        level=item.level,
        settings=item.settings,
        ratio=indicator_of(item.ratio),
        change=indicator_of(item.change) if item.change else None,
    )


def published_figures(findings: Findings) -> list[Published]:
    """The figures of all tables, one after another."""
    return [
        Published(
            table=table.number,
            title=table.title,
            row=figure.row,
            column=figure.column,
            printed=figure.printed,
            unit=figure.unit,
            indicator=figure.indicator,
            parameters=figure.parameters,
            base=figure.base,
            compare=figure.compare,
            verdict=figure.verdict,
            reason=figure.reason,
            published=figure.published,
            ours=indicator_of(figure.ours) if figure.ours else None,
        )
        for table in findings.published
        for figure in table.figures
    ]
