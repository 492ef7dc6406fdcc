"""What experiments say of a cause: is it one, and what would be gained without a part of it?"""

from __future__ import annotations

from typing import Literal

import msgspec

from concurve.estimate import Estimate
from concurve.terms import Level

#: ``open``: the trials were too few, or too noisy, to say so.
Confirmed = Literal["confirmed", "not confirmed", "open", "out of reach"]


class Gain(msgspec.Struct, frozen=True, kw_only=True):
    """What holding a lock for ``held`` of its time is predicted to gain: how many times as much is
    done in the same time. ``is_bounded``: more CPU time, or the lock itself, would be the limit
    then, and sets it."""

    held: float
    times: Estimate
    is_bounded: bool = False


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """An experiment: its level in the run, what it did, and how many times as long an operation
    took as in the level ``against``; ``cpu``: the same of its CPU time."""

    level: str
    says: str
    against: str
    wall: Estimate | None = None
    cpu: Estimate | None = None


class Confirmation(msgspec.Struct, frozen=True, kw_only=True):
    """What experiments say of the cause of one cell.

    ``run`` has the trials; ``of`` is the run that was explained, ``parameters`` its cell.
    ``lock`` names the lock, or the place that takes it, where it is in reach. ``evidence`` is one
    sentence. ``slope`` is the part of the time of an operation that the lock's holding costs, by
    the slope at the time for which it is held now; ``holds`` are those of an operation, and
    ``held_ns`` the mean time of one. ``blocks`` are the complete blocks that it rests on.
    """

    run: str
    of: str
    study: str
    parameters: dict[str, Level]
    cause: str
    result: Confirmed
    evidence: str
    lock: str = ""
    tried: tuple[Tried, ...] = ()
    slope: Estimate | None = None
    gain: Gain | None = None
    holds: float | None = None
    held_ns: float | None = None
    blocks: int = 0
    notes: tuple[str, ...] = ()
