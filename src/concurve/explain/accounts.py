"""Record → where the thread time of one trial went. Pure.

The time of the *active* threads, those that do the operations, is divided into CPU time, the
run queue, and the rest, which is blocked; samples say on what (``docs/method/explain.md``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from concurve.explain.capacity import Capacity, capacity_of, takes_turns
from concurve.explain.goroutines import (
    Goroutines,
    goroutines_of,
    idle_in_go,
    is_written_in_go,
)
from concurve.explain.hot import Hot, hot_of
from concurve.explain.impossible_waits import without_impossible_waits
from concurve.explain.stations import Serving, serving_of, throttled_ns
from concurve.explain.threads import (
    ACTIVE_SHARE,
    Dispatcher,
    active_threads,
    allowed_cpus,
    asleep_beside,
    compiler_queue_of,
    dispatcher_of,
    idle_threads,
    is_fed,
    is_python,
    of_parent,
    own_time,
    present,
    ready_beside_idle,
    sampled_queue,
    service_threads,
    stops_of,
    tree_time,
    workers_time,
)
from concurve.explain.waiting import (
    FutexWords,
    joiners,
    joining_share,
    readings_of,
    sites_without_idle,
    taking_locks,
    waits_of,
    word_of,
)
from concurve.readings.contamination import Taken, foreign, foreign_on_bound, judged, stolen
from concurve.readings.measures import MEASURE_PHASE
from concurve.readings.operations import Asked, Counted, count_operations
from concurve.readings.under_load import under_load_ns
from concurve.wire.record import (
    CpuQuota,
    PhaseRecord,
    RoleRecord,
    SitesRecord,
    ThreadRecord,
    TrialRecord,
    Usage,
)

#: Fewer readings than this say little.
READINGS_MIN = 30


class OtherRole(NamedTuple):
    """Another role of the trial: the CPUs that it used on average, the share of a CPU that its
    busiest thread used, the share of their samples in which those of its threads that work slept,
    and whether it gives the explained role its work."""

    name: str
    cpus: float
    nice: int | None
    busiest: float
    asleep: float = 0.0
    is_client: bool = False


class Account(NamedTuple):
    """Where the thread time of a trial went.

    ``counted`` says what ``operations`` counts (:class:`~concurve.readings.operations.Operations`).
    ``stolen`` is what the hypervisor took of the CPUs in use, ``foreign`` what processes outside
    the trial took of the machine, and ``foreign_on_bound`` what they surely took of the CPUs that
    the roles are bound to, where these are some of the machine's and it is known.
    ``thread_ns`` is the time of the active threads: ``cpu_ns``, ``run_queue_ns`` (``None`` where
    it was not read; then ``blocked_ns`` holds it) and ``blocked_ns``. ``readings`` are those of
    the active threads by kind, ``running`` included; empty without samples. ``dispatcher`` is a
    thread that hands out work to them, if one is found. ``system_ns`` is the CPU time in the
    kernel, and ``capacity`` what that of the workers went to; both of whole runs alone.
    ``quota`` is that of the control group, as the record has it, and ``throttled_ns`` the part of
    the measured time in which it held the role back, summed over CPUs. ``rss_bytes`` is the
    greatest resident memory of a process, ``faults`` are page faults without I/O, and ``started``
    threads that ever lived; of whole lives. ``khz`` is the clock frequency of busy CPUs,
    ``goroutines`` what those of a Go program did (``is_go``), whose threads waited for
    ``runtime_idle_ns`` for one to run, which is no part of ``thread_ns``, ``calls`` are readings
    by system call. ``cores`` is the number of cores that the CPUs belong to, where two share
    one. ``pinned``: a worker may not use all CPUs of its role. ``level`` is the number of workers
    that were asked for, where a factor counts them. ``sites``: where in the program threads that
    have work waited for locks. ``in_turns``: the workers never ran together. ``hot``: where they
    ran, of whole runs and of roles that serve. ``is_python``: its threads are of one process, which
    an interpreter of Python runs. ``is_jvm``: a JVM runs the threads; ``stops`` is how
    often the thread slept by which it stops all others, and ``compiler_queue_ns`` how long a thread
    that compiles waited for a CPU. ``is_fed``: another thread may wake them again and again.
    ``asleep``: active threads that sleep at a time, and are no workers. ``names`` are those of all
    threads, by their numbers. ``has_every_cpu``: the role was granted all CPUs of the machine.
    ``beside`` are threads that are not active, and still use a tenth of the CPU time of the busiest
    one, as those that compile in a JVM do.
    ``ready_idle`` is the share of their waits for a CPU in which another CPU had none of them to
    run, ``blocks`` how many the role read and wrote in its whole life; each ``None`` where it is
    not known. ``apart``: each active thread is a process of its own. ``tells_wake_ups``: samples
    tell who waits to be woken from inside. ``parents``: active threads of a process whose children
    are the workers. ``measured`` is the part of the trial in which what is explained was done;
    ``is_marked``: the program marked it as a phase.
    ``is_lifetime``: of a role that serves its whole life is known, and not the time of its load.
    ``may_share_cores``: the machine is a virtual
    one, which does not tell which of its CPUs share a core of the host.
    """

    operations: float
    counted: Counted
    wall_ns: float
    thread_ns: float
    cpu_ns: float
    run_queue_ns: float | None
    blocked_ns: float
    threads: int
    idle: int
    cpus: int | None
    switches: float
    readings: dict[str, int]
    word: FutexWords
    dispatcher: Dispatcher | None
    others: tuple[OtherRole, ...]
    stolen: Taken
    foreign: Taken
    machine_busy_ns: float
    nice: int | None
    missing: dict[str, str]
    serving: Serving | None = None
    system_ns: float | None = None
    quota: CpuQuota | None = None
    throttled_ns: float = 0.0
    rss_bytes: float | None = None
    faults: float | None = None
    started: float | None = None
    cores: int | None = None
    khz: float | None = None
    goroutines: Goroutines | None = None
    is_go: bool = False
    calls: tuple[tuple[str, int], ...] = ()
    capacity: Capacity | None = None
    pinned: bool = False
    level: float | None = None
    sites: SitesRecord | None = None
    in_turns: bool = False
    hot: Hot | None = None
    is_python: bool = False
    is_jvm: bool = False
    stops: float = 0.0
    compiler_queue_ns: float = 0.0
    is_fed: bool = False
    asleep: float = 0.0
    names: Mapping[int, str] = {}
    has_every_cpu: bool = True
    beside: int = 0
    ready_idle: float | None = None
    blocks: float | None = None
    apart: bool = False
    tells_wake_ups: bool = False
    parents: int = 0
    may_share_cores: bool = False
    foreign_on_bound: Taken | None = None
    measured: float = 1.0
    is_marked: bool = False
    is_lifetime: bool = False
    judged: tuple[Taken, Taken] = (Taken(0, 1), Taken(0, 1))
    runtime_idle_ns: float = 0.0

    @property
    def steal_ns(self) -> float:
        """CPU time that the hypervisor took in the measured part of the trial, at its rate."""
        return self.measured * self.stolen.taken_ns

    @property
    def foreign_ns(self) -> float:
        """The same of processes outside the trial, on any CPU."""
        return self.measured * self.foreign.taken_ns

    @property
    def machine_ns(self) -> float:
        """CPU time that the machine could give in that part."""
        return self.measured * self.foreign.capacity_ns


def account(
    record: TrialRecord,
    asked: Asked,
    work_level: float | None = None,
    cores: int | None = None,
    is_virtual: bool = False,
) -> Account | None:
    """Where the time went; ``None`` if the record has no such role, or it took no time.
    ``work_level`` is the level of the factor that counts as concurrency, ``cores`` the number of
    cores of the machine, and whether it ``is_virtual``."""
    roles = asked.roles
    role = record.role(roles.subject)
    if role is None:
        return None
    role = without_impossible_waits(role)
    phases = [phase for phase in role.phases if phase.name == MEASURE_PHASE and not phase.open]
    clients = [other.name for other in record.roles if roles.is_client(other.name)]
    loaded = under_load_ns(record, role, clients) if roles.serving and not phases else None
    whole = float(role.wall_ns if loaded is None else loaded)
    wall = float(sum(phase.wall_ns for phase in phases)) if phases else whole
    if wall <= 0:
        return None
    listed, bystanders = present(role, [phase.usage for phase in phases], wall)
    taking: frozenset[int] = frozenset()
    if not is_written_in_go(role):  # whose samples have the numbers of goroutines
        taking = taking_locks(role.sites)
    active = active_threads(listed, wall, role.pid, joining_share(role.sites), taking)
    missing: dict[str, str] = {}
    usages = [phase.usage for phase in phases] or [role.usage]
    time = workers_time(role, usages) if phases else None
    workers = active if time is None else listed  # including those that wait all the time
    time = (
        time
        or own_time(role, active, wall, bool(phases))
        or tree_time(role, usages, len(active), wall)
    )
    if time.cpu_ns is None:
        missing["cpu"] = _reason(role.usage, "cpu_ns")
    if time.run_queue_ns is None:
        missing["run_queue"] = _reason(role.usage, "run_queue_ns")
    for name in ("steal_ns", "foreign_cpu_ns"):
        if getattr(record.machine, name) is None:
            missing[name.removesuffix("_ns")] = _reason(record.machine, name)
    missing |= {name: role.absent[name] for name in ("runtime", "sites") if name in role.absent}
    waits = waits_of(role, phases[0].waits if len(phases) == 1 else role.waits, workers, missing)
    readings = readings_of(workers, waits)
    if time.run_queue_ns is None and sum(readings.values()) >= READINGS_MIN:
        missing["run_queue"] += "; it is estimated from samples"
        time = time._replace(run_queue_ns=sampled_queue(time, readings))
    spent = (time.cpu_ns or 0.0) + (time.run_queue_ns or 0.0)
    idle_ns, readings = idle_in_go(role, max(0.0, time.thread_ns - spent), wall, readings)
    time = time._replace(thread_ns=time.thread_ns - idle_ns)
    sites = _sites_of(role, active, serving=roles.serving)
    operations = count_operations(record, asked, work_level)
    beside = [other for other in record.roles if other.name != role.name]
    others = [_other(other, other.name in clients) for other in beside]
    machine = record.machine
    allowed = allowed_cpus(role)
    cpus = len(allowed) if allowed else machine.cpus
    taken = float((machine.steal_ns or 0) + (machine.foreign_cpu_ns or 0))
    is_whole = not phases and not roles.serving
    # Of what others took it is only known how much it was in the whole trial.
    measured = min(1.0, wall / record.wall_ns) if phases and record.wall_ns else 1.0
    hot = _hot_of(role, phases, operations.number, roles.serving)
    if hot is None:
        missing["hot"] = _no_hot(role, roles.serving)
    return Account(
        operations=operations.number,
        counted=operations.of,
        wall_ns=wall,
        thread_ns=max(time.thread_ns, spent),
        cpu_ns=time.cpu_ns or 0.0,
        run_queue_ns=time.run_queue_ns,
        blocked_ns=max(0.0, time.thread_ns - spent),
        threads=time.threads,
        idle=len(role.threads.listed) - len(workers),
        cpus=cpus,
        switches=float(sum(thread.usage.voluntary_switches or 0 for thread in workers)),
        readings=readings,
        word=word_of(waits),
        # Workers that report how long they had work do not wait for a dispatcher in that time.
        dispatcher=dispatcher_of(listed, bystanders, active, wall) if workers is active else None,
        others=tuple(others),
        stolen=stolen(record),
        foreign=foreign(record),
        machine_busy_ns=measured * (machine.busy_ns or 0),
        nice=role.controls.nice,
        missing=missing,
        serving=serving_of(record, role.name, clients) if roles.serving else None,
        system_ns=role.usage.system_ns if is_whole else None,
        quota=role.quota,
        throttled_ns=throttled_ns(role, wall),
        rss_bytes=role.usage.rss_bytes_max,
        faults=role.usage.minor_faults,
        started=role.threads.total,
        khz=machine.khz,
        goroutines=goroutines_of(role),
        is_go=is_written_in_go(role),
        calls=tuple(role.waits.calls.items()) if role.waits else (),
        # Of some of the machine's CPUs it is not known which of them share a core.
        cores=cores if cpus == machine.cpus else None,
        capacity=capacity_of(role, work_level, cpus, taken) if is_whole else None,
        pinned=any(thread.cpus not in (None, allowed) for thread in workers),
        level=work_level,
        sites=sites,
        in_turns=takes_turns(workers, wall),
        hot=hot,
        is_python=is_python(role) and len({thread.pid for thread in workers}) == 1,
        is_jvm=bool(service_threads(role.threads.listed)),
        stops=stops_of(role.threads.listed),
        compiler_queue_ns=compiler_queue_of(role.threads.listed),
        is_fed=is_fed(listed, active, wall, joiners(role.sites)),
        asleep=asleep_beside(active, wall),
        names={thread.tid: thread.name for thread in role.threads.listed},
        has_every_cpu=cpus == machine.cpus,
        beside=_beside(role, workers),
        ready_idle=ready_beside_idle(role, cpus),
        blocks=_blocks(role.usage),
        may_share_cores=is_virtual and cores in (None, machine.cpus),
        is_marked=bool(phases) and not roles.serving,
        is_lifetime=bool(roles.serving) and not phases and loaded is None,
        apart=len(workers) > 1 and len({it.pid or it.tid for it in workers}) == len(workers),
        tells_wake_ups=any(it.waits and it.waits.wake_up is not None for it in workers),
        parents=len(of_parent(workers, role.threads.listed)),
        foreign_on_bound=foreign_on_bound(record),
        measured=measured,
        judged=judged(record),
        runtime_idle_ns=idle_ns,
    )


def _sites_of(
    role: RoleRecord, active: Sequence[ThreadRecord], *, serving: bool
) -> SitesRecord | None:
    """Where threads waited, without those that had nothing to do."""
    if is_written_in_go(role):  # whose samples have the numbers of goroutines
        return role.sites
    idle = idle_threads(role.threads.listed, active, role.pid, serving)
    return sites_without_idle(role.sites, idle)


#: The samples of a server's whole life stand for its measured phase if so much of its CPU time is
#: in it: outside of it, it does the same, or nothing.
MEASURED_MIN = 0.5


def _hot_of(
    role: RoleRecord, phases: Sequence[PhaseRecord], operations: float, serving: bool
) -> Hot | None:
    """Where the threads ran, in whole runs, and in the measured phase of a role that serves."""
    if not phases:
        return hot_of(role, operations)
    used, whole = [phase.usage.cpu_ns for phase in phases], role.usage.cpu_ns
    if not serving or None in used or not whole:
        return None
    part = min(1.0, sum(ns or 0 for ns in used) / whole)
    return hot_of(role, operations, part) if part >= MEASURED_MIN else None


def _no_hot(role: RoleRecord, serving: bool) -> str:
    """Why no sample says where the threads ran in the time that is explained."""
    if role.hot is None:
        return role.absent.get("hot", "the record is older than samples of where threads run")
    if role.usage.user_ns is None:
        return "their CPU time in user mode was not read"
    if serving:
        return "the samples are of the server's whole life, most of whose CPU time was not measured"
    return "the samples are of the whole run, and the program marks the phase that is measured"


def _beside(role: RoleRecord, workers: Sequence[ThreadRecord]) -> int:
    """How many threads beside the workers use a tenth of the busiest one's CPU time."""
    busiest = max((thread.usage.cpu_ns or 0 for thread in role.threads.listed), default=0)
    active = {(thread.pid, thread.tid) for thread in workers}
    return sum(
        (thread.usage.cpu_ns or 0) >= ACTIVE_SHARE * busiest > 0
        for thread in role.threads.listed
        if (thread.pid, thread.tid) not in active
    )


def _blocks(usage: Usage) -> float | None:
    """Blocks that were read and written; ``None`` where one of both is not known."""
    if usage.block_inputs is None or usage.block_outputs is None:
        return None
    return float(usage.block_inputs + usage.block_outputs)


def _other(role: RoleRecord, is_client: bool) -> OtherRole:
    wall = max(role.wall_ns, 1)
    listed = role.threads.listed
    busiest = max((thread.usage.cpu_ns or 0 for thread in listed), default=0)
    # One that only waits for the time to be over, as wrk's first thread does, says nothing of it.
    working = [it for it in listed if (it.usage.cpu_ns or 0) >= ACTIVE_SHARE * busiest]
    seen = [it.waits for it in working if it.waits is not None]
    readings = sum(waits.readings for waits in seen)
    asleep = sum(waits.sleep for waits in seen) / readings if readings else 0.0
    cpus = (role.usage.cpu_ns or 0) / wall
    return OtherRole(role.name, cpus, role.controls.nice, busiest / wall, asleep, is_client)


def _reason(usage: Usage | msgspec.Struct, name: str) -> str:
    absent: dict[str, str] = getattr(usage, "absent", {})
    return absent.get(name, "the runner gave no reason")
