"""When a role is ready, as a text: ``report``, ``tcp:6379``, ``line:Ready to accept`` …"""

from __future__ import annotations

import re
import shlex
from typing import Literal, NamedTuple

from concurve.errors import StudyError
from concurve.wire.spec import ReadyProbe

#: Seconds for a role to become ready as it is seen from outside, if a study gives no other limit.
READY_SECONDS = 60.0

REMEDY = "tcp:PORT, tcp:HOST:PORT, line:REGEX, command:COMMAND, report or launch"

_LOCAL = "127.0.0.1"

#: What the patterns of the runner lack beside those of Python.
_UNKNOWN_TO_RUNNER = re.compile(r"\(\?(?:[=!]|<[=!]|P=|\()|\\[1-9]")


class Readiness(NamedTuple):
    """When a role is ready: at once, or when it reports so; and what is seen from outside then."""

    ready: Literal["launch", "report"] = "launch"
    probe: ReadyProbe | None = None


def parse_ready(text: str, where: str) -> Readiness:
    """The readiness that a text asks for; placeholders stay.

    Raises:
        StudyError: names ``where`` and the remedy.
    """
    if text == "launch":
        return Readiness("launch")
    if text == "report":
        return Readiness("report")
    kind, colon, rest = text.partition(":")
    if not colon or not rest.strip() or kind not in ("tcp", "line", "command"):
        raise StudyError(f"{where}: {text!r} does not say when a role is ready", REMEDY)
    if kind == "tcp":
        return Readiness(probe=ReadyProbe(tcp=_address(rest.strip(), where)))
    if kind == "line":
        _check_pattern(rest, where)
        return Readiness(probe=ReadyProbe(line=rest))
    try:
        argv = tuple(shlex.split(rest))
    except ValueError as error:
        raise StudyError(f"{where}: {rest!r} is no command: {error}", "close the quotes") from error
    return Readiness(probe=ReadyProbe(command=argv))


def check_address(text: str, where: str) -> None:
    """Refuse a rendered address that is not ``HOST:PORT``.

    Raises:
        StudyError: names ``where`` and the remedy.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or not 1 <= int(port) <= 65535:
        raise StudyError(
            f"{where}: {text!r} is no address of a TCP port", "tcp:6379 or tcp:db1:6379"
        )


def _address(text: str, where: str) -> str:
    host, _, port = text.rpartition(":")
    address = f"{host or _LOCAL}:{port}"
    if "{" not in address:
        check_address(address, where)
    return address


def _check_pattern(text: str, where: str) -> None:
    try:
        re.compile(text)
    except re.error as error:
        raise StudyError(
            f"{where}: '{text}' is no regular expression: {error}", "line:Ready to accept"
        ) from error
    if _UNKNOWN_TO_RUNNER.search(text):
        raise StudyError(
            f"{where}: '{text}' has look-around or back-references, which are not available here",
            "a plainer pattern",
        )
