"""Searches for the greatest rate that keeps an objective (``concurve-load --slo``): one at a time
in a trial. Each would vary its rate while the others vary theirs, and the rate that one finds would
hold for no load that is known. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath

from concurve.definition.study import Role
from concurve.errors import StudyError
from concurve.words import listed

#: The program that searches, and the options by which it does: with a rate it checks that one.
PROGRAM = "load"
_COMMAND = "concurve-load"
_OBJECTIVES, _RATE = "--slo", "--rate"

_CHECK = (
    "--rate R beside --slo: each load then sends R, and says whether it keeps the objectives while "
    "all of them send"
)


def is_search(program: str | None, argv: Sequence[str]) -> bool:
    """Does our program of loads, named as such or by its command, search for a rate?"""
    is_ours = program == PROGRAM or (bool(argv) and PurePath(argv[0]).name == _COMMAND)
    return is_ours and _has(argv, _OBJECTIVES) and not _has(argv, _RATE)


def check_searches(roles: Sequence[Role], searching: Mapping[str, int], where: str) -> None:
    """Refuse a trial in which several loads search at once. ``searching`` has the number of copies
    of each role that searches; ``where`` names the trial in errors.

    Raises:
        StudyError: names the roles and the remedy.
    """
    for name, copies in searching.items():
        if copies > 1:
            raise StudyError(
                f"{where}role {name}: {copies} copies would each search for the rate that keeps "
                "--slo, while the others vary theirs",
                f"copies = 1, on one host, with more --sessions; or {_CHECK}",
            )
    names = list(searching)
    for number, name in enumerate(names):
        for other in names[number + 1 :]:
            if not _waits(roles, name, other) and not _waits(roles, other, name):
                raise StudyError(
                    f"{where}roles {listed([name, other])} would both search for the rate that "
                    "keeps --slo, at once",
                    f'after = ["{name}"] for {other}; or {_CHECK}',
                )


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
