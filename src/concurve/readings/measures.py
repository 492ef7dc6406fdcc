"""Record → named figures: the raw indicators of one trial. Pure.

Figures of the measured role stand under their own names, those of other roles behind
``role.``. Where the program marked a phase ``measure``, its figures count and start-up stays
out (document 002 §9.1 tells computation time from run time); else the whole life of the role.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import msgspec

from concurve.definition.study import Extract
from concurve.findings.study import IndicatorInfo
from concurve.readings.cpu_measures import cpu_figures
from concurve.readings.thread_measures import thread_figures
from concurve.stats.fairness import Fairness, fairness, poisson_floor, windows
from concurve.wire.record import RoleRecord, TrialRecord, Usage

MEASURE_PHASE = "measure"

#: What the laboratory itself measures, in the order in which views show it.
INDICATORS: tuple[IndicatorInfo, ...] = (
    IndicatorInfo(name="wall_seconds", label="wall time", unit="s", better="lower",
                  note="measured phase, or release to exit"),
    IndicatorInfo(name="speedup", label="speed-up", unit="×", better="higher",
                  note="time of the base cell over this one's; per operation, where reported"),
    IndicatorInfo(name="efficiency", label="efficiency", unit="", better="higher",
                  note="speed-up over the ratio of concurrency"),
    IndicatorInfo(name="cpu_seconds", label="CPU time", unit="s", better="lower",
                  note="user plus system, whole tree"),
    IndicatorInfo(name="user_seconds", label="user time", unit="s", better="lower"),
    IndicatorInfo(name="system_seconds", label="system time", unit="s", better="lower"),
    IndicatorInfo(name="run_queue_seconds", label="run-queue wait", unit="s", better="lower",
                  note="runnable, waiting for a CPU; all threads together"),
    IndicatorInfo(name="voluntary_switches", label="voluntary switches", better="lower"),
    IndicatorInfo(name="involuntary_switches", label="involuntary switches", better="lower"),
    IndicatorInfo(name="context_switches", label="context switches", better="lower",
                  note="voluntary and involuntary"),
    IndicatorInfo(name="migrations", label="migrations", better="lower",
                  note="moves from one CPU to another"),
    IndicatorInfo(name="threads_peak", label="threads at peak", better="neither"),
    IndicatorInfo(name="rss_bytes_max", label="peak memory", unit="B", better="lower",
                  note="largest process"),
    IndicatorInfo(name="rate_per_second", label="total rate", unit="1/s", better="higher",
                  note="reported operations, else whole runs, per second of wall time"),
    IndicatorInfo(name="rate_per_worker", label="rate per worker", unit="1/s", better="higher"),
    IndicatorInfo(name="seconds_per_operation", label="time per operation", unit="s",
                  better="lower", note="wall time over reported operations: no latency, many may "
                  "be under way at once"),
    IndicatorInfo(name="cpu_seconds_per_operation", label="CPU time per operation", unit="s",
                  better="lower", note="of the measured role, over reported operations"),
    IndicatorInfo(name="switches_per_operation", label="switches per operation", better="lower",
                  note="of the measured role, voluntary and involuntary"),
    IndicatorInfo(name="run_seconds", label="run time", unit="s", better="lower",
                  note="release to exit, start-up included"),
    IndicatorInfo(name="run_cpu_seconds", label="CPU time of the run", unit="s", better="lower",
                  note="whole life, start-up included"),
    IndicatorInfo(name="cpus_used", label="CPUs used", better="higher",
                  note="CPU time over wall time"),
    IndicatorInfo(name="minor_faults", label="minor faults", better="lower"),
    IndicatorInfo(name="major_faults", label="major faults", better="lower"),
)  # fmt: skip

#: Roles that give a server no work while it is measured.
NO_CLIENTS = ("background", "fill", "verify")

#: What is derived from an indicator that each worker reports, by the ending of its name.
FAIRNESS: dict[str, IndicatorInfo] = {
    info.name: info
    for info in (
        IndicatorInfo(name="jain", label="Jain's fairness", better="higher",
                      note="over workers: 1/n if one has all, 1 for equal shares"),
        IndicatorInfo(name="cv", label="CV over workers", better="lower",
                      note="standard deviation of the workers' shares over their mean"),
        IndicatorInfo(name="cv_floor", label="Poisson floor of the CV",
                      note="1/√mean: what chance alone gives to counts"),
        IndicatorInfo(name="min_over_mean", label="worst worker over mean", better="higher",
                      note="0 is starvation"),
        IndicatorInfo(name="max_over_min", label="best over worst worker", better="lower"),
        IndicatorInfo(name="gini", label="Gini over workers", better="lower"),
        IndicatorInfo(name="range_over_mean", label="range over mean of workers", better="lower",
                      note="best less worst worker over their mean"),
        IndicatorInfo(name="jain_window_min", label="Jain's fairness, worst window",
                      better="higher", note="over the workers' successive reports"),
    )
}  # fmt: skip

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


#: What probes read; wall time and whatever a program reports have the program's own clock.
_PROBED = {*_COUNTS, *_TIMES, "context_switches", "cpus_used"}


def is_probed(indicator: str) -> bool:
    """Does it come from readings of a phase's begin and end, of whichever role?"""
    name = indicator.rpartition(".")[2]
    return _PER_OPERATION.get(name, name) in _PROBED


#: Why there is nothing per operation where operations are counted, and came to none.
NOTHING_DONE = "no operation was done in the measured time"

_PER_OPERATION = {
    "seconds_per_operation": "wall_seconds",
    "cpu_seconds_per_operation": "cpu_seconds",
    "switches_per_operation": "context_switches",
}


class Measures(NamedTuple):
    """Figures of one trial: values, units of reported ones, and why others are absent."""

    values: dict[str, float]
    units: dict[str, str]
    absent: dict[str, str]


class MissedExtractError(Exception):
    """An ``--extract`` pattern matched nothing in a trial's output."""

    def __init__(self, extract: Extract, excerpt: str) -> None:
        self.extract = extract
        self.excerpt = excerpt
        super().__init__(extract.name)


def measure(record: TrialRecord, target: str, extracts: tuple[Extract, ...] = (),
            work_level: float | None = None) -> Measures:  # fmt: skip
    """All figures of a trial.

    Raises:
        MissedExtractError: a pattern matched nothing in the target's output.
    """
    result = Measures({}, {}, {})
    for role in record.roles:
        _role_figures(role, "" if role.name == target else f"{role.name}.", result)
    result.values.update(cpu_figures(record))
    main = record.role(target)
    if main is not None:
        for extract in extracts:
            result.values[extract.name] = extracted(extract, main)
            result.units[extract.name] = extract.unit
        _rates(result, _operations(result, record, target), work_level)
    return result


def extracted(extract: Extract, role: RoleRecord) -> float:
    """Group 1 of the last match in standard output, else in standard error.

    Raises:
        MissedExtractError: no match, or the group is no number.
    """
    pattern = re.compile(extract.pattern, re.MULTILINE)
    for output in (role.stdout, role.stderr):
        matches = pattern.findall(output.text())
        if matches:
            last = matches[-1] if isinstance(matches[-1], str) else matches[-1][0]
            try:
                return float(last.replace(",", ""))
            except ValueError:
                break
    text = role.stdout.text().strip() or role.stderr.text().strip()
    raise MissedExtractError(extract, text[-200:])


def _role_figures(role: RoleRecord, prefix: str, result: Measures) -> None:
    phases = [phase for phase in role.phases if phase.name == MEASURE_PHASE and not phase.open]
    usages = [phase.usage for phase in phases] or [role.usage]
    walls = [phase.wall_ns for phase in phases] or [role.wall_ns]
    values, absent = result.values, result.absent
    values[f"{prefix}wall_seconds"] = sum(walls) / 1e9
    values[f"{prefix}run_seconds"] = role.wall_ns / 1e9
    for name, field in _TIMES.items():
        _add(f"{prefix}{name}", field, usages, 1e-9, values, absent)
    for name in _COUNTS:
        _add(f"{prefix}{name}", name, usages, 1, values, absent)
    _add(f"{prefix}run_cpu_seconds", "cpu_ns", [role.usage], 1e-9, values, absent)
    _combine(prefix, values, absent)
    _add(f"{prefix}rss_bytes_max", "rss_bytes_max", [role.usage], 1, values, absent)
    if role.threads.peak is None:
        absent[f"{prefix}threads_peak"] = role.threads.absent.get("peak", "not read")
    else:
        values[f"{prefix}threads_peak"] = role.threads.peak
    for line in role.indicators:
        if line.worker is None:
            values[prefix + line.indicator] = line.value
            result.units[prefix + line.indicator] = line.unit or ""
    _fairness(role, prefix, result)
    figures, reasons = thread_figures(role)
    values.update({prefix + name: figure for name, figure in figures.items()})
    absent.update({prefix + name: reason for name, reason in reasons.items()})


def _combine(prefix: str, values: dict[str, float], absent: dict[str, str]) -> None:
    """Figures made of two others; absent for the reason of the one that is."""
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


def fairness_info(name: str) -> IndicatorInfo | None:
    """The description of a figure of fairness by its name, ``worker_operations_jain``."""
    endings = sorted(FAIRNESS, key=len, reverse=True)
    ending = next((ending for ending in endings if name.endswith(f"_{ending}")), None)
    if ending is None:
        return None
    of = name.removesuffix(f"_{ending}").replace("_", " ")
    return msgspec.structs.replace(
        FAIRNESS[ending], name=name, label=f"{of}: {FAIRNESS[ending].label}"
    )


def _fairness(role: RoleRecord, prefix: str, result: Measures) -> None:
    """How evenly each indicator is spread over the workers that reported it. Successive lines
    of a worker are windows, and their sum its share."""
    series: dict[str, dict[str, list[float]]] = {}
    for line in role.indicators:
        if line.worker is not None:
            series.setdefault(line.indicator, {}).setdefault(line.worker, []).append(line.value)
    for indicator, workers in series.items():
        name = f"{prefix}{indicator}"
        shares = [math.fsum(values) for values in workers.values()]
        try:
            figures = fairness(shares)
        except ValueError as error:
            result.absent.update({f"{name}_{ending}": str(error) for ending in Fairness._fields})
            continue
        for ending, value in figures._asdict().items():
            if math.isfinite(value):
                result.values[f"{name}_{ending}"] = value
            else:
                result.absent[f"{name}_{ending}"] = "a worker has nothing"
        if all(share == int(share) for share in shares):
            result.values[f"{name}_cv_floor"] = poisson_floor(shares)
        in_time = [window for window in windows(list(workers.values())) if any(window)]
        if len(in_time) > 1:
            worst = min(fairness(window).jain for window in in_time)
            result.values[f"{name}_jain_window_min"] = worst


def _add(name: str, field: str, usages: list[Usage], factor: float,
         values: dict[str, float], absent: dict[str, str]) -> None:  # fmt: skip
    readings = [getattr(usage, field) for usage in usages]
    if None in readings:
        missing = usages[readings.index(None)]
        absent[name] = missing.absent.get(field, "the runner gave no reason")
    else:
        values[name] = sum(readings) * factor


def _operations(result: Measures, record: TrialRecord, target: str) -> float | None:
    """Operations that the measured role reported, else those of its clients together."""
    own = result.values.get("operations")
    if own is not None:
        return own
    names = [role.name for role in record.roles if role.name != target]
    done = [
        result.values[f"{name}.operations"]
        for name in names
        if not name.startswith(NO_CLIENTS) and f"{name}.operations" in result.values
    ]
    return math.fsum(done) if done else None


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
        if operations == 0:
            result.absent[name] = NOTHING_DONE
        elif of in values:
            values[name] = values[of] / operations
        else:
            result.absent[name] = result.absent.get(of, "not read")
