"""Where in its programs the threads of a trial ran → the CPU time for which they spun, and the
function in which CPU time grew. Pure.

Samples say in which part of its CPU time in user mode a role ran in which function. Three kinds of
code do no work: runtimes of OpenMP, whose threads spin while they wait for the end of a loop or for
the next one; locks that spin, by their names; and loops of the program's own functions in which a
thread does nothing but look at a word until another thread changes it, by their instructions.
"""

from __future__ import annotations

import itertools
import math
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from concurve.estimate import Estimate
from concurve.explain.sites import short_name
from concurve.stats.means import mean_estimate
from concurve.stats.moments import mean
from concurve.wire.record import HotFunction, HotRecord, HotThread, RoleRecord

#: Fewer samples of a cell say nothing.
SAMPLES_MIN = 30
#: Where a part of the time is sampled, this share of the trials may have no samples, and the others
#: must have this share of those that their CPU time holds: the clock of a thread ticks first when
#: it has run for a whole period, so who ran for less in that part was hardly seen.
_WITHOUT_MAX = 0.5
_OF_HELD_MIN = 0.5
#: The CPU time between two samples of a thread, in nanoseconds.
_PERIOD_NS = 5_003_000
#: A function is named if its growth is this many times the error of its samples.
_ERRORS = 2.0
#: Only the first thread ran in a function if all others have no more than this share of so many
#: samples.
_FIRST_SHARE = 0.95
_FIRST_SAMPLES_MIN = 8

_OPENMP = re.compile(r"lib(gomp|omp|iomp5?)[-.\d]*\.so")
#: A runtime that is linked into the program has these names.
_OPENMP_WAITS = re.compile(r"gomp_(team_)?barrier|gomp_sem_wait|__kmp_\w*(barrier|wait)|kmp_flag")
_OPENMP_LOCKS = re.compile(
    r"^(GOMP|__kmpc|gomp)_(critical|atomic|mutex)|^omp_(set|test)_(nest_)?lock|^__kmp_acquire"
    r"|^GOMP_atomic_start|^__kmpc_(set|test)_(nest_)?lock|^GOMP_ordered|^__kmpc_ordered"
)
_SPIN_LOCKS = re.compile(r"spin_?(lock|mutex|rw_?lock)|^s_lock$|^perform_spin_delay$", re.I)
#: Locks that spin before they sleep, by the functions in which they do: monitors of HotSpot (which
#: looks by SafeFetch whether the owner runs), mutexes of InnoDB, jemalloc and .NET.
_ADAPTIVE_LOCKS = re.compile(
    r"^ObjectMonitor::(TrySpin|try_spin|short_fixed_spin)|^SafeFetch(N|32)(_impl)?$|^ut_delay$"
    r"|^TTASEventMutex::enter|(^|_)malloc_mutex_lock_slow$|^AwareLock::(Enter|TryEnter|Spin)"
)
_UNLOCKS = re.compile(r"unlock|release|destroy|init", re.I)

Place = tuple[str | None, str]


class Hot(NamedTuple):
    """Where the threads of one trial ran: the CPU time in user mode per operation, and samples by
    function and file. ``file`` is empty for samples in no known file. ``called``: a file, and how
    it is called in words. ``held``: the samples that the CPU time holds in the part of the time in
    which they were taken. ``user_share`` is the part of the CPU time that is in user mode."""

    user_ns: float
    record: HotRecord
    called: tuple[str, str] = ("", "")
    held: float = 0.0
    user_share: float = 1.0

    def part(self, samples: float) -> float:
        """The time that so many samples stand for."""
        return self.user_ns * samples / self.record.samples


def hot_of(role: RoleRecord, operations: float, part: float = 1.0) -> Hot | None:
    """Where the threads of a role ran; ``None`` without samples, or without the CPU time that they
    divide. ``part`` of that time is measured."""
    user, found = role.usage.user_ns, role.hot
    if user is None or found is None or not found.samples or operations <= 0:
        return None
    held = user / _PERIOD_NS / 2**found.halved
    in_user = min(1.0, user / role.usage.cpu_ns) if role.usage.cpu_ns else 1.0
    return Hot(part * user / operations, found, _as_started(role, found), held, in_user)


#: Programs that run others: the process has the name of the script, and the code is not of that.
_INTERPRETERS = re.compile(
    r"^(python|pypy|perl|ruby|node|java|php|lua|tclsh|wish|guile|mono|dotnet|R|julia|beam|qemu"
    r"|(ba|da|z|k|fi)?sh|busybox)"
)
#: So much of its name the kernel keeps of a process.
_NAME_CHARS = 15


def _as_started(role: RoleRecord, found: HotRecord) -> tuple[str, str]:
    """The file of a role's program, and the name by which it was started, if that is another one: a
    file may have several (Debian's redis-server is a link to redis-check-rdb). Only where the role
    is one process, and one of the files is no library. In words alone: functions are told apart by
    the file, which all cells have alike."""
    programs = [it.name for it in found.files if ".so" not in it.name and it.name[:1] != "["]
    named = [it.name for it in role.threads.listed if it.tid == role.pid]
    is_one = all(it.pid in (None, role.pid) for it in role.threads.listed)
    if len(programs) != 1 or len(named) != 1 or not named[0] or not is_one:
        return "", ""
    file, name = programs[0], named[0]
    if file[:_NAME_CHARS] == name or _INTERPRETERS.match(file):
        return "", ""
    return file, name


class Spun(NamedTuple):
    """CPU time per operation of a trial for which threads spun: waiting in a runtime of OpenMP, or
    for threads that have more work (``uneven``), and for locks. ``alone`` is that for which the
    first thread ran in functions where no other did."""

    waiting: float = 0.0
    locking: float = 0.0
    alone: float = 0.0
    uneven: float = 0.0


def spun(trials: Sequence[Hot | None]) -> list[Spun]:
    """How long threads spun, a value per trial; zeros where too few samples say it. A trial without
    samples has the value of one of the others, in turn: they spread as far as these."""
    known = _known(trials)
    if not known:
        return [Spun()] * len(trials)
    single = _of_first_thread(known)
    found = [_spun(hot, single) for hot in known]
    seen, others = iter(found), itertools.cycle(found)
    return [next(others) if hot is None else next(seen) for hot in trials]


def _spun(hot: Hot, single: set[Place]) -> Spun:
    in_loops = sum(it.waiting for it in hot.record.listed if is_loop(it))
    uneven = min(float(in_loops), _for_others(hot.record.threads))
    return Spun(
        _time(hot, is_waiting),
        _time(hot, is_locking) + hot.part(in_loops - uneven),
        _time(hot, lambda it: (it.function, it.file) in single),
        hot.part(uneven),
    )


def _for_others(threads: Sequence[HotThread]) -> float:
    """The samples of spinning threads that waited for those with more work: each for no longer than
    it worked less than the one that worked most. Who waits for a lock works as long as the
    others."""
    if not threads:
        return 0.0
    most = max(threads, key=_working)
    less = (_working(most) - _working(it) - _by_chance(most, it) for it in threads)
    return sum(min(float(it.waiting), max(0.0, one)) for it, one in zip(threads, less, strict=True))


def _working(thread: HotThread) -> int:
    return thread.samples - thread.waiting


def _by_chance(one: HotThread, other: HotThread) -> float:
    """By how much two threads with as much work differ in the mean: a sample is of work or not by
    chance (the mean size of a normal difference)."""
    spread = sum(_working(it) * it.waiting / it.samples for it in (one, other) if it.samples)
    return math.sqrt(2 / math.pi * spread)


def is_sampled(trials: Sequence[Hot | None]) -> bool:
    """Do samples say where the threads of a cell ran? Who spins is seen then."""
    return bool(_known(trials))


def is_loop(place: HotFunction) -> bool:
    """Did threads wait there in a loop of the program's own, known by its instructions alone?"""
    return place.waiting > 0 and not is_waiting(place) and not is_locking(place)


def is_waiting(place: HotFunction) -> bool:
    """Is it a runtime of OpenMP whose threads have nothing to do?"""
    if is_locking(place):
        return False
    name = place.function or ""
    return bool(_OPENMP.match(place.file) or _OPENMP_WAITS.search(name))


def is_locking(place: HotFunction) -> bool:
    """Is it a lock that spins?"""
    name = short_name(place.function)
    if _UNLOCKS.search(name):
        return False
    kinds = (_OPENMP_LOCKS, _SPIN_LOCKS, _ADAPTIVE_LOCKS)
    return any(kind.search(name) for kind in kinds)


def spins_in_loops(trials: Sequence[Hot | None]) -> bool:
    """Do threads spin in loops of the program's own, more than where a name says for what?"""
    every = [it for hot in trials if hot for it in hot.record.listed]
    named = sum(it.samples for it in every if is_waiting(it) or is_locking(it))
    return sum(it.waiting for it in every if is_loop(it)) > named


def place_of(trials: Sequence[Hot | None], which: Callable[[HotFunction], bool]) -> str:
    """Where threads spun most: the function of a lock, with its file, or the file of a runtime."""
    seen = _counted(
        (it, it.waiting if which is is_loop else it.samples)
        for hot in trials
        if hot
        for it in hot.record.listed
        if which(it)
    )
    if not seen:
        return ""
    function, file = max(seen, key=lambda place: seen[place])
    return file if which is is_waiting or not function else _named((function, file), trials)


def alone_in(trials: Sequence[Hot | None]) -> str:
    """The function in which the first thread ran and no other did, if it is most of all such ones;
    else empty."""
    known = _known(trials)
    single = _of_first_thread(known)
    every = (it for hot in known for it in hot.record.listed)
    seen = _counted((it, it.samples) for it in every if (it.function, it.file) in single)
    most = max(seen, key=lambda place: seen[place], default=None)
    if most is None or 2 * seen[most] < seen.total() or _RUNTIMES.match(most[1]):
        return ""
    return _named(most, trials)


def grew_in(own: Sequence[Hot | None], before: Sequence[Hot | None], least: float) -> str:
    """The function in which CPU time per operation grew by ``least`` or more, and by more than the
    error of the samples; else the file. Empty if there is none, or too few samples say it."""
    cell, base = _known(own), _known(before)
    if not cell or not base:
        return ""
    for places in (_functions, _files):
        grown = _grown(cell, base, places)
        found = max(grown, key=lambda place: grown[place][0], default=None)
        if found is not None:
            growth, error = grown[found]
            if growth >= least and growth >= _ERRORS * error:
                return _named(found, own)
    return ""


#: A place is named that surely has this share of the CPU time: no other one has as much.
MOST_MIN = 0.5
#: Files whose name says no more than the language of a program does.
_RUNTIMES = re.compile(r"lib(python|jvm|ruby|perl|php|node|mono|coreclr|lua|R\b)")


class Spent(NamedTuple):
    """The place that most of the CPU time of the threads is spent in, in words, and its share."""

    place: str
    share: Estimate


def most_spent(trials: Sequence[Hot | None]) -> Spent | None:
    """The function, the library, or the kernel in which surely most of the CPU time is spent;
    ``None`` if there is none, or too few samples say it."""
    known = _known(trials)
    for places in (_functions, _files):
        for place in dict.fromkeys(place for hot in known for place in places(hot)):
            function, file = place
            share = _share_of(known, [places(hot)[place] for hot in known])
            is_telling = not _RUNTIMES.match(file) and (function is not None or ".so" in file)
            if is_telling and _is_most(share):
                return Spent(_named(place, trials), share)
    kernel = mean_estimate([1 - hot.user_share for hot in known]) if known else None
    return Spent("the kernel", kernel) if kernel is not None and _is_most(kernel) else None


def _is_most(share: Estimate) -> bool:
    return share.low is not None and share.low >= MOST_MIN


def _share_of(known: Sequence[Hot], samples: Sequence[int]) -> Estimate:
    """The share of the CPU time that samples of each trial stand for. Its interval is no narrower
    than the chance of so many samples makes it."""
    every = sum(hot.record.samples for hot in known)
    in_user = mean([hot.user_share for hot in known])
    parts = [
        hot.user_share * it / hot.record.samples for hot, it in zip(known, samples, strict=True)
    ]
    found = mean_estimate(parts)
    part = sum(samples) / every
    half = 1.96 * in_user * math.sqrt(part * (1 - part) / every)
    if found.low is not None and found.high is not None:
        half = max(half, (found.high - found.low) / 2)
    low, high = max(0.0, found.value - half), min(1.0, found.value + half)
    return Estimate(value=found.value, low=low, high=high, n=found.n)


#: A function hardly ran in the base if it took no more than this share of the time there.
_NEW_MAX = 0.1


def is_new(own: Sequence[Hot | None], before: Sequence[Hot | None], least: float) -> bool:
    """Did CPU time per operation grow by ``least`` or more, and by more than the error of the
    samples, in functions that hardly ran in the base?"""
    cell, base = _known(own), _known(before)
    if not cell or not base:
        return False
    ran = _means(base, _functions)
    new = {
        place
        for place, (time, _) in _means(cell, _functions).items()
        if ran.get(place, (0.0, 0.0))[0] <= _NEW_MAX * time
    }

    def together(hot: Hot) -> Counter[Place]:
        # One place: the functions of a phase come and go together.
        found = _functions(hot)
        return Counter({(None, ""): sum(found[place] for place in new)})

    growth, error = _grown(cell, base, together)[None, ""]
    return growth >= least and growth >= _ERRORS * error


def _grown(
    cell: Sequence[Hot], base: Sequence[Hot], places: Callable[[Hot], Counter[Place]]
) -> dict[Place, tuple[float, float]]:
    """By how much the time in each place grew, and the standard error of that."""
    own, before = _means(cell, places), _means(base, places)
    grown = {}
    for place, (time, variance) in own.items():
        less, more = before.get(place, (0.0, 0.0))
        grown[place] = (time - less, math.sqrt(variance + more))
    return grown


def _means(
    side: Sequence[Hot], places: Callable[[Hot], Counter[Place]]
) -> dict[Place, tuple[float, float]]:
    """The mean time in each place, and its variance: that of rare events (Poisson), or that between
    trials where these were sampled in a part of the time and it is greater. The samples of a window
    belong together."""
    counted = [places(hot) for hot in side]
    is_in_part = any(hot.record.halved for hot in side) and len(side) > 1
    found = {}
    for place in dict.fromkeys(place for it in counted for place in it):
        each = [hot.part(it[place]) for hot, it in zip(side, counted, strict=True)]
        errors = (hot.part(math.sqrt(it[place])) for hot, it in zip(side, counted, strict=True))
        of_events = sum(error * error for error in errors) / len(side) ** 2
        between = statistics.variance(each) / len(side) if is_in_part else 0.0
        found[place] = mean(each), max(of_events, between)
    return found


def _functions(hot: Hot) -> Counter[Place]:
    return _counted((it, it.samples) for it in hot.record.listed if it.function)


def _files(hot: Hot) -> Counter[Place]:
    found: Counter[Place] = Counter()
    for it in hot.record.files:
        found[None, it.name] += it.samples
    return found


def _counted(places: Iterable[tuple[HotFunction, int]]) -> Counter[Place]:
    found: Counter[Place] = Counter()
    for it, samples in places:
        found[it.function, it.file] += samples
    return found


def _of_first_thread(known: Sequence[Hot]) -> set[Place]:
    """The functions outside of runtimes in which the first thread ran and no other did."""
    every = [it for hot in known for it in hot.record.listed if it.function]
    working = [it for it in every if not is_waiting(it) and not is_locking(it)]
    samples = _counted((it, it.samples) for it in working)
    first = _counted((it, it.first) for it in working)
    return {
        place
        for place, seen in samples.items()
        if seen >= _FIRST_SAMPLES_MIN and first[place] >= _FIRST_SHARE * seen
    }


def _known(trials: Sequence[Hot | None]) -> list[Hot]:
    """The trials that have samples, if these are enough together; else none. All must have some,
    unless they were sampled in a part of the time: some have none then by chance."""
    known = [hot for hot in trials if hot is not None]
    samples = sum(hot.record.samples for hot in known)
    if samples < SAMPLES_MIN:
        return []
    if not any(hot.record.halved for hot in known):
        return known if len(known) == len(trials) else []
    is_few = samples < _OF_HELD_MIN * sum(hot.held for hot in known)
    return [] if is_few or len(known) < (1 - _WITHOUT_MAX) * len(trials) else known


def _time(hot: Hot, which: Callable[[HotFunction], bool]) -> float:
    return hot.part(sum(it.samples for it in hot.record.listed if which(it)))


def _named(place: Place, trials: Sequence[Hot | None]) -> str:
    function, file = place
    called = dict(hot.called for hot in trials if hot is not None and hot.called[0])
    name = called.get(file, file)
    return f"{short_name(function)} ({name})" if function else name
