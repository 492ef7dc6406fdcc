"""A number with its uncertainty: the type of all figures that functions pass on."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

#: A ratio whose interval holds 1 and spans this factor tells nothing.
_WIDE = 2.0


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A value with its interval.

    ``value`` is the point estimate; ``low`` and ``high`` bound its interval at ``confidence`` and
    are ``None`` if ``n`` trials are too few for an interval (a single trial). ``median``, ``mean``,
    ``min``, ``max`` and ``stdev`` describe the trials behind it where there are such.
    ``in_doubt``: the machine was not quiet during many of the trials that it rests on; its interval
    then holds the values of the quiet ones, too.
    """

    value: float
    low: float | None = None
    high: float | None = None
    n: int = 1
    unit: str = ""
    confidence: float = 0.95
    median: float | None = None
    min: float | None = None
    max: float | None = None
    stdev: float | None = None
    mean: float | None = None
    in_doubt: bool = False

    @property
    def half_width(self) -> float | None:
        """Half the interval, in the unit of the value."""
        if self.low is None or self.high is None:
            return None
        return (self.high - self.low) / 2

    @property
    def precision(self) -> float | None:
        """Half the interval relative to the value; ``None`` without an interval or at 0."""
        half = self.half_width
        return None if half is None or self.value == 0 else abs(half / self.value)

    def holds(self, value: float) -> bool:
        """Does its interval hold this value? So it does where there is none."""
        return self.low is None or self.high is None or self.low <= value <= self.high

    @property
    def is_too_wide(self) -> bool:
        """Of a ratio: may it be below 1 as well as above, and differ by a factor of two or more
        within its interval? Then it tells neither a gain nor a loss, nor how much of one."""
        if self.low is None or self.high is None:
            return False
        return self.low < 1 < self.high and self.high >= _WIDE * self.low

    def doubted(self, quiet: Sequence[float] = ()) -> Estimate:
        """This estimate in doubt; its interval then holds the values of the ``quiet`` trials."""
        if self.low is None or self.high is None:
            return msgspec.structs.replace(self, in_doubt=True)
        return msgspec.structs.replace(
            self, low=min([self.low, *quiet]), high=max([self.high, *quiet]), in_doubt=True
        )
