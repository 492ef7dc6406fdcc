"""Searches for the greatest rate that keeps an objective (``concurve-load --slo``). The copies of a
role search together: the first leads, the others follow it. Two roles that would each search at
once, with loads of their own, are refused: each would vary its rate while the other varies its own,
and the rate that one finds would hold for no load that is known. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath

import msgspec

from concurve.definition.study import Role
from concurve.errors import StudyError
from concurve.terms import Level
from concurve.wire.spec import RoleSpec, TrialSpec
from concurve.words import listed

#: The program that searches, and the options by which it does: with a rate it checks that one.
PROGRAM = "load"
_COMMAND = "concurve-load"
_OBJECTIVES, _RATE = "--slo", "--rate"

#: The options by which loads search together; who gave one of them has arranged that.
_LEAD, _LISTEN, _FOLLOW, _TOKEN_FROM = "--lead", "--listen", "--follow", "--token-from"

#: The variable with the token by which the loads of a search know each other.
TOKEN_VARIABLE = "CONCURVE_LOAD_TOKEN"

_CHECK = (
    "--rate R beside --slo: each load then sends R, and says whether it keeps the objectives while "
    "all of them send"
)


def is_search(program: str | None, argv: Sequence[str]) -> bool:
    """Does our program of loads, named as such or by its command, search for a rate?"""
    others = (_RATE, _LEAD, _FOLLOW)
    return (
        (program == PROGRAM or _calls_ours(argv))
        and _has(argv, _OBJECTIVES)
        and not any(_has(argv, it) for it in others)
    )


def is_by_several(spec: TrialSpec) -> bool:
    """Do several loads of a trial search together? Then it needs a port and a token for them."""
    return any(TOKEN_VARIABLE in role.env for role in spec.roles)


def together(
    copies: Sequence[RoleSpec], addresses: Mapping[str, str], port: Level, token: str
) -> tuple[RoleSpec, ...]:
    """The copies of a role that searches, as one search: the first leads the others.

    Args:
        addresses: of the hosts, by name; that of this machine has an empty name.
        port: where the first copy listens on its host.
        token: the secret of this search.
    """
    first, *others = copies
    if not others:
        return (first,)
    meeting = f"{addresses[first.host or '']}:{port}"
    leads = (_LEAD, str(len(others)), _LISTEN, meeting)
    return (
        _asked(first, leads, token),
        *(_asked(other, (_FOLLOW, meeting), token) for other in others),
    )


def _asked(spec: RoleSpec, options: Sequence[str], token: str) -> RoleSpec:
    return msgspec.structs.replace(
        spec,
        argv=(*spec.argv, *options, _TOKEN_FROM, TOKEN_VARIABLE),
        env={**spec.env, TOKEN_VARIABLE: token},
    )


def check_searches(roles: Sequence[Role], searching: Sequence[str], where: str) -> None:
    """Refuse a trial in which several roles search at once. ``searching`` names the roles that
    search; ``where`` names the trial in errors.

    Raises:
        StudyError: names the roles and the remedy.
    """
    for number, name in enumerate(searching):
        for other in searching[number + 1 :]:
            if not _waits(roles, name, other) and not _waits(roles, other, name):
                raise StudyError(
                    f"{where}roles {listed([name, other])} would both search for the rate that "
                    "keeps --slo, at once",
                    f'copies of one role, which search together; after = ["{name}"] for {other}; '
                    f"or {_CHECK}",
                )


def _calls_ours(argv: Sequence[str]) -> bool:
    """Is it a command line of our program? It may stand behind others, such as ``taskset -c 2``,
    but not as the value of an option; what a shell is told is not looked into."""
    for before, word, after in zip(["", *argv], argv, [*argv[1:], ""], strict=False):
        name, is_value = PurePath(word).name, before.startswith("-") and before != "--"
        if not is_value and (name == _COMMAND or (name == "concurve" and after == "load")):
            return True
    return False


def _has(argv: Sequence[str], option: str) -> bool:
    return any(word == option or word.startswith(f"{option}=") for word in argv)


def _waits(roles: Sequence[Role], name: str, other: str) -> bool:
    """Does a role begin only after the other has ended?"""
    after = {role.name: role.after for role in roles}
    waited, left = set[str](), list(after[name])
    while left:
        found = left.pop()
        if found not in waited:
            waited.add(found)
            left += after.get(found, ())
    return other in waited
