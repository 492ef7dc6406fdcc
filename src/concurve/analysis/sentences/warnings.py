"""What makes the answers of a run doubtful, what matters most first."""

from __future__ import annotations

import math
from collections.abc import Sequence

from concurve import words
from concurve.analysis.sentences.naming import name, names, subject
from concurve.analysis.steal import follows_load
from concurve.analysis.strangers import causes_of
from concurve.analysis.unset import Unset
from concurve.definition.study import unused_factors
from concurve.findings.cells import CellFindings, Reject, on_hosts
from concurve.findings.counts import TrialCounts, count_trials
from concurve.findings.run import PRECISION, SKIPPED, Finding
from concurve.planning.plan import Plan, describe
from concurve.planning.protocol import Protocol, StopReason
from concurve.readings.contamination import STEAL
from concurve.readings.hook_outputs import hooks_said
from concurve.readings.refused import refused_lines
from concurve.stats.power import TRIALS_MAX
from concurve.store.run_head import RunHead
from concurve.wire.record import TrialRecord

#: Medians that differ by less than this share differ little.
_MOVED = 0.02

#: A precision is missed by so many times: a smaller excess is lost when it is printed.
_MISSED = 1.02
#: Why cells end that were to reach a precision.
_FOR_PRECISION = (StopReason.PRECISION, StopReason.CAP, StopReason.TIME)
#: None of its own: time ended the run after the cell had the least number of trials.
_BY_TIME = (StopReason.TIME, None)


def warnings_of(
    head: RunHead,
    protocol: Protocol,
    cells: tuple[CellFindings, ...],
    rejects: tuple[Reject, ...],
    state: str,
    first: TrialRecord | None,
    again: str,
    unset: Unset | None = None,
    is_answer_open: bool = False,
    is_planned: bool = False,
) -> list[Finding]:
    """All warnings; ``first`` is the record of the trial that ran first, ``again`` says what to do
    about figures in doubt. What the hooks of ``unset`` printed is an answer already.
    ``is_answer_open``: no setting is recommended because of such figures. ``is_planned``: an answer
    says how many trials a new run should have."""
    plan = protocol.plan
    before = [
        *_unfinished(head, protocol, state),
        *_of_two_programs(head, protocol.done),
        *_not_measured(head, protocol, state),
        *_left_out(head),
        *_unused(head, plan),
    ]
    doubtful = [
        *_doubtful(head, protocol, cells, rejects, again, is_answer_open),
        *_by_load(head, protocol, cells, rejects),
    ]
    imprecise = _imprecise(head, protocol, cells, is_planned)
    after = [*_refused(first), *_hooks(first, unset)]
    return [
        *(Finding(kind="warning", sentence=text) for text in before),
        *_skipped(plan, cells),
        *(Finding(kind="warning", sentence=text) for text in doubtful),
        *(Finding(kind="warning", sentence=text, subject=PRECISION) for text in imprecise),
        *(Finding(kind="warning", sentence=text) for text in after),
    ]


def _left_out(head: RunHead) -> list[str]:
    return [f"Not measured: {item.factor}={item.level}. {item.says}." for item in head.left_out]


def _unused(head: RunHead, plan: Plan) -> list[str]:
    """What a run of an older version varied in vain: today it is refused."""
    return [
        f"Nothing uses {{{name}}}: all its levels are the same setting, and differ by chance."
        for name in unused_factors(head.study)
        if len({cell.parameters[name] for cell in plan.cells}) > 1
    ]


def _unfinished(head: RunHead, protocol: Protocol, state: str) -> list[str]:
    planned, used = protocol.planned(), sum(len(cell.used) for cell in protocol.cells)
    if state == "complete" or (used == planned and protocol.done):
        return []  # nothing to resume: every cell has its trials, or was skipped
    so_far = f"{words.count_of(used, planned, 'trial')} {words.verb(used)} in"
    if state == "running":
        return [f"This run goes on: {so_far}."]
    how = {"interrupted": "was interrupted", "failed": "failed"}.get(state, "is not complete")
    if state == "failed" and any(role.attach is not None for role in head.study.roles):
        return [f"This run {how}: {so_far}. A new run can attach the process that runs now."]
    if state == "failed":
        return [
            f"This run {how}: {so_far}. If its study or command is wrong, correct it and start a "
            f"new run; concurve resume {head.id} goes on with it as it is stored."
        ]
    return [f"This run {how}: {so_far}; concurve resume {head.id} goes on."]


def _of_two_programs(head: RunHead, done: int) -> list[str]:
    """Each program that was another one from some trial on, because the run was resumed with it;
    ``done`` is the number of trials that have ended."""
    since: dict[int, list[str]] = {}
    told: set[str] = set()
    for resumed in head.resumed:
        new = [name for name in resumed.changed if name not in told]
        told.update(new)
        if new and 0 < resumed.trials < done:
            since[resumed.trials] = new
    return [
        f"{words.listed(names)} changed before the run was resumed after "
        f"{words.count(trials, 'trial')}: the trials before and after are of different programs. "
        "A new run measures one alone."
        for trials, names in since.items()
    ]


def _not_measured(head: RunHead, protocol: Protocol, state: str) -> list[str]:
    """What the time allowance left out, by name, and what to do."""
    missing = [describe(protocol.plan.cells[cell].parameters) for cell in protocol.unmeasured()]
    if state != "complete" or not missing:
        return []
    return [
        f"Not measured within the time allowance of "
        f"{words.duration(head.rules.time_allowed_seconds)}: {', '.join(missing)}. On a quieter "
        f"machine, or with less work in a trial, more fit; concurve resume {head.id} --max-time "
        f"{words.option_duration(protocol.seconds_for_all())} goes on."
    ]


def _skipped(plan: Plan, cells: tuple[CellFindings, ...]) -> list[Finding]:
    return [
        Finding(
            kind="warning",
            sentence=f"{subject(plan, cell.parameters)} was skipped{_after(cell)}: {cell.note}.",
            subject=SKIPPED,
        )
        for cell in cells
        if cell.status == "skipped"
    ]


def _after(cell: CellFindings) -> str:
    """What a cell that was skipped has all the same: the table shows it, no verdict rests on it."""
    return f" after {words.count(cell.trials, 'trial')}" if cell.trials else ""


def _has_interval(cell: CellFindings, primary: str) -> bool:
    estimate = cell.indicators.get(primary)
    return estimate is not None and estimate.low is not None


def _imprecise(
    head: RunHead, protocol: Protocol, cells: tuple[CellFindings, ...], is_planned: bool
) -> list[str]:
    """Cells whose printed interval is wider than the precision asked for, though the run has ended;
    none where the number of trials was fixed. A figure in doubt is judged by no precision: the
    cells that have one are not counted, and the sentence says so. Where a new run ``is_planned``,
    its number of trials is the only one."""
    plan, primary = protocol.plan, head.study.primary
    asked = plan.rules.precision
    if plan.rules.repeats_min == plan.rules.repeats_max:
        return []
    whys = (*_FOR_PRECISION, *(_BY_TIME if protocol.stop is not None else ()))
    ended = [
        cell
        for cell in cells
        if protocol.cells[cell.index].stop in whys
        and cell.status != "skipped"
        and not _is_in_doubt(cell, primary)
    ]
    without = [cell for cell in ended if cell.trials and not _has_interval(cell, primary)]
    printed = [cell for cell in ended if _has_interval(cell, primary)]
    wide = [cell for cell in printed if _precision(cell, primary) > asked * _MISSED]
    if not wide and not without:
        return []
    in_doubt = sum(_is_in_doubt(cell, primary) for cell in cells)
    who = _count_judged(len(wide) + len(without), len(cells) - in_doubt, in_doubt > 0)
    begun = f"{who} missed the precision of ±{words.in_percent(asked)} %"
    if without:
        have = words.verb(len(without), "has", "have")
        return [f"{begun}; {len(without)} of them {have} no interval, for want of trials."]
    worst = max(wide, key=lambda cell: _precision(cell, primary))
    reached = f"({_in_words(_precision(worst, primary))})"
    where = name(plan, worst.parameters)
    alone = len(wide) == 1
    found = f"{begun}: {where} {reached}." if alone else f"{begun}, {where} by most {reached}."
    coarse = sum(_is_coarse(cell, primary, asked) for cell in wide)
    if not coarse:
        return [f"{found}{'' if is_planned else _more_trials(protocol, wide, primary)}"]
    which = "" if coarse == len(wide) else f" of {coarse} of them"
    return [
        f"{found} The step of the clock{which} alone is as wide: longer trials, or a finer clock."
    ]


def _count_judged(number: int, judged: int, are_some: bool) -> str:
    """``2 of 6 cells``; where ``are_some`` of the run's cells alone, since others are in doubt:
    ``2 of the 4 cells that are not in doubt``."""
    if not are_some:
        return words.count_of(number, judged, "cell")
    if judged == 1:
        return "The only cell that is not in doubt"
    return f"{number} of the {judged} cells that are not in doubt"


def _more_trials(protocol: Protocol, wide: Sequence[CellFindings], primary: str) -> str:
    """The options of a new run that should reach the precision: to resume adds no trials. More of
    them are allowed where those with too wide intervals had all that they may have; else the pilots
    promised too much, and each cell is to have that many. Empty where time ended the run, which is
    said with its remedy, and where more would be needed than anybody runs."""
    rules = protocol.rules
    # The width of an interval falls with the root of the number of trials.
    needed = max(cell.trials * (_precision(cell, primary) / rules.precision) ** 2 for cell in wide)
    is_by_time = any(cell.stop in _BY_TIME and not cell.skipped for cell in protocol.cells)
    if is_by_time or not math.isfinite(needed) or not protocol.done:
        return ""
    step = 10 ** max(0, math.floor(math.log10(needed)) - 1)
    are_capped = all(protocol.cells[it.index].stop is StopReason.CAP for it in wide)
    trials = max(math.ceil(needed / step) * step, rules.repeats_max + 1 if are_capped else 0)
    if trials > TRIALS_MAX:
        return ""
    least = rules.repeats_min if are_capped else trials
    most = max(trials, rules.repeats_max)
    options = f"--repeats {most}" if least == most else f"--repeats {least}..{most}"
    running = sum(not cell.skipped for cell in protocol.cells)
    seconds = protocol.seconds_of(trials * running)
    time = ""
    if seconds > rules.time_allowed_seconds:
        time = f" --max-time {words.option_duration(1.1 * seconds)}"
    return (
        f" A new run with {options}{time} should reach it, in about "
        f"{words.duration(seconds)}; resume adds no trials."
    )


def _is_coarse(cell: CellFindings, primary: str, asked: float) -> bool:
    """Is its clock too coarse for this precision?"""
    off, estimate = cell.resolutions.get(primary, 0.0), cell.indicators[primary]
    # Of a centre of 0 no share is asked for; the step matters if the interval is no wider.
    least = asked * abs(estimate.value) or estimate.half_width or 0.0
    return off > 0 and off >= least


def _precision(cell: CellFindings, primary: str) -> float:
    """Half of the printed interval as a share of the centre; infinite where that is 0, and the
    interval is not."""
    estimate = cell.indicators.get(primary)
    if estimate is None or not estimate.half_width:
        return 0.0
    return math.inf if estimate.precision is None else estimate.precision


def _in_words(precision: float) -> str:
    is_share = math.isfinite(precision)
    return f"±{words.in_percent(precision, 3)} %" if is_share else "its centre is 0"


def _doubtful(
    head: RunHead,
    protocol: Protocol,
    cells: tuple[CellFindings, ...],
    rejects: tuple[Reject, ...],
    again: str,
    is_answer_open: bool,
) -> list[str]:
    """How many trials in use are in doubt, and what became of them: one number, as reasons and
    tables count it."""
    plan, doubtful = protocol.plan, [reject for reject in rejects if reject.used]
    if not doubtful:
        return []
    causes = causes_of(doubtful)
    cause = causes[0]
    where = on_hosts(it for it in doubtful if it.cause == cause)
    mostly = ", mostly" if len(causes) > 1 else ""
    counts = count_trials(protocol.done, rejects, cells)
    are = f"{counts.in_doubt}{mostly} because {words.cause(cause)}{where}."
    in_doubt = [cell for cell in cells if _is_in_doubt(cell, head.study.primary)]
    if in_doubt:
        leave = words.verb(len(doubtful), "It leaves", "They leave")
        return [f"{are} {leave} {_which(plan, in_doubt, cells)} in doubt (?). {again}"]
    # A figure is that of the quiet trials, or a median that so few hardly move. Its interval, and
    # which setting is the best, may depend on them all the same.
    if is_answer_open or not any(head.study.primary in cell.indicators for cell in cells):
        return [are]
    if moved := _moved(head, plan, cells, counts.set_aside):
        return [f"{are} {moved}"]
    return [f"{are} {_moves_none(counts)}"]


def _by_load(
    head: RunHead,
    protocol: Protocol,
    cells: tuple[CellFindings, ...],
    rejects: tuple[Reject, ...],
) -> list[str]:
    """That the load itself may be why the hypervisor takes CPU time, where trials are in doubt for
    that. Of several hosts it is not known whose CPUs a cell used."""
    is_in_doubt = any(reject.used and reject.cause == STEAL for reject in rejects)
    if not is_in_doubt or head.hosts is not None:
        return []
    topology = head.machine.get("topology")
    cpus = topology.get("cpus") if isinstance(topology, dict) else None
    in_use = {index: len(cell.used) for index, cell in enumerate(protocol.cells)}
    least = follows_load(cells, in_use, rejects, cpus)
    if least is None:
        return []
    return [
        f"The hypervisor took CPU time only where {least:.1f} or more of {cpus} CPUs were in use: "
        "the load itself may cause that, by a quota or credits of this virtual machine."
    ]


def _moves_none(counts: TrialCounts) -> str:
    """That no median hangs on the trials in doubt: on those that count, which may widen intervals,
    nor on those that are set aside."""
    left = counts.doubted - counts.set_aside
    if not counts.set_aside:
        moves = words.verb(left, "It moves", "They move")
        return f"{moves} no median by much, and may widen intervals."
    if left:
        others = words.verb(left, "the other", "the others")
        return f"With what is set aside no median would move by much; {others} may widen intervals."
    make = words.verb(counts.used, "makes", "make")
    return (
        f"The other {counts.used:,} {make} the figures; with all {counts.in_use:,} no median moves "
        "by much."
    )


def _moved(head: RunHead, plan: Plan, cells: Sequence[CellFindings], aside: int) -> str:
    """By how much the figure would differ with the trials that are set ``aside`` that would most;
    empty where none would by much."""
    primary = head.study.primary
    shifts = {
        cell.index: cell.including_doubtful.value / cell.indicators[primary].value - 1
        for cell in cells
        if cell.including_doubtful is not None
        and primary in cell.indicators
        and cell.indicators[primary].value > 0
    }
    most = max(shifts, key=lambda index: abs(shifts[index]), default=None)
    if most is None or abs(shifts[most]) < _MOVED:
        return ""
    which = next(cell for cell in cells if cell.index == most)
    higher = "higher" if shifts[most] > 0 else "lower"
    by = words.in_percent(abs(shifts[most]))
    them = words.verb(aside, "it", "them")
    return f"With {them} {name(plan, which.parameters)} would be {by} % {higher}."


def _which(plan: Plan, some: Sequence[CellFindings], cells: Sequence[CellFindings]) -> str:
    """Cells by their names; of many those with the greatest shares of trials in doubt."""
    if len(some) == len(cells) > 1:
        return words.all_of(len(cells), "cell")
    return names(plan, sorted(some, key=lambda cell: -cell.doubtful / cell.trials))


def _refused(first: TrialRecord | None) -> list[str]:
    """What the programs of the first trial reported in vain; the others ran the same programs."""
    said = "" if first is None else refused_lines(first)
    return [f"In the first trial {said}."] if said else []


def _hooks(first: TrialRecord | None, unset: Unset | None) -> list[str]:
    """What went wrong in the hooks of the first trial and in the setup of all cells, though they
    exited with 0: what they do besides setting levels may not have been done."""
    told = {} if first is None else hooks_said(first)
    return [
        f"{said[:1].upper()}{said[1:]} and exited with 0: did it do its work?"
        for hook, said in told.items()
        if unset is None or hook not in unset.hooks
    ]


def _is_in_doubt(cell: CellFindings, primary: str) -> bool:
    figure = cell.indicators.get(primary)
    return figure is not None and figure.in_doubt
