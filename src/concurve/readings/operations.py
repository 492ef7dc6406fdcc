"""How many operations a trial did: the one count that its rates and its explanation share. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal, NamedTuple

from concurve.definition.indicator_names import IndicatorName
from concurve.definition.purposes import Purposes, purposes_of
from concurve.definition.study import Extract, Study
from concurve.readings.copies import Copied, copied_roles
from concurve.readings.extraction import MissedExtractError, extracted
from concurve.wire.record import TrialRecord

Counted = Literal["reported", "rate", "units", "run"]

#: The indicator by which a program says how many operations it did.
OPERATIONS = "operations"


class Asked(NamedTuple):
    """What a study asks of the record of a trial: what its roles are for, the figures to read out
    of their output, whether the work scales with the workers, which roles may have several copies,
    and by which of the figures cells compare, if that is a rate."""

    roles: Purposes
    extracts: tuple[Extract, ...] = ()
    work_amount: str = ""
    copied: tuple[Copied, ...] = ()
    rate: Extract | None = None


class Operations(NamedTuple):
    """A number, and what it counts: ``reported`` operations, those of the ``rate`` by which cells
    compare, ``units`` of work (one for each worker), or the whole ``run`` as one."""

    number: float
    of: Counted


def asked_of(study: Study) -> Asked:
    """What a study asks of each record."""
    rates = (it for it in study.extracts if it.name == study.primary and it.unit.endswith("/s"))
    return Asked(
        purposes_of(study),
        study.extracts,
        study.work_amount,
        copied_roles(study),
        next(rates, None),
    )


def operations_of(
    record: TrialRecord, asked: Asked, figures: Mapping[str, float], work_level: float | None
) -> float | None:
    """The operations that a trial did: those of the measured role, else those of its clients
    together, or of the server that it loads; else, where the work scales, the work level.

    ``figures`` are those of the trial by name, reported or read out of the output. ``None`` where
    nothing counts.
    """
    roles = asked.roles
    if OPERATIONS in figures:
        return figures[OPERATIONS]
    clients = [role.name for role in record.roles if roles.is_client(role.name)]
    for names in (clients, [roles.subject]):
        counts = [str(IndicatorName(name, OPERATIONS)) for name in names]
        done = [figures[name] for name in counts if name in figures]
        if done:
            return math.fsum(done)
    return work_level if asked.work_amount == "scales" else None


def count_operations(record: TrialRecord, asked: Asked, work_level: float | None) -> Operations:
    """The operations of a record whose other figures are not needed: where nothing counts them, its
    rate times its wall time, if cells compare by one. A run without any counts as one."""
    figures = _counts(record, asked)
    count = operations_of(record, asked, figures, work_level)
    if figures and count is not None:
        return Operations(count, "reported")
    done = _by_rate(record, asked)
    if done is not None:
        return Operations(done, "rate")
    return Operations(1.0, "run") if count is None else Operations(count, "units")


def _by_rate(record: TrialRecord, asked: Asked) -> float | None:
    if asked.rate is None:
        return None
    printing = record.role(asked.rate.role or asked.roles.measured)
    if printing is None:
        return None
    try:
        done = extracted(asked.rate, printing) * printing.wall_ns / 1e9
    except MissedExtractError:
        return None
    return done if 0 < done < math.inf else None


def _counts(record: TrialRecord, asked: Asked) -> dict[str, float]:
    """The counts of operations among the figures of a record, by name."""
    figures: dict[str, float] = {}
    for role in record.roles:
        name = IndicatorName("" if role.name == asked.roles.measured else role.name, OPERATIONS)
        for line in role.indicators:
            if line.indicator == OPERATIONS and line.worker is None:
                figures[str(name)] = line.value
    for extract in asked.extracts:
        printing = record.role(extract.role or asked.roles.measured)
        if printing is None or extract.name != str(IndicatorName(extract.role, OPERATIONS)):
            continue
        try:
            figures[extract.name] = extracted(extract, printing)
        except MissedExtractError:
            continue
    return figures
