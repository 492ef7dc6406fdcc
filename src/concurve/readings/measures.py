"""Record → named figures: the raw indicators of one trial. Pure.

Figures of the measured role stand under their own names, those of other roles behind ``role.``.
Where the program marked a phase ``measure``, its figures count and start-up stays out (document 002
§9.1 distinguishes computation time from run time); else the whole life of the role.
"""

from __future__ import annotations

import re
from statistics import fmean
from typing import NamedTuple

from concurve.definition.indicator_names import split_name
from concurve.definition.purposes import Purposes
from concurve.definition.study import Extract
from concurve.readings.copies import merged_figures
from concurve.readings.extraction import MissedExtractError, extracted
from concurve.readings.fairness_measures import fairness_figures
from concurve.readings.operations import Asked, operations_of
from concurve.readings.thread_measures import thread_figures
from concurve.readings.under_load import under_load_ns
from concurve.terms import IndicatorInfo
from concurve.wire.record import REMOTE_FACT, PhaseRecord, RoleRecord, TrialRecord, Usage

MEASURE_PHASE = "measure"
#: How fast a fixed loop ran of independent instructions, and one of instructions in a chain.
FIXED_LOOP, FIXED_CHAIN = "fixed_loop_per_ns", "fixed_chain_per_ns"
_COUNTS = (
    "voluntary_switches",
    "involuntary_switches",
    "migrations",
    "minor_faults",
    "major_faults",
)
_TIMES = {
    "cpu_seconds": "cpu_ns",
    "user_seconds": "user_ns",
    "system_seconds": "system_ns",
    "run_queue_seconds": "run_queue_ns",
}
#: Figures that probes read; wall time and reported figures use the program's own clock.
_PROBED = {*_COUNTS, *_TIMES, "context_switches", "cache_misses", "cpus_used"}


def is_probed(indicator: str) -> bool:
    """Does the indicator, of any role, come from probes at a phase's begin and end?"""
    name = split_name(indicator).own
    return _PER_OPERATION.get(name, name) in _PROBED


#: The reason for absent accounts of a remote role.
NO_ACCOUNTS = "the server runs elsewhere: its processes are not seen"

#: The reason for absent figures per operation if the program counted 0 operations.
NOTHING_DONE = "no operation was done in the measured time"
_PER_OPERATION = {
    "seconds_per_operation": "wall_seconds",
    "cpu_seconds_per_operation": "cpu_seconds",
    "switches_per_operation": "context_switches",
    "cache_misses_per_operation": "cache_misses",
}


#: With more CPUs than this, no figures of single CPUs are given.
CPUS_MAX = 8

_CPU_BUSY = re.compile(r"cpu(\d+)_busy")


class Measures(NamedTuple):
    """Figures of one trial: values, units of reported ones, and why others are absent."""

    values: dict[str, float]
    units: dict[str, str]
    absent: dict[str, str]


def measure(record: TrialRecord, asked: Asked, work_level: float | None = None) -> Measures:
    """All figures of a trial. Where the work scales and no operations are reported, the work level
    counts as operations.

    Raises:
        MissedExtractError: a pattern matched nothing in the output of its role.
    """
    result, target = Measures({}, {}, {}), asked.roles.measured
    for role in record.roles:
        prefix = "" if role.name == target else f"{role.name}."
        _role_figures(role, prefix, result)
        _reported_figures(role, prefix, result)
    if asked.roles.serving:
        _under_load(record, asked.roles, result)
    together = merged_figures(record, asked.copied, result.values)
    result.values.update(together.values)
    result.units.update(together.units)
    result.absent.update(together.absent)
    result.values.update(cpu_figures(record))
    result.values.update(speed_figures(record))
    for extract in asked.extracts:
        _extract(extract, record.role(extract.role or target), result)
    if record.role(target) is not None:
        operations = operations_of(record, asked, result.values, work_level)
        _rates(result, operations, work_level)
        if asked.roles.subject != target and operations is not None:
            _of_server(result, asked.roles.subject, operations)
    return result


def _extract(extract: Extract, role: RoleRecord | None, result: Measures) -> None:
    """Add a figure of a role's output; without one, the reason for an optional figure."""
    if role is None:
        result.absent[extract.name] = f"the trial had no role {extract.role}"
        return
    result.units[extract.name] = extract.unit
    try:
        result.values[extract.name] = extracted(extract, role)
    except MissedExtractError as missed:
        if extract.zero_unprinted and not missed.reason:
            result.values[extract.name] = 0.0
            return
        if not extract.optional:
            raise
        result.absent[extract.name] = missed.reason or "the output does not have it"


def _role_figures(role: RoleRecord, prefix: str, result: Measures) -> None:
    phases = [phase for phase in role.phases if _is_measured(phase)]
    usages = [phase.usage for phase in phases] or [role.usage]
    walls = [phase.wall_ns for phase in phases] or [role.wall_ns]
    values, absent = result.values, result.absent
    values[f"{prefix}wall_seconds"] = sum(walls) / 1e9
    values[f"{prefix}run_seconds"] = role.wall_ns / 1e9
    if REMOTE_FACT in role.facts:
        # The accounts are those of the program that reads its counters.
        accounts = [*_TIMES, *_COUNTS, "run_cpu_seconds", "context_switches", "cpus_used"]
        if _is_asked("cache_misses", role.usage):
            accounts.append("cache_misses")
        absent.update({prefix + name: NO_ACCOUNTS for name in accounts})
        return
    for name, field in _TIMES.items():
        _add(f"{prefix}{name}", field, usages, 1e-9, values, absent)
    for name in _COUNTS:
        _add(f"{prefix}{name}", name, usages, 1, values, absent)
    if any(_is_asked("cache_misses", usage) for usage in usages):
        _add(f"{prefix}cache_misses", "cache_misses", usages, 1, values, absent)
    _add(f"{prefix}run_cpu_seconds", "cpu_ns", [role.usage], 1e-9, values, absent)
    _combine(prefix, values, absent)
    _add(f"{prefix}rss_bytes_max", "rss_bytes_max", [role.usage], 1, values, absent)
    # A role that is one process has none.
    if role.usage.rss_bytes_tree_max is not None:
        values[f"{prefix}rss_bytes_tree_max"] = role.usage.rss_bytes_tree_max
    if role.threads.peak is None:
        absent[f"{prefix}threads_peak"] = role.threads.absent.get("peak", "not read")
    else:
        values[f"{prefix}threads_peak"] = role.threads.peak


def _under_load(record: TrialRecord, roles: Purposes, result: Measures) -> None:
    """The CPUs that a server used over the time of its load, where no phase is marked and that time
    is known: before and after it the server waits."""
    server = record.role(roles.subject)
    if server is None or any(_is_measured(phase) for phase in server.phases):
        return
    prefix = "" if server.name == roles.measured else f"{server.name}."
    clients = [role.name for role in record.roles if roles.is_client(role.name)]
    loaded = under_load_ns(record, server, clients)
    cpu = result.values.get(f"{prefix}cpu_seconds")
    if loaded is not None and cpu is not None:
        result.values[f"{prefix}cpus_used"] = cpu / (loaded / 1e9)


def _is_measured(phase: PhaseRecord) -> bool:
    return phase.name == MEASURE_PHASE and not phase.open


def _reported_figures(role: RoleRecord, prefix: str, result: Measures) -> None:
    """Figures that the role reported itself; of a remote role there are no others."""
    for line in role.indicators:
        if line.worker is None:
            result.values[prefix + line.indicator] = line.value
            result.units[prefix + line.indicator] = line.unit or ""
    if REMOTE_FACT in role.facts:
        return
    for figures, reasons in (fairness_figures(role), thread_figures(role)):
        result.values.update({prefix + name: figure for name, figure in figures.items()})
        result.absent.update({prefix + name: reason for name, reason in reasons.items()})


def _is_asked(field: str, usage: Usage) -> bool:
    """Was a reading asked for that is taken on request? Then it is there, or the reason is."""
    return getattr(usage, field) is not None or field in usage.absent


def _combine(prefix: str, values: dict[str, float], absent: dict[str, str]) -> None:
    """Figures made of two others; absent if one of those is, for the same reason."""
    switches = f"{prefix}voluntary_switches", f"{prefix}involuntary_switches"
    missing = [name for name in switches if name in absent]
    if missing:
        absent[f"{prefix}context_switches"] = absent[missing[0]]
    else:
        values[f"{prefix}context_switches"] = sum(values[name] for name in switches)
    cpu, wall = f"{prefix}cpu_seconds", values[f"{prefix}wall_seconds"]
    if cpu in absent:
        absent[f"{prefix}cpus_used"] = absent[cpu]
    elif wall > 0:
        values[f"{prefix}cpus_used"] = values[cpu] / wall
    else:
        absent[f"{prefix}cpus_used"] = "no wall time"


def _add(name: str, field: str, usages: list[Usage], factor: float,
         values: dict[str, float], absent: dict[str, str]) -> None:  # fmt: skip
    readings = [getattr(usage, field) for usage in usages]
    if None in readings:
        missing = usages[readings.index(None)]
        absent[name] = missing.absent.get(field, "the runner gave no reason")
    else:
        values[name] = sum(readings) * factor


def _rates(result: Measures, operations: float | None, work_level: float | None) -> None:
    """Total rate and rate per worker, of whole runs where no operations are reported; and what an
    operation took."""
    values = result.values
    wall = values.get("wall_seconds", 0.0)
    if wall <= 0:
        return
    rate = (1.0 if operations is None else operations) / wall
    values["rate_per_second"] = rate
    if work_level:
        values["rate_per_worker"] = rate / work_level
    if operations is None:
        return
    for name, of in _PER_OPERATION.items():
        if of == "cache_misses" and of not in values and of not in result.absent:
            continue  # nobody asked for it
        if operations == 0:
            result.absent[name] = NOTHING_DONE
        elif of in values:
            values[name] = values[of] / operations
        else:
            result.absent[name] = result.absent.get(of, "not read")


def _of_server(result: Measures, server: str, operations: float) -> None:
    """The CPU time that an operation took of the server which the measured role loads."""
    name, of = f"{server}.cpu_seconds_per_operation", f"{server}.cpu_seconds"
    if operations == 0:
        result.absent[name] = NOTHING_DONE
    elif of in result.values:
        result.values[name] = result.values[of] / operations
    elif of in result.absent:
        result.absent[name] = result.absent[of]


def cpu_figures(record: TrialRecord) -> dict[str, float]:
    """Busy share of the trial's time by CPU (``cpu0_busy``), whatever process kept it busy. Only
    where a role is bound to CPUs, and the machine has no more than :data:`CPUS_MAX`; none of
    several hosts."""
    busy = record.machine.busy_ns_by_cpu
    bound = any(role.controls.requested.cpus for role in record.roles)
    if not bound or len(busy) > CPUS_MAX or record.wall_ns <= 0 or len(record.hosts) > 1:
        return {}
    return {f"cpu{cpu}_busy": min(1.0, ns / record.wall_ns) for cpu, ns in busy.items()}


def speed_figures(record: TrialRecord) -> dict[str, float]:
    """How fast CPUs ran two fixed loops, in instructions in a nanosecond: means of what was read
    right before and after the trial. Of one host, or one machine."""
    machine = record.machine
    readings = (*machine.speed_before, *machine.speed_after)
    if not readings or len(record.hosts) > 1:
        return {}
    return {
        FIXED_LOOP: fmean(reading.independent_per_us for reading in readings) / 1e3,
        FIXED_CHAIN: fmean(reading.chained_per_us for reading in readings) / 1e3,
    }


def cpu_info(name: str) -> IndicatorInfo | None:
    """The description of a figure of :func:`cpu_figures` by its name."""
    match = _CPU_BUSY.fullmatch(name)
    if match is None:
        return None
    return IndicatorInfo(
        name=name,
        label=f"CPU {match[1]} busy",
        note="share of the trial's time, by whatever program; ticks of /proc/stat",
    )
