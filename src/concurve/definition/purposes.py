"""What the roles of a study are for: which one does the operations, which ones give it work, and
which only prepare or compete.

Never decided by the names of roles, which a user chooses. The study says who is measured, who
serves, who waits for whom, who connects to whom, and whose figures it asks for; some packaged
programs say it, too. Where that does not decide, the key ``purpose`` of a role does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import PurePath
from typing import NamedTuple

from concurve.definition.indicator_names import role_of
from concurve.definition.remote import PROGRAM as REMOTE
from concurve.definition.starters import last_started
from concurve.definition.study import FREE_PORT, Purpose, Role, Study
from concurve.definition.templates import placeholders

#: The packaged program that prepares the data of an embedded engine, the one that loads, and its
#: options with which it prepares or checks data and measures nothing.
_FILL, _LOAD = "fill", "load"
_LOAD_SETUP = ("--init-only", "--verify-only")
#: The packaged program of known behaviour, and its option to compete until the trial ends.
_TARGETS, _COMPETES = "targets", "--until-stopped"
#: How the names of block devices begin.
_VOLUME = "volume-"

#: An address of this machine in a command, with its port, and the ports that servers of users have.
_ADDRESS = re.compile(r"(?:localhost|127(?:\.\d+){3}|0\.0\.0\.0|\[::1?\]):(\d+)")
_PORTS = range(1024, 65536)
#: Well-known programs that load a server, or are a client of one.
_LOADS = frozenset((
    "ab", "bombardier", "curl", "ghz", "grpcurl", "h2load", "hey", "iperf3", "k6", "locust",
    "mariadb", "mariadb-slap", "memtier_benchmark", "mysql", "mysqlslap", "oha", "pgbench", "psql",
    "redis-benchmark", "redis-cli", "siege", "valkey-benchmark", "valkey-cli", "vegeta", "wrk",
    "wrk2", "ycsb", "ycsb.sh",
))  # fmt: skip
#: What names a server in a command: a URL, an address, or an option for one.
_NAMES_SERVER = re.compile(
    r"\w://|(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])|\blocalhost\b|\[::1?\]:\d"
    r"|(?:^|\s)--?(?:host(?:name)?|port|url|uri|server|endpoint|broker|socket)(?=[=\s]|$)",
    re.I,
)
_PORT_OPTION = re.compile(r"^--?(p|l|listen|(\w+-)*port)$", re.I)
_PORT_IN_WORD = re.compile(r"(?:port[= ]|:|(?:^|\s)-[pl] ?)(\d+)(?![\d.])", re.I)


class Purposes(NamedTuple):
    """The roles of a trial by what they are for.

    ``measured``: the role that the study measures. ``subject``: the role that does the operations,
    whose thread time is explained. ``clients`` give it work; ``serving``: it serves until they have
    ended. ``others``: all further roles of the study.
    """

    measured: str
    subject: str
    clients: tuple[str, ...] = ()
    serving: bool = False
    others: tuple[str, ...] = ()

    def is_client(self, name: str) -> bool:
        """Is the role of a record, by its name there, a client or a copy of one?"""
        if name in self.clients:
            return True
        role, dash, number = name.rpartition("-")
        is_copy = bool(dash) and number.isdecimal() and role in self.clients
        return is_copy and name not in (self.measured, self.subject, *self.others)


def alone(measured: str) -> Purposes:
    """A role that no other one loads and that loads no other one."""
    return Purposes(measured, measured)


def purposes_of(study: Study) -> Purposes:
    """What the roles of a study are for."""
    target = next(role for role in study.roles if role.name == study.target)
    if target.end == "serve":
        clients = _clients(study, target)
        if target.program == REMOTE and clients and clients[0].copies == "1":
            # Its processes are not seen: the time that can be explained is that of the load.
            return _purposes(study, clients[0], clients, serving=False)
        return _purposes(study, target, clients, serving=True)
    server = _server(study, target)
    if server is None:
        return _purposes(study, target, (), serving=False)
    loads = [
        role
        for role in _clients(study, server)
        if role is not target and (role.purpose == "load" or _connects(role, server))
    ]
    return _purposes(study, server, (target, *loads), serving=True)


def _purposes(study: Study, subject: Role, clients: Sequence[Role], serving: bool) -> Purposes:
    names = tuple(role.name for role in clients)
    known = (study.target, subject.name, *names)
    others = tuple(role.name for role in study.roles if role.name not in known)
    return Purposes(study.target, subject.name, names, serving, others)


def _purpose(role: Role) -> Purpose:
    """What a role says that it is for, else what its packaged program is for."""
    if role.purpose:
        return role.purpose
    program = role.program or ""
    prepares = program == _LOAD and any(option in role.command for option in _LOAD_SETUP)
    if program == _FILL or program.startswith(_VOLUME) or prepares:
        return "setup"
    if program == _TARGETS and _COMPETES in role.command:
        return "background"
    return ""


def _clients(study: Study, served: Role) -> tuple[Role, ...]:
    """The roles that load a server: those that end by themselves, except what it waits for. Of
    roles of which one waits for another, those that the study asks most of, else the last: data
    are filled in, and then the load begins."""
    roles = {role.name: role for role in study.roles}
    before = set(_waited_for(served, roles))
    found = [
        role
        for role in study.roles
        if role.end == "exit" and role.name not in before and _purpose(role) in ("", "load")
    ]
    asked = {study.target, *_asked(study)}

    def rank(role: Role) -> int:
        return 2 if role.purpose == "load" else int(role.name in asked)

    def yields(role: Role, other: Role) -> bool:
        if role.name in _waited_for(other, roles):
            return rank(role) <= rank(other) < 2 or rank(role) < rank(other)
        return other.name in _waited_for(role, roles) and rank(role) < rank(other)

    return tuple(role for role in found if not any(yields(role, other) for other in found))


def _waited_for(role: Role, roles: Mapping[str, Role]) -> Iterator[str]:
    """The roles that must have ended before this one starts."""
    for name in role.after:
        yield name
        yield from _waited_for(roles[name], roles)


def _asked(study: Study) -> Iterator[str]:
    """The roles of which the study asks a figure by name."""
    names = [role.name for role in study.roles]
    yield from (extract.role for extract in study.extracts if extract.role)
    yield from filter(None, (role_of(item.name, names) for item in study.indicators))


def may_load_a_stranger(study: Study) -> bool:
    """May a command load a server that runs beside the trials and is no role? Not where a role
    serves, also one that is attached or elsewhere, and not where each role is a program of ours.
    Competitors serve nobody."""
    serves = any(role.end == "serve" and _purpose(role) in ("", "server") for role in study.roles)
    return not serves and any(role.program is None for role in study.roles)


def names_a_server(study: Study) -> bool:
    """Does a command say that it is a client: a well-known load, or one with an address?"""
    return any(
        bool(name := last_started(role.command)) and PurePath(name[0]).name in _LOADS
        for role in study.roles
        if role.command
    ) or any(_NAMES_SERVER.search(word) for role in study.roles for word in _words(role))


def unawaited(study: Study) -> dict[str, str]:
    """The servers that loads connect to and for which nothing waits, each with its port as the
    study writes it. None where a server is awaited or runs already: that one is loaded, and the
    others may compete."""
    serving = [
        role
        for role in study.roles
        if role.end == "serve" and role.program != REMOTE and _purpose(role) in ("", "server")
    ]
    if not all(starts_unawaited(role) for role in serving):
        return {}
    ports = {
        role.name: next(filter(None, (_port(it, role) for it in _clients(study, role))), "")
        for role in serving
    }
    return {name: port for name, port in ports.items() if port}


def starts_unawaited(role: Role) -> bool:
    """Is this a role that serves, is started, and is taken to be ready at once?"""
    is_awaited = role.ready != "launch" or role.ready_probe is not None
    return role.end == "serve" and role.attach is None and not is_awaited


def _port(client: Role, server: Role) -> str:
    """The port by which a load is seen to connect to a server that names none to wait for; empty
    where none is seen."""
    if _connects(client, server):
        return f"{{{FREE_PORT}}}"
    addressed = [found[1] for word in _words(client) if (found := _ADDRESS.search(word))]
    if listens := set(_ports(server)):
        return next((port for port in (*addressed, *_ports(client)) if port in listens), "")
    return next(iter(addressed), "")


def _ports(role: Role) -> Iterator[str]:
    """The ports that the words of a role name: in an address, behind an option for ports, or as a
    word of its own behind no option."""
    words = list(_words(role))
    for before, word in pairwise(["", *words]):
        if not word.isdecimal():
            found = _PORT_IN_WORD.findall(word)
        else:
            found = [word] if before[:1] != "-" or _PORT_OPTION.match(before) else []
        yield from (number for number in found if int(number) in _PORTS)


def _server(study: Study, client: Role) -> Role | None:
    """The server that the measured role loads, if there is one: the one that says so, else the one
    that it connects to, else an attached one, else one whose readiness was awaited."""
    found = [
        role
        for role in study.roles
        if role.end == "serve" and role.program != REMOTE and _purpose(role) in ("", "server")
    ]
    signs: tuple[Callable[[Role], bool], ...] = (
        lambda role: role.purpose == "server",
        lambda role: _connects(client, role),
        lambda role: role.attach is not None,
        lambda role: role.ready == "report" or role.ready_probe is not None,
    )
    return next((role for sign in signs for role in found if sign(role)), None)


def _connects(client: Role, server: Role) -> bool:
    """Does a role name the port at which the other one listens?"""
    probe = server.ready_probe
    port = "" if probe is None or probe.tcp is None else probe.tcp.rpartition(":")[2]
    own = list(_words(client))
    if any(FREE_PORT in placeholders(word) for word in _words(server)) or FREE_PORT in port:
        return any(FREE_PORT in placeholders(word) for word in own)
    return bool(port) and any(port in _numbers(word) for word in own)


def _words(role: Role) -> Iterator[str]:
    yield from role.command
    yield from role.env.values()


def _numbers(word: str) -> list[str]:
    """The numbers in a word, as they are written."""
    return "".join(letter if letter.isdecimal() else " " for letter in word).split()
