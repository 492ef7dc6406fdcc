"""Claims and their verdicts as rows of text: one form for every view."""

from __future__ import annotations

from dataclasses import dataclass

from concurve.findings.claims import ClaimFinding
from concurve.findings.run import Findings
from concurve.report import format as fmt


@dataclass(frozen=True)
class ClaimRow:
    """A claim in words: our figure with its interval, the bound, the published figure; why a
    verdict was withheld, and what limits the cell that it is about."""

    id: str
    says: str
    verdict: str
    figure: str
    threshold: str
    published: str
    reason: str
    source: str
    doubt: str
    limit: str

    @property
    def evidence(self) -> str:
        """Figure, bound and published figure in one line; the reason where there is no figure."""
        if not self.figure:
            return self.reason
        parts = [self.figure, self.threshold and f"asked for {self.threshold}"]
        parts.append(self.published and f"published {self.published}")
        parts.append(self.doubt)
        return ", ".join(filter(None, parts))


def claim_rows(findings: Findings) -> list[ClaimRow]:
    """The claims of a run in the order of the study."""
    return [_row(claim, findings) for claim in findings.claims]


def _row(claim: ClaimFinding, findings: Findings) -> ClaimRow:
    return ClaimRow(
        id=fmt.clean(claim.id),
        says=fmt.clean(claim.says),
        verdict=claim.verdict,
        figure=_figure(claim),
        threshold=fmt.clean(claim.threshold),
        published="" if claim.published is None else f"{claim.published:g}",
        reason=fmt.clean(claim.reason),
        source=fmt.clean(claim.source),
        doubt=fmt.clean(claim.doubt) if claim.estimate else "",
        limit=fmt.clean(_limit(claim, findings)),
    )


def _limit(claim: ClaimFinding, findings: Findings) -> str:
    """What limits the cell of a claim on time, where the records were read."""
    if findings.explanation is None or claim.indicator not in (findings.primary, "cpu_seconds"):
        return ""
    cells = [
        cell
        for cell in findings.explanation.cells
        if claim.cell and claim.cell.items() <= cell.parameters.items()
    ]
    return f"{cells[0].cause}: {cells[0].evidence}" if len(cells) == 1 else ""


def _figure(claim: ClaimFinding) -> str:
    estimate = claim.estimate
    if estimate is None:
        return ""
    text = fmt.estimate(estimate, fmt.scale_for([estimate.value], estimate.unit)).text
    return text
