"""The findings of a run as sentences: answers, warnings and notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple

from concurve.definition.measured import MEASURED
from concurve.definition.units import format_count, format_duration
from concurve.estimate import Estimate
from concurve.findings.best import BestFinding
from concurve.findings.cells import CellFindings, Reject
from concurve.findings.run import Finding
from concurve.planning.plan import Plan, describe
from concurve.planning.protocol import Protocol, StopReason
from concurve.readings.measures import MEASURE_PHASE
from concurve.readings.refused import refused_lines
from concurve.store.run_head import RunHead
from concurve.terms import Level
from concurve.wire.record import TrialRecord

#: The run time is named beside the measured phase if it is this many times as long.
START_UP_FACTOR = 1.02

#: The greatest speed-up is named for each group, up to this many groups.
GROUPS_NAMED = 6

#: A sentence names at most this many settings of a best set.
SETTINGS_NAMED = 6


#: Why cells end that were to reach a precision.
_FOR_PRECISION = (StopReason.PRECISION, StopReason.CAP, StopReason.TIME)


Among = Callable[[int, int], Estimate | None]
"""A cell, and among how many its speed-up is the greatest → the speed-up with an interval that
holds for such a choice."""


def sentences(
    head: RunHead,
    protocol: Protocol,
    cells: tuple[CellFindings, ...],
    rejects: tuple[Reject, ...],
    state: str,
    best: tuple[BestFinding, ...],
    among: Among,
    first: TrialRecord | None = None,
) -> list[Finding]:
    """First the answers, then the warnings that make them doubtful, then notes on how to read
    them."""
    plan = protocol.plan
    answers = [*_answers(plan, head.study.primary, cells, among), *_best(best)]
    warnings = [
        *_left_out(head),
        *_unfinished(head, protocol, state),
        *_not_measured(head, protocol, state),
        *_skipped(plan, cells),
        *_imprecise(head, protocol, cells),
        *_doubtful(head, plan, cells, rejects),
        *_refused(first),
    ]
    notes = _notes(plan, cells)
    return [
        *(Finding(kind="answer", sentence=text) for text in answers),
        *(Finding(kind="warning", sentence=text) for text in warnings),
        *(Finding(kind="note", sentence=text) for text in notes),
    ]


class _Greatest(NamedTuple):
    """The greatest speed-up of a group that is significantly above 1, being chosen from all
    speed-ups of the run (``is_gain``); where none is, the greatest. ``is_most``: no other seems
    greater. ``by`` says by what, where the study asks for another indicator. ``speedup`` has the
    interval that decided, which holds for the choice among ``compared`` speed-ups."""

    group: str
    cell: CellFindings
    base: CellFindings
    is_gain: bool
    is_most: bool
    by: str
    speedup: Estimate
    compared: int

    @property
    def figure(self) -> str:
        """The speed-up in words."""
        figure = self.speedup
        if figure.low is None or figure.high is None or self.compared < 2:
            return _figure(figure)
        return (
            f"{figure.value:.2f} ({figure.low:.2f} to {figure.high:.2f}, a 95 % interval corrected "
            f"for {self.compared} comparisons)"
        )


def _answers(plan: Plan, primary: str, cells: tuple[CellFindings, ...], among: Among) -> list[str]:
    """For each group of the other factors, the greatest speed-up and its cell; for many groups, the
    greatest of all, and how many groups have none."""
    found = list(_greatest(plan, cells, among, _by(primary, cells)))
    if len(found) > GROUPS_NAMED:
        return _of_many(plan, found)
    answers = []
    for item in found:
        place = f"With {item.group}: " if item.group else ""
        if item.speedup.in_doubt:
            text = _withheld(plan, item)
        else:
            text = _gain(plan, item) if item.is_gain else _no_gain(plan, item)
        answers.append(place + text if place else text[0].upper() + text[1:])
    return answers


def _of_many(plan: Plan, found: list[_Greatest]) -> list[str]:
    gains = [item for item in found if item.is_gain and not item.speedup.in_doubt]
    doubted = [item for item in found if item.speedup.in_doubt]
    answers = []
    if gains:
        most = max(gains, key=lambda item: item.speedup.value)
        answers.append(f"With {most.group}: {_gain(plan, most)}")
    none = len(found) - len(gains) - len(doubted)
    if none:
        answers.append(
            f"Under {none} of {len(found)} conditions no cell is significantly faster than the "
            f"base cell{found[0].by}."
        )
    if doubted:
        answers.append(
            f"Under {len(doubted)} of {len(found)} conditions the greatest speed-up is in doubt: "
            "the machine was not quiet."
        )
    return answers


def _gain(plan: Plan, item: _Greatest) -> str:
    return (
        f"{_own(plan, item.cell)} is {item.figure} times as fast as "
        f"{_base(plan, item)}{item.by} ({_wall(item.base)}), the greatest speed-up"
        f"{'' if item.is_most else ' that is significant'}."
    )


def _withheld(plan: Plan, item: _Greatest) -> str:
    """A speed-up that rests on trials in doubt."""
    sides = [cell for cell in (item.cell, item.base) if cell.doubtful]
    counts = " and ".join(
        f"{cell.doubtful} of {format_count(cell.trials, 'trial')} of {_own(plan, cell)}"
        for cell in sides
    )
    return (
        f"which cell is fastest is not said, because the machine was not quiet during {counts}: "
        f"{_own(plan, item.cell)} seems {item.figure} times as fast as "
        f"{_base(plan, item)}. Run it again on a quiet machine."
    )


def _no_gain(plan: Plan, item: _Greatest) -> str:
    return (
        f"no cell is significantly faster than {_base(plan, item)}{item.by} ({_wall(item.base)})."
    )


def _by(primary: str, cells: tuple[CellFindings, ...]) -> str:
    """By what speed-ups are measured, where that is not what the study asks for."""
    measured = [cell.indicators for cell in cells if cell.indicators]
    each = "seconds_per_operation"
    timed = each if all(each in indicators for indicators in measured) else "wall_seconds"
    return "" if timed == primary else f" by {MEASURED[timed].label}"


def _greatest(
    plan: Plan, cells: tuple[CellFindings, ...], among: Among, by: str
) -> Iterator[_Greatest]:
    compared = sum(cell.index != cell.base and "speedup" in cell.indicators for cell in cells)
    for group, members in _groups(plan, cells).items():
        measured = [
            cell
            for cell in members
            if "speedup" in cell.indicators and _same_conditions(plan, cell, cells)
        ]
        if len(measured) < 2 or all(cell.index == cell.base for cell in measured):
            continue
        ranking = sorted(measured, key=lambda cell: -cell.indicators["speedup"].value)
        # A setting leaves the best set by the same test: both say the same of it.
        gain = next((cell for cell in ranking if _is_gain(cell, compared, among)), None)
        # That none is faster is not said either where one of them is in doubt.
        doubted = (cell for cell in ranking if cell.indicators["speedup"].in_doubt)
        best = gain or next(doubted, ranking[0])
        base = cells[best.index if best.base is None else best.base]
        speedup = _judged(best, compared, among)
        is_most = best is ranking[0]
        yield _Greatest(group, best, base, gain is not None, is_most, by, speedup, compared)


def _is_gain(cell: CellFindings, compared: int, among: Among) -> bool:
    """Is its speed-up significantly above 1, being one of so many?"""
    alone = cell.indicators["speedup"]
    if cell.index == cell.base or alone.low is None or alone.low <= 1.0:
        return False
    speedup = _judged(cell, compared, among)
    return speedup.low is not None and speedup.low > 1.0


def _judged(cell: CellFindings, compared: int, among: Among) -> Estimate:
    """The speed-up of a cell with the interval that holds for the choice among so many."""
    alone = cell.indicators["speedup"]
    return alone if cell.index == cell.base else among(cell.index, compared) or alone


def _same_conditions(plan: Plan, cell: CellFindings, cells: tuple[CellFindings, ...]) -> bool:
    """Does the base have the same conditions? Otherwise a user cannot choose between the two."""
    base = cells[cell.index if cell.base is None else cell.base].parameters
    return all(cell.parameters[name] == base[name] for name in plan.study.conditions)


def _best(best: tuple[BestFinding, ...]) -> list[str]:
    """The recommended setting of each group and over all cells; for many groups, first how often
    each setting is recommended."""
    each = [_recommendation(item, whole=len(best) > 1 and not item.group) for item in best]
    # With conditions, the best of all settings counts, not the best level of the work factor alone.
    chosen = max((len(item.factors) for item in best if item.group), default=0)
    groups = [
        item for item in best if item.group and len(item.factors) == chosen and not item.doubt
    ]
    if len(groups) <= GROUPS_NAMED:
        return each
    counts = Counter(describe(item.recommended) for item in groups)
    chosen_settings = ", ".join(
        f"{setting} under {count}" for setting, count in counts.most_common()
    )
    return [f"Of {len(groups)} conditions, run {chosen_settings}.", *each]


def _recommendation(item: BestFinding, whole: bool) -> str:
    place = (
        f"With {describe(item.group)}: r" if item.group else "Over all cells: r" if whole else "R"
    )
    if item.doubt:
        opening = place.removesuffix("r").removesuffix("R")
        return (
            f"{opening}{'n' if opening else 'N'}o setting is recommended by {item.label}, because "
            f"{item.doubt}."
        )
    advice = f"{place}un {describe(item.recommended)}"
    if len(item.settings) == 1:
        return f"{advice}; by {item.label} it is the best of {item.compared} settings."
    which = "the smallest" if len(item.factors) == 1 else "the one with the smallest levels"
    decide = f"; {item.decide}" if item.decide else ""
    return (
        f"{advice}, {which} of {len(item.settings)} settings ({_settings(item)}) that cannot be "
        f"distinguished from the best by {item.label}{decide}."
    )


def _settings(item: BestFinding) -> str:
    """The members of a best set: ``threads 2, 4 and 8``."""
    one = len(item.factors) == 1
    names = [str(next(iter(s.values()))) if one else describe(s) for s in item.settings]
    if len(names) > SETTINGS_NAMED:
        names = [*names[: SETTINGS_NAMED - 1], f"{len(names) - SETTINGS_NAMED + 1} more"]
    glue = ", " if one else "; "
    text = f"{glue.join(names[:-1])} and {names[-1]}"
    return f"{item.factors[0]} {text}" if one else text


def _groups(plan: Plan, cells: tuple[CellFindings, ...]) -> dict[str, list[CellFindings]]:
    """Cells that share the levels of all factors but the work factor."""
    groups: dict[str, list[CellFindings]] = {}
    for cell in cells:
        others = {k: v for k, v in cell.parameters.items() if plan.work and k != plan.work}
        name = describe(_varied(plan, others)) if _varied(plan, others) else ""
        groups.setdefault(name, []).append(cell)
    return groups


def _varied(plan: Plan, parameters: dict[str, Level]) -> dict[str, Level]:
    """The levels without those of factors that have one level only."""
    return {
        name: level
        for name, level in parameters.items()
        if any(cell.parameters[name] != level for cell in plan.cells)
    }


def _own(plan: Plan, cell: CellFindings) -> str:
    """A cell named inside its group."""
    if plan.work:
        return f"{plan.work}={cell.parameters[plan.work]}"
    return _name(plan, cell.parameters)


def _base(plan: Plan, item: _Greatest) -> str:
    """The base of a cell, with its levels that differ from those of the cell's group."""
    other = {
        name: level
        for name, level in item.base.parameters.items()
        if name != plan.work and level != item.cell.parameters[name]
    }
    own = _own(plan, item.base)
    return f"{describe(other)} {own}" if plan.work and other else own


def _name(plan: Plan, parameters: dict[str, Level]) -> str:
    return describe(_varied(plan, parameters) or parameters)


def _figure(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.2f} (one trial, no interval)"
    return f"{estimate.value:.2f} (95 % interval {estimate.low:.2f} to {estimate.high:.2f})"


def _wall(cell: CellFindings) -> str:
    each = cell.indicators.get("seconds_per_operation")
    if each is not None:
        return f"{format_duration(each.value)} an operation"
    wall = cell.indicators.get("wall_seconds")
    return format_duration(wall.value) if wall else "not measured"


def _left_out(head: RunHead) -> list[str]:
    return [f"Not measured: {item.factor}={item.level}. {item.says}." for item in head.left_out]


def _unfinished(head: RunHead, protocol: Protocol, state: str) -> list[str]:
    planned, used = protocol.planned(), sum(len(cell.used) for cell in protocol.cells)
    if state == "complete" or (used == planned and protocol.done):
        return []  # nothing to resume: every cell has its trials, or was skipped
    if state == "running":
        return [f"This run goes on: {used} of {format_count(planned, 'trial')} are in."]
    how = {"interrupted": "was interrupted", "failed": "failed"}.get(state, "is not complete")
    return [
        f"This run {how}: {used} of {format_count(planned, 'trial')} are in; "
        f"concurve resume {head.id} goes on."
    ]


def _not_measured(head: RunHead, protocol: Protocol, state: str) -> list[str]:
    """What the time allowance left out, by name, and what to do."""
    missing = [describe(protocol.plan.cells[cell].parameters) for cell in protocol.unmeasured()]
    if state != "complete" or not missing:
        return []
    return [
        f"Not measured within the time allowance of "
        f"{format_duration(head.rules.time_allowed_seconds)}: {', '.join(missing)}. On a quieter "
        f"machine more may fit; concurve resume {head.id} --max-time "
        f"{protocol.seconds_for_all():.0f}s goes on."
    ]


def _skipped(plan: Plan, cells: tuple[CellFindings, ...]) -> list[str]:
    return [
        f"{_name(plan, cell.parameters)} was skipped: {cell.note}."
        for cell in cells
        if cell.status == "skipped"
    ]


def _has_interval(cell: CellFindings, primary: str) -> bool:
    estimate = cell.indicators.get(primary)
    return estimate is not None and estimate.low is not None


def _imprecise(head: RunHead, protocol: Protocol, cells: tuple[CellFindings, ...]) -> list[str]:
    """Cells whose printed interval is wider than the precision asked for, though they got all their
    trials; none where the number of trials was fixed."""
    plan, primary = protocol.plan, head.study.primary
    asked = plan.rules.precision
    ended = [cell for cell in cells if protocol.cells[cell.index].stop in _FOR_PRECISION]
    without = [cell for cell in ended if cell.trials and not _has_interval(cell, primary)]
    printed = [cell for cell in ended if _has_interval(cell, primary)]
    wide = [cell for cell in printed if round(_precision(cell, primary) - asked, 3) > 0]
    if not wide and not without:
        return []
    begun = (
        f"{len(wide) + len(without)} of {len(cells)} cells did not reach the precision asked for "
        f"(±{asked * 100:.0f} %)"
    )
    if without:
        have = "has" if len(without) == 1 else "have"
        return [f"{begun}; {len(without)} of them {have} no interval, for want of trials."]
    worst = max(wide, key=lambda cell: _precision(cell, primary))
    reached = _precision(worst, primary)
    found = f"{begun}; the widest is {_name(plan, worst.parameters)} with ±{reached * 100:.1f} %."
    coarse = sum(_is_coarse(cell, primary, asked) for cell in wide)
    if not coarse:
        return [found]
    where = "" if coarse == len(wide) else f" of {coarse} of them"
    return [
        f"{found} The step of the clock{where} alone is as wide: longer trials, or a finer clock."
    ]


def _is_coarse(cell: CellFindings, primary: str, asked: float) -> bool:
    """Is its clock too coarse for this precision?"""
    off = cell.resolutions.get(primary, 0.0)
    return off > 0 and off >= asked * abs(cell.indicators[primary].value)


def _precision(cell: CellFindings, primary: str) -> float:
    estimate = cell.indicators.get(primary)
    return (estimate.precision or 0.0) if estimate else 0.0


def _doubtful(
    head: RunHead, plan: Plan, cells: tuple[CellFindings, ...], rejects: tuple[Reject, ...]
) -> list[str]:
    """How many trials are in doubt, and what became of them."""
    doubtful = [reject for reject in rejects if reject.used]
    if not doubtful:
        return []
    in_doubt = {cell.index for cell in cells if _is_in_doubt(cell, head.study.primary)}
    aside = [reject for reject in doubtful if reject.cell not in in_doubt]
    found = []
    if aside:
        which = f"{format_count(len(aside), 'trial')} {'is' if len(aside) == 1 else 'are'}"
        found.append(
            f"{which} in doubt because the machine was not quiet "
            f"(first: {_name(plan, aside[0].parameters)}, {aside[0].detail}); the figures are "
            "those of the quiet trials, or medians that so few do not move."
        )
    if in_doubt:
        worst = max(
            (cells[index] for index in in_doubt), key=lambda cell: cell.doubtful / cell.trials
        )
        first = next(reject for reject in doubtful if reject.cell == worst.index)
        more = len(in_doubt) - 1
        are = "is" if more == 1 else "are"
        others = f", as {are} {format_count(more, 'other cell')}" if more else ""
        found.append(
            f"{_name(plan, worst.parameters)} is in doubt{others}: the machine was not quiet "
            f"during {worst.doubtful} of its {format_count(worst.trials, 'trial')} (first: "
            f"{first.detail}), and too few others are left. Such figures have the mark ?; run "
            "again on a quiet machine."
        )
    return found


def _refused(first: TrialRecord | None) -> list[str]:
    """What the programs of the first trial reported in vain; the others ran the same programs."""
    said = "" if first is None else refused_lines(first)
    return [f"In the first trial {said}."] if said else []


def _is_in_doubt(cell: CellFindings, primary: str) -> bool:
    figure = cell.indicators.get(primary)
    return figure is not None and figure.in_doubt


def _notes(plan: Plan, cells: tuple[CellFindings, ...]) -> list[str]:
    notes = []
    if any(_has_start_up(cell) for cell in cells):
        notes.append(
            f"Times are those of the phase '{MEASURE_PHASE}' that the program marked; run_seconds "
            "includes the start-up."
        )
    if plan.work_grows:
        notes.append(
            "Speed-up is against the base cell of each group; efficiency is speed-up over the "
            f"ratio of {plan.work}."
        )
    elif plan.work:
        base = ", ".join(f"{name}={level}" for name, level in plan.study.base.items())
        notes.append(f"Speed-up is against {base} at the same {plan.work}.")
    return notes


def _has_start_up(cell: CellFindings) -> bool:
    run, wall = cell.indicators.get("run_seconds"), cell.indicators.get("wall_seconds")
    return run is not None and wall is not None and run.value > START_UP_FACTOR * wall.value
