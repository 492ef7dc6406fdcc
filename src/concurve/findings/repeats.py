"""The options of a new run that is to have so many trials of each cell."""

from __future__ import annotations

from concurve.words import option_duration

#: Trials that are rejected are made again, and some take longer than others.
_ROOM = 1.2


def repeats_options(trials: int, seconds: float | None, allowed_seconds: float | None) -> str:
    """``--repeats 88``, with ``--max-time 7m`` where a time allowance like that of this run
    would end the new one before: so many trials of all cells take about ``seconds``. ``None`` where
    either is not known."""
    repeats = f"--repeats {trials}"
    if seconds is None or allowed_seconds is None or _ROOM * seconds <= allowed_seconds:
        return repeats
    return f"{repeats} --max-time {option_duration(_ROOM * seconds)}"
