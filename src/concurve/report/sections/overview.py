"""What a reader with a minute reads of a run: the answer, its chart, what limits it, how sure it
is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from concurve.findings.best import BestFinding
from concurve.findings.explanation import (
    REPORT_TRIALS,
    CellExplanation,
    Explanation,
    Limit,
)
from concurve.findings.limits import CPUS, recommended_below, told
from concurve.findings.run import REPORTED, SKIPPED, Finding, Findings, Report
from concurve.report import format as fmt
from concurve.report.document import (
    Block,
    Collapsible,
    List,
    Overview,
    Paragraph,
    Section,
    Tone,
)
from concurve.report.sections import rejected
from concurve.report.sections.figures import confidence
from concurve.report.sections.limits import certainty
from concurve.terms import Level

_TONES = {"answer": Tone.STRONG, "warning": Tone.WARNING, "note": Tone.SOFT}
# So many warnings are shown; the reader opens or asks for the others.
_WARNINGS_SHOWN = 2
_LIMIT = "What limits it"
#: What limits a cell, as the subject of a sentence.
_LIMITS = {
    "cpu": "The CPUs",
    "lock": "Locks",
    "coherency": "Data that moves between CPUs",
    "serial": "Work that one thread does alone",
    "imbalance": "Work that is dealt out unevenly",
    "stage": "One stage for which the others wait",
    "memory": "The bandwidth of memory",
    "smt": "Cores that several CPUs share",
    "clock": "A clock that falls when more CPUs are busy",
    "kernel": "Work in the kernel",
    "collector": "The garbage collector",
    "quota": "A quota of CPU time",
    "io": "Input and output",
    "client": "The load generator",
    "contamination": "Other processes on the machine",
    "in doubt": "No cause is named, because the machine was not quiet",
    "none": "No limit was found",
}

#: Those that say what limits a cell.
_NAMED = _LIMITS.keys() - {"none", "in doubt"}

#: The resources that these name already. Others are names of threads, which may be any word.
_RESOURCES = {"cpu": CPUS, "client": "load"}

_NOTHING_YET = "nothing yet. Hardly any speed-up is lost."
_TOO_LITTLE_ASKED = "Too few requests at once, or locks inside the server."


def paragraph(item: Finding) -> Paragraph:
    """A sentence with its tone."""
    return Paragraph(item.sentence, _TONES[item.kind])


def section(report: Report) -> Section:
    """The first section of a full report."""
    return with_limits(report, limited(report, report.explanation))


def with_limits(report: Report, limits: Sequence[Limit]) -> Section:
    """The same with what limits these cells."""
    from concurve.report.charts import hero  # who looks at a table needs none

    beside = (_limits_of(limits), _how_sure(report))
    overview = Overview(
        answers=tuple(_of_kind(report, "answer")),
        chart=hero(report),
        beside=tuple(item for item in beside if item is not None),
    )
    return Section("The answer", (overview,), anchor="findings")


class Room(NamedTuple):
    """How many answers and warnings a view has room for, and whether it has some for why no cause
    is named and for the names of figures that it leaves out. A view for few answers has those of
    all conditions, where these are few, in short."""

    answers: int
    warnings: int
    doubts: bool = True


_ALL = 1_000_000

#: What a brief view says, and what it leaves out, one after the other, to fit on a screen.
ROOMS = (
    Room(_ALL, _WARNINGS_SHOWN),
    Room(_ALL, 1),
    Room(_ALL, 1, doubts=False),
    Room(1, 1, doubts=False),
)


def answers(findings: Findings, limits: Sequence[Limit], room: Room) -> Section | None:
    """The answers alone, and on a line what limits the recommended setting, or that of each
    condition: the cause and how sure it is, or why none is named."""
    found = [paragraph(item) for item in _told(findings, room)]
    found += [line for it in limits if (line := _limit_in(room, findings, limits, it))]
    if not limits and (line := _not_looked_for(findings)):
        found.append(line)
    return Section("", (List(tuple(found)),)) if found else None


def _limit_in(
    room: Room, findings: Findings, limits: Sequence[Limit], limit: Limit
) -> Paragraph | None:
    """What limits a cell, in the words that there is room for; ``None`` where there is none for why
    no cause is named. Of several conditions none is left out: each is as much asked for."""
    cell = limit.cell
    if cell.cause == "none" and cell.base is None and cell.trials and not cell.used:
        return None  # nothing to compare it with, and nothing else to say
    is_unnamed = cell.cause == "in doubt" and not room.doubts
    if is_unnamed and len(limits) == 1:
        return None
    stops = recommended_below(findings, limit)
    whole = limit_line(limit.cell, limit.under, stops, is_full=limit.is_full)
    return _short_limit(limit, whole) if is_unnamed or room.answers < _ALL else whole


def _told(findings: Findings, room: Room) -> list[Finding]:
    """The answers that there is room for: the first ones, and, of few conditions, that of each."""
    every = list(_those(findings.sentences, "answer"))
    if len(every) <= room.answers:
        return every
    told = []
    for number, item in enumerate(every):
        under = next((it for it in findings.conditions if _is_under(item, it)), None)
        if under is not None:
            sentence = _short_answer(findings, under) or item.sentence
            told.append(msgspec.structs.replace(item, sentence=sentence))
        elif number < room.answers:
            told.append(item)
    return told


def _is_under(item: Finding, condition: BestFinding) -> bool:
    """Is this the answer under a condition?"""
    begun = f"With {fmt.setting(condition.group)}"
    return item.sentence.startswith((f"{begun}: ", f"{begun} it is "))


def _short_answer(findings: Findings, condition: BestFinding) -> str:
    """The answer under a condition in about a line, where it is in doubt; empty where it is not.
    The table has the speed-ups, and a warning why it is in doubt."""
    if not condition.is_tentative or condition.recommended is not None:
        return ""
    begun = f"With {fmt.setting(condition.group)}, in doubt"
    if found := condition.disagreement:
        quiet, every = fmt.setting(found.quiet), fmt.setting(found.every)
        return f"{begun}: quiet trials point to {quiet}, all to {every}."
    are_all_alike = len(condition.as_good) == condition.compared - 1
    if are_all_alike and _is_no_faster(findings, condition):
        return f"{begun}: no setting seems better than the others."
    others = ", others may be as good" if condition.as_good else ""
    return f"{begun}: {fmt.setting(condition.leader)} seems best{others}."


def _is_no_faster(findings: Findings, condition: BestFinding) -> bool:
    """Is the setting with the best figure no faster than its base, block by block?"""
    wanted = {**condition.group, **condition.leader}.items()
    cell = next((it for it in findings.cells if wanted <= it.parameters.items()), None)
    if cell is None or cell.base in (None, cell.index) or "speedup" not in cell.indicators:
        return False
    return cell.indicators["speedup"].value <= 1


def warnings(
    findings: Findings, room: Room, *, all_of_them: bool = False, rejects_follow: bool = False
) -> Iterator[Block]:
    """What programs of the trials warned of, and the other warnings that matter most (trials in
    doubt have one, uneven trials another), what became of a run that is not complete, and how many
    trials were rejected, unless that follows in full; ``all_of_them`` has all warnings, and the
    notes. That cells were skipped is said below the table."""
    every = _those(findings.sentences, "warning")
    found = [item for item in every if item.subject != SKIPPED]
    reported = [item for item in found if item.subject == REPORTED]
    others = [item for item in found if item.subject != REPORTED]
    kept = [*reported[: room.warnings], *_first_of_each(others)[: room.warnings]]
    kept = found if all_of_them else kept
    shown = [paragraph(item) for item in kept]
    run = findings.run
    if run.state != "complete" and run.reason:
        shown.append(Paragraph(run.reason, Tone.WARNING, lead=run.state))
    if all_of_them:
        shown += _of_kind(findings, "note")
    elif left := _left_out(findings, room, len(found) - len(kept), not rejects_follow):
        shown.append(Paragraph(left))
    if shown:
        yield List(tuple(shown))


def _first_of_each(found: Iterable[Finding]) -> list[Finding]:
    """Those that have no subject, and the first of each subject."""
    first: dict[str, Finding] = {}
    for number, item in enumerate(found):
        first.setdefault(item.subject or str(number), item)
    return list(first.values())


def _left_out(findings: Findings, room: Room, warnings: int, with_rejects: bool) -> str:
    """``8 of 38 trials rejected, 30 used: an error (8). 2 more warnings: --all``; empty if nothing
    is left out."""
    answers = len(list(_of_kind(findings, "answer"))) - len(_told(findings, room))
    counts = {"more answer": answers, "more warning": warnings}
    said = [fmt.count(number, what) for what, number in counts.items() if number]
    more = f"{' and '.join(said)}: --all" if said else ""
    rejects = rejected.summary(findings, with_doubts=False) if with_rejects else ""
    return ". ".join(filter(None, (rejects, more)))


def limit(report: Report) -> Section | None:
    """What limits the cells that are explained to a reader."""
    return _limits_of(limited(report, report.explanation))


def _limits_of(limits: Sequence[Limit]) -> Section | None:
    return Section(_LIMIT, tuple(map(_limit_of, limits))) if limits else None


def _limit_of(limit: Limit) -> Paragraph:
    cell, where = limit.cell, f"{fmt.setting(limit.under)}: " if limit.under else ""
    if not cell.trials:
        return Paragraph(cell.evidence, lead=where.rstrip())
    if cell.few and cell.cause in _NAMED:
        return Paragraph(f"It cannot be said: {_too_few(cell)}", lead=where.rstrip())
    told = (f"{cell.evidence}{certainty(cell)}", cell.place, _remedy(cell))
    said = " ".join(filter(None, told))
    lead = "Nothing yet." if cell.loses_nothing or limit.is_full else _cause(cell)
    return Paragraph(said, lead=f"{where}{lead}")


def limited(findings: Findings, explanation: Explanation | None) -> tuple[Limit, ...]:
    """The explanations of the cells that are explained to a reader."""
    if explanation is None:
        return ()
    return tuple(
        told(findings, Limit(group, cell), explanation.cells)
        for group, wanted in findings.limits_by
        for cell in explanation.cells
        if cell.parameters == wanted.parameters
    )


def limit_line(
    cell: CellExplanation,
    under: dict[str, Level] | None = None,
    stops: dict[str, Level] | None = None,
    *,
    is_full: bool = False,
) -> Paragraph:
    """The same on a line: the cause, the reason and how sure it is; or why none is named.
    ``under``: the levels of the conditions, where they differ. ``stops``: the level from which on
    more brings nothing, if that of the cell is greater. ``is_full`` as of :class:`Limit`."""
    lead = f"What limits {fmt.setting(under)}" if under else _LIMIT
    before, _, after = cell.evidence.partition(": ")
    before, _, _ = before.partition(". ")
    if cell.cause == "in doubt":
        text = f"no cause is named: {cell.doubt}."
    elif cell.few and cell.cause in _NAMED:
        text = f"it cannot be said: {_too_few(cell)}"
    elif cell.loses_nothing and cell.cause != "none":
        text = f"{_NOTHING_YET} {cell.reason or before.rstrip('.')}."
    elif cell.cause != "none":
        cause = _cause(cell)
        text = f"{cause[:1].lower()}{cause[1:]} {cell.reason or before.rstrip('.')}."
        said = (f"{text}{certainty(cell)}", cell.place, _remedy(cell))
        return Paragraph(" ".join(filter(None, said)), lead=lead)
    elif not cell.trials:
        text = f"it cannot be said: {after}"
    else:
        used = f" {cell.used[:1].upper()}{cell.used[1:]}." if cell.used else ""
        compared = before.rstrip(".")
        if cell.loses_nothing or is_full:
            text = f"{_NOTHING_YET}{used}"
        elif not cell.has_no_loss:
            text = f"not found. {compared}.{used}"
        elif cell.speedup is not None:
            text = f"little. {compared}.{used}"
        else:
            text = f"not found. {compared}, so this comparison shows no loss.{used}"
        if stops and not used and (cell.loses_nothing or cell.has_no_loss):
            text += f" What stops the growth from {fmt.setting(stops)} on is not explained."
    return Paragraph(text, Tone.SOFT, lead=lead)


def _short_limit(limit: Limit, whole: Paragraph) -> Paragraph:
    """The ``whole`` line in fewer words: a cause without what an operation takes."""
    cell = limit.cell
    if cell.cause == "in doubt":
        text = "no cause is named: the machine was not quiet."
    elif cell.few or cell.cause not in _NAMED:
        return whole
    else:
        cause = _cause(cell)
        text = f"{cause[:1].lower()}{cause[1:]}{certainty(cell)} {cell.place}".rstrip()
    return Paragraph(text, lead=whole.lead)


def _too_few(cell: CellExplanation) -> str:
    """How many trials are in where these are too few for a limit."""
    return f"too few trials are in ({cell.few})."


def _remedy(cell: CellExplanation) -> str:
    """What to do about a load that is used up, as a sentence."""
    return f"{cell.remedy[:1].upper()}{cell.remedy[1:]}." if cell.remedy else ""


def _not_looked_for(findings: Findings) -> Paragraph | None:
    """That the records of a run were not read, because they are very many; ``None`` where nothing
    would be explained of a smaller one either."""
    run = findings.run
    is_asked = findings.indicator(findings.primary).better != "neither"
    if run.trials <= REPORT_TRIALS or run.simulation or not is_asked:
        return None
    text = (
        f"not looked for in {run.trials:,} trials, nor what their programs warned of; concurve "
        f"explain {run.id} does so."
    )
    return Paragraph(text, Tone.SOFT, lead=_LIMIT)


def _cause(cell: CellExplanation) -> str:
    """``Locks.``, or ``One stage for which the others wait (flush).``; a resource that the cause
    names is not named again. A client that cannot be told from a lock has CPU time left: it does
    not limit, but it may ask for too little at once."""
    second = cell.runner_up
    if cell.cause == "client" and second is not None and second.is_indistinct:
        return _TOO_LITTLE_ASKED
    is_thread = cell.cause == "cpu" and cell.limit not in ("", _RESOURCES["cpu"])
    cause = "One busy thread" if is_thread else _LIMITS[cell.cause]
    is_new = cell.limit not in ("", _RESOURCES.get(cell.cause))
    return f"{cause} ({cell.limit})." if is_new else f"{cause}."


def _how_sure(report: Report) -> Section:
    return Section("How sure it is", tuple(_doubts(report)))


def _doubts(report: Report) -> Iterator[Block]:
    yield Paragraph(_basis(report))
    if summary := rejected.summary(report):
        yield Paragraph(f"{summary}.")
    found = tuple(_of_kind(report, "warning"))
    if found:
        yield from _some(found)
    decide = [
        Paragraph(f"{item.decide[:1].upper()}{item.decide[1:]}.", Tone.SOFT,
                  lead=fmt.setting(item.group))
        for item in report.best
        if item.decide and not item.doubt
    ]  # fmt: skip
    if decide:
        yield Collapsible("What would tell the best settings apart", (List(tuple(decide)),))


def _some(found: Sequence[Paragraph]) -> Iterator[Block]:
    yield List(tuple(found[:_WARNINGS_SHOWN]))
    rest = found[_WARNINGS_SHOWN:]
    if rest:
        yield Collapsible(fmt.count(len(rest), "more warning"), (List(tuple(rest)),))


def _basis(report: Report) -> str:
    """What the figures rest on: ``Medians of 5 to 8 trials a cell, with 95 % intervals.``"""
    numbers = [cell.trials for cell in report.cells if cell.trials]
    if not numbers:
        return "No trial gave a figure."
    least, most = min(numbers), max(numbers)
    trials = fmt.count(most, "trial") if least == most else f"{least:,} to {most:,} trials"
    known = confidence(report)
    intervals = f", with {known} intervals" if known else "; without intervals"
    return f"Medians of {trials} a cell{intervals}."


def _of_kind(findings: Findings, kind: str) -> Iterator[Paragraph]:
    return map(paragraph, _those(findings.sentences, kind))


def _those(found: Iterable[Finding], kind: str) -> Iterator[Finding]:
    return (item for item in found if item.kind == kind)
