"""``--place ROLE=HOST``: another host for a role of a study, or (``*=HOST``) for every role."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from concurve.definition.origins import COMMAND_LINE, Origins
from concurve.definition.remote import PROGRAM as REMOTE
from concurve.definition.study import Role, Study
from concurve.definition.study_check import check
from concurve.errors import StudyError
from concurve.words import meant

#: In place of a role: all of them.
EVERY = "*"


def placed_on(study: Study, texts: Sequence[str]) -> Study:
    """The study with the hosts that the texts give to its roles; a role that is named twice has the
    last one. ``*`` stands for every role that does not run already.

    Raises:
        StudyError: not that form, no such role, or a role that runs already.
    """
    hosts: dict[str, str] = {}
    names = [role.name for role in study.roles]
    for text in texts:
        name, equals, host = text.partition("=")
        if not equals or not host:
            raise StudyError(f"--place {text!r}: not ROLE=HOST", f"--place {names[0]}=HOST")
        if name == EVERY:
            hosts |= {role.name: host for role in study.roles if _is_ours(role)}
            continue
        if name not in names:
            raise StudyError(
                f"--place {text!r}: the study has no role {name!r}",
                meant(name, names),
            )
        hosts[name] = host
    for role in study.roles:
        if role.name in hosts and role.attach is not None:
            raise StudyError(
                f"--place {role.name}={hosts[role.name]}: the role runs already, on this machine",
                "no --place for it",
            )
    if not hosts:
        return study
    roles = tuple(
        msgspec.structs.replace(role, host=hosts.get(role.name, role.host)) for role in study.roles
    )
    placed = msgspec.structs.replace(study, roles=roles)
    check(placed, Origins(COMMAND_LINE))
    return placed


def _is_ours(role: Role) -> bool:
    """Is it a role whose processes a trial starts?"""
    return role.attach is None and role.program != REMOTE
