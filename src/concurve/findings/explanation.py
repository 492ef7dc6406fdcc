"""Where the thread time of an operation goes, and what limits it."""

from __future__ import annotations

from math import fsum
from typing import Literal, NamedTuple

import msgspec

from concurve.estimate import Estimate
from concurve.findings.confirmation import Confirmation
from concurve.findings.stacks import BlockedStack
from concurve.terms import Level, Waiting

#: Reports of runs with more trials do not say what limits a cell; ``concurve explain`` still does.
REPORT_TRIALS = 5_000
#: Below this share of a cell's thread time, where it was blocked is not drawn.
BLOCKED_MIN = 0.02
#: What the evidence of a cell says that loses nothing against its base.
NO_LOSS = "nothing is lost"
#: The same of one that loses little, no part of which is significant.
LITTLE_LOST = "little of the speed-up is lost, and no part of that is significant"
#: A smaller share of the possible speed-up is as good as nothing.
NOTHING_LOST_MAX = 0.05
#: With this share of the speed-up that the CPUs allow, more CPUs are what it takes to get more.
CEILING_MIN = 0.85

Cause = Literal[
    "cpu",
    "lock",
    "coherency",
    "serial",
    "imbalance",
    "stage",
    "memory",
    "smt",
    "clock",
    "kernel",
    "collector",
    "quota",
    "io",
    "client",
    "contamination",
    "in doubt",
    "none",
]


#: The ``limit`` of a cell whose CPUs are used up.
CPUS = "CPUs"
#: The same of a server in Go that may not run more goroutines at a time.
GOMAXPROCS = "GOMAXPROCS"
#: Causes of more CPU time that are named because others are excluded: no record counts the misses
#: of caches, which would tell these apart. Views name them as what it may be.
GUESSED: frozenset[Cause] = frozenset({"coherency", "memory", "smt"})
#: The causes that stand in a server, whatever its load could ask for.
_OF_SERVER: frozenset[Cause] = frozenset({"lock", "serial", "stage", "imbalance", "io"})


class RunnerUp(msgspec.Struct, frozen=True):
    """The cause with the next greatest share of the loss; ``is_indistinct``: the evidence cannot
    tell it apart from the first one. ``place`` says in a sentence where in the program threads
    waited for it, as of the first one. ``parts``: the parts of the lost speed-up that its share is
    of; where the cause is ``none``, only these are known. ``may_be_less``: such a part is not
    surely greater than what the cause stands for, whichever figure is."""

    cause: Cause
    share: Estimate | None = None
    is_indistinct: bool = False
    place: str = ""
    parts: tuple[str, ...] = ()
    may_be_less: bool = False


#: What stands for the name of threads of which the record has none.
UNNAMED = "of unknown name"


class Holders(msgspec.Struct, frozen=True, kw_only=True):
    """Threads of one kind that had a lock while others waited for it at a place: their name without
    digits (empty if it is not known), the most of them in a trial, and in how many readings one of
    them had it. ``takes_in``: the function in which they were seen waiting for the same lock
    themselves; empty if in none."""

    name: str
    threads: int
    readings: int
    takes_in: str = ""


class SampledStacks(msgspec.Struct, frozen=True):
    """What became of the samples of stacks of threads that waited for locks, over all trials of a
    cell: of so many the place in the program is ``known``, or ``unknown``; ``torn`` ones were
    dropped because the thread ran meanwhile, and ``skipped`` ones left out for what samples may
    cost, or because the program changed its address space."""

    known: int = 0
    unknown: int = 0
    torn: int = 0
    skipped: int = 0


#: The function of Python that starts a thread, as records name it.
STARTS_THREAD = "Thread.start"


class WaitSite(msgspec.Struct, frozen=True, kw_only=True):
    """A place in the program where threads were seen waiting for a lock, over all trials of a cell.

    ``name`` is short, for sentences; ``function`` is as the program has it. ``lock`` is the
    variable that is the lock, or that it is a part of. ``share`` is that of the ``readings`` whose
    place is known. ``threads`` is the greatest number in a trial. ``held``: in so many readings the
    lock said that a thread had it, and ``holders`` are these threads, most readings first; records
    have four of a trial. ``found``: how the least sure of its frames was found (``cfi``,
    ``scan_exact``, ``scan_weak``, as in a record); ``runtime``: that of the language which said the
    place itself. ``callers``: the nearest first. ``offsets``: where the calls stand in ``module``.
    ``call``: the system call.
    """

    name: str
    primitive: str
    module: str
    readings: int
    share: float
    threads: int
    function: str | None = None
    file: str | None = None
    line: int | None = None
    operation: str | None = None
    lock: str | None = None
    held: int | None = None
    holders: tuple[Holders, ...] = ()
    found: str = "cfi"
    runtime: str | None = None
    callers: tuple[str, ...] = ()
    offsets: tuple[str, ...] = ()
    call: str = "futex"

    @property
    def starts_threads(self) -> bool:
        """Does Python start a thread there, and wait until that runs? That is no lock of the
        program."""
        return self.operation == STARTS_THREAD

    @property
    def is_sure(self) -> bool:
        """Was no frame on the way found by less than call frame information, or a call of the very
        function?"""
        return self.found != "scan_weak"


class CellExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """Where the thread time of an operation goes in one cell, and what limits it.

    ``per_operation`` divides ``total`` into ``cpu``, ``run_queue`` and ``blocked`` (in ns of the
    time of active threads); ``by_kind`` divides what is blocked, and is empty without samples.
    ``shares`` are the parts of ``total`` in the order of a bar. ``excess`` is what exceeds the
    cell with the parameters ``base``; it is empty for that cell itself. ``missing`` names the
    kinds of evidence that the records lack, and why. ``limit`` is the resource of a loaded server
    that is used up: CPUs, a kind of threads, or the load; of a stage its thread. ``speedup_lost``
    adds up, with ``speedup``, to ``speedup_possible``; it is empty where the record lacks the
    lives of threads, or the number of workers is not known. ``by_means``: that speed-up is the
    ratio of the mean times, and differs from that of the tables of figures. ``ceiling`` is the
    number of CPUs where that bounds the speed-up; ``None`` where it does not. ``share`` is the part
    of the loss that the cause stands for, ``share_parts`` the parts of ``speedup_lost`` that it is
    the sum of, and ``runner_up`` the cause with the next greatest part. ``doubt`` says
    why its figures or those of its base are in doubt: then a cause is named only if the quiet
    trials alone show the same, if it is a lock for which threads waited longer than others can have
    made them, or if it is ``contamination``; else ``cause`` is ``in doubt``,
    ``evidence`` what the figures in doubt say, and ``seeming`` the cause and the ``limit`` that
    they point to, if it is one alone. ``sites`` are the places in the
    program where threads waited for locks, most readings first, by the samples ``sampled_stacks``;
    ``place`` says the first ones in a sentence where a lock is the cause. ``stacks`` divide the
    blocked time by place. ``is_jvm``: a JVM runs the threads, so samples name no line. ``used``
    says how much CPU time a server and its load used, where nothing is named. ``few`` says how
    many trials it and its base have, and how many are enough, where these are too few to name a
    limit: ``cause`` is then what they point to.
    ``keeps_rate``: its load kept the rate that it was asked for, so that it waits for no more than
    its next request: nothing limits it at that rate, and ``cause`` is ``none``.
    ``reason`` is why the cause is named, as a short sentence without its full stop, and ``remedy``
    what to do where the load is what is used up, or where the start and the end of the program are
    a part of serial work, or what more clients do, or more threads of a server can gain at
    most, where it shares the CPUs: both are empty where there is none. ``parts`` says
    in a sentence which parts of a loss are known, where no cause is named. ``server_cpu`` is the
    CPU time of all threads of a loaded server per operation, in ns; ``None`` of what serves nobody.
    ``spent`` says in a sentence what an operation costs of it, and where most CPU time is spent;
    ``spun`` that most of what it costs more goes to spinning;
    ``blocked`` what the threads of a server are blocked on, by kinds of waits, the greatest first;
    ``ideal`` what is known of a speed-up that is more than the workers promise, or why less is
    possible.
    """

    parameters: dict[str, Level]
    cause: Cause
    evidence: str
    index: int = 0
    limit: str = ""
    doubt: str = ""
    seeming: tuple[Cause, str] | None = None
    base: dict[str, Level] | None = None
    per_operation: dict[str, Estimate] = {}
    by_kind: dict[str, Estimate] = {}
    shares: dict[str, float] = {}
    excess: dict[str, Estimate] = {}
    threads: int | None = None
    trials: int = 0
    keeps_rate: bool = False
    missing: dict[str, str] = {}
    share: Estimate | None = None
    share_parts: tuple[str, ...] = ()
    runner_up: RunnerUp | None = None
    speedup: float | None = None
    speedup_possible: float | None = None
    speedup_lost: dict[str, float] = {}
    by_means: bool = False
    ceiling: int | None = None
    sites: tuple[WaitSite, ...] = ()
    sampled_stacks: SampledStacks | None = None
    place: str = ""
    stacks: tuple[BlockedStack, ...] = ()
    is_jvm: bool = False
    used: str = ""
    few: str = ""
    reason: str = ""
    remedy: str = ""
    parts: str = ""
    server_cpu: Estimate | None = None
    spent: str = ""
    spun: str = ""
    blocked: str = ""
    ideal: str = ""

    @property
    def has_no_loss(self) -> bool:
        """Does it lose nothing against its base, or little, and no part of that significantly?"""
        return NO_LOSS in self.evidence or LITTLE_LOST in self.evidence

    @property
    def is_limited_by_server(self) -> bool:
        """Is a server shown to be the limit: a kind of its threads, or what they wait for? Where
        all CPUs are busy, the load may have a part of them."""
        second = self.runner_up
        if self.few or (second is not None and second.is_indistinct and second.cause == "client"):
            return False
        is_thread = self.cause == "cpu" and self.limit not in ("", CPUS)
        return is_thread or self.cause in _OF_SERVER

    @property
    def is_guess(self) -> bool:
        """Is its cause one of several that the evidence cannot tell apart, as more CPU time has?"""
        return self.cause in GUESSED

    @property
    def told_cause(self) -> str:
        """The cause as a short text: ``lock``, ``perhaps coherency``."""
        return f"perhaps {self.cause}" if self.is_guess else self.cause

    @property
    def is_not_found(self) -> bool:
        """Does it lose against its base, or may it, and no cause was found? Of a base cell there is
        nothing to explain."""
        is_compared = bool(self.trials) and self.base is not None
        is_lost = not (self.has_no_loss or self.loses_nothing or self.keeps_rate)
        return self.cause == "none" and is_compared and is_lost

    @property
    def is_of_few(self) -> bool:
        """Do too few trials point to its cause?"""
        return bool(self.few) and self.cause not in ("none", "in doubt")

    @property
    def loses_nothing(self) -> bool:
        """Is hardly any of the speed-up that is possible over its base lost? Then its cause says
        where the time goes, and limits nothing."""
        if self.speedup is None or self.speedup_possible is None or self.share is not None:
            return False
        is_limited = self.cause in ("in doubt", "contamination", "cpu") or bool(self.limit)
        return not is_limited and self.speedup >= (1 - NOTHING_LOST_MAX) * self.speedup_possible

    @property
    def lost(self) -> float:
        """The speed-up that is lost of the possible one; 0 where that is not known."""
        if self.speedup is None or self.speedup_possible is None:
            return 0.0
        return self.speedup_possible - self.speedup

    @property
    def loses_hardly(self) -> bool:
        """Is what is lost next to nothing of the possible speed-up, whatever its cause?"""
        return self.lost < NOTHING_LOST_MAX * (self.speedup_possible or 0.0)

    @property
    def is_of_lock(self) -> bool:
        """Is a lock what limits it, or what comes next?"""
        second = self.runner_up
        is_next = second is not None and second.cause == "lock" and not second.is_indistinct
        return self.cause == "lock" or is_next

    @property
    def is_of_cpu_time(self) -> bool:
        """Is CPU time what limits it: the CPUs are used up, a thread, or what a runtime may use of
        them, or they bound the speed-up?"""
        return self.is_at_ceiling or (self.cause == "cpu" and bool(self.limit) and not self.few)

    @property
    def is_of_cpus(self) -> bool:
        """Are the CPUs used up? Then blocked threads limit nothing."""
        return self.cause == "cpu" and self.limit == CPUS

    @property
    def is_at_ceiling(self) -> bool:
        """Does it get nearly all of the speed-up that its CPUs allow? Then these limit it, and its
        cause says what the rest is lost to."""
        if self.ceiling is None or self.speedup is None or self.speedup_possible is None:
            return False
        is_told = not self.few and self.cause not in ("in doubt", "contamination", "quota")
        return is_told and self.speedup >= CEILING_MIN * self.speedup_possible

    def share_of(self, *parts: str) -> float:
        """The sum of some of the ``shares``; a part that is none of them counts as 0."""
        return fsum(self.shares.get(part, 0.0) for part in parts)

    @property
    def blocked_share(self) -> float:
        """The share of everything that is neither on a CPU nor in a queue for one."""
        return self.share_of(*(part for part in self.shares if part not in ("cpu", "run_queue")))

    @property
    def is_blocked(self) -> bool:
        """Is the blocked time so much that it is drawn?"""
        return self.blocked_share >= BLOCKED_MIN

    @property
    def has_places(self) -> bool:
        """Is any place known at which threads waited?"""
        return any(len(stack.frames) > 1 for stack in self.stacks)

    @property
    def blocked_ns(self) -> float:
        """The blocked time of an operation, as the ``stacks`` have it."""
        return fsum(stack.ns for stack in self.stacks)


class Limit(NamedTuple):
    """What limits the cell that a reader is told of first, ``under`` these levels of the
    conditions; empty where none differ. ``is_full``: its speed-up is as good as all that so many
    workers can give, which the thread time of a server does not tell. ``beyond`` is the cell with
    the most concurrency, where that is another one which something else limits."""

    under: dict[str, Level]
    cell: CellExplanation
    is_full: bool = False
    beyond: CellExplanation | None = None


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """What limits each cell of a run. ``factors`` are those that vary; ``operation`` says what
    counts as one; ``missing`` and ``notes`` hold for all cells. ``confirmations`` are what
    experiments on the run say, the newest last. ``over_hosts``: it did not run on this machine;
    ``waiting``: how it waited for a quiet one; ``strangers``, ``is_stolen``, ``constant`` and
    ``autogroups``: as of the run. ``warnings`` are what programs of the trials warned of."""

    run: str
    study: str
    factors: tuple[str, ...]
    work: str | None
    operation: str
    cells: tuple[CellExplanation, ...]
    missing: dict[str, str] = {}
    notes: tuple[str, ...] = ()
    confirmations: tuple[Confirmation, ...] = ()
    over_hosts: bool = False
    warnings: tuple[str, ...] = ()
    waiting: Waiting | None = None
    strangers: tuple[str, ...] = ()
    is_stolen: bool = False
    constant: tuple[str, ...] = ()
    autogroups: bool = False
