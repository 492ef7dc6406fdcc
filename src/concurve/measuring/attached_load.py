"""The load as the only role that ends in a trial, beside a server that runs already: what
``concurve load --attach`` does."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any, NamedTuple

import msgspec

from concurve.definition.units import format_count
from concurve.engine import Engine
from concurve.engine.local import TRIAL_VARIABLE
from concurve.host.attaching import find
from concurve.host.orphans import signal_marked
from concurve.readings.contamination import judge as judge_machine
from concurve.readings.measures import MEASURE_PHASE
from concurve.secrets import KNOWN
from concurve.wire import decode_record
from concurve.wire.record import RoleRecord, ThreadRecord, Usage
from concurve.wire.spec import RoleSpec, TrialSpec
from concurve.words import IDLE_SERVER

#: Bytes of the load's output that are kept.
_OUTPUT_BYTES_MAX = 1 << 20

#: Threads that are named.
_THREADS_NAMED = 4

#: From this share of the CPUs on they are used up, as for ``concurve explain``.
_CPUS_USED_UP = 0.9

#: From this share of the time that its threads ran or waited for a CPU on, what an attached server
#: waited is so long that the high percentiles are those of the machine, and not of the server.
_WAITED_LEAST = 0.1

#: The fact with which the load says what is to be reported as its 99th percentile.
_P99_FACT = "p99"

#: It tells the load that no study reads its record: its exit code is the verdict on an objective.
_ATTACHED_VARIABLE = "CONCURVE_LOAD_ATTACHED"

#: Signals that end the load, as without an attached server.
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


class Loaded(NamedTuple):
    """What the load wrote, its exit code, the record of the server if the load measured, why the
    trial failed if the server ended before it, who disturbed the load, and the load's record."""

    stdout: str
    stderr: str
    code: int
    server: RoleRecord | None
    server_ended: str = ""
    disturbed: str = ""
    load: RoleRecord | None = None


def load_attached(
    engine: Engine, program: str, arguments: Sequence[str], attach: str, where: str
) -> Loaded:
    """Put the load on the server. ``where`` names what is attached in messages.

    Raises:
        HostError: there is no such process.
        StudyError: the text names no process.
    """
    server = RoleSpec(name="server", end="serve", attach=find(attach, where))
    env = {**KNOWN.password_of(arguments), _ATTACHED_VARIABLE: "1"}
    load = RoleSpec(name="load", argv=(program, *arguments), env=env)
    trial = f"load-{os.getpid()}"
    spec = TrialSpec(trial=trial, roles=(server, load), output_bytes_max=_OUTPUT_BYTES_MAX)
    with _signals_passed_on(trial):
        record = decode_record(engine.run(spec))
    served, loaded = record.roles
    failed = record.outcome.role == served.name
    return Loaded(
        loaded.stdout.text(),
        loaded.stderr.text(),
        _code(loaded),
        served if loaded.phases and not failed else None,
        record.outcome.message or "it ended" if failed else "",
        next((sign.detail for sign in judge_machine(record, target="load")), ""),
        loaded,
    )


def _code(loaded: RoleRecord) -> int:
    """The exit code of the load, as a shell gives it."""
    if loaded.exit is None:
        return 1
    if loaded.exit.code is not None:
        return loaded.exit.code
    return 128 + (loaded.exit.signal or 0)


@contextmanager
def _signals_passed_on(trial: str) -> Iterator[None]:
    """Let the load end at the signals that we get: it writes the figures so far, and the trial ends
    with it. Before it is there, they end the command."""

    def pass_on(number: int, _frame: FrameType | None) -> None:
        if not signal_marked(TRIAL_VARIABLE, trial, signal.Signals(number)):
            raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in _ENDING}
    heeded = [number for number in _ENDING if before[number] is not signal.SIG_IGN]
    try:
        for number in heeded:
            signal.signal(number, pass_on)
        yield
    finally:
        for number in heeded:
            signal.signal(number, before[number])


class BusyThread(msgspec.Struct, frozen=True, kw_only=True):
    """A thread of the server, and the CPUs that it used on average over the whole run."""

    name: str
    pid: int
    cpus: float


class AttachedServer(msgspec.Struct, frozen=True, kw_only=True):
    """What an attached server used while the load measured: the key ``attached`` of ``concurve load
    --json``.

    ``when``: in the measured time, or in the whole run where the load marked no such phase. Times
    of CPUs and run queues are those of all threads together. A figure that could not be read is
    null, with the reason in ``absent``. ``machine_busy``: who disturbed the load, or null.
    """

    pid: int | None
    when: str
    wall_ns: int
    cpu_ns: int | None
    run_queue_ns: int | None
    voluntary_switches: int | None
    involuntary_switches: int | None
    threads_peak: int | None
    threads: tuple[BusyThread, ...]
    absent: dict[str, str]
    machine_busy: str | None


def with_server(figures: str, served: RoleRecord, disturbed: str, cpus: int = 0) -> str | None:
    """The figures that the load wrote as JSON, with what the server used under the key
    ``attached``, and ``p99`` in doubt where the server or the machine makes it so; ``None`` if they
    are no JSON object: more was written than is kept."""
    try:
        known = msgspec.json.decode(figures, type=dict[str, Any])
    except msgspec.MsgspecError:
        return None
    known["attached"] = _attached_server(served, disturbed)
    doubt = _p99_doubt(served, disturbed, cpus)
    if doubt and (p99 := known.get(_P99_FACT)):
        known[_P99_FACT] = {**p99, "in_doubt": True, "text": doubt}
    return msgspec.json.format(msgspec.json.encode(known), indent=2).decode() + "\n"


def _attached_server(served: RoleRecord, disturbed: str) -> AttachedServer:
    when, usage, wall = _measured(served)
    return AttachedServer(
        pid=served.pid,
        when=when,
        wall_ns=wall,
        cpu_ns=usage.cpu_ns,
        run_queue_ns=usage.run_queue_ns,
        voluntary_switches=usage.voluntary_switches,
        involuntary_switches=usage.involuntary_switches,
        threads_peak=served.threads.peak,
        threads=tuple(
            BusyThread(name=thread.name, pid=thread.pid, cpus=cpus)
            for thread, cpus in _busy_threads(served)
        ),
        absent=usage.absent,
        machine_busy=disturbed or None,
    )


def _measured(served: RoleRecord) -> tuple[str, Usage, int]:
    """What the server used in the measured time, and its length in nanoseconds; of the whole run
    where no phase was marked."""
    phases = [phase for phase in served.phases if phase.name == MEASURE_PHASE]
    if phases:
        return "measured", phases[0].usage, phases[0].wall_ns
    return "whole", served.usage, served.wall_ns


def _busy_threads(served: RoleRecord) -> Iterator[tuple[ThreadRecord, float]]:
    """The first threads that ran, each with the CPUs that it used over the whole run."""
    life = max(served.wall_ns, 1)
    for thread in served.threads.listed[:_THREADS_NAMED]:
        if thread.usage.cpu_ns:
            yield thread, thread.usage.cpu_ns / life


def limit_line(served: RoleRecord, load: RoleRecord | None, cpus: int) -> str:
    """What limits rate and latencies where the figures of the server and of the load alone show it:
    all ``cpus`` of the machine are used up, or one thread of either is busy. Empty where they do
    not."""
    if load is None:
        return ""
    server, client = _cpus_used(served), _cpus_of_load(load)
    if server is None or client is None:
        return ""
    shares = f"server {server:.2f}, load {client:.2f}"
    if server + client >= _CPUS_USED_UP * cpus:
        machine = "the CPU of this machine is" if cpus == 1 else f"the {cpus} CPUs are"
        what = f"{machine} used up: {shares}"
    elif name := _busy_thread(served, server):
        what = f"one busy thread of the server ({name}); CPUs used: {shares}"
    elif name := _busy_thread(load, client):
        what = f"one busy thread of the load ({name}); CPUs used: {shares}"
    else:
        return ""
    return f"  limit             {what}"


def _cpus_used(role: RoleRecord) -> float | None:
    """The CPUs that a role used on average in the measured time; ``None`` where it was not read."""
    _, usage, wall = _measured(role)
    return None if usage.cpu_ns is None or wall == 0 else usage.cpu_ns / wall


def _cpus_of_load(load: RoleRecord) -> float | None:
    """The same of the load, by its own clocks, from which it tells its CPU time a transaction: the
    samples of the runner are taken at slightly other times. By those where it did not tell."""
    told = {line.indicator: line.value for line in load.indicators if line.worker is None}
    _, _, wall = _measured(load)
    cpu_ns = told.get("client_cpu_ns_per_operation")
    if cpu_ns is None or wall == 0:
        return _cpus_used(load)
    lost = told.get("transactions_lost", 0.0)
    answered = told.get("operations", 0.0) + told.get("errors", 0.0) - lost
    return cpu_ns * answered / wall


def _busy_thread(role: RoleRecord, used: float) -> str:
    """The name of the thread that was busy in the measured time, in which the role used so many
    CPUs; empty if none was. A thread has the same part of the CPU time there as in all of it."""
    if not role.usage.cpu_ns or not role.threads.listed:
        return ""
    first = role.threads.listed[0]
    share = (first.usage.cpu_ns or 0) / role.usage.cpu_ns
    return first.name if share * used >= _CPUS_USED_UP else ""


def _p99_doubt(served: RoleRecord, disturbed: str, cpus: int) -> str:
    """Why no high percentile of a load is one of its server, and what to do; empty if they are."""
    waited = _waited_share(served)
    if waited >= _WAITED_LEAST:
        share = f"{100 * waited:.0f} %"
        return (
            f"in doubt, report none: the server waited for a CPU for {share} of the time that it "
            f"ran or waited, so p99 and above are the machine's; {_apart(served, cpus)}"
        )
    return f"in doubt, report none: the machine was busy: {disturbed}" if disturbed else ""


def _waited_share(served: RoleRecord) -> float:
    """For which share of the measured time that the threads of the server ran or waited for a CPU
    they waited; 0 where it was not read."""
    _, usage, _ = _measured(served)
    if usage.run_queue_ns is None or usage.cpu_ns is None:
        return 0.0
    return usage.run_queue_ns / max(usage.run_queue_ns + usage.cpu_ns, 1)


def _apart(served: RoleRecord, cpus: int) -> str:
    """How to give a server and its load CPUs of their own, of so many."""
    if cpus < 2:
        return "start the load on another machine"
    first = "0" if cpus == 2 else f"0-{cpus - 2}"
    known = (served.pid, *(thread.pid for thread in served.threads.listed))
    pids = sorted({pid for pid in known if pid is not None})
    each = "; ".join(f"taskset -acp {first} {pid}" for pid in pids[:_THREADS_NAMED])
    more = " (and its other processes)" if len(pids) > _THREADS_NAMED else ""
    return (
        f"give them CPUs of their own: the server by {each}{more}, the load by "
        f"taskset -c {cpus - 1} concurve load …"
    )


def _p99_line(served: RoleRecord, load: RoleRecord | None, disturbed: str, cpus: int) -> str:
    """Which 99th percentile of an open loop to report; empty of a closed one."""
    told = None if load is None else load.facts.get(_P99_FACT)
    if not told:
        return ""
    return f"  p99               {_p99_doubt(served, disturbed, cpus) or told['text']}"


def server_lines(
    served: RoleRecord, load: RoleRecord | None = None, cpus: int = 0, disturbed: str = ""
) -> Iterator[str]:
    """What an attached server used while the load measured, as text, and what limits it beside that
    load on a machine with so many CPUs, where these figures show it. ``disturbed``: who disturbed
    the load."""
    when, usage, wall = _measured(served)
    seconds = wall / 1e9
    yield f"server: process {served.pid}, in the {when} time of {seconds:.2f} s"
    if usage.cpu_ns is None or wall == 0:
        yield f"  CPU time          not read: {usage.absent.get('cpu_ns', 'no time')}"
    else:
        used = f"{usage.cpu_ns / 1e9:.3f} s: {usage.cpu_ns / wall:.2f} CPUs on average"
        yield f"  CPU time          {used}"
        if not usage.cpu_ns:
            yield f"  {IDLE_SERVER}"
    if usage.run_queue_ns is not None:
        yield f"  waited for a CPU  {usage.run_queue_ns / 1e9:.3f} s, all threads together"
    if p99 := _p99_line(served, load, disturbed, cpus):
        yield p99
    if limit := limit_line(served, load, cpus):
        yield limit
    yield from _switches(usage)
    threads = served.threads
    if threads.peak is not None:
        yield f"  threads           {format_count(threads.peak, 'thread')} seen at once"
    several = len({thread.pid for thread in threads.listed}) > 1
    named = list(_busy_threads(served))
    for thread, share in named:
        name = f"{thread.name:<16}" + (f"pid {thread.pid:<9}" if several else "")
        yield f"    {name}{share:.2f} CPUs over the whole run"
    more = (threads.peak or 0) - len(named)
    if len(named) == _THREADS_NAMED and more > 0:  # else no other one ran
        yield f"    and {more:,} more"


def _switches(usage: Usage) -> Iterator[str]:
    if usage.voluntary_switches is not None and usage.involuntary_switches is not None:
        yield (
            f"  context switches  {usage.voluntary_switches:,} to wait, "
            f"{usage.involuntary_switches:,} preempted"
        )
