"""A remote role: a server at an address, whose processes are not seen; its counters are read before
and after a trial."""

from __future__ import annotations

import urllib.parse
from collections.abc import Sequence

from concurve.definition.study import Role
from concurve.errors import StudyError

#: What only a shell would understand in a command.
_OF_SHELL = ("|", "&&", "||", ";", ">", "<", "2>&1")

#: The packaged program that reads the counters.
PROGRAM = "remote"


def remote_role(name: str, address: str, counters: Sequence[str] = ()) -> Role:
    """The role of a server at an address; ``counters`` are of :func:`remote_arguments`."""
    return Role(
        name=name,
        program=PROGRAM,
        command=(address, *counters),
        end="serve",
        ready="report",
    )


def remote_arguments(
    http: str | None, command: Sequence[str] | None, names: Sequence[str], where: str
) -> tuple[str, ...]:
    """The arguments by which the packaged program finds the counters of a remote role.

    Raises:
        StudyError: neither of the two ways, or both, or a URL that is not HTTP's.
    """
    if (http is None) == (command is None):
        raise StudyError(
            f"{where}: counters: needs either http or command",
            'counters = { http = "http://db1:9121/metrics" }, or { command = ["./counters"] }',
        )
    chosen = tuple(argument for name in names for argument in ("--name", name))
    if http is not None:
        parts = urllib.parse.urlsplit(http)
        if parts.scheme not in ("http", "https") or not (parts.netloc or "{" in http):
            raise StudyError(
                f"{where}: counters: {http!r} is no URL of HTTP", "http://db1:9121/metrics"
            )
        if "@" in parts.netloc:
            raise StudyError(
                f"{where}: counters: the URL has a login, and would be stored with it",
                "a command that logs in, with the password in a variable: command:sh -c "
                f"'curl -s -u \"$LOGIN\" {parts.scheme}://{parts.netloc.rpartition('@')[2]}…'",
            )
        return (*chosen, "--http", http)
    if not command or not command[0]:
        raise StudyError(f"{where}: counters: command is empty", 'command = ["./counters"]')
    if of_shell := [word for word in command[1:] if word in _OF_SHELL]:
        raise StudyError(
            f"{where}: counters: no shell reads the command, so {of_shell[0]} goes to {command[0]}",
            "sh -c 'PROGRAM … | …'",
        )
    return (*chosen, "--command", *command)
