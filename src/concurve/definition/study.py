"""A study: question, factors, roles, protocol, indicators and claims, frozen.

A study is data: it comes from a TOML file (:mod:`~concurve.definition.study_file`), from a command
line (:mod:`~concurve.definition.study_line`) or from the store. Its texts may hold placeholders;
nothing in it is evaluated.

Its types are stored inside two heads, that of a run (:mod:`concurve.store.run_head`) and that of a
campaign (:mod:`concurve.store.campaign_head`), and have no format number of their own. A key that
may be absent and that older versions may ignore needs nothing else. Any other change makes a new
format of both heads, each with a line in the history of its module and a function in ``VERSIONS``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import msgspec

from concurve.definition.controls import ControlsTemplate
from concurve.definition.level_parts import part_texts
from concurve.definition.published import PublishedFigure
from concurve.definition.templates import Value, placeholders
from concurve.terms import Level, TestCase
from concurve.wire.spec import Attach, ReadyProbe

EffortName = Literal["quick", "normal", "rigorous"]

EFFORTS: tuple[EffortName, ...] = ("quick", "normal", "rigorous")

#: What a role is for (:mod:`~concurve.definition.purposes`); empty: what the study shows.
Purpose = Literal["", "server", "load", "setup", "background"]

#: Names of factors that count as concurrency when a study does not say which one does.
WORK_NAMES = ("threads", "workers", "sessions", "clients", "processes", "jobs", "io-threads")

#: A free TCP port of loopback, a different one in each trial.
FREE_PORT = "free_port"

#: A seed for random draws: the same in all cells of a block, a different one in each block.
BLOCK_SEED = "block_seed"

#: An empty folder for the trial alone, which is removed after it.
TRIAL_FOLDER = "trial_folder"

#: A password that nobody has chosen, the same in all trials of a run; no store keeps it.
RUN_PASSWORD = "run_password"

#: Placeholders that need no parameter; those of a trial have a value in its roles only.
OF_TRIAL = (FREE_PORT, BLOCK_SEED, TRIAL_FOLDER, RUN_PASSWORD)
BUILT_IN = ("effort", *OF_TRIAL)


class _Frozen(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of the parts of a study."""


class Factor(_Frozen, frozen=True):
    """What is varied, with its levels in order."""

    name: str
    levels: tuple[Level, ...]


class Extract(_Frozen, frozen=True):
    """A figure read out of a role's output: the number in the last match of ``pattern``, or the sum
    over all matches (:mod:`~concurve.readings.extraction`).

    ``role`` is the role whose output is read, the measured one if empty; the figure of another role
    is named after it: ``load.tps``. ``optional``: an output without it is no error.
    ``zero_unprinted``: nor is it unknown there, since the program prints it only where it is not 0.
    """

    name: str
    pattern: str
    unit: str = ""
    role: str = ""
    combine: Literal["last", "sum"] = "last"
    optional: bool = False
    zero_unprinted: bool = False


class Role(_Frozen, frozen=True):
    """A process group of each trial, with placeholders.

    Either ``program`` (a packaged one, with its ``arguments`` in ``command``) or a whole
    ``command``; or, where its processes run already, ``attach``
    (:mod:`~concurve.definition.attaching`), with ``attached`` for what that was when the run began.
    ``ready_probe`` is seen from outside once the role is ready, within ``ready_seconds``.
    For packaged programs that are jars, ``java`` says which Java runs them
    (:func:`~concurve.host.java.find_java`) and ``jvm`` holds options of the JVM. ``prefix`` is a
    command that starts the rest, such as ``setpriv``. ``copies`` starts the role several times.
    ``purpose`` is what it is for where the study does not show it. ``host`` says on which host it
    runs (:mod:`~concurve.definition.inventory`); empty: on the first one.
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
    ready_probe: ReadyProbe | None = None
    ready_seconds: float | None = None
    attach: str | None = None
    attached: Attach | None = None
    purpose: Purpose = ""
    host: str = ""


class Hooks(_Frozen, frozen=True):
    """Shell commands around trials: once a cell (setup, cleanup), around each trial (prepare,
    conclude), and the validator of each trial (check: 0 accept, 1 redo, 2 give up)."""

    setup: str | None = None
    prepare: str | None = None
    conclude: str | None = None
    cleanup: str | None = None
    check: str | None = None

    def texts(self) -> dict[str, str]:
        """The hooks that are set, by name."""
        return {name: text for name, text in msgspec.structs.asdict(self).items() if text}


class Rules(_Frozen, frozen=True):
    """How many trials: two stages between bounds.

    ``precision`` is the half-width of the 95 % interval aimed at, relative to the centre;
    ``repeats_min`` the size of the pilot, ``repeats_max`` the cap a cell; ``choosing_max`` the cap
    where the pilot does not tell which setting to use, 0 for no other one;
    ``time_allowed_seconds`` the cap a run; ``timeout_seconds`` the limit of one trial. Stored heads
    leave out what is as here, so the values here never change; :data:`DEFAULT_RULES` may.
    """

    precision: float = 0.02
    repeats_min: int = 5
    repeats_max: int = 30
    time_allowed_seconds: float = 3600.0
    timeout_seconds: float | None = None
    redo_max: int = 2
    redo_share: float = 0.2
    choosing_max: int = 0

    @property
    def most(self) -> int:
        """The trials that a cell has at most; a number that is fixed stays so."""
        is_fixed = self.repeats_min == self.repeats_max
        return self.repeats_max if is_fixed else max(self.repeats_max, self.choosing_max)


DEFAULT_RULES: dict[EffortName, Rules] = {
    "quick": Rules(precision=0.05, repeats_max=10, time_allowed_seconds=120.0, choosing_max=60),
    "normal": Rules(repeats_min=8),
    "rigorous": Rules(
        precision=0.01, repeats_min=15, repeats_max=200, time_allowed_seconds=24 * 3600.0
    ),
}


class Effort(_Frozen, frozen=True):
    """Rules of one effort, and the levels it uses where they differ from the study's."""

    rules: Rules
    factors: dict[str, tuple[Level, ...]] = {}


class Indicator(_Frozen, frozen=True):
    """An indicator that the study asks for; the first one is the primary. ``failures`` says that it
    counts failures, and among what (:mod:`~concurve.definition.failures`)."""

    name: str
    better: Literal["lower", "higher", "neither"] = "neither"
    unit: str = ""
    label: str = ""
    failures: str = ""


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


class Study(_Frozen, frozen=True, rename={"level_parts": "meanings"}):
    """A complete study.

    ``conditions`` are factors whose levels a user cannot choose, such as a load: none of their
    levels is ever recommended. ``optional`` has the levels that are left out if the machine lacks
    what they need, such as a server that is not installed. ``compares`` names those of these
    factors of which two levels must be left: with one there is nothing to compare.
    ``simulation``: the figures come from a clock of the program's own, so a trial counts on any
    machine, and the cells of a block share their draws (``{block_seed}``), so ratios are taken
    block by block. ``level_parts`` has the parts of the levels of a factor; stored data call it
    ``meanings``. ``work_amount`` says whether all cells do the same work (``fixed``), or each unit
    of the work factor brings its own (``scales``); ``unknown``: nobody said, so a run in which the
    work seems to grow recommends nothing by its time. Empty, it is the same work.
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
    work_amount: Literal["", "fixed", "scales", "unknown"] = ""
    base: dict[str, Level] = {}
    conditions: tuple[str, ...] = ()
    optional: dict[str, tuple[Level, ...]] = {}
    compares: tuple[str, ...] = ()
    level_parts: dict[str, dict[str, dict[str, Value]]] = {}
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
        """The unit of the primary indicator; derived from its name if the study gives none."""
        return self.unit_of(self.primary)

    def unit_of(self, indicator: str) -> str:
        """The unit of an indicator that the study declares; derived from its name if it gives
        none."""
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


def with_java(study: Study, java: str) -> Study:
    """The study with this Java for the roles of packaged programs that do not name one."""
    roles = tuple(
        msgspec.structs.replace(role, java=java) if role.program and role.java is None else role
        for role in study.roles
    )
    return msgspec.structs.replace(study, roles=roles)


def choose_work(study: Study) -> str | None:
    """The factor that counts as concurrency: the one named, else a numeric one with a usual name,
    else the only one if its levels are whole numbers above 0, and it is more than a priority, a
    number of competitors, or a number of something else by its name, as of a version. A ``work``
    that is empty says that none does."""
    if study.work is not None:
        return study.work or None
    if usual := usual_work(study):
        return usual[0]
    if len(study.factors) != 1 or not may_count(study.factors[0]):
        return None
    [only] = study.factors
    return None if _is_condition(study, only.name) else only.name


#: Names of parameters whose whole numbers are those of something that is not counted, or is asked
#: for each second.
_NUMBERED = re.compile(
    r"(.*[_-])?(version|ver|release|rev|revision|tag|build|commit|branch|port|seed|year|python|py"
    r"|java|jdk|node|php|ruby|gcc|clang|go|pg|rate|qps|rps|tps)",
    re.IGNORECASE,
)


def may_count(factor: Factor) -> bool:
    """May a factor count workers: are its levels counts from 1 on, and none of another kind by its
    name?"""
    counts = all(isinstance(level, int) and level > 0 for level in factor.levels)
    return counts and not _NUMBERED.fullmatch(factor.name)


def usual_work(study: Study) -> list[str]:
    """The numeric factors that have a usual name of what counts as concurrency."""
    numeric = _numeric(study)
    return [name for name in WORK_NAMES if name in numeric]


def _numeric(study: Study) -> list[str]:
    return [
        factor.name
        for factor in study.factors
        if all(isinstance(level, int | float) for level in factor.levels)
    ]


def _is_condition(study: Study, factor: str) -> bool:
    """Is the factor used only in priorities and in numbers of copies of other roles?"""
    places = [item.place for item in texts(study) if factor in placeholders(item.text)]
    own_copies = f"role {study.target}, copies"
    return bool(places) and all(
        place.endswith((", nice", ", policy", ", copies")) and place != own_copies
        for place in places
    )


class Text(NamedTuple):
    """A text that may hold placeholders: the table and the name of its entry, its place in words,
    and the text."""

    table: str
    name: str
    place: str
    text: str


def texts(study: Study) -> Iterator[Text]:
    """Every text of the study that may hold placeholders, except those of its level parts."""
    yield from arguments(study)
    yield from single_texts(study)


def arguments(study: Study) -> Iterator[Text]:
    """The texts that are arguments of a command line."""
    for role in study.roles:
        for kind, listed in (
            ("prefix", role.prefix),
            ("jvm", role.jvm),
            ("argument", role.command),
            ("readiness command", (role.ready_probe and role.ready_probe.command) or ()),
        ):
            for position, argument in enumerate(listed, 1):
                place = f"role {role.name}, {kind} {position}"
                yield Text("roles", role.name, place, argument)


def single_texts(study: Study) -> Iterator[Text]:
    """The texts that are not arguments of a command line."""
    for role in study.roles:
        given = {
            "program": role.program,
            "java": role.java,
            **{f"env {key}": value for key, value in role.env.items()},
            "cwd": role.cwd,
            **role.controls.texts(),
            "copies": role.copies,
            "ready tcp": role.ready_probe and role.ready_probe.tcp,
            "ready line": role.ready_probe and role.ready_probe.line,
        }
        for kind, text in given.items():
            if text or kind.startswith("env "):
                yield Text("roles", role.name, f"role {role.name}, {kind}", str(text))
    for hook, text in study.hooks.texts().items():
        yield Text("hooks", hook, f"hook {hook}", text)


def uses(study: Study, placeholder: str) -> bool:
    """Does any text of the study hold this placeholder?"""
    return any(placeholder in placeholders(text) for text in _all_texts(study))


def unused_factors(study: Study) -> list[str]:
    """Factors that no text mentions: varying them changes nothing."""
    used = {name.partition(".")[0] for text in _all_texts(study) for name in placeholders(text)}
    return [factor.name for factor in study.factors if factor.name not in used]


def _all_texts(study: Study) -> list[str]:
    return [
        *(item.text for item in texts(study)),
        *(text for _, text in part_texts(study.level_parts)),
    ]
