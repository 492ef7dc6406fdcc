"""By how much a reading may be off, because its clock ticks or its figure was rounded."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise

from concurve.stats.centre import centre

#: A step below this share of the readings is not worth mentioning.
_NEGLIGIBLE = 1e-5
#: Readings are rounded to floats: by this share at most.
_ROUNDING = 1e-9
#: The tick of readings that were rounded is known from so many distances between neighbours, where
#: each reading comes so often on the average, and neighbours lie so many steps apart.
_GAPS_MIN = 3
_AGAIN = 2
_STEPS_APART = 4
#: A reading of more digits than this was computed, and not rounded when it was printed.
_DIGITS_MAX = 9

#: Seconds between two looks of a program at whether its work is done, the longest first.
_LOOKS = (1.0, 0.5, 0.25, 0.2, 0.1)
#: A shorter one is below this share of the times, and not worth mentioning.
_LOOKS_MIN = 0.02
#: The times lie above a multiple of the step by what a start and an end take: within this part of
#: the step from each other.
_LOOKS_ARC = 0.1
_LOOKS_TIMES_MIN = 10
#: No longer times are looked at: their steps are below what a float holds, and none matters.
_LOOKS_SECONDS_MAX = 1e6
#: So many times lie whole steps from most of their cell, at so many places of all cells together,
#: and so many for each that lies between two steps: times that lie anywhere do so by chance in one
#: of a hundred runs at most.
_LOOKS_MOVED_MIN = 4
_LOOKS_PLACES_MIN = 3
_LOOKS_FOR_ONE = 4
#: So many times show it as well as all, of each cell so many at least.
_LOOKS_TIMES_MAX = 400
_LOOKS_OF_CELL_MIN = 4
_LOOKS_PLACES_MIN = 3


def step_of(readings: Iterable[float]) -> float:
    """The step between neighbouring readings of a coarse clock: all readings are multiples of it.
    0 for readings that have no such step.

    Of several distinct readings it is their greatest common divisor, of a single one the place of
    its last decimal digit: more cannot be known of it.
    """
    divisor = greatest = 0.0
    single = True
    for reading in map(abs, readings):
        if reading in (0.0, divisor):
            continue
        if divisor:
            single = False
            greatest = max(greatest, reading, divisor)
            divisor = _common(reading, divisor, _ROUNDING * greatest)
            if divisor <= _NEGLIGIBLE * greatest:
                return 0.0
        else:
            divisor = reading
    return _last_digit(divisor) if single and divisor else divisor


def tick_of(cells: Iterable[Sequence[float]], step: float) -> float:
    """The tick of a clock whose readings were rounded again when they were printed, as 1/64 s in
    0.016, 0.031 and 0.047: their ``step`` is 0.001, and no reading lies between two ticks.

    That is so where the trials of a cell give the same few readings again and again, which lie
    several steps apart: then their least distance is the tick. Else it is the step.
    """
    if step <= 0:
        return step
    readings = distinct = 0
    gaps: list[float] = []
    for values in cells:
        ordered = sorted(set(values))
        readings += len(values)
        distinct += len(ordered)
        gaps += [after - before for before, after in pairwise(ordered)]
    if len(gaps) < _GAPS_MIN or readings < _AGAIN * distinct:
        return step
    least = min(gaps)
    return least + step if least >= _STEPS_APART * step else step


def step_of_looks(cells: Iterable[Sequence[float]]) -> float:
    """The step of the times of a program that ends only when it looks whether its work is done, as
    every 0.25 s: 0.51, 0.76 and 1.01 s, and nothing between; 0 where the times show no such step.

    A time that is the same in all trials of a cell, as of a load that was told to last for 2 s,
    shows none: it is the trials of a cell that differ by whole steps.
    """
    given = list(cells)
    each = max(_LOOKS_OF_CELL_MIN, _LOOKS_TIMES_MAX // max(1, len(given)))
    known = (
        tuple(value for value in values[:each] if 0 < value < _LOOKS_SECONDS_MAX)
        for values in given
    )
    return _step_of_looks(tuple(known))


@lru_cache(maxsize=8)
def _step_of_looks(known: tuple[tuple[float, ...], ...]) -> float:
    """:func:`step_of_looks`; the resolutions of a run and the sentences on each of its indicators
    ask for that of the same times in turn."""
    every = sorted(value for values in known for value in values)
    if len(every) < _LOOKS_TIMES_MIN:
        return 0.0
    least = _LOOKS_MIN * every[len(every) // 2]
    return next((step for step in _LOOKS if step >= least and _lie_on_steps(known, step)), 0.0)


def _lie_on_steps(cells: Sequence[Sequence[float]], step: float) -> bool:
    """Do the times lie on steps, and often enough on another one than most of their cell? Those of
    one place alone say nothing: they lie close together in any program."""
    every = [value for values in cells for value in values]
    phases = sorted(value / step % 1.0 for value in every)
    begin = _fullest_arc(phases)
    offset = (begin + _LOOKS_ARC / 2) * step
    moved = places = between = 0
    for values in cells:
        steps = [(value - offset) / step for value in values]
        on = [round(one) for one in steps if abs(one - round(one)) <= _LOOKS_ARC / 2 + _ROUNDING]
        between += len(steps) - len(on)
        counted = Counter(on).most_common()[1:]
        moved += sum(count for _, count in counted)
        places += len(counted)
    return moved >= max(_LOOKS_MOVED_MIN, _LOOKS_FOR_ONE * between) and places >= _LOOKS_PLACES_MIN


def _fullest_arc(phases: Sequence[float]) -> float:
    """Where the arc begins that holds most of these phases, which are in ascending order."""
    turned = [*phases, *(phase + 1 for phase in phases)]
    held = [(bisect_right(turned, phase + _LOOKS_ARC) - at, -at) for at, phase in enumerate(phases)]
    return phases[-max(held)[1]]


def step_of_rates(rates: Iterable[float]) -> float:
    """The step of the times whose reciprocals these rates are; 0 where there is none, or where all
    rates are equal."""
    times = [1 / rate for rate in rates if rate]
    return step_of(times) if len(times) > 1 and min(times) < max(times) else 0.0


def finest_digit(readings: Iterable[float]) -> float:
    """The least of the places of their last digits; 0 where one has more than nine."""
    return min((_last_digit(reading) for reading in readings if reading), default=0.0)


def relative(resolution: float, values: Sequence[float]) -> float:
    """A resolution as a share of the centre of the values that have it; 0 where that is 0."""
    middle = abs(centre(values)) if resolution else 0.0
    return resolution / middle if middle else 0.0


def _common(first: float, second: float, tolerance: float) -> float:
    """The greatest common divisor of two numbers that are rounded (Euclid)."""
    greater, less = max(first, second), min(first, second)
    while less > tolerance:
        rest = math.fmod(greater, less)
        greater, less = less, min(rest, less - rest)
    return greater


def _last_digit(reading: float) -> float:
    """The value of a one at the last digit behind the point, as a reading is written in its
    shortest form: 0.01 of 0.25, 1 of 3 and of 300; 0 of more than nine digits."""
    _, digits, exponent = Decimal(repr(float(reading))).as_tuple()
    written = "".join(map(str, digits)).rstrip("0")
    place = int(exponent) + len(digits) - len(written)
    return 0.0 if len(written) > _DIGITS_MAX else 10.0 ** min(place, 0)
