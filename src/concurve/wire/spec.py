"""What is sent to the runner: one trial. Unknown keys are refused on both sides."""

from __future__ import annotations

from typing import Literal

import msgspec

#: The version of the spec and record formats that this code writes.
FORMAT = 1

PolicyClass = Literal["other", "batch", "idle", "fifo", "rr", "deadline", "ext"]


class _Spec(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Base of what is sent: unknown keys are refused on both sides."""


class Policy(_Spec, frozen=True):
    """A Linux scheduling policy; ``priority`` is 0 for all classes but fifo and rr."""

    class_: PolicyClass = msgspec.field(name="class")
    priority: int = 0


class Controls(_Spec, frozen=True):
    """What is done to a role before it starts; ``None``: inherited."""

    cpus: tuple[int, ...] | None = None
    nice: int | None = None
    policy: Policy | None = None


class Sampling(_Spec, frozen=True, omit_defaults=False):
    """Bounds of the sampler: shortest interval, and greatest share of one CPU."""

    interval_ns_min: int = 10_000_000
    cpu_share_max: float = 0.005


class RoleSpec(_Spec, frozen=True):
    """A process group of a trial: command line, controls and end rule."""

    name: str
    argv: tuple[str, ...]
    env: dict[str, str] = {}
    cwd: str | None = None
    controls: Controls = Controls()
    end: Literal["exit", "serve"] = "exit"
    ready: Literal["launch", "report"] = "launch"
    after: tuple[str, ...] = ()


class TrialSpec(_Spec, frozen=True, omit_defaults=False):
    """One fresh-process measurement of one cell, as sent to ``concurve-trial``."""

    trial: str
    roles: tuple[RoleSpec, ...]
    format: int = FORMAT
    time_limit_ns: int | msgspec.UnsetType = msgspec.UNSET
    stop_grace_ns: int = 5_000_000_000
    output_bytes_max: int = 65_536
    threads_listed_max: int = 1024
    sampling: Sampling = Sampling()
