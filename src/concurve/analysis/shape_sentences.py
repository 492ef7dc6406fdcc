"""What the shape of the trials says, as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from concurve import words
from concurve.analysis.sentences.naming import name
from concurve.findings.cells import CellFindings
from concurve.findings.run import Finding, LevelChange
from concurve.planning.plan import Plan
from concurve.stats.best import ALIKE
from concurve.stats.shape import BY_CHANCE, TRIALS_MIN
from concurve.terms import IndicatorInfo

#: So many cells are named, with the figures of each; others are counted.
NAMED_MAX = 3


def shape_sentences(
    plan: Plan,
    cells: Sequence[CellFindings],
    change: LevelChange | None,
    drift: float | None,
    is_unlike: bool,
    is_open: bool,
    course: float | None,
    infos: Sequence[IndicatorInfo],
    primary: str,
) -> Iterator[Finding]:
    """Warnings of cells with two levels or trials far off, of a change or a drift in time that all
    cells share, do not (``is_unlike``), or are not shown to (``is_open``, with its ``course``), and
    of speed-ups whose blocks depend on each other; and how many cells have a shape by chance."""
    info = next((info for info in infos if info.name == primary), None)
    info = info or IndicatorInfo(name=primary, label=primary)
    for text in (
        *_change(change, info),
        *_drift(None if change else drift, info),
        *_unlike(is_unlike, info),
        *_not_shown(is_open, course, info),
    ):
        yield Finding(kind="warning", sentence=text)
    for text in (
        *_levels(plan, cells, info),
        *_tails(plan, cells, info),
        *_fast(plan, cells, info),
        *_odd(plan, cells, info),
        *_widened(plan, cells),
    ):
        yield Finding(kind="warning", sentence=text, subject="uneven trials")
    for text in _by_chance(cells, primary):
        yield Finding(kind="note", sentence=text)


def _by_chance(cells: Sequence[CellFindings], primary: str) -> Iterator[str]:
    """Each cell is judged alone, so of many some seem to have a shape."""
    ns = [cell.indicators[primary].n for cell in cells if primary in cell.indicators]
    searched = sum(n >= TRIALS_MIN for n in ns)
    if searched > 1 and any(map(_is_shaped, cells)):
        yield (
            f"Two levels or trials far off (mark ‡) were looked for in {searched} cells. Where the "
            f"noise is normal, about 1 of {round(1 / BY_CHANCE)} cells shows one by chance: each "
            "is judged alone. The median of two levels tells only one of them."
        )


def _change(change: LevelChange | None, info: IndicatorInfo) -> Iterator[str]:
    if change is None:
        return
    percent = words.share(abs(change.factor - 1))
    yield (
        f"From block {change.block + 1} on, {info.label} was {percent} "
        f"{'higher' if change.factor > 1 else 'lower'} in all cells: the machine changed, or "
        "trials leave something to later ones, such as files. Ratios hold; medians mix both times."
    )


def _drift(share: float | None, info: IndicatorInfo) -> Iterator[str]:
    if share is not None:
        label = f"{info.label[:1].upper()}{info.label[1:]}"
        yield (
            f"{label} drifted in all cells alike, by up to {words.share(share)} from one block to "
            "another. Ratios hold; medians are those of the time of this run."
        )


def _unlike(is_unlike: bool, info: IndicatorInfo) -> Iterator[str]:
    if is_unlike:
        label = f"{info.label[:1].upper()}{info.label[1:]}"
        yield (
            f"{label} changed during this run, and not in all cells alike: medians and ratios are "
            "those of the time of this run, and may differ at another."
        )


def _not_shown(is_open: bool, course: float | None, info: IndicatorInfo) -> Iterator[str]:
    if is_open:
        label, how = f"{info.label[:1].upper()}{info.label[1:]}", ""
        if course is not None:
            share = f"{words.share(abs(course))} {'higher' if course > 0 else 'lower'}"
            how = f", and was {share} in its last third than in its first"
        yield (
            f"{label} changed in the course of this run{how}. More trials would show whether the "
            f"ratios changed, too, by {words.in_percent(ALIKE)} % or more."
        )


def _levels(plan: Plan, cells: Sequence[CellFindings], info: IndicatorInfo) -> Iterator[str]:
    for is_clear in (True, False):
        what = "two levels" if is_clear else "two levels, or one that spreads widely"
        each = []
        for cell in cells:
            levels = cell.two_levels
            if levels is not None and levels.clear is is_clear:
                low, high = (words.quantity(it, info.unit) for it in (levels.low, levels.high))
                trials = words.count(levels.trials_low, "trial")
                said = f"{low} in {trials}, {high} in {levels.trials_high}"
                each.append((name(plan, cell.parameters), said))
        if len(each) == 1:
            ((who, said),) = each
            yield f"{who} (‡) has {what}: {said}."
        elif each:
            yield f"{len(each)} cells (‡) have {what}: {_each(each)}."


#: What an outlier is.
_OUTSIDE = "The noise of the others does not reach so far."


def _tails(plan: Plan, cells: Sequence[CellFindings], info: IndicatorInfo) -> Iterator[str]:
    found = [(cell, it.trials, it.factor, it.worst) for cell in cells if (it := cell.slow_tail)]
    yield from _outliers(plan, found, info, "worse", _OUTSIDE)


def _fast(plan: Plan, cells: Sequence[CellFindings], info: IndicatorInfo) -> Iterator[str]:
    found = [(cell, it.trials, it.factor, it.best) for cell in cells if (it := cell.fast_tail)]
    check = "Check that they did all of their work."
    yield from _outliers(plan, found, info, "better", f"{_OUTSIDE} {check}")


def _outliers(
    plan: Plan,
    found: Sequence[tuple[CellFindings, int, float, float]],
    info: IndicatorInfo,
    better: str,
    rest: str,
) -> Iterator[str]:
    """One sentence for all cells with outliers on one side; each has the number of these trials,
    their factor, and the furthest figure."""
    if len(found) == 1:
        ((cell, trials, factor, furthest),) = found
        most = "at worst" if better == "worse" else "at best"
        yield (
            f"{name(plan, cell.parameters)} (‡) has {words.count(trials, 'outlier')} that "
            f"{words.verb(trials)} {better}: {factor:.3g}× the other trials, "
            f"{words.quantity(furthest, info.unit)} {most}. {rest}"
        )
    elif found:
        each = [
            (name(plan, cell.parameters), f"{words.count(trials, 'trial')}, {factor:.3g}×")
            for cell, trials, factor, _ in found
        ]
        yield (
            f"{len(found)} cells (‡) have outliers that are {better} than their other trials: "
            f"{_each(each)}. {rest}"
        )


def _odd(plan: Plan, cells: Sequence[CellFindings], info: IndicatorInfo) -> Iterator[str]:
    """The single trials without which the intervals of their cells were less than half as wide."""
    each = []
    for cell in cells:
        if odd := cell.odd_trial:
            value = words.quantity(odd.value, info.unit)
            span = words.quantity_with_interval(odd.without, odd.low, odd.high, info.unit)
            each.append((name(plan, cell.parameters), odd.trial, value, span))
    if len(each) == 1:
        ((who, trial, value, span),) = each
        yield (
            f"Trial {trial} of {who} ({value}) alone makes its interval wide: without it, it would "
            f"be {span}. {_KEPT}"
        )
    elif each:
        said = [(who, f"trial {at}: {value}, without it {span}") for who, at, value, span in each]
        yield f"In {len(each)} cells a trial alone makes the interval wide: {_each(said)}. {_KEPT}"


_KEPT = "The figure keeps it."


def _widened(plan: Plan, cells: Sequence[CellFindings]) -> Iterator[str]:
    found = sorted(
        (cell for cell in cells if cell.widened), key=lambda cell: -(cell.widened or 0.0)
    )
    for is_chance in (False, True):
        own = [cell for cell in found if cell.widened_by_chance is is_chance]
        each = [(name(plan, cell.parameters), f"{cell.widened:.2g} times") for cell in own]
        if len(each) == 1:
            ((who, times),) = each
            what = "is alike in neighbouring trials, perhaps by chance"
            what = what if is_chance else "drifts from trial to trial"
            yield f"The speed-up of {who} (‡) {what}: its interval is {times} as wide for that."
        elif each:
            what = "are alike in neighbouring trials, perhaps by chance"
            what = what if is_chance else "drift from trial to trial"
            yield (
                f"The speed-ups of {len(each)} cells (‡) {what}: their intervals are as much wider "
                f"for that: {_each(each)}."
            )


def _each(found: Sequence[tuple[str, str]]) -> str:
    """``n=1 (2 trials, 1.94×) and n=2 (1 trial, 1.5×)``, and how many more."""
    named = [f"{who} ({said})" for who, said in found[:NAMED_MAX]]
    left = len(found) - len(named)
    return words.listed([*named, f"{left} more"] if left else named)


def _is_shaped(cell: CellFindings) -> bool:
    return bool(cell.two_levels or cell.slow_tail or cell.fast_tail)
