"""What experiments say of a cause: below the cells of an explanation, and as a document."""

from __future__ import annotations

from collections.abc import Iterator

from concurve.estimate import Estimate
from concurve.findings.confirmation import Confirmation, Recorded, RecordedPlace, Tried
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

#: Places of recorded waits in the table, the fewest waits of one, and the threads that are named.
_SITES_SHOWN, _EVENTS_MIN, _OWNERS_SHOWN = 4, 2, 2
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
    if found.recorded is not None:
        yield from _recorded_blocks(found.recorded)
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


def _recorded_blocks(found: Recorded) -> Iterator[Block]:
    """Where threads of a JVM wait, by its own recorder, and what that cost."""
    if found.missing:
        yield Paragraph(f"{_sentence(found.missing)}.", Tone.WARNING, lead="not recorded")
        return
    yield Paragraph(f"{_sentence(found.place)}.", Tone.STRONG, lead="recorded")
    shown = [site for site in found.sites if site.events >= _EVENTS_MIN][:_SITES_SHOWN]
    if shown:
        yield _sites(shown)
    over = f"{found.threshold_ns / 1e3:g} µs"
    said = f"The flight recorder of the JVM counted waits of {over} or more"
    cost = found.cost
    if cost is not None and cost.low is not None and cost.high is not None:
        span = f"{cost.value:.2f} [{cost.low:.2f}, {cost.high:.2f}]"
        said += f"; with it, from its start on, an operation took {span} times as long"
    elsewhere = ""
    if found.elsewhere_events:
        elsewhere = (
            f" {fmt.count(found.elsewhere_events, 'wait')} ({_time(found.elsewhere_blocked_ns)}) "
            "had no function of the program on the stack."
        )
    cut = " Recordings were longer than what was read of them." if found.is_cut else ""
    yield Paragraph(f"{said}.{elsewhere}{cut}", Tone.SOFT)


def _sites(sites: list[RecordedPlace]) -> Table:
    return Table(
        (
            Column("of the time", [_share(site.share) for site in sites], Role.NUMBER),
            Column("waits", [_count(site.events) for site in sites], Role.NUMBER, wanted=2),
            Column("time", [_blocked(site) for site in sites], Role.NUMBER, wanted=3),
            Column("in", [site.name for site in sites]),
            Column("line", [site.at or Missing() for site in sites]),
            Column("for", [_for(site) for site in sites], wanted=1),
            Column("had before by", [_owners(site) for site in sites], wanted=4),
        ),
        title="Where threads waited, by the flight recorder of their JVM; shares are of locks.",
    )


def _for(site: RecordedPlace) -> str:
    is_lock = site.share is not None
    return site.waits_for if is_lock else f"{site.waits_for} ({site.primitive}, no lock)"


def _share(share: float | None) -> Cell:
    return Missing("no lock") if share is None else Number(fmt.percent(share), order=share)


def _count(number: int) -> Number:
    return Number(f"{number:,}", order=number)


def _blocked(site: RecordedPlace) -> Number:
    return Number(_time(site.blocked_ns), order=site.blocked_ns)


def _owners(site: RecordedPlace) -> Cell:
    return ", ".join(name for name, _ in site.owners[:_OWNERS_SHOWN]) or Missing()


def _time(ns: int) -> str:
    scale = fmt.scale_for([ns], "ns")
    return f"{fmt.estimate(Estimate(value=float(ns)), scale).value} {scale.symbol}"


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
    shown = fmt.estimate(figure, fmt.Scale(1.0, ""))
    if shown.half is None:  # an interval without an end
        return Missing("too few trials")
    return Number(f"{shown.value} ×", shown.spread, shown.span, figure.value, shown.is_skewed)
