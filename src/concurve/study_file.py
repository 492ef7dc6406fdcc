"""TOML → :class:`~concurve.study.Study`; every refusal names file, key and remedy."""

from __future__ import annotations

import difflib
import re
import tomllib
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from concurve import study as domain
from concurve.claim_kinds import check_claims
from concurve.controls import ControlsTemplate
from concurve.errors import StudyError
from concurve.findings import Level
from concurve.levels import parse_levels, resolve_levels
from concurve.units import parse_duration

Text = str | int


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of the tables of a study file."""


class _Head(_Table, frozen=True):
    name: str
    question: str
    title: str = ""
    source: str = ""


class _Controls(_Table, frozen=True):
    cpus: Text | None = None
    nice: Text | None = None
    policy: str | None = None


class _Role(_Table, frozen=True):
    name: str
    program: str | None = None
    command: list[str] | None = None
    arguments: list[str] = []
    env: dict[str, str] = {}
    cwd: str | None = None
    controls: _Controls = _Controls()
    end: Literal["exit", "serve"] = "exit"
    ready: Literal["launch", "report"] = "launch"
    after: list[str] = []
    copies: Text = 1


class _Rules(_Table, frozen=True):
    precision: float | None = None
    repeats: list[int] | int | None = None
    time_allowed: str | float | None = None
    timeout: str | float | None = None


class _Effort(_Rules, frozen=True):
    factors: dict[str, list[Level] | str] = {}


class _Efforts(_Table, frozen=True):
    quick: _Effort = _Effort()
    normal: _Effort = _Effort()
    rigorous: _Effort = _Effort()


class _Protocol(_Rules, frozen=True):
    work: str | None = None
    base: dict[str, Level] = {}
    target: str = "target"


class _Hooks(_Table, frozen=True):
    setup: str | None = None
    prepare: str | None = None
    conclude: str | None = None
    cleanup: str | None = None
    check: str | None = None


class _Indicator(_Table, frozen=True):
    name: str
    better: Literal["lower", "higher", "neither"] = "neither"
    unit: str = ""
    label: str = ""
    pattern: str | None = None


class _File(_Table, frozen=True):
    study: _Head
    factors: dict[str, list[Level] | str]
    roles: list[_Role]
    protocol: _Protocol = _Protocol()
    effort: _Efforts = _Efforts()
    hooks: _Hooks = _Hooks()
    indicators: list[_Indicator] = []
    claims: list[dict[str, Any]] = []


def load_study(path: Path, cpus: int) -> domain.Study:
    """Read a study file.

    ``cpus`` is what levels such as ``50%`` refer to.

    Raises:
        StudyError: unreadable, not TOML, unknown key, wrong type, or a study that cannot be run.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise StudyError(f"{path}: cannot be read: {error}", "the path of a study file") from error
    return parse_study(text, cpus, str(path))


def parse_study(text: str, cpus: int, where: str) -> domain.Study:
    """A study from the text of its file; ``where`` names it in messages.

    Raises:
        StudyError: as :func:`load_study`.
    """
    study = _to_study(_read(text, where), cpus, where)
    domain.check(study, where)
    check_claims(study, where)
    return study


def _read(text: str, where: str) -> _File:
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise StudyError(f"{where}: not TOML: {error}", "the line and column named") from error
    try:
        return msgspec.convert(tables, _File)
    except msgspec.ValidationError as error:
        raise _explain(str(error), tables, where) from error


_UNKNOWN = re.compile(r"Object contains unknown field `(?P<key>[^`]*)`(?: - at `\$(?P<at>.*)`)?")
_OTHER = re.compile(r"(?P<what>.*?)(?: - at `\$(?P<at>.*)`)?", re.DOTALL)

_KEYS: dict[str, type[msgspec.Struct]] = {
    "": _File,
    "study": _Head,
    "roles": _Role,
    "controls": _Controls,
    "protocol": _Protocol,
    "effort": _Efforts,
    "quick": _Effort,
    "normal": _Effort,
    "rigorous": _Effort,
    "hooks": _Hooks,
    "indicators": _Indicator,
}


def _explain(message: str, tables: dict[str, Any], where: str) -> StudyError:
    """msgspec's message in the words of the file."""
    if match := _UNKNOWN.fullmatch(message):
        place, key = _place(match["at"], tables), match["key"]
        table = _KEYS.get(re.sub(r"\[.*?\]", "", (match["at"] or "").lstrip(".")).split(".")[-1])
        known = list(table.__struct_encode_fields__) if table else []
        near = difflib.get_close_matches(key, known, n=1)
        remedy = f"did you mean {near[0]!r}?" if near else f"the keys are {', '.join(known)}"
        return StudyError(f"{where}: {place}unknown key {key!r}", remedy)
    other = _OTHER.fullmatch(message)
    assert other is not None
    what = other["what"].replace("Object", "table").replace("`object`", "a table")
    what = what.replace("`array`", "an array").replace("`", "'")
    return StudyError(
        f"{where}: {_place(other['at'], tables)}{what[0].lower()}{what[1:]}",
        "the type that docs/studies.md gives for this key",
    )


def _place(at: str | None, tables: dict[str, Any]) -> str:
    """``.roles[0].controls`` → ``roles 'target', controls: ``."""
    if not at:
        return ""
    path = at.lstrip(".")
    if match := re.match(r"(\w+)\[(\d+)\]", path):
        entries = tables.get(match[1], [])
        entry = entries[int(match[2])] if int(match[2]) < len(entries) else {}
        name = entry.get("name") or entry.get("id") if isinstance(entry, dict) else None
        path = path.replace(match[0], f"{match[1]} {name!r}" if name else match[0], 1)
    return path.replace("[...]", "").replace(".", ", ") + ": "


def _to_study(file: _File, cpus: int, where: str) -> domain.Study:
    if not file.factors:
        raise StudyError(f"{where}: no factors", "[factors] with at least one: threads = [1, 2]")
    if not file.roles:
        raise StudyError(f"{where}: no roles", '[[roles]] with name = "target" and a command')
    return domain.Study(
        name=file.study.name,
        title=file.study.title,
        question=file.study.question,
        source=file.study.source,
        factors=tuple(
            domain.Factor(name=name, levels=_levels(levels, cpus, f"{where}: factors, {name}"))
            for name, levels in file.factors.items()
        ),
        roles=tuple(_role(role, where) for role in file.roles),
        efforts={
            name: _effort(getattr(file.effort, name), name, file.protocol, cpus, where)
            for name in get_args(domain.EffortName)
        },
        hooks=domain.Hooks(**msgspec.structs.asdict(file.hooks)),
        extracts=tuple(
            domain.Extract(name=item.name, pattern=item.pattern, unit=item.unit)
            for item in file.indicators
            if item.pattern is not None
        ),
        indicators=tuple(
            domain.Indicator(name=i.name, better=i.better, unit=i.unit, label=i.label)
            for i in file.indicators
        )
        or domain.DEFAULT_INDICATORS,
        claims=tuple(_claim(claim, where) for claim in file.claims),
        work=file.protocol.work,
        base=file.protocol.base,
        target=file.protocol.target,
    )


def _levels(levels: list[Level] | str, cpus: int, where: str) -> tuple[Level, ...]:
    if isinstance(levels, str):
        return parse_levels(levels, cpus, where)
    return resolve_levels(levels, cpus, where)


def _role(role: _Role, where: str) -> domain.Role:
    if (role.program is None) == (role.command is None):
        raise StudyError(
            f"{where}: roles {role.name!r}: one of program and command is needed, not both",
            'program = "mandelbrot" with arguments = […], or command = ["./mine", "…"]',
        )
    if role.command is not None and role.arguments:
        raise StudyError(
            f"{where}: roles {role.name!r}: arguments go with program", "put them into command"
        )
    controls = role.controls
    return domain.Role(
        name=role.name,
        program=role.program,
        command=tuple(role.command or role.arguments),
        env=role.env,
        cwd=role.cwd,
        controls=ControlsTemplate(
            cpus=None if controls.cpus is None else str(controls.cpus),
            nice=None if controls.nice is None else str(controls.nice),
            policy=controls.policy,
        ),
        end=role.end,
        ready=role.ready,
        after=tuple(role.after),
        copies=str(role.copies),
    )


def _effort(
    effort: _Effort, name: domain.EffortName, protocol: _Protocol, cpus: int, where: str
) -> domain.Effort:
    rules = domain.DEFAULT_RULES[name]
    for layer, place in ((protocol, "protocol"), (effort, f"effort.{name}")):
        rules = msgspec.structs.replace(rules, **_given(layer, f"{where}: {place}"))
    return domain.Effort(
        rules=rules,
        factors={
            factor: _levels(levels, cpus, f"{where}: effort.{name}, factors, {factor}")
            for factor, levels in effort.factors.items()
        },
    )


def _given(layer: _Rules, where: str) -> dict[str, Any]:
    """The rules that a table sets."""
    given: dict[str, Any] = {}
    if layer.precision is not None:
        given["precision"] = layer.precision
    if layer.repeats is not None:
        bounds = [layer.repeats] * 2 if isinstance(layer.repeats, int) else layer.repeats
        if len(bounds) != 2:
            raise StudyError(f"{where}: repeats {bounds}", "the least and the greatest: [5, 30]")
        given["repeats_min"], given["repeats_max"] = bounds
    if layer.time_allowed is not None:
        given["time_allowed_seconds"] = parse_duration(layer.time_allowed, f"{where}: time_allowed")
    if layer.timeout is not None:
        given["timeout_seconds"] = parse_duration(layer.timeout, f"{where}: timeout")
    return given


def _claim(table: dict[str, Any], where: str) -> domain.Claim:
    for key in ("id", "says", "kind"):
        if not isinstance(table.get(key), str):
            raise StudyError(
                f"{where}: claims {table.get('id', '?')!r}: no {key}",
                "each claim has id, says, kind",
            )
    head = {key: table[key] for key in ("id", "says", "kind", "source") if key in table}
    return domain.Claim(**head, test={k: v for k, v in table.items() if k not in head})
