"""Records of a JVM's flight recorder → in which lines its threads wait for locks. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from concurve import words
from concurve.estimate import Estimate
from concurve.findings.confirmation import Recorded, RecordedPlace
from concurve.readings.flight_recording import LOCKS, combined
from concurve.wire.record import RecordedSite, RecordedWaits
from concurve.words import percent

#: Fewer waits than this name no place in a sentence.
_EVENTS_MIN = 10
#: A sentence names no more places, and none with a smaller share.
_NAMED_MAX = 2
_NAMED_SHARE_MIN = 0.1


def recorded(found: Sequence[RecordedWaits], cost: Estimate | None) -> Recorded:
    """What the recordings of several trials say together."""
    waits = combined(found)
    made = Recorded(
        trials=len(found),
        events=waits.lock_events,
        blocked_ns=waits.lock_blocked_ns,
        threshold_ns=waits.threshold_ns,
        sites=tuple(_place(site, waits.lock_blocked_ns) for site in waits.listed),
        elsewhere_events=waits.elsewhere_events,
        elsewhere_blocked_ns=waits.elsewhere_blocked_ns,
        is_cut=waits.is_cut,
        cost=cost,
    )
    return msgspec.structs.replace(made, place=_sentence(made))


def _sentence(made: Recorded) -> str:
    """The places with most of the time, if enough was recorded to say it."""
    over = f"{made.threshold_ns / 1e3:g} µs"
    in_trials = f"in {words.count(made.trials, 'trial')}"
    if made.events < _EVENTS_MIN:
        few = words.count(made.events, "wait") if made.events else "no wait"
        return f"its flight recorder saw {few} for a lock of {over} or more {in_trials}"
    named = [
        site for site in made.sites if site.share is not None and site.share >= _NAMED_SHARE_MIN
    ][:_NAMED_MAX]
    all_of_them = (
        f"{words.count(made.events, 'wait')}, "
        f"{words.quantity(made.blocked_ns / 1e9, 's')} in all {in_trials}"
    )
    if not named:
        return f"the threads wait for locks in many places: {all_of_them}"
    first, *others = named
    said = (
        f"the threads wait for the lock ({first.waits_for}) in {_where(first)}: "
        f"{percent(first.share or 0.0)} of the time of {all_of_them}"
    )
    for site in others:
        said += f"; for {site.waits_for} in {_where(site)}: {percent(site.share or 0.0)}"
    return said


def _where(site: RecordedPlace) -> str:
    return f"{site.name}, {site.at}" if site.at else site.name


def _place(site: RecordedSite, total_ns: int) -> RecordedPlace:
    is_lock = site.primitive in LOCKS
    name = ".".join(site.function.split(".")[-2:])
    outermost = name.split(".")[0].split("$")[0]
    return RecordedPlace(
        name=name,
        function=site.function,
        kind=site.kind,
        primitive=site.primitive,
        events=site.events,
        blocked_ns=site.blocked_ns,
        file=f"{outermost}.java" if outermost else None,
        line=site.line,
        lock=site.lock,
        share=site.blocked_ns / total_ns if is_lock and total_ns else None,
        owners=tuple((owner.name, owner.events) for owner in site.owners),
    )
