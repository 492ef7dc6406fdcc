"""What comes back from the runner: the raw result of one trial.

A reading that could not be taken is ``None`` here, and ``absent`` of the same object gives the
reason under the same name. Times are integers in nanoseconds, memory in bytes.
"""

from __future__ import annotations

from typing import Any

import msgspec

from concurve.wire.spec import Controls, Policy


class _Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """Base of what comes back: keys of a newer runner are tolerated."""


class Usage(_Record, frozen=True):
    """Resources used by a tree, a phase or a thread."""

    cpu_ns: int | None = None
    user_ns: int | None = None
    system_ns: int | None = None
    run_queue_ns: int | None = None
    slices: int | None = None
    voluntary_switches: int | None = None
    involuntary_switches: int | None = None
    migrations: int | None = None
    minor_faults: int | None = None
    major_faults: int | None = None
    rss_bytes_max: int | None = None
    rss_bytes_tree_max: int | None = None
    block_inputs: int | None = None
    block_outputs: int | None = None
    absent: dict[str, str] = {}


class FutexWaits(_Record, frozen=True):
    """A futex word, and how often threads were seen waiting there.

    ``address`` is hexadecimal with ``0x``; ``pid`` says whose, in roles of several processes only;
    ``threads`` are the different ones that were seen there.
    """

    address: str
    readings: int
    threads: int
    pid: int | None = None


class Waits(_Record, frozen=True):
    """What threads were seen doing at the moments of samples.

    Counts are of readings, of one thread in one sample each: ``readings`` is the sum of
    ``running`` (on a CPU or runnable) and the kinds of waiting from ``futex`` to ``other``.
    ``disk`` holds uninterruptible waits outside system calls too, such as page faults.
    ``futexes`` are the words seen most, most first (at most 8, none for a single thread), of the
    ``futex_words`` that were seen.
    """

    readings: int = 0
    running: int = 0
    futex: int = 0
    disk: int = 0
    network: int = 0
    poll: int = 0
    pipe: int = 0
    sleep: int = 0
    child: int = 0
    other: int = 0
    futex_words: int = 0
    futexes: tuple[FutexWaits, ...] = ()


class Exit(_Record, frozen=True):
    """Exit code or the signal that ended a process; one of the two is set."""

    code: int | None = None
    signal: int | None = None


class GrantedControls(_Record, frozen=True):
    """What was asked for and what the kernel granted, read back from ``/proc``."""

    requested: Controls = Controls()
    cpus: tuple[int, ...] | None = None
    nice: int | None = None
    policy: Policy | None = None


class ThreadRecord(_Record, frozen=True):
    """One thread as last seen; ``source`` is ``exit`` (exact) or ``sample`` (lower bound).

    ``lived_ns`` is the time from its birth to its death.
    """

    tid: int
    pid: int
    name: str
    source: str
    usage: Usage = Usage()
    nice: int | None = None
    policy: Policy | None = None
    cpus: tuple[int, ...] | None = None
    lived_ns: int | None = None
    waits: Waits | None = None
    absent: dict[str, str] = {}


class ThreadsRecord(_Record, frozen=True):
    """The threads of a role's tree: how many, how many at once, and the listed ones."""

    total: int | None = None
    peak: int | None = None
    processes: int | None = None
    cpu_ns: int | None = None
    listed: tuple[ThreadRecord, ...] = ()
    absent: dict[str, str] = {}


class PhaseRecord(_Record, frozen=True):
    """A stretch of a role's life that its program marked on the report channel; ``marked_by`` names
    the role that did, if it was a client of this one."""

    name: str
    begin_ns: int
    wall_ns: int
    usage: Usage = Usage()
    late_ns: int | None = None
    threads_peak: int | None = None
    waits: Waits | None = None
    open: bool = False
    marked_by: str | None = None
    absent: dict[str, str] = {}


class IndicatorLine(_Record, frozen=True):
    """A figure that the program reported; ``worker`` is ``None`` for the whole program."""

    indicator: str
    value: float
    unit: str | None = None
    worker: str | None = None


class HistogramLine(_Record, frozen=True):
    """An HdrHistogram (V2, base64) that the program reported."""

    histogram: str
    unit: str
    encoded: str
    worker: str | None = None


class ReportError(_Record, frozen=True):
    """A line of the report channel that was not understood."""

    line: int
    message: str
    excerpt: str


class Output(_Record, frozen=True):
    """A bounded copy of an output stream."""

    bytes: int = 0
    head: str = ""
    tail: str = ""
    dropped: int = 0

    def text(self) -> str:
        """What was kept, with a mark where something was dropped."""
        if not self.tail:
            return self.head
        gap = f"\n… {self.dropped} bytes dropped …\n" if self.dropped else ""
        return self.head + gap + self.tail


class RoleRecord(_Record, frozen=True):
    """One role of the trial; ``stragglers_killed`` are processes that outlived the first one."""

    name: str
    released_ns: int = 0
    wall_ns: int = 0
    pid: int | None = None
    exit: Exit | None = None
    ended_by: str | None = None
    stragglers_killed: int = 0
    controls: GrantedControls = GrantedControls()
    usage: Usage = Usage()
    threads: ThreadsRecord = ThreadsRecord()
    waits: Waits | None = None
    phases: tuple[PhaseRecord, ...] = ()
    indicators: tuple[IndicatorLine, ...] = ()
    histograms: tuple[HistogramLine, ...] = ()
    facts: dict[str, Any] = {}
    report_errors: tuple[ReportError, ...] = ()
    stdout: Output = Output()
    stderr: Output = Output()
    absent: dict[str, str] = {}


class MachineRecord(_Record, frozen=True):
    """Differences over the trial for the whole machine, all CPUs together."""

    cpus: int | None = None
    busy_ns: int | None = None
    busy_ns_by_cpu: dict[str, int] = {}
    steal_ns: int | None = None
    foreign_cpu_ns: int | None = None
    tick_ns: int | None = None
    psi: dict[str, int] = {}
    absent: dict[str, str] = {}


class InstrumentRecord(_Record, frozen=True):
    """What measuring itself took and how fine it was."""

    samples: int = 0
    runner_cpu_ns: int = 0
    sampling_cpu_ns: int = 0
    sample_interval_ns: int | None = None
    clock_step_ns: int = 0
    sources: tuple[str, ...] = ()
    absent: dict[str, str] = {}


class Outcome(_Record, frozen=True):
    """How a trial ended; ``message`` says what failed and where."""

    kind: str
    role: str | None = None
    message: str | None = None


class TrialRecord(_Record, frozen=True):
    """The raw result of one trial."""

    format: int
    trial: str
    outcome: Outcome
    roles: tuple[RoleRecord, ...]
    runner: str = ""
    started_unix_ns: int = 0
    wall_ns: int = 0
    machine: MachineRecord = MachineRecord()
    instrument: InstrumentRecord = InstrumentRecord()

    def role(self, name: str) -> RoleRecord | None:
        """The role of that name, or ``None`` if the trial has none."""
        return next((role for role in self.roles if role.name == name), None)
