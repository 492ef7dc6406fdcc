"""The tables of a study file, key by key."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from concurve.terms import Level

Text = str | int


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of the tables of a study file."""


class HeadTable(Table, frozen=True):
    """``[study]``: what it is called and what it asks."""

    name: str
    question: str
    title: str = ""
    source: str = ""


class ControlsTable(Table, frozen=True):
    """``controls`` of a role; texts may hold placeholders."""

    cpus: Text | None = None
    nice: Text | None = None
    policy: str | None = None


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
    end: Literal["exit", "serve"] = "exit"
    ready: Literal["launch", "report"] = "launch"
    after: list[str] = []
    copies: Text = 1


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
    base: dict[str, Level] = {}
    conditions: list[str] = []
    optional: dict[str, list[Level] | str] = {}
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
    pattern: str | None = None


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


class File(Table, frozen=True, rename={"words": "with"}):
    """The whole file, with all that it takes from those that it extends."""

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


#: The table of each heading, for the keys that a refusal names.
KEYS: dict[str, type[msgspec.Struct]] = {
    "": File,
    "study": HeadTable,
    "roles": RoleTable,
    "controls": ControlsTable,
    "protocol": ProtocolTable,
    "effort": EffortsTable,
    "quick": EffortTable,
    "normal": EffortTable,
    "rigorous": EffortTable,
    "hooks": HooksTable,
    "indicators": IndicatorTable,
    "test_case": TestCaseTable,
}
