"""A number with its uncertainty: the type of all figures that functions pass on."""

from __future__ import annotations

import msgspec


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A value with its interval.

    ``value`` is the point estimate; ``low`` and ``high`` bound its interval at ``confidence`` and
    are ``None`` if ``n`` trials are too few for an interval (a single trial). ``median``, ``mean``,
    ``min``, ``max`` and ``stdev`` describe the trials behind it where there are such.
    ``in_doubt``: it rests on trials during which the machine was not quiet, because too few others
    are left; its interval is then the wider of that of all trials and that of the quiet ones.
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

    def doubted(self, quiet: Estimate | None) -> Estimate:
        """This estimate in doubt, with an interval that holds that of the quiet trials alone."""
        if quiet is None or None in (self.low, self.high, quiet.low, quiet.high):
            return msgspec.structs.replace(self, in_doubt=True)
        assert self.low is not None and self.high is not None
        assert quiet.low is not None and quiet.high is not None
        return msgspec.structs.replace(
            self, low=min(self.low, quiet.low), high=max(self.high, quiet.high), in_doubt=True
        )
