"""Where in a program its threads were seen waiting for locks, over the trials of a cell. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import PurePath
from typing import NamedTuple

import msgspec

from concurve import words
from concurve.explain.threads import names_of_kinds
from concurve.findings.explanation import (
    STARTS_THREAD,
    UNNAMED,
    Cause,
    Holders,
    RunnerUp,
    SampledStacks,
    WaitSite,
)
from concurve.findings.places import place_of
from concurve.wire.record import SiteRecord, SitesRecord
from concurve.words import percent

#: Fewer readings than this name no place in a sentence, nor who had the lock.
READINGS_MIN = 10
#: A sentence names no more places, and none with a smaller share.
_NAMED_MAX = 2
_NAMED_SHARE_MIN = 0.1
#: Nor one, beside another, with fewer readings.
_NAMED_READINGS_MIN = 5
#: Who waits for the end of a thread waits for no lock.
_NO_LOCK = "join"
#: Where threads wait that have nothing to do, too.
_MAY_BE_IDLE = ("condition", "semaphore")
#: The causes of which places say something, and what is waited at there; any lock, if empty.
_WAITED_AT: dict[Cause, str] = {"lock": "", "imbalance": "barrier", "serial": "once"}
#: As records name the global interpreter lock of Python.
_INTERPRETER_LOCK = "GIL"
#: The library of a JVM: its threads wait in it, whatever they wait for.
_JVM_LIBRARY = "libjvm.so"
#: How frames are found, the surest first.
_FOUND = ("cfi", "scan_exact", "scan_weak")


def sites_of(
    records: Iterable[SitesRecord | None], names: Iterable[Mapping[int, str]] = ()
) -> tuple[WaitSite, ...]:
    """The places of all trials together, most readings first, each with its share of the readings
    whose place is known. Waits for the start or the end of a thread are left out. ``names`` are
    those of each trial's threads."""
    found: dict[tuple[object, ...], list[_Seen]] = {}
    named = iter(names)
    for record in records:
        listed = () if record is None else record.listed
        of_trial: Mapping[int, str] = next(named, {})
        for site in listed:
            if not _is_no_lock(site):
                seen = _Seen(site, _had_by(site, listed, of_trial))
                found.setdefault(_place(site), []).append(seen)
    total = sum(seen.site.readings for same in found.values() for seen in same)
    sites = [_together(same, total) for same in found.values()]
    return tuple(sorted(sites, key=lambda site: (-site.readings, site.name)))


def _is_no_lock(site: SiteRecord) -> bool:
    """Does it wait for the end of a thread, or that one which it starts runs?"""
    waits_for_start = site.operation == STARTS_THREAD and site.lock is None
    return site.primitive == _NO_LOCK or waits_for_start


def of_the_program(sites: Iterable[WaitSite]) -> tuple[WaitSite, ...]:
    """The places without those in a JVM, which say nothing of the program."""
    return tuple(site for site in sites if PurePath(site.module).name != _JVM_LIBRARY)


def stacks_of(records: Iterable[SitesRecord | None]) -> SampledStacks | None:
    """What became of the samples of stacks in all trials together; ``None`` without any."""
    known = [record for record in records if record is not None]
    sums = [
        sum(getattr(record, name) for record in known)
        for name in ("readings", "unknown", "torn", "skipped")
    ]
    return SampledStacks(*sums) if any(sums) else None


def place_sentence(cause: Cause, sites: tuple[WaitSite, ...], addresses: bool = True) -> str:
    """Where threads waited, and who had the lock, if that belongs to the cause: for a lock, at the
    barriers of uneven rounds, or for what one thread does once for all. Empty where too few
    readings say it. ``addresses``: those of functions without a name say something; not those in a
    runtime."""
    total = sum(site.readings for site in sites)
    if cause not in _WAITED_AT or total < READINGS_MIN:
        return ""
    if wanted := _WAITED_AT[cause]:
        sites = tuple(site for site in sites if site.primitive == wanted)
    named = list(_worth_naming(sites, addresses))[:_NAMED_MAX]
    parts = [f"{percent(site.share)} {_where(site)}" for site in named]
    if not parts:
        # The interpreter's lock is waited for wherever a program computes.
        parts = [f"{percent(share)} were for {_named(lock)}" for lock, share in _spread(sites)]
    if not parts:
        return ""
    said = f"Of {words.count(total, 'sampled wait')}, {words.listed(parts)}."
    return " ".join([said, *filter(None, map(_who_had_it, named))])


def with_place(
    second: RunnerUp | None, sites: tuple[WaitSite, ...], addresses: bool
) -> RunnerUp | None:
    """The cause that comes next, with where threads waited for it. Places of waits that two causes
    share are told of the first one."""
    if second is None or second.is_indistinct:
        return second
    place = place_sentence(second.cause, sites, addresses=addresses)
    return msgspec.structs.replace(second, place=place)


def _worth_naming(sites: Iterable[WaitSite], addresses: bool) -> Iterator[WaitSite]:
    """The places with a good part of the waits. Beside a greater one whose function has no name, a
    condition or a semaphore is none: threads without work wait there, too. Nor is one at which one
    thread alone waits, where several wait for a lock: it waits for what these do."""
    told = [site for site in sites if site.share >= _NAMED_SHARE_MIN]
    # Beside the place of nearly all of few samples, another one is there by chance.
    sites = told[:1] + [site for site in told[1:] if site.readings >= _NAMED_READINGS_MIN]
    are_crowded = any(site.threads > 1 and site.primitive not in _MAY_BE_IDLE for site in sites)
    is_nameless = False
    for site in sites:
        may_be_lone = are_crowded and site.threads == 1
        if (is_nameless or may_be_lone) and site.primitive in _MAY_BE_IDLE:
            continue
        is_nameless = is_nameless or not site.function
        if site.function or addresses:
            yield site


def _who_had_it(site: WaitSite) -> str:
    """Which threads had the lock while others waited at a place, in a sentence; empty where that is
    not known of enough readings."""
    if not site.held or site.held < READINGS_MIN or not site.holders:
        return ""
    first = site.holders[0]
    if len(site.holders) == 1 and first.threads > 1 and first.takes_in in ("", site.name):
        return ""  # those that wait there themselves, by turns
    who = [
        f"{_threads(it, site)} in {percent(it.readings / site.held)}"
        for it in site.holders[:_NAMED_MAX]
    ]
    known = words.count_of(site.held, site.readings, "reading")
    return f"Who had the lock is known in {known} in {site.name}: {words.listed(who)} of them."


def _threads(holders: Holders, site: WaitSite) -> str:
    one = holders.threads == 1
    said = f"{'the thread' if one else 'threads'} {holders.name or UNNAMED}"
    if holders.takes_in in ("", site.name):
        return said
    return f"{said}, which {'takes' if one else 'take'} it in {holders.takes_in},"


def _spread(sites: tuple[WaitSite, ...]) -> list[tuple[str, float]]:
    """The lock with most of the waits, with its share of them all, where that is worth a word."""
    shares: dict[str, float] = {}
    for site in sites:
        if site.lock:
            shares[site.lock] = shares.get(site.lock, 0.0) + site.share
    most = sorted(shares.items(), key=lambda it: (-it[1], it[0]))[:1]
    return [it for it in most if it[1] >= _NAMED_SHARE_MIN]


def _named(lock: str) -> str:
    return "the GIL" if lock == _INTERPRETER_LOCK else lock


def _where(site: WaitSite) -> str:
    of_lock = f"were for {_named(site.lock)}, " if site.lock else "were "
    doubt = "" if site.is_sure else " (not sure: found by a scan of the stack)"
    starts = ", starting threads" if site.starts_threads else ""
    return f"{of_lock}in {site.name}{_line(site)}{starts}{doubt}"


def _line(site: WaitSite) -> str:
    place = place_of(site.file, site.line)
    return f" ({place})" if place else ""


def _place(site: SiteRecord) -> tuple[object, ...]:
    """What makes two sites of trials the same. Programs may stand at other addresses of a file that
    was built again, so an address counts for functions without a name alone."""
    where = (site.function, site.file, site.line) if site.function else (site.module, site.offset)
    return (site.primitive, site.lock, *where)


class _Holder(NamedTuple):
    """A thread that had a lock: its kind, in which function it was seen waiting for that lock
    itself, and in how many readings it had it."""

    name: str
    takes_in: str
    readings: int


class _Seen(NamedTuple):
    """A place in one trial, and the threads that had the lock meanwhile."""

    site: SiteRecord
    holders: tuple[_Holder, ...]


def _had_by(
    site: SiteRecord, listed: Sequence[SiteRecord], names: Mapping[int, str]
) -> tuple[_Holder, ...]:
    """Who had the lock in the readings of a place. A lock without a name may be another one at
    another place."""
    same = [it for it in listed if it is site or (site.lock and _lock(it) == _lock(site))]
    holders, kinds = [], names_of_kinds(names)
    for holder in site.holders:
        takes = [
            (waiter.readings, short_name(it.function) or _address(it))
            for it in same
            for waiter in it.waiters
            if waiter.tid == holder.tid
        ]
        name = kinds.get(holder.tid, "")
        holders.append(_Holder(name, max(takes, default=(0, ""))[1], holder.readings))
    return tuple(holders)


def _lock(site: SiteRecord) -> tuple[str | None, str]:
    return site.lock, site.module


def _holders(trials: Sequence[Sequence[_Holder]]) -> tuple[Holders, ...]:
    """The threads that had the lock, by their kind and by where they take it, most readings
    first."""
    taking: dict[str, set[str]] = {}
    for it in chain.from_iterable(trials):
        taking.setdefault(it.name, set()).update(filter(None, [it.takes_in]))

    def kind(it: _Holder) -> tuple[str, str]:
        """Who was not seen waiting in a trial takes it where all others of its name do."""
        known = taking[it.name] if it.name else set()
        return it.name, it.takes_in or ("".join(known) if len(known) == 1 else "")

    readings: Counter[tuple[str, str]] = Counter()
    most: dict[tuple[str, str], int] = {}
    for trial in trials:
        threads = Counter(map(kind, trial))
        for it in trial:
            readings[kind(it)] += it.readings
        for who, number in threads.items():
            most[who] = max(most.get(who, 0), number)
    return tuple(
        Holders(name=who[0], takes_in=who[1], threads=most[who], readings=seen)
        for who, seen in sorted(readings.items(), key=lambda it: (-it[1], it[0]))
    )


def _together(seen: Sequence[_Seen], total: int) -> WaitSite:
    same = [it.site for it in seen]
    first = same[0]
    readings = sum(site.readings for site in same)
    held = [site.held for site in same if site.held is not None]
    return WaitSite(
        name=short_name(first.function) or _address(first),
        primitive=first.primitive,
        function=first.function,
        file=first.file,
        line=first.line,
        module=first.module,
        operation=first.operation,
        lock=first.lock,
        readings=readings,
        share=readings / total if total else 0.0,
        threads=max(site.threads for site in same),
        held=sum(held) if held else None,
        holders=_holders([it.holders for it in seen]),
        found=max((site.found for site in same), key=_FOUND.index),
        runtime=first.runtime,
        callers=first.callers,
        call=first.call,
        offsets=tuple(sorted({site.offset for site in same if site.module == first.module})),
    )


def _address(site: SiteRecord) -> str:
    address = f"{PurePath(site.module).name}+{site.offset}"
    return f"{address}, called by {short_name(site.callers[0])}" if site.callers else address


def short_name(function: str | None) -> str:
    """The name without its parameters and their types, which may be long."""
    if not function:
        return ""
    bare = function
    while (shorter := re.sub(r"(?<=\w)(::)?<[^<>]*>", "", bare)) != bare:
        bare = shorter
    # Parameters begin at the first parenthesis that is no part of a name (a receiver in Go is).
    bare = re.sub(r"(?<!operator)(?<!\.)\((?!anonymous|lambda).*", "", bare).strip()
    return bare or function
