"""Published figures beside the new ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from concurve.estimate import Estimate
from concurve.findings.published import Agreement, PublishedComparison, PublishedTable
from concurve.findings.run import Findings
from concurve.report import format as fmt
from concurve.report.document import (
    Block,
    Caption,
    Collapsible,
    Column,
    Detail,
    Missing,
    Paragraph,
    Role,
    Section,
    Table,
    Text,
    Tone,
)

_HOW = {
    "ratio": "figure over that of its base",
    "factor": "factor as printed; ours: times as good as its base",
    "improvement": "1 + improvement as printed; ours: times as good as its base",
    "difference": "figure minus that of its base",
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
_JUDGED: tuple[Agreement, ...] = ("agrees", "differs", "undecided")
_TONES = {"agrees": Tone.GOOD, "differs": Tone.BAD, "undecided": Tone.WARNING}


def section(findings: Findings) -> Section | None:
    """Table by table as the source has them; in a brief report what was held against ours."""
    if not findings.published:
        return None
    blocks = [block for table in findings.published for block in (*_brief(table), *_full(table))]
    return Section(
        "Published figures beside the new ones",
        tuple(blocks),
        anchor="published",
        brief_title="Published figures, relative to their base",
        folded=True,
        summary=counts(summed(table.counts() for table in findings.published)),
    )


def summed(found: Iterable[Mapping[Agreement, int]]) -> dict[Agreement, int]:
    """The sum of counts by agreement."""
    total: Counter[Agreement] = Counter()
    for counted in found:
        total.update(counted)
    return dict(total)


def _brief(contents: PublishedTable) -> Iterator[Block]:
    judged = [figure for figure in contents.figures if figure.verdict in _JUDGED]
    reasons = _reasons(contents.figures)
    # If no figure is compared, always for the same reason, one line is enough.
    alone = next(iter(reasons)) if not judged and len(reasons) == 1 else ""
    heading = f"Table {contents.number} {contents.title}".strip()
    parts = [heading, counts(contents.counts()), alone]
    tone = Tone.SOFT if alone else Tone.PLAIN
    yield Paragraph(": ".join(filter(None, parts)), tone, detail=Detail.BRIEF)
    if judged:
        columns = _columns(judged)
        verdict = Column("verdict", [figure.verdict for figure in judged], Role.KEY)
        kept = (verdict, *columns[:2], *columns[3:5])
        yield Table(kept, _tones(judged), as_text=True, detail=Detail.BRIEF)
    for reason, number in reasons.items() if not alone else ():
        text = f"{fmt.count(number, 'figure')} not comparable: {reason}"
        yield Paragraph(text, Tone.SOFT, detail=Detail.BRIEF)


def _full(contents: PublishedTable) -> Iterator[Block]:
    figures = contents.figures
    label = f"Table {contents.number}" if contents.number else ""
    yield Caption(contents.title, label, detail=Detail.FULL)
    table = Table(_columns(figures), _tones(figures), crossed=True)
    blocks = (table, Paragraph(_how_to_read(contents), Tone.SOFT))
    is_judged = any(figure.verdict in _JUDGED for figure in figures)
    summary = f"{fmt.count(len(figures), 'figure')} of the source"
    summary += "" if is_judged else ", none of them compared with ours"
    yield Collapsible(summary, blocks, is_judged, detail=Detail.FULL)
    from concurve.report.charts.published import comparison_chart

    chart = comparison_chart(contents)
    if chart is not None:
        yield chart


def _columns(figures: Sequence[PublishedComparison]) -> tuple[Column, ...]:
    rows = [published_row(figure) for figure in figures]
    return (
        Column("row", [row.row for row in rows], Role.KEY),
        Column("column", [row.column for row in rows], Role.KEY),
        Column("printed", [row.printed for row in rows], Role.NUMBER),
        Column("published", [row.published or Missing() for row in rows], Role.NUMBER),
        Column("ours", [row.ours or Missing() for row in rows], Role.NUMBER),
        Column("verdict", [_verdict(figure) for figure in figures]),
    )


def _tones(figures: Iterable[PublishedComparison]) -> tuple[Tone, ...]:
    return tuple(_TONES.get(figure.verdict, Tone.SOFT) for figure in figures)


def _verdict(figure: PublishedComparison) -> Text:
    """The verdict; only a difference is highlighted."""
    tone = Tone.BAD if figure.verdict == "differs" else Tone.SOFT
    return Text(figure.verdict, tone, hint=figure.reason)


class PublishedRow(NamedTuple):
    """A published figure as text: as printed, relative to its base, and ours relative to its
    base."""

    row: str
    column: str
    printed: str
    published: str
    ours: str
    verdict: str


def published_row(figure: PublishedComparison) -> PublishedRow:
    """A figure of a published table as text."""
    ours = figure.ours
    shown = "" if ours is None else _ours(ours)
    if ours is not None and figure.compare in ("order", "none") and ours.min != ours.max:
        shown = _between(ours.min or 0.0, ours.max or 0.0, ours.unit)
    unit = "" if figure.unit == "factor" else figure.unit
    is_alone = figure.published is None or figure.compare == "order"
    return PublishedRow(
        row=figure.row,
        column=figure.column,
        printed=fmt.with_unit(figure.printed, "" if ":" in figure.printed else unit),
        published="" if is_alone else fmt.plain(figure.published or 0.0),
        ours=shown,
        verdict=figure.verdict,
    )


def _between(low: float, high: float, unit: str) -> str:
    scale = fmt.scale_for([low, high], unit)
    return fmt.with_unit(f"{fmt.plain(low, scale)} to {fmt.plain(high, scale)}", scale.symbol)


def _ours(figure: Estimate) -> str:
    """``0.51 (0.49 to 0.53)``: intervals of ratios are not symmetric."""
    shown = fmt.estimate(figure)
    value = fmt.with_unit(shown.value, shown.unit)
    return f"{value} ({shown.span})" if shown.span else value


def how(table: PublishedTable) -> str:
    """How the figures of a table are computed, and their base."""
    ways = dict.fromkeys(_HOW[figure.compare] for figure in table.figures)
    bases = dict.fromkeys(
        fmt.setting(figure.base) for figure in table.figures if figure.verdict == "base"
    )
    figures = "; ".join(ways)
    return f"{figures}. Base: {' · '.join(bases)}." if bases else f"{figures}."


def counts(found: Mapping[Agreement, int]) -> str:
    """``4 agree, 1 differ``; bases are not counted."""
    return ", ".join(f"{found[name]} {word}" for name, word in _COUNTED if found.get(name))


def not_comparable(table: PublishedTable) -> str:
    """``Not comparable: 2 × nothing is measured for it here.``; empty where there is none."""
    reasons = "; ".join(f"{number} × {why}" for why, number in _reasons(table.figures).items())
    return f"Not comparable: {reasons}." if reasons else ""


def _how_to_read(table: PublishedTable) -> str:
    """How the figures are compared, and why some are not."""
    return f"Published and ours: {how(table)} {not_comparable(table)}".rstrip()


def _reasons(figures: Iterable[PublishedComparison]) -> dict[str, int]:
    """The reasons why figures were not compared, with their counts; without bases."""
    reasons: dict[str, int] = {}
    for figure in figures:
        if figure.verdict == "not comparable":
            reasons[figure.reason] = reasons.get(figure.reason, 0) + 1
    return reasons
