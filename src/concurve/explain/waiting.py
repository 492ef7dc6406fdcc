"""What threads waited for, by the samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from concurve.wire.record import RoleRecord, ThreadRecord, Waits

#: The kinds of waiting that samples distinguish.
KINDS = ("futex", "disk", "network", "poll", "pipe", "sleep", "child", "other")


class FutexWords(NamedTuple):
    """Futex words: readings of the words at which several threads waited, the greatest number of
    threads at one of them, and how many words there were in all."""

    readings: int = 0
    threads: int = 0
    words: int = 0


def waits_of(
    role: RoleRecord, waits: Waits | None, active: Sequence[ThreadRecord], missing: dict[str, str]
) -> Waits | None:
    """The given samples, else those of the whole role; ``missing`` gets what is absent and why."""
    if waits is None and not any(thread.waits for thread in active):
        missing["waits"] = role.absent.get(
            "waits", "the record is older than samples of what threads wait for"
        )
    return waits if waits is not None else role.waits


def readings_of(active: Sequence[ThreadRecord], waits: Waits | None) -> dict[str, int]:
    """Readings of the active threads by kind; those of the whole role if the threads have none."""
    sources = [thread.waits for thread in active if thread.waits]
    if not sources and waits is not None:
        sources = [waits]
    found = dict.fromkeys(("running", *KINDS), 0)
    for source in sources:
        for kind in found:
            found[kind] += getattr(source, kind)
    return found if any(found.values()) else {}


def word_of(waits: Waits | None) -> FutexWords:
    """The futex words at which samples saw threads wait."""
    if waits is None:
        return FutexWords()
    shared = [word for word in waits.futexes if word.threads > 1]
    top = max(shared, key=lambda word: word.readings, default=None)
    return FutexWords(top.readings if top else 0, top.threads if top else 0, waits.futex_words)
