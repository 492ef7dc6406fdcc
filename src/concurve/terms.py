"""Types that definitions and findings share: levels and factors, indicators, test cases, and the
texts of a campaign's author."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

Level = int | float | str

#: The levels of a cell as texts: what tells cells apart, in one run and in several.
CellKey = frozenset[tuple[str, str]]


def cell_key(parameters: Mapping[str, Level]) -> CellKey:
    """What is the same for two cells of the same levels. Levels are the same if their texts are:
    whether a text is a number depends on the other levels of its list (decision 83)."""
    return frozenset((name, str(level)) for name, level in parameters.items())


def same_level(level: Level, levels: Iterable[Level]) -> Level | None:
    """The one of some levels that this one means: it has the same text, or is an equal number."""
    return next((it for it in levels if it == level or str(it) == str(level)), None)


#: A comma with the backslashes before it.
_COMMA = re.compile(r"(\\*),")


def split_levels(text: str) -> list[str]:
    """The parts of a text between its commas; ``\\,`` is a comma inside of a part, and ``\\\\``
    before a comma a backslash: ``a\\\\,b`` is a part that ends in one, and another."""
    parts, begin = [""], 0
    for comma in _COMMA.finditer(text):
        slashes, is_inside = divmod(len(comma[1]), 2)
        parts[-1] += text[begin : comma.start()] + "\\" * slashes + "," * is_inside
        parts += [] if is_inside else [""]
        begin = comma.end()
    parts[-1] += text[begin:]
    return parts


def joined_levels(levels: Sequence[Level]) -> str:
    """The text that :func:`split_levels` divides into these."""
    inside = [_COMMA.sub(r"\1\1\\,", str(level)) for level in levels]
    doubled = [re.sub(r"(\\+)\Z", r"\1\1", level) for level in inside[:-1]]
    return ",".join([*doubled, *inside[-1:]])


class Factor(msgspec.Struct, frozen=True, kw_only=True):
    """A factor with its levels in order; ``work`` marks the one that counts as concurrency."""

    name: str
    levels: tuple[Level, ...]
    work: bool = False


#: Why a cell ends that its study's check gave up: what nobody wants more of is no failure.
GIVEN_UP = "given up by the check"

#: Who takes CPU time and is no program that is seen.
HYPERVISOR = "the hypervisor"
OTHERS = "short-lived or small processes"
#: What another run of the laboratory, with its programs, is called among those: it may be measured
#: beside, under another lock.
ANOTHER_RUN = "another concurve run"
#: The name of the laboratory's own process, as the kernel has it.
OURS = "concurve"


class Waiting(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``--wait-quiet`` of a run, in seconds: it waits at most ``seconds`` for a quiet machine, and
    has waited ``before_seconds`` before its first trial, or before it was resumed, and
    ``during_seconds`` between its trials, so many ``times``. ``is_cut``: a wait ended for the time
    allowance of the run. ``busy_with`` are the programs and others that kept the machine busy, with
    the share of the machine's CPU time that each was seen to take, times seconds."""

    seconds: float
    before_seconds: float = 0.0
    during_seconds: float = 0.0
    times: int = 0
    is_cut: bool = False
    busy_with: dict[str, float] = {}

    def and_then(self, more: Waiting) -> Waiting:
        """Both together: ``more`` is what a run that goes on waited anew, and may wait yet."""
        return Waiting(
            seconds=self.waited_seconds + more.seconds,
            before_seconds=self.before_seconds + more.before_seconds,
            during_seconds=self.during_seconds + more.during_seconds,
            times=self.times + more.times,
            is_cut=self.is_cut or more.is_cut,
            busy_with={
                name: self.busy_with.get(name, 0.0) + more.busy_with.get(name, 0.0)
                for name in (*self.busy_with, *more.busy_with)
            },
        )

    @property
    def waited_seconds(self) -> float:
        """How long it has waited in all."""
        return self.before_seconds + self.during_seconds

    @property
    def left_seconds(self) -> float:
        """How long it may wait yet."""
        return max(0.0, self.seconds - self.waited_seconds)

    @property
    def is_over(self) -> bool:
        """Has it waited for as long as it may? What is left of less than a second is nothing."""
        return self.left_seconds < 1.0

    @property
    def busiest(self) -> tuple[str, ...]:
        """Who kept the machine busy, those who took most first."""
        return tuple(sorted(self.busy_with, key=lambda name: -self.busy_with[name]))

    @property
    def programs(self) -> tuple[str, ...]:
        """The programs among them that took most, at most three, and none that took little beside
        the others: who ends them has a quieter machine."""
        least = 0.1 * max(self.busy_with.values(), default=0.0)
        found = [name for name in self.busiest if self.busy_with[name] >= least]
        return tuple(name for name in found if name not in (HYPERVISOR, OTHERS, ANOTHER_RUN))[:3]


class Disturbance(NamedTuple):
    """What keeps a run from a machine that it waits for: ``what`` as a sentence, with the limits,
    and ``briefly`` for a line that is narrow, those who take most first. ``who`` is the one that
    takes most: it is the same disturbance while it is the same one. ``is_turn``: another
    measurement runs, or others that wait came before; else processes or the hypervisor take CPU
    time."""

    what: str
    briefly: str
    who: str
    is_turn: bool = False


class IndicatorInfo(msgspec.Struct, frozen=True, kw_only=True):
    """An indicator: its unit, its better direction and its label. ``is_reported``: the program
    printed or reported it, and nothing else describes it."""

    name: str
    label: str
    unit: str = ""
    better: Literal["lower", "higher", "neither"] = "neither"
    note: str = ""
    is_reported: bool = False


#: The words in the names of figures that say their unit, which stands beside a label anyway.
_WORDS_OF_UNITS = {
    "s": ("seconds",),
    "ms": ("milliseconds", "ms"),
    "us": ("microseconds", "us"),
    "µs": ("microseconds", "us"),
    "ns": ("nanoseconds", "ns"),
    "B": ("bytes",),
}


def label_of(name: str, unit: str = "") -> str:
    """The label of a figure that has only its name: its words, without that of its unit.
    ``latency_seconds_p99`` in ``s`` is ``latency p99``. What is ``per`` something, or nothing but a
    unit, keeps it."""
    words = name.split("_")
    for place, word in enumerate(words):
        beside = (*words[max(place - 1, 0) : place], *words[place + 1 : place + 2])
        if place and word in _WORDS_OF_UNITS.get(unit, ()) and "per" not in beside:
            words = [*words[:place], *words[place + 1 :]]
            break
    return " ".join(words)


class TestCase(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a test document says of a study (document 002, §7.3): the test case's number and area,
    the ``goal`` of the design that it serves, its objective, the results expected, the conditions,
    the indicators and the steps."""

    __test__ = False  # not one of pytest's

    id: str
    objective: str
    area: str = ""
    goal: str = ""
    expected: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    indicators: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Its title: ``Test case 9`` if its id is a number."""
        return f"Test case {self.id}" if self.id[:1].isdigit() else self.id


class Goal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A goal of the design that test cases serve (document 002, table 4); ``priority`` is that of
    the requirement: it must be reached, or it can."""

    id: str
    says: str
    priority: Literal["", "must", "can"] = ""


class Measure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An indicator of a test document, with its meaning and the means by which it is read: in the
    source, and here (document 002, tables 8 to 10). ``left_out`` says why it counts for nothing."""

    name: str
    meaning: str
    source: str = ""
    here: str = ""
    left_out: str = ""


class Reference(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A document that the texts of a campaign refer to (document 002, tables 1 and 3)."""

    id: str
    says: str


class CampaignTexts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The author's texts in the report of a campaign, and what it has in tables. An empty line
    separates paragraphs; lines that begin with ``-`` are a list."""

    introduction: str = ""
    scope: str = ""
    platform: str = ""
    procedure: str = ""
    deviations: str = ""
    goals: tuple[Goal, ...] = ()
    measures: tuple[Measure, ...] = ()
    references: tuple[Reference, ...] = ()
