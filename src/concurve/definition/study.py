"""A study: question, factors, roles, protocol, indicators and claims, frozen.

A study is data: it comes from a TOML file (:mod:`~concurve.definition.study_file`), from a command
line (:mod:`~concurve.definition.study_line`) or from the store. Its texts may hold placeholders;
nothing in it is evaluated.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from concurve.definition.controls import ControlsTemplate
from concurve.definition.meanings import check_lists, check_meanings, meaning_texts, part_names
from concurve.definition.published import PublishedFigure
from concurve.definition.templates import NAME, Value, check_placeholders, placeholders
from concurve.errors import StudyError
from concurve.findings import Level, TestCase

EffortName = Literal["quick", "normal", "rigorous"]

EFFORTS: tuple[EffortName, ...] = ("quick", "normal", "rigorous")

#: Names of factors that count as concurrency when a study does not say which one does.
WORK_NAMES = ("threads", "workers", "sessions", "clients", "processes", "jobs", "io-threads")

#: A free TCP port of loopback, another one in each trial.
FREE_PORT = "free_port"

#: A number for the draws of a block: the same in all its cells, another one in each block.
BLOCK_SEED = "block_seed"

#: An empty folder of the trial's own, which is removed after it.
TRIAL_FOLDER = "trial_folder"

#: Placeholders that need no parameter; those of a trial are known to its roles only.
OF_TRIAL = (FREE_PORT, BLOCK_SEED, TRIAL_FOLDER)
BUILT_IN = ("effort", *OF_TRIAL)


class _Frozen(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of the parts of a study."""


class Factor(_Frozen, frozen=True):
    """What is varied, with its levels in order."""

    name: str
    levels: tuple[Level, ...]


class Extract(_Frozen, frozen=True):
    """A figure read out of a role's output: group 1 of the last match of ``pattern``."""

    name: str
    pattern: str
    unit: str = ""


class Role(_Frozen, frozen=True):
    """A process group of each trial, with placeholders.

    Either ``program`` (a packaged one, with its ``arguments`` in ``command``) or a whole
    ``command``. For packaged programs that are jars, ``java`` says which Java runs them
    (:func:`~concurve.host.java.find_java`) and ``jvm`` holds options of the JVM. ``prefix`` is a
    command that starts the rest, such as ``setpriv``. ``copies``
    starts the role several times.
    """

    name: str
    command: tuple[str, ...]
    program: str | None = None
    prefix: tuple[str, ...] = ()
    java: str | None = None
    jvm: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str | None = None
    controls: ControlsTemplate = ControlsTemplate()
    end: Literal["exit", "serve"] = "exit"
    ready: Literal["launch", "report"] = "launch"
    after: tuple[str, ...] = ()
    copies: str = "1"


class Hooks(_Frozen, frozen=True):
    """Shell commands around trials: once a cell (setup, cleanup), around each trial (prepare,
    conclude), and the validator of each trial (check: 0 accept, 1 redo, 2 give up)."""

    setup: str | None = None
    prepare: str | None = None
    conclude: str | None = None
    cleanup: str | None = None
    check: str | None = None

    def texts(self) -> dict[str, str]:
        """The hooks that are given, by name."""
        return {name: text for name, text in msgspec.structs.asdict(self).items() if text}


class Rules(_Frozen, frozen=True):
    """How many trials: Stein's two stages between bounds.

    ``precision`` is the half-width of the 95 % interval aimed at, relative to the mean;
    ``repeats_min`` the size of the pilot, ``repeats_max`` the cap a cell;
    ``time_allowed_seconds`` the cap a run; ``timeout_seconds`` the limit of one trial.
    """

    precision: float = 0.02
    repeats_min: int = 5
    repeats_max: int = 30
    time_allowed_seconds: float = 3600.0
    timeout_seconds: float | None = None
    redo_max: int = 2
    redo_share: float = 0.2


DEFAULT_RULES: dict[EffortName, Rules] = {
    "quick": Rules(precision=0.05, repeats_max=10, time_allowed_seconds=120.0),
    "normal": Rules(),
    "rigorous": Rules(precision=0.01, time_allowed_seconds=24 * 3600.0),
}


class Effort(_Frozen, frozen=True):
    """Rules of one effort, and the levels it uses where they differ from the study's."""

    rules: Rules
    factors: dict[str, tuple[Level, ...]] = {}


class Indicator(_Frozen, frozen=True):
    """An indicator that the study cares for; the first one is the primary."""

    name: str
    better: Literal["lower", "higher", "neither"] = "neither"
    unit: str = ""
    label: str = ""


DEFAULT_INDICATORS = (Indicator(name="wall_seconds", better="lower", unit="s"),)


class Claim(_Frozen, frozen=True):
    """A statement of the source document that a run can test.

    ``test`` holds what its kind needs.
    """

    id: str
    says: str
    kind: str
    source: str = ""
    test: dict[str, Any] = {}


class Study(_Frozen, frozen=True):
    """One study, whole.

    ``conditions`` are factors whose levels one meets and does not choose, such as a load: no level
    of theirs is ever recommended. ``optional`` has the levels that are left out where the machine
    lacks what they need, such as a server that is not installed. ``simulation``: the figures come
    from a clock of the program's own, so a trial counts on any machine, and the cells of a block
    share their draws (``{block_seed}``), so ratios are taken block by block.
    """

    name: str
    question: str
    factors: tuple[Factor, ...]
    roles: tuple[Role, ...]
    efforts: dict[str, Effort]
    title: str = ""
    source: str = ""
    hooks: Hooks = Hooks()
    extracts: tuple[Extract, ...] = ()
    indicators: tuple[Indicator, ...] = DEFAULT_INDICATORS
    claims: tuple[Claim, ...] = ()
    work: str | None = None
    base: dict[str, Level] = {}
    conditions: tuple[str, ...] = ()
    optional: dict[str, tuple[Level, ...]] = {}
    meanings: dict[str, dict[str, dict[str, Value]]] = {}
    target: str = "target"
    simulation: bool = False
    test_case: TestCase | None = None
    published: tuple[PublishedFigure, ...] = ()

    @property
    def primary(self) -> str:
        """The indicator that the stopping rule watches."""
        return self.indicators[0].name

    @property
    def primary_unit(self) -> str:
        """Its unit, by its name if the study gives none."""
        return self.unit_of(self.primary)

    def unit_of(self, indicator: str) -> str:
        """The unit of an indicator that the study declares; by its name if it gives none."""
        given = next((item.unit for item in self.indicators if item.name == indicator), "")
        return given or ("s" if indicator.endswith("_seconds") else "")

    def effort(self, name: str) -> Effort:
        """The rules and levels of an effort."""
        return self.efforts[name]

    def factors_at(self, effort: str) -> tuple[Factor, ...]:
        """The factors with the levels that this effort uses."""
        own = self.efforts[effort].factors
        return tuple(
            Factor(name=factor.name, levels=own.get(factor.name, factor.levels))
            for factor in self.factors
        )


def with_rules(study: Study, given: dict[str, Any]) -> Study:
    """The study with these fields of its rules replaced, at every effort."""
    efforts = {
        name: msgspec.structs.replace(effort, rules=msgspec.structs.replace(effort.rules, **given))
        for name, effort in study.efforts.items()
    }
    changed = msgspec.structs.replace(study, efforts=efforts)
    check(changed, "command line")
    return changed


def with_java(study: Study, java: str) -> Study:
    """The study with this Java for the roles of packaged programs that do not name one."""
    roles = tuple(
        msgspec.structs.replace(role, java=java) if role.program and role.java is None else role
        for role in study.roles
    )
    return msgspec.structs.replace(study, roles=roles)


def choose_work(study: Study) -> str | None:
    """The factor that counts as concurrency: the one named, else a numeric one with a usual name,
    else the only one if it is numeric."""
    if study.work:
        return study.work
    numeric = [
        factor.name
        for factor in study.factors
        if all(isinstance(level, int | float) for level in factor.levels)
    ]
    usual = [name for name in WORK_NAMES if name in numeric]
    if usual:
        return usual[0]
    return numeric[0] if numeric and len(study.factors) == 1 else None


def texts(study: Study) -> Iterator[tuple[str, str]]:
    """Every text of the study that may hold placeholders, with the place it stands."""
    yield from arguments(study)
    yield from single_texts(study)


def arguments(study: Study) -> Iterator[tuple[str, str]]:
    """The texts that are arguments of a command line."""
    for role in study.roles:
        for position, argument in enumerate(role.prefix):
            yield f"role {role.name}, prefix {position + 1}", argument
        for position, argument in enumerate(role.jvm):
            yield f"role {role.name}, jvm {position + 1}", argument
        for position, argument in enumerate(role.command):
            yield f"role {role.name}, argument {position + 1}", argument


def single_texts(study: Study) -> Iterator[tuple[str, str]]:
    """The texts that are none."""
    for role in study.roles:
        if role.program:
            yield f"role {role.name}, program", role.program
        if role.java:
            yield f"role {role.name}, java", role.java
        for key, value in role.env.items():
            yield f"role {role.name}, env {key}", value
        if role.cwd:
            yield f"role {role.name}, cwd", role.cwd
        for control, text in role.controls.texts().items():
            yield f"role {role.name}, {control}", text
        yield f"role {role.name}, copies", role.copies
    for hook, text in study.hooks.texts().items():
        yield f"--{hook}", text


def check(study: Study, where: str) -> None:
    """Refuse what cannot be run, whatever the machine.

    ``where`` names the study's file, or the command line.

    Raises:
        StudyError: names the place and the remedy.
    """
    _check_names(study, where)
    _check_encoding(study, where)
    known = [factor.name for factor in study.factors] + list(BUILT_IN)
    check_meanings(study.meanings, _all_levels(study), where)
    for place, text in texts(study):
        check_placeholders(text, known + part_names(study.meanings), f"{where}: {place}")
    for hook, text in study.hooks.texts().items():
        for name in set(OF_TRIAL) & set(placeholders(text)):
            raise StudyError(
                f"{where}: --{hook}: {{{name}}} is known to the roles of a trial only",
                "it in the command of a role",
            )
    check_lists(study.meanings, arguments(study), where, arguments=True)
    check_lists(study.meanings, single_texts(study), where, arguments=False)
    _check_extracts(study, where)
    _check_efforts(study, where)
    _check_roles(study, where)
    _check_work_and_base(study, where)
    _check_conditions(study, where)
    _check_optional(study, where)


def uses(study: Study, placeholder: str) -> bool:
    """Does a text hold it?"""
    found = [text for _, text in [*texts(study), *meaning_texts(study.meanings)]]
    return any(placeholder in placeholders(text) for text in found)


def unused_factors(study: Study) -> list[str]:
    """Factors that no text mentions: varying them changes nothing."""
    used = " ".join(text for _, text in [*texts(study), *meaning_texts(study.meanings)])
    return [
        factor.name
        for factor in study.factors
        if "{" + factor.name + "}" not in used and "{" + factor.name + "." not in used
    ]


def _all_levels(study: Study) -> dict[str, list[Level]]:
    """The levels of each factor at any effort; the efforts themselves are one, too."""
    levels = {factor.name: list(factor.levels) for factor in study.factors}
    for effort in study.efforts.values():
        for name, own in effort.factors.items():
            known = levels.setdefault(name, [])
            known += [level for level in own if level not in known]
    return {**levels, "effort": list(EFFORTS), **{name: [] for name in OF_TRIAL}}


def _check_names(study: Study, where: str) -> None:
    for kind, names in {
        "factor": [factor.name for factor in study.factors],
        "role": [role.name for role in study.roles],
        "extracted figure": [extract.name for extract in study.extracts],
        "indicator": [_own_name(indicator.name, study) for indicator in study.indicators],
        "claim": [claim.id for claim in study.claims],
    }.items():
        for name in names:
            if not NAME.fullmatch(name):
                raise StudyError(
                    f"{where}: {kind} {name!r}: not a name", "letters, digits, _ and -, no blanks"
                )
            if names.count(name) > 1:
                raise StudyError(f"{where}: {kind} {name!r} is named twice", "one name for each")
    for name in BUILT_IN:
        if name in [factor.name for factor in study.factors]:
            raise StudyError(f"{where}: factor {name!r} is a built-in name", "another name")


def _own_name(indicator: str, study: Study) -> str:
    """``load.latency_ns_p99`` is an indicator of the role ``load``."""
    role, dot, name = indicator.partition(".")
    known = dot and role in [item.name for item in study.roles] and NAME.fullmatch(name)
    return f"{role}-{name}" if known else indicator


def _check_encoding(study: Study, where: str) -> None:
    """Bytes of a command line that are no UTF-8 cannot cross the seam, which is JSON."""
    levels = ((f"factor {f.name}", level) for f in study.factors for level in f.levels)
    for place, text in [("name", study.name), *texts(study), *levels]:
        if not _is_utf8(str(text)):
            raise StudyError(f"{where}: {place}: {text!r} is not UTF-8", "a script that holds it")


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_extracts(study: Study, where: str) -> None:
    for extract in study.extracts:
        try:
            pattern = re.compile(extract.pattern, re.MULTILINE)
        except re.error as error:
            raise StudyError(
                f"{where}: --extract {extract.name}: {extract.pattern!r} is no regular expression: "
                f"{error}",
                r"for example --extract 'rate=(\d+) req/s'",
            ) from error
        if pattern.groups < 1:
            raise StudyError(
                f"{where}: --extract {extract.name}: {extract.pattern!r} has no group",
                r"parentheses around the figure: 'took (\d+) ms'",
            )


def _check_efforts(study: Study, where: str) -> None:
    names = [factor.name for factor in study.factors]
    for effort_name, effort in study.efforts.items():
        rules, place = effort.rules, f"{where}: effort {effort_name}"
        if not 1 <= rules.repeats_min <= rules.repeats_max:
            raise StudyError(
                f"{place}: repeats {rules.repeats_min}..{rules.repeats_max}",
                "at least 1, and the least not above the greatest: 5..30",
            )
        if not 0 < rules.precision < 1:
            raise StudyError(f"{place}: precision {rules.precision}", "a share such as 0.02")
        for name in effort.factors:
            if name not in names:
                raise StudyError(
                    f"{place}: factor {name!r} is not in the study", _near(name, names)
                )


def _check_roles(study: Study, where: str) -> None:
    names = [role.name for role in study.roles]
    for role in study.roles:
        if not role.program and not any(role.command[:1]):
            raise StudyError(f"{where}: role {role.name} has no command", "command or program")
        for other in role.after:
            _check_after(role, other, study.roles[: names.index(role.name)], names, where)
    if not any(role.end == "exit" for role in study.roles):
        raise StudyError(
            f"{where}: every role serves, so a trial would never end",
            'end = "exit" for the role that decides it',
        )
    if study.target not in names:
        raise StudyError(
            f"{where}: the measured role {study.target!r} is not there", _near(study.target, names)
        )


def _check_after(
    role: Role, other: str, earlier: tuple[Role, ...], names: list[str], where: str
) -> None:
    """``after`` means that the other role has exited: it stands before, and it ends by itself."""
    place = f"{where}: role {role.name} waits for {other!r}"
    if other not in names or other == role.name:
        raise StudyError(place, _near(other, names))
    ends = {item.name: item.end for item in earlier}
    if other not in ends:
        raise StudyError(f"{place}, which stands later", f"[[roles]] {other} before {role.name}")
    if ends[other] == "serve":
        raise StudyError(
            f"{place}, which serves and so never exits before",
            f'after is for roles with end = "exit"; to wait until {other} is up, give it '
            'ready = "report" and its place before',
        )


def _check_work_and_base(study: Study, where: str) -> None:
    factors = {factor.name: factor.levels for factor in study.factors}
    if study.work is not None:
        if study.work not in factors:
            raise StudyError(
                f"{where}: work {study.work!r} is no factor", _near(study.work, list(factors))
            )
        if not all(isinstance(level, int | float) for level in factors[study.work]):
            raise StudyError(
                f"{where}: work {study.work!r} has levels that are no numbers",
                "a factor that counts threads, sessions or processes",
            )
    for name, level in study.base.items():
        if name not in factors:
            raise StudyError(f"{where}: base {name!r} is no factor", _near(name, list(factors)))
        if level not in factors[name]:
            raise StudyError(
                f"{where}: base {name}={level} is not among the levels",
                f"one of {', '.join(map(str, factors[name]))}",
            )


def _check_conditions(study: Study, where: str) -> None:
    names = [factor.name for factor in study.factors]
    for name in study.conditions:
        if name not in names:
            raise StudyError(f"{where}: conditions: {name!r} is no factor", _near(name, names))
        if name == choose_work(study):
            raise StudyError(
                f"{where}: conditions: {name!r} is the work factor: its levels are chosen",
                "another factor for work, or no condition",
            )


def _check_optional(study: Study, where: str) -> None:
    known = _all_levels(study)
    for factor, levels in study.optional.items():
        place = f"{where}: optional: {factor}"
        if factor not in [item.name for item in study.factors]:
            raise StudyError(f"{place} is no factor", _near(factor, list(known)))
        for level in levels:
            if level not in known[factor]:
                raise StudyError(
                    f"{place}: {level!r} is no level",
                    f"one of {', '.join(map(str, known[factor]))}",
                )


def _near(name: str, names: list[str]) -> str:
    near = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"one of {', '.join(names) or 'none'}"
