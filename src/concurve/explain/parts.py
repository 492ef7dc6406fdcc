"""Whose time is explained: the roles of a study."""

from __future__ import annotations

import re
from typing import NamedTuple

from concurve.definition.study import Extract, Study
from concurve.readings.measures import NO_CLIENTS

_CLIENTS = ("load", "client")


class Parts(NamedTuple):
    """Whose time is explained, and who else is in a trial: names of roles.

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
        if role.end == "serve" and not role.name.startswith(NO_CLIENTS)
    ]
    if servers and target.name.startswith(_CLIENTS):
        return Parts(servers[0], (target.name,), True, study.extracts)
    return Parts(target.name, (), False, study.extracts)


def is_role(name: str, role: str) -> bool:
    """Is it that role, or one of its copies?"""
    return name == role or bool(re.fullmatch(re.escape(role) + r"-\d+", name))
