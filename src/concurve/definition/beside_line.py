"""The server beside the command of ``concurve sweep``, from options: one that each trial starts,
one that runs already, or one elsewhere."""

from __future__ import annotations

import re
import shlex

import msgspec

from concurve.definition.attaching import attached_role
from concurve.definition.readiness import REMEDY, made_ready, parse_ready
from concurve.definition.remote import remote_arguments, remote_role
from concurve.definition.study import Role
from concurve.errors import StudyError

#: The name of the role.
NAME = "server"

#: How an address begins. In ``DATABASE_URL=postgres://… ./serve`` one stands within a command.
_SCHEME = re.compile(r"[A-Za-z{][\w+.{}-]*://")


class Beside(msgspec.Struct, frozen=True, kw_only=True):
    """The texts of the options. ``server`` is a command, or the URL of a server elsewhere."""

    server: str | None = None
    ready: str | None = None
    ready_within: str | None = None
    attach: str | None = None
    counters: str | None = None

    @property
    def is_address(self) -> bool:
        """Is the server given by its address?"""
        return self.server is not None and _SCHEME.match(self.server) is not None


def beside_role(given: Beside, name: str = NAME) -> Role | None:
    """The role that the options ask for, if any.

    Raises:
        StudyError: options that contradict each other, or a malformed one.
    """
    if given.attach is not None:
        return _attached(given, name)
    if given.server is None:
        _refuse(given, ("ready", "ready_within", "counters"), "without --server")
        return None
    if given.is_address:
        _refuse(given, ("ready", "ready_within"), "beside the address of a server elsewhere")
        return remote_role(name, given.server, parse_counters(given.counters))
    _refuse(given, ("counters",), "beside a --server that is started here")
    return started_role(name, given.server, given)


def started_role(name: str, command: str, given: Beside) -> Role:
    """A server that each trial starts.

    Raises:
        StudyError: no command, or none of the ways to see that it is ready.
    """
    if given.ready is None:
        raise StudyError(
            f"--server {command!r}: when is it ready for the command?", f"--ready {REMEDY}"
        )
    role = Role(name=name, command=split_command(command, "--server"), end="serve")
    return made_ready(
        role, parse_ready(given.ready, "--ready"), given.ready_within, "--ready-within"
    )


def split_command(text: str, option: str) -> tuple[str, ...]:
    """A command line as a shell would split it.

    Raises:
        StudyError: open quotes, or nothing at all.
    """
    try:
        argv = tuple(shlex.split(text))
    except ValueError as error:
        raise StudyError(f"{option} {text!r}: {error}", "close the quotes") from error
    if not argv or not argv[0]:
        raise StudyError(f"{option} {text!r}: no command", f"{option} 'PROGRAM ARGUMENT …'")
    return argv


def parse_counters(text: str | None) -> tuple[str, ...]:
    """``http://…`` or ``command:…`` as the arguments of a remote role.

    Raises:
        StudyError: neither of the two.
    """
    if text is None:
        return ()
    if text.startswith("command:"):
        command = split_command(text.removeprefix("command:"), "--counters command:")
        return remote_arguments(None, command, (), "--counters")
    return remote_arguments(text, None, (), "--counters")


def _attached(given: Beside, name: str) -> Role:
    _refuse(
        given,
        ("server", "ready", "ready_within", "counters"),
        "beside --attach: the attached process runs already",
    )
    return attached_role(name, given.attach or "", "--attach")


def _refuse(given: Beside, names: tuple[str, ...], why: str) -> None:
    for name in names:
        if getattr(given, name) is not None:
            option = f"--{name.replace('_', '-')}"
            raise StudyError(f"{option} {why}", f"no {option}")
