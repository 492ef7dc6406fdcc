"""Did other processes use the machine during a trial? Pure judgement of a record.

Signs (facts, scaling models): the hypervisor took CPU (steal); processes outside the trial used
CPU; threads waited for a CPU although there were no more workers than CPUs. On a machine of many
CPUs steal is judged against those that were in use, and what strangers used also against those that
the roles are bound to: of the whole machine a disturbed CPU is next to nothing. Work of low
priority (nice above 0) runs where a CPU is left idle: it is judged by the wait that it caused, and
by its share only where the wait cannot be judged, and is so long that it may have done harm. Coarse
counters are only judged where they moved by several of their ticks. A further sign concerns the
runner: it had no CPU when a phase began or ended, and so read the probes late. Of several hosts,
one may have started its roles late.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from typing import NamedTuple

import msgspec

from concurve.definition.units import format_count
from concurve.readings.measures import MEASURE_PHASE
from concurve.terms import ANOTHER_RUN, OURS
from concurve.wire.record import ForeignProcess, HostRecord, MachineRecord, RoleRecord, TrialRecord

#: The cause of a trial of which the hypervisor took CPU time.
STEAL = "steal"

#: Limits of foreign CPU time and of steal, as shares of the CPU time of the machine or of a part of
#: its CPUs.
STEAL_SHARE_MAX = 0.02
FOREIGN_SHARE_MAX = 0.05
#: Fewer CPUs than this are no part to judge by: of one alone the limits would be a few ticks.
CPUS_LEAST = 2
#: Of what a share is where nothing else is said.
WHOLE = "the machine's CPU time"
#: Limit of the workers' run-queue wait while there is a CPU for each, as a share of their time.
WAIT_SHARE_MAX = 0.05
#: A counter of ticks is judged only if it moved by at least this many ticks.
TICKS_MIN = 3
#: A tick as kernels show it, where a record does not say.
TICK_NS = 10_000_000
#: Share of a measured phase by which its probes may be read late, or of the time of a host's roles
#: by which these may start late, and from when it matters. A start at an agreed time is to be exact
#: to a millisecond; of two hosts that load a server, one that is late by 2 % of its time takes 1 %
#: off the sum, which is the least difference that counts between hosts.
LATE_SHARE_MAX = 0.02
LATE_NS_MIN = 1_000_000
#: What the processes that are named leave of the CPU time of all others is told from this share on.
_REST_SHARE_MIN = 0.01
#: A process with less than this share is 0 % once it is rounded, and is not named, unless it has
#: such a part of what all of them used.
_SEEN_MIN, _PART_MIN = 0.005, 0.1
#: Signs of the whole machine, read alike in every cell: trials with them may be left out of a ratio
#: without favouring one of its cells. The others can be seen in some cells only.
MACHINE_WIDE = (STEAL, "foreign_cpu", "late_reading", "late_start")
#: Signs that processes outside the trial cause.
BY_PROCESSES = ("foreign_cpu", "low_priority", "run_queue")
#: The cause of a late trial: its CPU times and counts are in doubt, its wall times are not.
LATE_READING = "late_reading"
#: A run-queue wait shorter than one or two scheduling slices is no sign of other processes.
WAIT_NS_MIN = 10_000_000


class Contamination(NamedTuple):
    """A sign that other processes used the CPUs: the ``share`` that they took, and its limit.
    ``is_of_machine``: that is a share of the machine's CPU time, all CPUs together."""

    cause: str
    share: float
    limit: float
    detail: str
    is_of_machine: bool = False


def judge(
    record: TrialRecord, workers: float | None = None, target: str = "target"
) -> list[Contamination]:
    """Signs of contamination in a record, worst first; of several hosts, those of each.

    ``workers`` is the level of the factor that counts as concurrency; without it the peak number
    of threads counts. ``target`` is the measured role.
    """
    if not record.hosts:
        return _judge(record, workers, target)
    found = []
    for host in record.hosts:
        own = on_host(record, host)
        signs = _judge(own, workers if own.role(target) is not None else None, target)
        signs += filter(None, [_late_start(own.roles, host.start_late_ns)])
        found += [sign._replace(detail=f"host {host.name}: {sign.detail}") for sign in signs]
    return sorted(found, key=lambda sign: sign.limit / sign.share)


def on_host(record: TrialRecord, host: HostRecord) -> TrialRecord:
    """What a record says of one of its hosts, as a record of that host alone."""
    return msgspec.structs.replace(
        record,
        roles=tuple(role for role in record.roles if role.host == host.name),
        wall_ns=host.wall_ns,
        machine=host.machine,
        instrument=host.instrument,
        hosts=(),
    )


def _judge(record: TrialRecord, workers: float | None, target: str) -> list[Contamination]:
    machine = record.machine
    capacity = machine_capacity_ns(record)
    wait = _wait(record, workers)
    low = Taken(machine.foreign_low_priority_ns or 0, capacity)
    low_priority = _counter(record, "low_priority", low, FOREIGN_SHARE_MAX,
                            "processes of low priority outside the trial used")  # fmt: skip
    if not _may_be_delayed(record):
        low_priority = None
    found = [
        _counter(record, "steal", stolen(record), STEAL_SHARE_MAX, "the hypervisor took"),
        _foreign(record),
        low_priority if wait is None else _waiting(wait),
        _late(record, target),
    ]
    worst_first = sorted(filter(None, found), key=lambda sign: sign.limit / sign.share)
    return _named(worst_first, record, capacity)


def _foreign(record: TrialRecord) -> Contamination | None:
    """What processes of usual priority outside the trial used of the machine, or of the CPUs that
    the roles are bound to."""
    low = record.machine.foreign_low_priority_ns or 0
    every, there = foreign(record), foreign_on_bound(record)
    words = f"processes {'of usual priority ' if low else ''}outside the trial used"
    usual = every._replace(taken_ns=every.taken_ns - low)
    found = _counter(record, "foreign_cpu", usual, FOREIGN_SHARE_MAX, words)
    if found is not None or there is None:
        return found
    return _counter(record, "foreign_cpu", there, FOREIGN_SHARE_MAX, words)


def machine_capacity_ns(record: TrialRecord) -> int:
    """CPU time that the machine could give while it was observed.

    That begins before the trial does and ends after it: on a loaded machine by so much that the
    CPUs were busy for longer than the trial took.
    """
    return max(record.wall_ns * (record.machine.cpus or 1), record.machine.busy_ns or 0)


class Taken(NamedTuple):
    """CPU time that others took, and the time that the CPUs of which it is judged could give:
    ``of`` says which these are, if they are not all of the machine."""

    taken_ns: int
    capacity_ns: int
    of: str = ""

    @property
    def share(self) -> float:
        """The share that was taken."""
        return self.taken_ns / self.capacity_ns if self.capacity_ns else 0.0


def stolen(record: TrialRecord) -> Taken:
    """What the hypervisor took of the CPUs in use: of the time that they were busy or stolen for,
    and that of :data:`CPUS_LEAST` CPUs at least. It takes none from a CPU that idles."""
    machine = record.machine
    taken, whole = machine.steal_ns or 0, machine_capacity_ns(record)
    used = whole
    if machine.busy_ns is not None:
        used = max(machine.busy_ns + taken, CPUS_LEAST * record.wall_ns)
    if used >= whole:
        return Taken(taken, whole)
    return Taken(taken, used, "the CPU time of the CPUs in use")


def foreign(record: TrialRecord) -> Taken:
    """What processes outside the trial took of the machine, of any priority."""
    return Taken(record.machine.foreign_cpu_ns or 0, machine_capacity_ns(record))


def foreign_on_bound(record: TrialRecord) -> Taken | None:
    """What processes of usual priority outside the trial surely took of the CPUs that the roles
    are bound to; ``None`` where these are all of the machine, or where it is not known."""
    bound = _bound_cpus(record)
    there = foreign_at_least_ns(record, bound)
    if not bound or there is None:
        return None
    count = max(len(bound), CPUS_LEAST)
    capacity = machine_capacity_ns(record) * count // max(count, record.machine.cpus or 1)
    cpus = format_count(len(bound), "CPU")
    return Taken(
        there, capacity, f"the CPU time of the {cpus} that the roles are bound to, or more"
    )


def judged(record: TrialRecord) -> tuple[Taken, Taken]:
    """What trials are judged by: what processes of usual priority outside the trial took, of the
    machine or of the CPUs that the roles are bound to, whichever is the greater share, and what the
    hypervisor took. Fewer than :data:`TICKS_MIN` ticks are none."""
    least = TICKS_MIN * (record.machine.tick_ns or TICK_NS)
    every, there = foreign(record), foreign_on_bound(record)
    low = record.machine.foreign_low_priority_ns or 0
    usual = every._replace(taken_ns=max(0, every.taken_ns - low))
    if there is not None and there.share > usual.share:
        usual = there
    known = (usual, stolen(record))
    by_foreign, by_hypervisor = (
        it if it.taken_ns >= least else it._replace(taken_ns=0) for it in known
    )
    return by_foreign, by_hypervisor


def _bound_cpus(record: TrialRecord) -> frozenset[int]:
    """The CPUs that the roles are bound to, where these are not all of the machine; else none."""
    bound = [role.controls.cpus for role in record.roles if role.pid is not None]
    if not all(bound):
        return frozenset()
    cpus = frozenset(cpu for own in bound for cpu in own or ())
    return cpus if len(cpus) < (record.machine.cpus or 1) else frozenset()


def foreign_at_least_ns(record: TrialRecord, cpus: Set[int]) -> int | None:
    """CPU time that processes of usual priority outside the trial surely used on these CPUs: what
    they used in all, less all that the other CPUs did. ``None`` where that is not known, or where
    threads of the kernel may be among these processes: they were told apart if it is known which of
    the others had low priority."""
    machine = record.machine
    low = machine.foreign_low_priority_ns
    if machine.foreign_cpu_ns is None or low is None or not machine.busy_ns_by_cpu:
        return None
    each = machine.busy_ns_by_cpu.items()
    elsewhere = sum(busy for cpu, busy in each if int(cpu) not in cpus)
    return max(0, machine.foreign_cpu_ns - low - elsewhere)


def _counter(
    record: TrialRecord, cause: str, taken: Taken, limit: float, words: str
) -> Contamination | None:
    tick = record.machine.tick_ns or TICK_NS
    if taken.capacity_ns <= 0 or taken.taken_ns < TICKS_MIN * tick:
        return None
    share = taken.taken_ns / taken.capacity_ns
    if share <= limit:
        return None
    said = f"{words} {share * 100:.1f} % of {taken.of or WHOLE} (limit {limit * 100:.0f} %)"
    return Contamination(cause, share, limit, said, is_of_machine=not taken.of)


def _named(signs: list[Contamination], record: TrialRecord, capacity: int) -> list[Contamination]:
    """The signs; the first that processes outside the trial cause names those that used most."""
    place = next((i for i, sign in enumerate(signs) if sign.cause in BY_PROCESSES), None)
    if place is None:
        return signs
    sign = signs[place]
    processes, total = _those_of(sign, record.machine)
    least = min(_SEEN_MIN * capacity, _PART_MIN * total)
    processes = tuple(process for process in processes if process.cpu_ns >= least)
    if not processes:
        return signs
    # A process is read at other moments than the counters of the machine: by a little more than the
    # trial. It took no more than all took.
    used = [
        f"{process.whose} (pid {process.pid}, nice {process.nice}) "
        f"{min(process.cpu_ns, total) / capacity * 100:.0f} %"
        for process in processes
    ]
    rest = total - sum(process.cpu_ns for process in processes)
    if rest / capacity >= _REST_SHARE_MIN:
        used.append(f"others or short-lived ones {rest / capacity * 100:.0f} %")
    # Those of the processes are shares of the machine's CPU time.
    of = "" if sign.is_of_machine else "of the machine's CPU time "
    named = sign._replace(detail=f"{sign.detail}: {of}{', '.join(used)}")
    return [*signs[:place], named, *signs[place + 1 :]]


#: A process among those that :func:`_named` lists.
_OF_PROCESS = re.compile(
    r"[:,] (?:of the machine's CPU time )?([^(),]+) \(pid (\d+), nice (-?\d+)\) (\d+) %"
)


class Named(NamedTuple):
    """A process that the detail of a sign names: its program, its PID, its nice value, and its
    percentage of the CPU time of the machine."""

    program: str
    pid: int
    nice: int
    percent: int


def processes_named(detail: str) -> list[Named]:
    """The processes that the detail of a sign names. Another run of the laboratory has the name of
    its process."""
    found = _OF_PROCESS.findall(detail)
    return [
        Named(OURS if name == ANOTHER_RUN else name, int(pid), int(nice), int(percent))
        for name, pid, nice, percent in found
    ]


def programs_named(detail: str) -> list[tuple[str, int]]:
    """The programs that the detail of a sign names, each with its percentage of the CPU time of the
    machine. Another run of the laboratory has the name of its process."""
    return [(item.program, item.percent) for item in processes_named(detail)]


#: What a sign says that the hypervisor took, or processes outside the trial did: of those that it
#: names, the others have no name.
_BY_HYPERVISOR = re.compile(r"the hypervisor took ([\d.]+) %")
_BY_OTHERS = re.compile(r"outside the trial used ([\d.]+) %")
_BY_UNNAMED = re.compile(r"others or short-lived ones (\d+) %")
#: The signs that processes cause, by what their details say, in the order in which they tell most.
_SAID = {
    "foreign_cpu": re.compile(r"processes (of usual priority )?outside the trial used"),
    "low_priority": re.compile(r"processes of low priority outside the trial used"),
}


class Took(NamedTuple):
    """The sign of those that took most of the CPU time of a trial, and the percentage of it."""

    cause: str
    percent: float


def took_most(cause: str, detail: str) -> Took:
    """Whether the hypervisor or processes took most of the CPU time of a trial, by the ``detail``
    of its signs. The ``cause`` that was stored is the first sign of the whole machine, or the one
    that is furthest beyond its limit: the trial is redone by it. Other causes stay."""
    if cause not in (STEAL, *BY_PROCESSES):
        return Took(cause, 0.0)
    by_hypervisor = sum(map(float, _BY_HYPERVISOR.findall(detail)))
    named = sum(item.percent for item in processes_named(detail))
    by_processes = max(
        sum(map(float, _BY_OTHERS.findall(detail))),
        named + sum(map(float, _BY_UNNAMED.findall(detail))),
    )
    if by_processes > by_hypervisor and cause == STEAL:
        cause = next((it for it, said in _SAID.items() if said.search(detail)), "run_queue")
    elif by_hypervisor > by_processes:
        cause = STEAL
    return Took(cause, max(by_hypervisor, by_processes))


def _those_of(
    sign: Contamination, machine: MachineRecord
) -> tuple[tuple[ForeignProcess, ...], int]:
    """The processes that a sign may name, of the priority that it is about, and the CPU time that
    all of these took. Whoever makes threads wait is of any."""
    total, low = machine.foreign_cpu_ns or 0, machine.foreign_low_priority_ns or 0
    if sign.cause == "low_priority":
        return tuple(item for item in machine.foreign_processes if item.nice > 0), low
    if sign.cause == "foreign_cpu" and low:
        return tuple(item for item in machine.foreign_processes if item.nice <= 0), total - low
    return machine.foreign_processes, total


class _Wait(NamedTuple):
    """How long others made the workers of a lone role wait for a CPU although there was one for
    each, and the time of which that is a share."""

    workers: float
    cpus: int
    waited_ns: int
    time_ns: int
    of: str


def _wait(record: TrialRecord, workers: float | None) -> _Wait | None:
    """The wait, where it can be judged: for lone roles only, since a background role is meant to
    make others wait. Where a phase is measured it is that of the phase: while a JVM starts, its
    compilers take turns with its one worker.

    Threads that the scheduler puts on one CPU wait for each other, and those that block often wait
    a little at each wake-up, also on a machine of their own. Others cause no more waiting than the
    CPU time that they took, so no more is counted. It is a share of the time of the workers, or of
    the wall time where they mostly block: what is waited then moves little.
    """
    if len(record.roles) != 1:
        return None
    role = record.roles[0]
    active = workers if workers is not None else role.threads.peak
    cpus = _granted_cpus(role, record)
    if active is None or cpus is None or active > cpus:
        return None
    measured = [phase for phase in role.phases if phase.name == MEASURE_PHASE]
    usages = [phase.usage for phase in measured] or [role.usage]
    waits = [usage.run_queue_ns for usage in usages]
    runs = [usage.cpu_ns for usage in usages]
    if None in waits or None in runs:
        return None
    waited = sum(filter(None, waits))
    wall = sum(phase.wall_ns for phase in measured) if measured else record.wall_ns
    of_threads = waited + sum(filter(None, runs))
    return _Wait(
        active,
        cpus,
        min(waited, _taken_by_others_ns(record, active, waited)),
        max(of_threads, wall),
        "the time for which its threads ran or were ready"
        if of_threads > wall
        else "the measured time"
        if measured
        else "the trial's time",
    )


def _may_be_delayed(record: TrialRecord) -> bool:
    """May a trial whose wait cannot be judged have been delayed by others beyond the limit? Whoever
    a thread waited for, and whoever waited for that thread, as at a lock: the threads of all roles
    delayed it by no more than the sum of their waits. It is a share of the measured phase, if one
    is, and else of the trial. Yes where a wait is not known.
    """
    waits: list[int | None] = []
    time_ns = record.wall_ns
    for role in record.roles:
        measured = [phase for phase in role.phases if phase.name == MEASURE_PHASE]
        waits += [phase.usage.run_queue_ns for phase in measured] or [role.usage.run_queue_ns]
        if measured:
            time_ns = min(time_ns, sum(phase.wall_ns for phase in measured))
    known = [wait for wait in waits if wait is not None]
    return len(known) < len(waits) or sum(known) > WAIT_SHARE_MAX * time_ns


def _taken_by_others_ns(record: TrialRecord, workers: float, unknown: int) -> int:
    """CPU time that processes outside the trial and the hypervisor took, or ``unknown``.

    Both are counted in ticks: a few of them may be those of the trial's own end. Records of trials
    that are shorter than a few ticks do not say what others took; of several workers it is then
    what the machine was busy for, less their own CPU time. One worker waits for no other, so all
    that it waited for is of others.
    """
    machine = record.machine
    foreign = machine.foreign_cpu_ns
    if foreign is None:
        own = record.roles[0].usage.cpu_ns
        if workers <= 1 or machine.busy_ns is None or own is None:
            return unknown
        foreign = max(0, machine.busy_ns - own)
    taken = foreign + (machine.steal_ns or 0)
    return taken if taken >= TICKS_MIN * (machine.tick_ns or TICK_NS) else 0


def _waiting(wait: _Wait) -> Contamination | None:
    """Run-queue wait although every worker had a CPU."""
    if not wait.time_ns or wait.waited_ns < WAIT_NS_MIN:
        return None
    share = wait.waited_ns / wait.time_ns
    if share <= WAIT_SHARE_MAX:
        return None
    return Contamination(
        "run_queue",
        share,
        WAIT_SHARE_MAX,
        f"{format_count(round(wait.workers), 'worker')} on {format_count(wait.cpus, 'CPU')} "
        f"{'was' if round(wait.workers) == 1 else 'were'} ready to run while others had the CPU, "
        f"for {share * 100:.0f} % of {wait.of} (limit {WAIT_SHARE_MAX * 100:.0f} %)",
    )


def _late(record: TrialRecord, target: str) -> Contamination | None:
    """The worst of the measured phases of the measured role."""
    role = record.role(target)
    lateness = [
        (phase.late_ns / phase.wall_ns, phase.late_ns)
        for phase in (role.phases if role else ())
        if phase.name == MEASURE_PHASE and phase.late_ns and phase.wall_ns
        if phase.late_ns >= LATE_NS_MIN
    ]
    share, late_ns = max(lateness, default=(0.0, 0))
    if share <= LATE_SHARE_MAX:
        return None
    return Contamination(
        LATE_READING,
        share,
        LATE_SHARE_MAX,
        f"the probes of {target} were read {late_ns / 1e6:.1f} ms after an edge of the measured "
        f"phase, {share * 100:.1f} % of it (limit {LATE_SHARE_MAX * 100:.0f} %)",
    )


def _late_start(roles: Sequence[RoleRecord], late_ns: int | None) -> Contamination | None:
    """Did the roles of a host start after the agreed time, while those of other hosts ran? What it
    is a part of is the time of its longest role that ended by itself, such as its load."""
    started = [role for role in roles if role.pid is not None]
    own = [role.wall_ns for role in started if role.ended_by == "itself"]
    wall_ns = max(own or [role.wall_ns for role in started], default=0)
    if not late_ns or late_ns < LATE_NS_MIN or not wall_ns:
        return None
    share = late_ns / wall_ns
    if share <= LATE_SHARE_MAX:
        return None
    return Contamination(
        "late_start",
        share,
        LATE_SHARE_MAX,
        f"its roles started {late_ns / 1e6:.1f} ms after the agreed time, {share * 100:.1f} % of "
        f"the time that they took (limit {LATE_SHARE_MAX * 100:.0f} %)",
    )


def _granted_cpus(role: RoleRecord, record: TrialRecord) -> int | None:
    return len(role.controls.cpus) if role.controls.cpus else record.machine.cpus
