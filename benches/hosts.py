"""Trials over hosts: how far apart roles start, how well clocks are known, what the engine adds.

Two agents of this machine are hosts, connected by sockets; they share the monotonic clock, so the
true offset is 0. What is Ray's own is measured over network namespaces, where Ray is installed:
``--only ray`` (start, daemons, a program), ``tasks`` (simulations, and trials as tasks), ``redis``
(a Redis load beside the local engine), ``p99`` (the load of document 000 from two hosts beside
one), ``searches`` (for the rate that keeps an objective, by loads on two hosts beside one),
``studies`` (packaged studies with their load on another host; not part of ``make bench``).

With ``CONCURVE_TEST_HOSTS=FILE`` these are measured over the hosts of a file, which OpenSSH reaches
(:mod:`tests.helpers.clusters`).
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import hosts_studies
import msgspec
from measuring.estimates import (
    difference_of_medians,
    median,
    median_of_ratios,
    ratio_of_medians,
)
from measuring.figures import Bench, Bound, Figure, MissingToolError, unless_missing
from measuring.over_ray import Run, by, measuring, running, three_hosts
from measuring.running import busy_iterations, interleaved, target
from measuring.showing import exit_code, show
from tests.helpers import clusters
from tests.helpers.agents import Agents, inventory_of
from tests.helpers.clusters import Cluster
from tests.helpers.relay import Way, relayed

from concurve.attendants.servers import command as server_command
from concurve.definition.programs import program
from concurve.engine.local import LocalEngine, run_packed
from concurve.engine.tasks import Processes, Tasks
from concurve.errors import ConcurveError, RunError
from concurve.estimate import Estimate
from concurve.host import native
from concurve.host.machine import describe_machine
from concurve.host.processes import cpu_ns
from concurve.hosts.clocks import combined, estimate, measured
from concurve.hosts.connection import SocketConnection
from concurve.hosts.engine import HostsEngine
from concurve.planning.searches import together
from concurve.readings.copies import Copied, merged_figures
from concurve.wire import decode_record, encode_spec
from concurve.wire.record import RoleRecord, TrialRecord
from concurve.wire.spec import ReadyProbe, RoleSpec, TrialSpec

TWO = {"a": "127.0.0.1", "b": "127.0.0.2"}

SKEW_MS_MOST = 1.0
CLOCK_MS_MOST = 0.2
DELAY_MS, DELAY_SPREAD_MS = 5.0, 1.0
COVERED_MIN = 0.95
ADDED_MS_MOST = 150.0
ALIKE = Bound(low=0.98, high=1.02, parity=True)
IDLE_MB_MOST, IDLE_PERCENT_MOST, OURS_PERCENT_MOST = 250.0, 1.0, 0.5
UP_SECONDS_MOST = 15.0
SIMULATED_MIN = 1.75
SIMULATED_AT_ONCE, SIMULATED_SCALE, SIMULATED_ROUNDS = 16, "0.4", 15
TASK_MS_MOST, TASKS = 5.0, 50
STARTS = 100

CPU_MS = 300
"""The length of the program by which engines are compared."""

EXCHANGES = 16
"""Of an estimate with delays: each takes two of them."""

EQUAL = Way(DELAY_MS, DELAY_MS, DELAY_SPREAD_MS)
UNEQUAL = Way(2.0, 8.0, DELAY_SPREAD_MS)
"""A host to which the way is shorter than back: no exchange shows that."""

ROUNDS = 60
"""In which engines, or hosts, are compared in turns."""

OURS, ACTOR = "concurve.hosts.", "ray::HostActor"
"""What the command lines of our processes on a host have, agents and their keepers; and those of
the actor, a process of Ray's that passes messages on to the agent."""

MEASURED_MS = 2000
"""The length of the program during which our own CPU time is taken: as long as a trial of a study.
What a trial costs, whatever its length, is said beside it."""

MEASURED = 15
"""So many trials are taken for it."""

PORTS = itertools.count(20_000)
"""Of servers, another one in each trial: below those that the kernel gives to clients."""


def figures(quick: bool) -> Iterator[Figure]:
    """All parts but the studies, which take as long as all others together."""
    for name in PARTS:
        if name != "studies":
            yield from figures_of(name, 3 if quick else ROUNDS, quick)


def figures_of(name: str, rounds: int, quick: bool) -> Iterator[Figure]:
    """A part, or why it cannot be measured on the hosts of a file."""
    if (why := OF_THIS_MACHINE.get(name)) is not None and clusters.named_file() is not None:
        yield Figure(name, f"not over the hosts of {clusters.named_file()}", missing=why)
        return
    yield from PARTS[name](rounds, quick)


def sockets(rounds: int, quick: bool) -> Iterator[Figure]:
    """Starts and clocks, and the engine, with agents by sockets."""
    with agents() as found, found.connected() as engine:
        yield from starts(by(engine), tuple(TWO), "sockets", True, 5 if quick else STARTS)
        yield from engines(found, engine, rounds)
    for way in (EQUAL, UNEQUAL):
        ways = {"a": EQUAL, "b": way}
        with agents() as found, relayed(found.paths, ways) as connections:
            yield delayed(connections["b"], way, 5 if quick else 200)
        with (
            agents() as found,
            relayed(found.paths, ways) as connections,
            HostsEngine(found.inventory, connections) as engine,
        ):
            yield from delayed_starts(by(engine), ways, 5 if quick else STARTS)


def processes(rounds: int, quick: bool) -> Iterator[Figure]:
    """Simulations on this machine."""
    yield simulations("processes of this machine", Processes, 2 if quick else SIMULATED_ROUNDS)


@contextlib.contextmanager
def agents() -> Iterator[Agents]:
    """An agent for each host."""
    with tempfile.TemporaryDirectory() as folder:
        found = Agents(Path(folder), inventory_of(TWO))
        try:
            found.start()
            yield found
        finally:
            found.end()


# -- starts and clocks ------------------------------------------------------------------------


def starts(
    run: Run, hosts: tuple[str, ...], what: str, is_one_clock: bool, trials: int
) -> Iterator[Figure]:
    """How far apart roles start on two hosts at an agreed time, and how well their clocks are
    known. Without a clock that both share it is known no better than the offsets are."""
    apart, wrong, stated = list[float](), list[float](), list[float]()
    for number in range(trials):
        record = run(start_of(hosts, f"skew-{number}")).record
        apart.append(apart_ns(record, is_one_clock) / 1e6)
        wrong += [abs(host.clock_offset_ns or 0) / 1e6 for host in record.hosts]
        stated += [(host.clock_error_ns or 0) / 1e6 for host in record.hosts]
    how = f"two hosts, {trials} trials"
    known = how if is_one_clock else f"{how}; by clocks whose offsets are known to the stated error"
    yield Figure(
        f"skew of a start, p95, {what} (ms)", known,
        Estimate(value=quantile(apart, 0.95), n=trials, unit="ms"), Bound(high=SKEW_MS_MOST),
    )  # fmt: skip
    if is_one_clock:
        yield Figure(
            f"error of an offset, worst, {what} (ms)", how,
            Estimate(value=max(wrong), n=len(wrong), unit="ms"), Bound(high=CLOCK_MS_MOST),
        )  # fmt: skip
    yield Figure(
        f"its stated error, worst, {what} (ms)", how,
        Estimate(value=max(stated), n=len(stated), unit="ms"),
    )  # fmt: skip


def start_of(hosts: tuple[str, ...], trial: str) -> TrialSpec:
    """A trial that starts a role on each of two hosts."""
    roles = tuple(RoleSpec(name=f"load-{host}", argv=("true",), host=host) for host in hosts)
    return TrialSpec(trial=trial, roles=roles)


def apart_ns(record: TrialRecord, is_one_clock: bool) -> int:
    """How far apart the first two roles started. The offsets were taken off; where the hosts have
    one clock they are 0 in truth, so what was taken off comes back."""
    offsets = {host.name: host.clock_offset_ns or 0 for host in record.hosts}
    first, second = (
        role.released_ns + (offsets[role.host or ""] if is_one_clock else 0)
        for role in record.roles[:2]
    )
    return abs(first - second)


def said_of(way: Way) -> str:
    """A way in words."""
    there, back, spread = way
    if there == back:
        return f"each way delayed by {there:g} ± {spread:g} ms"
    return f"{there:g} ± {spread:g} ms there and {back:g} ± {spread:g} ms back"


def delayed(connection: SocketConnection, way: Way, estimates: int) -> Figure:
    """How often the stated error of an offset covers the truth where each way is delayed."""
    covered = 0
    for _ in range(estimates):
        exchanged = measured(connection.clock, time.monotonic_ns, EXCHANGES)
        found = combined((estimate([one]) for one in exchanged), time.monotonic_ns())
        covered += abs(found.ns) <= found.error_ns
    connection.close()
    return Figure(
        f"offsets within their stated error, of {estimates}",
        f"a relay: {said_of(way)}",
        Estimate(value=covered, n=estimates),
        Bound(low=COVERED_MIN * estimates, counted=True),
    )


def delayed_starts(run: Run, ways: Mapping[str, Way], trials: int) -> Iterator[Figure]:
    """How far apart roles start through a relay. Where the way to one host is unequal, that is
    known to the stated error alone, and so nothing is promised but that."""
    ran = [run(start_of(tuple(ways), f"delayed-{number}")).record for number in range(trials)]
    (first, second), is_equal = ways.values(), len(set(ways.values())) == 1
    how = f"two hosts, {trials} trials, a relay: {said_of(second)}"
    if not is_equal:
        how += f"; to the other host {said_of(first)}"
    what = "equal ways" if is_equal else "unequal ways"
    offsets = [host for record in ran for host in record.hosts]
    covered = sum(abs(it.clock_offset_ns or 0) <= (it.clock_error_ns or 0) for it in offsets)
    apart = [apart_ns(record, is_one_clock=True) for record in ran]
    yield Figure(
        f"skew of a start, p95, relay, {what} (ms)", how,
        Estimate(value=quantile([it / 1e6 for it in apart], 0.95), n=trials, unit="ms"),
        Bound(high=SKEW_MS_MOST) if is_equal else None,
    )  # fmt: skip
    yield Figure(
        f"offsets of trials within their error, of {len(offsets)}", how,
        Estimate(value=covered, n=len(offsets)),
        Bound(low=COVERED_MIN * len(offsets), counted=True),
    )  # fmt: skip
    said = [
        sum((host.clock_error_ns or 0) + (host.start_late_ns or 0) for host in record.hosts)
        for record in ran
    ]
    within = sum(own <= most for own, most in zip(apart, said, strict=True))
    yield Figure(
        f"starts as close as their records say, of {trials}", how,
        Estimate(value=within, n=trials), Bound(low=COVERED_MIN * trials, counted=True),
    )  # fmt: skip


def quantile(values: list[float], share: float) -> float:
    """The least value that at least this share of the values do not exceed."""
    return sorted(values)[max(0, -(-int(share * 1000) * len(values) // 1000) - 1)]


# -- engines ----------------------------------------------------------------------------------

Timed = Callable[[], Mapping[str, float]]


def timed(run: Run, role: RoleSpec) -> dict[str, float]:
    """The time of a program in a trial, and what the trial took beyond it, in ms."""
    ran = run(TrialSpec(trial=f"bench-{time.monotonic_ns()}", roles=(role,)))
    own = ran.record.roles[0].wall_ns / 1e9
    return {"program": own * 1e3, "beyond": (ran.seconds - own) * 1e3}


def busy(milliseconds: int = CPU_MS) -> RoleSpec:
    """A program of fixed work."""
    work = busy_iterations(milliseconds)
    argv = target("busy", "--iterations", str(work))
    return RoleSpec(name="target", argv=tuple(argv))


def own_cpu(
    run: Run, processes: Mapping[str, Sequence[int]], trials: int, host: str
) -> Iterator[Figure]:
    """The CPU time of processes of ours on the host that measures: those of the first name, and of
    all names together, as a share of a core while trials run, each from its start to its record;
    and what a trial costs."""
    role = msgspec.structs.replace(busy(MEASURED_MS), host=host)
    short = msgspec.structs.replace(busy(1), host=host)
    of_short, _ = cpu_while(run, short, trials, processes)
    used, passed_ns = cpu_while(run, role, trials, processes)
    how = f"{trials} trials of {MEASURED_MS} ms, each from its start to its record"
    names = list(processes)
    for count in range(1, len(names) + 1):
        what = " and ".join(names[:count])
        share = 100 * sum(used[name] for name in names[:count]) / passed_ns
        yield Figure(
            f"CPU time while measuring, {what} (% of a core)", how,
            Estimate(value=share, n=trials, unit="%"), Bound(high=OURS_PERCENT_MOST),
        )  # fmt: skip
    for name, used_ns in of_short.items():
        yield Figure(
            f"CPU time of a trial of 1 ms, {name} (ms)", f"{trials} trials",
            Estimate(value=used_ns / trials / 1e6, n=trials, unit="ms"),
        )  # fmt: skip


def cpu_while(
    run: Run, role: RoleSpec, trials: int, processes: Mapping[str, Sequence[int]]
) -> tuple[dict[str, int], int]:
    """The CPU time of named processes while trials of a role run one after the other, and how long
    those took, in ns."""

    def so_far() -> dict[str, int]:
        return {name: sum(map(cpu_ns, pids)) for name, pids in processes.items()}

    before, begin = so_far(), time.monotonic_ns()
    for _ in range(trials):
        timed(run, role)
    passed_ns, after = time.monotonic_ns() - begin, so_far()
    return {name: after[name] - before[name] for name in processes}, passed_ns


def engines(found: Agents, engine: HostsEngine, rounds: int) -> Iterator[Figure]:
    """A program on this machine by the local engine, twice, and by that of hosts."""
    role, local, over = busy(), by(LocalEngine()), by(engine)
    there = RoleSpec(name=role.name, argv=role.argv, host="b")
    sides: dict[str, Timed] = {
        "local": lambda: timed(local, role),
        "again": lambda: timed(local, role),
        "hosts": lambda: timed(over, there),
    }
    yield from compared("agents by sockets", "hosts", interleaved(rounds, sides), rounds)
    yield from own_cpu(over, {"an agent": [found.pid("b")]}, min(rounds, MEASURED), "b")


def compared(
    what: str, side: str, taken: Mapping[str, list[float]], rounds: int
) -> Iterator[Figure]:
    """An engine against the local one, and that against itself."""
    how = f"{rounds} interleaved rounds of {CPU_MS} ms of CPU time"
    local = taken["local program"]
    yield Figure("a program: local / local", how, ratio_of_medians(taken["again program"], local))
    yield Figure(
        f"a program: {what} / local", how, ratio_of_medians(taken[f"{side} program"], local), ALIKE
    )
    yield Figure(
        f"added time of a trial: {what} (ms)", how,
        difference_of_medians(taken[f"{side} beyond"], taken["local beyond"], 1.0, "ms"),
        Bound(high=ADDED_MS_MOST),
    )  # fmt: skip


# -- simulations ------------------------------------------------------------------------------


def simulations(what: str, tasks_of: Callable[[int], Tasks], rounds: int) -> Figure:
    """How many times as fast two workers simulate as one, with equal results."""
    program = str(native.binary("concurve-disk"))
    specs = [
        encode_spec(TrialSpec(trial=f"sim-{seed}", roles=(RoleSpec(name="target", argv=(
            program, "load", "--scheduler", "cfq", "--scale", SIMULATED_SCALE, "--seed", str(seed),
        )),)))
        for seed in range(SIMULATED_AT_ONCE)
    ]  # fmt: skip
    said = dict[int, list[object]]()

    def taken_by(workers: int) -> dict[str, float]:
        begin = time.perf_counter()
        records = map(decode_record, tasks_of(workers).map(run_packed, specs, 600.0))
        said[workers] = [record.roles[0].indicators for record in records]
        return {"s": time.perf_counter() - begin}

    taken_by(2)  # an engine starts its processes when they are first needed
    taken = interleaved(rounds, {"one": lambda: taken_by(1), "two": lambda: taken_by(2)})
    if said[1] != said[2]:
        raise SystemExit(f"{what}: simulations differ between one worker and two")
    return Figure(
        f"simulations: 2 workers / 1, {what}",
        f"{rounds} rounds of {SIMULATED_AT_ONCE} simulations, equal results",
        ratio_of_medians(taken["one s"], taken["two s"]), Bound(low=SIMULATED_MIN),
    )  # fmt: skip


def overhead(what: str, tasks: Tasks, rounds: int) -> Figure:
    """What a trial takes longer as a task than by itself, one after the other."""
    role = RoleSpec(name="target", argv=("true",))
    specs = [encode_spec(TrialSpec(trial=f"true-{n}", roles=(role,))) for n in range(TASKS)]

    def each(records: Iterable[bytes]) -> dict[str, float]:
        begin = time.perf_counter()
        count = sum(1 for _ in records)
        return {"ms": 1e3 * (time.perf_counter() - begin) / count}

    sides: dict[str, Timed] = {
        "task": lambda: each(tasks.map(run_packed, specs, 600.0)),
        "direct": lambda: each(map(run_packed, specs)),
    }
    sides["task"]()  # an engine starts its processes when they are first needed
    taken = interleaved(rounds, sides)
    return Figure(
        f"added to a trial as a task, {what} (ms)", f"{rounds} rounds of {TASKS} trials of `true`",
        difference_of_medians(taken["task ms"], taken["direct ms"], 1.0, "ms"),
        Bound(high=TASK_MS_MOST),
    )  # fmt: skip


# -- Ray --------------------------------------------------------------------------------------


class Some:
    """Tasks of which no more than so many are under way at once."""

    def __init__(self, tasks: Tasks | None, workers: int) -> None:
        assert tasks is not None
        self._tasks = tasks
        self._workers = workers

    def map(
        self, function: Callable[[Any], Any], items: Iterable[Any], seconds: float | None = None
    ) -> Iterator[Any]:
        """See :meth:`Tasks.map`: threads that each ask for one result after the other."""
        with ThreadPoolExecutor(self._workers) as threads:
            yield from threads.map(
                lambda item: next(iter(self._tasks.map(function, [item], seconds))), items
            )


def of_ray(rounds: int, quick: bool) -> Iterator[Figure]:
    """What Ray adds. Hosts that are namespaces share the CPUs of this machine, so any of them is as
    good as this process beside the local engine; of a file, only its own host is."""
    try:
        with three_hosts() as cluster:
            yield up_seconds(cluster)
            yield idle(cluster, 2.0 if quick else 30.0)
            with measuring(cluster) as there:
                yield from memory(cluster)
                yield from starts(
                    there.run, cluster.hosts[1:], "Ray", cluster.is_one_machine,
                    5 if quick else STARTS,
                )  # fmt: skip
                role, local = busy(), by(LocalEngine())
                beside = RoleSpec(name=role.name, argv=role.argv, host=cluster.beside)
                sides: dict[str, Timed] = {
                    "local": lambda: timed(local, role),
                    "again": lambda: timed(local, role),
                    "ray": lambda: timed(there.run, beside),
                }
                yield from compared("Ray", "ray", interleaved(rounds, sides), rounds)
                yield from own_cpu(
                    there.run,
                    {
                        "an agent with its keeper": cluster.pids(cluster.beside, [OURS]),
                        "its actor, a process of Ray's": cluster.pids(cluster.beside, [ACTOR]),
                    },
                    min(rounds, MEASURED), cluster.beside,
                )  # fmt: skip
    except MissingToolError as error:
        yield Figure("Ray over three hosts", "three hosts", missing=str(error))


def tasks_of_ray(rounds: int, quick: bool) -> Iterator[Figure]:
    """Simulations and trials as tasks of Ray."""
    count = 2 if quick else SIMULATED_ROUNDS
    try:
        with running() as cluster, measuring(cluster) as there:
            yield Figure(
                "simulations: 2 workers / 1, Ray",
                f"{count} rounds of {SIMULATED_AT_ONCE} simulations, equal results",
                there.estimate("simulated_there", count), Bound(low=SIMULATED_MIN),
            )  # fmt: skip
            yield Figure(
                "added to a trial as a task, Ray (ms)",
                f"{count} rounds of {TASKS} trials of `true`",
                there.estimate("overhead_there", count), Bound(high=TASK_MS_MOST),
            )  # fmt: skip
    except MissingToolError as error:
        yield Figure("tasks of Ray", "three hosts", missing=str(error))


def simulated_there(engine: HostsEngine, rounds: int) -> Any:
    """Two workers over one, with the tasks of Ray, as a laboratory on its head's host finds it."""
    figure = simulations("Ray", lambda workers: Some(engine.tasks, workers), rounds)
    return msgspec.to_builtins(figure.estimate)


def overhead_there(engine: HostsEngine, rounds: int) -> Any:
    """What a trial takes longer as a task of Ray."""
    return msgspec.to_builtins(overhead("Ray", Some(engine.tasks, 1), rounds).estimate)


def up_seconds(cluster: Cluster) -> Figure:
    """How soon three hosts are there."""
    return unless_missing(
        Figure("three hosts up (s)", f"concurve hosts up: {cluster.says}", None,
               Bound(high=UP_SECONDS_MOST)),
        lambda: Estimate(value=seconds_of(cluster.up), n=1, unit="s"),
    )  # fmt: skip


def seconds_of(what: Callable[[], None]) -> float:
    """How long something takes."""
    begin = time.perf_counter()
    what()
    return time.perf_counter() - begin


def idle(cluster: Cluster, seconds: float) -> Figure:
    """What a host that only takes part pays for Ray while nothing runs."""
    shares, host = list[float](), cluster.hosts[-1]
    for _ in range(3):
        before, begin = cluster.cpu_ns(host), time.perf_counter()
        time.sleep(seconds)
        used = cluster.cpu_ns(host) - before
        shares.append(used / 1e7 / (time.perf_counter() - begin))
    return Figure(
        "Ray's daemons, idle (% of a core)",
        f"a host that is not the head, 3 × {seconds:g} s", median(shares, "%"),
        Bound(high=IDLE_PERCENT_MOST),
    )  # fmt: skip


def memory(cluster: Cluster) -> Iterator[Figure]:
    """What a host that only takes part has of its memory in Ray's processes, the actor among them,
    and in ours."""
    found = cluster.memory(cluster.hosts[-1], OURS)
    count = "each page once" if found["is_exact"] else "pages of several processes several times"
    how = f"a host that is not the head, with the actor of a laboratory: {count}"
    for what, key, bound in (
        ("Ray's daemons and actor", "others", Bound(high=IDLE_MB_MOST)),
        ("an agent and its keeper, beside them", "ours", None),
    ):
        yield Figure(
            f"{what}, memory (MB)", how, Estimate(value=found[key] / 1e6, n=1, unit="MB"), bound
        )


# -- a load of Redis --------------------------------------------------------------------------


def redis(rounds: int, quick: bool) -> Iterator[Figure]:
    """A Redis load on one host, by Ray and by the local engine, which is on the same CPUs."""
    how = f"{rounds} interleaved rounds: redis-server and its load on one host"
    try:
        serve = redis_server()
        with running() as cluster, measuring(cluster) as there:
            local, seconds = by(LocalEngine()), 0.2 if quick else 1.0
            sides: dict[str, Timed] = {
                "local": lambda: rate(local, redis_roles(serve, seconds)),
                "again": lambda: rate(local, redis_roles(serve, seconds)),
                "ray": lambda: rate(there.run, redis_roles(serve, seconds, cluster.beside)),
            }
            taken = interleaved(rounds, sides)
        base = taken["local rate"]
        again, ray = (ratio_of_medians(taken[f"{side} rate"], base) for side in ("again", "ray"))
        yield Figure("requests to Redis a second: local / local", how, again)
        yield Figure("requests to Redis a second: Ray / local", how, ray, ALIKE)
        yield Figure(
            "added time of a trial of Redis: Ray (ms)", how,
            difference_of_medians(taken["ray beyond"], taken["local beyond"], 1.0, "ms"),
            Bound(high=ADDED_MS_MOST),
        )  # fmt: skip
    except MissingToolError as error:
        yield Figure("requests to Redis a second: Ray / local", how, missing=str(error))


def redis_server() -> tuple[str, ...]:
    """How its command line begins.

    Raises:
        MissingToolError: it is not installed.
    """
    try:
        return server_command("redis-server", "bench")
    except ConcurveError as error:
        raise MissingToolError(str(error)) from error


def redis_roles(
    serve: tuple[str, ...], seconds: float, host: str | None = None
) -> tuple[RoleSpec, ...]:
    """A server and a closed loop of 50 sessions on one host."""
    port = str(next(PORTS))
    load = str(native.binary("concurve-load"))
    return (
        RoleSpec(name="target", argv=(*serve, "--port", port), end="serve", ready="report",
                 host=host),
        RoleSpec(name="load", host=host, argv=(
            load, f"127.0.0.1:{port}", "--sessions", "50", "--warm-up", "0.2",
            "--duration", f"{seconds:g}", "--command", "SET k v",
        )),
    )  # fmt: skip


def rate(run: Run, roles: tuple[RoleSpec, ...]) -> dict[str, float]:
    """What a load does in a second, and what its trial takes beyond it, in ms."""
    ran = run(TrialSpec(trial=f"bench-{time.monotonic_ns()}", roles=roles))
    load = ran.record.roles[-1]
    operations = next(it.value for it in load.indicators if it.indicator == "operations")
    return {
        "rate": operations / measured_seconds([load]),
        "beyond": (ran.seconds - load.wall_ns / 1e9) * 1e3,
    }


def measured_seconds(loads: Iterable[RoleRecord]) -> float:
    """Of the measured phase of a load, the longest of its copies."""
    phases = (phase for load in loads for phase in load.phases if phase.name == "measure")
    return max(phase.wall_ns for phase in phases) / 1e9


# -- the load of document 000 -----------------------------------------------------------------

P99_SESSIONS = 25
"""Of each of two processes: the document has 50 in all."""

P99_SHARE = 0.2
"""So often locks are asked for, as a share of what these sessions reach in a closed loop. That one
keeps all CPUs busy, and its 99th percentile says how the kernel shares them out, also between the
sessions of hosts (autogroups). At this rate two CPUs are busy for a third of the time."""

P99_SECONDS = 2.0
"""Measured in a trial."""

P99_PASSWORD = {"CONCURVE_PASSWORD": "of-a-bench"}
"""The server is on a host of its own, so it listens beyond loopback."""


AUTOGROUP = Path("/proc/sys/kernel/sched_autogroup_enabled")

P99_ROUNDS_MOST = 300
"""So many rounds are taken at most, until the interval of the ratio is no wider than its margin:
some 40 min."""


def p99(rounds: int, quick: bool) -> Iterator[Figure]:
    """The load of document 000 from two hosts, beside one host with as many processes. Rounds are
    taken until their ratio is known to its margin; not until it is within that."""
    how = f"2 processes of {P99_SESSIONS} sessions, the server on a third host"
    what = "p99 of a lock, merged:"
    try:
        with running() as cluster, autogroups_off() as groups, measuring(cluster) as there:
            server, *others = cluster.hosts
            place, seconds = (server, cluster.address(server)), 0.2 if quick else P99_SECONDS

            def side(rate: float, *hosts: str) -> Timed:
                return lambda: latency(there.run, lock_roles(place, seconds, hosts, rate))

            one, two = (others[0], others[0]), others
            rate = P99_SHARE * sorted(side(0.0, *one)()["rate"] for _ in range(3))[1]
            sides = {"one": side(rate, *one), "again": side(rate, *one), "two": side(rate, *two)}

            def is_known(found: Mapping[str, list[float]]) -> bool:
                ratio = median_of_ratios(found["two p99"], found["one p99"])
                return ALIKE.is_narrow(ratio)

            most = rounds if quick else max(rounds, P99_ROUNDS_MOST)
            taken = interleaved(rounds, sides, most, is_known)
        count = len(taken["one p99"])
        how = f"{count} interleaved rounds (at most {most}): {how}"
        how += f"; open loop of {rate:,.0f} a second; autogroups {groups}"
        base = taken["one p99"]
        again, two_hosts = (median_of_ratios(taken[f"{it} p99"], base) for it in ("again", "two"))
        yield Figure(f"{what} one host / one host", how, again)
        yield Figure(f"{what} two hosts / one host", how, two_hosts, ALIKE)
        rates = (taken[f"{it} rate"] for it in ("two", "one"))
        yield Figure("locks a second: two hosts / one host", how, median_of_ratios(*rates))
        yield Figure(f"{what} one host (µs)", how, median([it / 1e3 for it in base], "µs"))
    except MissingToolError as error:
        yield Figure(f"{what} two hosts / one host", how, missing=str(error))


@contextlib.contextmanager
def autogroups_off() -> Iterator[str]:
    """Switch off that the kernel shares CPUs out between sessions, which hosts that are namespaces
    have in common and others do not, until the end; how it is meanwhile, in words. It is left as it
    is where only root may change it, and on the hosts of a file."""
    found = describe_machine().get("autogroup", "")
    is_changed = found == "1" and os.geteuid() == 0 and clusters.named_file() is None
    if is_changed:
        AUTOGROUP.write_text("0")
    try:
        how = {"0": "off", "1": "on"}.get(found, "unknown")
        yield "switched off meanwhile" if is_changed else how
    finally:
        if is_changed:
            AUTOGROUP.write_text(found)


def lock_roles(
    place: tuple[str, str], seconds: float, hosts: Sequence[str], rate: float
) -> tuple[RoleSpec, ...]:
    """A lock server on a host, at its address, and a process of its load on each of some hosts: at
    a rate of all of them, or in a closed loop if that is 0."""
    server, address = place[0], f"{place[1]}:{next(PORTS)}"
    pace = ("--rate", f"{rate / len(hosts):.0f}", "--arrivals", "poisson") if rate else ()
    loads = tuple(
        RoleSpec(name=f"load-{number}", host=host, env=P99_PASSWORD, argv=(
            str(native.binary("concurve-load")), address, "--processes",
            "--sessions", str(P99_SESSIONS), "--warm-up", "0.2", "--duration", f"{seconds:g}",
            "--command", "LOCK ENQUEUE {run}-{session}-{count} E",
            "--password-from", *P99_PASSWORD, *pace, "--seed", str(number),
        ))
        for number, host in enumerate(hosts, 1)
    )  # fmt: skip
    argv = (
        str(native.binary("concurve-server")), "--bind", place[1], "--port",
        address.rpartition(":")[2], "--io-threads", "4", "--execution", "worker",
        "--capacity", "4000000",
    )  # fmt: skip
    serving = RoleSpec(
        name="target", argv=argv, end="serve", ready="report", host=server, env=P99_PASSWORD
    )
    return (serving, *loads)


def latency(run: Run, roles: tuple[RoleSpec, ...]) -> dict[str, float]:
    """The 99th percentile of the merged histograms of a load, as of any study, and its rate."""
    record = run(TrialSpec(trial=f"bench-{time.monotonic_ns()}", roles=roles)).record
    table = program("load")
    assert table is not None
    copied = Copied("load", table.copies)
    own = {
        f"{role.name}.{line.indicator}": line.value
        for role in copied.of(record)
        for line in role.indicators
    }
    merged = merged_figures(record, [copied], own).values
    return {
        "p99": merged["load.latency_ns_p99"],
        "rate": merged["load.operations"] / measured_seconds(record.roles[1:]),
    }


# -- searches for a rate ----------------------------------------------------------------------

SEARCH_SECONDS, SEARCH_SESSIONS = 20, 16
"""Of a search, and of all of its loads together."""

SEARCH_OBJECTIVE = "p90=8ms"

_QUEUE = """
import socketserver, sys, threading, time

at_work = threading.Lock()

class Answers(socketserver.StreamRequestHandler):
    def handle(self):
        while line := self.rfile.readline():
            for _ in range(2 * int(line[1:])):
                self.rfile.readline()
            with at_work:
                time.sleep(0.001)
            self.wfile.write(b"+PONG\\r\\n")

class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True

Server((sys.argv[1], int(sys.argv[2])), Answers).serve_forever()
"""
"""A server with one worker that sleeps for a millisecond: one queue, and hardly any CPU time."""


def searches(rounds: int, quick: bool) -> Iterator[Figure]:
    """The rate that a search finds by two loads on two hosts, beside one load with as many
    sessions."""
    rounds = 2 if quick else SEARCH_ROUNDS
    how = f"{rounds} interleaved rounds: {SEARCH_SESSIONS} sessions, {SEARCH_OBJECTIVE}, 1 server"
    try:
        with running() as cluster, measuring(cluster) as there:
            server, *others = cluster.hosts
            place, seconds = (
                (server, cluster.address(server)),
                SEARCH_SECONDS / 2 if quick else SEARCH_SECONDS,
            )

            def side(*hosts: str) -> Timed:
                return lambda: sought(there.run, search_roles(cluster, place, seconds, hosts))

            sides = {
                "one": side(others[0]),
                "again": side(others[0]),
                "two": side(*others[:2]),
            }
            taken = interleaved(rounds, sides)
        base = taken["one rate"]
        for name, words in (
            ("again", "one load / one load"),
            ("two", "two loads on two hosts / one load"),
        ):
            ratio = median_of_ratios(taken[f"{name} rate"], base)
            yield Figure(f"rate that keeps {SEARCH_OBJECTIVE}: {words}", how, ratio)
        yield Figure("rate that keeps it: one load (1/s)", how, median(base, "1/s"))
    except MissingToolError as error:
        yield Figure(f"rate that keeps {SEARCH_OBJECTIVE}: two loads", how, missing=str(error))


SEARCH_ROUNDS = 15
"""Of searches, each with three sides: some 15 min."""


def search_roles(
    cluster: Cluster, place: tuple[str, str], seconds: float, hosts: Sequence[str]
) -> tuple[RoleSpec, ...]:
    """The server on a host, and a load on each of some hosts with its part of the sessions."""
    server, port = place[0], next(PORTS)
    serving = RoleSpec(
        name="target", argv=(sys.executable, "-c", _QUEUE, place[1], str(port)), end="serve",
        host=server, ready_probe=ReadyProbe(tcp=f"{place[1]}:{port}"),
    )  # fmt: skip
    argv = (
        str(native.binary("concurve-load")), f"redis://{place[1]}:{port}", "--workload", "ping",
        "--slo", SEARCH_OBJECTIVE, "--duration", f"{seconds:g}s",
        "--sessions", str(SEARCH_SESSIONS // len(hosts)),
    )  # fmt: skip
    loads = tuple(
        RoleSpec(name=f"load-{number}", host=host, argv=argv)
        for number, host in enumerate(hosts, 1)
    )
    addresses = {host: cluster.address(host) for host in hosts}
    return (serving, *together(loads, addresses, next(PORTS), "a token of this bench"))


def sought(run: Run, roles: tuple[RoleSpec, ...]) -> dict[str, float]:
    """The rate that a search found. One without an answer is taken again, whichever side it is."""
    said = []
    for _ in range(5):
        record = run(TrialSpec(trial=f"bench-{time.monotonic_ns()}", roles=roles)).record
        leads = record.roles[1]
        said.append(str(leads.facts.get("slo", {}).get("verdict", record.outcome.message)))
        for line in leads.indicators:
            if line.indicator == "slo_rate_per_second":
                return {"rate": line.value}
    raise RunError(f"five searches had no answer; the last: {said[-1]}", "a quiet machine")


# -- the command line -------------------------------------------------------------------------

OF_THIS_MACHINE = {
    "sockets": "its agents are processes of one machine, whose clock says the truth",
    "simulations": "its workers are processes of this machine; those of Ray are in `tasks`",
}
"""Parts that are of no use with a file of hosts, and why."""

PARTS: dict[str, Callable[[int, bool], Iterator[Figure]]] = {
    "sockets": sockets,
    "simulations": processes,
    "ray": of_ray,
    "tasks": tasks_of_ray,
    "redis": redis,
    "p99": p99,
    "searches": searches,
    "studies": hosts_studies.figures,
}


@contextlib.contextmanager
def own_lock() -> Iterator[None]:
    """Let the agent of this machine have its measurement lock, if it is a host of a file: the
    laboratory asks each host for its own."""
    with tempfile.TemporaryDirectory() as folder:
        if clusters.named_file() is not None:
            os.environ["CONCURVE_LOCK"] = str(Path(folder) / "lock")
        yield


def main() -> int:
    """All parts, or some of them by name; one that fails does not keep the others from running."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smoke run; judges no bound")
    parser.add_argument("--only", action="append", choices=PARTS, help="repeatable")
    parser.add_argument(
        "--rounds", type=int, metavar="N",
        help=f"compared in turns (default: {ROUNDS}; of studies {hosts_studies.ROUNDS})",
    )  # fmt: skip
    asked = parser.parse_args()
    failed: list[str] = []

    def subject(name: str) -> Bench:
        usual = hosts_studies.ROUNDS if name == "studies" else ROUNDS

        def measure(quick: bool) -> Iterator[Figure]:
            try:
                rounds = asked.rounds or (min(3, usual) if quick else usual)
                yield from figures_of(name, rounds, quick)
            except (Exception, SystemExit) as error:  # what it started is ended by then
                failed.append(name)
                yield Figure(name, "failed", missing=" ".join(str(error).split())[:2000])

        return measure

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with own_lock():
        found = show(map(subject, asked.only or PARTS), asked.quick)
    missed = [figure.name for figure in found if figure.held is False and not asked.quick]
    print(f"\nfailed: {', '.join(failed) or 'none'}; missed: {'; '.join(missed) or 'none'}")
    return int(bool(failed)) or exit_code(found, asked.quick)


if __name__ == "__main__":
    sys.exit(main())
