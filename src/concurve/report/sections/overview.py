"""What a reader with a minute reads of a run: the answer, its chart, what limits it, how sure it
is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum, auto
from itertools import takewhile
from typing import NamedTuple

import msgspec

from concurve import words
from concurve.findings.best import BestFinding
from concurve.findings.explanation import (
    CPUS,
    GOMAXPROCS,
    GUESSED,
    REPORT_TRIALS,
    CellExplanation,
    Explanation,
    Limit,
)
from concurve.findings.limits import limits_told, recommended_below, share_cpus
from concurve.findings.run import (
    BUSY_LOAD,
    PRECISION,
    SKIPPED,
    Finding,
    Findings,
    Report,
    is_reported,
    where_the_server_limits,
)
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
from concurve.report.losses import (
    CPU_OF_NO_CAUSE,
    RATIO_TOLD_MIN,
    greater_without_cause,
    greatest_part,
    is_next_greater,
    lost_to_cause,
    told_parts,
)
from concurve.report.sections import rejected
from concurve.report.sections.figures import confidence, few
from concurve.report.sections.limits import (
    certainty,
    compares,
    in_order,
    is_share_told,
    parts_known,
    share_of_loss,
    spent,
)
from concurve.terms import Level

_TONES = {"answer": Tone.STRONG, "warning": Tone.WARNING, "note": Tone.SOFT}
# So many warnings are shown; the reader opens or asks for the others.
_WARNINGS_SHOWN = 2
_LIMIT = "What limits it"
#: What limits a cell, as the subject of a sentence.
_LIMITS = {
    "cpu": "The CPUs",
    "lock": "Locks",
    "serial": "Serial work, which one thread does alone",
    "imbalance": "Uneven work, so that some workers wait",
    "stage": "One stage for which the others wait",
    **dict.fromkeys(GUESSED, f"{CPU_OF_NO_CAUSE[:1].upper()}{CPU_OF_NO_CAUSE[1:]}"),
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

_NOTHING_AT_RATE = "nothing at the asked rate, which the load kept."
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

    beside = (_limits_of(limits), _how_sure(report, limits))
    found = list(_those(report.sentences, "answer"))
    overview = Overview(
        answers=tuple(map(paragraph, found)),
        chart=hero(report),
        beside=tuple(item for item in beside if item is not None),
        main=_main(report, found),
        figures=few(report),
    )
    return Section("The answer", (overview,), anchor="findings")


class Told(Enum):
    """How much is told of what limits a cell: all that is known; the cause with its evidence and
    what an operation costs; the cause with its evidence; or the cause alone."""

    WHOLE = auto()
    COST = auto()
    EVIDENCE = auto()
    CAUSE = auto()


class Room(NamedTuple):
    """How many answers and warnings a view has room for, and whether it has some for all that is
    known of why no cause is named and for the names of figures that it leaves out (``doubts``), for
    how many these are (``figures``), for the legend of the table, for how much of what limits the
    run (``limits``), for the count of rejected trials (``rejects``), and for the note that
    speed-ups are not ratios of the medians (``apart``). A view for few answers has those of all
    conditions, where these are few, in short. What limits the run is half of the answer: each view
    says it, with its evidence as long as anything but that note can be left out."""

    answers: int
    warnings: int
    doubts: bool = True
    figures: bool = True
    legend: bool = True
    limits: Told = Told.WHOLE
    rejects: bool = True
    apart: bool = True


_ALL = 1_000_000

_LEAST = Room(1, 1, doubts=False, figures=False, legend=False, limits=Told.CAUSE, rejects=False)

#: What a brief view says, and what it leaves out, one after the other, to fit on a screen.
ROOMS = (
    Room(_ALL, _WARNINGS_SHOWN),
    Room(_ALL, 1),
    Room(_ALL, 1, doubts=False),
    Room(_ALL, 1, doubts=False, figures=False),
    Room(1, 1, doubts=False, figures=False),
    Room(1, 1, doubts=False, figures=False, limits=Told.COST),
    Room(1, 1, doubts=False, figures=False, legend=False, limits=Told.COST),
    Room(1, 1, doubts=False, figures=False, legend=False, limits=Told.EVIDENCE),
    Room(1, 1, doubts=False, figures=False, legend=False, limits=Told.EVIDENCE, rejects=False),
    _LEAST,
    _LEAST._replace(apart=False),
)


def answers(findings: Findings, limits: Sequence[Limit], room: Room) -> Section | None:
    """The answers alone, and on a line what limits the recommended setting, or that of each
    condition: the cause and how sure it is, or why none is named."""
    found = [paragraph(item) for item in _told(findings, room)]
    found += [line for it in limits if (line := _limit_in(room, findings, it))]
    if not limits and (line := _not_looked_for(findings)):
        found.append(line)
    return Section("", (List(tuple(found)),)) if found else None


def _limit_in(room: Room, findings: Findings, limit: Limit) -> Paragraph | None:
    """What limits a cell, in the words that there is room for; ``None`` where nothing is to be said
    of it."""
    cell = limit.cell
    is_alone = cell.base is None and not cell.keeps_rate
    if cell.cause == "none" and is_alone and cell.trials and not cell.used:
        return None  # nothing to compare it with, and nothing else to say
    if cell.cause == "in doubt" and _compares_names(findings):
        return None  # which version is faster was asked, and a warning tells of the doubt
    is_unnamed = cell.cause == "in doubt" and not room.doubts
    whole = limit_line(limit, recommended_below(findings, limit))
    if is_unnamed or room.limits is not Told.WHOLE:
        return _short_limit(findings, limit, whole, room.limits)
    return whole


def _compares_names(findings: Findings) -> bool:
    """Are versions, or other named variants, all that is compared?"""
    varied = [factor for factor in findings.factors if len(factor.levels) > 1]
    names = [isinstance(level, str) for factor in varied for level in factor.levels]
    return len(varied) == 1 and not varied[0].work and all(names)


def _told(findings: Findings, room: Room) -> list[Finding]:
    """The answers that there is room for: the first ones, and, of few conditions, that of each."""
    every = list(_those(findings.sentences, "answer"))
    if len(every) <= room.answers:
        return every
    told = []
    for number, item in enumerate(every):
        if any(_is_under(item, it) for it in findings.conditions):
            told.append(msgspec.structs.replace(item, sentence=item.short or item.sentence))
        elif number < room.answers:
            told.append(item)
    return told


def _main(findings: Findings, found: Sequence[Finding]) -> int:
    """How many of the answers begin the list as the answer under a condition; else one."""
    conditions = findings.conditions
    under = (any(_is_under(item, it) for it in conditions) for item in found)
    return max(1, sum(1 for _ in takewhile(bool, under)))


def _is_under(item: Finding, condition: BestFinding) -> bool:
    """Is this the answer under a condition?"""
    begun = f"With {fmt.setting(condition.group)}"
    return item.sentence.startswith((f"{begun}: ", f"{begun} it is "))


def warnings(
    findings: Findings,
    room: Room,
    limits: Sequence[Limit] = (),
    *,
    all_of_them: bool = False,
    rejects_follow: bool = False,
) -> Iterator[Block]:
    """What programs of the trials warned of, and the other warnings that matter most (trials in
    doubt have one, uneven trials another), what became of a run that is not complete, and how many
    trials were rejected, unless that follows in full; ``all_of_them`` has all warnings, and the
    notes. That cells were skipped is said below the table."""
    every = _those(findings.sentences, "warning")
    found = [item for item in every if item.subject != SKIPPED]
    found = _with_limits(found, limits)
    reported = [item for item in found if is_reported(item)]
    others = [item for item in found if not is_reported(item)]
    kept = [*reported[: room.warnings], *_first_of_each(others)[: room.warnings]]
    kept = found if all_of_them else kept
    shown = [paragraph(item) for item in kept]
    run = findings.run
    if run.state != "complete" and run.reason:
        shown.append(Paragraph(run.reason, Tone.WARNING, lead=run.state))
    if all_of_them:
        shown += _of_kind(findings, "note")
    elif left := _left_out(
        findings, room, [item for item in found if item not in kept], not rejects_follow
    ):
        shown.append(Paragraph(left))
    if shown:
        yield List(tuple(shown))


def _with_limits(found: Sequence[Finding], limits: Sequence[Limit]) -> list[Finding]:
    """The warnings where it is known what limits these cells: if that is the server, what a busy
    load says of itself stands last, without its advice."""
    if not limits or not all(it.cell.is_limited_by_server for it in limits):
        return list(found)
    told = sorted(found, key=lambda item: item.subject == BUSY_LOAD)
    return [where_the_server_limits(item) for item in told]


def _first_of_each(found: Iterable[Finding]) -> list[Finding]:
    """Those that have no subject, and the first of each subject."""
    first: dict[str, Finding] = {}
    for number, item in enumerate(found):
        first.setdefault(item.subject or str(number), item)
    return list(first.values())


def _left_out(
    findings: Findings, room: Room, warnings: Sequence[Finding], with_rejects: bool
) -> str:
    """``8 of 38 trials rejected, 30 used: an error (8). 2 of 3 cells missed the precision of ±5 %
    and 2 more warnings: --all``; empty if nothing is left out. How precise the figures are is told
    of every run: who reads the table goes by it."""
    answers = len(list(_of_kind(findings, "answer"))) - len(_told(findings, room))
    missed = [item for item in warnings if item.subject == PRECISION]
    others = [item for item in warnings if item not in missed]
    counts = {"more answer": answers, "more warning": len(others)}
    said = [f"{item.sentence.partition(' %')[0]} %" for item in missed]
    said += [fmt.count(number, what) for what, number in counts.items() if number]
    if len(others) == 1 and others[0].subject and not is_reported(others[0]):
        said[-1] += f" ({others[0].subject})"
    more = f"{words.listed(said)}: --all" if said else ""
    rejects = rejected.summary(findings, with_doubts=False) if with_rejects and room.rejects else ""
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
        few = (f"It cannot be said: {_too_few(cell)}", _beyond(limit))
        return Paragraph(" ".join(filter(None, few)), lead=where.rstrip())
    told = (
        _ceiling(cell) if cell.is_at_ceiling else "",
        f"{cell.evidence}{certainty(cell, is_compared=compares(cell.evidence))}",
        spent(cell),
        parts_known(cell),
        cell.place,
        cell.ideal,
        _remedy(cell),
        _beyond(limit),
    )
    lead = "Nothing yet." if cell.loses_nothing or limit.is_full else _causes(cell)
    lead = "Nothing at the asked rate." if cell.keeps_rate else lead
    lead = _cause(cell) if cell.is_at_ceiling else lead
    return Paragraph(" ".join(filter(None, told)), lead=f"{where}{lead}")


def limited(findings: Findings, explanation: Explanation | None) -> tuple[Limit, ...]:
    """The explanations of the cells that are explained to a reader."""
    if explanation is None:
        return ()
    return limits_told(findings, explanation)


def limit_line(limit: Limit, stops: dict[str, Level] | None = None) -> Paragraph:
    """The same on a line: the cause, the reason and how sure it is, or why none is named; and what
    limits the greatest setting, where that is something else. ``stops``: the level from which on
    more brings nothing, if that of the cell is greater."""
    limit = _without_condition(limit)
    cell = limit.cell
    lead = f"What limits {fmt.setting(limit.under)}" if limit.under else _LIMIT
    found = _found(cell)
    said = (found or _not_found(limit, stops), cell.ideal, _beyond(limit))
    text = " ".join(filter(None, said))
    return Paragraph(text, Tone.PLAIN if found else Tone.SOFT, lead=lead)


def _found(cell: CellExplanation) -> str:
    """What limits a cell, the reason and how sure it is; empty where nothing is known to."""
    if cell.is_at_ceiling:
        rest = _of_the_rest(cell)
        bound = f"{_lower(_cause(cell))} {_ceiling(cell)}{rest}"
        return " ".join(filter(None, (bound, spent(cell), _remedy(cell) if rest else "")))
    if cell.cause not in _NAMED or cell.few or cell.loses_nothing:
        return ""
    reason = cell.reason or _begin(cell)
    share = certainty(cell, is_compared=compares(reason))
    first = f"{_lower(_causes(cell))} {reason}.{share}"
    said = (first, _spun(cell), spent(cell), cell.place, _remedy(cell))
    return " ".join(filter(None, said))


def _not_found(limit: Limit, stops: dict[str, Level] | None) -> str:
    """Why nothing is said to limit a cell."""
    cell, compared = limit.cell, _begin(limit.cell)
    _, _, after = cell.evidence.partition(": ")
    if cell.cause == "in doubt":
        seemingly = _seemingly(cell)
        pointed = f" The figures in doubt point to {seemingly}." if seemingly else ""
        return f"no cause is named: {cell.doubt}.{pointed}"
    if cell.few and cell.cause in _NAMED:
        return f"it cannot be said: {_too_few(cell)}"
    if cell.cause in _NAMED:
        return f"{_NOTHING_YET} {cell.reason or compared}."
    if not cell.trials:
        return f"it cannot be said: {after}"
    used = f" {cell.used[:1].upper()}{cell.used[1:]}." if cell.used else ""
    if cell.keeps_rate:
        text = f"{_NOTHING_AT_RATE}{used}"
    elif cell.loses_nothing or limit.is_full:
        text = f"{_NOTHING_YET}{used}"
    elif not cell.has_no_loss:
        known = f" {cell.parts}" if cell.parts else ""
        text = f"not found. {compared}.{known}{used}"
    elif cell.speedup is not None:
        text = f"little. {compared}.{used}"
    else:
        text = f"not found. {compared}, so this comparison shows no loss.{used}"
    if stops and not used and (cell.loses_nothing or cell.has_no_loss):
        text += f" What stops the growth from {fmt.setting(stops)} on is not explained."
    return text


def _begin(cell: CellExplanation) -> str:
    """The evidence up to what an operation takes, without its full stop."""
    before, _, _ = cell.evidence.partition(": ")
    return before.partition(". ")[0].rstrip(".")


def _lower(text: str) -> str:
    """A sentence that follows a colon; a name in capitals keeps them."""
    return text if text[:2].isupper() else f"{text[:1].lower()}{text[1:]}"


def _ceiling(cell: CellExplanation) -> str:
    """What the CPUs allow, and how much of that a cell loses: ``They allow at most 2× the speed of
    threads=1; threads=2 loses 0.24 of that.``"""
    assert cell.base is not None and cell.speedup_possible is not None, "it is compared"
    base, own = (_levels_apart(*pair) for pair in _both_ways(cell.base, cell.parameters))
    most = f"They allow at most {cell.speedup_possible:.3g}× the speed of {base}"
    means = f" by mean times ({cell.speedup:.2f}×)" if cell.by_means else ""
    lost = "hardly any" if cell.loses_hardly else f"{cell.lost:.2f}"
    return f"{most}; {own} loses {lost} of that{means}."


def _both_ways(
    one: dict[str, Level], other: dict[str, Level]
) -> tuple[tuple[dict[str, Level], dict[str, Level]], ...]:
    return (one, other), (other, one)


def _levels_apart(mine: dict[str, Level], others: dict[str, Level]) -> str:
    """The levels in which a cell differs from another."""
    return fmt.setting({k: v for k, v in mine.items() if others.get(k) != v})


def _of_the_rest(cell: CellExplanation) -> str:
    """What most of the little is lost to that a cell at the ceiling of its CPUs loses; empty where
    it is next to nothing, or not known."""
    if cell.loses_hardly:
        return ""
    # Where a speed-up is not divided, its share is of the thread time of more workers than CPUs.
    is_named = cell.cause in _NAMED and (cell.cause != "cpu" or bool(cell.speedup_lost))
    if not is_named or not is_share_told(cell.share):
        return _seeming_part(cell)
    assert cell.share is not None, "it is told"
    second = cell.runner_up
    if second is not None and is_next_greater(cell):
        return " ".join(filter(None, (in_order(cell, second, "the loss"), cell.place)))
    parts = told_parts(cell)
    of = f" ({parts})" if parts else ""
    said = f" Of the loss, {share_of_loss(cell.share)} is {lost_to_cause(cell)}{of}."
    return " ".join(filter(None, (said, cell.place)))


def _seeming_part(cell: CellExplanation) -> str:
    """What is known of the little that is lost below the ceiling of the CPUs, where no cause has a
    share of it that is told: its parts, or which of them seems to be the greatest."""
    if cell.parts:
        return f" {cell.parts}"
    part, amount = greatest_part(cell)
    if not part:
        return ""
    seems = f"seems to be {part} ({amount:.2f})"
    if cell.cause in _NAMED:
        return f" The greatest part of that {seems}."
    return f" No part of that is sure; the greatest {seems}."


#: More CPU time than by this share is told.
_PRICE_TOLD_MIN = 0.05


def _price(cell: CellExplanation, setting: str) -> str:
    """How much more CPU time an operation takes than in the base, where it is more for sure, and
    that most of that goes to spinning."""
    own, more = cell.per_operation.get("cpu"), cell.excess.get("cpu")
    if own is None or more is None or more.low is None or more.low <= 0:
        return ""
    before = own.value - more.value
    if before <= 0 or more.value < _PRICE_TOLD_MIN * before:
        return ""
    ratio = own.value / before
    cost = f"{ratio:.1f} × the CPU time"
    if ratio < RATIO_TOLD_MIN:
        cost = f"{words.percent(ratio - 1)} more CPU time"
    return " ".join(filter(None, (f"With {setting} an operation takes {cost}.", _spun(cell))))


def _spun(cell: CellExplanation) -> str:
    """That most of what an operation costs more goes to spinning, unless the reason says so."""
    return "" if cell.spun and cell.spun[1:].rstrip(".") in cell.reason else cell.spun


def _beyond(limit: Limit, *, is_short: bool = False) -> str:
    """What limits the greatest setting, where that is something else than what limits the one that
    is told; empty where it is not. ``is_short``: the cause alone, unless the one that is told is
    the base, which others are to be faster than: why they are not is asked for most."""
    cell = limit.beyond
    if cell is None:
        return ""
    setting = _levels_apart(cell.parameters, limit.cell.parameters)
    if share_cpus(cell, limit.cell):
        return f"With {setting} the same CPUs are shared."
    said = f"With {setting}: {_lower(_cause_alone(cell))}"
    if limit.cell.base is not None:
        told = "" if is_short else certainty(cell, is_next_told=False)
        return " ".join(filter(None, (f"{said}{told}", "" if is_short else cell.place)))
    said = f"More does not help: with {setting} the limit is {_lower(_cause_alone(cell))}"
    price = _price(cell, setting) if cell.base == limit.cell.parameters else ""
    share = certainty(cell, is_next_told=False)
    return " ".join(filter(None, (f"{said}{share}", cell.place, price)))


def _short_limit(findings: Findings, limit: Limit, whole: Paragraph, told: Told) -> Paragraph:
    """The ``whole`` line in fewer words: without its share and what to do, or a cause with its
    setting alone."""
    cell = limit.cell
    if cell.cause == "in doubt":
        more = f"(concurve explain {findings.run.id})"
        seemingly = _seemingly(cell)
        text = f"no cause is named: the machine was not quiet {more}."
        if seemingly:
            text = f"seemingly {seemingly}, in doubt {more}."
        text = " ".join(filter(None, (text, _beyond(limit, is_short=True))))
    elif cell.few or cell.cause not in _NAMED or cell.is_at_ceiling or cell.loses_nothing:
        return whole
    elif told is not Told.CAUSE:
        told_of = _without_condition(limit).cell
        first = f"{_lower(_causes(cell))} {told_of.reason or _begin(told_of)}."
        is_told = told is Told.COST
        cost, ideal = (spent(cell), cell.ideal) if is_told else ("", "")
        told_too = (first, _spun(cell), cost, cell.place, ideal, _beyond(limit, is_short=True))
        text = " ".join(filter(None, told_too))
    else:
        setting = fmt.setting(_own_levels(findings, limit))
        where = f", with {setting}" if setting else ""
        named = _cause_alone(cell) if cell.is_guess else _causes(cell)
        cause = f"{_lower(named).removesuffix('.')}{where}."
        said = (f"{cause}{certainty(cell, is_short=True)}", cell.place)
        text = " ".join(filter(None, (*said, _beyond(limit, is_short=True))))
    return Paragraph(text, lead=whole.lead)


def _own_levels(findings: Findings, limit: Limit) -> dict[str, Level]:
    """The levels of a cell that vary, without those of its condition: the line begins with them."""
    varying = [factor.name for factor in findings.factors if len(factor.levels) > 1]
    levels = limit.cell.parameters.items()
    return {k: v for k, v in levels if k in varying and k not in limit.under}


def _without_condition(limit: Limit) -> Limit:
    """What limits a cell, without the levels of its condition: the line begins with them."""
    cell = limit.cell
    reason, evidence = (_less_levels(it, limit.under) for it in (cell.reason, cell.evidence))
    return limit._replace(cell=msgspec.structs.replace(cell, reason=reason, evidence=evidence))


def _less_levels(text: str, levels: dict[str, Level]) -> str:
    """A sentence that begins ``With procs=2 lock=true``, without some of these levels."""
    begun = "With "
    if not levels or not text.startswith(begun):
        return text
    for name, level in levels.items():
        text = text.replace(f" {name}={level} ", " ", 1)
    rest = text.removeprefix(begun)
    return text if "=" in rest.partition(" ")[0] else f"{rest[:1].upper()}{rest[1:]}"


def _seemingly(cell: CellExplanation) -> str:
    """The cause that figures in doubt point to, inside a sentence; empty where they say none."""
    if cell.seeming is None or cell.few:
        return ""
    cause, limit = cell.seeming
    found = msgspec.structs.replace(cell, cause=cause, limit=limit, runner_up=None)
    return _lower(_cause_alone(found)).removesuffix(".")


def _too_few(cell: CellExplanation) -> str:
    """How many trials are in, where these are too few for a limit, and how many are enough."""
    return f"too few trials are in ({cell.few})."


def _remedy(cell: CellExplanation) -> str:
    """What to do about a load that is used up, or about the start and the end of a program, as a
    sentence."""
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
    if cell.is_at_ceiling:
        return f"The {cell.ceiling} CPUs."
    second = cell.runner_up
    if cell.cause == "client" and second is not None and second.is_indistinct:
        return _TOO_LITTLE_ASKED
    is_thread = _is_of_thread(cell)
    if is_thread and cell.limit == GOMAXPROCS:  # no thread of that name is there
        return f"{GOMAXPROCS}."
    cause = "One busy thread" if is_thread else _LIMITS[cell.cause]
    is_new = cell.limit not in ("", _RESOURCES.get(cell.cause))
    return f"{cause} ({cell.limit})." if is_new else f"{cause}."


def _cause_alone(cell: CellExplanation) -> str:
    """The cause where no evidence follows: what more CPU time may go to is told with it."""
    if not cell.is_guess or cell.is_at_ceiling:
        return _cause(cell)
    said = lost_to_cause(cell)
    return f"{said[:1].upper()}{said[1:]}."


def _is_of_thread(cell: CellExplanation) -> bool:
    """Is a thread of a server used up, or what a runtime may use of the CPUs?"""
    return cell.cause == "cpu" and cell.limit not in ("", _RESOURCES["cpu"])


def _causes(cell: CellExplanation) -> str:
    """The cause; after a part of the loss that is greater, and of which no cause is known: ``More
    CPU time, of no known cause; then serial work, which one thread does alone.``"""
    greater = greater_without_cause(cell)
    if not greater or cell.limit:
        return _cause(cell)
    first = f"{greater[:1].upper()}{greater[1:]}, of no known cause"
    return f"{first}; then {_lower(_cause(cell))}"


def _how_sure(report: Report, limits: Sequence[Limit]) -> Section:
    return Section("How sure it is", tuple(_doubts(report, limits)))


def _doubts(report: Report, limits: Sequence[Limit]) -> Iterator[Block]:
    yield Paragraph(_basis(report))
    if summary := rejected.summary(report):
        yield Paragraph(f"{summary}.")
    warned = tuple(_those(report.sentences, "warning"))
    found = tuple(map(paragraph, _with_limits(warned, limits)))
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
    """What the figures rest on: ``Medians of 5 to 8 trials a cell, with 95 % intervals.`` Trials
    that are set aside are in no median."""
    numbers = [cell.trials - cell.set_aside for cell in report.cells if cell.trials]
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
