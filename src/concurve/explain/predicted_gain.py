"""Times of operations by how long a lock was held → what holding it shorter would gain. Pure.

A lock cannot be held shorter without another program, but it can be held longer. Where the time of
an operation rises with that, the slope at the time for which it is held now says what the lock
costs, and so what a little less of it would gain. (Coz finds the gain of faster code by slowing
down all other code: Curtsinger and Berger, SOSP 2015. A lock can be perturbed itself.)

The time is convex in how long a lock is held: it is that of the lock where the lock is the limit,
and that of something else where it is not. So the slope promises too much for a great change, and
the CPU time that remains bounds it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from concurve.estimate import Estimate
from concurve.findings.confirmation import Gain
from concurve.stats.moments import mean, stdev, t_quantile

#: Fewer blocks give no interval that says anything.
BLOCKS_MIN = 3
#: A gain below this is none.
GAIN_MIN = 1.02
#: The true gain is at least this part of what the slope promises, where threads queue for one lock:
#: by exact mean value analysis, for 2 to 16 threads that hold it for half of the time that it is
#: held now, however much of an operation that is.
CURVED = 0.7
#: No interval of a gain ends above so many times what the lock becomes shorter, however noisy the
#: slope is.
BEYOND = 2.0
#: Contention itself costs much if an operation takes so many times the CPU time of one thread
#: alone, and all threads together do less than that one.
COLLAPSED = 1.25


class Bound(NamedTuple):
    """What remains where a lock is held shorter: the CPU time of an operation, the time for which
    the lock is held in it, and the wall time, all in the same unit; and the CPUs that the workers
    can use. ``alone`` is the CPU time of an operation without contention, where it is known."""

    cpu: float
    held: float
    wall: float
    cpus: float
    alone: float | None = None

    def least(self, held: float) -> float:
        """The least time of an operation, as a part of the time now, if the lock is held for
        ``held`` of its time and all CPUs work. Holding it is taken to be CPU time: where it is not,
        the bound is lower than it need be."""
        return max(0.0, self.cpu - (1 - held) * self.held) / (self.cpus * self.wall)

    def uncontended(self, held: float) -> float:
        """The same if contention costs nothing then; endless unless it costs so much now that all
        threads together do less than one alone. For the lock itself they never would: at worst,
        they hold it one after the other."""
        if (
            self.alone is None
            or self.alone <= 0
            or self.cpu < COLLAPSED * self.alone
            or self.wall <= self.alone
        ):
            return math.inf
        shorter = (1 - held) * min(self.held, self.alone)
        return (self.alone - shorter) / (self.cpus * self.wall)


def slope_at_zero(doses: Sequence[float], blocks: Sequence[Sequence[float]]) -> Estimate | None:
    """By which part the time grows for a dose of 1, by the slope at dose 0.

    Args:
        doses: the parts by which the lock is held longer, 0 first.
        blocks: the times at these doses, block by block.

    In each block, a parabola through the ratios to the time at dose 0 has the slope; the estimate
    is the mean of the blocks with Student's interval, so what all trials of a block share does not
    count. ``None`` for fewer than :data:`BLOCKS_MIN` blocks.
    """
    if len(blocks) < BLOCKS_MIN:
        return None
    degree = min(2, len(doses) - 1)
    powers = np.vander(np.asarray(doses, dtype=float), degree + 1, increasing=True)
    weights = np.linalg.pinv(powers)[1]
    slopes = [float(weights @ (np.asarray(times, dtype=float) / times[0])) for times in blocks]
    return signed_mean(slopes)


def signed_mean(values: Sequence[float]) -> Estimate:
    """The mean of values of either sign with Student's interval; two values or more."""
    value = mean(values)
    half = t_quantile(0.975, len(values) - 1) * stdev(values) / math.sqrt(len(values))
    return Estimate(value=value, low=value - half, high=value + half, n=len(values))


def gain_of(slope: Estimate, held: float, bound: Bound | None) -> Gain:
    """What holding the lock for ``held`` of its time gains, by the slope.

    The lower end allows for the curve (:data:`CURVED`). The value is no more than what the lock
    itself becomes shorter, and no more than the CPU time that remains allows. The upper end is that
    of the slope in either case, and at most :data:`BEYOND` times what the lock becomes shorter:
    contention costs time, too, which would go, and what is measured has its own error. An interval
    that ended at the bound itself would miss half of the measurements of a gain that reaches it.
    Where threads do less than one alone, what is held for less time may hardly be contended for:
    then the upper end is at what an operation takes without contention.
    """
    least = 0.0 if bound is None else min(1.0, bound.least(held))
    value = max(_time(slope.value, held), least)
    free = math.inf if bound is None else bound.uncontended(held)
    low, high = slope.low, slope.high
    assert low is not None and high is not None
    times = Estimate(
        value=1 / value,
        low=_curved(1 / max(_time(low, held), value)),
        high=1 / min(free, max(held / BEYOND, _extended(high, held))),
        n=slope.n,
    )
    return Gain(held=held, times=times, is_bounded=value > _time(slope.value, held))


def _curved(gain: float) -> float:
    """A gain by the slope, less what the curve may take of it; a loss stays as it is."""
    return 1 + CURVED * (gain - 1) if gain > 1 else gain


def _time(slope: float, held: float) -> float:
    """The time of an operation, as a part of the time now, if the lock is held so much shorter."""
    return max(held, _extended(slope, held))


def _extended(slope: float, held: float) -> float:
    """The same by the slope alone."""
    return 1 - (1 - held) * slope
