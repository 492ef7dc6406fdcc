"""Record → how busy each CPU was, in studies that bind roles to CPUs. Pure."""

from __future__ import annotations

import re

from concurve.terms import IndicatorInfo
from concurve.wire.record import TrialRecord

#: With more CPUs than this, no figures of single CPUs are given.
CPUS_MAX = 8

_NAME = re.compile(r"cpu(\d+)_busy")


def cpu_figures(record: TrialRecord) -> dict[str, float]:
    """Busy share of the trial's time by CPU (``cpu0_busy``), whatever process kept it busy. Only
    where a role is bound to CPUs, and the machine has no more than :data:`CPUS_MAX`."""
    busy = record.machine.busy_ns_by_cpu
    bound = any(role.controls.requested.cpus for role in record.roles)
    if not bound or len(busy) > CPUS_MAX or record.wall_ns <= 0:
        return {}
    return {f"cpu{cpu}_busy": min(1.0, ns / record.wall_ns) for cpu, ns in busy.items()}


def cpu_info(name: str) -> IndicatorInfo | None:
    """The description of such a figure by its name."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    return IndicatorInfo(
        name=name,
        label=f"CPU {match[1]} busy",
        note="share of the trial's time, by whatever program; ticks of /proc/stat",
    )
