"""Records of trials made up by where their threads' time went."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from concurve.explain.waiting import KINDS
from concurve.findings.explanation import CellExplanation, Limit
from concurve.report.document import Paragraph
from concurve.report.sections.overview import limit_line
from concurve.terms import Level
from concurve.wire.record import (
    CpuQuota,
    FutexWaits,
    GrantedControls,
    MachineRecord,
    Outcome,
    PhaseRecord,
    RoleRecord,
    ThreadRecord,
    ThreadsRecord,
    TrialRecord,
    Usage,
    Waits,
)
from concurve.wire.report import IndicatorLine
from concurve.wire.spec import FORMAT

WALL = 1_000_000_000
READINGS = 100

Thread = dict[str, Any]


def thread(cpu: float = 0.0, queue: float = 0.0, name: str = "worker-1", **more: Any) -> Thread:
    """A thread by the shares of its life: CPU, run queue, and what it waits for by kind."""
    return {"cpu": cpu, "queue": queue, "name": name, **more}


def role(
    threads: Sequence[Thread],
    operations: float | None = 1000.0,
    name: str = "target",
    sampled: bool = True,
    words: Sequence[tuple[int, ...]] = (),
    cpus: tuple[int, ...] = (0, 1),
    nice: int = 0,
    queue_absent: str = "",
    wall: int = WALL,
    phase: bool = False,
    noise: float = 1.0,
    quota: CpuQuota | None = None,
) -> RoleRecord:
    """A role whose threads live as long as it does, unless they say otherwise. ``words`` are
    readings and threads at futex words, and how many values were expected there, if that is known.
    A thread's ``alone`` is the number of its readings in which nobody else ran."""
    listed = []
    for number, given in enumerate(threads):
        lived = round(given.get("lived", 1.0) * wall * noise)
        blocked = 1.0 - given["cpu"] - given["queue"]
        readings = given.get("readings", READINGS)
        kinds = {kind: round(readings * given.get(kind, 0.0)) for kind in KINDS}
        if not any(kinds.values()):
            kinds["other"] = round(readings * blocked)
        running = readings - sum(kinds.values())
        usage = Usage(
            cpu_ns=round(given["cpu"] * lived),
            run_queue_ns=None if queue_absent else round(given["queue"] * lived),
            voluntary_switches=given.get("switches", 1000),
            absent={"run_queue_ns": queue_absent} if queue_absent else {},
        )
        listed.append(
            ThreadRecord(
                tid=given.get("tid", 101 + number),
                pid=given.get("pid", 100),
                name=given["name"],
                source="exit",
                usage=usage,
                lived_ns=lived,
                waits=Waits(readings=readings, running=running, alone=given.get("alone"), **kinds)
                if sampled
                else None,
            )
        )
    waits = _sum(listed, words) if sampled else None
    usage = Usage(
        cpu_ns=sum(t.usage.cpu_ns or 0 for t in listed),
        run_queue_ns=None if queue_absent else sum(t.usage.run_queue_ns or 0 for t in listed),
        absent={"run_queue_ns": queue_absent} if queue_absent else {},
    )
    phases = (PhaseRecord("measure", 0, round(wall * noise), usage, waits=waits),) if phase else ()
    return RoleRecord(
        name=name,
        wall_ns=round(wall * noise),
        controls=GrantedControls(cpus=cpus, nice=nice),
        usage=usage,
        threads=ThreadsRecord(total=len(listed), peak=len(listed), listed=tuple(listed)),
        waits=waits,
        phases=phases,
        quota=quota,
        indicators=() if operations is None else (IndicatorLine("operations", operations),),
        absent={} if sampled else {"waits": "kernel says no"},
    )


def _sum(listed: Sequence[ThreadRecord], words: Sequence[tuple[int, ...]]) -> Waits:
    names = ("readings", "running", *KINDS)
    sums: dict[str, Any] = {
        name: sum(getattr(t.waits, name) or 0 for t in listed if t.waits) for name in names
    }
    futexes = tuple(
        FutexWaits(f"0x{n}", word[0], word[1], values=word[2] if len(word) > 2 else None)
        for n, word in enumerate(words)
    )
    return Waits(**sums, futexes=futexes, futex_words=len(words))


def record(*roles: RoleRecord, steal: float = 0.0, foreign: float = 0.0) -> TrialRecord:
    """``steal`` and ``foreign`` are shares of the machine's CPU time."""
    wall = max(role.wall_ns for role in roles)
    busy = sum(role.usage.cpu_ns or 0 for role in roles) + round(foreign * 2 * wall)
    return TrialRecord(
        format=FORMAT,
        trial="t",
        outcome=Outcome("ok"),
        roles=roles,
        wall_ns=wall,
        machine=MachineRecord(
            cpus=2,
            busy_ns=busy,
            steal_ns=round(steal * 2 * wall),
            foreign_cpu_ns=round(foreign * 2 * wall),
        ),
    )


def line_of(
    cell: CellExplanation, *, stops: dict[str, Level] | None = None, is_full: bool = False
) -> Paragraph:
    """What a terminal says of the limit of a cell alone."""
    return limit_line(Limit({}, cell, is_full), stops)
