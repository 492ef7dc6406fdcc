"""The centre of a cell: its median, with an interval that assumes no shape of the noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

from concurve.estimate import Estimate
from concurve.stats.moments import LONG, growth, mean, stdev
from concurve.stats.sign_test import between, median_interval

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: The share of the error probability that an interval uses where the pilot's interval has set the
#: number of trials. A pilot that is narrow by chance ends the run early, and its narrow interval is
#: printed: at 95 % such intervals would hold the truth less often. By the simulations of
#: docs/method/coverage.md, 0.8 (96 % instead of 95 %) keeps the printed ones at their level.
STAGED_SHARE = 0.8

#: Sums and squares of values below this stay finite.
_SAFE = 1e150


def staged(confidence: float, is_staged: bool) -> float:
    """The confidence to compute with, where the data have set the number of trials."""
    return 1 - (1 - confidence) * STAGED_SHARE if is_staged else confidence


def centre(values: Sequence[float]) -> float:
    """The median. Of an even number of positive values, the geometric mean of the middle two: so
    the centre of rates is the reciprocal of that of times.

    Raises:
        ValueError: no values.
    """
    if not len(values):
        raise ValueError("no values: they have no centre")
    if len(values) < LONG:
        return _middle(sorted(values))
    import numpy as np

    places = sorted({(len(values) - 1) // 2, len(values) // 2})
    return _middle(np.partition(np.asarray(values, dtype=float), places)[places].tolist())


def _in_order(values: Sequence[float]) -> Sequence[float]:
    """The values in ascending order.

    Raises:
        ValueError: none, or one that is not finite.
    """
    if len(values) < LONG:
        ordered = sorted(values)
        are_finite = all(map(math.isfinite, values))
    else:
        import numpy as np

        array = np.sort(np.asarray(values, dtype=float))
        are_finite = bool(np.isfinite(array).all())
        ordered = array.tolist()
    if not ordered or not are_finite:
        raise ValueError("no values, or they are not all finite: they have no centre")
    return ordered


def _middle(ordered: Sequence[float]) -> float:
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    if low == high:
        return low
    if low > 0:
        return math.sqrt(low) * math.sqrt(high)
    return low + (high - low) / 2


def centre_estimate(
    values: Sequence[float],
    unit: str = "",
    confidence: float = 0.95,
    floor: float | None = 0.0,
    ceiling: float | None = None,
    is_staged: bool = False,
    resolution: float = 0.0,
) -> Estimate:
    """The centre of independent trials with its interval (:mod:`concurve.stats.sign_test`).

    Positive values are taken on the logarithm. ``floor`` and ``ceiling`` bound the interval where
    the quantity cannot lie beyond, unless a value does; ``None`` where it can. ``is_staged``: their
    spread has set their number. ``resolution``: a reading may be off by so much, in the unit of the
    values. A single value has no interval.

    Raises:
        ValueError: no values, or one that is not finite.
    """
    n, ordered = len(values), _in_order(values)
    least, greatest = ordered[0], ordered[-1]
    middle = _middle(ordered)
    low = high = None
    if n > 1:
        level = staged(confidence, is_staged)
        if least > 0:
            low, high = map(growth, median_interval(_Logarithms(ordered), level))
        else:
            low, high = median_interval(ordered, level)
        if least == greatest:
            low = high = middle  # the logarithm and back would be off by a rounding
        low, high = min(low, middle) - resolution, max(high, middle) + resolution
        if floor is not None and least >= floor:
            low = max(floor, low)
        if ceiling is not None and greatest <= ceiling:
            high = min(ceiling, high)
    return Estimate(
        value=middle,
        low=low,
        high=high,
        n=n,
        unit=unit,
        confidence=confidence,
        median=middle,
        min=least,
        max=greatest,
        stdev=stdev(ordered) if n > 1 else None,
        mean=mean(ordered),
    )


def centre_estimates(
    rows: npt.NDArray[np.float64],
    unit: str = "",
    confidence: float = 0.95,
    floor: float | None = 0.0,
    ceiling: float | None = None,
    is_staged: bool = False,
    resolutions: Sequence[float] = (),
) -> list[Estimate]:
    """:func:`centre_estimate` of very many samples of one length, a row each.

    Raises:
        ValueError: as there.
    """
    import numpy as np

    n, tail = rows.shape[1], (1 - staged(confidence, is_staged)) / 2
    off = np.asarray(resolutions) if len(resolutions) else np.zeros(len(rows))
    if n < 2 or tail < 0.5**n or not (abs(rows) < _SAFE).all():
        return [
            centre_estimate(row, unit, confidence, floor, ceiling, is_staged, step)
            for row, step in zip(rows.tolist(), off.tolist(), strict=True)
        ]
    ordered = np.sort(rows, axis=1)
    least, greatest = ordered[:, 0], ordered[:, -1]
    below, above = ordered[:, (n - 1) // 2], ordered[:, n // 2]
    inner, weight = between(n, tail)
    with np.errstate(all="ignore"):
        middle = np.where(below > 0, np.sqrt(below) * np.sqrt(above), below + (above - below) / 2)
        middle = np.where(below == above, below, middle)
        logs = np.where(least[:, None] > 0, np.log(ordered), ordered)
        low = (1 - weight) * logs[:, inner] + weight * logs[:, inner + 1]
        high = (1 - weight) * logs[:, n - 1 - inner] + weight * logs[:, n - 2 - inner]
        low, high = (np.where(least > 0, np.exp(end), end) for end in (low, high))
    low, high = (np.where(least == greatest, middle, end) for end in (low, high))
    low, high = np.minimum(low, middle) - off, np.maximum(high, middle) + off
    if floor is not None:
        low = np.where(least >= floor, np.maximum(low, floor), low)
    if ceiling is not None:
        high = np.where(greatest <= ceiling, np.minimum(high, ceiling), high)
    figures = (middle, low, high, least, greatest, ordered.std(axis=1, ddof=1),
               ordered.mean(axis=1))  # fmt: skip
    return [
        Estimate(
            value=value,
            low=bottom,
            high=top,
            n=n,
            unit=unit,
            confidence=confidence,
            median=value,
            min=smallest,
            max=largest,
            stdev=spread,
            mean=average,
        )
        for value, bottom, top, smallest, largest, spread, average in zip(
            *(column.tolist() for column in figures), strict=True
        )
    ]


class _Logarithms(Sequence[float]):
    """The logarithms of values, computed where they are read: of many, a median reads a few."""

    def __init__(self, values: Sequence[float]) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    @overload
    def __getitem__(self, index: int) -> float: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[float]: ...
    def __getitem__(self, index: int | slice) -> float | Sequence[float]:
        if isinstance(index, slice):
            return [math.log(value) for value in self._values[index]]
        return math.log(self._values[index])
