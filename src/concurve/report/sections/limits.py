"""What limits each cell: a section of a run's report, and a separate document."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from math import fsum

from concurve import words
from concurve.estimate import Estimate
from concurve.findings.again import run_again
from concurve.findings.explanation import (
    CPUS,
    UNNAMED,
    CellExplanation,
    Explanation,
    RunnerUp,
    WaitSite,
)
from concurve.findings.places import place_of
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
    once,
)
from concurve.report.losses import (
    LOSSES,
    SHORT,
    Extra,
    apart_from,
    extra_of,
    greater_part,
    is_next_greater,
    loss_named,
    losses_of,
    lost_by,
    lost_speedup,
    lost_to,
    may_be_greater,
    next_lost,
    says_nothing,
    shown_as,
    told_parts,
)
from concurve.report.sections.confirmation import confirmation_section
from concurve.terms import Level

#: Where a user finds what the words mean.
_HOW_TO_READ = "How to read this, and what to do about each cause: docs/limits.md."

#: The parts of a bar: the letter that draws each, and its label.
PARTS: dict[str, tuple[str, str]] = {
    "cpu": ("c", "on a CPU"),
    "run_queue": ("r", "waiting for a CPU"),
    "futex": ("f", "futex (locks, conditions)"),
    "disk": ("d", "disk"),
    "network": ("n", "network"),
    "poll": ("p", "events (poll, epoll)"),
    "pipe": ("|", "pipe"),
    "sleep": ("s", "asleep"),
    "child": ("h", "child process"),
    "file_lock": ("l", "locks of files"),
    "memory": ("m", "changes of the address space"),
    "wake_up": ("w", "waiting to be woken by another thread or process"),
    "other": ("o", "other"),
    "blocked": ("b", "blocked"),
}
#: Places of waits of a cell in the table, and the fewest readings of one.
_SITES_SHOWN = 4
_SITE_READINGS_MIN = 2
#: A smaller share of the loss is not told.
_SHARE_TOLD_MIN = 0.25
#: From so many cells on that others on the machine disturbed, it is said once for all of them.
_ALIKE_MIN = 3
_TONES = {"contamination": Tone.WARNING, "in doubt": Tone.WARNING, "none": Tone.PLAIN}
_EVIDENCE = {
    "waits": "what threads wait for",
    "run_queue": "the time in run queues",
    "cpu": "CPU time",
    "runtime": "what goroutines do",
    "steal": "CPU time that a hypervisor took",
    "foreign_cpu": "CPU time of processes outside the trial",
}
#: Evidence that names a function, and which one.
_NAMES = {
    "sites": "The function that waits for the lock",
    "hot": "The function in which CPU time grew",
}


def section(report: Report) -> Section | None:
    """Where the time goes (by curve if there are several), and what limits each cell."""
    explanation = report.explanation
    if explanation is None:
        return None
    from concurve.report.charts.blocked import blocked
    from concurve.report.charts.composition import composition
    from concurve.report.charts.threads import threads
    from concurve.report.charts.waterfall import waterfall

    charts = [chart for chart in (waterfall(explanation), composition(explanation)) if chart]
    charts += blocked(explanation)
    if report.threads is not None:
        charts.append(threads(report.threads))
    cells: tuple[Block, ...] = tuple(_cells(explanation))
    curves = _curves(explanation)
    folded = Collapsible(f"Each cell ({len(explanation.cells)})", cells)
    if curves is not None:
        folded = Collapsible(f"Each curve, and each cell ({len(explanation.cells)})",
                             (curves, *cells))  # fmt: skip
    tried = confirmation_section(explanation.confirmations)
    blocks = [*charts, folded, *_remarks(explanation), *([tried] if tried else [])]
    return Section("Where the time goes", tuple(blocks), anchor="limits")


def explanation_document(explanation: Explanation, detail: Detail = Detail.BRIEF) -> Document:
    """What limits each cell of a run, as a separate document."""
    operation = f"thread time per operation ({explanation.operation})"
    *tables, sentences = _cells(explanation)
    document = Document(
        title=f"What limits {explanation.study}",
        facts=(Fact(explanation.run), Fact(operation)),
        blocks=(
            *(Section("", (table,)) for table in tables),
            Section("", (sentences, *_warned(explanation))),
            Section("", (*_remarks(explanation), Paragraph(_HOW_TO_READ, Tone.SOFT))),
            *filter(None, [confirmation_section(explanation.confirmations)]),
        ),
    )
    again = _again(explanation)
    return once(at_detail(document, detail), [again])


def _again(explanation: Explanation) -> str:
    """What to do about figures in doubt."""
    return run_again(
        explanation.over_hosts,
        explanation.waiting,
        explanation.strangers,
        is_stolen=explanation.is_stolen,
        constant=explanation.constant,
        autogroups=explanation.autogroups,
    )


def bar_of(shares: dict[str, float]) -> Bar:
    """The parts of the thread time of an operation."""
    return Bar(tuple(Part(*PARTS[name], share) for name, share in shares.items()))


def _cells(explanation: Explanation) -> Iterator[Block]:
    """The table, what was lost of the speed-up, and the sentence of each cell."""
    yield _table(explanation)
    lost = _lost(explanation)
    if lost is not None:
        yield lost
    sites = _sites(explanation)
    if sites is not None:
        yield sites
    doubts = filter(None, (_withheld(explanation), _of_few(explanation)))
    yield List((*doubts, *_sentences(explanation)))


def _warned(explanation: Explanation) -> Iterator[Block]:
    """What programs of the trials warned of: it may be the cause itself."""
    if explanation.warnings:
        yield List(tuple(Paragraph(text, Tone.WARNING) for text in explanation.warnings))


def _sentences(explanation: Explanation) -> Iterator[Paragraph]:
    """What limits each cell. What others on the machine did is said once: the table shows how long
    threads waited for a CPU."""
    disturbed = [cell for cell in explanation.cells if cell.cause == "contamination"]
    said_once = disturbed[1:] if len(disturbed) >= _ALIKE_MIN else []
    for cell in explanation.cells:
        if cell not in said_once:
            said = f"{cell.evidence}{certainty(cell, is_compared=compares(cell.evidence))}"
            blocked = "" if cell.is_of_cpus else cell.blocked
            further = (blocked, spent(cell), parts_known(cell), cell.place, cell.ideal)
            text = " ".join(filter(None, (said, *further)))
            yield Paragraph(text, _TONES.get(cell.cause, Tone.STRONG), lead=_lead(cell))
        if said_once and cell is disturbed[0]:
            others = ", ".join(_named(one, explanation) for one in said_once)
            text = f"The same with {others}. {_again(explanation)}"
            yield Paragraph(text, Tone.WARNING, lead=cell.cause)


def compares(text: str) -> bool:
    """Does evidence compare the thread time of an operation with that of the base?"""
    return "× the thread time of" in text


def parts_known(cell: CellExplanation) -> str:
    """What is known of a loss whose cause was not found, as a sentence; empty of any other."""
    return cell.parts if cell.is_not_found else ""


def spent(cell: CellExplanation) -> str:
    """Where CPU time goes, as a sentence, where it is what limits a cell; else empty."""
    return cell.spent if cell.is_of_cpu_time else ""


def _lead(cell: CellExplanation) -> str:
    """The cause alone: the sentence names what is used up."""
    is_whole = cell.is_not_found or cell.is_at_ceiling
    return named_cause(cell) if is_whole else f"{cell.told_cause}{_mark(cell)}"


def _named(cell: CellExplanation, explanation: Explanation) -> str:
    return fmt.setting({name: cell.parameters[name] for name in explanation.factors})


def _withheld(explanation: Explanation) -> Paragraph | None:
    """Of which cells no cause is named because the machine was not quiet, and what to do, once for
    all of them."""
    cells = [cell for cell in explanation.cells if cell.cause == "in doubt"]
    if not cells:
        return None
    every = len(explanation.cells)
    why = cells[0].doubt if len(cells) == 1 else "the machine was not quiet"
    of = f" of {_which(cells, explanation)}" if every > 1 else ""
    text = (
        f"No cause is named{of}: {why}. Below stands what the figures in doubt say. "
        f"{_again(explanation)}"
    )
    return Paragraph(text, Tone.WARNING)


def _of_few(explanation: Explanation) -> Paragraph | None:
    """Which causes too few trials point to, and how many are enough."""
    cells = [cell for cell in explanation.cells if cell.is_of_few]
    if not cells:
        return None
    last = cells[-1]
    few = last.few
    if len(cells) > 2:
        few = f"of {_which(cells, explanation)}{few[few.rindex(';') :]}"
    text = f"Too few trials are in to name a cause ({few}). What they point to is marked ?."
    return Paragraph(text, Tone.WARNING)


#: At most so many cells are named, more are counted.
_NAMED_MAX = 3


def _which(cells: Sequence[CellExplanation], explanation: Explanation) -> str:
    every = len(explanation.cells)
    if len(cells) == every:
        return "any cell"
    if len(cells) > _NAMED_MAX:
        return f"{len(cells)} of {every} cells"
    return words.listed([_named(cell, explanation) for cell in cells])


def _table(explanation: Explanation) -> Table:
    cells = explanation.cells
    totals = [cell.per_operation["total"].value for cell in cells if cell.per_operation]
    scale = fmt.scale_for(totals, "ns")
    cost = Column(
        "CPU time of the server per operation",
        Entries([_cost(cell, scale) for cell in cells], scale.symbol),
        Role.NUMBER,
        short="CPU/op",
        wanted=2,
    )
    keys = (
        Column(name, [fmt.level(cell.parameters[name]) for cell in cells], Role.KEY)
        for name in explanation.factors
    )
    return Table(
        (
            *keys,
            Column("time per operation", Entries([_total(cell, scale) for cell in cells],
                                                 scale.symbol), Role.NUMBER, short="time/op"),
            *((cost,) if any(cell.server_cpu for cell in cells) else ()),
            Column("on a CPU", [_share(cell, "cpu") for cell in cells], Role.NUMBER,
                   short="cpu", wanted=3),
            Column("waiting for a CPU", [_share(cell, "run_queue") for cell in cells], Role.NUMBER,
                   short="queue", wanted=2),
            Column("blocked", [_blocked(cell) for cell in cells], Role.NUMBER, wanted=1),
            Column("where it goes", [bar_of(cell.shares) for cell in cells], Role.BAR, wanted=4,
                   detail=Detail.BRIEF, below=len(cells)),
            Column("cause", [named_cause(cell) for cell in cells]),
        ),
        title="One row a cell.",
    )  # fmt: skip


def _lost(explanation: Explanation) -> Table | None:
    """From the speed-up that was possible to what was measured; ``None`` where it is not known."""
    cells = [cell for cell in explanation.cells if cell.speedup_lost]
    if not cells:
        return None
    keys = (
        Column(name, [fmt.level(cell.parameters[name]) for cell in cells], Role.KEY)
        for name in explanation.factors
    )
    named = losses_of(explanation)
    # Where not all of them fit, the greatest stay.
    greatest = sorted(named, key=lambda part: -max(_loss(cell, part) for cell in cells))
    parts = (
        Column(
            LOSSES[part],
            [_speedup(-cell.speedup_lost.get(part, 0.0)) for cell in cells],
            Role.NUMBER,
            short=SHORT.get(part, ""),
            wanted=1 + greatest.index(part),
            note=_LOSS_NOTES.get(part, ""),
        )
        for part in named
    )
    return Table(
        (
            *keys,
            Column("ideal", [_speedup(cell.speedup_possible) for cell in cells], Role.NUMBER),
            *parts,
            Column("speed-up", [_speedup(cell.speedup) for cell in cells], Role.NUMBER),
        ),
        title="From the speed-up that was possible to the one that was measured.",
        legend=partial(_parts_not_shown, explanation, cells),
    )


#: What a column of the lost speed-up has that its title does not say.
_LOSS_NOTES = {
    "helping": "Threads beside the workers did a part of the work in the base, and do less of it "
    "here.",
}


def _loss(cell: CellExplanation, part: str) -> float:
    return abs(cell.speedup_lost.get(part, 0.0))


def _parts_not_shown(
    explanation: Explanation, cells: Sequence[CellExplanation], columns: Sequence[Column]
) -> str:
    """What the columns that a narrow view leaves out add up to, so that the others can be added up;
    empty where all are there."""
    shown = [column.title for column in columns]
    left = [part for part in losses_of(explanation) if LOSSES[part] not in shown]
    if not left:
        return ""
    names = words.listed([LOSSES[part] for part in left])
    most = max(abs(fsum(cell.speedup_lost.get(part, 0.0) for part in left)) for cell in cells)
    return f"not shown: {names}, {most:.2f} at most (concurve explain {explanation.run} --json)"


def _sites(explanation: Explanation) -> Table | None:
    """The places where threads waited for locks, of the cells of which a lock is the cause, or
    comes next; ``None`` where there are none."""
    rows = [
        (cell, site)
        for cell in explanation.cells
        if cell.is_of_lock
        for site in cell.sites[:_SITES_SHOWN]
        if site.readings >= _SITE_READINGS_MIN
    ]
    if not rows:
        return None
    keys = (
        Column(name, [fmt.level(cell.parameters[name]) for cell, _ in rows], Role.KEY)
        for name in explanation.factors
    )
    return Table(
        (
            *keys,
            Column("of the waits", [_percent(site.share) for _, site in rows], Role.NUMBER),
            Column("readings", [_count(site.readings) for _, site in rows], Role.NUMBER, wanted=5),
            Column("in", [_place(site) for _, site in rows]),
            Column("line", [_line(site) for _, site in rows], wanted=1),
            Column("lock", [site.lock or Missing() for _, site in rows], wanted=2),
            Column("had by", [_had_by(site) for _, site in rows], wanted=3,
                   note="Who had the lock, in the readings that say so."),
            Column("by", [_by(site) for _, site in rows], wanted=4),
            Column("found by", [_found_by(site) for _, site in rows], wanted=6,
                   note="How the place was found on the stack."),
        ),
        title="Where threads waited for locks, by samples of their stacks.",
        legend=lambda _: _left_out([cell for cell in explanation.cells if cell.is_of_lock]),
    )  # fmt: skip


def _place(site: WaitSite) -> str:
    return site.name if site.is_sure else f"{site.name} (not sure)"


#: So many kinds of threads are named that had a lock.
_HOLDERS_SHOWN = 2
#: How a place was found, by the words of records.
_FOUND = {
    "cfi": "unwinding",
    "scan_exact": "a call of it on the stack",
    "scan_weak": "a scan, not sure",
}


def _had_by(site: WaitSite) -> Cell:
    """Who had the lock: ``worker 62 %, flush in drop 38 % (of 176)``."""
    if not site.held or not site.holders:
        return Missing()
    who = []
    for it in site.holders[:_HOLDERS_SHOWN]:
        taken = f" in {it.takes_in}" if it.takes_in not in ("", site.name) else ""
        who.append(f"{it.name or UNNAMED}{taken} {fmt.percent(it.readings / site.held)}")
    return f"{', '.join(who)} (of {site.held:,})"


def _by(site: WaitSite) -> Cell:
    return "starting threads" if site.starts_threads else site.operation or Missing()


def _found_by(site: WaitSite) -> str:
    return "the interpreter" if site.runtime else _FOUND[site.found]


def _left_out(cells: Sequence[CellExplanation]) -> str:
    """What became of the samples of stacks that name no place."""
    known = [cell.sampled_stacks for cell in cells if cell.sampled_stacks is not None]
    torn, skipped, unknown = (
        sum(getattr(stacks, name) for stacks in known) for name in ("torn", "skipped", "unknown")
    )
    counted = (
        (torn, "dropped because the thread ran meanwhile"),
        (skipped, "not taken to keep sampling cheap"),
        (unknown, "of no known function"),
    )
    said = [f"{number:,} {what}" for number, what in counted if number]
    if not said:
        return "no sample of a stack was dropped"
    return f"samples of stacks that are not shown: {words.listed(said)}"


def _line(site: WaitSite) -> Cell:
    return place_of(site.file, site.line) or Missing()


def _count(number: int) -> Number:
    return Number(f"{number:,}", order=number)


def _speedup(value: float | None) -> Cell:
    if value is None:
        return Missing()
    shown = f"{abs(value):.2f}"
    return Number(f"−{shown}" if value < 0 and float(shown) else shown, order=value)


def certainty(
    cell: CellExplanation,
    *,
    is_next_told: bool = True,
    is_short: bool = False,
    is_compared: bool = False,
) -> str:
    """How much of the loss the cause is, and what comes next, if that is to be told: first, where
    it is the greater part, as in the table. Nothing where both are little, which is allowed to some
    causes: CPUs that are used up are the limit, whatever else was lost. What of a server is used up
    bounds its rate, however little waits for it: its share is told in any case. ``is_short``:
    without how much the loss is. ``is_compared``: after the evidence, which compares the thread
    times."""
    share, second = cell.share, cell.runner_up
    loss = loss_named(cell) if is_short else lost_speedup(cell)
    extra = None if is_short else extra_of(cell, is_said=is_compared)
    is_used_up = bool(cell.limit) and cell.cause != "stage"
    is_more = is_next_greater(cell)
    shares = [share, second.share if second is not None and is_more else None]
    told = [it.value for it in shares if it is not None]
    if told and max(told) < _SHARE_TOLD_MIN and not is_used_up:
        return ""
    said = ""
    if share is not None:
        said = _share_told(cell, share, loss, extra)
        if not is_short and not says_nothing(share) and (parts := told_parts(cell)):
            said = f"{said}: {parts}"
    if second is None or not (is_next_told or is_more):
        return f"{said}.{_greater(cell, is_short=is_short)}" if said else ""
    if second.is_indistinct:
        apart = f"the evidence cannot tell it apart from {apart_from(second)}"
        return f"{said}; {apart}." if said else f" {apart.capitalize()}."
    where = f" {second.place}" if second.place and cell.place != second.place else ""
    if is_more and not is_used_up:
        return f"{in_order(cell, second, loss, extra)}{where}"
    what = f"{next_lost(cell, second)}.{where}"
    if not said:
        return f" Next: {what}"
    order = "a greater part" if is_more else "next"
    if second.share is not None and may_be_greater(cell):
        order = "perhaps a greater part"
        what = f"{lost_by(cell, second)}, {share_of_loss(second.share)}.{where}"
    return f"{said}; {order}: {what}{_greater(cell, is_short=is_short)}"


def _share_told(cell: CellExplanation, share: Estimate, loss: str, extra: Extra | None) -> str:
    """How much of a loss the cause is, without the full stop: `` An operation takes 23 % more
    thread time than with workers=1; 94 % [64 %, 100 %] of that is waiting for a CPU``."""
    is_unknown = says_nothing(share)
    if extra is not None and is_unknown:
        trials = "these trials" if extra.begin else "These trials"
        return f" {extra.begin}{trials} do not say how much {extra.of} is {shown_as(cell)}"
    if extra is not None:
        return f" {extra.begin}{share_of_loss(share)} {extra.of} is {shown_as(cell)}"
    if is_unknown:
        return f" How much of {loss} that is, these trials do not say"
    what = "Waiting for a CPU" if cell.limit == CPUS else "That"
    return f" {what} is {share_of_loss(share)} of {loss}"


def in_order(cell: CellExplanation, second: RunnerUp, loss: str, extra: Extra | None = None) -> str:
    """Both parts of a loss in the order of the table, where the cause has not the greatest:
    `` Of the lost speed-up (0.28 of 2), 64 % is more CPU time, and 36 % [35 %, 37 %] serial
    work.``"""
    assert cell.share is not None and second.share is not None, "both are compared"
    parts = told_parts(cell)
    own = f"{lost_to(cell.cause)} ({parts})" if parts else lost_to(cell.cause)
    if extra is not None:
        return (
            f" {extra.begin}{fmt.percent(second.share.value)} {extra.of} is "
            f"{lost_by(cell, second)}, and {share_of_loss(cell.share)} {own}."
        )
    return (
        f" Of {loss}, {fmt.percent(second.share.value)} is {lost_by(cell, second)}, and "
        f"{share_of_loss(cell.share)} {own}."
    )


def _greater(cell: CellExplanation, *, is_short: bool) -> str:
    """That another part seems greater, where there is room for it."""
    said = "" if is_short or not is_share_told(cell.share) else greater_part(cell)
    return f" {said}" if said else ""


#: Of a share whose interval is wider, and may be all, its lower end alone is told.
_WIDE, _MAY_BE_ALL = 0.5, 0.95


def share_of_loss(share: Estimate) -> str:
    """``59 % [53 %, 65 %]``; without an interval that would show the same number, and ``at least
    34 %`` of one that may be all of the loss and has a wide interval: that is what is known."""
    if share.low is None or share.high is None:
        return fmt.percent(share.value)
    if share.high - share.low > _WIDE and share.high >= _MAY_BE_ALL:
        return f"at least {fmt.percent(share.low)}"
    value, low, high = map(fmt.percent, (share.value, share.low, share.high))
    return value if low == value == high else f"{value} [{low}, {high}]"


def is_share_told(share: Estimate | None) -> bool:
    """Is the share of a cause known, and worth telling?"""
    return share is not None and share.value >= _SHARE_TOLD_MIN and not says_nothing(share)


def _total(cell: CellExplanation, scale: fmt.Scale) -> Cell:
    figure = cell.per_operation.get("total")
    return Number(fmt.plain(figure.value, scale), order=figure.value) if figure else Missing()


def _cost(cell: CellExplanation, scale: fmt.Scale) -> Cell:
    figure = cell.server_cpu
    return Number(fmt.plain(figure.value, scale), order=figure.value) if figure else Missing()


def _share(cell: CellExplanation, name: str) -> Cell:
    return _percent(cell.shares[name]) if name in cell.shares else Missing()


def _blocked(cell: CellExplanation) -> Cell:
    return _percent(cell.blocked_share) if cell.shares else Missing()


def _percent(share: float) -> Number:
    return Number(fmt.percent(share), order=share)


def named_cause(cell: CellExplanation) -> str:
    """The cause, with the resource that is used up if it is known. A loss of which none was found
    is not taken for none. At the ceiling of the CPUs it is these, and then what the rest is lost
    to: ``cpu, then serial``."""
    if cell.is_at_ceiling:
        is_other = cell.cause not in ("none", "cpu") and not cell.loses_hardly
        return f"cpu, then {cell.told_cause}" if is_other else "cpu"
    if cell.is_not_found:
        return "not found"
    limit = f": {cell.limit}" if cell.limit else ""
    return f"{cell.told_cause}{limit}{_mark(cell)}"


def _mark(cell: CellExplanation) -> str:
    """What follows a cause that too few trials point to; a short answer does not name it."""
    return " ?" if cell.is_of_few else ""


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
            [
                named_cause(cells[level]) if level in cells else Missing()
                for cells in groups.values()
            ],
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
        if name not in _NAMES:
            text = f"Not granted here: {_EVIDENCE.get(name, name)}: {why}."
            yield Paragraph(text, Tone.SOFT)
    alone = Counter(
        (name, why)
        for cell in explanation.cells
        for name, why in cell.missing.items()
        if name not in _NAMES and explanation.missing.get(name) != why
    )
    for (name, why), count in alone.items():
        text = f"In {fmt.count(count, 'cell')}: {_EVIDENCE.get(name, name)}: {why}."
        yield Paragraph(text, Tone.SOFT)
    yield from _nameless(explanation)
    for note in explanation.notes:
        yield Paragraph(note, Tone.SOFT)


def _nameless(explanation: Explanation) -> Iterator[Block]:
    """Why the cause of a cell is said without a function. A reason that is told already is not told
    again."""
    told = {why for name, why in explanation.missing.items() if name not in _NAMES}
    lacking = Counter(
        (name, cell.missing[name])
        for cell in explanation.cells
        for name in _NAMES
        if name in cell.missing and _lacks(cell, name)
    )
    for (name, why), count in lacking.items():
        if why not in told:
            cells = f" in {fmt.count(count, 'cell')}" if len(explanation.cells) > 1 else ""
            yield Paragraph(f"{_NAMES[name]} is not known{cells}: {why}.", Tone.SOFT)


def _lacks(cell: CellExplanation, evidence: str) -> bool:
    """Has the cause of a cell no function, which this evidence would name?"""
    if evidence == "sites":
        is_blocked = cell.share_of("futex", "file_lock", "wake_up") > 0
        named = any(site.function for site in cell.sites)
        return cell.cause == "lock" and is_blocked and not named
    return cell.cause in ("coherency", "memory")
