"""What other figures say of cells whose verdict is undecided: a hint, and no verdict.

A verdict by another figure of the same trials, because the first was undecided, would be a second
try (decision 27). Yet a reader should not have to look for what did differ. CPU time is one figure,
named beforehand; the others are many, so they are judged as one family, in which a difference must
be the clearer the more there are. Where the machine was not quiet there is a verdict by CPU time of
a program whose one thread computes: what the machine did calls for it, and no figure. Where quiet
trials are judged by their wall time first, both verdicts share the error (decision 98).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import msgspec

from concurve import words
from concurve.analysis.comparison.cells import CPU_TIME, ToldByCpuTime
from concurve.analysis.comparison.options import indicators_beside
from concurve.analysis.comparison.sides import Side
from concurve.findings.comparison import ByCpuTime, CellComparison
from concurve.terms import IndicatorInfo

#: So many cells, or figures of a cell, are named.
_NAMED_MAX = 3

#: What is measured of any program and may differ while the times do not; primary and extracted
#: figures are added. What follows from the times is no other figure.
_MEASURED = ("rss_bytes_max", "minor_faults", "major_faults", "context_switches")
_OF_TIME = ("wall_seconds", "run_seconds", "rate_per_second", "seconds_per_operation", "speedup",
            "efficiency", "rate_per_worker")  # fmt: skip


def other_figures(sides: tuple[Side, Side], asked: Sequence[IndicatorInfo]) -> list[IndicatorInfo]:
    """The figures besides CPU time and those ``asked`` for that may differ, of all runs."""
    runs = [run for side in sides for run in side.sessions]
    own = (name for run in runs for name in (run.primary, *run.extracted))
    names = dict.fromkeys((*own, *_MEASURED))
    return [
        info
        for name in names
        if name not in (CPU_TIME, *_OF_TIME)
        for info in indicators_beside(sides, name, asked)
    ]


def verdicts_by_cpu_time(
    cells: Sequence[CellComparison],
    beside: Sequence[CellComparison],
    told: Sequence[ToldByCpuTime],
    base: str,
    effect: float,
) -> dict[str, CellComparison]:
    """A sentence on each cell that the wall time leaves open because the machine was not quiet, and
    whose CPU time differs, or is the same, of those that may be ``told`` by it; ``beside`` are the
    same cells by CPU time. ``base`` is what they are compared with."""
    said = {}
    for cell in beside:
        pairs = next((it for it in told if it.parameters == cell.parameters), None)
        if pairs is None or cell.verdict == "undecided":
            continue
        for own in cells:
            if own.parameters == cell.parameters and _is_open_by_wall_time(own, pairs):
                said[_verdict(cell, base, effect, _why(own))] = cell
    return said


def _is_open_by_wall_time(cell: CellComparison, told: ToldByCpuTime) -> bool:
    is_open = cell.verdict == "undecided" and cell.indicator == "wall_seconds"
    return is_open and (cell.is_doubted or told.quiet < told.pairs)


def _why(cell: CellComparison) -> str:
    """Why a cell is told by CPU time. How many pairs were quiet is a warning of the comparison."""
    if cell.is_doubted:
        return "the wall time is in doubt"
    return "too few pairs were quiet to decide by wall time"


def with_verdicts(
    cells: Sequence[CellComparison], told: Sequence[CellComparison]
) -> Iterator[CellComparison]:
    """The cells, with the verdict by CPU time of those of which it is ``told``."""
    for cell in cells:
        found = next((it for it in told if it.parameters == cell.parameters), None)
        is_open = cell.verdict == "undecided" and cell.indicator == "wall_seconds"
        if found is None or found.ratio is None or not is_open:
            yield cell
        else:
            by_cpu_time = ByCpuTime(verdict=found.verdict, ratio=found.ratio)
            yield msgspec.structs.replace(cell, by_cpu_time=by_cpu_time)


def _verdict(cell: CellComparison, base: str, effect: float, why: str) -> str:
    """``By CPU time version=new is 4.1 % slower than version=old [3.2, 5.1 %]; the wall time is in
    doubt.``"""
    by, ends = _by(cell)
    where = " ".join(f"{name}={level}" for name, level in cell.parameters.items())
    if cell.verdict == "same":
        within = f"within {words.in_percent(effect)} %: {_difference(cell)}"
        return f"By CPU time {where} is as fast as {base}, {within}; {why}."
    return f"By CPU time {where} is {by} % {cell.verdict} than {base} [{ends} %]; {why}."


def _difference(cell: CellComparison) -> str:
    """``0.2 % slower [1.0 % faster to 0.8 % slower]``, of the CPU time of cells that are the same;
    ``4.1 % slower [3.6, 4.8 %]`` where both ends are on one side."""
    by, ends = _by(cell)
    ratio = cell.ratio
    assert ratio is not None and ratio.low is not None and ratio.high is not None
    if (ratio.low > 1) == (ratio.high > 1):
        return f"{by} % {_way(ratio.value)} [{ends} %]"
    low, high = (
        f"{words.in_percent(abs(end - 1))} % {_way(end)}" for end in (ratio.low, ratio.high)
    )
    return f"{by} % {_way(ratio.value)} [{low} to {high}]"


def _way(ratio: float) -> str:
    return "slower" if ratio > 1 else "faster"


def hints(
    cells: Sequence[CellComparison],
    beside: Sequence[CellComparison],
    infos: Sequence[IndicatorInfo],
    cpu_time: str,
) -> tuple[str, ...]:
    """A sentence on the undecided cells whose CPU time differs; none where none does. ``beside``
    are the same cells by CPU time, with the verdicts of all of them together; ``cpu_time`` is its
    label."""
    undecided = [cell.parameters for cell in cells if cell.verdict == "undecided"]
    found = [
        cell
        for cell in beside
        if cell.verdict in ("faster", "slower") and cell.parameters in undecided
    ]
    if not found:
        return ()
    said = "; ".join(_differs(cell) for cell in found[:_NAMED_MAX])
    left = len(found) - _NAMED_MAX
    more = f"; and in {words.count(left, 'more cell')}" if left > 0 else ""
    figure = words.figure(cpu_time)
    return (
        f"{figure} differs where {_undecided(cells, infos)} is undecided: {said}{more}. "
        "That is a second figure of the same trials: a hint, and no verdict.",
    )


def hints_of_others(
    cells: Sequence[CellComparison],
    others: Sequence[CellComparison],
    infos: Sequence[IndicatorInfo],
    figures: Sequence[IndicatorInfo],
) -> tuple[str, ...]:
    """A sentence on the undecided cells in which ``others`` of the same trials differ, the clearest
    first; none where none does. Their verdicts are those of all of these ``figures`` together."""
    undecided = [cell.parameters for cell in cells if cell.verdict == "undecided"]
    found = sorted(
        (
            cell
            for cell in others
            if cell.verdict in ("faster", "slower") and cell.parameters in undecided
        ),
        key=lambda cell: -abs(math.log(cell.ratio.value)) if cell.ratio else 0.0,
    )
    if not found:
        return ()
    labels = {info.name: words.figure(info.label or info.name) for info in figures}
    said = "; ".join(f"{labels[cell.indicator]} {_differs(cell)}" for cell in found[:_NAMED_MAX])
    more = f"; and {len(found) - _NAMED_MAX} more" if len(found) > _NAMED_MAX else ""
    return (
        f"Where {_undecided(cells, infos)} is undecided, there differs: {said}{more}. "
        f"{words.count(len(figures), 'figure')} of the same trials, judged together: a hint, and "
        "no verdict.",
    )


def _undecided(cells: Sequence[CellComparison], infos: Sequence[IndicatorInfo]) -> str:
    """The figures of which a cell is undecided, in words."""
    names = {info.name: (info.label or info.name).lower() for info in infos}
    undecided = (names[cell.indicator] for cell in cells if cell.verdict == "undecided")
    return " and ".join(dict.fromkeys(undecided))


def _differs(cell: CellComparison) -> str:
    where = " ".join(f"{name}={level}" for name, level in cell.parameters.items())
    by, ends = _by(cell)
    word = "higher" if cell.ratio is not None and cell.ratio.value > 1 else "lower"
    return f"{by} % {word} [{ends} %]{f' at {where}' if where else ''}"


def _by(cell: CellComparison) -> tuple[str, str]:
    """By how many per cent a cell differs, and the ends of the interval."""
    ratio = cell.ratio
    assert ratio is not None and ratio.low is not None and ratio.high is not None
    low, high = map(words.in_percent, sorted(abs(end - 1) for end in (ratio.low, ratio.high)))
    return words.in_percent(abs(ratio.value - 1)), f"{low}, {high}"
