"""TOML → a frozen type; an error names the key as the file does."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

from concurve.definition.near_keys import remedy_for
from concurve.errors import StudyError
from concurve.inputs import read_named_text
from concurve.words import one_of

T = TypeVar("T", bound=msgspec.Struct)

Keys = Mapping[str, type[msgspec.Struct]]
"""The type of each table, by the last part of its name; ``""`` is the whole file."""

_UNKNOWN = re.compile(r"Object contains unknown field `(?P<key>[^`]*)`(?: - at `\$(?P<at>.*)`)?")
_OTHER = re.compile(r"(?P<what>.*?)(?: - at `\$(?P<at>.*)`)?", re.DOTALL)


def read_text(path: Path, what: str) -> str:
    """The text of a file; ``what`` says what it should be.

    Raises:
        StudyError: it cannot be read, or is not UTF-8.
    """
    try:
        return read_named_text(path)
    except OSError as error:
        raise StudyError(
            f"{path}: cannot be read: {error.strerror}", f"the path of {what}"
        ) from error
    except UnicodeDecodeError as error:
        raise StudyError(f"{path}: cannot be read: not UTF-8", f"the path of {what}") from error


def read_tables(text: str, where: str, whole: type[T], keys: Keys, page: str) -> T:
    """The tables of a TOML text as ``whole``; ``page`` documents them.

    Raises:
        StudyError: not TOML, an unknown key, or a wrong type; with file, key and remedy.
    """
    return to_type(parse_toml(text, where), lambda _: where, whole, keys, page)


def parse_toml(text: str, where: str) -> dict[str, Any]:
    """The tables of a TOML text.

    Raises:
        StudyError: not TOML, with the line and the column; nested too deeply.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise StudyError(
            f"{where}: not TOML: {error}", "correct the named line and column"
        ) from error
    except ValueError as error:  # Python converts no integer of thousands of digits
        raise StudyError(f"{where}: not TOML: {error}", "shorter numbers") from error
    except RecursionError as error:
        raise StudyError(f"{where}: nested too deeply", "fewer arrays within arrays") from error


def to_type(
    tables: dict[str, Any], where: Callable[[str], str], whole: type[T], keys: Keys, page: str
) -> T:
    """Tables as ``whole``; ``where`` names the file that a path such as ``roles[0].controls``
    stands in.

    Raises:
        StudyError: an unknown key, or a wrong type; with file, key and remedy.
    """
    try:
        return msgspec.convert(tables, whole)
    except msgspec.ValidationError as error:
        raise _explain(str(error), tables, whole, where, keys, page) from error


def _named(
    at: str | None, message: str, tables: dict[str, Any], whole: type[msgspec.Struct]
) -> str:
    """The path ``at`` of msgspec's message with the key for each ``[...]``, which it writes for
    any key of a mapping: the key with which alone the mapping has the same error."""
    path: list[str | int] = []
    named = ""
    for step in re.findall(r"\.[^.\[\]]+|\[[^\]]*\]", at or ""):
        if step == "[...]":
            keys = _keys(tables, path)
            key = next((k for k in keys if _error(k, path, tables, whole) == message), None)
            if key is None:
                return at or ""
            path.append(key)
            # A key that holds what separates the steps would be read as several.
            named += step if re.search(r"[.\[\]]", key) else f".{key}"
        else:
            path.append(int(step[1:-1]) if step[0] == "[" else step[1:])
            named += step
    return named


def _keys(tables: Any, path: list[str | int]) -> list[str]:
    """The keys of the mapping at a path."""
    for step in path:
        tables = tables[step]
    return list(tables)


def _error(
    key: str, path: list[str | int], tables: dict[str, Any], whole: type[msgspec.Struct]
) -> str:
    """msgspec's message for the tables with this key alone in the mapping at a path."""

    def only(value: Any, steps: list[str | int]) -> Any:
        if not steps:
            return {key: value[key]}
        changed = value.copy()
        changed[steps[0]] = only(value[steps[0]], steps[1:])
        return changed

    try:
        msgspec.convert(only(tables, path), whole)
    except msgspec.ValidationError as error:
        return str(error)
    return ""


def _explain(
    message: str,
    tables: dict[str, Any],
    whole: type[msgspec.Struct],
    where: Callable[[str], str],
    keys: Keys,
    page: str,
) -> StudyError:
    """msgspec's message with the keys of the file."""
    if match := _UNKNOWN.fullmatch(message):
        key, named = match["key"], _named(match["at"], message, tables, whole)
        place = _place(named, tables)
        table = keys.get(re.sub(r"\[.*?\]", "", (match["at"] or "").lstrip(".")).split(".")[-1])
        file = where(f"{named}.{key}".lstrip("."))
        return StudyError(
            f"{file}: {place}unknown key {key!r}", _remedy_for(key, table, keys, page)
        )
    other = _OTHER.fullmatch(message)
    assert other is not None
    named = _named(other["at"], message, tables, whole)
    what = re.sub(r"`([^`]*)`", lambda match: _in_toml(match[1]), other["what"])
    what = what.replace("Object", "table")
    return StudyError(
        f"{where(named.lstrip('.'))}: {_place(named, tables)}{what[0].lower()}{what[1:]}",
        _remedy(what, other["at"] or "", keys, page),
    )


#: Python's words for types as TOML has them; it has no null.
_TYPES = {
    "int": "an integer",
    "float": "a float",
    "str": "a string",
    "bool": "a boolean",
    "array": "an array",
    "object": "a table",
    "null": "",
}


def _in_toml(name: str) -> str:
    """``int | array`` as ``an integer or an array``; another name in quotation marks."""
    parts = name.split(" | ")
    if not set(parts) <= _TYPES.keys():
        return f"'{name}'"
    return " or ".join(filter(None, (_TYPES[part] for part in parts)))


def _remedy_for(key: str, table: type[msgspec.Struct] | None, keys: Keys, page: str) -> str:
    if table is None:
        return f"a key that {page} gives for this table"
    others = {
        heading: other.__struct_encode_fields__
        for heading, other in keys.items()
        if heading and other is not table
    }
    meant: Mapping[str, str] = getattr(table, "other_words", {})
    return remedy_for(key, table.__struct_encode_fields__, others, meant)


def _words(hint: Any) -> list[str]:
    """The words of a literal type, or of the literals in a union."""
    if get_origin(hint) is Literal:
        return [str(word) for word in get_args(hint)]
    return [word for part in get_args(hint) for word in _words(part)]


def _remedy(what: str, at: str, keys: Keys, page: str) -> str:
    """The remedy: the words that the key accepts, or the page that describes it."""
    if "missing required field" in what:
        return f"add it: {page} says what it is"
    parts = re.sub(r"\[.*?\]", "", at).lstrip(".").split(".")
    table = keys.get(parts[-2] if len(parts) > 1 else "")
    if what.startswith("Invalid enum value") and table:
        return one_of(_words(get_type_hints(table).get(parts[-1])))
    return f"the type that {page} gives for this key"


def _place(at: str, tables: dict[str, Any]) -> str:
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
