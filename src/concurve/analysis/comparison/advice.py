"""What would decide a comparison that is undecided: so many trials, in so much time."""

from __future__ import annotations

import math
from collections.abc import Sequence

from concurve import words
from concurve.analysis.comparison.options import Options
from concurve.analysis.comparison.sides import Side
from concurve.estimate import Estimate
from concurve.findings.again import program_of, run_again
from concurve.findings.comparison import OPEN_FROM, CellComparison
from concurve.findings.repeats import repeats_options
from concurve.stats.moments import growth
from concurve.stats.power import TOO_COARSE, TRIALS_MAX
from concurve.terms import Level

_POWER = "with a power of 80 %"
_QUIET = "What is in doubt needs quiet trials. "
_ALL_THE_SAME = " --in-doubt judges by these trials all the same."

#: The spread of fewer trials is itself rough: the number by it is one, and it is not below this.
_FEW = 10

#: So many cells are named.
_NAMED_MAX = 3


def advice(
    cells: Sequence[CellComparison],
    judged: Sequence[bool],
    coarse: Sequence[bool],
    sides: tuple[Side, Side],
    options: Options,
) -> tuple[str, ...]:
    """Sentences on the cells that are undecided; none where none is. ``judged``: has a cell an
    interval by which it is judged? One without has a note instead, and one in doubt wants a quiet
    machine, unless the trials of this one are to count: how they spread says nothing of the trials
    there. ``coarse``: is the step of a cell's clock as large as the effect?

    The numbers follow from the spreads alone, never from the differences that were seen: a run is
    planned for the effect of interest.
    """
    open_ = [
        (cell, is_coarse)
        for cell, is_judged, is_coarse in zip(cells, judged, coarse, strict=True)
        if cell.decided == "undecided" and is_judged
    ]
    effect = options.effect
    undecided = [cell for cell, is_coarse in open_ if not is_coarse]
    beyond = len(open_) - len(undecided)
    said = _coarse(beyond, len(open_), effect) if beyond else ()
    plan = _plan(undecided, sides, effect) if undecided else ()
    is_doubted = any(cell.verdict == "undecided" and cell.is_doubted for cell in cells)
    runs = [run.run for side in sides for run in side.sessions]
    # What helps is told by the run that waited longest, if any did.
    waits = [run.waiting for run in runs if run.waiting is not None]
    waiting = max(waits, key=lambda each: each.waited_seconds, default=None)
    strangers = list(dict.fromkeys(name for run in runs for name in run.strangers))
    again = run_again(
        any(run.over_hosts for run in runs),
        waiting,
        strangers,
        is_stolen=all(run.is_stolen for run in runs),
        constant=_common([run.constant for run in runs]),
        autogroups=any(run.autogroups for run in runs),
    )
    quiet = f"{_QUIET}{again}{'' if options.in_doubt else _ALL_THE_SAME}"
    return (*said, *plan, *((quiet,) if is_doubted else ()))


def _common(named: Sequence[Sequence[str]]) -> list[str]:
    """What all of them name; of a program that was another process elsewhere, its name alone."""
    first = list(dict.fromkeys(named[0]))
    if all(set(first) == set(each) for each in named):
        return first
    programs = [list(map(program_of, each)) for each in named]
    return [name for name in dict.fromkeys(programs[0]) if all(name in each for each in programs)]


def together(
    cells: Sequence[CellComparison], deciding: Sequence[tuple[float, float] | None], judged: int
) -> tuple[str, ...]:
    """A sentence on the cells that are undecided although the interval of each alone leaves out 1:
    with the interval that holds where all that are ``judged`` are so together; none where none
    is."""
    open_ = [
        (cell, interval)
        for cell, interval in zip(cells, deciding, strict=True)
        if cell.verdict == "undecided" and interval is not None and _leaves_out_1(cell.ratio)
        if interval[0] <= 0 <= interval[1]
    ]
    if not open_:
        return ()
    said = [
        " ".join(filter(None, (_span(*interval), _where(cell.parameters))))
        for cell, interval in open_[:_NAMED_MAX]
    ]
    more = f"; and {len(open_) - _NAMED_MAX} more" if len(open_) > _NAMED_MAX else ""
    return (
        f"The interval that decides is wider, as {judged} ratios are judged together: "
        f"{'; '.join(said)}{more}. {'It holds' if len(open_) == 1 else 'Each of them holds'} 1.",
    )


def _leaves_out_1(ratio: Estimate | None) -> bool:
    if ratio is None or ratio.low is None or ratio.high is None:
        return False
    return ratio.low > 1 or ratio.high < 1


def _span(low: float, high: float) -> str:
    """The interval of a ratio by its ends in logarithms, as the table words it. That of two trials,
    judged with very many others, may end beyond the range of a float."""
    least, most = growth(low), growth(high)
    if not math.isfinite(most) or most > OPEN_FROM * least:
        return "none: too wide"
    return f"{least:.2f} to {most:.2f}"


def _where(parameters: dict[str, Level]) -> str:
    levels = " ".join(f"{name}={level}" for name, level in parameters.items())
    return f"at {levels}" if levels else ""


def _coarse(beyond: int, of: int, effect: float) -> tuple[str, ...]:
    where = "" if beyond == of else f"In {beyond} of {of} undecided cells "
    text = (
        f"the step of the clock is as large as a difference of {_share(effect)}, so {TOO_COARSE}."
    )
    return (where + text if where else text[0].upper() + text[1:],)


def _share(effect: float) -> str:
    return f"{words.in_percent(effect)} %"


def _plan(
    undecided: Sequence[CellComparison], sides: tuple[Side, Side], effect: float
) -> tuple[str, ...]:
    if any(len(side.sessions) > 1 for side in sides):
        return ("To decide more: more runs on each side, or a greater --effect.",)
    share = _share(effect)
    have = min(cell.ratio.n for cell in undecided if cell.ratio is not None)
    wanted = [cell.trials for cell in undecided]
    if None in wanted:
        return (
            f"{TRIALS_MAX} trials of each would not show a difference of {share} "
            f"{_POWER}; a greater --effect may be decided.",
            *_by_cpu_time(undecided, TRIALS_MAX + 1, sides),
        )
    most = max(number for number in wanted if number is not None)
    if most <= have:
        return _about_as_large(undecided, effect)
    least, about = (_FEW, "About ") if have < _FEW else (0, "")
    most = max(most, least)
    alike = ", if they spread as these do" if any(cell.is_doubted for cell in undecided) else ""
    return (
        f"{about}{words.count(most, 'trial')} of each would tell a difference of {share} from none "
        f"{_POWER}{alike}: {_options(most, sides)} in a new run (about {_time(most, sides)}).",
        *_by_cpu_time(undecided, most, sides, least),
    )


def _about_as_large(undecided: Sequence[CellComparison], effect: float) -> tuple[str, ...]:
    """That the trials are enough for a difference as large as the effect, and that these are about
    so large: on which side of it they lie is open, and may stay so with any number."""
    said = [
        " ".join(filter(None, (_difference(cell.ratio), _where(cell.parameters))))
        for cell in undecided[:_NAMED_MAX]
        if cell.ratio is not None
    ]
    more = f"; and {len(undecided) - _NAMED_MAX} more" if len(undecided) > _NAMED_MAX else ""
    is_one = len(undecided) == 1
    lies = "lies across" if is_one else "lie across"
    if not all(_is_across(cell.ratio, effect) for cell in undecided):
        lies = "is about as large as" if is_one else "are about as large as"
    return (
        f"{'; '.join(said)}{more} {lies} the effect of {_share(effect)}: another --effect would "
        "decide.",
    )


def _is_across(ratio: Estimate | None, effect: float) -> bool:
    """Does the interval hold a ratio that is off by just the effect, up or down?"""
    if ratio is None or ratio.low is None or ratio.high is None:
        return False
    edges = (1 + effect, 1 / (1 + effect))
    return any(ratio.low <= edge <= ratio.high for edge in edges)


def _difference(ratio: Estimate) -> str:
    """``4.5 % [3.5, 5.4 %]``: by how much new lies above base, or below it (negative)."""
    ends = (ratio.low, ratio.high)
    low, high = (words.in_percent((ratio.value if it is None else it) - 1) for it in ends)
    return f"{words.in_percent(ratio.value - 1)} % [{low}, {high} %]"


def _by_cpu_time(
    undecided: Sequence[CellComparison], most: int, sides: tuple[Side, Side], least: int = 0
) -> tuple[str, ...]:
    """How many trials CPU time would need, for the plan of a next run: fewer than ``most``, and
    ``least`` at least."""
    wanted = [cell.cpu_trials for cell in undecided]
    known = [number for number in wanted if number is not None]
    needed = max([least, *known])
    if len(known) < len(wanted) or needed >= most:
        return ()
    is_sweep = all(run.run.is_sweep for side in sides for run in side.sessions)
    how = "--primary cpu_seconds" if is_sweep else "cpu_seconds as the first of [[indicators]]"
    is_doubted = any(cell.note.startswith("in doubt") for cell in undecided)
    then = ", and compare it with --in-doubt" if is_doubted else ""
    return (
        f"CPU time spreads less and would need {needed} trials of each: to judge by it, plan "
        f"the next run with {how}{then}.",
    )


def _seconds(trials: int, sides: tuple[Side, Side]) -> dict[str, float]:
    """The time of so many blocks of each run that is compared, by its name."""
    runs = {run.run.id: run for side in sides for run in side.sessions}
    return {
        name: trials * len(run.cells) * run.run.duration_seconds / max(1, run.run.trials)
        for name, run in runs.items()
    }


def _time(trials: int, sides: tuple[Side, Side]) -> str:
    return words.duration(sum(_seconds(trials, sides).values()))


def _options(trials: int, sides: tuple[Side, Side]) -> str:
    """The options of the new run, or of each: with the time that the longest takes."""
    seconds = _seconds(trials, sides)
    allowed = [
        run.run.allowed_seconds
        for side in sides
        for run in side.sessions
        if run.run.allowed_seconds is not None
    ]
    return repeats_options(trials, max(seconds.values()), min(allowed, default=None))
