"""The claims of the source, with their verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from concurve.findings.claims import ClaimFinding
from concurve.findings.explanation import Explanation
from concurve.findings.repeats import repeats_options
from concurve.findings.run import Findings, Report
from concurve.report import format as fmt
from concurve.report.document import Column, Paragraph, Role, Section, Table, Text, Tone
from concurve.report.sections.limits import named_cause
from concurve.terms import cell_key

TONES = {
    "supported": Tone.GOOD,
    "refuted": Tone.BAD,
    "undecided": Tone.WARNING,
    "cannot be decided": Tone.SOFT,
    "not testable here": Tone.SOFT,
}


def section(report: Report) -> Section | None:
    """The claims in a full report."""
    return brief(report, report.explanation)


def brief(findings: Findings, explanation: Explanation | None = None) -> Section | None:
    """A row a claim: our figure with its interval, the bound, the published figure; why a verdict
    was withheld, and what limits the cell that it is about, where the records were explained."""
    claims = findings.claims
    if not claims:
        return None
    limits = [_limit(claim, findings.primary, explanation) for claim in claims]
    columns = [
        Column(
            "verdict", [Text(claim.verdict, TONES[claim.verdict]) for claim in claims], Role.KEY
        ),
        Column("claim", [claim.says for claim in claims], Role.KEY),
        Column("where", [claim.source for claim in claims]),
        Column("measured", [_measured(claim) for claim in claims]),
        Column("asked for", [claim.threshold for claim in claims]),
        Column("published", [_published(claim) for claim in claims]),
    ]
    if any(limits):
        columns.append(Column("what limits it", limits, short="what limits it:"))
    tones = tuple(TONES[claim.verdict] for claim in claims)
    table = Table(tuple(columns), tones, title="One row a claim.", as_text=True)
    return Section(
        "Claims of the source",
        (table, *_what_decides(findings), *_together(claims)),
        anchor="claims",
        folded=True,
        summary=counted(claims),
    )


def counted(claims: Sequence[ClaimFinding]) -> str:
    """How many claims have each verdict: ``1 supported, 3 undecided``."""
    found: Counter[str] = Counter(claim.verdict for claim in claims)
    return ", ".join(f"{found[name]} {name}" for name in TONES if found[name])


def _what_decides(findings: Findings) -> Iterator[Paragraph]:
    """How many trials, and how much time, would decide the undecided claims."""
    if not findings.deciding:
        return
    undecided = [claim for claim in findings.claims if claim.verdict == "undecided"]
    unknown = sum(claim.trials is None for claim in undecided)
    last = findings.deciding[-1]
    options = repeats_options(last.trials, last.seconds, findings.run.allowed_seconds)
    said = [
        f"{fmt.count(item.trials, 'trial')} of each cell would decide {item.claims}"
        f"{'' if item.seconds is None else f' (about {fmt.duration(item.seconds)})'}"
        for item in findings.deciding
    ]
    beyond = f"; for {unknown} no number can be computed" if unknown else ""
    yield Paragraph(
        f"Of {fmt.count(len(undecided), 'undecided claim')}, {', '.join(said)}{beyond}. That has a "
        f"power of 80 %, if the truth is as measured: {options} in a new run."
    )


def _together(claims: Sequence[ClaimFinding]) -> Iterator[Paragraph]:
    """What the verdicts are corrected for."""
    family = max(claim.family for claim in claims)
    if family > 1:
        yield Paragraph(
            f"Verdicts hold together at 95 %: corrected for {family} claims (Holm). An interval is "
            "the one that decided among them, so it is wider than one at 95 % alone.",
            Tone.SOFT,
        )


def _measured(claim: ClaimFinding) -> tuple[Text, ...]:
    """The figure with the reason for a doubt, or for no verdict; or why there is no figure."""
    figure = claim.estimate
    if figure is None:
        return (Text(claim.reason),)
    shown = fmt.estimate(figure, fmt.scale_for([figure.value], figure.unit)).text
    is_open = claim.verdict in ("undecided", "cannot be decided")
    why = claim.doubt or (claim.reason if is_open else "")
    return (Text(shown), Text(why, Tone.SOFT)) if why else (Text(shown),)


def _published(claim: ClaimFinding) -> str:
    return "" if claim.published is None else f"{claim.published:g}"


def _limit(claim: ClaimFinding, primary: str, explanation: Explanation | None) -> str:
    """What limits the cell of a claim on time."""
    if explanation is None or claim.indicator not in (primary, "cpu_seconds"):
        return ""
    cells = [
        cell
        for cell in explanation.cells
        if claim.cell and cell_key(claim.cell) <= cell_key(cell.parameters)
    ]
    if len(cells) != 1:
        return ""
    (cell,) = cells
    is_whole = cell.is_not_found or cell.is_at_ceiling
    return f"{named_cause(cell) if is_whole else cell.told_cause}: {cell.evidence}"
