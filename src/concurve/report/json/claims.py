"""Claims of the source, what their ratios depend on, and published figures."""

from __future__ import annotations

from typing import Annotated

import msgspec

from concurve.fields import Positive, about
from concurve.findings.claims import AssumedRatio, ClaimFinding, Dependence, VerdictName
from concurve.findings.published import Agreement, Compare
from concurve.findings.run import Findings
from concurve.report.json.figures import Indicator, indicator_of
from concurve.terms import Level


class Claim(msgspec.Struct, frozen=True, omit_defaults=True):
    """A claim of the study's source, with what this run says of it."""

    id: str
    says: str
    source: str
    kind: str
    verdict: VerdictName
    reason: str
    threshold: str = ""
    indicator: Annotated[str, about("The indicator of the claim.")] = ""
    estimate: Indicator | None = None
    published: float | None = None
    cell: Annotated[
        dict[str, Level],
        about("Levels of the cell that it is about; left out if it is about several."),
    ] = {}
    doubt: Annotated[str, about("Why a verdict was withheld on a machine that was not quiet.")] = ""
    family: Annotated[
        int, about("Claims whose verdicts hold together with 95 % (Holm); 0: not corrected.")
    ] = 0
    trials: Annotated[
        Positive | None, about("Trials of each cell that would decide with a power of 80 %.")
    ] = None
    setting: Annotated[
        dict[str, Level], about("Levels of the factors at each of which the claim is judged.")
    ] = {}
    differ: Annotated[
        Indicator | None,
        about(
            "By which share the cells lie apart that the claim needs to differ: the greatest less "
            "the least, over the least.",
            type="object",
        ),
    ] = None
    differ_by: Annotated[
        float | None,
        about("Where these lie no further apart than by this share, the claim cannot be decided."),
    ] = None


class Published(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A figure of the source beside ours, both relative to their own base cell."""

    table: Annotated[str, about("Its number in the source.")]
    title: str
    row: str
    column: str
    printed: Annotated[str, about("As the source prints it.")]
    unit: str
    indicator: str
    parameters: dict[str, Level]
    base: dict[str, Level]
    compare: Annotated[
        Compare,
        about(
            "ratio: figure over base; factor: base over figure where lower is better; "
            "improvement: such a factor, printed as percent above 1; difference: figure minus "
            "base; order: below, at or above the base, each on its own scale; none: side by side."
        ),
    ]
    verdict: Agreement
    reason: str
    published: Annotated[float | None, about("Relative to its base; for order as printed.")] = None
    ours: Indicator | None = None


class DependenceEntry(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """How the ratio of a claim depends on an assumption of a simulation."""

    claim: Annotated[str, about("Its id in the study.")]
    factor: str
    level: Level
    settings: Positive
    ratio: Annotated[Indicator | None, about(type="object")]
    change: Indicator | None = None
    family: Annotated[int, about("Changes that hold together with 95 % (Holm).")] = 0


class AssumedRatioEntry(
    msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True
):
    """The ratio of two levels of a factor in a simulation, at one level of an assumption."""

    indicator: str
    factor: str
    base: Annotated[Level, about("The level of the factor that the ratio is to.")]
    level: Level
    assumption: str
    at: Annotated[Level, about("The level of the assumption.")]
    settings: Positive
    ratio: Annotated[Indicator | None, about(type="object")]
    published: Annotated[float | None, about("The ratio that the source has.")] = None
    alike_within: Annotated[
        float | None, about("Ratios closer to 1 than by this share decide no claim.")
    ] = None


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
        family=claim.family,
        trials=claim.trials,
        setting=claim.setting,
        differ=indicator_of(claim.differ) if claim.differ else None,
        differ_by=claim.differ_by,
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
        family=item.family,
    )


def assumed_ratio_of(item: AssumedRatio) -> AssumedRatioEntry:
    """A ratio at a level of an assumption, as it is exported."""
    return AssumedRatioEntry(
        indicator=item.indicator,
        factor=item.factor,
        base=item.base,
        level=item.level,
        assumption=item.assumption,
        at=item.at,
        settings=item.settings,
        ratio=indicator_of(item.ratio),
        published=item.published,
        alike_within=item.alike_within,
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
