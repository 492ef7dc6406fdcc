"""``concurve load --attach``: the load as a role of a trial, beside a server that runs already."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from concurve.cli.streams import tell
from concurve.definition.units import format_count
from concurve.engine.local import LocalEngine
from concurve.errors import HostError, StudyError
from concurve.host.attaching import find
from concurve.readings.measures import MEASURE_PHASE
from concurve.wire import decode_record
from concurve.wire.record import RoleRecord, Usage
from concurve.wire.spec import RoleSpec, TrialSpec

_OPTION = "--attach"

#: Bytes of the load's output that are shown.
_OUTPUT_BYTES_MAX = 1 << 20

#: Threads that are named.
_THREADS_NAMED = 4


def take_attach(arguments: Sequence[str]) -> tuple[str | None, tuple[str, ...]]:
    """The value of ``--attach``, and the arguments without it.

    Raises:
        StudyError: no value, or two of them.
    """
    found: list[str] = []
    rest: list[str] = []
    given = iter(arguments)
    for argument in given:
        if argument == _OPTION:
            found.append(next(given, ""))
        elif argument.startswith(f"{_OPTION}="):
            found.append(argument.partition("=")[2])
        else:
            rest.append(argument)
    if len(found) > 1 or found == [""]:
        raise StudyError(f"{_OPTION} takes one process", f"{_OPTION} 4711, or unit:NAME")
    return (found[0] if found else None), tuple(rest)


def load_attached(program: str, arguments: Sequence[str], attach: str) -> int:
    """Put the load on the server, and tell what the attached process used; the exit code is the
    load's.

    Raises:
        HostError: there is no such process, or it ended meanwhile.
        StudyError: the text names no process.
    """
    server = RoleSpec(name="server", end="serve", attach=find(attach, _OPTION))
    load = RoleSpec(name="load", argv=(program, *arguments))
    spec = TrialSpec(trial="load", roles=(server, load), output_bytes_max=_OUTPUT_BYTES_MAX)
    record = decode_record(LocalEngine().run(spec))
    served, loaded = record.roles
    sys.stdout.write(loaded.stdout.text())
    sys.stderr.write(loaded.stderr.text())
    if record.outcome.role == served.name:
        raise HostError(
            f"{_OPTION} {attach}: {record.outcome.message}", "the process that runs now"
        )
    if loaded.phases:  # else the load failed before it measured
        for line in server_lines(served):
            tell(line)
    code = None if loaded.exit is None else loaded.exit.code
    return 1 if code is None else code


def server_lines(served: RoleRecord) -> Iterator[str]:
    """What an attached server used while the load measured, as text."""
    phases = [phase for phase in served.phases if phase.name == MEASURE_PHASE]
    usage, wall = (phases[0].usage, phases[0].wall_ns) if phases else (served.usage, served.wall_ns)
    when = "measured" if phases else "whole"
    seconds = wall / 1e9
    yield f"server: process {served.pid}, in the {when} time of {seconds:.2f} s"
    if usage.cpu_ns is None or wall == 0:
        yield f"  CPU time          not read: {usage.absent.get('cpu_ns', 'no time')}"
    else:
        used = f"{usage.cpu_ns / 1e9:.3f} s: {usage.cpu_ns / wall:.2f} CPUs on average"
        yield f"  CPU time          {used}"
    if usage.run_queue_ns is not None:
        yield f"  waited for a CPU  {usage.run_queue_ns / 1e9:.3f} s, all threads together"
    yield from _switches(usage)
    threads = served.threads
    if threads.peak is not None:
        yield f"  threads           {format_count(threads.peak, 'thread')} seen at once"
    life = max(served.wall_ns, 1)
    for thread in threads.listed[:_THREADS_NAMED]:
        if thread.usage.cpu_ns:
            yield f"    {thread.name:<16}{thread.usage.cpu_ns / life:.2f} CPUs over the whole run"


def _switches(usage: Usage) -> Iterator[str]:
    if usage.voluntary_switches is not None and usage.involuntary_switches is not None:
        yield (
            f"  context switches  {usage.voluntary_switches:,} to wait, "
            f"{usage.involuntary_switches:,} preempted"
        )
