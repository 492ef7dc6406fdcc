"""The sites of a cell and its blocked time → stacks of blocked time. Pure.

Accounts say how much time was blocked, samples on what, and copies of stacks at which place. So the
time of locks is divided as the readings are whose place is known; of other kinds no stack is
copied.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from concurve.explain.sites import short_name
from concurve.explain.waiting import WAKE_UP_CALL
from concurve.findings.explanation import WaitSite
from concurve.findings.stacks import BlockedStack

#: How a stack begins, by kind of waiting.
_ROOTS = {
    "futex": "locks",
    "file_lock": "locks of files",
    "disk": "disk",
    "network": "network",
    "poll": "events",
    "pipe": "pipes",
    "sleep": "asleep",
    "child": "child processes",
    "memory": "changes of the address space",
    "wake_up": "waiting to be woken",
    "other": "other",
}
#: The end of a stack whose place is not known.
UNKNOWN = "place not known"


def blocked_stacks(
    sites: Sequence[WaitSite], by_kind: Mapping[str, float], unknown: int
) -> tuple[BlockedStack, ...]:
    """Where the blocked time of a cell went.

    Args:
        sites: the places where threads waited for locks.
        by_kind: blocked time by kind, in ns per operation.
        unknown: readings of such waits whose place is not known.
    """
    found: dict[tuple[str, ...], float] = {}
    for kind, ns in by_kind.items():
        root = _ROOTS.get(kind, kind)
        own = [site for site in sites if _kind(site) == kind]
        unnamed = unknown if kind == "futex" else 0
        readings = sum(site.readings for site in own) + unnamed
        for site in own:
            frames = (root, *_frames(site))
            found[frames] = found.get(frames, 0.0) + ns * site.readings / readings
        if not own:
            found[(root,)] = found.get((root,), 0.0) + ns
        elif unnamed:
            found[(root, UNKNOWN)] = ns * unnamed / readings
    return tuple(BlockedStack(frames, ns) for frames, ns in found.items() if ns > 0)


def _kind(site: WaitSite) -> str:
    if site.primitive == "file_lock":
        return "file_lock"
    return "wake_up" if site.call == WAKE_UP_CALL else "futex"


def _frames(site: WaitSite) -> list[str]:
    """Who called the place, the place with its line, what it called, and the lock."""
    line = f":{site.line}" if site.function and site.line else ""
    frames = [short_name(caller) for caller in reversed(site.callers)]
    frames.append(f"{site.name}{line}")
    if site.operation:
        frames.append(short_name(site.operation))
    if site.lock:
        frames.append(f"[{site.lock}]")
    return frames
