"""Says early in a run that its trials are disturbed, and by whom: a run on a busy machine goes to
its end before its answer says that nothing can be recommended.

It is told once, and again only where that changes much.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from concurve import words
from concurve.findings.again import ATTACH_IT, with_pids
from concurve.readings.connections import may_be_connected
from concurve.terms import ANOTHER_RUN, HYPERVISOR, OTHERS
from concurve.wire.record import MachineRecord, TrialRecord

#: So many disturbed trials are no accident, if they are this share of those so far.
DISTURBED_MIN = 4
DISTURBED_SHARE_MIN = 0.5
#: It is told again where so many times as much is taken as was told, or by somebody else who takes
#: so many times as much as those who were told.
GROWN = 2.0
#: Fewer CPUs than this are nobody's.
SEEN_MIN = 0.05
#: So many processes of a program are named, and none that took less than this share of it.
_NAMED_MAX = 3
_PART_MIN = 0.1


class Disturbances:
    """The disturbed trials of this session of a run, and who took CPU time in them.
    ``may_load_a_stranger``: the command may load a server that is no role, and that disturbs
    nobody; ``names_a_server``: it says so. ``quieting`` gives the commands that give processes of
    this machine the lowest priority, by their PIDs with their nice values; none for those that have
    ended."""

    def __init__(
        self,
        may_load_a_stranger: bool = False,
        names_a_server: bool = False,
        quieting: Callable[[Mapping[int, int]], list[str]] | None = None,
    ) -> None:
        self._quieting = quieting
        self._may_load_a_stranger = may_load_a_stranger
        self._names_a_server = names_a_server
        self._may_be_connected = False
        self._done = 0
        self._disturbed = 0
        self._cpu_ns: Counter[str] = Counter()
        # Of this machine, by their programs.
        self._processes: dict[str, Counter[tuple[int, int]]] = {}
        self._wall_ns = 0
        self._since = 0
        # Whoever was told, and how many CPUs all of them took then.
        self._told: dict[str, float] = {}

    def take(self, record: TrialRecord, *, is_disturbed: bool) -> None:
        """Count a trial."""
        self._done += 1
        if not is_disturbed:
            return
        self._disturbed += 1
        self._may_be_connected = self._may_be_connected or may_be_connected(
            record, names_a_server=self._names_a_server
        )
        self._since += 1
        self._wall_ns += record.wall_ns
        for who, cpu_ns in _takers(record):
            self._cpu_ns[who] += cpu_ns
        for process in () if record.hosts else record.machine.foreign_processes:
            of_program = self._processes.setdefault(process.whose, Counter())
            of_program[process.pid, process.nice] += process.cpu_ns

    def said(self) -> str:
        """What is to be told now: ``12 of 14 trials disturbed so far: firefox (PID 71) took
        0.6 CPUs; to lower its priority: renice -n 19 -p 71; Ctrl-C keeps what is measured``. Empty
        where nothing is, or it was told."""
        is_much = self._disturbed >= DISTURBED_SHARE_MIN * self._done
        if self._since < DISTURBED_MIN or not is_much:
            return ""
        taken = {who: cpu_ns / max(1, self._wall_ns) for who, cpu_ns in self._cpu_ns.items()}
        processes = self._processes
        self._since, self._wall_ns, self._processes = 0, 0, {}
        self._cpu_ns.clear()
        who, cpus = max(taken.items(), key=lambda item: item[1])
        everybody = sum(taken.values())
        if self._told and not self._is_news(who, taken):
            return ""
        self._told[who] = everybody
        of = f"{self._disturbed} of {words.count(self._done, 'trial')} disturbed so far"
        is_program = cpus >= SEEN_MIN and who not in (HYPERVISOR, OTHERS, ANOTHER_RUN)
        most = _most(processes.get(who, Counter())) if is_program else {}
        commands = self._quieting(most) if self._quieting and most else []
        asked = f"; to lower its priority: {'; '.join(commands)}" if commands else ""
        if self._may_load_a_stranger and self._may_be_connected and is_program:
            asked = f"; if {who} is the server that this command loads: {ATTACH_IT} in a new run"
        by = _by(with_pids(who, list(most)), cpus, everybody)
        return f"{of}{by}{asked}; Ctrl-C keeps what is measured"

    def _is_news(self, who: str, taken: dict[str, float]) -> bool:
        """Is it twice as much as was ever told, or somebody else beside whom those that were told
        are little?"""
        if sum(taken.values()) >= GROWN * max(*self._told.values(), SEEN_MIN):
            return True
        known = max(taken.get(told, 0.0) for told in self._told)
        return who not in self._told and taken[who] >= GROWN * max(known, SEEN_MIN)


def _most(processes: Counter[tuple[int, int]]) -> dict[int, int]:
    """The PIDs of those that took most of the CPU time of a program, with their nice values."""
    least = _PART_MIN * processes.total()
    return {
        pid: nice for (pid, nice), cpu_ns in processes.most_common(_NAMED_MAX) if cpu_ns >= least
    }


def _by(who: str, cpus: float, everybody: float) -> str:
    """``: firefox took 0.6 CPUs``, ``: others took 1.6 CPUs, firefox 0.6 of them``, ``: the
    hypervisor took 0.6 CPUs, others 0.2``. Empty where nobody is seen to have taken any: threads
    waited for CPUs all the same."""
    if cpus < SEEN_MIN:
        return ""
    alone = f": {who} took {cpus:.1f} CPUs"
    if everybody < cpus + SEEN_MIN or f"{everybody:.1f}" == f"{cpus:.1f}":
        return alone
    if who.startswith(HYPERVISOR):  # it is none of the processes
        return f"{alone}, others {everybody - cpus:.1f}"
    return f": others took {everybody:.1f} CPUs, {who} {cpus:.1f} of them"


def _takers(record: TrialRecord) -> Iterator[tuple[str, int]]:
    """Who took CPU time in a trial, on all of its hosts."""
    if not record.hosts:
        yield from _of_machine(record.machine)
    for host in record.hosts:
        for who, cpu_ns in _of_machine(host.machine):
            yield f"{who} on {host.name}", cpu_ns


def _of_machine(machine: MachineRecord) -> Iterator[tuple[str, int]]:
    yield HYPERVISOR, machine.steal_ns or 0
    for process in machine.foreign_processes:
        yield process.whose, process.cpu_ns
    named = sum(process.cpu_ns for process in machine.foreign_processes)
    yield OTHERS, max(0, (machine.foreign_cpu_ns or 0) - named)
