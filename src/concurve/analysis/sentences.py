"""The findings of a run as sentences: answers, warnings and notes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from concurve.analysis import against_base
from concurve.analysis.against_base import Among
from concurve.analysis.ground import WALL, Speed
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


#: Speed-ups are by one of these; a recommendation by another one says so.
_TIMES = ("wall_seconds", "seconds_per_operation")

#: The first words of the sentences here; others are names, and keep their letters.
_OPENINGS = ("No", "Use", "Which", "Run")

#: Why cells end that were to reach a precision.
_FOR_PRECISION = (StopReason.PRECISION, StopReason.CAP, StopReason.TIME)


def sentences(
    head: RunHead,
    protocol: Protocol,
    cells: tuple[CellFindings, ...],
    rejects: tuple[Reject, ...],
    state: str,
    best: tuple[BestFinding, ...],
    among: Among,
    speed: Speed | None = None,
    first: TrialRecord | None = None,
) -> list[Finding]:
    """First the answers, then the warnings that make them doubtful, those that matter most first,
    then notes on how to read them. ``speed`` is what speed-ups are measured by."""
    plan = protocol.plan
    by = speed.by(head.study.primary) if speed else ""
    answers, further = _answers(plan, list(_greatest(plan, cells, among, by, best)), best)
    # A speed-up by wall time says nothing where the study asks for another figure.
    if speed and (not by or speed.indicator.name != WALL):
        compared = list(against_base.sentences(plan, cells, among, by))
        answers = [*answers, *compared] if len(compared) > 1 else [*compared, *answers]
    warnings = [
        *_unfinished(head, protocol, state),
        *_not_measured(head, protocol, state),
        *_skipped(plan, cells),
        *_doubtful(head, plan, cells, rejects),
        *_left_out(head),
        *_imprecise(head, protocol, cells),
        *_refused(first),
    ]
    notes = [*further, *_notes(plan, cells, speed)]
    return [
        *(Finding(kind="answer", sentence=text) for text in answers),
        *(Finding(kind="warning", sentence=text) for text in warnings),
        *(Finding(kind="note", sentence=text) for text in notes),
    ]


class _Greatest(NamedTuple):
    """The speed-up of a group's recommended setting, if it is significantly above 1, being chosen
    from all speed-ups of the run (``is_gain``), else the greatest that is; where none is, the
    greatest. ``by`` says by what, where the study asks for another indicator. ``speedup`` has the
    interval that decided, which holds for the choice among all speed-ups."""

    group: str
    cell: CellFindings
    base: CellFindings
    is_gain: bool
    by: str
    speedup: Estimate


def _answers(
    plan: Plan, found: list[_Greatest], best: tuple[BestFinding, ...]
) -> tuple[list[str], list[str]]:
    """The setting to use over all cells; then, for each group of the other factors, the greatest
    speed-up and the setting to use. For many groups how often each is said, and the single ones
    apart: the answers and the further sentences."""
    whole = [item for item in best if len(best) > 1 and not item.group]
    # The best of all settings under a condition comes before the best level of the work factor.
    by_choice = sorted(best, key=lambda item: -len(item.factors))
    of_groups = {
        describe(item.group) if item.group else "": item for item in by_choice if item not in whole
    }
    gains = {item.group: item for item in found}
    answers = [_use(plan, item) for item in whole]
    if len(gains) > GROUPS_NAMED:
        answers += _of_many(plan, found)
        gains = {}
    # What puts all settings in doubt is said once.
    is_said = any(item.doubt for item in whole)
    each = [
        _of_group(plan, group, gains.get(group), of_groups.get(group), is_said)
        for group in dict.fromkeys((*of_groups, *gains))
    ]
    chosen = max((len(item.factors) for item in best if item.group), default=0)
    groups = [
        item for item in best if item.group and len(item.factors) == chosen and not item.doubt
    ]
    if len(groups) <= GROUPS_NAMED:
        return [*answers, *each], []
    counts = Counter(describe(item.recommended) for item in groups)
    settings = _listed([f"{name} under {count}" for name, count in counts.most_common()])
    return [f"Of {len(groups)} conditions, use {settings}.", *answers], each


def _of_group(
    plan: Plan, group: str, gain: _Greatest | None, best: BestFinding | None, is_said: bool
) -> str:
    """The greatest speed-up of a group, and the setting to use; ``is_said``: that figures are in
    doubt, and why."""
    said = []
    if gain is not None:
        if gain.speedup.in_doubt and is_said:
            said.append(_seems(plan, gain, ", in doubt"))
            best = None if best is not None and best.doubt else best
        elif gain.speedup.in_doubt:
            said.append(_withheld(plan, gain, best is not None and bool(best.doubt)))
            best = None if best is not None and best.doubt else best
        else:
            said.append(_gain(plan, gain) if gain.is_gain else _no_gain(plan, gain))
    if best is not None:
        said.append(_use(plan, best, gain))
    text = " ".join(said)
    return f"With {group}: {_uncapitalised(text)}" if group else text


def _of_many(plan: Plan, found: list[_Greatest]) -> list[str]:
    gains = [item for item in found if item.is_gain and not item.speedup.in_doubt]
    doubted = [item for item in found if item.speedup.in_doubt]
    answers = []
    if gains:
        most = max(gains, key=lambda item: item.speedup.value)
        answers.append(f"With {most.group}: {_uncapitalised(_gain(plan, most))}")
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
    """``2 threads are 2.02× as fast as 1 [1.92, 2.11].``"""
    is_one, subject = _subject(plan, item.cell)
    return (
        f"{subject} {'is' if is_one else 'are'} {_times(item.speedup)} as fast as "
        f"{_base(plan, item)}{_interval(item.speedup)}{item.by}."
    )


def _withheld(plan: Plan, item: _Greatest, is_last: bool) -> str:
    """A speed-up that rests on trials in doubt; ``is_last``: no setting is recommended either."""
    sides = [cell for cell in (item.cell, item.base) if cell.doubtful]
    counts = " and ".join(
        f"{cell.doubtful} of {format_count(cell.trials, 'trial')} of {_own(plan, cell)}"
        for cell in sides
    )
    recommended = "No setting is recommended; run" if is_last else "Run"
    return (
        f"Which setting is fastest cannot be said: the machine was not quiet during {counts}. "
        f"{_seems(plan, item)} {recommended} it again on a quiet machine."
    )


def _seems(plan: Plan, item: _Greatest, doubt: str = "") -> str:
    is_one, subject = _subject(plan, item.cell)
    return (
        f"{subject} {'seems' if is_one else 'seem'} {_times(item.speedup)} as fast as "
        f"{_base(plan, item)}{_interval(item.speedup)}{item.by}{doubt}."
    )


def _no_gain(plan: Plan, item: _Greatest) -> str:
    base = _base(plan, item)
    other = "setting"
    if plan.work and base == str(item.base.parameters[plan.work]):
        other = f"number of {plan.work}"
    return f"No {other} is significantly faster than {base}{item.by}."


def _subject(plan: Plan, cell: CellFindings) -> tuple[bool, str]:
    """A cell as the subject of a sentence, and whether it is singular: ``2 threads`` where the
    factor is the name of what it counts, else ``n=2``."""
    level = cell.parameters[plan.work] if plan.work else ""
    if plan.work and _counts(plan.work, level) and level != 1:
        return False, f"{level} {plan.work}"
    return True, _own(plan, cell)


def _counts(factor: str, level: Level) -> bool:
    """Does the factor name what it counts: ``threads``, ``clients``?"""
    is_plural = factor.isalpha() and factor.endswith("s") and not factor.endswith("ss")
    return is_plural and len(factor) > 2 and isinstance(level, int)


def _greatest(
    plan: Plan,
    cells: tuple[CellFindings, ...],
    among: Among,
    by: str,
    best: tuple[BestFinding, ...],
) -> Iterator[_Greatest]:
    compared = _compared(cells)
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
        gains = [cell for cell in ranking if _is_gain(cell, compared, among)]
        # What is recommended is named, where it is as good as the greatest.
        gain = next(
            (cell for cell in gains if _is_recommended(cell, best)), next(iter(gains), None)
        )
        # That none is faster is not said either where one of them is in doubt.
        doubted = (cell for cell in ranking if cell.indicators["speedup"].in_doubt)
        most = gain or next(doubted, ranking[0])
        base = cells[most.index if most.base is None else most.base]
        yield _Greatest(group, most, base, gain is not None, by, _judged(most, compared, among))


def _compared(cells: tuple[CellFindings, ...]) -> int:
    """The speed-ups that an answer is chosen from."""
    return sum(cell.index != cell.base and "speedup" in cell.indicators for cell in cells)


def _is_recommended(cell: CellFindings, best: tuple[BestFinding, ...]) -> bool:
    return any(
        {**item.group, **item.recommended}.items() <= cell.parameters.items()
        for item in best
        if not item.doubt
    )


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


def _use(plan: Plan, item: BestFinding, gain: _Greatest | None = None) -> str:
    """The recommended setting of a best set, and which others are as good: ``Use 2; 4 and 8 are not
    significantly better.`` The sentence on the ``gain`` stands before it, if there is one."""
    by = "" if item.indicator in _TIMES else f" (by {item.label})"
    if item.doubt:
        return f"No setting is recommended{by}: {item.doubt}."
    members = sorted(item.settings, key=lambda setting: [*map(_order, setting.values())])
    others = [_setting(plan, item, setting) for setting in members if setting != item.recommended]
    name = _setting(plan, item, item.recommended)
    noun = f" {plan.work}" if gain is None and not name.count("=") else ""
    advice = f"Use {name}{noun}{by}"
    # That no other setting is faster than this one was said.
    is_said = gain is not None and not gain.is_gain and item.indicator in _TIMES
    if not others or (
        is_said and gain and item.recommended.items() <= gain.base.parameters.items()
    ):
        return f"{advice}."
    is_short = len(others) <= SETTINGS_NAMED and len(item.factors) == 1
    names = _listed(others) if is_short else format_count(len(others), "other")
    return f"{advice}; {names} {'is' if len(others) == 1 else 'are'} not significantly better."


def _setting(plan: Plan, item: BestFinding, setting: dict[str, Level]) -> str:
    """A member of a best set: its level alone, where the factor names what it counts."""
    levels = list(setting.items())
    if len(levels) == 1 and levels[0][0] == plan.work and _counts(*levels[0]):
        return str(levels[0][1])
    return describe(setting)


def _order(level: Level) -> tuple[bool, float, str]:
    """Numbers by size, then words."""
    return (True, 0.0, level) if isinstance(level, str) else (False, level, "")


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _uncapitalised(text: str) -> str:
    """A sentence that follows a colon."""
    first, _, _ = text.partition(" ")
    return text[:1].lower() + text[1:] if first in _OPENINGS else text


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
    """The base of a cell, with its levels that differ from those of the cell's group; its level
    alone, where nothing else differs and the factor names what it counts."""
    other = {
        name: level
        for name, level in item.base.parameters.items()
        if name != plan.work and level != item.cell.parameters[name]
    }
    if plan.work and not other and _counts(plan.work, item.base.parameters[plan.work]):
        return str(item.base.parameters[plan.work])
    own = _own(plan, item.base)
    return f"{describe(other)} {own}" if plan.work and other else own


def _name(plan: Plan, parameters: dict[str, Level]) -> str:
    return describe(_varied(plan, parameters) or parameters)


def _times(estimate: Estimate) -> str:
    return f"{estimate.value:.2f}×"


def _interval(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return " (one trial, no interval)"
    return f" [{estimate.low:.2f}, {estimate.high:.2f}]"


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
    trials; none where the number of trials was fixed, or for a figure in doubt, which is said."""
    plan, primary = protocol.plan, head.study.primary
    asked = plan.rules.precision
    ended = [
        cell
        for cell in cells
        if protocol.cells[cell.index].stop in _FOR_PRECISION and not _is_in_doubt(cell, primary)
    ]
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
            f"{which} in doubt because the machine was not quiet; the figures are those of the "
            "quiet trials, or medians that so few do not move."
        )
    if in_doubt:
        worst = max(
            (cells[index] for index in in_doubt), key=lambda cell: cell.doubtful / cell.trials
        )
        first = next(reject for reject in doubtful if reject.cell == worst.index)
        more = len(in_doubt) - 1
        are = "is" if more == 1 else "are"
        others = f", as {are} {format_count(more, 'other cell')}" if more else ""
        begun = f"{_name(plan, worst.parameters)} is in doubt{others}"
        if len(in_doubt) == len(cells) > 1:
            begun = f"All {len(cells)} cells are in doubt"
        cause = first.detail.partition(": ")[0]
        found.append(
            f"{begun}: the machine was not quiet during {worst.doubtful} of "
            f"{format_count(worst.trials, 'trial')} of {_name(plan, worst.parameters)} ({cause}). "
            "Such figures have the mark ?; run again on a quiet machine."
        )
    return found


def _refused(first: TrialRecord | None) -> list[str]:
    """What the programs of the first trial reported in vain; the others ran the same programs."""
    said = "" if first is None else refused_lines(first)
    return [f"In the first trial {said}."] if said else []


def _is_in_doubt(cell: CellFindings, primary: str) -> bool:
    figure = cell.indicators.get(primary)
    return figure is not None and figure.in_doubt


def _notes(plan: Plan, cells: tuple[CellFindings, ...], speed: Speed | None) -> list[str]:
    notes = []
    if any(_has_start_up(cell) for cell in cells):
        notes.append(
            f"Times are those of the phase '{MEASURE_PHASE}' that the program marked; run_seconds "
            "includes the start-up."
        )
    if speed is None or not any("speedup" in cell.indicators for cell in cells):
        return notes
    if plan.work_grows:
        notes.append(
            f"Speed-up is by {speed.indicator.label}, against the base cell of each group; "
            f"efficiency is speed-up over the ratio of {plan.work}."
        )
    elif plan.work:
        base = ", ".join(f"{name}={level}" for name, level in plan.study.base.items())
        notes.append(
            f"Speed-up is by {speed.indicator.label}, against {base} at the same {plan.work}."
        )
    if (compared := _compared(cells)) > 1:
        notes.append(
            f"The intervals of the answer hold for all {compared} speed-ups together, from which "
            "it is chosen; so they are wider than those of the tables."
        )
    return notes


def _has_start_up(cell: CellFindings) -> bool:
    run, wall = cell.indicators.get("run_seconds"), cell.indicators.get("wall_seconds")
    return run is not None and wall is not None and run.value > START_UP_FACTOR * wall.value
