"""``--extract``: a figure of a program's output, as written on a command line.

``NAME=REGEX[:unit[:direction]]`` is a figure of one's own, ``ROLE.NAME=…`` one of another role, and
``pgbench`` the figures of a tool whose output is known. Unit and direction are split off from the
end: what follows the last colon is the direction if it is ``higher``, ``lower`` or ``neither``, and
what follows the last but one is the unit if it looks like one. A colon of the pattern that must not
separate is written ``\\:``. ``failures`` in the place of the direction is a figure that counts
failures, of which fewer are better.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import resources
from pathlib import PurePath
from typing import Any, Literal, NamedTuple, get_args

from concurve.definition.failures import default_failures
from concurve.definition.indicator_names import IndicatorName, split_name
from concurve.definition.measured import MEASURED
from concurve.definition.starters import last_started, started
from concurve.definition.study import Extract, Indicator
from concurve.definition.units import is_rate
from concurve.errors import StudyError
from concurve.words import meant, nearest, one_of

Direction = Literal["lower", "higher", "neither"]

DIRECTIONS: tuple[Direction, ...] = get_args(Direction)

#: In the place of a direction: it counts failures.
FAILURES = "failures"

#: A unit has a letter, or is % or 1: the minutes of a time such as 12:00 are none. The micro sign
#: may be the Greek letter.
_UNIT = re.compile(r"1|(?=.*[A-Za-zµ\u03bc%])[A-Za-zµ\u03bc%/·²³0-9]{1,32}")
#: Words that are none, although somebody may mean them so.
_LIKE_UNIT = re.compile(r"[A-Za-zµ\u03bc%][\w%/·²³ .-]*")

#: Words for a direction that are none, and no unit either.
_NO_UNITS = re.compile(
    "more|less|most|least|max|min|up|down|high|low|greater|bigger|smaller|larger|maximi[sz]e"
    "|minimi[sz]e|faster|slower|better|worse|none",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Za-z]{2,}")

EXAMPLE = r"--extract 'rate=(\d+) req/s:1/s:higher'"


class Extraction(NamedTuple):
    """A figure to read: where it stands, what it means, and whether it is the primary one of a
    tool's output."""

    extract: Extract
    indicator: Indicator
    is_primary: bool = False

    @property
    def is_throughput(self) -> bool:
        """Is it a rate of which more is better?"""
        item = self.indicator
        return item.better == "higher" and is_rate(item.name, item.unit)


def parse_extract(text: str, target: str = "target") -> list[Extraction]:
    """The figures that one ``--extract`` stands for; ``target`` is the measured role.

    Raises:
        StudyError: no name, no pattern, or a tool that is not known.
    """
    name, equals, pattern = text.partition("=")
    role, own = split_name(name)
    if name.startswith("."):
        raise StudyError(f"--extract {text!r}: no role before the dot", "ROLE.NAME=REGEX")
    role = "" if role == target else role
    if not equals:
        if own not in _table():
            raise StudyError(
                f"--extract '{text}': neither NAME=REGEX nor a tool whose output is known",
                _as_meant(text),
            )
        return list(_known(own, role))
    if not own or not pattern:
        raise StudyError(f"--extract '{text}': not NAME=REGEX[:unit[:direction]]", EXAMPLE)
    head, word = _last(pattern)
    counts_failures = word == FAILURES
    if counts_failures:
        pattern = f"{head}:lower"
    if not role and own in MEASURED:
        raise StudyError(
            f"--extract {own}: this is the name of a figure that is always measured",
            f"another name: --extract printed_{name}=…",
        )
    _check_direction(text, pattern)
    pattern, unit, better = _split(pattern)
    full = str(IndicatorName(role, own))
    return [
        Extraction(
            Extract(name=full, pattern=pattern, unit=unit, role=role),
            Indicator(
                name=full,
                unit=unit,
                better=better,
                failures=default_failures(unit) if counts_failures else "",
            ),
        )
    ]


def _as_meant(text: str) -> str:
    """What to type in place of a text without a name: the pattern with a name of its own words, or
    of one word the pattern that finds it before a figure."""
    if "(" in text:
        pattern, _, better = _split(text)
        words = re.findall(r"[A-Za-z]{2,}", re.sub(r"\(.*\)|\\.", " ", pattern))
        name = "_".join(words[:2]).lower() or "rate"
        if better != "neither":
            return f"a name before the pattern: --extract {shlex.quote(f'{name}={text}')}"
        own = shlex.quote(f"{name}={text}:higher")
        return f"a name before the pattern: --extract {own}, or :lower where less is better"
    own = EXAMPLE
    if re.fullmatch(r"[A-Za-z][\w-]*", text):
        own = shlex.quote(rf"{text}={text}\D*([\d.]+):higher")
        own = f"--extract {own}, where it prints {text} before a figure, and more is better"
    return meant(text, _table(), f"{own}, or {one_of(list(_table()))}")


def extract_option(extract: Extract, better: str) -> str:
    """The option that reads this figure with that better direction, as one would type it."""
    value = f"{extract.name}={extract.pattern}:{extract.unit}:{better}"
    return f"--extract {shlex.quote(value)}"


def tools() -> dict[str, str]:
    """The tools whose output is known, each with what is read of it."""
    return {name: entry["says"] for name, entry in _table().items()}


def tool_of(command: Sequence[str]) -> str | None:
    """The tool whose output is known that a command line starts, by the name of its program; of a
    shell (``sh -c "… | vegeta report"``) the one whose output comes last."""
    words = last_started(command)
    program = PurePath(words[0]).name if words else ""
    named = [
        name
        for name, entry in _table().items()
        if program in _programs(name)
        and ("only" not in entry or _tests(words) & set(entry["only"]))
    ]
    # What is read of one test comes before what is read of the others.
    return max(named, key=lambda name: "only" in _table()[name], default=None)


def tool_to_read(command: Sequence[str]) -> str | None:
    """The tool that a command line starts, where all versions of it print its figures."""
    tool = tool_of(command)
    unsure = _table()[tool].get("unsure", []) if tool else []
    return None if _tests(last_started(command)) & set(unsure) else tool


def _tests(words: Sequence[str]) -> set[str]:
    """The words of a command line that may name one of the tests that a tool has."""
    return {word.removeprefix("--test=") for word in words[1:]}


def is_of_tool(extract: Extract, tool: str) -> bool:
    """Is it one of the figures that are known of a tool?"""
    return extract.pattern in {figure["pattern"] for figure in _table()[tool]["figures"]}


def misread(extract: Extract, command: Sequence[str]) -> tuple[list[str], str, list[str]] | None:
    """The tools whose figure this is, the program that a command line starts, and the tools by
    which its output is read, where these are others. ``None`` for a script and any program of
    which nobody knows what it prints, and where the command line names a tool of the figure."""
    words = started(command)
    if extract.optional or not words:
        return None
    program = PurePath(words[0]).name
    read_by = [name for name in _table() if program in _programs(name)]
    meant_by = [name for name, entry in _table().items() if _first(entry) == extract.pattern]
    named = {PurePath(word).name for text in words[1:] for word in text.split()}
    also = named & {it for name in meant_by for it in _programs(name)}
    if not read_by or not meant_by or also or set(meant_by) & set(read_by):
        return None
    return meant_by, program, read_by


def _programs(tool: str) -> list[str]:
    programs: list[str] = _table()[tool].get("programs", [tool])
    return programs


def _first(entry: dict[str, Any]) -> str:
    """The pattern of the primary figure of a tool, by which its output is known."""
    pattern: str = entry["figures"][0]["pattern"]
    return pattern


def parse_named_direction(text: str) -> tuple[str, Direction]:
    """``NAME`` or ``NAME:higher`` as a name and a direction, ``neither`` where none is given."""
    name, colon, direction = text.rpartition(":")
    for better in DIRECTIONS:
        if colon and direction == better:
            return name, better
    return text, "neither"


def _check_direction(text: str, pattern: str) -> None:
    """Refuse a word that stands where a direction does and is none: it would be taken for the unit,
    and the unit for a part of the pattern.

    Raises:
        StudyError: there is one.
    """
    head, word = _last(pattern)
    if word is None or word in DIRECTIONS or not _WORD.fullmatch(word):
        return
    rest, unit = _last(head)
    has_unit = unit is not None and (not unit or _UNIT.fullmatch(unit)) and "(" in rest
    if has_unit or _NO_UNITS.fullmatch(word) or nearest(word, DIRECTIONS, 0.8):
        said = unit if has_unit and unit else ""
        raise StudyError(
            f"--extract '{text}': {word!r} is no direction: {', '.join(DIRECTIONS)}",
            f"end it with :{said}:higher where more is better, or :{said}:lower; a colon of the "
            "pattern itself is written \\:",
        )


def _split(pattern: str) -> tuple[str, str, Direction]:
    """A pattern, a unit, and a better direction."""
    head, direction = _last(pattern)
    for better in DIRECTIONS:
        if direction == better:
            rest, unit = _last(head)
            if rest and (not unit or _UNIT.fullmatch(unit)):
                return rest, unit or "", better
            if unit and "(" in rest and _LIKE_UNIT.fullmatch(unit):
                raise StudyError(
                    f"--extract '{pattern}': {unit!r} is no unit: that has no blanks, and 32 "
                    "characters at most",
                    f"a shorter one, such as :1/s:{better}; a colon of the pattern itself is "
                    "written \\:",
                )
            return head, "", better
    if direction and _UNIT.fullmatch(direction):
        return head, direction, "neither"
    return pattern, "", "neither"


def _last(text: str) -> tuple[str, str | None]:
    """What stands before and after the last colon without a backslash; ``None`` without one."""
    head, colon, tail = text.rpartition(":")
    backslashes = len(head) - len(head.rstrip("\\"))
    if not colon or not head or backslashes % 2:
        return text, None
    return head, tail


def tool_figures(text: str, target: str, where: str) -> list[Extraction]:
    """The figures of the tool that a study file names, as ``pgbench``, or ``ROLE.pgbench`` where
    another role than the measured one prints them.

    Raises:
        StudyError: a tool that is not known; ``where`` names the key.
    """
    role, tool = split_name(text)
    if tool not in _table():
        known = meant(tool, _table(), one_of(list(_table())))
        raise StudyError(f"{where}: '{text}' is no tool whose output is known", known)
    return list(_known(tool, "" if role == target else role))


def _known(tool: str, role: str) -> Iterator[Extraction]:
    for place, figure in enumerate(_table()[tool]["figures"]):
        name = str(IndicatorName(role, figure["name"]))
        unit = figure.get("unit", "")
        extract = Extract(
            name=name,
            pattern=figure["pattern"],
            unit=unit,
            role=role,
            combine=figure.get("combine", "last"),
            optional=place > 0,
            zero_unprinted=figure.get("zero_unprinted", False),
        )
        indicator = Indicator(
            name=name,
            unit=unit,
            better=figure["better"],
            label=figure.get("label", ""),
            failures=figure.get("failures", ""),
        )
        yield Extraction(extract, indicator, place == 0)


@cache
def _table() -> dict[str, Any]:
    path = resources.files("concurve.definition") / "known_outputs.toml"
    return tomllib.loads(path.read_text(encoding="utf-8"))


def primary_of(found: Sequence[Extraction]) -> str | None:
    """The figure that is primary where none is named: the first of a tool, else the first
    throughput; ``None`` without one."""
    chosen = [item for item in found if item.is_primary] or [
        item for item in found if item.is_throughput
    ]
    return chosen[0].indicator.name if chosen else None
