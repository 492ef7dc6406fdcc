"""Figures that look mistyped: far from what their neighbours say, by a misplaced decimal point, a
separator of thousands, or a zero too many."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Iterator, Sequence

from concurve.models.sentences import in_digits

#: A figure is odd where it differs by this factor from what the others say: a tenfold error is
#: found in curves that bend or collapse, too.
_ODD = 5.0
_LARGEST = 700.0


def odd_rows(n: Sequence[float], x: Sequence[float], n_name: str, x_name: str) -> Iterator[str]:
    """Sentences on trials far from the others of their level; then on a level far from what its
    neighbours say, or, where no level is, on a step between neighbours."""
    levels: dict[float, list[float]] = {}
    for level, figure in zip(n, x, strict=True):
        levels.setdefault(level, []).append(figure)
    for level in sorted(levels):
        yield from _odd_trials(level, levels[level], n_name, x_name)
    curve = [(level, statistics.median(levels[level])) for level in sorted(levels)]
    said = _odd_level(curve, n_name, x_name) or _odd_step(curve, n_name, x_name)
    if said:
        yield said


def _odd_trials(level: float, figures: Sequence[float], n_name: str, x_name: str) -> Iterator[str]:
    middle = statistics.median(figures)
    least, most = min(figures), max(figures)
    if len(figures) == 2 and most > _ODD * least:
        yield (
            f"The two rows of {n_name} = {level:g} have {x_name} {_shown(least)} and "
            f"{_shown(most)}: {_ASK}"
        )
    elif len(figures) > 2:
        for figure in sorted({least, most}):
            if not middle / _ODD <= figure <= middle * _ODD:
                yield (
                    f"A row of {n_name} = {level:g} has {x_name} {_shown(figure)}, the others "
                    f"about {in_digits(middle, 3)}: {_ASK}"
                )


_ASK = "a misplaced point, a thousands separator, or a zero too many?"


def _odd_level(curve: Sequence[tuple[float, float]], n_name: str, x_name: str) -> str:
    """The level without which the curve is smoothest, if it is far from what the others say."""
    if len(curve) < 4:
        return ""
    without = [[*curve[:at], *curve[at + 1 :]] for at in range(len(curve))]
    at = min(range(len(curve)), key=lambda left_out: _roughness(without[left_out]))
    (level, figure), others = curve[at], without[at]
    told = _told(level, others)
    if abs(math.log(figure) - told) < math.log(_ODD):
        return ""
    return (
        f"At {n_name} = {level:g} {x_name} is {_shown(figure)}, where its neighbours suggest "
        f"about {in_digits(math.exp(min(told, _LARGEST)), 2)}: {_ASK}"
    )


def _roughness(curve: Sequence[tuple[float, float]]) -> float:
    """The greatest distance of a level from the line through its neighbours, in logarithms."""
    return max(
        abs(math.log(figure) - _told(level, [before, after]))
        for before, (level, figure), after in zip(curve, curve[1:], curve[2:], strict=False)
    )


def _told(level: float, others: Sequence[tuple[float, float]]) -> float:
    """The logarithm that the two nearest levels let expect of another: on a line in logarithms;
    beyond the ends it is no steeper than a figure that grows or falls with N."""
    after = next((at for at, (other, _) in enumerate(others) if other > level), len(others))
    at = min(max(after, 1), len(others) - 1)
    (low, there), (high, here) = others[at - 1], others[at]
    slope = (math.log(here) - math.log(there)) / (math.log(high) - math.log(low))
    if not low < level < high:
        slope = min(max(slope, -1.0), 1.0)
    near, figure = (low, there) if level < high else (high, here)
    return math.log(figure) + slope * (math.log(level) - math.log(near))


def _odd_step(curve: Sequence[tuple[float, float]], n_name: str, x_name: str) -> str:
    """The steepest step between neighbours, if it is beyond what growth or decline with N gives."""

    def excess(pair: tuple[tuple[float, float], tuple[float, float]]) -> float:
        (low, there), (high, here) = pair
        return abs(math.log(here) - math.log(there)) - math.log(high) + math.log(low)

    steepest = max(itertools.pairwise(curve), key=excess, default=None)
    if steepest is None or excess(steepest) < math.log(_ODD):
        return ""
    (low, there), (high, here) = steepest
    return (
        f"From {n_name} = {low:g} to {high:g} {x_name} goes from {_shown(there)} to "
        f"{_shown(here)}: {_ASK}"
    )


def _shown(figure: float) -> str:
    return in_digits(figure, 6)
