"""When a role is ready, as a text: ``report``, ``tcp:6379``, ``line:Ready to accept`` …"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Literal, NamedTuple

import msgspec

from concurve import words
from concurve.definition.patterns import check_for_runner
from concurve.definition.purposes import unawaited
from concurve.definition.study import FREE_PORT, Role, Study, uses
from concurve.definition.templates import placeholders, render
from concurve.definition.units import parse_duration
from concurve.errors import StudyError
from concurve.wire.spec import ReadyProbe

#: Seconds for a role to become ready as it is seen from outside, if a study gives no other limit.
READY_SECONDS = 60.0

REMEDY = "tcp:PORT, tcp:HOST:PORT, line:REGEX, command:COMMAND, report or launch"

_LOCAL = "127.0.0.1"


def nothing_waits(servers: Sequence[str], port: str) -> str:
    """That no role waits for these servers, and what to write; ``port`` is theirs."""
    accept = words.verb(len(servers), "accepts", "accept")
    return f'nothing waits until {words.listed(servers)} {accept} connections: ready = "tcp:{port}"'


def _unserving(study: Study) -> str:
    """That a role which takes the free port is no server by its words, while the measured one
    connects there; empty where there is none."""
    takers = [
        role for role in study.roles if any(FREE_PORT in placeholders(it) for it in role.command)
    ]
    names = [
        role.name
        for role in takers
        if role.name != study.target
        and role.end == "exit"
        and role.ready == "launch"
        and role.ready_probe is None
        and not role.purpose
    ]
    if study.target not in [role.name for role in takers] or len(names) != 1:
        return ""
    return (
        f"role {names[0]} has neither end nor ready: for a server that {study.target} connects to, "
        f'end = "serve" and ready = "tcp:{{{FREE_PORT}}}"'
    )


def _untold_port(study: Study) -> str:
    """That a role is to accept at the free port, and nothing in the study tells any program of it;
    empty where that is not so."""
    awaited = [role.name for role in study.roles if _awaits_free_port(role)]
    unprobed = tuple(msgspec.structs.replace(role, ready_probe=None) for role in study.roles)
    if not awaited or uses(msgspec.structs.replace(study, roles=unprobed), FREE_PORT):
        return ""
    free = f"{{{FREE_PORT}}}"
    return (
        f"{words.listed(awaited)} is to accept connections at tcp:{free}, and no command has "
        f"{free}: write it into those of server and client, or the server's own port into tcp:PORT"
    )


def _awaits_free_port(role: Role) -> bool:
    probe = role.ready_probe
    return probe is not None and probe.tcp is not None and FREE_PORT in placeholders(probe.tcp)


def unawaited_before(study: Study) -> str:
    """The same before a run, in which a load would find nobody, or that a server is awaited at a
    port of which it is not told; empty where neither is so."""
    if untold := _untold_port(study):
        return untold
    found = unawaited(study)
    if not found:
        return _unserving(study)
    if len(found) > 1:  # which of them has which port is not seen
        return f"{nothing_waits(list(found), 'PORT')}, each its own, or a load may find nobody"
    (port,) = found.values()
    return f"{nothing_waits(list(found), port)} (--ready tcp:{port}), or a load may find nobody"


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
        is_port = re.fullmatch(r"(?:[\w.-]+:)?(?:\d+|\{[\w-]+\})", text.strip())
        remedy = f"tcp:{text.strip()}" if is_port else REMEDY
        raise StudyError(f"{where}: {text!r} does not say when a role is ready", remedy)
    if kind == "tcp":
        return Readiness(probe=ReadyProbe(tcp=_address(rest.strip(), where)))
    if kind == "line":
        names = dict.fromkeys(placeholders(rest), "x")
        check_line(render(rest, names), where)
        return Readiness(probe=ReadyProbe(line=rest))
    try:
        argv = tuple(shlex.split(rest))
    except ValueError as error:
        raise StudyError(f"{where}: {rest!r} is no command: {error}", "close the quotes") from error
    return Readiness(probe=ReadyProbe(command=argv))


def made_ready(role: Role, readiness: Readiness, within: str | float | None, where: str) -> Role:
    """The role with its readiness, and the limit until then; ``where`` names the limit.

    Raises:
        StudyError: no time, or a limit on a role that is ready at once.
    """
    seconds = None if readiness.probe is None else READY_SECONDS
    if within is not None:
        if readiness == Readiness():
            raise StudyError(
                f"{where}: the role is ready as soon as it runs",
                f"a sign that it is ready: {REMEDY}; or no limit",
            )
        seconds = parse_duration(within, where)
    return msgspec.structs.replace(
        role, ready=readiness.ready, ready_probe=readiness.probe, ready_seconds=seconds
    )


def check_line(pattern: str, where: str) -> None:
    """Refuse a rendered pattern that the trial runner does not read as RE2 does.

    Raises:
        StudyError: names ``where`` and the remedy.
    """
    try:
        check_for_runner(pattern)
    except StudyError as error:
        raise StudyError(f"{where}: {error.what}", error.remedy) from error


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
