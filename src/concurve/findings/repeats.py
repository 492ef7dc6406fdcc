"""The options of a new run that is to have so many trials of each cell."""

from __future__ import annotations

import math

#: Trials that are rejected are made again, and some take longer than others.
_ROOM = 1.2


def repeats_options(trials: int, seconds: float | None, allowed_seconds: float | None) -> str:
    """``--repeats 88..88``, with ``--max-time 7m`` where a time allowance like that of this run
    would end the new one before: so many trials of all cells take about ``seconds``. ``None`` where
    either is not known."""
    repeats = f"--repeats {trials}..{trials}"
    if seconds is None or allowed_seconds is None or _ROOM * seconds <= allowed_seconds:
        return repeats
    return f"{repeats} --max-time {_option(_ROOM * seconds)}"


def _option(seconds: float) -> str:
    """A duration as an option takes it, rounded up."""
    for size, unit, least in ((3600, "h", 36_000), (60, "m", 120)):
        if seconds >= least:
            return f"{math.ceil(seconds / size)}{unit}"
    return f"{math.ceil(seconds)}s"
