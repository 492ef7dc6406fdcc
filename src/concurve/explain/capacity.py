"""Record → what the wall time of the workers that could have run at once in a trial went to. Pure.

As many workers as the cell has, at most one for each CPU, could work for the whole wall time. That
is the trial's capacity. The CPU time that was used is a part of it; the rest went by without work.
Lives and accounts of the threads, and samples, say how: a quota held the program back; no worker
existed, or all waited while another thread ran alone (serial); some had ended, or waited for the
end of a round, while others still worked (imbalance); one stage was busy throughout while the
others waited for it; or all waited for a collector of garbage. What is left is waiting, which the
thread time explains. The parts add up to the capacity, so their differences from the base add up to
the lost speed-up.

A thread of OpenMP that has no work spins for a time before it sleeps. That is CPU time, and no
work: the samples of where threads run say how much (:mod:`concurve.explain.hot`).

Thread time alone does not show this: a worker that has ended, or does not exist yet, spends none.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from concurve.explain.goroutines import Goroutines, goroutines_of, is_written_in_go
from concurve.explain.threads import (
    ACTIVE_SHARE,
    is_python,
    kind_of,
    life_of,
    service_threads,
    set_up_threads,
    starting_threads,
    switches_of,
)
from concurve.explain.waiting import word_of
from concurve.wire.record import RoleRecord, ThreadRecord, Waits
from concurve.words import percent

#: A thread of one stage runs this share of its life, and lives for this share of the trial. It may
#: wait for a CPU meanwhile, but no longer than it runs: whoever is kept from a CPU never rests.
STAGE_BUSY = 0.85
STAGE_RUNS_MIN = 0.5
STAGE_LIFE = 0.75
#: Others wait for it: each is switched this often, lives for this share of the trial, and uses this
#: share of its CPU time; together they use :data:`ACTIVE_SHARE` of it.
STAGE_SWITCHES_MIN = 10
STAGE_OTHERS_LIFE = 0.5
STAGE_OTHERS_CPU = 0.01
#: Of these as many are alike as workers were asked for: of one kind, and each uses this share of
#: the CPU time of the busiest one of them. What starts a pool, or hands out its tasks, uses less.
STAGE_LIKE_CPU = 1 / 3
#: Threads are too many for the CPUs if so many more are ready at a time. Then no stage keeps them
#: from work, if more workers than CPUs were asked for: the CPUs do.
STAGE_READY_MAX = 1.1
#: Threads of a process run one at a time, as those that share an interpreter's lock do, if together
#: they run for no more than so many times its life: what they do without the lock comes on top.
ONE_AT_A_TIME_MAX = 1.25
#: Who asks, and who answers it, together are ready for this share of the time, unless they wait for
#: a third.
PAIRED_MIN = 0.95
#: A thread that uses this share of the wall time does a part of the work, however small.
PART_CPU_MIN = 0.01
#: A worker that waited no more often than this, or so long each time, waited at the end, or at a
#: common start.
END_SWITCHES_MAX = 5
END_WAIT_NS_MIN = 25_000_000.0
#: With fewer readings, a thread is not known to have run alone.
ALONE_READINGS_MIN = 5

#: Workers take turns if together they run for no more than so many times the wall time, and none
#: for more than so many times the mean: no two of them work at the same time.
TURNS_RUNNING_MAX = 1.1
TURNS_UNEVEN_MAX = 1.25

#: Goroutines wait for one another, or for what is outside, if so many do at a time.
GO_WAITS_MAX = 0.1
#: The mean number of goroutines in system calls differs by less from a whole number where each of
#: them is in one throughout.
GO_CALLING_SLACK = 0.02
#: No more goroutines than this run at a time, where one does all the work.
SINGLE_MAX = 1.05

_COLLECTOR = re.compile(
    r"VM Thread|GC Thread|GC task|G1 (Main|Conc|Refine|Serv|Young)|Shenandoah|ZDirector|ZDriver"
    r"|ZWorker|XDriver|XWorker"
)


class Stage(NamedTuple):
    """A thread that ran throughout while others waited for it: its name, and the share of its life
    that it ran; or the ``threads`` of a process together, of which one runs at a time. ``part`` is
    the part of the program that it is: its kind, whether it is of the first process, and the how
    many-th of these it was created. It is the same in each trial, where it is the one for which the
    others wait, and not one of several like workers that by chance ran most."""

    name: str
    ran: float
    threads: int = 1
    part: tuple[str, bool, bool, int] = ("", False, False, 0)

    @property
    def words(self) -> str:
        """Which thread it is, and for how much of its life it ran."""
        of = f"{percent(self.ran)} of its life"
        if self.threads == 1:
            return f"the thread {self.name} ran {of}"
        return f"{self.threads} threads of a process {self.name}, one at a time, ran {of}"


class Capacity(NamedTuple):
    """What the capacity of a trial went to, in ns: ``workers`` × wall time.

    ``cpu`` excludes the collector's. ``helping`` is negative: CPU time beyond the capacity, used by
    threads beside the workers. ``alone`` is the wall time in which no worker worked and another
    thread ran; ``uneven`` is the CPU time of the busiest worker over the mean of the workers.
    ``helped`` is the CPU time beyond the capacity without that of a JVM's own threads and of the
    collector; ``collected`` is the share of the time in which it worked. ``pauses`` is the time for
    which workers waited at futexes whose words are not known to be those of barriers. ``merging``
    is time in which one goroutine worked, and none waited for its end: either it puts together
    what the others have done (serial), or it is a worker itself (imbalance); the base tells.
    ``unstaged`` is the same without the stage, where there is one: all trials tell together.
    ``locked`` is the same, where some that hardly run wait for the busiest one, if they do so at a
    lock: then they wait, and have not less work.
    """

    workers: float
    cpu: float
    serial: float
    imbalance: float
    stage: float
    collector: float
    quota: float
    queue: float
    waiting: float
    helping: float
    alone: float = 0.0
    uneven: float = 1.0
    collected: float = 0.0
    helped: float = 0.0
    limit: Stage | None = None
    pauses: float = 0.0
    merging: float = 0.0
    unstaged: Capacity | None = None
    locked: Capacity | None = None

    @property
    def idle_beside_one(self) -> float:
        """What of the capacity would be idle, if one worker worked at a time."""
        whole: float = sum(getattr(self, part) for part in PARTS)
        return whole * (self.workers - 1) / self.workers

    def with_barriers(self, share: float) -> Capacity:
        """The same, if this share of the pauses was at barriers: uneven work, and no waiting."""
        moved = min(self.waiting, share * self.pauses)
        return self._replace(waiting=self.waiting - moved, imbalance=self.imbalance + moved)

    def with_locks_before_barriers(self, share: float) -> Capacity:
        """The same, if for this share of their waits at barriers threads wait for who gets a lock
        last: that is no uneven work."""
        moved = share * self.imbalance
        return self._replace(waiting=self.waiting + moved, imbalance=self.imbalance - moved)

    def with_once(self, share: float) -> Capacity:
        """The same, if for this share of the pauses workers waited for what one of them did once
        for all. That one worked longer than the others, so it seems to be uneven work."""
        moved = min(self.imbalance + self.waiting, share * self.pauses)
        uneven = min(self.imbalance, moved)
        return self._replace(
            serial=self.serial + moved,
            imbalance=self.imbalance - uneven,
            waiting=self.waiting - (moved - uneven),
        )

    def with_spinning(self, spun: float, alone: float, wall: float) -> Capacity:
        """The same, if threads spun for so much of the CPU time because they had no work. The first
        thread ran ``alone`` for so long, in functions in which no other ran."""
        moved = min(self.cpu, spun)
        others = self.workers - 1
        serial = min(moved, max(0.0, others * alone - self.serial))
        return self._replace(
            cpu=self.cpu - moved,
            serial=self.serial + serial,
            imbalance=self.imbalance + moved - serial,
            alone=self.alone + (serial / others / wall if serial else 0.0),
        )


#: The parts that add up to the capacity.
PARTS = (
    "cpu", "serial", "imbalance", "stage", "collector", "quota", "queue", "waiting", "helping",
    "merging",
)  # fmt: skip


def capacity_of(
    role: RoleRecord, level: float | None, cpus: int | None, taken_ns: float
) -> Capacity | None:
    """What the capacity of a whole run went to. ``level`` is the number of workers of the cell,
    ``taken_ns`` the CPU time that processes outside the trial took. ``None`` if the number of
    workers is not known, or the record lacks the life or the CPU time of a thread; or its wait for
    a CPU, where there was not one for each."""
    trial = _trial_of(role, level, cpus, taken_ns)
    if trial is None:
        return None
    divided = _if_locked(trial, taken_ns)
    if trial.limit is None:
        return divided
    return divided._replace(unstaged=_if_locked(trial._replace(limit=None), taken_ns))


def _if_locked(trial: _Trial, taken_ns: float) -> Capacity:
    """What the capacity of a trial went to, with what it went to if threads wait for a lock."""
    divided = _divided(trial, taken_ns)
    locked = _divided(trial._replace(is_locked=True), taken_ns)
    return divided if locked == divided else divided._replace(locked=locked)


def _divided(trial: _Trial, taken_ns: float) -> Capacity:
    """What the capacity of a trial went to."""
    wall, workers, used = trial.wall, trial.workers, trial.used
    alone = _nobody_worked(trial)
    idle = _Idle(workers * wall - used)
    quota = idle.take(trial.throttled)
    queue = idle.take(_queued(trial, taken_ns))
    serial = idle.take((workers - 1) * alone)
    stopped = idle.take(_stopped(trial))
    stage = idle.take(_waited(trial.others) if trial.limit else 0.0)
    unworked = _without_work(trial)
    merging = idle.take(min(unworked, _merging(trial)))
    imbalance = idle.take(unworked - merging)
    collected = _cpu(trial.collectors) + trial.marked
    return Capacity(
        workers=workers,
        cpu=used - collected,
        serial=serial,
        imbalance=imbalance,
        stage=stage,
        collector=collected + stopped,
        quota=quota,
        queue=queue,
        waiting=idle.left,
        helping=min(0.0, workers * wall - used),
        alone=alone / wall,
        uneven=_uneven(trial.peers),
        collected=_collecting_share(trial),
        helped=max(0.0, _cpu(trial.others) - trial.marked - workers * wall),
        limit=trial.limit,
        pauses=_pauses(trial),
        merging=merging,
    )


class _Idle:
    """What is left of the capacity without work; each part takes no more than that."""

    def __init__(self, left: float) -> None:
        self.left = max(0.0, left)

    def take(self, wanted: float) -> float:
        """As much of it as there is."""
        taken = min(self.left, wanted)
        self.left -= taken
        return taken


class _Trial(NamedTuple):
    """The threads of a role by what they do: ``others`` are all but a JVM's own, and of these
    ``peers`` are the workers. ``go`` is known of few programs; ``marked`` is the CPU time of its
    collector, and that of other ``collectors`` is their threads'. ``is_locked``: who waits for
    the busiest thread waits for a lock that it takes back again and again. Times are in ns."""

    role: RoleRecord
    wall: float
    used: float
    level: float
    cpus: int
    others: list[ThreadRecord]
    peers: list[ThreadRecord]
    collectors: list[ThreadRecord]
    is_jvm: bool
    is_go: bool
    go: Goroutines | None
    limit: Stage | None
    is_locked: bool = False

    @property
    def workers(self) -> float:
        """The workers that could run at once."""
        return float(min(self.level, self.cpus))

    @property
    def listed(self) -> Sequence[ThreadRecord]:
        """All threads."""
        return self.role.threads.listed

    @property
    def throttled(self) -> float:
        """Time for which the quota of the control group held the role back."""
        return float(self.role.quota.throttled_ns) if self.role.quota else 0.0

    @property
    def marked(self) -> float:
        """CPU time of the collector of a Go program."""
        return min(self.used, self.go.collecting * self.wall) if self.go else 0.0


def _trial_of(
    role: RoleRecord, level: float | None, cpus: int | None, taken_ns: float
) -> _Trial | None:
    """The threads by what they do; ``None`` where the record does not tell."""
    listed = role.threads.listed
    is_whole = bool(listed) and role.threads.total == len(listed)
    known = all(t.lived_ns is not None and t.usage.cpu_ns is not None for t in listed)
    wall, used = float(role.wall_ns), role.usage.cpu_ns
    if level is None or level < 1 or not cpus or not is_whole or not known or used is None:
        return None
    queues = level > cpus or taken_ns > 0
    if queues and any(t.usage.run_queue_ns is None for t in listed):
        return None
    serving = service_threads(listed)
    others = _without(listed, serving)
    is_go = is_written_in_go(role)
    go = goroutines_of(role)
    return _Trial(
        role=role,
        wall=wall,
        used=float(used),
        level=level,
        cpus=cpus,
        others=others,
        peers=_peers(role, others, level),
        collectors=[thread for thread in serving if _COLLECTOR.match(thread.name)],
        is_jvm=bool(serving),
        is_go=is_go,
        go=go if go is not None and go.is_known else None,
        # A goroutine runs on any thread, so those of Go are no stages and no workers.
        limit=None
        if is_go or _fills(others, wall, level, cpus)
        else _stage(role, others, wall, level),
    )


def _queued(trial: _Trial, taken_ns: float) -> float:
    """Time for which threads waited for a CPU, without that of a quota. Of more workers than
    CPUs, with a stage of more threads that work, no more than processes outside the trial took:
    they wait for one another."""
    working = trial.peers if trial.limit is None else _working(trial.others, trial.others)
    waiting = working or trial.listed
    queued = float(sum(thread.usage.run_queue_ns or 0 for thread in waiting))
    queued = max(0.0, queued - trial.throttled)
    return queued if len(working) <= trial.cpus else min(queued, taken_ns)


def _nobody_worked(trial: _Trial) -> float:
    """Wall time in which no worker worked and another thread ran."""
    alone = _alone(trial)
    if trial.limit is not None:
        return alone
    beside = _without(trial.others, trial.peers)
    first = starting_threads(beside, trial.role.pid)
    single = 0.0
    has_ended = _have_ended(trial.peers, trial.role, trial.wall, trial.level)
    is_outrun = trial.is_locked and _outruns(trial.others, trial.wall)
    if not (trial.is_go or has_ended or is_outrun):
        single = _only_one(trial.others, trial.wall)
    if trial.go is not None:
        single = _only_goroutine(trial.go, trial.used - trial.marked, trial.wall)
    seen = sum(_seen_alone(thread, trial.wall) for thread in first)
    # Where others waited before there were workers, the samples have that time, too.
    seen_with = max(alone, seen) if _waited_before(trial, first) else alone + seen
    return max(alone, single, min(sum(map(_ran, first)), seen_with, trial.wall))


def _stopped(trial: _Trial) -> float:
    """Time for which the workers were stopped while a thread of the collector ran."""
    collecting = [_ran(thread) for thread in trial.collectors]
    return max(0.0, trial.workers * max(collecting, default=0.0) - sum(collecting))


def _without_work(trial: _Trial) -> float:
    """Time for which workers had no more work, while others still worked."""
    peers, wall = trial.peers, trial.wall
    if trial.go is not None:
        return _without_goroutines(trial.go, trial.workers, wall)  # they run on any thread
    # A JVM stops its threads at a word whose value changes, too; so do those that take turns wait.
    no_rounds = trial.is_jvm or takes_turns(peers, wall)
    uneven = _unworked(peers, wall, trial.level) + (
        0.0 if no_rounds else _rounds(trial.role, peers)
    )
    if trial.limit is None and not trial.is_go and not trial.is_locked:
        uneven = max(uneven, _behind(peers, wall))
    return uneven


def _merging(trial: _Trial) -> float:
    """Time for which workers had no goroutine to run, while none waited for the end of others.
    Where none ever waited for that, all that there are may be workers."""
    if trial.go is None or not trial.go.joined:
        return 0.0
    return (trial.workers - 1) * (1 - trial.go.joined) * trial.wall


def _pauses(trial: _Trial) -> float:
    """Waits of the workers that may be at barriers, which the places in the program tell. A thread
    that a JVM or Go's runtime stops waits elsewhere."""
    if trial.is_jvm or trial.is_go or takes_turns(trial.peers, trial.wall):
        return 0.0
    return max(0.0, _at_futexes(trial.peers) - _rounds(trial.role, trial.peers))


def takes_turns(workers: Sequence[ThreadRecord], wall: float) -> bool:
    """Do workers that have the same work run one after the other, and never together? So do those
    that hand a turn on to the next one, as at a lock that is held all the time. Where rounds are
    uneven, some run together."""
    working = _working(workers, workers)
    ran = sum(map(_ran, working))
    is_even = _uneven(working) <= TURNS_UNEVEN_MAX
    return len(working) > 1 and is_even and ran <= TURNS_RUNNING_MAX * wall


def _collecting_share(trial: _Trial) -> float:
    """The share of the time in which the collector worked."""
    most = max(map(_ran, trial.collectors), default=0.0) / trial.wall
    return max(most, trial.go.marking if trial.go else 0.0)


def _only_goroutine(go: Goroutines, used: float, wall: float) -> float:
    """The time that the only goroutine that works ran, on whichever thread; 0 if others do, too."""
    # Who never leaves a call, as one that waits for a signal, is there in each reading.
    calling = go.calling - math.floor(go.calling + GO_CALLING_SLACK)
    waits = max(go.locked, go.sending, calling)
    is_single = go.running <= SINGLE_MAX and waits < 1 - 1 / SINGLE_MAX
    return min(wall, used) if is_single else 0.0


def _without_goroutines(go: Goroutines, workers: float, wall: float) -> float:
    """Time for which workers had no goroutine to run, where none waits for another but at the end:
    the main one may wait for all the others."""
    waits = max(go.locked, go.sending, go.outside, go.receiving - 1)
    if waits >= GO_WAITS_MAX:
        return 0.0
    return max(0.0, workers - go.running - go.collecting) * wall


def _peers(role: RoleRecord, threads: Sequence[ThreadRecord], level: float) -> list[ThreadRecord]:
    """The workers: the threads of the busiest kind, without the role's first thread, which starts
    them; with it, if fewer of them work than were asked for, and it works, too. None if they hardly
    do a part of the work."""
    wall = float(role.wall_ns)
    started = [thread for thread in threads if thread.tid != role.pid]
    parents = [thread for thread in started if _by_children(thread)]
    if len(parents) == level and _are_workers(parents, wall):
        return [_with_children(thread, wall) for thread in parents]
    kinds: dict[tuple[str, bool], int] = {}
    for thread in started:
        kinds[kind_of(thread)] = kinds.get(kind_of(thread), 0) + (thread.usage.cpu_ns or 0)
    if not kinds:
        return []
    kind = max(kinds, key=lambda one: kinds[one])
    peers = [thread for thread in started if kind_of(thread) == kind]
    # What the first one does before there are others says nothing of what is much for them.
    together = _without(threads, set_up_threads(threads, role.pid, wall))
    working = _working(peers, together)
    if not working:
        return []
    first = [thread for thread in threads if thread.tid == role.pid and _working([thread], threads)]
    return [*peers, *first] if len(working) < level else peers


def _by_children(thread: ThreadRecord) -> bool:
    """Does it work by processes of its own, for which it waits, one after the other?"""
    waits = thread.waits or Waits()
    blocked = waits.readings - waits.running
    return switches_of(thread) > 1 and 2 * waits.child > blocked > 0


def _are_workers(parents: Sequence[ThreadRecord], wall: float) -> bool:
    """Are they of one kind, and did one of them live for most of the time?"""
    is_long = any(_lives(thread, wall, STAGE_OTHERS_LIFE) for thread in parents)
    return is_long and len({kind_of(thread) for thread in parents}) == 1


def _with_children(thread: ThreadRecord, wall: float) -> ThreadRecord:
    """The thread with the time for which it waited for its children as its own work. Their accounts
    do not say whose they are."""
    waits = thread.waits or Waits()
    blocked = waits.readings - waits.running
    theirs = (life_of(thread, wall) - _ran(thread)) * waits.child / max(blocked, 1)
    cpu = round((thread.usage.cpu_ns or 0) + max(0.0, theirs))
    return msgspec.structs.replace(thread, usage=msgspec.structs.replace(thread.usage, cpu_ns=cpu))


def _working(some: Sequence[ThreadRecord], threads: Sequence[ThreadRecord]) -> list[ThreadRecord]:
    """Those that do a part of the work."""
    busiest = max((thread.usage.cpu_ns or 0 for thread in threads), default=0)
    return [thread for thread in some if (thread.usage.cpu_ns or 0) >= ACTIVE_SHARE * busiest]


def _alone(trial: _Trial) -> float:
    """Wall time in which no worker existed and another thread ran: no more than the others ran, and
    no more than the workers' lives leave of the wall time. Births are not recorded: of workers in
    several generations as many live at once as the peak of the role allows."""
    role, peers, wall = trial.role, trial.peers, trial.wall
    others = _without(trial.listed, peers)
    ran = sum(map(_ran, others))
    # Of several generations it is not known what was before all of them.
    is_one = len(peers) <= trial.level
    before = sum(is_one and _was_before(thread, peers, wall) for thread in others)
    peak = role.threads.peak or len(trial.listed)
    at_once = max(1, min(len(peers), peak - (len(others) - before)))
    lives = [life_of(thread, wall) for thread in peers]
    existed = max(max(lives, default=0.0), sum(lives) / at_once)
    return min(ran, max(0.0, wall - existed))


def _was_before(thread: ThreadRecord, peers: Sequence[ThreadRecord], wall: float) -> bool:
    """Was it born before the workers, and did it live no longer than the time that these leave? So
    do the processes of a script that starts the program, which end before that begins. The kernel
    numbers them in the order of their births."""
    first = min((peer.tid for peer in peers), default=0)
    longest = max((life_of(peer, wall) for peer in peers), default=wall)
    return thread.tid < first and life_of(thread, wall) <= wall - longest


def _waited_before(trial: _Trial, first: Sequence[ThreadRecord]) -> bool:
    """Were other threads of the first one's process born before the workers, as those of a JVM's
    own? They wait while it starts the program. The kernel numbers threads in the order of their
    births."""
    born = min((peer.tid for peer in trial.peers), default=0)
    pids = {thread.pid for thread in first}
    others = _without(_without(trial.listed, trial.peers), first)
    return any(thread.pid in pids and thread.tid < born for thread in others)


def _seen_alone(thread: ThreadRecord, wall: float) -> float:
    """Wall time in which a thread ran, another one waited, and no other one ran, by the samples."""
    waits = thread.waits or Waits()
    if waits.alone is None or waits.readings < ALONE_READINGS_MIN:
        return 0.0
    return life_of(thread, wall) * waits.alone / waits.readings


def _only_one(threads: Sequence[ThreadRecord], wall: float) -> float:
    """The time that the only thread that works ran; 0 if others do a part of the work, together."""
    busiest = max(threads, key=_worked, default=None)
    if busiest is None or not _worked(busiest):
        return 0.0
    others = sum(map(_worked, threads)) - _worked(busiest)
    return min(wall, _ran(busiest)) if others < ACTIVE_SHARE * _worked(busiest) else 0.0


def _have_ended(peers: Sequence[ThreadRecord], role: RoleRecord, wall: float, level: float) -> bool:
    """Were as many like threads started as workers were asked for, and has each but the busiest
    ended, after it had run for most of a short life? They had work, and little of it."""
    started = [thread for thread in peers if thread.tid != role.pid]
    busiest = max(started, key=_worked, default=None)
    others = [thread for thread in started if thread is not busiest]
    return 0 < level - 1 <= len(others) and all(
        not _lives(thread, wall, STAGE_OTHERS_LIFE)
        and _worked(thread) >= max(PART_CPU_MIN * wall, STAGE_RUNS_MIN * life_of(thread, wall))
        for thread in others
    )


def _outruns(threads: Sequence[ThreadRecord], wall: float) -> bool:
    """Do others than the busiest thread wait again and again, at futexes, in a long life? So do
    those for whom a lock is hardly ever free."""
    busiest = max(threads, key=_worked, default=None)
    return any(
        switches_of(thread) >= STAGE_SWITCHES_MIN
        and _lives(thread, wall, STAGE_OTHERS_LIFE)
        and _is_at_futexes(thread)
        for thread in threads
        if thread is not busiest
    )


def _is_at_futexes(thread: ThreadRecord) -> bool:
    waits = thread.waits or Waits()
    blocked = waits.readings - waits.running
    return 2 * waits.futex >= blocked > 0


def _fills(threads: Sequence[ThreadRecord], wall: float, level: float, cpus: int) -> bool:
    """Were more workers asked for than there are CPUs, and are these too few for what is ready?"""
    return level > cpus and sum(map(_ran, threads)) > STAGE_READY_MAX * cpus * wall


def _stage(
    role: RoleRecord, threads: Sequence[ThreadRecord], wall: float, level: float
) -> Stage | None:
    """The one thread that is busy throughout while others, which work as well, wait again and
    again. It is none of the workers that were asked for: beside it as many are alike, without the
    program's first thread, which may only have started them and take their results."""
    busy = [thread for thread in threads if _is_busy(thread, wall)]
    if len(busy) != 1:
        return _process(role, threads, wall, level)
    one = busy[0]
    others = [t for t in threads if t is not one and _waits_for(t, one, wall)]
    if sum(t.usage.cpu_ns or 0 for t in others) < ACTIVE_SHARE * (one.usage.cpu_ns or 0):
        return None
    if _alike([thread for thread in others if thread.tid != role.pid]) < level:
        return None
    return Stage(one.name, _busy(one, wall), part=_part(one, role, threads, wall))


def _alike(threads: Sequence[ThreadRecord]) -> int:
    """How many of them are of one kind and do as much work, within a factor."""
    busiest = max(map(_worked, threads), default=0.0)
    working = [thread for thread in threads if _worked(thread) >= STAGE_LIKE_CPU * busiest]
    return max(Counter(map(kind_of, working)).values(), default=0)


def _part(
    one: ThreadRecord, role: RoleRecord, threads: Sequence[ThreadRecord], wall: float
) -> tuple[str, bool, bool, int]:
    """Which part of the program a thread is, as far as the record says it."""
    name, is_first = kind_of(one)
    before = sum(
        thread.tid < one.tid and _lives(thread, wall, STAGE_OTHERS_LIFE)
        for thread in threads
        if kind_of(thread) == (name, is_first)
    )
    return name, is_first, one.pid == role.pid, before


def _process(
    role: RoleRecord, threads: Sequence[ThreadRecord], wall: float, level: float
) -> Stage | None:
    """The one process beside the workers whose threads, several of which work, together run
    throughout while as many other processes and threads as workers were asked for wait for it, as
    for one that serves them all."""
    found = []
    first = role.pid
    for pid in {thread.pid for thread in threads} - {first}:
        own = [thread for thread in threads if thread.pid == pid]
        working = _working(own, own)
        life = max(life_of(thread, wall) for thread in own)
        # One at a time waits for a CPU, too; others may do so beside it.
        queued = max(float(thread.usage.run_queue_ns or 0) for thread in own)
        ran = (_cpu(own) + queued) / life if life else 0.0
        runs = _cpu(own) >= STAGE_RUNS_MIN * ran * life
        if len(working) > 1 and runs and ran >= STAGE_BUSY:
            found.append((max(working, key=_worked), ran, own, len(working), life))
    if len(found) != 1:
        return None
    busiest, ran, own, many, life = found[0]
    # A process is one worker, with all of its threads; those of the first are one each.
    others = [
        thread
        for thread in _without(threads, own)
        if first in (thread.pid, None) or thread.tid == thread.pid
        if thread.tid != first and _waits_for(thread, busiest, life)
    ]
    is_served = _alike(others) >= level and _cpu(others) >= ACTIVE_SHARE * _cpu(own)
    # Where each has a thread of its own to ask, one of the two always runs or could run.
    ready = ran * life + sum(map(_ran, others))
    are_paired = ready >= PAIRED_MIN * level * life and not is_python(role)
    if not is_served or are_paired or _cpu(own) > ONE_AT_A_TIME_MAX * life:
        return None
    leading = min(own, key=lambda thread: thread.tid)
    return Stage(busiest.name, min(1.0, ran), many, _part(leading, role, threads, wall))


def _waits_for(thread: ThreadRecord, busy: ThreadRecord, wall: float) -> bool:
    works = (thread.usage.cpu_ns or 0) >= STAGE_OTHERS_CPU * (busy.usage.cpu_ns or 0)
    often = switches_of(thread) >= STAGE_SWITCHES_MIN
    return works and often and not _sleeps(thread) and _lives(thread, wall, STAGE_OTHERS_LIFE)


def _sleeps(thread: ThreadRecord) -> bool:
    """Does it wait for a timer or for the disk, and for no other thread?"""
    waits = thread.waits or Waits()
    blocked = waits.readings - waits.running
    return blocked > 0 and 2 * (waits.sleep + waits.disk) >= blocked


def _waited(threads: Sequence[ThreadRecord]) -> float:
    return sum(max(0.0, float(thread.lived_ns or 0) - _ran(thread)) for thread in threads)


def _unworked(peers: Sequence[ThreadRecord], wall: float, level: float) -> float:
    """Time for which workers with less work than the busiest had ended, or waited for the end.
    Where they have as much and still end earlier, the others waited for something else, such as a
    lock."""
    working = [t for t in _working(peers, peers) if _lives(t, wall, STAGE_OTHERS_LIFE)]
    if len(working) >= level:
        peers = working  # the others are none of the workers
    longest = max((life_of(thread, wall) for thread in peers), default=0.0)
    most = max(map(_worked, peers), default=0.0)
    return sum(min(most - _worked(thread), _over(thread, longest, most, wall)) for thread in peers)


def _over(thread: ThreadRecord, longest: float, most: float, wall: float) -> float:
    """Time for which a worker had no more work while the longest-lived one was alive."""
    ended = longest - life_of(thread, wall)
    waited = _waited([thread])
    seldom = switches_of(thread) <= max(END_SWITCHES_MAX, waited / END_WAIT_NS_MIN)
    works = _worked(thread) >= ACTIVE_SHARE * most
    return ended + (waited if works and seldom and not _sleeps(thread) else 0.0)


def _rounds(role: RoleRecord, peers: Sequence[ThreadRecord]) -> float:
    """Time for which workers waited for the end of a round, at a barrier: their waits at futexes,
    as far as those are at words whose value changes with each round."""
    at_futexes = sum(thread.waits.futex for thread in peers if thread.waits)
    rounds = word_of(role.waits).rounds
    return _at_futexes(peers) * min(1.0, rounds / at_futexes) if at_futexes else 0.0


def _at_futexes(peers: Sequence[ThreadRecord]) -> float:
    """Time for which workers waited at futexes, as the samples of their waits are divided."""
    waited = 0.0
    for thread in peers:
        waits = thread.waits or Waits()
        blocked = waits.readings - waits.running
        waited += _waited([thread]) * waits.futex / blocked if blocked else 0.0
    return waited


def _behind(peers: Sequence[ThreadRecord], wall: float) -> float:
    """Time for which workers waited again and again for the one that always runs, as at barriers
    where one has more work than the others in each round. Who contends for a lock also waits."""
    working = _working(peers, peers)
    busy = [thread for thread in working if _is_busy(thread, wall)]
    if len(busy) != 1:
        return 0.0
    others = [t for t in working if t is not busy[0] and _waits_for(t, busy[0], wall)]
    most = _worked(busy[0])
    return sum(min(most - _worked(thread), _waited([thread])) for thread in others)


def _without(threads: Sequence[ThreadRecord], some: Sequence[ThreadRecord]) -> list[ThreadRecord]:
    tids = {(thread.pid, thread.tid) for thread in some}
    return [thread for thread in threads if (thread.pid, thread.tid) not in tids]


def _uneven(peers: Sequence[ThreadRecord]) -> float:
    used = [thread.usage.cpu_ns or 0 for thread in peers]
    return max(used) * len(used) / sum(used) if used and sum(used) else 1.0


def _cpu(threads: Sequence[ThreadRecord]) -> float:
    return float(sum(thread.usage.cpu_ns or 0 for thread in threads))


def _worked(thread: ThreadRecord) -> float:
    """The work of a thread. It does not grow while other processes keep it from a CPU."""
    return float(thread.usage.cpu_ns or 0)


def _ran(thread: ThreadRecord) -> float:
    """Time that a thread ran or could have run."""
    return float((thread.usage.cpu_ns or 0) + (thread.usage.run_queue_ns or 0))


def _busy(thread: ThreadRecord, wall: float) -> float:
    life = life_of(thread, wall)
    return min(1.0, _ran(thread) / life) if life else 0.0


def _is_busy(thread: ThreadRecord, wall: float) -> bool:
    """Was it busy throughout, and did it run for most of that?"""
    runs = _worked(thread) >= STAGE_RUNS_MIN * _ran(thread)
    return runs and _busy(thread, wall) >= STAGE_BUSY and _lives(thread, wall, STAGE_LIFE)


def _lives(thread: ThreadRecord, wall: float, share: float) -> bool:
    return life_of(thread, wall) >= share * wall
