"""What would decide a comparison that is undecided: so many trials, in so much time."""

from __future__ import annotations

from collections.abc import Sequence

from concurve import words
from concurve.analysis.comparison.sides import Side
from concurve.findings.comparison import CellComparison
from concurve.stats.power import TOO_COARSE, TRIALS_MAX

_POWER = "with a power of 80 %"
_QUIET = (
    "A new run on a quiet machine decides what is in doubt: --wait-quiet 5m waits for one, and "
    "concurve doctor says what disturbs. --in-doubt judges by these trials all the same."
)


def advice(
    cells: Sequence[CellComparison],
    coarse: Sequence[bool],
    sides: tuple[Side, Side],
    effect: float,
) -> tuple[str, ...]:
    """Sentences on the cells that are undecided; none where none is. ``coarse``: is the step of a
    cell's clock as large as the effect? A cell without an interval has a note instead. One in
    doubt wants a quiet machine: how the trials of this one spread says nothing of the trials there.

    The numbers follow from the spreads alone, never from the differences that were seen: a run is
    planned for the effect of interest.
    """
    open_ = [
        (cell, is_coarse)
        for cell, is_coarse in zip(cells, coarse, strict=True)
        if cell.verdict == "undecided" and cell.ratio is not None and not cell.note
    ]
    undecided = [cell for cell, is_coarse in open_ if not is_coarse]
    beyond = len(open_) - len(undecided)
    said = _coarse(beyond, len(open_), effect) if beyond else ()
    plan = _plan(undecided, sides, effect) if undecided else ()
    is_doubted = any(cell.verdict == "undecided" and cell.is_doubted for cell in cells)
    return (*said, *plan, *((_QUIET,) if is_doubted else ()))


def _coarse(beyond: int, of: int, effect: float) -> tuple[str, ...]:
    where = "" if beyond == of else f"In {beyond} of {of} undecided cells "
    text = f"the step of the clock is as large as a difference of {_share(effect)}: {TOO_COARSE}."
    return (where + text if where else text[0].upper() + text[1:],)


def _share(effect: float) -> str:
    return f"{100 * effect:.2g} %"


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
        )
    most = max(number for number in wanted if number is not None)
    if most <= have:
        return (
            f"{have} trials of each show a difference of {share} {_POWER}, but "
            "these differences are about as large as that: another --effect would decide.",
        )
    return (
        f"{words.count(most - have, 'more trial')} of each would show a difference of {share} "
        f"{_POWER}: --repeats {most}..{most} in a new run (about {_time(most, sides)}).",
        *_by_cpu_time(undecided, most),
    )


def _by_cpu_time(undecided: Sequence[CellComparison], most: int) -> tuple[str, ...]:
    """How many trials CPU time would need, for the plan of a next run."""
    wanted = [cell.cpu_trials for cell in undecided]
    known = [number for number in wanted if number is not None]
    if len(known) < len(wanted) or max(known) >= most:
        return ()
    return (
        f"CPU time spreads less and would need {max(known)} trials of each: to judge by it, plan "
        "the next run with --primary cpu_seconds.",
    )


def _time(trials: int, sides: tuple[Side, Side]) -> str:
    """The time of so many blocks of each run that is compared."""
    runs = {run.run.id: run.run for side in sides for run in side.sessions}
    cells = {run.run.id: len(run.cells) for side in sides for run in side.sessions}
    return words.duration(
        sum(
            trials * cells[name] * run.duration_seconds / max(1, run.trials)
            for name, run in runs.items()
        )
    )
