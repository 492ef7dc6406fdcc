"""TOML → :class:`~concurve.definition.study.Study`; every refusal names file, key and remedy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec

from concurve.definition import study as domain
from concurve.definition.claim_kinds import check_claims
from concurve.definition.controls import ControlsTemplate
from concurve.definition.levels import parse_levels, resolve_levels
from concurve.definition.published import PublishedFigure, load_published
from concurve.definition.study_check import check
from concurve.definition.templates import Value
from concurve.definition.toml_file import read_tables, read_text
from concurve.definition.units import parse_duration
from concurve.errors import StudyError
from concurve.findings import Level, TestCase
from concurve.host.native import JAVA_PROGRAMS

Text = str | int

#: The files beside a study, or beside the folders of a campaign's studies.
PUBLISHED_NAME, CAMPAIGN_NAME = "published.csv", "campaign.toml"


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
    prefix: list[str] = []
    java: Text | None = None
    jvm: list[str] = []
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
    conditions: list[str] = []
    optional: dict[str, list[Level] | str] = {}
    target: str = "target"
    simulation: bool = False


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


class _TestCase(_Table, frozen=True):
    id: str
    objective: str
    area: str = ""
    goal: str = ""
    expected: list[str] = []
    conditions: list[str] = []
    indicators: list[str] = []
    steps: list[str] = []


class _File(_Table, frozen=True):
    study: _Head
    factors: dict[str, list[Level] | str]
    roles: list[_Role]
    protocol: _Protocol = _Protocol()
    effort: _Efforts = _Efforts()
    hooks: _Hooks = _Hooks()
    indicators: list[_Indicator] = []
    claims: list[dict[str, Any]] = []
    levels: dict[str, dict[str, dict[str, Level | list[str]]]] = {}
    test_case: _TestCase | None = None


def load_study(path: Path, cpus: int) -> domain.Study:
    """Read a study file, with the published figures that stand beside it or in its campaign.

    ``cpus`` is what levels such as ``50%`` refer to.

    Raises:
        StudyError: unreadable, not TOML, unknown key, wrong type, or a study that cannot be run.
    """
    study = parse_study(read_text(path, "a study file"), cpus, str(path))
    published = tuple(_published_beside(path))
    _check_published(published, study, path)
    return msgspec.structs.replace(study, published=published)


def _published_beside(path: Path) -> Iterator[PublishedFigure]:
    """Figures of ``published.csv`` in the study's folder, else its own ones of the campaign's."""
    own, shared = path.parent / PUBLISHED_NAME, path.parent.parent / PUBLISHED_NAME
    if own.is_file():
        for figures in load_published(own).values():
            yield from figures
    elif shared.is_file() and (path.parent.parent / CAMPAIGN_NAME).is_file():
        yield from load_published(shared).get(path.resolve().parent.name, ())


def _check_published(
    published: tuple[PublishedFigure, ...], study: domain.Study, path: Path
) -> None:
    """Refuse a figure whose cell no run of the study could have."""
    names = [factor.name for factor in study.factors]
    for figure in published:
        for name in figure.base_parameters:
            if name not in names:
                raise StudyError(
                    f"{path}: {PUBLISHED_NAME}: table {figure.table}, {figure.row}, "
                    f"{figure.column}: {name!r} is no factor of {study.name}",
                    f"one of {', '.join(names)}",
                )


def parse_study(text: str, cpus: int, where: str) -> domain.Study:
    """A study from the text of its file; ``where`` names it in messages.

    Raises:
        StudyError: as :func:`load_study`.
    """
    file = read_tables(text, where, _File, _KEYS, "docs/studies.md")
    study = _to_study(file, cpus, where)
    check(study, where)
    check_claims(study, where)
    return study


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
    "test_case": _TestCase,
}


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
        conditions=tuple(file.protocol.conditions),
        optional={
            name: _levels(levels, cpus, f"{where}: protocol, optional, {name}")
            for name, levels in file.protocol.optional.items()
        },
        meanings=_meanings(file.levels),
        target=file.protocol.target,
        simulation=file.protocol.simulation,
        test_case=_test_case(file.test_case, where),
    )


def _test_case(table: _TestCase | None, where: str) -> TestCase | None:
    if table is None:
        return None
    for key in ("id", "objective"):
        if not getattr(table, key).strip():
            raise StudyError(f"{where}: test_case, {key}: empty", "a few words")
    fields = msgspec.structs.asdict(table)
    lists = {key: tuple(value) for key, value in fields.items() if isinstance(value, list)}
    return TestCase(**{**fields, **lists})


def _levels(levels: list[Level] | str, cpus: int, where: str) -> tuple[Level, ...]:
    if isinstance(levels, str):
        return parse_levels(levels, cpus, where)
    return resolve_levels(levels, cpus, where)


def _meanings(
    levels: dict[str, dict[str, dict[str, Level | list[str]]]],
) -> dict[str, dict[str, dict[str, Value]]]:
    return {
        factor: {
            level: {
                part: tuple(value) if isinstance(value, list) else value
                for part, value in parts.items()
            }
            for level, parts in entries.items()
        }
        for factor, entries in levels.items()
    }


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
    _refuse_java(role, where)
    controls = role.controls
    return domain.Role(
        name=role.name,
        program=role.program,
        prefix=tuple(role.prefix),
        java=None if role.java is None else str(role.java),
        jvm=tuple(role.jvm),
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


def _refuse_java(role: _Role, where: str) -> None:
    """Java and its options are for programs that are jars; one with a placeholder may be."""
    given = [key for key, value in (("java", role.java), ("jvm", role.jvm)) if value]
    program = role.program or ""
    if given and program not in JAVA_PROGRAMS and "{" not in program:
        raise StudyError(
            f"{where}: roles {role.name!r}: {' and '.join(given)} given, but "
            f"{program or 'a command'} is no packaged Java program",
            f'program = "{next(iter(JAVA_PROGRAMS))}", or no {" and no ".join(given)}',
        )
    for option in role.jvm:
        if not option.startswith(("-", "{", "@")):
            raise StudyError(
                f"{where}: roles {role.name!r}, jvm: {option!r} is no option of a JVM",
                'for example jvm = ["-XX:+UseSerialGC"]',
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
