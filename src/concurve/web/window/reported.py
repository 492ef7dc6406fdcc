"""What a kernel reports of a picture, on its report channel."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

import msgspec

#: What the kernels call the time of one computation. ``compute_seconds`` of the JVM is a mean.
_COMPUTED = {"native": "compute_seconds", "jvm": "computation_seconds"}


class _Line(msgspec.Struct, frozen=True):
    """A line of the channel, as far as it is shown."""

    indicator: str = ""
    fact: str = ""
    worker: str = ""
    value: float | int | str | bool | list[str] | None = None


class Reported:
    """The figures of a picture: how many computations have ended, the time of the last one, the sum
    of the pixels, and by worker its pixels and its time in the last computation that counts."""

    def __init__(self, kernel: str) -> None:
        self._computed = _COMPUTED[kernel]
        self.computations = 0
        self.compute_seconds: float | None = None
        self.pixel_sum: int | None = None
        self.collector = ""
        self._workers: dict[str, dict[str, float]] = {}

    @property
    def workers(self) -> Mapping[str, Mapping[str, float]]:
        """Indicators by worker."""
        return self._workers

    def take(self, raw: bytes) -> None:
        """Take a line; what is none of ours is passed over."""
        with contextlib.suppress(msgspec.DecodeError, UnicodeDecodeError):
            self._take(msgspec.json.decode(raw, type=_Line))

    def _take(self, line: _Line) -> None:
        value = line.value
        if line.fact == "collector" and isinstance(value, str):
            self.collector = value
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return
        if line.indicator and line.worker:
            self._workers.setdefault(line.worker, {})[line.indicator] = float(value)
        elif line.indicator == self._computed:
            self.compute_seconds = float(value)
            self.computations += 1
        elif line.fact == "pixel_sum":
            self.pixel_sum = int(value)
