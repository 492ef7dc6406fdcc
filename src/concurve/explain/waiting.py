"""What threads waited for, by the samples."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from pathlib import PurePath
from typing import NamedTuple

import msgspec

from concurve.findings.explanation import STARTS_THREAD
from concurve.wire.record import (
    FutexWaits,
    RoleRecord,
    SiteRecord,
    SitesRecord,
    ThreadRecord,
    Waits,
)

#: The kinds of waiting that samples distinguish.
KINDS = (
    "futex", "disk", "network", "poll", "pipe", "sleep", "child", "file_lock", "memory", "wake_up",
    "other",
)  # fmt: skip

#: The call of a place where threads wait to be woken, at an epoll instance without a socket.
WAKE_UP_CALL = "epoll_wait"
#: The word of a barrier has another value in each round: so many were seen for each reading of a
#: thread there, and more than threads, or all. The word of some locks is their holder.
ROUND_VALUES_SHARE = 0.1
#: Fewer sampled places than this say nothing of how many waits are of a kind: six of six mean a
#: share above 0.6 (Clopper & Pearson 1934, one-sided, 95 %).
KIND_READINGS_MIN = 6
#: No more are told apart.
ROUND_VALUES_MANY = 32


class FutexWords(NamedTuple):
    """Futex words: readings of the words at which several threads waited, the greatest number of
    threads at one of them, and the readings at words whose value changes with each round."""

    readings: int = 0
    threads: int = 0
    rounds: int = 0


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
            found[kind] += getattr(source, kind) or 0  # absent in older records
    return found if any(found.values()) else {}


def word_of(waits: Waits | None) -> FutexWords:
    """The futex words at which samples saw threads wait."""
    if waits is None:
        return FutexWords()
    shared = [word for word in waits.futexes if word.threads > 1]
    top = max(shared, key=lambda word: word.readings, default=None)
    rounds = sum(word.readings for word in waits.futexes if _is_of_rounds(word))
    return FutexWords(top.readings if top else 0, top.threads if top else 0, rounds)


#: Where threads wait that have nothing to do. Who waits for a mutex waits for the one that has it,
#: however little it does itself; so does who waits for others at a barrier by its name.
_IDLE_AT = ("condition", "semaphore", "other")


def sites_without_idle(sites: SitesRecord | None, idle: Collection[int]) -> SitesRecord | None:
    """The sites without the readings of threads that had nothing to do: they wait for work, from
    the first sample to the last. Older records do not say which threads waited where."""
    if sites is None or not idle:
        return sites
    listed = []
    left_out = 0
    for site in sites.listed:
        is_for_work = site.primitive in _IDLE_AT or _is_barrier_of_condition(site)
        waiting = [it for it in site.waiters if is_for_work and it.tid in idle]
        readings = sum(it.readings for it in waiting)
        left_out += readings
        if readings < site.readings:
            threads = max(1, site.threads - len(waiting))
            busy = tuple(it for it in site.waiters if it not in waiting)
            listed.append(
                msgspec.structs.replace(
                    site, readings=site.readings - readings, threads=threads, waiters=busy
                )
            )
    listed.sort(key=lambda site: -site.readings)
    return msgspec.structs.replace(sites, readings=sites.readings - left_out, listed=tuple(listed))


def waits_share(sites: Iterable[SitesRecord | None], primitive: str) -> float:
    """The share of the sampled waits that were at something of this kind, such as barriers, of
    those whose place in the program is known, over all trials of a cell; 0 where few are."""
    of_kind, known = waits_at(sites, primitive)
    return of_kind / known if known >= KIND_READINGS_MIN else 0.0


def waits_at(sites: Iterable[SitesRecord | None], primitive: str) -> tuple[int, int]:
    """The sampled waits at something of this kind, and all whose place in the program is known. Who
    waits for the end of a thread is left out."""
    listed = [site for record in sites if record is not None for site in record.listed]
    waits = [site for site in listed if site.primitive != "join"]
    of_kind = sum(site.readings for site in waits if site.primitive == primitive)
    return of_kind, sum(site.readings for site in waits)


#: So many sampled waits, and such a share of them, say that threads take a lock in rounds, where
#: the words do not tell.
_LOCKS_SEEN_MIN, _LOCKS_SHARE_MIN = 3, 0.05
#: Fewer readings at futexes than this say nothing of who waits for whom.
_AT_BARRIERS_READINGS_MIN = 30
#: The words tell the waits at barriers if they have so much of what the places say.
_BY_WORDS_MIN = 0.5


class AtBarriers(NamedTuple):
    """Shares of the waits at futexes of a cell: ``by_place`` at barriers by the places in the
    program, of those whose word is no barrier's; and where threads take locks in rounds, all
    ``at_barriers`` and ``at_locks``. ``behind``: for so much of their waits at barriers they wait
    for who gets a lock last; 0 where they do not."""

    by_place: float = 0.0
    at_barriers: float = 0.0
    at_locks: float = 0.0
    behind: float = 0.0


def waits_at_barriers(
    sites: Sequence[SitesRecord | None], readings: int, of_rounds: int
) -> AtBarriers:
    """How threads wait at barriers. Of the ``readings`` at futexes so many are ``of_rounds`` by
    their words. Where threads take locks, too, these words tell the barriers from the locks better
    than the places do: a wait is the seldomer sampled with its place the shorter it is."""
    by_place = waits_share(sites, "barrier")
    # Words are those of all threads, readings those of the active ones.
    by_word = min(1.0, of_rounds / readings) if readings else 0.0
    listed = [site for record in sites if record is not None for site in record.listed]
    locks = sum(site.readings for site in listed if _takes_a_lock(site))
    at, known = waits_at(sites, "barrier")
    are_told = by_word >= _BY_WORDS_MIN * by_place
    least = 1 if are_told else max(_LOCKS_SEEN_MIN, _LOCKS_SHARE_MIN * known)
    if locks < least or readings < _AT_BARRIERS_READINGS_MIN:
        return AtBarriers(by_place)
    at_barriers = by_word if are_told else by_place
    at_locks = (1 - at_barriers) * locks / (known - at)
    return AtBarriers(0.0 if are_told else by_place, at_barriers, at_locks)


def waits_named(sites: Iterable[SitesRecord | None]) -> tuple[int, int]:
    """The sampled waits at barriers, and for what is done once for all, by the name of the function
    that waits, and all whose place in the program is known. What waits at a condition is called a
    barrier for what else it does."""
    listed = [site for record in sites if record is not None for site in record.listed]
    waits = [site for site in listed if site.primitive != "join"]
    named = [
        site
        for site in waits
        if site.primitive in ("barrier", "once") and not _is_barrier_of_condition(site)
    ]
    return sum(site.readings for site in named), sum(site.readings for site in waits)


def _is_barrier_of_condition(site: SiteRecord) -> bool:
    """Is it called a barrier for what the function does that waits at a condition?"""
    is_barrier = site.primitive in ("barrier", "once")
    return is_barrier and "cond" in (site.operation or "").lower()


#: Functions by which a program takes a lock, and does not wait for anything else.
_TAKES = re.compile(r"lock|acquire|mutex|mtx|enter|monitor", re.I)
_LOCKS = ("mutex", "reader_writer_lock")


class WakeUps(NamedTuple):
    """The sampled waits for a wake-up whose place is known, those of them where a lock is taken,
    and the function by which it is taken most often, with its file."""

    known: int = 0
    at_locks: int = 0
    operation: str = ""
    module: str = ""


def wake_ups_at(sites: Iterable[SitesRecord | None]) -> WakeUps:
    """Where threads wait that others wake by an eventfd or a signalfd, over all trials."""
    listed = [site for record in sites if record is not None for site in record.listed]
    waits = [site for site in listed if site.call == WAKE_UP_CALL and site.primitive != "join"]
    taken: Counter[tuple[str, str]] = Counter()
    for site in filter(_takes_a_lock, waits):
        taken[site.operation or "", PurePath(site.module).name] += site.readings
    known = sum(site.readings for site in waits)
    if not taken:
        return WakeUps(known)
    (operation, module), _ = taken.most_common(1)[0]
    return WakeUps(known, taken.total(), operation, module)


#: Functions that wait until a log is on the disk.
_WRITES = re.compile(r"flush|f(?:data)?sync|log_write|write_up_to", re.I)


def waits_to_be_written(sites: Iterable[SitesRecord | None]) -> str:
    """The function in which most of the sampled waits are, if it writes or flushes a log by its
    name, or that of who calls it; empty where it does not, or few places are known."""
    listed = [site for record in sites if record is not None for site in record.listed]
    waits = [site for site in listed if site.call == "futex" and site.primitive != "join"]
    writing: Counter[str] = Counter()
    for site in waits:
        if place := _log_place(site):
            writing[place] += site.readings
    known = sum(site.readings for site in waits)
    if known < KIND_READINGS_MIN or 2 * writing.total() < known:
        return ""
    return writing.most_common(1)[0][0]


class AtFutexes(NamedTuple):
    """The sampled waits at futexes whose place is known, those of them for a log that another
    thread writes, and those where a lock is taken."""

    known: int = 0
    writing: int = 0
    at_locks: int = 0


def waits_at_futexes(sites: Iterable[SitesRecord | None], *, writes: bool) -> AtFutexes:
    """What threads wait for at futexes, over all trials. A function that writes a log is one that
    takes a lock where no thread ``writes``."""
    known = writing = at_locks = 0
    for site in (site for record in sites if record is not None for site in record.listed):
        if site.call != "futex" or site.primitive == "join":
            continue
        known += site.readings
        if writes and _log_place(site):
            writing += site.readings
        elif _takes_a_lock(site):
            at_locks += site.readings
    return AtFutexes(known, writing, at_locks)


def _log_place(site: SiteRecord) -> str:
    """The function that writes or flushes a log by its name, nearest first; empty without one."""
    named = [it for it in (site.operation, site.function, *site.callers) if it]
    return next(filter(_WRITES.search, named), "")


#: So much of the sampled waits is of threads that meet at a lock, or these say nothing of others.
CROWDED_SHARE = 0.15


def waits_for_locks(sites: Iterable[SitesRecord | None]) -> float:
    """The share of the sampled waits in functions that take a mutex, or a lock of readers and
    writers; 0 where few places are known. Idle threads wait elsewhere, or in other functions.

    Where several threads wait for a lock, and not seldom, a place where one alone waits says
    nothing of them: a pool's own thread waits for its workers there, however these fare."""
    records = [record for record in sites if record is not None]
    listed = [site for record in records for site in record.listed if site.primitive != "join"]
    taking = [site for site in listed if _takes_a_lock(site)]
    crowds = {_place(site) for site in listed if site.threads > 1}
    crowded = sum(site.readings for site in taking if _place(site) in crowds)
    if crowded and crowded >= CROWDED_SHARE * sum(site.readings for site in listed):
        listed = [site for site in listed if _takes_a_lock(site) or _place(site) in crowds]
    known = sum(site.readings for site in listed)
    return sum(site.readings for site in taking) / known if known >= KIND_READINGS_MIN else 0.0


#: So few sampled waits say that most are for locks where all of them are: with half of them at
#: locks, five of five are there by chance in 1 of 32 (Clopper & Pearson 1934, one-sided, 95 %).
ALL_AT_LOCKS_MIN = 5


def wait_for_locks_alone(sites: Iterable[SitesRecord | None]) -> bool:
    """Are all sampled waits in functions that take a lock, and enough for it not to be chance?
    Where few samples are taken of each trial, as of short ones, this needs the fewest."""
    listed = [site for record in sites if record is not None for site in record.listed]
    waits = [site for site in listed if site.primitive != "join"]
    seen = sum(site.readings for site in waits)
    return seen >= ALL_AT_LOCKS_MIN and all(map(_takes_a_lock, waits))


#: A place by its module and address; of Python the line tells them apart.
Place = tuple[str, str, str | None, int | None]


def _place(site: SiteRecord) -> Place:
    return site.module, site.offset, site.function, site.line


def lock_places(sites: Iterable[SitesRecord | None]) -> frozenset[Place]:
    """The places where threads take a lock, as far as enough samples show each."""
    listed = [site for record in sites if record is not None for site in record.listed]
    taken: Counter[Place] = Counter()
    for site in filter(_takes_a_lock, listed):
        taken[_place(site)] += site.readings
    return frozenset(place for place, readings in taken.items() if readings >= KIND_READINGS_MIN)


#: One sampled wait is there by chance.
AT_PLACES_MIN = 2


def waits_at_places(sites: Iterable[SitesRecord | None], places: Collection[Place]) -> float:
    """The share of the sampled waits that were at some places, of those whose place is known; who
    waits for the end of a thread is left out. 0 where fewer than :data:`AT_PLACES_MIN` were."""
    listed = [site for record in sites if record is not None for site in record.listed]
    waits = [site for site in listed if site.primitive != "join"]
    at = sum(site.readings for site in waits if _place(site) in places)
    return at / sum(site.readings for site in waits) if at >= AT_PLACES_MIN else 0.0


#: Functions by which a program takes work from a queue.
_TAKES_WORK = re.compile(r"(^|[.:_])(get|take|dequeue|pop|recv|receive|poll)\w*$", re.I)


def waits_for_work(sites: Iterable[SitesRecord | None]) -> float:
    """The share of the sampled waits at conditions and semaphores, or in functions that take work
    from a queue, of those whose place is known; 0 where few are."""
    listed = [site for record in sites if record is not None for site in record.listed]
    waits = [site for site in listed if site.primitive != "join"]
    known = sum(site.readings for site in waits)
    idle = sum(
        site.readings
        for site in waits
        if site.primitive in ("condition", "semaphore") or _TAKES_WORK.search(site.operation or "")
    )
    return idle / known if known >= KIND_READINGS_MIN else 0.0


def waits_for_the_interpreter(sites: Iterable[SitesRecord | None]) -> tuple[int, int]:
    """The sampled waits for the lock of Python's interpreter, and those for other locks. Who starts
    a thread waits until that runs, and for no lock."""
    listed = [site for record in sites if record is not None for site in record.listed]
    locks = [
        site for site in listed if site.primitive in _LOCKS and site.operation != STARTS_THREAD
    ]
    own = sum(site.readings for site in locks if site.lock == "GIL")
    return own, sum(site.readings for site in locks) - own


#: A thread of a JVM that sleeps waits at a futex, and functions on its stack say that it sleeps.
_SLEEPS = re.compile(r"JVM_Sleep|JavaThread::sleep|os::sleep")


def sleeps_in_a_jvm(sites: Iterable[SitesRecord | None]) -> bool:
    """Was a thread of a JVM seen where it sleeps?"""
    listed = [site for record in sites if record is not None for site in record.listed]
    places = (name for site in listed for name in (site.function or "", *site.callers))
    return any(map(_SLEEPS.search, places))


def _takes_a_lock(site: SiteRecord) -> bool:
    return site.primitive in _LOCKS and bool(_TAKES.search(site.operation or ""))


def joining_share(sites: SitesRecord | None) -> float:
    """The share of the sampled stacks of threads that waited for the end of another one."""
    listed = () if sites is None else sites.listed
    every = sum(site.readings for site in listed)
    return sum(site.readings for site in listed if site.primitive == "join") / max(every, 1)


#: A thread takes locks of whose sampled stacks so many are there, and so many at least.
TAKING_SHARE = 0.5
TAKING_READINGS_MIN = 3


def taking_locks(sites: SitesRecord | None) -> frozenset[int]:
    """The threads that were seen where they take a lock, mostly, in a program whose threads mostly
    wait there."""
    if waits_for_locks([sites]) < TAKING_SHARE:
        return frozenset()
    seen: Counter[int] = Counter()
    taking: Counter[int] = Counter()
    for site in () if sites is None else sites.listed:
        for it in site.waiters:
            seen[it.tid] += it.readings
            taking[it.tid] += it.readings if _takes_a_lock(site) else 0
    return frozenset(
        tid
        for tid, readings in taking.items()
        if readings >= max(TAKING_READINGS_MIN, TAKING_SHARE * seen[tid])
    )


#: A thread of whose sampled stacks so many are in joins, and so many at least, only waits for the
#: end of others.
JOINERS_SHARE = 0.9
JOINERS_READINGS_MIN = 3


def joiners(sites: SitesRecord | None) -> frozenset[int]:
    """The threads that were seen waiting for the end of others, and hardly anywhere else."""
    seen: Counter[int] = Counter()
    ends: Counter[int] = Counter()
    for site in () if sites is None else sites.listed:
        for it in site.waiters:
            seen[it.tid] += it.readings
            ends[it.tid] += it.readings if site.primitive == "join" else 0
    return frozenset(
        tid
        for tid, readings in ends.items()
        if readings >= max(JOINERS_READINGS_MIN, JOINERS_SHARE * seen[tid])
    )


def _is_of_rounds(word: FutexWaits) -> bool:
    """Does the value that threads expect there change, as that of a barrier does? A mutex always
    has the same while threads wait for it, which is not counted."""
    values = word.values or 0
    if not values or values >= ROUND_VALUES_MANY:
        return values > 0
    each = word.readings / max(word.threads, 1)
    return values >= max(ROUND_VALUES_SHARE * each, min(word.readings, word.threads + 1))
