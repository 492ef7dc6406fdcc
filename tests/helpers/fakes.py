"""Deterministic stand-ins for engine and clock."""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec

from concurve.definition.study import DEFAULT_RULES, EFFORTS, Effort, Factor, Role, Rules, Study
from concurve.engine import Problem
from concurve.wire.record import (
    Exit,
    MachineRecord,
    Outcome,
    Output,
    RoleRecord,
    ThreadsRecord,
    TrialRecord,
    Usage,
)
from concurve.wire.spec import FORMAT, TrialSpec

WallOf = Callable[[TrialSpec, random.Random], float]


def record_of(
    spec: TrialSpec,
    wall_seconds: float,
    kind: str = "ok",
    steal_ns: int = 0,
    stdout: str = "",
    waited: float = 0.0,
    foreign_ns: int = 0,
) -> TrialRecord:
    """A plausible record of one CPU-bound target; ``waited`` for a CPU, as a share of its time,
    that work of low priority used; other processes used ``foreign_ns``."""
    wall = round(wall_seconds * 1e9)
    roles = tuple(
        RoleRecord(
            name=role.name,
            pid=1000,
            exit=Exit(code=0),
            ended_by="itself",
            wall_ns=wall,
            usage=Usage(
                cpu_ns=wall, user_ns=wall, system_ns=0, run_queue_ns=round(wall * waited),
                voluntary_switches=1,
                involuntary_switches=2, migrations=0, minor_faults=10, major_faults=0,
                rss_bytes_max=1 << 20,
            ),
            threads=ThreadsRecord(total=1, peak=1, processes=1, cpu_ns=wall),
            stdout=Output(bytes=len(stdout), head=stdout),
        )
        for role in spec.roles
    )  # fmt: skip
    return TrialRecord(
        format=FORMAT,
        trial=spec.trial,
        outcome=Outcome(kind=kind, message=None if kind == "ok" else f"fake {kind}"),
        roles=roles,
        wall_ns=wall,
        machine=MachineRecord(
            cpus=2,
            busy_ns=wall,
            steal_ns=steal_ns,
            foreign_cpu_ns=round(wall * waited) + foreign_ns,
            foreign_low_priority_ns=round(wall * waited),
            tick_ns=10_000_000,
        ),
    )


class FakeEngine:
    """Answers with records instead of running anything. ``wall_of`` gives each trial's time;
    ``kind_of`` its outcome; randomness comes from the trial's id, so that it is repeatable."""

    def __init__(
        self,
        wall_of: WallOf = lambda spec, rng: rng.gauss(1.0, 0.01),
        kind_of: Callable[[TrialSpec], str] = lambda spec: "ok",
        stdout: str = "",
        steal_of: Callable[[TrialSpec], int] = lambda spec: 0,
        waited_of: Callable[[TrialSpec], float] = lambda spec: 0.0,
        foreign_of: Callable[[TrialSpec], int] = lambda spec: 0,
    ) -> None:
        self.wall_of = wall_of
        self.kind_of = kind_of
        self.steal_of = steal_of
        self.waited_of = waited_of
        self.foreign_of = foreign_of
        self.stdout = stdout
        self.specs: list[TrialSpec] = []

    def run(self, spec: TrialSpec) -> bytes:
        self.specs.append(spec)
        rng = random.Random(spec.trial.partition("/")[2])
        record = record_of(
            spec,
            self.wall_of(spec, rng),
            self.kind_of(spec),
            self.steal_of(spec),
            self.stdout,
            self.waited_of(spec),
            self.foreign_of(spec),
        )
        return msgspec.json.encode(record)

    def check(self, spec: TrialSpec) -> list[Problem]:
        return []


class FakeClock:
    """Steps by a fixed time at each reading."""

    def __init__(self, step: float = 0.5) -> None:
        self.now = 0.0
        self.step = step

    def __call__(self) -> float:
        self.now += self.step
        return self.now


def small_study(rules: Rules | None = None, **factors: tuple[int | float | str, ...]) -> Study:
    """A one-role study over the given factors."""
    levels = factors or {"threads": (1, 2, 4)}
    return Study(
        name="small",
        question="How does it scale?",
        factors=tuple(Factor(name=name, levels=values) for name, values in levels.items()),
        roles=(Role(name="target", command=("true", *("{" + name + "}" for name in levels))),),
        efforts={effort: Effort(rules=rules or DEFAULT_RULES[effort]) for effort in EFFORTS},
    )
