"""The figures of the copies of a role together: a load of several processes is one load. Pure.

Counts are added, greatest values are the greatest of all, and percentiles are those of the added
histograms, bin by bin: a mean of percentiles is no percentile. The figures of each copy stay beside
them. A figure that one of the copies did not report is absent, never that of the others alone;
but where one copy leads the others, it reports some figures for all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from concurve.definition.inventory import EACH
from concurve.definition.programs import Copies, Led, program
from concurve.definition.study import Role, Study
from concurve.histogram import Histogram, decode, merged
from concurve.readings.fairness_measures import fairness_figures
from concurve.wire.record import RoleRecord, TrialRecord

#: The percentiles of a merged histogram, by the endings of their names.
PERCENTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p999": 0.999, "p9999": 0.9999}

#: What is measured of every role and is that of all copies as a sum, or as the greatest.
_SUMS = (
    "cpu_seconds",
    "user_seconds",
    "system_seconds",
    "run_queue_seconds",
    "voluntary_switches",
    "involuntary_switches",
    "context_switches",
    "migrations",
    "cache_misses",
    "cpus_used",
)
_GREATEST = ("wall_seconds",)


class Copied(NamedTuple):
    """A role of a study of which a trial may have several copies, and how their figures are
    merged."""

    role: str
    rules: Copies

    def of(self, record: TrialRecord) -> list[RoleRecord]:
        """The copies in a record; none if the trial has one process of the role, which then has
        the role's own name."""
        return [role for role in record.roles if is_copy(role.name, self.role)]


def is_copy(name: str, role: str) -> bool:
    """Is it the name of one of several copies of a role?"""
    base, dash, number = name.rpartition("-")
    return bool(dash) and base == role and number.isdecimal()


def is_of(name: str, role: str) -> bool:
    """Is it the name of a role, or of one of its copies?"""
    return name == role or is_copy(name, role)


class MergedFigures(NamedTuple):
    """Figures by name, the units of reported ones, and why others are absent."""

    values: dict[str, float]
    units: dict[str, str]
    absent: dict[str, str]


def copied_roles(study: Study) -> tuple[Copied, ...]:
    """The roles of a study that end by themselves and of which a trial may have several copies."""
    return tuple(
        Copied(role.name, _rules_of(role))
        for role in study.roles
        if role.end == "exit" and (role.copies != "1" or role.host.partition(":")[0] == EACH)
    )


def _rules_of(role: Role) -> Copies:
    table = None if role.program is None else program(role.program)
    return Copies() if table is None else table.copies


def merged_figures(
    record: TrialRecord, copied: Iterable[Copied], figures: Mapping[str, float]
) -> MergedFigures:
    """The figures of the copies together, as ``ROLE.NAME``; ``figures`` are those of each copy."""
    result = MergedFigures({}, {}, {})
    for role in copied:
        copies = role.of(record)
        if len(copies) > 1:
            _merge(role, copies, figures, result)
    return result


def _merge(
    role: Copied, copies: list[RoleRecord], figures: Mapping[str, float], result: MergedFigures
) -> None:
    names = [copy.name for copy in copies]
    leader = _leader(role.rules.led, copies)
    for rule, wanted in (
        (math.fsum, (*_SUMS, *role.rules.sum)),
        (max, (*_GREATEST, *role.rules.greatest)),
    ):
        for name in wanted:
            _combine(role.role, name, names, rule, figures, result)
    if role.rules.led is not None and leader is not None:
        _take(role.role, role.rules.led.figures, leader, figures, result)
    for base, parts in role.rules.histograms.items():
        _distribution(role.role, base, parts, copies, result)
    fair, unfair = fairness_figures(_all_workers(role.role, copies))
    result.values.update({f"{role.role}.{name}": value for name, value in fair.items()})
    result.absent.update({f"{role.role}.{name}": why for name, why in unfair.items()})
    units = {line.indicator: line.unit or "" for copy in copies for line in copy.indicators}
    for name, unit in units.items():
        if f"{role.role}.{name}" in result.values:
            result.units[f"{role.role}.{name}"] = unit


def _leader(led: Led | None, copies: list[RoleRecord]) -> str | None:
    """The copy that reports for all, if all others say that one does."""
    if led is None:
        return None
    leads = [copy.name for copy in copies if copy.facts.get(led.fact) != led.value]
    return leads[0] if len(leads) == 1 else None


def _take(
    role: str,
    names: Iterable[str],
    leader: str,
    figures: Mapping[str, float],
    result: MergedFigures,
) -> None:
    """The figures that one copy reported for all, as far as it has them."""
    for name in names:
        if f"{leader}.{name}" in figures:
            result.absent.pop(f"{role}.{name}", None)
            result.values[f"{role}.{name}"] = figures[f"{leader}.{name}"]
        else:
            result.absent[f"{role}.{name}"] = f"{leader} reported none for all copies"


def _combine(
    role: str,
    name: str,
    copies: Sequence[str],
    rule: Callable[[list[float]], float],
    figures: Mapping[str, float],
    result: MergedFigures,
) -> None:
    """A figure of all copies, if each has it."""
    found = {copy: figures[f"{copy}.{name}"] for copy in copies if f"{copy}.{name}" in figures}
    if len(found) == len(copies):
        result.values[f"{role}.{name}"] = rule(list(found.values()))
    elif found:
        missing = next(copy for copy in copies if copy not in found)
        result.absent[f"{role}.{name}"] = f"{missing} did not report it"


def _distribution(
    role: str, base: str, parts: Sequence[str], copies: list[RoleRecord], result: MergedFigures
) -> None:
    """The percentiles of histograms of all copies: the first of ``parts`` is that of each copy,
    the others are added where a copy has them."""
    if not any(line.histogram == parts[0] for copy in copies for line in copy.histograms):
        return  # as in a closed loop, which has no times from sending
    found: list[Histogram] = []
    for copy in copies:
        lines = {line.histogram: line for line in copy.histograms if line.worker is None}
        if parts[0] not in lines:
            result.absent[f"{role}.{base}"] = f"{copy.name} reported no histogram {parts[0]!r}"
            return
        try:
            found.extend(decode(lines[part].encoded) for part in parts if part in lines)
        except ValueError as error:
            result.absent[f"{role}.{base}"] = f"a histogram of {copy.name} cannot be read: {error}"
            return
    try:
        whole = merged(found)
    except ValueError as error:
        result.absent[f"{role}.{base}"] = str(error)
        return
    if whole.total == 0:
        return
    values = {name: float(whole.quantile(share)) for name, share in PERCENTILES.items()}
    values |= {"mean": whole.mean(), "max": float(whole.greatest())}
    result.values.update({f"{role}.{base}_{name}": value for name, value in values.items()})


def _all_workers(role: str, copies: list[RoleRecord]) -> RoleRecord:
    """A role that has the workers of all copies."""
    return RoleRecord(
        name=role,
        indicators=tuple(
            msgspec.structs.replace(line, worker=f"{copy.name}/{line.worker}")
            for copy in copies
            for line in copy.indicators
            if line.worker is not None
        ),
    )
