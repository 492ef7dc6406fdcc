"""What comes back from the runner: the raw result of one trial.

A reading that could not be taken is ``None`` here, and ``absent`` of the same object gives the
reason under the same name. Times are integers in nanoseconds, memory in bytes.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec

from concurve import words
from concurve.fields import ALWAYS, Count, Positive, about
from concurve.terms import ANOTHER_RUN, OURS
from concurve.wire.report import HistogramLine, IndicatorLine
from concurve.wire.spec import FORMAT, Controls, Policy

#: The fact by which the program of a remote role says at which address the server is: the accounts
#: of its role are its own, not the server's.
REMOTE_FACT = "remote"

#: The fact whose value is a list of texts: what a program warns of.
WARNINGS_FACT = "warnings"

#: How that program's errors begin: what could not be read are the server's counters.
COUNTERS_OF = "counters of "

Absent = Annotated[
    dict[str, str], about("Names of readings that could not be taken, each with its reason.")
]


class _Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """Base of what comes back: keys of a newer runner are tolerated."""


class Usage(_Record, frozen=True):
    """Resources used by a tree, a phase or a thread. Times in ns, memory in bytes."""

    cpu_ns: Annotated[Count | None, about("User plus system.")] = None
    user_ns: Annotated[Count | None, about("User mode.")] = None
    system_ns: Annotated[Count | None, about("Kernel mode.")] = None
    run_queue_ns: Annotated[Count | None, about("Runnable but waiting for a CPU.")] = None
    slices: Annotated[Count | None, about("Times a thread was put on a CPU.")] = None
    voluntary_switches: Annotated[Count | None, about("Gave the CPU up to wait.")] = None
    involuntary_switches: Annotated[Count | None, about("Was preempted.")] = None
    migrations: Annotated[Count | None, about("Moves to another CPU.")] = None
    cache_misses: Annotated[
        Count | None,
        about("Misses of the CPU's caches; only where the trial asks for them."),
    ] = None
    minor_faults: Annotated[Count | None, about("Page faults without I/O.")] = None
    major_faults: Annotated[Count | None, about("Page faults with I/O.")] = None
    rss_bytes_max: Annotated[
        Count | None, about("Greatest resident memory of the largest single process.")
    ] = None
    rss_bytes_tree_max: Annotated[
        Count | None,
        about("Greatest sum over the tree that a sample saw; only for trees of several processes."),
    ] = None
    block_inputs: Annotated[Count | None, about("Blocks read.")] = None
    block_outputs: Annotated[Count | None, about("Blocks written.")] = None
    absent: Absent = {}


class FutexWaits(_Record, frozen=True):
    """A futex word, and how often threads were seen waiting there."""

    address: Annotated[str, about("Hexadecimal, with 0x.", pattern="^0x[0-9a-f]+$")]
    readings: Annotated[Count, about("Readings of threads that waited there.")]
    threads: Annotated[Count, about("Different threads that were seen there.")]
    pid: Annotated[
        Positive | None, about("Whose address it is; only in roles of several processes.")
    ] = None
    values: Annotated[
        Count | None,
        about(
            "Different values above 2 that they expected there, up to 32, where they wait as at a "
            "mutex (which has 2) or at a barrier (one a round)."
        ),
    ] = None


class Waits(_Record, frozen=True):
    """What threads were seen doing at the moments of samples. Counts are of readings, of one thread
    in one sample each: ``readings`` is the sum of ``running`` and the kinds of waiting after it."""

    readings: Annotated[Count, about("All of them."), ALWAYS] = 0
    running: Annotated[Count, about("On a CPU, or runnable."), ALWAYS] = 0
    alone: Annotated[
        Count | None,
        about("Of these: no other thread of the role was running, and another one waited."),
    ] = None
    futex: Annotated[
        Count, about("In a futex call that waits: a lock, a condition, a join."), ALWAYS
    ] = 0
    disk: Annotated[
        Count,
        about(
            "Synchronising or accessing a file or a block device, or in an uninterruptible "
            "wait outside system calls, such as a page fault (that is not known to wait for the "
            "address space)."
        ),
        ALWAYS,
    ] = 0
    network: Annotated[
        Count,
        about("Sending, receiving, accepting, connecting; reading or writing a socket."),
        ALWAYS,
    ] = 0
    poll: Annotated[
        Count, about("Waiting for one of several descriptors, or for io_uring."), ALWAYS
    ] = 0
    pipe: Annotated[
        Count, about("Reading or writing a pipe, a FIFO, a terminal or an eventfd."), ALWAYS
    ] = 0
    sleep: Annotated[Count, about("Sleeping."), ALWAYS] = 0
    child: Annotated[Count, about("Waiting for a child process."), ALWAYS] = 0
    file_lock: Annotated[Count | None, about("Waiting for a lock on a file.")] = None
    memory: Annotated[
        Count | None,
        about(
            "Changing the address space (mmap, munmap, mprotect, brk), or in a page fault that "
            "waits for that."
        ),
    ] = None
    wake_up: Annotated[
        Count | None,
        about(
            "In an epoll instance that watches no socket, but an eventfd or a signalfd, by which "
            "another thread or process wakes it."
        ),
    ] = None
    other: Annotated[Count, about("Waiting for something else."), ALWAYS] = 0
    calls: Annotated[
        dict[str, Count],
        about(
            "Readings by the name of the system call, of calls that change the address space, "
            "files' names and locks, and tasks, or write to files, and of io_uring_enter; of a "
            "whole role."
        ),
    ] = {}
    futex_words: Annotated[
        Count, about("Different futex words that threads were seen waiting at."), ALWAYS
    ] = 0
    futexes: Annotated[
        tuple[FutexWaits, ...],
        about("The words that were seen most, most first; none for a single thread.", maxItems=8),
    ] = ()


class ThreadReadings(_Record, frozen=True):
    """A thread, and in how many readings it was seen so."""

    tid: Positive
    readings: Annotated[Count, ALWAYS]


class SiteRecord(_Record, frozen=True):
    """A place in a program where threads waited for a lock."""

    primitive: Annotated[
        str,
        about(
            "What is waited at; join: the end of another thread; once: what another thread does "
            "once for all.",
            enum=[
                "mutex",
                "reader_writer_lock",
                "condition",
                "semaphore",
                "barrier",
                "join",
                "once",
                "file_lock",
                "other",
            ],
        ),
    ]
    call: Annotated[
        str, about("The system call; of a goroutine, what the runtime says that it waits for.")
    ]
    module: Annotated[str, about("The program or library that it is in.")]
    offset: Annotated[
        str, about("The address of the call in it, hexadecimal.", pattern="^0x[0-9a-f]+$")
    ]
    found: Annotated[
        str,
        about(
            "cfi: by call frame information alone, or as the runtime says it. scan_exact: behind a "
            "call of the very function on the stack. scan_weak: behind another call.",
            enum=["cfi", "scan_exact", "scan_weak"],
        ),
    ]
    readings: Annotated[Count, ALWAYS]
    threads: Annotated[Count, about("Different threads that were seen there."), ALWAYS]
    operation: Annotated[str | None, about("The function of a library that was called there.")] = (
        None
    )
    function: Annotated[
        str | None, about("What called it; absent if the program has no symbols.")
    ] = None
    file: Annotated[str | None, about("Source of the call; absent without debug information.")] = (
        None
    )
    line: Count | None = None
    lock: Annotated[
        str | None,
        about(
            "The variable that is the lock, or that it is a part of; GIL: the interpreter lock of "
            "Python."
        ),
    ] = None
    waiters: Annotated[
        tuple[ThreadReadings, ...],
        about(
            "The threads that were seen there, most readings first; of a Go program, goroutines by "
            "their own numbers.",
            maxItems=16,
        ),
    ] = ()
    held: Annotated[
        Count | None, about("In how many of the readings the lock said who had it.")
    ] = None
    holders: Annotated[
        tuple[ThreadReadings, ...],
        about("The threads that had it, most readings first.", maxItems=4),
    ] = ()
    callers: Annotated[
        tuple[str, ...], about("The functions that called this one, the nearest first.")
    ] = ()
    runtime: Annotated[
        str | None,
        about("What said it of itself, for a language that is interpreted: cpython."),
    ] = None


class SitesRecord(_Record, frozen=True):
    """Where in a program its threads were seen waiting for locks: by the tops of their stacks,
    which were copied without stopping them. Counts are of readings, of one thread at one moment
    each."""

    readings: Annotated[Count, about("Those whose place in the program is known."), ALWAYS] = 0
    unknown: Annotated[
        Count, about("Those whose stack led to no function of the program."), ALWAYS
    ] = 0
    torn: Annotated[
        Count, about("Those that were dropped, because the thread ran meanwhile."), ALWAYS
    ] = 0
    skipped: Annotated[
        Count,
        about(
            "Those that were left out: for what sampling may cost, or because the program changed "
            "its address space, and might have had to wait."
        ),
        ALWAYS,
    ] = 0
    listed: Annotated[
        tuple[SiteRecord, ...],
        about("Most readings first; they may be fewer than readings.", maxItems=16),
    ] = ()


class RecordedOwner(_Record, frozen=True):
    """A thread that had a lock before it was given to one that waited."""

    name: str
    events: Annotated[Count, about("The waits that its giving back ended."), ALWAYS]


class RecordedSite(_Record, frozen=True):
    """A place in a program where threads waited, by a recorder in its runtime."""

    kind: Annotated[
        str,
        about(
            "monitor: to enter one. park: parked, as by a lock of a library. wait: to be notified.",
            enum=["monitor", "park", "wait"],
        ),
    ]
    primitive: Annotated[
        str,
        about(
            "What is waited at.",
            enum=["mutex", "reader_writer_lock", "semaphore", "condition", "other"],
        ),
    ]
    function: Annotated[str, about("Class and method, the innermost outside of the runtime's.")]
    events: Annotated[Count, about("Waits."), ALWAYS]
    blocked_ns: Annotated[Count, about("What they took together."), ALWAYS]
    line: Count | None = None
    lock: Annotated[
        str | None, about("The class of the monitor, or of the object that was parked on.")
    ] = None
    owners: Annotated[
        tuple[RecordedOwner, ...],
        about("The threads that had it before, most waits first.", maxItems=4),
    ] = ()


class RecordedWaits(_Record, frozen=True, omit_defaults=False):
    """Waits of a program for locks, one by one, by a recorder in its runtime that an experiment
    switched on. The laboratory reads its recording when the trial has ended."""

    source: Annotated[str, about(enum=["jfr"]), ALWAYS] = "jfr"
    recordings: Annotated[Count, about("One for each process that wrote one."), ALWAYS] = 1
    threshold_ns: Annotated[Count, about("Shorter waits are not recorded."), ALWAYS] = 0
    lock_events: Annotated[
        Count, about("Waits at mutexes, reader-writer locks and semaphores."), ALWAYS
    ] = 0
    lock_blocked_ns: Annotated[Count, about("What these took together."), ALWAYS] = 0
    elsewhere_events: Annotated[
        Count,
        about("Those of them with no function of the program among the recorded ones."),
        ALWAYS,
    ] = 0
    elsewhere_blocked_ns: Annotated[Count, about("What these took together."), ALWAYS] = 0
    is_cut: Annotated[bool, about("The recording is longer than what was read of it."), ALWAYS] = (
        False
    )
    listed: Annotated[
        tuple[RecordedSite, ...],
        about("The longest time first, waits for no lock last.", maxItems=16),
        ALWAYS,
    ] = ()


class HotFile(_Record, frozen=True):
    """A program or a library that threads ran in."""

    name: Annotated[str, about("Its name without folders.")]
    samples: Annotated[Count, ALWAYS]


class HotFunction(_Record, frozen=True):
    """A function that threads ran in."""

    file: Annotated[str, about("The name of its file, without folders.")]
    samples: Annotated[Count, ALWAYS]
    first: Annotated[Count, about("Those of the first threads of processes."), ALWAYS] = 0
    function: Annotated[
        str | None,
        about(
            "In a runtime of OpenMP, the function of it that was called. Absent if the file has no "
            "symbols there, or the samples are too few to read it."
        ),
    ] = None
    waiting: Annotated[
        Count,
        about(
            "Those in loops in which a thread does nothing but wait for others, by their code; 0 "
            "too where that was not looked at."
        ),
    ] = 0


class HotThread(_Record, frozen=True):
    """A thread with its samples in files."""

    tid: int
    samples: Annotated[Count, ALWAYS]
    waiting: Annotated[
        Count, about("Those in loops in which a thread does nothing but wait for others."), ALWAYS
    ] = 0


class HotRecord(_Record, frozen=True):
    """Where in its programs the threads of a role ran in user mode: by samples that a clock of the
    kernel takes, one for each 5 ms of CPU time of a thread."""

    samples: Annotated[Count, ALWAYS] = 0
    unknown: Annotated[
        Count,
        about("Those of them in no known file, such as code that was compiled at run time."),
        ALWAYS,
    ] = 0
    lost: Annotated[
        Count, about("Records that the kernel dropped because they came too fast."), ALWAYS
    ] = 0
    halved: Annotated[
        Count,
        about(
            "The samples are of one part in 2 to the power of it of the time: where threads switch "
            "often, the clock of the samples would slow them."
        ),
    ] = 0
    files: Annotated[tuple[HotFile, ...], about("Most samples first.", maxItems=8)] = ()
    listed: Annotated[
        tuple[HotFunction, ...],
        about("Most samples first; they may be fewer than samples.", maxItems=16),
    ] = ()
    threads: Annotated[
        tuple[HotThread, ...],
        about("Most samples first; only where some are in loops that wait.", maxItems=64),
    ] = ()


class ThreadTimeline(_Record, frozen=True):
    """What a thread did in the intervals from the first to the last one in which samples saw it.
    What is neither ``running`` nor ``runnable`` was blocked."""

    tid: Positive
    first: Annotated[Count, about("The first of these intervals, from 0 on."), ALWAYS] = 0
    running: Annotated[
        tuple[Count, ...], about("On a CPU, in percent of each interval."), ALWAYS
    ] = ()
    runnable: Annotated[
        tuple[Count, ...], about("Waiting for a CPU, in percent of each interval."), ALWAYS
    ] = ()
    waits: Annotated[
        str,
        about(
            "A letter for each interval: what most samples saw it wait for. f futex, d disk, n "
            "network, p poll, | pipe, s sleep, h child, l file_lock, m memory, w wake_up, o other, "
            "- none.",
            pattern="^[-fdnp|shlmwo]*$",
        ),
        ALWAYS,
    ] = ""
    sites: Annotated[
        tuple[int, ...],
        about(
            "Where most samples of an interval saw it wait for a lock, by the place in "
            "sites.listed; -1 where none did, or elsewhere. Absent if all are."
        ),
    ] = ()


class ThreadTimelines(_Record, frozen=True):
    """What the threads of a role did in each of some intervals, the first of which begins with the
    trial, and each other one where the one before it ends."""

    ends_ns: Annotated[
        tuple[Count, ...],
        about("The end of each interval, relative to the first release."),
        ALWAYS,
    ] = ()
    threads: Annotated[Count, about("How many threads samples saw."), ALWAYS] = 0
    listed: Annotated[
        tuple[ThreadTimeline, ...],
        about(
            "Those that ran or waited for a CPU longest, in the order in which they were seen "
            "first.",
            maxItems=16,
        ),
        ALWAYS,
    ] = ()


class CpuQuota(_Record, frozen=True):
    """The quota of CPU time of the control group that held a role back longest, and what it
    did."""

    cpus: Annotated[float, about("The CPUs' worth of time that it allows.", minimum=0), ALWAYS] = (
        0.0
    )
    periods: Annotated[Count, about("Periods in which the group had something to run."), ALWAYS] = 0
    throttled: Annotated[Count, about("Periods in which it used up its quota."), ALWAYS] = 0
    throttled_ns: Annotated[
        Count, about("How long the group was held back, summed over CPUs."), ALWAYS
    ] = 0


class Runtime(_Record, frozen=True):
    """Samples of the goroutines of a Go program. Counts are of goroutines in all readings; one
    reading is of all processes of the role. Of a role that serves, readings are those while one
    runs that ends by itself."""

    name: Annotated[str, about(enum=["go"]), ALWAYS] = "go"
    readings: Annotated[Count, ALWAYS] = 0
    collecting: Annotated[
        Count, about("Readings in which the collector marked, in half of the processes."), ALWAYS
    ] = 0
    running: Annotated[Count, about("Goroutines that ran or could run."), ALWAYS] = 0
    in_calls: Annotated[Count, about("Goroutines in system calls."), ALWAYS] = 0
    waiting: Annotated[
        dict[str, Count],
        about("Goroutines that waited, by the runtime's words for the reason."),
    ] = {}
    at_once: Annotated[
        Positive | None,
        about("The most that may run at once in a process (GOMAXPROCS); absent if not known."),
    ] = None


class Exit(_Record, frozen=True):
    """Exit code or the signal that ended a process; one of the two is set."""

    KEYWORDS: ClassVar = {
        "propertyNames": {"enum": ["code", "signal"]},
        "minProperties": 1,
        "maxProperties": 1,
    }

    code: int | None = None
    signal: int | None = None


class GrantedControls(_Record, frozen=True):
    """What was asked for and what the kernel granted, read back from ``/proc``."""

    requested: Annotated[Controls, ALWAYS] = Controls()
    cpus: Annotated[tuple[Count, ...] | None, about("CPUs allowed.")] = None
    nice: int | None = None
    policy: Policy | None = None


class ThreadRecord(_Record, frozen=True):
    """One thread, as last seen."""

    tid: Positive
    pid: Positive
    name: str
    source: Annotated[
        str,
        about(
            "exit: the kernel's account at its exit. sample: its last sample, a lower bound.",
            enum=["exit", "sample"],
        ),
    ]
    usage: Annotated[Usage, ALWAYS] = Usage()
    nice: int | None = None
    policy: Policy | None = None
    cpus: Annotated[tuple[Count, ...] | None, about("CPUs allowed.")] = None
    lived_ns: Annotated[Count | None, about("From its birth to its death.")] = None
    waits: Waits | None = None
    absent: Absent = {}


class ThreadsRecord(_Record, frozen=True):
    """The threads of a role's tree, the first threads of its processes included."""

    total: Annotated[Count | None, about("Threads that ever lived in the tree.")] = None
    peak: Annotated[
        Count | None,
        about("Greatest number alive at once; a lower bound if absent has a reason for it."),
    ] = None
    processes: Annotated[Count | None, about("Processes that ever lived in the tree.")] = None
    cpu_ns: Annotated[
        Count | None, about("CPU time of all threads together, by their own accounts.")
    ] = None
    listed: Annotated[tuple[ThreadRecord, ...], about("Those with most CPU time first.")] = ()
    absent: Absent = {}


class PhaseRecord(_Record, frozen=True):
    """A stretch of a role's life that its program marked on the report channel, or a client of
    it."""

    name: str
    begin_ns: Annotated[Count, about("Relative to the trial's first release.")]
    wall_ns: Annotated[Count, about("Its length.")]
    usage: Annotated[Usage, ALWAYS] = Usage()
    late_ns: Annotated[
        Count | None,
        about(
            "How much later than its edges the probes were read, at worst: usage is off by "
            "what was used meanwhile."
        ),
    ] = None
    threads_peak: Annotated[
        Count | None,
        about(
            "Greatest number of threads alive at once; absent where threads.peak is a lower bound."
        ),
    ] = None
    waits: Waits | None = None
    open: Annotated[bool, about("The program ended inside the phase.")] = False
    marked_by: Annotated[
        str | None,
        about(
            "The role that marked it, if not this one: a role that serves was used by that "
            "one meanwhile."
        ),
    ] = None
    absent: Absent = {}


class ReportError(_Record, frozen=True):
    """A line of the report channel that was not understood."""

    line: Annotated[Count, about("From 1.")]
    message: str
    excerpt: str


class Output(_Record, frozen=True):
    """A bounded copy of an output stream."""

    bytes: Annotated[Count, about("Written in all."), ALWAYS] = 0
    head: Annotated[str, about("The first part."), ALWAYS] = ""
    tail: Annotated[str, about("The last part, empty if head holds everything."), ALWAYS] = ""
    dropped: Annotated[Count, about("Bytes between them that were not kept."), ALWAYS] = 0

    def text(self) -> str:
        """What was kept, with a mark where something was dropped."""
        if not self.tail:
            return self.head
        gap = f"\n… {self.dropped} bytes dropped …\n" if self.dropped else ""
        return self.head + gap + self.tail


class RoleRecord(_Record, frozen=True):
    """One role of the trial."""

    name: str
    released_ns: Annotated[
        Count, about("Go-ahead to exec, relative to the trial's first release."), ALWAYS
    ] = 0
    wall_ns: Annotated[
        Count, about("From release to the exit of the role's first process."), ALWAYS
    ] = 0
    pid: Annotated[Positive | None, about("Absent if the program was never executed.")] = None
    exit: Annotated[Exit | None, about("How its first process ended.")] = None
    ended_by: Annotated[
        str | None,
        about(
            "itself: the program exited. stopped: a serving role was stopped because the "
            "others were done. killed: by the runner.",
            enum=["itself", "stopped", "killed"],
        ),
    ] = None
    stragglers_killed: Annotated[
        Count, about("Processes of the tree that outlived the first one and were killed then.")
    ] = 0
    quota: Annotated[
        CpuQuota | None, about("The quota of CPU time that its control groups have, if one.")
    ] = None
    runtime: Annotated[
        Runtime | None,
        about("What the runtime of its program says of its own threads of execution."),
    ] = None
    sites: Annotated[
        SitesRecord | None,
        about("Where in its program its threads were seen waiting for locks."),
    ] = None
    recorded: Annotated[
        RecordedWaits | None,
        about(
            "Where its threads waited, by a recorder in its runtime; only in trials of an "
            "experiment that switches one on."
        ),
    ] = None
    hot: Annotated[
        HotRecord | None,
        about("Where in its programs its threads ran, by samples in user mode."),
    ] = None
    thread_timelines: Annotated[
        ThreadTimelines | None,
        about("What its threads did in the course of the trial; only where the trial asks for it."),
    ] = None
    controls: Annotated[
        GrantedControls, about("What was asked for and what the kernel granted."), ALWAYS
    ] = GrantedControls()
    usage: Annotated[Usage, ALWAYS] = Usage()
    threads: Annotated[ThreadsRecord, ALWAYS] = ThreadsRecord()
    waits: Waits | None = None
    phases: Annotated[tuple[PhaseRecord, ...], about("Stretches that the program marked.")] = ()
    indicators: Annotated[tuple[IndicatorLine, ...], about("As reported.")] = ()
    histograms: Annotated[tuple[HistogramLine, ...], about("As reported.")] = ()
    facts: Annotated[dict[str, Any], about("As reported.")] = {}
    host: Annotated[str | None, about("The host on which it ran; absent: the only one.")] = None
    report_errors: Annotated[
        tuple[ReportError, ...],
        about("Lines of the report channel that were not understood (bounded)."),
    ] = ()
    stdout: Annotated[Output, ALWAYS] = Output()
    stderr: Annotated[Output, ALWAYS] = Output()
    absent: Absent = {}


class ForeignProcess(_Record, frozen=True):
    """A process outside the trial that used the CPUs meanwhile."""

    pid: Positive
    name: Annotated[str, about("Name of its program, at most 15 characters."), ALWAYS]
    nice: Annotated[int, ALWAYS]
    cpu_ns: Annotated[Count, about("During the trial."), ALWAYS]

    @property
    def whose(self) -> str:
        """Its program as sentences name it: on one line, without control characters, which it may
        have in its name; or that it is of another run of concurve."""
        return ANOTHER_RUN if self.name == OURS else words.clean(self.name)


class CpuTimeline(_Record, frozen=True):
    """How busy each CPU was in each of some intervals, the first of which begins with the trial,
    and each other one where the one before it ends."""

    ends_ns: Annotated[
        tuple[Count, ...],
        about("The end of each interval, relative to the first release."),
        ALWAYS,
    ] = ()
    busy_ticks: Annotated[
        dict[str, tuple[Count, ...]],
        about(
            "Busy time in each interval, in ticks of tick_ns, by the number of the CPU: those that "
            "were online all the time.",
            propertyNames={"pattern": "^[0-9]+$"},
        ),
        ALWAYS,
    ] = {}


class CoreSpeed(_Record, frozen=True):
    """How fast a CPU ran two fixed loops. What shares its core slows independent instructions; the
    clock frequency slows both."""

    cpu: Annotated[Count, about("Number of the CPU.")]
    chained_per_us: Annotated[
        Count,
        about(
            "Instructions in a microsecond of CPU time, each of which needs the result of the one "
            "before."
        ),
    ]
    independent_per_us: Annotated[
        Count, about("Independent instructions in a microsecond of CPU time.")
    ]


class MachineRecord(_Record, frozen=True):
    """The machine from the first release to the last exit: differences, all CPUs together."""

    cpus: Annotated[Positive | None, about("Online CPUs.")] = None
    busy_ns: Annotated[Count | None, about("Not idle and not stolen.")] = None
    busy_ns_by_cpu: Annotated[
        dict[str, Count],
        about("Busy time of each CPU, by its number.", propertyNames={"pattern": "^[0-9]+$"}),
    ] = {}
    cpu_timeline: Annotated[
        CpuTimeline | None, about("Busy time of each CPU in the course of the trial.")
    ] = None
    steal_ns: Annotated[Count | None, about("Taken by the hypervisor.")] = None
    foreign_cpu_ns: Annotated[
        Count | None, about("Busy time that neither the roles nor the runner used.")
    ] = None
    foreign_low_priority_ns: Annotated[
        Count | None,
        about(
            "The part of it that living processes of low priority used: above nice 0, or scheduled "
            "when a CPU is idle only. Read if others used much."
        ),
    ] = None
    foreign_processes: Annotated[
        tuple[ForeignProcess, ...],
        about(
            "The processes that used most of it, most first; those that ended before the trial did "
            "are not seen. Read if others used much.",
            maxItems=3,
        ),
    ] = ()
    tick_ns: Annotated[Positive | None, about("Granularity of the times above.")] = None
    khz: Annotated[
        Count | None,
        about(
            "Mean over samples of the highest clock frequency of a CPU, where the kernel knows it."
        ),
    ] = None
    speed_before: Annotated[
        tuple[CoreSpeed, ...],
        about(
            "How fast CPUs ran a fixed loop right before the first release, of two at most.",
            maxItems=2,
        ),
    ] = ()
    speed_after: Annotated[
        tuple[CoreSpeed, ...], about("The same right after the last exit.", maxItems=2)
    ] = ()
    psi: Annotated[
        dict[str, Count],
        about(
            "Pressure stall totals.", propertyNames={"pattern": "^(cpu|io|memory)_(some|full)_ns$"}
        ),
    ] = {}
    absent: Absent = {}


class InstrumentRecord(_Record, frozen=True):
    """What measuring itself took and how fine it was."""

    samples: Annotated[Count, about("Samples of /proc that were taken."), ALWAYS] = 0
    runner_cpu_ns: Annotated[
        Count, about("CPU time of the runner from the first release to the last exit."), ALWAYS
    ] = 0
    sampling_cpu_ns: Annotated[Count, about("CPU time of it that went into sampling."), ALWAYS] = 0
    sites_cpu_ns: Annotated[
        Count | None,
        about("The part of it that went into copying stacks; absent if none was copied."),
    ] = None
    sample_interval_ns: Annotated[Count | None, about("Mean time between samples.")] = None
    clock_step_ns: Annotated[Count, about("Smallest step of the clock that was seen."), ALWAYS] = 0
    sources: Annotated[tuple[str, ...], about("Sources used."), ALWAYS] = ()
    absent: Absent = {}


class HostRecord(_Record, frozen=True):
    """A host of a trial that ran on several: what was read there. Times are those of the trial,
    which begins with the first release of a role on any host."""

    name: Annotated[str, about("As roles name it.")]
    machine: Annotated[MachineRecord, ALWAYS] = MachineRecord()
    instrument: Annotated[InstrumentRecord, ALWAYS] = InstrumentRecord()
    begin_ns: Annotated[Count, about("When the first role was released there."), ALWAYS] = 0
    wall_ns: Annotated[Count, about("From then to the last exit there."), ALWAYS] = 0
    clock_offset_ns: Annotated[
        int | None,
        about("Its monotonic clock less that of the laboratory, as it was taken off the times."),
    ] = None
    clock_error_ns: Annotated[
        Count | None, about("Bound of the error of that offset, from before the trial to after it.")
    ] = None
    start_late_ns: Annotated[
        Count | None,
        about(
            "How long after the agreed start the roles there that had one were released, at worst."
        ),
    ] = None
    engine_cpu_ns: Annotated[
        Count | None,
        about(
            "CPU time of what connects the hosts there: Ray's daemons and actor, our agent and its "
            "keeper, as far as they were there from the trial's begin, or up to 20 s before, to "
            "its end."
        ),
    ] = None
    absent: Absent = {}


class Outcome(_Record, frozen=True):
    """How the trial ended."""

    kind: Annotated[
        str,
        about(
            "What became of it: every role that exits did so with 0 and every one that serves "
            "lived until it was stopped (ok), or why not.",
            enum=[
                "ok",
                "exec_failed",
                "control_refused",
                "program_failed",
                "not_ready",
                "timed_out",
                "interrupted",
            ],
        ),
    ]
    role: Annotated[str | None, about("Role that caused an outcome other than ok.")] = None
    message: Annotated[str | None, about("What failed and where, in one sentence.")] = None


class HookRecord(_Record, frozen=True):
    """What a shell command of the study beside the trial printed, which exited with 0."""

    hook: Annotated[str, about("Which one: setup, prepare or conclude.")]
    setting: Annotated[str, about("The levels of the cell for which it ran."), ALWAYS] = ""
    stdout: Annotated[Output, ALWAYS] = Output()
    stderr: Annotated[Output, ALWAYS] = Output()


class TrialRecord(_Record, frozen=True):
    """What the runner measured: one record a trial. A reading that could not be taken is left out,
    and ``absent`` of the same object says why under the same name. Newer runners may add keys."""

    format: Annotated[int, about("Version of this format.", const=FORMAT)]
    trial: Annotated[str, about("As in the spec.")]
    outcome: Outcome
    roles: Annotated[tuple[RoleRecord, ...], about("In the order of the spec.")]
    runner: Annotated[str, about("Version of the runner that wrote the record."), ALWAYS] = ""
    started_unix_ns: Annotated[
        Count, about("Wall-clock time at the first release, since the epoch."), ALWAYS
    ] = 0
    wall_ns: Annotated[
        Count, about("From the first release to the last exit of an exit role."), ALWAYS
    ] = 0
    machine: Annotated[MachineRecord, ALWAYS] = MachineRecord()
    instrument: Annotated[InstrumentRecord, ALWAYS] = InstrumentRecord()
    hosts: Annotated[
        tuple[HostRecord, ...],
        about(
            "The hosts of a trial that ran on several; machine and instrument are then those of "
            "the host of the first role."
        ),
    ] = ()
    hooks: Annotated[
        tuple[HookRecord, ...],
        about(
            "The hooks of the study that printed something beside this trial; with the first one "
            "after a start also the setup of all cells."
        ),
    ] = ()

    def role(self, name: str) -> RoleRecord | None:
        """The role of that name, or ``None`` if the trial has none."""
        return next((role for role in self.roles if role.name == name), None)
