"""The settings that cannot be distinguished from the best, as a document of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from concurve import words
from concurve.estimate import Estimate
from concurve.findings.best import BestFinding
from concurve.report import format as fmt
from concurve.report.document import (
    Block,
    Cell,
    Column,
    Document,
    Entries,
    Missing,
    Number,
    Paragraph,
    Role,
    Table,
    Tone,
)


def best_document(item: BestFinding, figures: Sequence[Estimate | None]) -> Document:
    """The setting to use, or why there is none, as :func:`doubt_sentences` says it; and a row for
    each of its ``settings``, which have these ``figures``."""
    return Document(title=_title(item), blocks=tuple(_blocks(item, figures)))


def doubt_sentences(item: BestFinding, figures: Sequence[Estimate | None]) -> str:
    """Why no setting is recommended, what the figures point to all the same, and what to do; empty
    where one is recommended."""
    if not item.doubt:
        return ""
    why = f"{item.doubt[:1].upper()}{item.doubt[1:]}."
    if not item.is_tentative:
        return f"{why} print(run) says more."
    known = figures[item.settings.index(item.smallest)]
    pointed = f"The figures point to {fmt.setting(item.smallest)} all the same"
    if known is not None:
        shown = words.quantity_with_interval(known.value, known.low, known.high, known.unit)
        pointed += f": {item.label} {shown}"
    return f'{why} {pointed}. Run it again on a quiet machine: wait_quiet="5m" waits for one.'


def _title(item: BestFinding) -> str:
    under = f" (with {fmt.setting(item.group)})" if item.group else ""
    if item.doubt:
        return f"No setting is recommended by {item.label}{under}"
    return f"Use {fmt.setting(item.smallest)}, by {item.label}{under}"


def _blocks(item: BestFinding, figures: Sequence[Estimate | None]) -> Iterator[Block]:
    if item.doubt:
        yield Paragraph(item.doubt, Tone.WARNING)
    number = len(item.settings)
    if number > 1:
        which = words.all_of(number, "setting") if number == item.compared else (
            f"{number} of {words.count(item.compared, 'setting')}"
        )  # fmt: skip
        yield Paragraph(f"{which[:1].upper()}{which[1:]} cannot be told apart from the best.")
    yield _table(item, figures)
    if item.decide and not item.doubt:
        yield Paragraph(f"{item.decide[:1].upper()}{item.decide[1:]}.", Tone.SOFT)


def _table(item: BestFinding, figures: Sequence[Estimate | None]) -> Table:
    known = [figure for figure in figures if figure is not None]
    scale = fmt.scale_for([figure.value for figure in known], known[0].unit if known else "")
    entries: list[Cell] = [
        Missing() if figure is None else _number(figure, scale) for figure in figures
    ]
    keys = (
        Column(name, [fmt.level(setting[name]) for setting in item.settings], Role.KEY)
        for name in item.factors
    )
    columns = [*keys, Column(item.label, Entries(entries, scale.symbol), Role.NUMBER)]
    if not item.doubt:
        marks = ["recommended" if one == item.smallest else "" for one in item.settings]
        columns.append(Column("", marks))
    return Table(tuple(columns), title="One row a setting.")


def _number(figure: Estimate, scale: fmt.Scale) -> Number:
    shown = fmt.estimate(figure, scale)
    return Number(shown.value, shown.spread, shown.span, figure.value, shown.is_skewed)
