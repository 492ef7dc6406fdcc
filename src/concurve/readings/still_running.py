"""Roles that keep a trial from its end although what they serve has ended. Pure."""

from __future__ import annotations

from concurve import words
from concurve.definition.study import Role, Study
from concurve.wire.record import RoleRecord, TrialRecord

#: What is said of them, in the words that say that a trial ran out of time for them.
STILL_RAN = ' still ran, without end = "serve"'


def still_running(study: Study, record: TrialRecord) -> str:
    """Who kept a trial that was stopped from its end, as a clause: roles that are waited for, while
    the measured one, or the load of the measured one, had ended. Empty where none did: then the
    program itself was too slow, or hangs."""
    waited = [role for role in study.roles if role.end == "exit" and role.attach is None]
    ended = [role for role in waited if _have_ended(_records(role, record))]
    running = [
        role
        for role in waited
        if role.purpose in ("", "server")
        and any(it.ended_by == "killed" for it in _records(role, record))
        and any(_is_load_of(other, role, study) for other in ended)
    ]
    if not running:
        return ""
    done = _named([role for role in ended if any(_is_load_of(role, it, study) for it in running)])
    return f"{done} had ended, and {_named(running)}{STILL_RAN}"


def _is_load_of(load: Role, server: Role, study: Study) -> bool:
    """May the one give work to the other? One of the two is measured, and the server does not wait
    for what only prepares."""
    if load.purpose in ("setup", "background") or load.name in server.after:
        return False
    return study.target in (load.name, server.name)


def _records(role: Role, record: TrialRecord) -> list[RoleRecord]:
    """Those of a role, or of its copies: ``load-1``."""
    found = []
    for it in record.roles:
        name, _, number = it.name.rpartition("-")
        if it.name == role.name or (name == role.name and number.isdecimal()):
            found.append(it)
    return found


def _have_ended(records: list[RoleRecord]) -> bool:
    return bool(records) and all(it.ended_by == "itself" for it in records)


def _named(roles: list[Role]) -> str:
    return words.listed([f"role {role.name}" for role in roles])
