"""What is sent to the runner: one trial. Unknown keys are refused on both sides."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec

from concurve.fields import ALWAYS, Count, Positive, about

#: The version of the spec and record formats that this code writes.
FORMAT = 1

PolicyClass = Literal["other", "batch", "idle", "fifo", "rr", "deadline", "ext"]


class _Spec(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Base of what is sent: unknown keys are refused on both sides."""


class Policy(_Spec, frozen=True):
    """A Linux scheduling policy with its static priority."""

    class_: Annotated[PolicyClass, about("Class of sched(7).")] = msgspec.field(name="class")
    priority: Annotated[Count, about("1 to 99 for fifo and rr, 0 for all others.", maximum=99)] = 0


class Controls(_Spec, frozen=True):
    """Settings of a process, made before it starts; absent: inherited."""

    cpus: Annotated[
        tuple[Count, ...] | None,
        about("CPUs the process may run on, ascending.", minItems=1, uniqueItems=True),
    ] = None
    nice: Annotated[
        int | None, about("Nice value; only with policy other or batch.", minimum=-20, maximum=19)
    ] = None
    policy: Policy | None = None


class Sampling(_Spec, frozen=True, omit_defaults=False):
    """Bounds of the sampler: it keeps to both in the long run."""

    interval_ns_min: Annotated[
        Positive, about("Shortest time between two samples; 10 ms if absent.")
    ] = 10_000_000
    cpu_share_max: Annotated[
        float,
        about(
            "Greatest share of one CPU that sampling may take in the long run, 0.005 if absent; "
            "in the first 170 ms it may take 0.01 more.",
            exclusiveMinimum=0,
            maximum=1,
        ),
    ] = 0.005
    thread_timelines: Annotated[
        bool | msgspec.UnsetType,
        about(
            "Whether the record says what each thread did in the course of the trial; absent: it "
            "does not."
        ),
    ] = msgspec.UNSET


class ReadyProbe(_Spec, frozen=True):
    """What is seen of a role from outside once it is ready; one of these is set."""

    KEYWORDS: ClassVar = {"minProperties": 1, "maxProperties": 1}

    tcp: Annotated[
        str | None, about("Connections are accepted at this address: HOST:PORT.", minLength=3)
    ] = None
    line: Annotated[
        str | None,
        about("A line of its standard output or standard error matches this regular expression."),
    ] = None
    command: Annotated[
        tuple[str, ...] | None,
        about(
            "A command exits with 0; it is started again and again, in the role's environment.",
            minItems=1,
        ),
    ] = None


class AttachedProcess(_Spec, frozen=True):
    """A process that was there before the trial."""

    pid: Positive
    started_ticks: Annotated[
        Count,
        about(
            "Its start after boot in ticks, as /proc/PID/stat says: a number is used again.",
        ),
    ]


class Attach(_Spec, frozen=True):
    """Which processes an attached role has, their descendants included; one of these is set."""

    KEYWORDS: ClassVar = {"minProperties": 1, "maxProperties": 1}

    process: Annotated[AttachedProcess | None, about("A process and its descendants.")] = None
    cgroup: Annotated[
        str | None,
        about("The processes of a cgroup and of those below it, by the path of its folder."),
    ] = None


class RoleSpec(_Spec, frozen=True):
    """A process group of the trial."""

    name: Annotated[
        str, about("Unique in the trial: target, load, background, verify, …", minLength=1)
    ]
    argv: Annotated[
        tuple[str, ...],
        about(
            "Program and arguments; the program is looked up in the role's PATH. Absent for an "
            "attached role."
        ),
    ] = ()
    env: Annotated[
        dict[str, str],
        about(
            "Variables set over the inherited environment.", propertyNames={"pattern": "^[^=]+$"}
        ),
    ] = {}
    cwd: Annotated[str | None, about("Working directory; absent: the runner's own.")] = None
    controls: Controls = Controls()
    end: Annotated[
        Literal["exit", "serve"],
        about(
            "exit (the default): runs to its own exit, and the trial waits for it. serve: "
            "until every exit role is done, then it gets SIGTERM."
        ),
    ] = "exit"
    ready: Annotated[
        Literal["launch", "report"],
        about(
            "When later roles may start. launch (the default): as soon as it runs. report: "
            'when it writes {"ready":true} to its report channel.'
        ),
    ] = "launch"
    after: Annotated[
        tuple[str, ...],
        about("Earlier roles (end = exit) that must have exited before this one starts."),
    ] = ()
    ready_probe: Annotated[
        ReadyProbe | None,
        about("What must be seen of the role, beside ready, before later roles may start."),
    ] = None
    ready_limit_ns: Annotated[
        Positive | None,
        about(
            "Time from its release until the role must be ready; absent: the limit of the trial "
            "alone."
        ),
    ] = None
    attach: Annotated[
        Attach | None,
        about(
            "The processes of an attached role: they run already, are accounted, and are left "
            "alone."
        ),
    ] = None
    host: Annotated[
        str | None,
        about("The host on which it runs, by its name; absent: the only one. Not for the runner."),
    ] = None


class TrialSpec(_Spec, frozen=True, omit_defaults=False):
    """What the runner is asked to do: one fresh-process measurement of one cell. Unknown keys are
    refused."""

    trial: Annotated[
        str,
        about(
            "Identity of the trial, echoed in the record and put into CONCURVE_TRIAL.", minLength=1
        ),
    ]
    roles: Annotated[
        tuple[RoleSpec, ...],
        about(
            "Process groups, started in this order; at least one of them has end = exit.",
            minItems=1,
        ),
    ]
    format: Annotated[int, about("Version of this format.", const=FORMAT), ALWAYS] = FORMAT
    time_limit_ns: Annotated[
        Count | msgspec.UnsetType,
        about("Limit on the whole trial, from the first release; absent: none."),
    ] = msgspec.UNSET
    stop_grace_ns: Annotated[
        Count, about("Time a serving role has between SIGTERM and SIGKILL; 5 s if absent.")
    ] = 5_000_000_000
    output_bytes_max: Annotated[
        Count,
        about(
            "Bytes of each output stream that are kept, half from its head, half from its "
            "tail; 65536 if absent."
        ),
    ] = 65_536
    threads_listed_max: Annotated[
        Count,
        about(
            "Threads listed one by one in each role's record; 1024 if absent.", maximum=2**32 - 1
        ),
    ] = 1024
    sampling: Sampling = Sampling()
    cache_misses: Annotated[
        bool | msgspec.UnsetType,
        about("Whether the misses of the CPU's caches are counted; absent: they are not."),
    ] = msgspec.UNSET
