"""Published figures beside the new ones as rows of text: one form for every view."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from concurve.estimate import Estimate
from concurve.findings.published import Agreement, PublishedComparison, PublishedTable
from concurve.report import format as fmt

_HOW = {
    "ratio": "figure over that of its base",
    "factor": "factor as printed; ours: times as good as its base",
    "improvement": "1 + improvement as printed; ours: times as good as its base",
    "difference": "figure less that of its base",
    "order": "each on its own scale; compared is only whether a figure lies below, at or above "
    "its base",
    "none": "side by side",
}
_COUNTED: tuple[tuple[Agreement, str], ...] = (
    ("agrees", "agree"),
    ("differs", "differ"),
    ("undecided", "undecided"),
    ("not comparable", "not comparable"),
)


@dataclass(frozen=True)
class PublishedRow:
    """A published figure in words: as printed, relative to its base, and ours likewise."""

    row: str
    column: str
    printed: str
    published: str
    ours: str
    verdict: str
    reason: str

    @property
    def kind(self) -> str:
        """The verdict as one word, for style sheets."""
        return self.verdict.split(maxsplit=1)[0]

    @property
    def evidence(self) -> str:
        """Both figures in one line, or the reason why there is none of ours."""
        if not self.published:
            beside = f", ours {self.ours}" if self.ours else f": {self.reason}"
            return f"{self.printed}{beside}"
        return f"{self.published}, ours {self.ours}" if self.ours else self.reason


def published_row(figure: PublishedComparison) -> PublishedRow:
    """A figure of a published table as text."""
    ours = figure.ours
    shown = "" if ours is None else _ours(ours)
    if ours is not None and figure.compare in ("order", "none") and ours.min != ours.max:
        shown = _between(ours.min or 0.0, ours.max or 0.0, ours.unit)
    unit = "" if figure.unit == "factor" else figure.unit
    return PublishedRow(
        row=fmt.clean(figure.row),
        column=fmt.clean(figure.column),
        printed=fmt.with_unit(fmt.clean(figure.printed), "" if ":" in figure.printed else unit),
        published=""
        if figure.published is None or figure.compare == "order"
        else fmt.plain(figure.published),
        ours=shown,
        verdict=figure.verdict,
        reason=fmt.clean(figure.reason),
    )


def _between(low: float, high: float, unit: str) -> str:
    scale = fmt.scale_for([low, high], unit)
    return fmt.with_unit(f"{fmt.plain(low, scale)} to {fmt.plain(high, scale)}", scale.symbol)


def _ours(figure: Estimate) -> str:
    """``0.51 (0.49 to 0.53)``: intervals of ratios are not symmetric."""
    shown = fmt.estimate(figure)
    value = fmt.with_unit(shown.value, shown.unit)
    return f"{value} ({shown.span})" if shown.span else value


def heading(table: PublishedTable) -> str:
    """``Table 11 Degree of scaling``."""
    return fmt.clean(f"Table {table.number} {table.title}".strip())


def how(table: PublishedTable) -> str:
    """What the figures of a table are, and what they are relative to."""
    ways = dict.fromkeys(_HOW[figure.compare] for figure in table.figures)
    bases = dict.fromkeys(
        fmt.setting(figure.base) for figure in table.figures if figure.verdict == "base"
    )
    told = "; ".join(ways)
    return f"{told}. Base: {' · '.join(bases)}." if bases else f"{told}."


def counts(found: Mapping[Agreement, int]) -> str:
    """``4 agree, 1 differ``; bases are not counted."""
    return ", ".join(f"{found[name]} {word}" for name, word in _COUNTED if found.get(name))


def judged(figures: Iterable[PublishedComparison]) -> list[PublishedRow]:
    """The figures that were held against ours."""
    return [
        published_row(figure)
        for figure in figures
        if figure.verdict in ("agrees", "differs", "undecided")
    ]


def not_comparable(table: PublishedTable) -> str:
    """``Not comparable: 2 × nothing is measured for it here.``; empty where there is none."""
    reasons = beside(table.figures)
    told = "; ".join(f"{number} × {reason}" for reason, number in reasons.items())
    return f"Not comparable: {told}." if told else ""


def beside(figures: Iterable[PublishedComparison]) -> dict[str, int]:
    """The reasons why the others were not, and how often each; bases left out."""
    reasons: dict[str, int] = {}
    for figure in figures:
        if figure.verdict == "not comparable":
            reason = fmt.clean(figure.reason)
            reasons[reason] = reasons.get(reason, 0) + 1
    return reasons
