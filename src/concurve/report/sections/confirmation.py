"""What experiments say of a cause: below the cells of an explanation, and as a document."""

from __future__ import annotations

from collections.abc import Iterator

from concurve.estimate import Estimate
from concurve.findings.confirmation import Confirmation, Tried
from concurve.report import format as fmt
from concurve.report.document import (
    Block,
    Cell,
    Column,
    Document,
    Fact,
    Missing,
    Number,
    Paragraph,
    Role,
    Section,
    Table,
    Tone,
)

_TONES = {
    "confirmed": Tone.GOOD,
    "not confirmed": Tone.WARNING,
    "open": Tone.PLAIN,
    "out of reach": Tone.PLAIN,
}


def confirmation_blocks(found: Confirmation) -> Iterator[Block]:
    """The result in a sentence, and what each experiment did."""
    where = " ".join(f"{name}={fmt.level(level)}" for name, level in found.parameters.items())
    of = f"{found.cause} ({found.lock})" if found.lock else found.cause
    yield Paragraph(
        f"{of}{f' at {where}' if where else ''}. {_sentence(found.evidence)}",
        _TONES[found.result],
        lead=found.result,
    )
    if found.held_ns is not None and found.holds is not None:
        held = fmt.estimate(Estimate(value=found.held_ns), fmt.scale_for([found.held_ns], "ns"))
        unit = fmt.scale_for([found.held_ns], "ns").symbol
        yield Paragraph(
            f"An operation holds the lock {found.holds:,.3g} ×, for {held.value} {unit} each time.",
            Tone.SOFT,
        )
    if found.tried:
        yield _table(found.tried)
    for note in found.notes:
        yield Paragraph(note, Tone.SOFT)
    yield Paragraph(
        f"By the trials of run {found.run}, {fmt.count(found.blocks, 'complete block')}.", Tone.SOFT
    )


def confirmation_section(found: tuple[Confirmation, ...]) -> Section | None:
    """What the experiments on a run say; ``None`` where there are none."""
    blocks = [block for item in found for block in confirmation_blocks(item)]
    return Section("By experiment", tuple(blocks), anchor="confirmed") if blocks else None


def confirmation_document(found: Confirmation) -> Document:
    """The same of one run of experiments."""
    return Document(
        title=f"Experiments on {found.of}",
        facts=(Fact(found.run), Fact(found.study)),
        blocks=(Section("", tuple(confirmation_blocks(found))),),
    )


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _table(tried: tuple[Tried, ...]) -> Table:
    return Table(
        (
            Column("experiment", [item.level for item in tried], Role.KEY),
            Column("time", [_times(item.wall) for item in tried], Role.NUMBER),
            Column("CPU time", [_times(item.cpu) for item in tried], Role.NUMBER, wanted=1),
            Column("of that in", [item.against for item in tried], wanted=2),
            Column("what it did", [item.says for item in tried], wanted=3),
        ),
        title="How many times as long an operation took, by experiment.",
    )


def _times(figure: Estimate | None) -> Cell:
    if figure is None or figure.low is None or figure.high is None:
        return Missing("too few trials")
    half = (figure.high - figure.low) / 2
    return Number(
        f"{figure.value:.2f} ×",
        spread=f"± {half:.2f}",
        span=f"{figure.low:.2f} to {figure.high:.2f}",
        order=figure.value,
    )
