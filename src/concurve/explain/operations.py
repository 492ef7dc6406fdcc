"""How many operations a trial did."""

from __future__ import annotations

from collections.abc import Sequence

from concurve.definition.study import Extract
from concurve.explain.parts import Parts, is_role
from concurve.readings.extracts import MissedExtractError, extracted
from concurve.wire.record import RoleRecord, TrialRecord


def clients_of(record: TrialRecord, parts: Parts) -> list[str]:
    """The roles that load it, copies told apart."""
    names = (role.name for role in record.roles)
    return [name for name in names if any(is_role(name, client) for client in parts.clients)]


def operations_of(record: TrialRecord, parts: Parts) -> tuple[float, bool]:
    """Operations that the subject reported, else its clients; else the run is one."""
    subject = [role for role in record.roles if role.name == parts.subject]
    loading = clients_of(record, parts)
    clients = [role for role in record.roles if role.name in loading]
    for roles in (subject, clients):
        found = [done for role in roles for done in _reported(role, parts.extracts)]
        if found:
            return sum(found), True
    return 1.0, False


def _reported(role: RoleRecord, extracts: Sequence[Extract]) -> list[float]:
    lines = [
        line.value
        for line in role.indicators
        if line.indicator == "operations" and line.worker is None
    ]
    if lines:
        return lines[-1:]
    for extract in extracts:
        if extract.name == "operations":
            try:
                return [extracted(extract, role)]
            except MissedExtractError:
                continue
    return []
