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
    found = [cell for cell in cells if cell.two_levels]
    for cell in found[:NAMED_MAX]:
        levels = cell.two_levels
        assert levels is not None
        low, high = (words.quantity(value, info.unit) for value in (levels.low, levels.high))
        what = "two levels" if levels.clear else "two levels, or one that spreads widely"
        yield (
            f"{name(plan, cell.parameters)} (‡) has {what}: {low} in "
            f"{words.count(levels.trials_low, 'trial')}, {high} in {levels.trials_high}."
        )
    yield from _more(len(found), "two levels, or one that spreads widely")


def _tails(plan: Plan, cells: Sequence[CellFindings], info: IndicatorInfo) -> Iterator[str]:
    found = [cell for cell in cells if cell.slow_tail]
    for cell in found[:NAMED_MAX]:
        tail = cell.slow_tail
        assert tail is not None
        yield (
            f"{name(plan, cell.parameters)} (‡) has {_outliers(tail.trials, 'worse')}: "
            f"{tail.factor:.3g}× the other trials, {words.quantity(tail.worst, info.unit)} at "
            f"worst. {_OUTSIDE}"
        )
    yield from _more(len(found), "outliers that are worse")


#: What an outlier is.
_OUTSIDE = "The noise of the others does not reach so far."


def _outliers(number: int, better: str) -> str:
    return f"{words.count(number, 'outlier')} that {words.verb(number)} {better}"


def _fast(plan: Plan, cells: Sequence[CellFindings], info: IndicatorInfo) -> Iterator[str]:
    found = [cell for cell in cells if cell.fast_tail]
    for cell in found[:NAMED_MAX]:
        tail = cell.fast_tail
        assert tail is not None
        yield (
            f"{name(plan, cell.parameters)} (‡) has {_outliers(tail.trials, 'better')}: "
            f"{tail.factor:.3g}× the other trials, {words.quantity(tail.best, info.unit)} at "
            f"best. {_OUTSIDE} Check that they did all of their work."
        )
    yield from _more(len(found), "outliers that are better")


def _widened(plan: Plan, cells: Sequence[CellFindings]) -> Iterator[str]:
    found = sorted(
        (cell for cell in cells if cell.widened), key=lambda cell: -(cell.widened or 0.0)
    )
    for cell in found[:NAMED_MAX]:
        what = "drifts from trial to trial"
        if cell.widened_by_chance:
            what = "is alike in neighbouring trials, perhaps by chance"
        yield (
            f"The speed-up of {name(plan, cell.parameters)} (‡) {what}: its interval is "
            f"{cell.widened:.2g} times as wide for that."
        )
    yield from _more(len(found), "a speed-up that depends on the time")


def _is_shaped(cell: CellFindings) -> bool:
    return bool(cell.two_levels or cell.slow_tail or cell.fast_tail)


def _more(count: int, what: str) -> Iterator[str]:
    if count > NAMED_MAX:
        verb = "has" if count == NAMED_MAX + 1 else "have"
        yield f"{words.count(count - NAMED_MAX, 'further cell')} {verb} {what} (mark ‡)."
