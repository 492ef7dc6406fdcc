"""Claims and their verdicts as rows of text: one form for every view."""

from __future__ import annotations

from dataclasses import dataclass

from concurve.findings import ClaimFinding, Findings
from concurve.report import format as fmt


@dataclass(frozen=True)
class ClaimRow:
    """A claim in words: our figure with its interval, the bound, the published figure."""

    id: str
    says: str
    verdict: str
    figure: str
    threshold: str
    published: str
    reason: str
    source: str

    @property
    def evidence(self) -> str:
        """Figure, bound and published figure in one line; the reason where there is no figure."""
        if not self.figure:
            return self.reason
        parts = [self.figure, self.threshold and f"asked for {self.threshold}"]
        parts.append(self.published and f"published {self.published}")
        return ", ".join(filter(None, parts))


def claim_rows(findings: Findings) -> list[ClaimRow]:
    """The claims of a run in the order of the study."""
    return [_row(claim) for claim in findings.claims]


def _row(claim: ClaimFinding) -> ClaimRow:
    return ClaimRow(
        id=fmt.clean(claim.id),
        says=fmt.clean(claim.says),
        verdict=claim.verdict,
        figure=_figure(claim),
        threshold=fmt.clean(claim.threshold),
        published="" if claim.published is None else f"{claim.published:g}",
        reason=fmt.clean(claim.reason),
        source=fmt.clean(claim.source),
    )


def _figure(claim: ClaimFinding) -> str:
    estimate = claim.estimate
    if estimate is None:
        return ""
    text = fmt.estimate(estimate, fmt.scale_for([estimate.value], estimate.unit)).text
    return text
