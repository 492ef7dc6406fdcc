"""A study file and the files that it extends → the tables of one study.

- ``extends = "FILE"`` takes over the tables of another file key by key; the study's own keys win.
- Roles, indicators, claims and ``[levels]`` of that file are taken by name: ``use = ["target"]``.
  Indicators that no file describes are those that the programs of the roles report
  (:mod:`~concurve.definition.programs`), or that the laboratory measures of any program.
- ``tool = "pgbench"`` among the indicators stands for the figures of a tool whose output is known.
- ``{with.NAME}`` in a text is what ``[with]`` has under this name; ``with = "NAME"`` in the cell of
  a claim stands for the levels there.

The result has the tables of an equivalent file that extends no other one: a
:class:`~concurve.definition.study.Study` holds none of this.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from concurve.definition.extracting import tool_figures
from concurve.definition.failures import EXPECTED
from concurve.definition.indicators_meant import indicator_meant
from concurve.definition.measured import MEASURED
from concurve.definition.origins import Origins
from concurve.definition.programs import IndicatorText, Program, program
from concurve.definition.study_files import LISTS, StudyFile, Tables, study_files, taken_over
from concurve.definition.study_tables import KEYS, File
from concurve.definition.templates import NAME, is_whole, placeholders
from concurve.definition.toml_file import to_type
from concurve.errors import StudyError
from concurve.terms import IndicatorInfo, split_levels
from concurve.words import meant

_NAME_REMEDY = "a letter or _, then letters, digits, _ and -"

#: The keys that a study must have and a file may leave to the files that it extends, or take by
#: ``{with.NAME}``; each with a value of its type.
_REQUIRED: Tables = {
    "study": {"name": "", "question": ""},
    "test_case": {"id": "", "objective": ""},
    "roles": {"name": ""},
    "indicators": {"name": ""},
}

#: ``{{with.NAME}}`` is literal text; group 1 is the name in ``{with.NAME}``, whether it is one or
#: not.
_WORD = re.compile(r"\{\{with\.[^{}]*\}\}|\{with\.([^{}]*)\}")


class _Entry(NamedTuple):
    """An entry that a study may use, and its file."""

    value: Any
    file: str


def resolved_tables(text: str, where: str) -> tuple[Tables, Origins]:
    """The resolved tables of a study, and the file of each part.

    ``where`` is the path of its file; those that it extends are found from its folder.

    Raises:
        StudyError: a missing file, files that extend each other, a wrong type in any of them, a
            name without a description, or with two; with file, key and remedy.
    """
    files = _with_tools(study_files(text, where))
    for file in files:
        _check_file(file, where)
    tables, parts = taken_over(files)
    words = _Words(tables, Origins(where, parts))
    _use_levels(files, tables, parts)
    for table in [table for table in tables if table not in LISTS]:
        tables[table] = words.fill(table, tables[table])
    # What follows reads these tables, and {with.NAME} may have filled in a value of another type.
    _check_types({t: value for t, value in tables.items() if t not in LISTS}, words.origins.at)
    for table in [table for table in LISTS if table in tables]:
        described = _described(tables, words) if table == "indicators" else {}
        _use(files, table, tables, parts, described)
        tables[table] = words.fill(table, tables[table])
    words.refuse_unused(files[0].tables.get("with"))
    return tables, words.origins


def _with_tools(files: list[StudyFile]) -> list[StudyFile]:
    """The files with the figures of each tool in the place of its name."""
    protocols = (file.tables.get("protocol") for file in files)
    named = (protocol.get("target") for protocol in protocols if isinstance(protocol, dict))
    target = next((name for name in named if isinstance(name, str)), "target")
    found = []
    for file in files:
        entries = file.tables.get("indicators")
        if not isinstance(entries, list):
            found.append(file)
            continue
        full = [figure for entry in entries for figure in _of_tool(entry, target, file.where)]
        found.append(StudyFile(file.where, {**file.tables, "indicators": full}))
    return found


def _of_tool(entry: Any, target: str, where: str) -> Iterator[Any]:
    """The entries that an entry with a tool stands for; another one as it is."""
    if not isinstance(entry, dict) or "tool" not in entry:
        yield entry
        return
    is_expected = _refuse_beside("tool", entry, f"{where}: indicators", "indicators")
    if not isinstance(entry["tool"], str):
        raise StudyError(f"{where}: indicators, tool: no text", 'tool = "pgbench"')
    for figure in tool_figures(entry["tool"], target, f"{where}: indicators, tool"):
        extract, indicator = figure.extract, figure.indicator
        yield {
            "name": extract.name,
            "unit": extract.unit,
            "better": indicator.better,
            "failures": EXPECTED if is_expected and indicator.failures else indicator.failures,
            "pattern": extract.pattern,
            "combine": extract.combine,
            "optional": extract.optional,
            "zero_unprinted": extract.zero_unprinted,
        }


def _check_file(file: StudyFile, own: str) -> None:
    """Refuse a wrong type in a file as it is written: behind a nearer file's value, nothing else
    would see it."""
    place = file.where if file.where == own else f"{file.where} (extended by {own})"
    tables = {
        key: value if key == "with" else _without_words(value) for key, value in file.tables.items()
    }
    for table in LISTS:
        if isinstance(entries := tables.get(table), list):
            tables[table] = [
                {} if isinstance(entry, dict) and "use" in entry else entry for entry in entries
            ]
    levels = tables.get("levels")
    if isinstance(levels, dict) and isinstance(levels.get("use"), list):
        tables["levels"] = {name: value for name, value in levels.items() if name != "use"}
        if file.where != own:  # refused with a message of its own if the study uses levels
            del tables["levels"]
    _check_types(tables, lambda _: place)
    for name in tables.get("with", {}):
        if not NAME.fullmatch(name):
            raise StudyError(f"{place}: with: {name!r} is no name", _NAME_REMEDY)


def _without_words(value: Any) -> Any:
    """A value without the texts within it that are only ``{with.NAME}``: their type is that of
    another value."""

    def is_word(item: Any) -> bool:
        match = _WORD.fullmatch(item) if isinstance(item, str) else None
        return match is not None and match[1] is not None

    if isinstance(value, list):
        return [_without_words(item) for item in value if not is_word(item)]
    if isinstance(value, dict):
        return {key: _without_words(item) for key, item in value.items() if not is_word(item)}
    return value


def _check_types(tables: Tables, where: Callable[[str], str]) -> None:
    """Refuse a wrong type or an unknown key; ``where`` names the file of a path. Keys may be
    missing."""
    whole: Tables = {"study": {}, "factors": {}, "roles": [], **tables}
    for table, required in _REQUIRED.items():
        value = whole.get(table)
        if isinstance(value, dict) and table not in LISTS:
            whole[table] = {**required, **value}
        elif isinstance(value, list):
            whole[table] = [
                {**required, **entry} if isinstance(entry, dict) else entry for entry in value
            ]
    to_type(whole, where, File, KEYS, "docs/studies.md")


def _use_levels(files: list[StudyFile], tables: Tables, parts: dict[tuple[str, str], str]) -> None:
    """Replace ``use`` in ``[levels]`` by the parts of the levels that it names."""
    own, where = tables.get("levels"), files[0].where
    if not isinstance(own, dict) or not isinstance(own.get("use"), list):
        return
    shared = _shared(files[1:], "levels")
    used = {
        name: _found(name, shared, {}, files, "levels") for name in _names(own, f"{where}: levels")
    }
    for name, entry in used.items():
        if name in own:
            raise StudyError(
                f"{where}: levels, use: {name!r} is also written here", "remove one of the two"
            )
        parts["levels", name] = entry.file
    rest = {name: value for name, value in own.items() if name != "use"}
    tables["levels"] = {**{name: entry.value for name, entry in used.items()}, **rest}


def _use(
    files: list[StudyFile],
    table: str,
    tables: Tables,
    parts: dict[tuple[str, str], str],
    described: Mapping[str, _Entry],
) -> None:
    """Replace ``use`` by the entries that it names; ``described`` are entries that no study file
    holds."""
    own, where = tables[table], files[0].where
    if not isinstance(own, list):
        return
    shared = _shared(files[1:], table)
    entries: list[Any] = []
    for entry in own:
        if not isinstance(entry, dict) or "use" not in entry:
            entries.append(entry)
            continue
        is_expected = _refuse_beside("use", entry, f"{where}: {table}", table)
        for name in _names(entry, f"{where}: {table}"):
            found = _found(name, shared, described, files, table)
            if name in shared:
                parts[table, name] = parts[table, str(len(entries))] = found.file
            value = found.value
            if is_expected and isinstance(value, dict) and value.get("failures"):
                value = {**value, "failures": EXPECTED}
            entries.append(value)
    tables[table] = entries


def _refuse_beside(key: str, entry: Tables, where: str, table: str) -> bool:
    """Refuse what stands beside ``use`` or ``tool``, but for ``failures = "expected"`` of
    indicators: whether that stands there.

    Raises:
        StudyError: something else does.
    """
    is_expected = table == "indicators" and entry.get("failures") == EXPECTED
    allowed = {key, "failures"} if is_expected else {key}
    other = next((name for name in entry if name not in allowed), None)
    if other is None:
        return is_expected
    remedy = f"an entry [[{table}]] of its own for it"
    if other == "failures" and table == "indicators":
        remedy = f'failures = "{EXPECTED}", for failures that belong to the load, or {remedy}'
    raise StudyError(f"{where}: {other!r} beside {key}", remedy)


def _names(entry: Tables, where: str) -> list[str]:
    names = entry["use"]
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise StudyError(f"{where}: use: no list of names", 'use = ["one", "other"]')
    return names


def _found(
    name: str,
    shared: Mapping[str, _Entry],
    described: Mapping[str, _Entry],
    files: list[StudyFile],
    table: str,
) -> _Entry:
    """The entry of a name: in an extended file, else in the table of a program."""
    if name in shared:
        return shared[name]
    if name in described:
        return described[name]
    where, extended = f"{files[0].where}: {table}, use: {name!r}", [f.where for f in files[1:]]
    if table == "indicators":
        raise StudyError(
            f"{where} is described neither in a file that the study extends nor by a program of "
            "its roles",
            indicator_meant(name, [*shared, *described], "an entry of its own: name, better, unit"),
        )
    if not extended:
        raise StudyError(f"{where}, but the study extends no file", 'extends = "../shared.toml"')
    raise StudyError(
        f"{where} is not in {', '.join(extended)}",
        meant(name, [*shared, *described]),
    )


def _shared(extended: Iterable[StudyFile], table: str) -> dict[str, _Entry]:
    """The entries of a table by name, the nearest file's first."""
    entries: dict[str, _Entry] = {}
    for file in extended:
        for name, value in _named(file, table):
            entries.setdefault(name, _Entry(value, file.where))
    return entries


def _named(file: StudyFile, table: str) -> Iterator[tuple[str, Any]]:
    """The entries of a file that is extended, each with its name."""
    value = file.tables.get(table, {} if table == "levels" else [])
    if table == "levels":
        if not isinstance(value, dict) or "use" in value:
            raise StudyError(f"{file.where}: levels: no levels", "[levels.FACTOR] in full")
        yield from value.items()
        return
    key = LISTS[table]
    names: set[str] = set()
    for entry in value if isinstance(value, list) else [value]:
        name = entry.get(key) if isinstance(entry, dict) else None
        if not isinstance(name, str):
            raise StudyError(
                f"{file.where}: {table}: an entry without {key}",
                f"[[{table}]] with {key}: a file that is extended has its entries in full",
            )
        if name in names:
            raise StudyError(
                f"{file.where}: {table}: {name!r} appears twice", "remove one of the two"
            )
        names.add(name)
        yield name, entry


class _Words:
    """The values of ``{with.NAME}``: the study's ``[with]``, then those of the files that it
    extends, then that of a program's table. Remembers which names were used.

    A study without ``[with]`` may have a factor of that name; its placeholders are left alone.
    """

    def __init__(self, tables: Tables, origins: Origins) -> None:
        factors = tables.get("factors", {})
        self.origins = origins
        #: Those of the programs' tables.
        self.defaults: dict[str, str] = {}
        self._given: Mapping[str, Any] = tables.get("with", {})
        self._active = not (isinstance(factors, dict) and "with" in factors)
        if self._given and not self._active:
            raise StudyError(
                f"{origins}: factor 'with' beside a table [with]", "another name for the factor"
            )
        self._asked: set[str] = set()

    def fill(self, table: str, value: Any) -> Any:
        """A table with its ``{with.NAME}`` filled in."""
        if not self._active or table in ("with", "extends"):
            return value
        if table in LISTS:
            if not isinstance(value, list):
                return value
            return [self._entry(table, position, entry) for position, entry in enumerate(value)]
        if not isinstance(value, dict):
            return value
        return {
            key: self._filled(entry, f"{self.origins.of(table, key)}: {table}, {key}")
            for key, entry in value.items()
        }

    def refuse_unused(self, own: Any) -> None:
        """Refuse entries of the study's own ``[with]`` that no text uses."""
        for name in own or ():
            if name not in self._asked:
                raise StudyError(
                    f"{self.origins}: with, {name}: nothing uses {{with.{name}}}",
                    meant(name, self._asked - set(own), "remove this entry"),
                )

    def _entry(self, table: str, position: int, entry: Any) -> Any:
        name = entry.get(LISTS[table], position) if isinstance(entry, dict) else position
        where = f"{self.origins.of(table, str(position))}: {table} {name!r}"
        return self._filled(entry, where, cells=table == "claims")

    def _filled(self, value: Any, where: str, *, cells: bool = False) -> Any:
        if isinstance(value, str):
            return self._text(value, where)
        if isinstance(value, list):
            filled: list[Any] = []
            for item in value:
                new = self._filled(item, where, cells=cells)
                # A list in the place of one argument becomes as many arguments as it has elements.
                filled += new if isinstance(item, str) and isinstance(new, list) else [new]
            return filled
        if not isinstance(value, dict):
            return value
        table: Tables = {}
        for key, item in value.items():
            if cells and key == "with" and isinstance(item, str):
                table |= self._levels(item, where)
            else:
                table[key] = self._filled(item, where, cells=cells)
        return table

    def _text(self, text: str, where: str) -> Any:
        """The text with its values; a text that is only ``{with.NAME}`` becomes the value
        itself."""
        whole = _WORD.fullmatch(text)
        if whole and whole[1] is not None:
            return self._value(whole[1], where)

        def word(match: re.Match[str]) -> str:
            if match[1] is None:
                # Rendering removes the outer braces of what could be a placeholder, no others.
                return match[0] if NAME.fullmatch(match[0][7:-2]) else match[0][1:-1]
            value = self._value(match[1], where)
            if isinstance(value, list):
                raise StudyError(
                    f"{where}: {{with.{match[1]}}} is a list within a text",
                    f'an argument of its own, "{{with.{match[1]}}}", or a text instead of the list',
                )
            return str(value)

        return _WORD.sub(word, text)

    def _value(self, name: str, where: str) -> Any:
        value = self._of(name, where)
        if isinstance(value, dict):
            raise StudyError(
                f"{where}: {{with.{name}}} is a table", f'with = "{name}" in the cell of a claim'
            )
        if any(match[1] is not None for match in _WORD.finditer(str(value))):
            raise StudyError(
                f"{self.origins.of('with', name)}: with, {name}: {{with.…}} in it", "it in full"
            )
        return value

    def _levels(self, name: str, where: str) -> Tables:
        value = self._of(name, where)
        if not isinstance(value, dict):
            raise StudyError(
                f"{where}: with = {name!r} is no table of levels", f"{name} = {{ threads = 1 }}"
            )
        return value

    def _of(self, name: str, where: str) -> Any:
        if not NAME.fullmatch(name):
            raise StudyError(
                f"{where}: {{with.{name}}}: {name!r} is no name",
                f"{_NAME_REMEDY}, or {{{{with.{name}}}}} for the literal text",
            )
        words = {**self.defaults, **self._given}
        self._asked.add(name)
        if name not in words:
            raise StudyError(
                f"{where}: {{with.{name}}} has no value",
                meant(name, words, f"[with] with an entry {name}"),
            )
        return words[name]


def _described(tables: Tables, words: _Words) -> dict[str, _Entry]:
    """The indicators that the programs of the roles and the laboratory describe, by their names in
    the study: those of other roles than the measured one begin with the name of the role."""
    roles = {
        role["name"]: _programs(role.get("program"), tables)
        for role in tables.get("roles", ())
        if isinstance(role, dict) and isinstance(role.get("name"), str)
    }
    protocol = tables.get("protocol")
    target = protocol.get("target", "target") if isinstance(protocol, dict) else "target"
    found: dict[str, list[IndicatorText]] = {}
    for role, tables_of_role in roles.items():
        for table in tables_of_role:
            words.defaults.update(table.words)
            for name, text in table.indicators.items():
                found.setdefault(name if role == target else f"{role}.{name}", []).append(text)
    for role in sorted(roles, key=lambda role: role != target):
        for table in roles[role]:
            for name, text in table.measured.items():
                found.setdefault(name, [text])
    return {
        **{name: _Entry(_entry(name, info), "") for name, info in MEASURED.items()},
        **{
            name: _Entry(_entry(name, texts[0]), "")
            for name, texts in found.items()
            if len({(text.label, text.unit, text.better) for text in texts}) == 1
        },
    }


def _entry(name: str, text: IndicatorText | IndicatorInfo) -> Tables:
    entry: Tables = {"name": name, "unit": text.unit, "better": text.better}
    if isinstance(text, IndicatorText):
        entry |= {"label": text.label, "failures": text.failures}
    return entry


def _programs(text: Any, tables: Tables) -> list[Program]:
    """The tables of the programs that a role may run: one for each level if the text is a
    placeholder."""
    if not isinstance(text, str):
        return []
    names = [text]
    if is_whole(text):
        factor, _, part = placeholders(text)[0].partition(".")
        if part:
            entries = tables.get("levels", {}).get(factor, {}).values()
            names = [str(entry.get(part)) for entry in entries if isinstance(entry, dict)]
        else:
            levels = tables.get("factors", {}).get(factor, [])
            listed = split_levels(levels) if isinstance(levels, str) else levels
            names = [str(level).strip() for level in listed]
    return [table for table in map(program, names) if table is not None]
