"""What the shape of the trials says, as sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from concurve import words
from concurve.findings.cells import CellFindings
from concurve.findings.run import Finding, LevelChange
from concurve.planning.plan import Plan, describe
from concurve.stats.shape import BY_CHANCE, TRIALS_MIN
from concurve.terms import IndicatorInfo

#: So many cells are named, with the figures of each; others are counted.
NAMED_MAX = 3


def shape_sentences(
    plan: Plan,
    cells: Sequence[CellFindings],
    change: LevelChange | None,
    drift: float | None,
    infos: Sequence[IndicatorInfo],
    primary: str,
) -> Iterator[Finding]:
    """Warnings of cells with two levels or trials far off, of a change or a drift in time, and of
    speed-ups whose blocks depend on each other; and how many cells have a shape by chance."""
    info = next((info for info in infos if info.name == primary), None)
    info = info or IndicatorInfo(name=primary, label=primary)
    for text in (
        *_change(change, info),
        *_drift(None if change else drift, info),
        *_levels(cells, info),
        *_tails(cells, info),
        *_fast(cells, info),
        *_widened(cells),
    ):
        yield Finding(kind="warning", sentence=text)
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
            "is judged alone."
        )


def _change(change: LevelChange | None, info: IndicatorInfo) -> Iterator[str]:
    if change is None:
        return
    percent = words.share(abs(change.factor - 1))
    yield (
        f"From block {change.block + 1} on, {info.label} was {percent} "
        f"{'higher' if change.factor > 1 else 'lower'} in all cells (median over the cells): the "
        "machine changed, or trials leave something to later ones, such as files. Ratios compare "
        "trials of the same block, so it drops out of them; the median of a cell does not tell the "
        "two times apart."
    )


def _drift(share: float | None, info: IndicatorInfo) -> Iterator[str]:
    if share is not None:
        label = f"{info.label[:1].upper()}{info.label[1:]}"
        yield (
            f"{label} drifted in all cells, by up to {words.share(share)} "
            "from one block to another: blocks that follow each other are alike. That drops out of "
            "ratios; the median of a cell is that of the time of this run."
        )


def _levels(cells: Sequence[CellFindings], info: IndicatorInfo) -> Iterator[str]:
    found = [cell for cell in cells if cell.two_levels]
    for cell in found[:NAMED_MAX]:
        levels = cell.two_levels
        assert levels is not None
        low, high = (words.quantity(value, info.unit) for value in (levels.low, levels.high))
        yield (
            f"{describe(cell.parameters)} has two levels of {info.label}: {low} in "
            f"{words.count(levels.trials_low, 'trial')}, {high} in {levels.trials_high}. Its "
            "median tells only one of them (mark ‡)."
        )
    yield from _more(len(found), "two levels")


def _tails(cells: Sequence[CellFindings], info: IndicatorInfo) -> Iterator[str]:
    found = [cell for cell in cells if cell.slow_tail]
    for cell in found[:NAMED_MAX]:
        tail = cell.slow_tail
        assert tail is not None
        yield (
            f"{describe(cell.parameters)} has {words.count(tail.trials, 'trial')} far worse than "
            f"its others: {info.label} {tail.factor:.3g} times as high in their median, "
            f"{words.quantity(tail.worst, info.unit)} at worst (mark ‡)."
        )
    yield from _more(len(found), "trials far worse than their others")


def _fast(cells: Sequence[CellFindings], info: IndicatorInfo) -> Iterator[str]:
    found = [cell for cell in cells if cell.fast_tail]
    for cell in found[:NAMED_MAX]:
        tail = cell.fast_tail
        assert tail is not None
        yield (
            f"{describe(cell.parameters)} has {words.count(tail.trials, 'trial')} far better than "
            f"its others: {info.label} {tail.factor:.3g} times as high in their median, "
            f"{words.quantity(tail.best, info.unit)} at best (mark ‡). Check that they did all of "
            "their work."
        )
    yield from _more(len(found), "trials far better than their others")


def _widened(cells: Sequence[CellFindings]) -> Iterator[str]:
    found = sorted(
        (cell for cell in cells if cell.widened), key=lambda cell: -(cell.widened or 0.0)
    )
    for cell in found[:NAMED_MAX]:
        yield (
            f"The speed-up of {describe(cell.parameters)} depends on when it was measured: blocks "
            "that follow each other are alike, as if caches, files or heat of one cell lasted from "
            f"trial to trial. Its interval is {cell.widened:.2g} times as wide for that (mark ‡)."
        )
    yield from _more(len(found), "a speed-up that depends on the time")


def _is_shaped(cell: CellFindings) -> bool:
    return bool(cell.two_levels or cell.slow_tail or cell.fast_tail)


def _more(count: int, what: str) -> Iterator[str]:
    if count > NAMED_MAX:
        verb = "has" if count == NAMED_MAX + 1 else "have"
        yield f"{words.count(count - NAMED_MAX, 'further cell')} {verb} {what} (mark ‡)."
