"""Points a study at somebody's own system: other levels, another program, a server that runs
already, or one elsewhere."""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Mapping, Sequence
from functools import partial

import msgspec

from concurve import words
from concurve.definition.attaching import attached_role
from concurve.definition.beside_line import Beside, parse_counters, split_command
from concurve.definition.campaign import Campaign
from concurve.definition.catalogue import packaged_name
from concurve.definition.inventory import HOST_PREFIX, LOOPBACK
from concurve.definition.level_parts import part_texts
from concurve.definition.levels import parse_levels
from concurve.definition.origins import Origins
from concurve.definition.readiness import REMEDY, Readiness, made_ready, parse_ready
from concurve.definition.remote import remote_role
from concurve.definition.study import (
    FREE_PORT,
    RUN_PASSWORD,
    Factor,
    Role,
    Study,
    arguments,
    single_texts,
    texts,
)
from concurve.definition.study_check import check
from concurve.definition.templates import placeholders
from concurve.errors import StudyError
from concurve.secrets import reference
from concurve.terms import Level, same_level
from concurve.words import meant

#: The packaged program that loads servers.
LOAD = "load"

#: Ports of servers where an address names none.
_PORTS = {
    "http": 80,
    "https": 443,
    "mariadb": 3306,
    "mysql": 3306,
    "postgres": 5432,
    "postgresql": 5432,
    "redis": 6379,
    "rediss": 6379,
    "valkey": 6379,
}
#: Names of this machine, at which who is told a port alone connects.
_HERE = (LOOPBACK, "localhost")

#: The address of a study's own server within an argument.
_ADDRESS = (
    r"(?P<scheme>[A-Za-z][\w+.-]*://)?(?P<user>[^\s/@'\"=]*@)?(?:{hosts}):{port}"
    r"(?P<path>/[^\s'\"?]*)?(?P<query>\?[^\s'\"]*)?"
)

#: The value of a variable with the password of a study's own server.
_PASSWORD = f"{{{RUN_PASSWORD}}}"


class Pointing(msgspec.Struct, frozen=True, kw_only=True):
    """What the options of ``concurve run`` say of one's own system.

    ``levels`` are texts ``FACTOR=LEVELS``; ``target`` is a command for the measured role;
    ``beside`` says which server is meant: one that runs already, or the URL at which it is;
    ``password_from`` is the environment variable with its password.
    """

    levels: tuple[str, ...] = ()
    target: str | None = None
    beside: Beside = Beside()
    password_from: str | None = None

    @property
    def is_empty(self) -> bool:
        """Does it leave every study as it is?"""
        return self == Pointing()


def point(study: Study, at: Pointing, cpus: int) -> Study:
    """The study on one's own system.

    Raises:
        StudyError: what the study cannot be pointed at, and why.
    """
    known = {factor.name for factor in study.factors}
    study = _with_levels(study, _parsed(at.levels, known, cpus, study.name))
    return _pointed(study, at)


def point_campaign(campaign: Campaign, at: Pointing, cpus: int) -> Campaign:
    """The campaign with each of its studies on one's own system. A study without a factor that is
    set keeps its own levels.

    Raises:
        StudyError: no study has the factor, or one cannot be pointed there.
    """
    known = {factor.name for member in campaign.studies for factor in member.study.factors}
    levels = _parsed(at.levels, known, cpus, campaign.name)
    members = []
    for member in campaign.studies:
        own = {factor.name for factor in member.study.factors}
        study = _with_levels(member.study, {k: v for k, v in levels.items() if k in own})
        try:
            study = _pointed(study, at)
        except StudyError as error:
            raise StudyError(
                f"{campaign.name}/{member.name}: {error.what}",
                f"{error.remedy}; or --only with the studies that can be",
            ) from error
        members.append(msgspec.structs.replace(member, study=study))
    return msgspec.structs.replace(campaign, studies=tuple(members))


def _parsed(
    given: Sequence[str], known: set[str], cpus: int, name: str
) -> dict[str, tuple[Level, ...]]:
    levels: dict[str, tuple[Level, ...]] = {}
    for text in given:
        factor, equals, listed = text.partition("=")
        if not equals or not factor:
            raise StudyError(f"--set {text!r}: not FACTOR=LEVELS", "--set threads=1,2,4")
        if factor not in known:
            raise StudyError(
                f"--set {factor}: {name} has no such factor",
                meant(factor, sorted(known)),
            )
        if factor in levels:
            raise StudyError(f"--set {factor} is given twice", "all its levels in one")
        levels[factor] = parse_levels(listed, cpus, f"--set {factor}")
    return levels


def _with_levels(study: Study, levels: Mapping[str, tuple[Level, ...]]) -> Study:
    """The study with these levels at every effort. What it says of other levels is left out: parts,
    a base, levels that may be missing."""
    if not levels:
        return study
    for name, wanted in levels.items():
        _refuse_without_parts(study, name, wanted)
    efforts = {
        name: msgspec.structs.replace(
            effort,
            factors={factor: own for factor, own in effort.factors.items() if factor not in levels},
        )
        for name, effort in study.efforts.items()
    }
    parts = {
        factor: {
            level: values
            for level, values in entries.items()
            if factor not in levels or level in map(str, levels[factor])
        }
        for factor, entries in study.level_parts.items()
    }
    changed = msgspec.structs.replace(
        study,
        factors=tuple(
            Factor(name=factor.name, levels=levels.get(factor.name, factor.levels))
            for factor in study.factors
        ),
        efforts=efforts,
        level_parts=parts,
        base={
            name: kept
            for name, level in study.base.items()
            for kept in _kept(level, levels.get(name))
        },
        optional={
            name: tuple(kept for level in own for kept in _kept(level, levels.get(name)))
            for name, own in study.optional.items()
        },
    )
    check(changed, Origins("command line"))
    return changed


def _kept(level: Level, levels: Sequence[Level] | None) -> list[Level]:
    """A level as these have it, or nothing if none of them is it; ``None`` leaves it as it is."""
    found = level if levels is None else same_level(level, levels)
    return [] if found is None else [found]


def _refuse_without_parts(study: Study, factor: str, wanted: Sequence[Level]) -> None:
    """Refuse a level that the study would have to describe."""
    described = study.level_parts.get(factor)
    for level in wanted:
        if described is not None and str(level) not in described:
            raise StudyError(
                f"--set {factor}={level}: {study.name} does not say what that level stands for",
                meant(
                    str(level),
                    described,
                    f"one of {', '.join(described)}, or a level of your own in {_edited(study)}",
                ),
            )


def _pointed(study: Study, at: Pointing) -> Study:
    server_is_own = at.beside.attach is not None or at.beside.server is not None
    if at.target is not None and server_is_own:
        raise StudyError(
            "--target beside --attach or --server: the target is started, an attached server runs",
            "one of them",
        )
    if at.target is not None and at.password_from is not None:
        raise StudyError(
            "--password-from beside --target: that server is started in each trial",
            "its password in the command of --target, or --server for one that runs already",
        )
    if at.target is not None:
        return _with_target(study, at.target, at.beside)
    if server_is_own:
        return _with_server(study, at.beside, at.password_from)
    if at.password_from is not None:
        raise StudyError(
            "--password-from without --server: it is that of a server that runs already",
            "--server URL beside it, or no --password-from",
        )
    for option in ("ready", "ready_within", "counters"):
        if getattr(at.beside, option) is not None:
            name = f"--{option.replace('_', '-')}"
            raise StudyError(f"{name} without --target or --server", f"no {name}")
    return study


def _with_target(study: Study, command: str, given: Beside) -> Study:
    """The study with another program in its measured role."""
    old = next(role for role in study.roles if role.name == study.target)
    if given.counters is not None:
        raise StudyError(
            "--counters beside --target: they are of a server elsewhere", "--server URL"
        )
    plain = Role(
        name=old.name,
        command=split_command(command, "--target"),
        env=_without_password(old).env,
        cwd=old.cwd,
        controls=old.controls,
        end=old.end,
        after=old.after,
        purpose=old.purpose,
        host=old.host,
    )
    new = made_ready(plain, _readiness(old, command, given), given.ready_within, "--ready-within")
    changed = _replaced(study, old, new)
    idle = [
        name for name in _varied(study) if _is_used(study, name) and not _is_used(changed, name)
    ]
    if idle:
        first = idle[0]
        raise StudyError(
            f"--target: {command!r} does not use {_braced(idle)}: varying it would change nothing",
            f"{{{first}}} in the command, or one level: --set {first}={_some_level(study, first)}",
        )
    check(changed, Origins("command line"))
    return changed


def _readiness(old: Role, command: str, given: Beside) -> Readiness:
    if given.ready is not None:
        return parse_ready(given.ready, "--ready")
    if old.end == "exit":
        return Readiness()
    if FREE_PORT in placeholders(command):
        return parse_ready(f"tcp:{{{FREE_PORT}}}", "--ready")
    raise StudyError(
        f"--target {command!r}: when is this server ready for its clients?", f"--ready {REMEDY}"
    )


def _with_server(study: Study, given: Beside, password_from: str | None) -> Study:
    """The study with a server that is not started by its trials."""
    old = _server_of(study)
    others = [role for role in study.roles if role is not old]
    connecting = [role for role in others if any(map(_has_port, role.command))]
    if not connecting:
        raise StudyError(
            f"{study.name} cannot be pointed at a server: none of its roles connects to "
            f"{old.name} over the network",
            _edited(study),
        )
    if given.server is None:
        raise StudyError(
            f"--attach {given.attach}: {connecting[0].name} of {study.name} has to know where the "
            "server listens",
            "--server URL beside it, such as redis://127.0.0.1:6379",
        )
    if not given.is_address:
        raise StudyError(
            f"--server {given.server!r} is no URL", "redis://127.0.0.1:6379, or --target 'COMMAND'"
        )
    _refuse_choices_of(study, old)
    if given.ready is not None or given.ready_within is not None:
        raise StudyError("--ready beside a server that runs already", "no --ready")
    own = msgspec.structs.replace(_own_server(old, given), purpose=old.purpose)
    changed = _replaced(study, old, own)
    connected = [role.name for role in connecting]
    roles = tuple(
        _connected(role, old, given.server, password_from) if role.name in connected else role
        for role in changed.roles
    )
    changed = msgspec.structs.replace(changed, roles=roles)
    check(changed, Origins("command line"))
    return changed


def _connected(role: Role, old: Role, address: str, password_from: str | None) -> Role:
    """The role with the address of one's own server in place of the study's, and with its password:
    our load is told the variable, any other program has it in its environment."""
    if role.program == LOAD:
        command = tuple(address if _has_port(text) else text for text in role.command)
    else:
        command = tuple(
            _with_address(text, old, address, role.name) if _has_port(text) else text
            for text in role.command
        )
    if password_from is None:
        return msgspec.structs.replace(role, command=command)
    if role.program == LOAD:
        command = (*command, "--password-from", password_from)
    env = {**role.env, password_from: reference(password_from)}
    return msgspec.structs.replace(role, command=command, env=env)


def _own_server(old: Role, given: Beside) -> Role:
    if given.attach is None:
        return remote_role(old.name, given.server or "", parse_counters(given.counters))
    if given.counters is not None:
        raise StudyError(
            "--counters beside --attach: the process is accounted here", "no --counters"
        )
    return attached_role(old.name, given.attach, "--attach")


def _server_of(study: Study) -> Role:
    """The role that serves: the measured one, or the only one that is no competitor."""
    target = next(role for role in study.roles if role.name == study.target)
    serving = [role for role in study.roles if role.end == "serve"]
    if target.end == "serve":
        return target
    connected = [role for role in serving if any(map(_has_port, role.command))]
    if len(connected) == 1:
        return connected[0]
    if not serving:
        raise StudyError(
            f"{study.name} has no server: its measured role {study.target} is a program that ends",
            "--target 'COMMAND' points it at another program",
        )
    names = words.listed([role.name for role in connected or serving])
    if connected:
        raise StudyError(f"{study.name} has several servers: {names}", _edited(study))
    raise StudyError(
        f"{study.name} does not say where its clients connect to {names}: no command has "
        f"{_braced([FREE_PORT])}",
        _edited(study),
    )


def _refuse_choices_of(study: Study, old: Role) -> None:
    """Refuse several levels of what sets the server up: the one that runs is the same in all
    cells."""
    used = _factors_of_role(study, old.name)
    chosen = [name for name in _varied(study) if name in used]
    if chosen:
        sets = " ".join(f"--set {name}={_some_level(study, name)}" for name in chosen)
        raise StudyError(
            f"{study.name} starts its server with {_braced(chosen)}; one that runs already is the "
            "same in all cells",
            f"the levels that it has: {sets}; or --target 'COMMAND' to start one in each trial",
        )


def _factors_of_role(study: Study, name: str) -> set[str]:
    own = [
        item
        for item in (*arguments(study), *single_texts(study))
        if item.place.startswith(f"role {name},")
    ]
    used = {found for item in own for found in placeholders(item.text)}
    factors = {found.partition(".")[0] for found in used}
    # A part of a level may name a further factor, or a part of one that does.
    for _ in range(2):
        for place, text in part_texts(study.level_parts):
            if place.removeprefix("levels.").partition(",")[0] in factors:
                factors.update(found.partition(".")[0] for found in placeholders(text))
    return factors


def _varied(study: Study) -> list[str]:
    """The factors with several levels."""
    efforts = list(study.efforts.values())
    return [
        factor.name
        for factor in study.factors
        if len(factor.levels) > 1
        or any(len(effort.factors.get(factor.name, ())) > 1 for effort in efforts)
    ]


def _is_used(study: Study, factor: str) -> bool:
    found = [item.text for item in texts(study)]
    found += [text for _, text in part_texts(study.level_parts)]
    names = {name.partition(".")[0] for text in found for name in placeholders(text)}
    return factor in names


def _replaced(study: Study, old: Role, new: Role) -> Study:
    roles = tuple(new if role is old else _without_password(role) for role in study.roles)
    return msgspec.structs.replace(study, roles=roles)


def _has_port(text: str) -> bool:
    """Does a text hold the port of the study's own server?"""
    return FREE_PORT in placeholders(text)


def _with_address(text: str, server: Role, address: str, role: str) -> str:
    """A text with the address of one's own server in place of the study's: of a URL all but its
    path and query, unless the new one has one of them; elsewhere host and port.

    Raises:
        StudyError: the address names no port, or the text no host, and the server is elsewhere.
    """
    parts = urllib.parse.urlsplit(address)
    try:
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        port = None
    if not parts.hostname or port is None:
        raise StudyError(
            f"--server {address!r} has no host and port, and {role} connects to one",
            f"{parts.scheme}://{parts.hostname or 'HOST'}:PORT",
        )
    hosts = "|".join(map(re.escape, (*_HERE, f"{{{HOST_PREFIX}{server.name}}}")))
    place = re.compile(_ADDRESS.format(hosts=hosts, port=re.escape(f"{{{FREE_PORT}}}")))
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    changed = place.sub(partial(_moved, parts, f"{host}:{port}"), text)
    if not _has_port(changed):
        return changed
    if parts.hostname not in _HERE:
        raise StudyError(
            f"--server {address!r}: {role} is told the port alone ({text!r}), and connects to this "
            "machine",
            f"a copy of the study with {LOOPBACK}:{{{FREE_PORT}}} in its command",
        )
    return changed.replace(f"{{{FREE_PORT}}}", str(port))


def _moved(parts: urllib.parse.SplitResult, place: str, found: re.Match[str]) -> str:
    """What takes the place of an address; ``place`` is the host and port of the new one."""
    behind = f"{found['path'] or ''}{found['query'] or ''}"
    if not found["scheme"]:
        return f"{found['user'] or ''}{place}{behind}"
    if parts.path.strip("/") or parts.query:
        behind = urllib.parse.urlunsplit(("", "", parts.path, parts.query, ""))
    user, at, _ = parts.netloc.rpartition("@")
    return f"{parts.scheme}://{user}{at}{place}{behind}"


def _edited(study: Study) -> str:
    """Where to change a study by hand."""
    if name := packaged_name(study):
        return f"a copy to edit: concurve studies --copy {name} FOLDER"
    return "its file, with attach or remote in place of the command of a role (docs/studies.md)"


def _without_password(role: Role) -> Role:
    """The role without the password of the study's own server, which no other server knows, and
    without the option of a load that names its variable."""
    names = [name for name, value in role.env.items() if value == _PASSWORD]
    command = role.command
    for at in [at for at, word in enumerate(command) if word in names][::-1]:
        command = (*command[: at - 1], *command[at + 1 :])
    env = {name: value for name, value in role.env.items() if name not in names}
    return msgspec.structs.replace(role, command=command, env=env)


def _braced(names: Sequence[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in names)


def _some_level(study: Study, name: str) -> Level:
    return next(factor.levels[0] for factor in study.factors if factor.name == name)
