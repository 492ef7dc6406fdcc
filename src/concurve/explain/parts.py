"""The roles of a study whose time is explained, and how many operations they did."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from concurve.definition.remote import PROGRAM as REMOTE
from concurve.definition.study import Extract, Study
from concurve.readings.extraction import MissedExtractError, extracted
from concurve.readings.measures import NO_CLIENTS
from concurve.wire.record import RoleRecord, TrialRecord

_CLIENTS = ("load", "client")


class Parts(NamedTuple):
    """The role whose time is explained, and the other roles of a trial, by name.

    ``subject``: the role whose threads do the operations. ``clients`` give it work; ``serving``:
    it ends when they have ended.
    """

    subject: str
    clients: tuple[str, ...]
    serving: bool
    extracts: tuple[Extract, ...] = ()


def parts_of(study: Study) -> Parts:
    """Which role is explained: the measured one, or the server that it loads (a study may measure
    its client, named ``load`` or ``client``)."""
    target = next(role for role in study.roles if role.name == study.target)
    if target.end == "serve":
        clients = tuple(
            role.name
            for role in study.roles
            if role.end == "exit" and not role.name.startswith(NO_CLIENTS)
        )
        return Parts(target.name, clients, True, study.extracts)
    servers = [
        role.name
        for role in study.roles
        if role.end == "serve" and not role.name.startswith(NO_CLIENTS) and role.program != REMOTE
    ]
    if servers and target.name.startswith(_CLIENTS):
        return Parts(servers[0], (target.name,), True, study.extracts)
    return Parts(target.name, (), False, study.extracts)


def is_role(name: str, role: str) -> bool:
    """Is ``name`` that role, or one of its copies?"""
    return name == role or bool(re.fullmatch(re.escape(role) + r"-\d+", name))


def clients_of(record: TrialRecord, parts: Parts) -> list[str]:
    """The roles that load it, each copy by its own name."""
    names = (role.name for role in record.roles)
    return [name for name in names if any(is_role(name, client) for client in parts.clients)]


def operations_of(record: TrialRecord, parts: Parts) -> tuple[float, bool]:
    """The operations that the subject reported, else its clients; else the run counts as one."""
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
        if extract.name == "operations" and not extract.role:
            try:
                return [extracted(extract, role)]
            except MissedExtractError:
                continue
    return []
