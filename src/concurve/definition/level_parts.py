"""The parts of levels: the values that a level stands for, if one word sets several things.

A priority class is a nice value and a policy, a kernel is a program and its options: with
``[levels.class]`` in a study file, ``{class.nice}`` is the part ``nice`` of the cell's level.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from concurve.definition.origins import Origins
from concurve.definition.templates import (
    NAME,
    Value,
    check_placeholders,
    is_whole,
    placeholders,
    render,
)
from concurve.errors import StudyError
from concurve.terms import Level
from concurve.words import meant

#: By factor, by level as text, by part. The texts may hold placeholders of factors, and of parts of
#: other factors that hold no such placeholder themselves.
LevelParts = Mapping[str, Mapping[str, Mapping[str, Value]]]


def part_names(level_parts: LevelParts) -> list[str]:
    """The placeholders that the parts fill: ``class.nice``."""
    return [
        f"{factor}.{part}"
        for factor, levels in level_parts.items()
        for part in dict.fromkeys(part for parts in levels.values() for part in parts)
    ]


def part_values(level_parts: LevelParts, parameters: Mapping[str, Level]) -> dict[str, Value]:
    """The value of each part in a cell."""
    given = {
        f"{factor}.{part}": value
        for factor, levels in level_parts.items()
        for part, value in levels[str(parameters[factor])].items()
    }
    plain = {
        name: _filled(value, parameters) for name, value in given.items() if not _parts_named(value)
    }
    known = {**parameters, **plain}
    return {
        name: plain[name] if name in plain else _filled(value, known)
        for name, value in given.items()
    }


def _texts(value: Value) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else (str(value),)


def _parts_named(value: Value) -> list[str]:
    """The parts whose placeholders stand in a part."""
    return [name for text in _texts(value) for name in placeholders(text) if "." in name]


def _filled(value: Value, values: Mapping[str, Value]) -> Value:
    if isinstance(value, tuple):
        return tuple(render(text, values) for text in value)
    return render(value, values) if isinstance(value, str) else value


def part_texts(level_parts: LevelParts) -> Iterator[tuple[str, str]]:
    """Every text of the parts, with its place in the file."""
    for factor, levels in level_parts.items():
        for level, parts in levels.items():
            for part, value in parts.items():
                for text in _texts(value):
                    yield f"levels.{factor}, {level}, {part}", text


def check_parts(
    level_parts: LevelParts, levels: Mapping[str, Iterable[Level]], origins: Origins
) -> None:
    """Refuse parts that leave a level of a factor (by ``levels``) without its parts.

    Raises:
        StudyError: names the place and the remedy.
    """
    for factor, entries in level_parts.items():
        where = origins.of("levels", factor)
        if factor not in levels:
            raise StudyError(f"{where}: levels.{factor} is no factor", meant(factor, levels))
        wanted = [str(level) for level in levels[factor]]
        for level in entries:
            if level not in wanted:
                raise StudyError(
                    f"{where}: levels.{factor}: {level!r} is no level", meant(level, wanted)
                )
        for level in wanted:
            _check_level(factor, level, entries, where)
        for place, text in part_texts({factor: entries}):
            known = [*levels, *part_names(level_parts)]
            check_placeholders(text, known, f"{where}: {place}", origins.parameter)
            _check_parts_named(text, level_parts, f"{where}: {place}")
            check_lists(level_parts, [(f"{where}: {place}", text)], arguments=False)


def _check_parts_named(text: str, level_parts: LevelParts, where: str) -> None:
    """Refuse a part that is made of parts which are made of parts themselves: so none is made of
    itself."""
    for name in _parts_named(text):
        factor, _, part = name.partition(".")
        for level, parts in level_parts[factor].items():
            if part in parts and _parts_named(parts[part]):
                raise StudyError(
                    f"{where}: {{{name}}} is made of {{{_parts_named(parts[part])[0]}}} itself "
                    f"(levels.{factor}, {level})",
                    "the parts that it is made of, in its place",
                )


def _check_level(
    factor: str, level: str, entries: Mapping[str, Mapping[str, Value]], where: str
) -> None:
    place = f"{where}: levels.{factor}"
    if level not in entries:
        raise StudyError(f"{place}: {level!r} stands for nothing", f"an entry for {level!r}")
    for part in dict.fromkeys(part for parts in entries.values() for part in parts):
        if not NAME.fullmatch(part):
            raise StudyError(f"{place}: {part!r}: not a name", "letters, digits, _ and -")
        if part not in entries[level]:
            raise StudyError(f"{place}: {level!r} has no {part!r}", f"{part} for every level")


def check_lists(
    level_parts: LevelParts, texts: Iterable[tuple[str, str]], *, arguments: bool
) -> None:
    """Refuse a list in one of the ``texts`` (each with its place); in ``arguments`` a list may be
    an argument of its own.

    Raises:
        StudyError: names the place and the remedy.
    """
    lists = {
        f"{factor}.{part}"
        for factor, levels in level_parts.items()
        for parts in levels.values()
        for part, value in parts.items()
        if isinstance(value, tuple)
    }
    for place, text in texts:
        for name in placeholders(text):
            if name in lists and not (arguments and is_whole(text)):
                raise StudyError(
                    f"{place}: {{{name}}} is a list",
                    f'an argument of its own, "{{{name}}}", or a text instead of the list',
                )
