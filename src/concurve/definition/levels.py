"""Levels of a factor, as written in a study or on the command line.

An item is a number, a word, a range ``1..16``, a range with a step ``1..16+3`` or a factor
``1..64*2``, a share of the machine's CPUs ``50%``, or a range whose end and levels follow from
those CPUs: ``1..`` and ``1..2x``.

A program gets a level as it was written. So an item is a number only where that is how the number
is written: ``3.10`` and ``007`` are texts, and so are ``3.9`` and ``3.11`` beside ``3.10``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal

from concurve.errors import StudyError
from concurve.terms import Level, joined_levels, same_level, split_levels
from concurve.words import listed

_NUMBER = r"-?\d+(?:\.\d+)?"
_RANGE = re.compile(rf"({_NUMBER})\.\.({_NUMBER})(?:([*+])(\d+(?:\.\d+)?))?")
_OTHER_RANGE = re.compile(r"(\d+)\s*(?:-|–|:|\.{3,}|to)\s*(\d+)")
_CHOSEN = re.compile(rf"({_NUMBER})\.\.(?:(\d+(?:\.\d+)?)x)?")
#: What begins as a range; ``4 ../data`` holds a path.
_BEGINS_RANGE = re.compile(rf"{_NUMBER}%?\s*\.\.(?!\.*/)")
#: A mistake in a range. With other signs in it, as in ``0..HEAD`` and ``3..5.txt``, it is a text.
_MISTYPED = re.compile(
    rf"{_NUMBER}%?\s*\.\."
    rf"(?:[\d.%*+xX\s-]*|\s*{_NUMBER}%?\s*(?:[/:;]|by\b|step\b).*|\s*(?:n|N|cpus|CPUs|nproc))"
)
#: A list as a study file or Python writes it: split at its commas, its brackets would be levels.
_IN_BRACKETS = re.compile(r"[\[({]([^][(){}\\]*,[^][(){}\\]*)[\])}]")
_BLANKS_IN_RANGE = re.compile(r"\s*(\.\.|[*+])\s*")
_PERCENT = re.compile(r"(-?\d+(?:\.\d+)?)%")
_INTEGER = re.compile(r"-?\d+")
_DECIMAL = re.compile(r"-?\d+\.\d+(?:[eE][+-]?\d+)?")

LEVELS_MAX = 10_000

EXAMPLE = "for example 1,2,4,8 or 1..16 or 1..64*2 or 50%,100%,200% or 1.. (up to twice the CPUs)"

#: An open range goes on to so many times the CPUs: beyond them the speed-up should end.
_BEYOND = Decimal(2)


def several_meant(text: str) -> str:
    """How levels are written that somebody may mean by this text, which is one level: ``1..4`` of
    ``1-4``, ``1,2,4`` of ``1 2 4``; empty for any other, and for a range that would run backwards:
    ``70:30`` is a ratio."""
    if found := _OTHER_RANGE.fullmatch(text.strip()):
        return f"{found[1]}..{found[2]}" if int(found[1]) < int(found[2]) else ""
    numbers = re.split(r"[\s;]+", text.strip())
    return ",".join(numbers) if len(numbers) > 1 and all(map(str.isdigit, numbers)) else ""


def ranges_meant(text: str) -> dict[str, str]:
    """The levels of a text that somebody may mean as several (:func:`several_meant`), each with how
    these are written. None where all of several look so, as ``10:20,20:30`` do, where one runs
    backwards, as in ``30:70,70:30,none``, or where a level would be there twice: ``0,0-1`` is a
    list of CPUs."""
    items = [item.strip() for item in split_levels(text)]
    found = {item: meant for item in items if (meant := several_meant(item))}
    backwards = [item for item in items if _OTHER_RANGE.fullmatch(item) and item not in found]
    if backwards or (len(items) > 1 and len(found) == len(items)):
        return {}
    written = (part for item in items for part in found.get(item, item).split(","))
    try:
        resolve_levels([part for part in written if not _follows_cpus(part)], 1, "levels")
    except StudyError:
        return {}
    return found


def texts_like_ranges(text: str) -> list[str]:
    """The levels of a text that begin as a range and are taken as they stand: ``0..HEAD``."""
    items = (item.strip() for item in split_levels(text))
    return [it for it in items if _BEGINS_RANGE.match(it) and not _is_range(_without_blanks(it))]


def parse_levels(text: str, cpus: int, where: str) -> tuple[Level, ...]:
    """The levels that a comma-separated text stands for.

    ``cpus`` is what percentages refer to; ``where`` names the parameter in messages.

    Raises:
        StudyError: empty, malformed or repeated levels.
    """
    return resolve_levels(_items(text, where), cpus, where)


def _items(text: str, where: str) -> list[Level]:
    if found := _IN_BRACKETS.fullmatch(text.strip()):
        raise StudyError(f"{where}: levels of a command line have no brackets", found[1])
    items: list[Level] = [item.strip() for item in split_levels(text)]
    if not all(items):
        raise StudyError(f"{where}: an empty level in {text!r}", _without_empty(items))
    return items


def _without_empty(items: Sequence[Level]) -> str:
    """What to do about levels some of which are empty: a comma too many is removed, and which
    kind of levels were meant is seen from the others."""
    if not any(items):
        return EXAMPLE
    full = [place for place, item in enumerate(items) if item]
    if full[0] == 0 and full[-1] == len(full) - 1:
        many = len(items) - len(full)
        return "remove the last comma" if many == 1 else f"remove the last {many} commas"
    return f"remove what is too many of the commas: {joined_levels([it for it in items if it])}"


def resolve_levels(items: Sequence[Level], cpus: int, where: str) -> tuple[Level, ...]:
    """Levels with ranges written out and percentages resolved, checked for repeats. What follows
    from the CPUs may fall together on few of them: then it is one level.

    Raises:
        StudyError: none at all, malformed, too many, or repeated.
    """
    return tuple(_origins(items, cpus, where))


def levels_among(levels: Sequence[Level], others: Sequence[Level]) -> tuple[Level, ...]:
    """The levels of a list as the main list of their factor has them: a level of both as it stands
    there, and all others as texts where its numbers are texts."""
    known = {str(other): other for other in others}
    are_texts = any(isinstance(other, str) and _is_like_number(other) for other in others)

    def among(level: Level) -> Level:
        return str(level) if are_texts else level

    return tuple(known.get(str(level), among(level)) for level in levels)


def levels_meant(
    named: Mapping[str, Level], factors: Mapping[str, Sequence[Level]]
) -> dict[str, Level]:
    """Levels by factor, each as the factor has it. What no factor has stays as it is, to be
    refused."""
    found = {name: same_level(level, factors.get(name, ())) for name, level in named.items()}
    return {name: named[name] if level is None else level for name, level in found.items()}


def fallen_together(text: str, cpus: int) -> str:
    """What of some levels is the same on so many CPUs, as a sentence; empty where nothing is."""
    origins = _origins(_items(text, "levels"), cpus, "levels")
    same: dict[tuple[Level, ...], list[Level]] = {}
    for level, named in origins.items():
        if len(named) > 1:
            same.setdefault(tuple(named), []).append(level)
    return "; ".join(
        f"{listed([*map(str, named)])} {'both' if len(named) == 2 else 'all'} give "
        f"{listed([*map(str, levels)])}"
        for named, levels in same.items()
    )


def _origins(items: Sequence[Level], cpus: int, where: str) -> dict[Level, list[Level]]:
    """The levels in order, each with the items that stand for it. A number and its text are one
    level."""
    if not items:
        raise StudyError(f"{where}: no levels", EXAMPLE)
    origins: dict[Level, list[Level]] = {}
    by_text: dict[str, Level] = {}
    items = [_without_blanks(item) for item in items]
    are_texts = any(isinstance(item, str) and _is_rewritten(item) for item in items)
    for item in items:
        is_fixed = not _follows_cpus(item)
        for found in _expand(item, cpus, where, are_texts):
            level = by_text.setdefault(str(found), found)
            before = origins.setdefault(level, [])
            if item in before or (is_fixed and not all(map(_follows_cpus, before))):
                also = f" (from {before[0]!r} and {item!r})" if before[0] != item else ""
                raise StudyError(f"{where}: level {level!r} is repeated{also}", "name each once")
            before.append(item)
            if len(origins) > LEVELS_MAX:
                raise StudyError(f"{where}: more than {LEVELS_MAX} levels", "a wider step")
    return origins


def _without_blanks(item: Level) -> Level:
    """``1 .. 64 * 2`` as ``1..64*2``; whatever is no range as it stands."""
    bare = _BLANKS_IN_RANGE.sub(r"\1", item) if isinstance(item, str) else item
    return bare if _is_range(bare) else item


def _is_range(item: Level) -> bool:
    return isinstance(item, str) and bool(_RANGE.fullmatch(item) or _CHOSEN.fullmatch(item))


def _follows_cpus(item: Level) -> bool:
    """Does it depend on the machine what this stands for?"""
    return isinstance(item, str) and bool(_PERCENT.fullmatch(item) or _CHOSEN.fullmatch(item))


def parse_level(text: str) -> Level:
    """A single level from its text: a whole number, a decimal, or a word."""
    return _scalar(text)


def _expand(item: Level, cpus: int, where: str, are_texts: bool) -> list[Level]:
    """The levels of an item. ``are_texts``: another item looks like a number, and is none."""
    if isinstance(item, bool):
        raise StudyError(f"{where}: level {item!r} is a boolean", 'words in quotes: "on", "off"')
    if isinstance(item, float) and not math.isfinite(item):
        raise StudyError(f"{where}: level {item!r} is not finite", EXAMPLE)
    if not isinstance(item, str):
        return [item]
    if match := _PERCENT.fullmatch(item):
        if float(match[1]) <= 0:
            raise StudyError(f"{where}: {item} of the CPUs is none", "a share above 0: 50%,100%")
        return [max(1, round(float(match[1]) * cpus / 100))]
    if match := _CHOSEN.fullmatch(item):
        return _chosen(Decimal(match[1]), Decimal(match[2] or _BEYOND), cpus, item, where)
    if match := _RANGE.fullmatch(item):
        return _range(Decimal(match[1]), Decimal(match[2]), match[3] or "+", match[4], item, where)
    if _MISTYPED.fullmatch(item):
        raise StudyError(f"{where}: {item!r} is no range", _range_meant(item))
    return [item if are_texts else _scalar(item)]


def _range_meant(item: str) -> str:
    """What to write in place of a range that is none."""
    if "%" in item:
        return "one share after the other: 50%,100%,200%; or 1..2x, up to twice the CPUs"
    small = item.lower()
    return small if _CHOSEN.fullmatch(small) else several_meant(item) or EXAMPLE


def _chosen(first: Decimal, times: Decimal, cpus: int, item: str, where: str) -> list[Level]:
    """Levels that double from the first one to so many times the CPUs, with the number of CPUs and
    the end among them."""
    last = int(times * cpus)
    if first < 1 or first != first.to_integral_value():
        raise StudyError(f"{where}: range {item!r} does not begin with a count", "1.. or 1..2x")
    if last < first:
        raise StudyError(
            f"{where}: range {item!r} ends at {last}, {times} times the {cpus} CPUs granted, and "
            f"begins at {first}",
            f"a lower start, or an end in numbers: {first}..{2 * first}",
        )
    doubled = (int(first) << step for step in range(last.bit_length()))
    wanted = {level for level in (*doubled, cpus, last) if first <= level <= last}
    return [*sorted(wanted)]


def _range(
    first: Decimal, last: Decimal, sign: str, by: str | None, item: str, where: str
) -> list[Level]:
    step = Decimal(by) if by else Decimal(1)
    if last < first:
        raise StudyError(f"{where}: range {item!r} runs backwards", f"{last}..{first}")
    if sign == "+" and step <= 0:
        raise StudyError(f"{where}: range {item!r} has no step", "a step above 0: 1..16+3")
    if sign == "*" and (step <= 1 or first <= 0):
        raise StudyError(
            f"{where}: range {item!r} does not grow", "a start above 0, a factor above 1: 1..64*2"
        )
    levels: list[Level] = []
    value = first
    while value <= last and len(levels) <= LEVELS_MAX:
        levels.append(int(value) if value == value.to_integral_value() else float(value))
        value = value * step if sign == "*" else value + step
    return levels


def _scalar(text: str) -> Level:
    return text if _is_rewritten(text) else _number(text)


def _is_rewritten(text: str) -> bool:
    """Does it look like a number that would reach the program written otherwise?"""
    return str(_number(text)) != text


def _is_like_number(text: str) -> bool:
    return not isinstance(_number(text), str)


def _number(text: str) -> Level:
    if _INTEGER.fullmatch(text):
        return int(text)
    if _DECIMAL.fullmatch(text):
        return float(text)
    return text
