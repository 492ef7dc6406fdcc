"""What limits each cell: a section of a run's report, and a separate document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from concurve.findings.explanation import CellExplanation, Explanation
from concurve.findings.run import Report
from concurve.report import format as fmt
from concurve.report.document import (
    Bar,
    Block,
    Cell,
    Collapsible,
    Column,
    Detail,
    Document,
    Entries,
    Fact,
    List,
    Missing,
    Number,
    Paragraph,
    Part,
    Role,
    Section,
    Table,
    Tone,
    at_detail,
)
from concurve.terms import Level

#: The parts of a bar: the letter that draws each, and its label.
PARTS: dict[str, tuple[str, str]] = {
    "cpu": ("c", "on a CPU"),
    "run_queue": ("r", "waiting for a CPU"),
    "futex": ("f", "futex (locks, conditions)"),
    "disk": ("d", "disk"),
    "network": ("n", "network"),
    "poll": ("p", "polling"),
    "pipe": ("|", "pipe"),
    "sleep": ("s", "asleep"),
    "child": ("h", "child process"),
    "other": ("o", "other"),
    "blocked": ("b", "blocked"),
}
#: What stands for the cause where none is named because the machine was not quiet.
_IN_DOUBT = "in doubt"
_TONES = {"contamination": Tone.WARNING, _IN_DOUBT: Tone.WARNING, "none": Tone.PLAIN}
_EVIDENCE = {
    "waits": "what threads wait for",
    "run_queue": "the time in run queues",
    "cpu": "CPU time",
    "steal": "CPU time that a hypervisor took",
    "foreign_cpu": "CPU time of processes outside the trial",
}


def section(report: Report) -> Section | None:
    """Where the time goes (by curve if there are several), and what limits each cell."""
    explanation = report.explanation
    if explanation is None:
        return None
    from concurve.report.charts.composition import composition

    chart = composition(explanation)
    cells: tuple[Block, ...] = tuple(_cells(explanation))
    curves = _curves(explanation)
    folded = Collapsible(f"Each cell ({len(explanation.cells)})", cells)
    if curves is not None:
        folded = Collapsible(f"Each curve, and each cell ({len(explanation.cells)})",
                             (curves, *cells))  # fmt: skip
    blocks = [*([chart] if chart else []), folded, *_remarks(explanation)]
    return Section("Where the time goes", tuple(blocks), anchor="limits")


def explanation_document(explanation: Explanation, detail: Detail = Detail.BRIEF) -> Document:
    """What limits each cell of a run, as a separate document."""
    operation = f"thread time per operation ({explanation.operation})"
    table, sentences = _cells(explanation)
    document = Document(
        title=f"What limits {explanation.study}",
        facts=(Fact(explanation.run), Fact(operation)),
        blocks=(
            Section("", (table,)),
            Section("", (sentences,)),
            Section("", tuple(_remarks(explanation))),
        ),
    )
    return at_detail(document, detail)


def bar_of(shares: dict[str, float]) -> Bar:
    """The parts of the thread time of an operation."""
    return Bar(tuple(Part(*PARTS[name], share) for name, share in shares.items()))


def _cells(explanation: Explanation) -> Iterator[Block]:
    """The table, and the sentence of each cell."""
    yield _table(explanation)
    sentences = (
        Paragraph(cell.evidence, _TONES.get(_cause(cell), Tone.STRONG), lead=_cause(cell))
        for cell in explanation.cells
    )
    yield List(tuple(sentences))


def _table(explanation: Explanation) -> Table:
    cells = explanation.cells
    totals = [cell.per_operation["total"].value for cell in cells if cell.per_operation]
    scale = fmt.scale_for(totals, "ns")
    keys = (
        Column(name, [fmt.level(cell.parameters[name]) for cell in cells], Role.KEY)
        for name in explanation.factors
    )
    return Table(
        (
            *keys,
            Column("time per operation", Entries([_total(cell, scale) for cell in cells],
                                                 scale.symbol), Role.NUMBER, short="time/op"),
            Column("on a CPU", [_share(cell, "cpu") for cell in cells], Role.NUMBER,
                   short="cpu", wanted=3),
            Column("waiting for a CPU", [_share(cell, "run_queue") for cell in cells], Role.NUMBER,
                   short="queue", wanted=2),
            Column("blocked", [_blocked(cell) for cell in cells], Role.NUMBER, wanted=1),
            Column("where it goes", [bar_of(cell.shares) for cell in cells], Role.BAR, wanted=4,
                   detail=Detail.BRIEF),
            Column("cause", [_named(cell) for cell in cells]),
        ),
        title="One row a cell.",
    )  # fmt: skip


def _total(cell: CellExplanation, scale: fmt.Scale) -> Cell:
    figure = cell.per_operation.get("total")
    return Number(fmt.estimate(figure, scale).value, order=figure.value) if figure else Missing()


def _share(cell: CellExplanation, name: str) -> Cell:
    return _percent(cell.shares[name]) if name in cell.shares else Missing()


def _blocked(cell: CellExplanation) -> Cell:
    return _percent(cell.blocked_share) if cell.shares else Missing()


def _percent(share: float) -> Number:
    return Number(fmt.percent(share), order=share)


def _named(cell: CellExplanation) -> str:
    """The cause, with the resource that is used up if it is known."""
    cause = _cause(cell)
    return f"{cause}: {cell.limit}" if cell.limit else cause


def _cause(cell: CellExplanation) -> str:
    return _IN_DOUBT if cell.doubt and cell.cause == "none" else cell.cause


def _curves(explanation: Explanation) -> Table | None:
    """The causes by curve: cells that differ in the work factor only share a row, with a column for
    each of its levels, and the sentence of the greatest level. ``None`` if no factor counts as
    concurrency, or no other factor varies."""
    work = explanation.work
    factors = [name for name in explanation.factors if name != work]
    if work is None or work not in explanation.factors or not factors:
        return None
    groups: dict[tuple[str, ...], dict[Level, CellExplanation]] = {}
    for cell in explanation.cells:
        place = tuple(fmt.level(cell.parameters[name]) for name in factors)
        groups.setdefault(place, {})[cell.parameters[work]] = cell
    levels = dict.fromkeys(cell.parameters[work] for cell in explanation.cells)
    keys = (
        Column(name, [place[number] for place in groups], Role.KEY)
        for number, name in enumerate(factors)
    )
    causes = (
        Column(
            f"{work}={fmt.level(level)}",
            [_named(cells[level]) if level in cells else Missing() for cells in groups.values()],
        )
        for level in levels
    )
    last = [list(cells.values())[-1].evidence for cells in groups.values()]
    return Table((*keys, *causes, Column("at the last", last)), title="One row a curve.")


def _remarks(explanation: Explanation) -> Iterator[Block]:
    """How the time is counted, what is missing, and how to read the rest."""
    how = (
        "Thread time of the threads that do the work, per operation "
        f"({explanation.operation}); a cause is named where a part exceeds that of the base cell "
        "beyond its noise."
    )
    yield Paragraph(how, Tone.SOFT, detail=Detail.FULL)
    for name, why in explanation.missing.items():
        text = f"Not granted here: {_EVIDENCE.get(name, name)}: {why}."
        yield Paragraph(text, Tone.SOFT)
    alone = Counter(
        (name, why)
        for cell in explanation.cells
        for name, why in cell.missing.items()
        if explanation.missing.get(name) != why
    )
    for (name, why), count in alone.items():
        text = f"In {fmt.count(count, 'cell')}: {_EVIDENCE.get(name, name)}: {why}."
        yield Paragraph(text, Tone.SOFT)
    for note in explanation.notes:
        yield Paragraph(note, Tone.SOFT)
