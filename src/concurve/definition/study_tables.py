"""The tables of a study file, key by key, and the study that they describe."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, ClassVar, Literal, get_args

import msgspec

from concurve.definition import study as domain
from concurve.definition.attaching import attached_role
from concurve.definition.controls import ControlsTemplate
from concurve.definition.indicator_names import role_of
from concurve.definition.levels import levels_among, levels_meant, parse_levels, resolve_levels
from concurve.definition.origins import Origins
from concurve.definition.programs import java_programs
from concurve.definition.readiness import Readiness, made_ready, parse_ready
from concurve.definition.remote import remote_arguments, remote_role
from concurve.definition.templates import Value
from concurve.definition.units import parse_duration
from concurve.errors import StudyError
from concurve.terms import Level, TestCase

Text = str | int


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of the tables of a study file."""


class HeadTable(Table, frozen=True):
    """``[study]``: the name and the question of the study."""

    name: str
    question: str
    title: str = ""
    source: str = ""


class ControlsTable(Table, frozen=True):
    """``controls`` of a role; texts may hold placeholders."""

    cpus: Text | None = None
    nice: Text | None = None
    policy: str | None = None


class CountersTable(Table, frozen=True):
    """``counters`` of a remote role: where its counters are read, and which of them."""

    http: str | None = None
    command: list[str] | None = None
    names: list[str] = []


_FIGURES = (
    'figures are read by [[indicators]]: tool = "pgbench", or a pattern with its name; those of a '
    "role that is not measured as ROLE.pgbench, or ROLE.NAME"
)


class RoleTable(Table, frozen=True):
    """``[[roles]]``: a process group of each trial."""

    name: str
    program: str | None = None
    prefix: list[str] = []
    java: Text | None = None
    jvm: list[str] = []
    command: list[str] | None = None
    arguments: list[str] = []
    env: dict[str, str] = {}
    cwd: str | None = None
    controls: ControlsTable = ControlsTable()
    end: Literal["exit", "serve"] | None = None
    ready: str = "launch"
    ready_within: str | float | None = None
    after: list[str] = []
    copies: Text = 1
    attach: Text | None = None
    remote: str | None = None
    counters: CountersTable | None = None
    purpose: domain.Purpose = ""
    host: str = ""

    other_words: ClassVar[dict[str, str]] = {
        "args": "did you mean 'arguments'? They are for a program; a command has its own",
        "affinity": 'controls = { cpus = "0-1" }',
        "cmd": "did you mean 'command'?",
        "depends_on": "roles start in the order of the file, each when the earlier ones are ready; "
        'after = ["load"] waits until that role has ended',
        "directory": "did you mean 'cwd'?",
        "environment": "did you mean 'env'?",
        "extract": _FIGURES,
        "instances": "did you mean 'copies'?",
        "pid": 'attach = "4711", for a process that runs already',
        "priority": "controls = { nice = 5 }",
        "tool": _FIGURES,
        "url": 'remote = "redis://db1:6379", for a server elsewhere',
    }


class RulesTable(Table, frozen=True):
    """The rules that ``[protocol]`` and each effort may set."""

    precision: float | None = None
    repeats: list[int] | int | None = None
    time_allowed: str | float | None = None
    timeout: str | float | None = None


class EffortTable(RulesTable, frozen=True):
    """``[effort.NAME]``: rules and levels of one effort."""

    factors: dict[str, list[Level] | str] = {}


class EffortsTable(Table, frozen=True):
    """``[effort]``."""

    quick: EffortTable = EffortTable()
    normal: EffortTable = EffortTable()
    rigorous: EffortTable = EffortTable()


class ProtocolTable(RulesTable, frozen=True):
    """``[protocol]``: how to measure."""

    work: str | None = None
    work_amount: Literal["", "fixed", "scales"] = ""
    base: dict[str, Level] = {}
    conditions: list[str] | None = None
    optional: dict[str, list[Level] | str] = {}
    compares: list[str] = []
    target: str = "target"
    simulation: bool = False


class HooksTable(Table, frozen=True):
    """``[hooks]``: commands beside the trials."""

    setup: str | None = None
    prepare: str | None = None
    conclude: str | None = None
    cleanup: str | None = None
    check: str | None = None


class IndicatorTable(Table, frozen=True):
    """``[[indicators]]``: what is asked for by name."""

    name: str
    better: Literal["lower", "higher", "neither"] = "neither"
    unit: str = ""
    label: str = ""
    failures: str = ""
    pattern: str | None = None
    combine: Literal["last", "sum"] = "last"
    optional: bool = False
    zero_unprinted: bool = False

    other_words: ClassVar[dict[str, str]] = {
        "direction": 'better = "higher" or "lower"',
        "extract": 'tool = "pgbench", for a tool whose output is known; else pattern = '
        "'tps = ([0-9.]+)', with the name beside it",
        "primary": "the first of [[indicators]] is the primary one",
        "regex": "did you mean 'pattern'?",
        "role": 'the role stands in the name: name = "load.latency_ns_p99"',
    }


class TestCaseTable(Table, frozen=True):
    """``[test_case]``: what a test document says of the study."""

    id: str
    objective: str
    area: str = ""
    goal: str = ""
    expected: list[str] = []
    conditions: list[str] = []
    indicators: list[str] = []
    steps: list[str] = []


_INDICATORS = (
    "did you mean [[indicators]]? A figure that a program prints is one with a pattern: name, "
    'pattern, unit, better; the figures of a known tool are one with tool = "pgbench"'
)
_FACTORS = "did you mean [factors]? A line for each: threads = [1, 2]"
_PROTOCOL = "[protocol], which has repeats, precision, time_allowed, timeout"

#: What other words at the top of a file may stand for.
_OF_THE_WHOLE = {
    **dict.fromkeys(
        ("extract", "extracts", "extraction", "figures", "measures", "metrics", "tool", "tools"),
        _INDICATORS,
    ),
    **dict.fromkeys(("parameters", "params", "variables"), _FACTORS),
    "campaign": "the file of a campaign is named campaign.toml",
    **dict.fromkeys(("settings", "options", "rules", "run"), _PROTOCOL),
    **dict.fromkeys(
        ("processes", "programs", "commands"),
        "did you mean [[roles]]? A name and a command for each",
    ),
    **dict.fromkeys(
        ("hypotheses", "assertions"), "did you mean [[claims]]? Each has id, says and a kind"
    ),
}


class File(Table, frozen=True, rename={"words": "with"}):
    """The whole file, including what it takes from the files that it extends."""

    study: HeadTable
    factors: dict[str, list[Level] | str]
    roles: list[RoleTable]
    protocol: ProtocolTable = ProtocolTable()
    effort: EffortsTable = EffortsTable()
    hooks: HooksTable = HooksTable()
    indicators: list[IndicatorTable] = []
    claims: list[dict[str, Any]] = []
    levels: dict[str, dict[str, dict[str, Level | list[str]]]] = {}
    test_case: TestCaseTable | None = None
    extends: str = ""
    words: dict[str, Level | list[str] | dict[str, Level]] = {}

    other_words: ClassVar[dict[str, str]] = _OF_THE_WHOLE


#: The table of each heading, for the keys that a refusal names.
KEYS: dict[str, type[msgspec.Struct]] = {
    "": File,
    "study": HeadTable,
    "roles": RoleTable,
    "controls": ControlsTable,
    "counters": CountersTable,
    "protocol": ProtocolTable,
    "effort": EffortsTable,
    "quick": EffortTable,
    "normal": EffortTable,
    "rigorous": EffortTable,
    "hooks": HooksTable,
    "indicators": IndicatorTable,
    "test_case": TestCaseTable,
}


def to_study(file: File, cpus: int, where: Origins) -> domain.Study:
    """The study that a file describes; ``where`` names the file of each part in messages.

    Raises:
        StudyError: a value that no study can have.
    """
    if not file.factors:
        raise StudyError(f"{where}: no factors", "[factors] with at least one: threads = [1, 2]")
    if not file.roles:
        raise StudyError(f"{where}: no roles", '[[roles]] with name = "target" and a command')
    factors = {
        name: _levels(levels, cpus, f"{where.of('factors', name)}: factors, {name}")
        for name, levels in file.factors.items()
    }
    efforts = {
        name: _effort(getattr(file.effort, name), name, file.protocol, factors, cpus, where)
        for name in get_args(domain.EffortName)
    }
    return domain.Study(
        name=file.study.name,
        title=file.study.title,
        question=file.study.question,
        source=file.study.source,
        factors=tuple(domain.Factor(name=name, levels=levels) for name, levels in factors.items()),
        roles=tuple(_role(role, where.of("roles", role.name)) for role in file.roles),
        efforts=efforts,
        hooks=domain.Hooks(**msgspec.structs.asdict(file.hooks)),
        extracts=tuple(
            domain.Extract(
                name=item.name,
                pattern=item.pattern,
                unit=item.unit,
                role=role_of(item.name, [role.name for role in file.roles]),
                combine=item.combine,
                optional=item.optional,
                zero_unprinted=item.zero_unprinted,
            )
            for item in file.indicators
            if item.pattern is not None
        ),
        indicators=tuple(
            domain.Indicator(
                name=i.name, better=i.better, unit=i.unit, label=i.label, failures=i.failures
            )
            for i in file.indicators
        )
        or domain.DEFAULT_INDICATORS,
        claims=tuple(
            _claim(claim, where.of("claims", str(claim.get("id")))) for claim in file.claims
        ),
        work=file.protocol.work,
        work_amount=file.protocol.work_amount,
        base=levels_meant(file.protocol.base, factors),
        conditions=tuple(file.protocol.conditions or ()),
        optional=_optional(file.protocol, factors, efforts.values(), cpus, where),
        compares=tuple(file.protocol.compares),
        level_parts=_level_parts(file.levels),
        target=file.protocol.target,
        simulation=file.protocol.simulation,
        test_case=_test_case(file.test_case, where),
    )


def _test_case(table: TestCaseTable | None, where: Origins) -> TestCase | None:
    if table is None:
        return None
    for key in ("id", "objective"):
        if not getattr(table, key).strip():
            raise StudyError(
                f"{where.of('test_case', key)}: test_case, {key}: empty", "a few words"
            )
    fields = msgspec.structs.asdict(table)
    lists = {key: tuple(value) for key, value in fields.items() if isinstance(value, list)}
    return TestCase(**{**fields, **lists})


def _levels(levels: list[Level] | str, cpus: int, where: str) -> tuple[Level, ...]:
    if isinstance(levels, str):
        return parse_levels(levels, cpus, where)
    return resolve_levels(levels, cpus, where)


def _optional(
    protocol: ProtocolTable,
    factors: Mapping[str, Sequence[Level]],
    efforts: Collection[domain.Effort],
    cpus: int,
    where: Origins,
) -> dict[str, tuple[Level, ...]]:
    """The levels that a machine may lack, as the factor has them at any effort."""
    found = {}
    for name, levels in protocol.optional.items():
        known = [*factors.get(name, ())]
        for effort in efforts:
            known += effort.factors.get(name, ())
        place = f"{where.of('protocol', 'optional')}: protocol, optional, {name}"
        found[name] = levels_among(_levels(levels, cpus, place), known)
    return found


def _level_parts(
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


def _role(role: RoleTable, where: str) -> domain.Role:
    if role.attach is not None:
        return _attached_role(role, where)
    if role.remote is not None:
        return _remote_role(role, where)
    if role.counters is not None:
        raise StudyError(
            f"{where}: roles {role.name!r}: counters are those of a remote role",
            'remote = "redis://db1:6379" beside them, or no counters',
        )
    if (role.program is None) == (role.command is None):
        raise StudyError(
            f"{where}: roles {role.name!r}: needs either program or command",
            'program = "mandelbrot" with arguments = […], or command = ["./mine", "…"]',
        )
    if role.command is not None and role.arguments:
        raise StudyError(
            f"{where}: roles {role.name!r}: arguments are for program", "put them into command"
        )
    _refuse_java(role, where)
    controls = role.controls
    place = f"{where}: roles {role.name!r}, ready"
    readiness = parse_ready(role.ready, place)
    made = domain.Role(
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
        end=_end_of(role, readiness, place),
        after=tuple(role.after),
        copies=str(role.copies),
        purpose=role.purpose,
        host=role.host,
    )
    return made_ready(made, readiness, role.ready_within, f"{place}_within")


def _end_of(role: RoleTable, readiness: Readiness, place: str) -> Literal["exit", "serve"]:
    """How a role ends. What is awaited by a probe is a server: it must say how it ends, since a
    trial would wait for it to exit."""
    if role.end is None and readiness.probe is not None:
        raise StudyError(
            f"{place}: how does the role end?",
            'end = "serve" for a server, which is ended after the others; end = "exit" otherwise',
        )
    return role.end or "exit"


def _attached_role(role: RoleTable, where: str) -> domain.Role:
    """A role whose processes run already."""
    place = f"{where}: roles {role.name!r}"
    _refuse_beside("attach", "it runs already and is left as it is", role, place)
    return _for(role, attached_role(role.name, str(role.attach), place))


def _remote_role(role: RoleTable, where: str) -> domain.Role:
    """A role that runs elsewhere: a packaged program reads its counters."""
    place = f"{where}: roles {role.name!r}"
    _refuse_beside("remote", "it runs elsewhere", role, place)
    table = role.counters
    given: tuple[str, ...] = ()
    if table is not None:
        given = remote_arguments(table.http, table.command, table.names, place)
    return _for(role, remote_role(role.name, role.remote or "", given))


def _for(table: RoleTable, made: domain.Role) -> domain.Role:
    """A role that is not started here, with what its table says that it is for."""
    return msgspec.structs.replace(made, purpose=table.purpose)


def _refuse_beside(key: str, why: str, role: RoleTable, place: str) -> None:
    """Refuse what starts, changes or ends a role that is not started here."""
    plain = RoleTable(name=role.name)
    for name in RoleTable.__struct_fields__:
        if name in ("name", "purpose", key) or (key == "remote" and name == "counters"):
            continue
        value = getattr(role, name)
        if value != getattr(plain, name) and (name, value) != ("end", "serve"):
            raise StudyError(f"{place}: {name} beside {key}: {why}", f"no {name}")


def _refuse_java(role: RoleTable, where: str) -> None:
    """Refuse Java and its options unless the program is a jar, or a placeholder that may name
    one."""
    given = [key for key, value in (("java", role.java), ("jvm", role.jvm)) if value]
    program = role.program or ""
    if given and program not in java_programs() and "{" not in program:
        raise StudyError(
            f"{where}: roles {role.name!r}: {' and '.join(given)} given, but "
            f"{program or 'a command'} is no packaged Java program",
            f'program = "{java_programs()[0]}", or no {" and no ".join(given)}',
        )
    for option in role.jvm:
        if not option.startswith(("-", "{", "@")):
            raise StudyError(
                f"{where}: roles {role.name!r}, jvm: {option!r} is no option of a JVM",
                'for example jvm = ["-XX:+UseSerialGC"]',
            )


def _effort(
    effort: EffortTable,
    name: domain.EffortName,
    protocol: ProtocolTable,
    factors: Mapping[str, Sequence[Level]],
    cpus: int,
    where: Origins,
) -> domain.Effort:
    def of_protocol(key: str) -> str:
        return f"{where.of('protocol', key)}: protocol: {key}"

    def of_effort(key: str) -> str:
        return f"{where.of('effort', f'{name}.{key}')}: effort.{name}: {key}"

    rules = msgspec.structs.replace(domain.DEFAULT_RULES[name], **_given(protocol, of_protocol))
    return domain.Effort(
        rules=msgspec.structs.replace(rules, **_given(effort, of_effort)),
        factors={
            factor: levels_among(
                _levels(
                    levels,
                    cpus,
                    f"{where.of('effort', f'{name}.factors')}: effort.{name}, factors, {factor}",
                ),
                factors.get(factor, ()),
            )
            for factor, levels in effort.factors.items()
        },
    )


def _given(layer: RulesTable, place: Callable[[str], str]) -> dict[str, Any]:
    """The rules that a table sets; ``place`` names a key of it in messages."""
    given: dict[str, Any] = {}
    if layer.precision is not None:
        given["precision"] = layer.precision
    if layer.repeats is not None:
        bounds = [layer.repeats] * 2 if isinstance(layer.repeats, int) else layer.repeats
        if len(bounds) != 2:
            raise StudyError(f"{place('repeats')} {bounds}", "the least and the greatest: [5, 30]")
        given["repeats_min"], given["repeats_max"] = bounds
        given["choosing_max"] = 0
    if layer.time_allowed is not None:
        given["time_allowed_seconds"] = parse_duration(layer.time_allowed, place("time_allowed"))
    if layer.timeout is not None:
        given["timeout_seconds"] = parse_duration(layer.timeout, place("timeout"))
    return given


def _claim(table: dict[str, Any], where: str) -> domain.Claim:
    for key in ("id", "says", "kind"):
        if not isinstance(table.get(key), str):
            raise StudyError(
                f"{where}: claims {table.get('id', '?')!r}: no {key}",
                "each claim has id, says, kind",
            )
    if not isinstance(table.get("source", ""), str):
        raise StudyError(f"{where}: claims {table['id']!r}: source: no text", 'source = "§ 3"')
    head = {key: table[key] for key in ("id", "says", "kind", "source") if key in table}
    return domain.Claim(**head, test={k: v for k, v in table.items() if k not in head})
