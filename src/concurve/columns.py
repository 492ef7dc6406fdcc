"""Numbers from columns of any table that is text: CSV, Markdown, columns divided by spaces.

The first line names the columns; comma, semicolon, tab or ``|`` separate them, or spaces where each
line has as many words as there are names; lines that begin with ``#`` and empty lines are skipped.
A cell may have thousands separators (``"1,000"``), and a prefix or a unit (``1.2k``, ``35 ms``)
where all cells of its column have the same. A cell that is not a number, and a line with more cells
than names, is an error, which names its line.
"""

from __future__ import annotations

import csv
import io
import math
import re
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from concurve.definition.units import in_base_unit, is_time_unit
from concurve.errors import ConcurveError
from concurve.inputs import BYTES_MAX, read_named_text
from concurve.words import did_you_mean, meant, nearest

_SPACES = " "
_SEPARATORS = (",", ";", "\t", "|")
#: The line below the names of a Markdown table, and of those that databases print.
_RULE = re.compile(r"[\s|:+-]*-[\s|:+-]*")
#: A number, with thousands separators or without, then a prefix or a unit.
_NUMBER = re.compile(
    r"([+-]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d*)?(?:[eE][+-]?\d+)?)\s*([^\d\s.,+-].*)?"
)
#: One separator for thousands that may be a decimal comma as well.
_ONE_COMMA = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
_DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
_PREFIXES = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9}
_PLAIN = "write plain numbers, such as 1200 or 1.2e3"
#: All values of a column that holds several curves: its rows are replicates.
ANY = "*"
#: Numbers of another column split the rows into curves where the figure differs by this between
#: them, alike at all levels that they share.
_APART = 1.1
_SHARED_LEVELS = 3

#: What ``concurve export`` writes beside the figures of a cell and of a trial: a table with all of
#: either kind is ours (:mod:`concurve.report.csv`).
_OWN = ({"cell", "status", "trials", "in_doubt"}, {"cell", "block", "used", "in_doubt"})

#: What ends the factors in such a table.
_AFTER_FACTORS = {"status", "block"}

_NO_TRIALS = (
    "This table has a row a cell, and no trials: how far they spread is not seen. concurve export "
    "RUN --format trials has a row a trial."
)

_IN_DOUBT = "in doubt (--in-doubt takes them)"


class OwnRows(NamedTuple):
    """The named columns of a table, without the rows by which a table of ours says of itself that
    they do not count; ``said`` are sentences on what was left out, and on units; the cells of
    the columns ``in_seconds`` had units of time, so their numbers are seconds."""

    columns: dict[str, list[float]]
    said: tuple[str, ...]
    in_seconds: frozenset[str] = frozenset()


def read_columns(file: Path, names: Sequence[str]) -> dict[str, list[float]]:
    """The named columns of a CSV file, as finite numbers above 0. ``-`` is standard input.

    Raises:
        ConcurveError: the file cannot be read, is empty, lacks a column, or has a cell that is not
            a finite number above 0.
    """
    return read_table(file, names, doubtful=True).columns


def read_table(
    file: Path,
    names: Sequence[str],
    *,
    doubtful: bool = False,
    where: Mapping[str, str] | None = None,
    one_curve: bool = False,
) -> OwnRows:
    """The same. Of a table that ``concurve export`` wrote rows are left out that were not measured
    or have no figure, and, without ``doubtful``, those in doubt.

    ``where`` keeps the rows with these values of other columns (``*``: all are one curve). With
    ``one_curve`` rows that are several curves are refused; the first of ``names`` are the levels.

    Raises:
        ConcurveError: as :func:`read_columns`, no row is left, or the rows are several curves.
    """
    lines = _lines(_text(file))
    if not lines:
        raise ConcurveError(f"{file} is empty", "a first line with names, then a line a trial")
    separator = _separator(lines, names)
    rows = _rows(lines, separator, file)
    where = where or {}
    heading = [name.strip() for name in rows[0][1]]
    places = {name: _place(name, heading, file) for name in names}
    chosen = {_place(name, heading, file): value for name, value in where.items()}
    if len(rows) == 1:
        raise ConcurveError(f"{file} has names but no rows", "a line a trial below the names")
    _check_lengths(rows, heading, separator, file)
    kept, reasons = rows[1:], {}
    is_own = any(own <= set(heading) for own in _OWN)
    if is_own:
        why = {line: _why_not(heading, cells, places, doubtful) for line, cells in kept}
        reasons = {reason: list(why.values()).count(reason) for reason in why.values() if reason}
        kept = [(line, cells) for line, cells in kept if not why[line]]
    said = _left_out(reasons)
    if not kept:
        raise ConcurveError(
            f"{file} has no row that counts. {said}",
            "--in-doubt, or measure again on a quiet machine"
            if _IN_DOUBT in reasons
            else "another run, or column",
        )
    kept = [row for row in kept if _is_chosen(row[1], chosen)]
    if not kept:
        asked = " and ".join(f"{name}={value}" for name, value in where.items())
        raise ConcurveError(
            f"{file} has no row where {asked}",
            "; ".join(f"{heading[at]} has {_some(_values(rows[1:], at))}" for at in chosen),
        )
    read = {name: _numbers(kept, at, name, separator, file) for name, at in places.items()}
    columns = {name: column.values for name, column in read.items()}
    if one_curve:
        factors = heading
        if is_own:
            end = min(at for at, name in enumerate(heading) if name in _AFTER_FACTORS)
            factors = heading[:end]
        others = [
            at
            for at, name in enumerate(factors)
            if at not in places.values() and at not in chosen and not (is_own and name == "cell")
        ]
        _check_one_curve(kept, heading, others, columns, is_own, file)
    in_doubt = sum(_is_in_doubt(heading, cells) for _, cells in kept) if is_own else 0
    without = _NO_TRIALS if one_curve and _has_no_trials(heading, kept) else ""
    units = [column.said for column in read.values()]
    return OwnRows(
        columns,
        tuple(filter(None, (said, _taken(in_doubt, len(kept)), without, *units))),
        frozenset(name for name, column in read.items() if column.is_in_seconds),
    )


def names_in(file: Path) -> list[str]:
    """The names of the columns of a table, from its first line.

    Raises:
        ConcurveError: the file cannot be read, or is empty.
    """
    lines = _lines(_text(file))
    if not lines:
        raise ConcurveError(f"{file} is empty", "a first line with names, then a line a trial")
    [(_, cells)] = _rows(lines[:1], _separator(lines, ()), file)
    return [name.strip() for name in cells if name.strip()]


def _is_chosen(cells: list[str], chosen: Mapping[int, str]) -> bool:
    return all(
        value == ANY or (at < len(cells) and cells[at].strip() == value)
        for at, value in chosen.items()
    )


def _values(rows: Sequence[tuple[int, list[str]]], at: int) -> list[str]:
    """The different values of a column, in the order of the rows."""
    return list(dict.fromkeys(cells[at].strip() for _, cells in rows if at < len(cells)))


def _some(values: Sequence[str], most: int = 6) -> str:
    return ", ".join(values[:most]) + (", …" if len(values) > most else "")


def _check_one_curve(
    rows: Sequence[tuple[int, list[str]]],
    heading: Sequence[str],
    others: Sequence[int],
    columns: Mapping[str, Sequence[float]],
    is_own: bool,
    file: Path,
) -> None:
    """Rows of the same level are replicates, unless another column tells curves apart: it is a
    factor of a table of ours, has words, or numbers between which the figure differs alike at all
    levels."""
    levels, figures, *_ = columns.values()
    for at in others:
        curves: dict[str, dict[float, list[float]]] = {}
        for (_, cells), level, figure in zip(rows, levels, figures, strict=True):
            value = cells[at].strip() if at < len(cells) else ""
            curves.setdefault(value, {}).setdefault(level, []).append(figure)
        values = [value for value in curves if value]
        are_numbers = not is_own and all(map(_is_plain, values))
        if not _are_curves([curves[value] for value in values], are_numbers):
            continue
        raise ConcurveError(
            f"{file} has {len(values)} curves: column {heading[at]!r} has the values "
            f"{_some(values)}, each at several levels",
            f"--where {heading[at]}={values[0]} for one of them; --where '{heading[at]}={ANY}' if "
            "they are replicates of one curve",
        )


def _are_curves(curves: Sequence[Mapping[float, Sequence[float]]], are_numbers: bool) -> bool:
    if len(curves) < 2:
        return False
    first = curves[0]
    for other in curves[1:]:
        shared = sorted(first.keys() & other.keys())
        ratios = [
            statistics.median(other[level]) / statistics.median(first[level]) for level in shared
        ]
        if not are_numbers and len(shared) >= 2:
            return True
        apart = min(ratios, default=1.0) > _APART or max(ratios, default=1.0) < 1 / _APART
        if len(shared) >= _SHARED_LEVELS and apart:
            return True
    return False


def _is_plain(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _why_not(heading: list[str], cells: list[str], places: dict[str, int], doubtful: bool) -> str:
    """Why a row of a table of ours does not count; empty if it does."""
    row = dict(zip(heading, (cell.strip() for cell in cells), strict=False))
    status = row.get("status", "measured")
    if status in ("skipped", "failed"):  # as tables of ours for machines, and for people, have it
        return "of levels that were skipped"
    if row.get("used") == "no":
        return "not used by the run"
    if row.get("load_failed") == "yes":
        return "of levels whose load failed"
    empty = [name for name, place in places.items() if place >= len(cells) or not row.get(name)]
    if empty:
        return f"without {' and '.join(empty)}"
    return _IN_DOUBT if _is_in_doubt(heading, cells) and not doubtful else ""


def _is_in_doubt(heading: list[str], cells: list[str]) -> bool:
    row = dict(zip(heading, (cell.strip() for cell in cells), strict=False))
    return row.get("in_doubt") == "yes"


def _has_no_trials(heading: list[str], rows: Sequence[tuple[int, list[str]]]) -> bool:
    """Is it our table of cells, and has a cell more than the one trial that its row could be?"""
    if not _OWN[0] <= set(heading):
        return False
    at = heading.index("trials")
    return any(at < len(cells) and cells[at].strip() not in ("", "0", "1") for _, cells in rows)


def _left_out(reasons: dict[str, int]) -> str:
    """``Left out: 1 row skipped, 2 rows in doubt (--in-doubt takes them).``"""
    said = [
        f"{count} {'row' if count == 1 else 'rows'} {reason}" for reason, count in reasons.items()
    ]
    return f"Left out: {', '.join(said)}." if said else ""


def _taken(in_doubt: int, rows: int) -> str:
    """What rests on rows in doubt that were taken all the same; empty without any."""
    if not in_doubt:
        return ""
    some = "The only row is" if rows == 1 else f"{in_doubt} of {rows} rows are"
    if in_doubt == 1 < rows:
        some = f"1 of {rows} rows is"
    return (
        f"{some} in doubt, because the machine was not quiet: the curve, and what is predicted by "
        "it, may show the disturbance."
    )


def _text(file: Path) -> str:
    if str(file) == "-":
        return _standard_input()
    try:
        return read_named_text(file, "utf-8-sig")
    except OSError as error:
        raise ConcurveError(f"{file}: {error.strerror}", "the path of a CSV file") from error
    except UnicodeDecodeError as error:
        raise ConcurveError(f"{file} is not text in UTF-8", "save it as CSV in UTF-8") from error


def _standard_input() -> str:
    text = sys.stdin.read(BYTES_MAX + 1)
    if len(text) > BYTES_MAX:
        raise ConcurveError(
            f"standard input has more than {BYTES_MAX >> 20} MiB", "a CSV file with a line a trial"
        )
    return text


def _lines(text: str) -> list[tuple[int, str]]:
    """Lines that say something, with their numbers."""
    lines = [
        (number, line)
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    return [row for at, row in enumerate(lines) if at != 1 or not _RULE.fullmatch(row[1])]


def _separator(lines: Sequence[tuple[int, str]], names: Sequence[str]) -> str:
    """What separates the cells: spaces only where nothing else does, and each line has as many
    words as there are names, or the names that are asked for are words of the first."""
    first = lines[0][1]
    if first.lstrip().startswith("|"):
        return "|"
    found = max(_SEPARATORS, key=first.count)
    words = first.split()
    if found in first or len(words) == 1:
        return found
    is_even = len({len(line.split()) for _, line in lines}) == 1
    return _SPACES if is_even or set(names) <= set(words) else found


def _rows(lines: list[tuple[int, str]], separator: str, file: Path) -> list[tuple[int, list[str]]]:
    """The cells of each line, with its number."""
    if separator == _SPACES:
        return [(number, line.split()) for number, line in lines]
    if separator == "|":
        bare = [
            (number, line.strip().removeprefix("|").removesuffix("|")) for number, line in lines
        ]
        return [
            (number, [cell.strip(" \t`*") for cell in line.split("|")]) for number, line in bare
        ]
    content = io.StringIO("\n".join(line for _, line in lines))
    try:
        parsed = list(csv.reader(content, delimiter=separator, strict=True))
    except csv.Error as error:
        raise ConcurveError(
            f"{file} is not CSV: {error}", "a line a trial, one separator"
        ) from error
    if len(parsed) != len(lines):
        raise ConcurveError(f"{file} has a quoted cell over several lines", "a line a trial")
    return [(number, cells) for (number, _), cells in zip(lines, parsed, strict=True)]


def _check_lengths(
    rows: Sequence[tuple[int, list[str]]], heading: Sequence[str], separator: str, file: Path
) -> None:
    """Refuse a line with more cells than names: some cell was cut in two."""
    for line, cells in rows[1:]:
        if not any(cell.strip() for cell in cells[len(heading) :]):
            continue
        remedy = {
            ",": 'are there commas within numbers? Quote them ("1,000"), or write 1000, and 1.5 '
            "for 1,5",
            _SPACES: "one word a name: write 1000, and 1.2k instead of 1.2 k",
        }.get(separator, "one cell a name; quote a cell that has the separator in it")
        raise ConcurveError(
            f"{file}, line {line}: {len(cells)} cells, but {len(heading)} names "
            f"({', '.join(heading)})",
            remedy,
        )


def _place(name: str, heading: list[str], file: Path) -> int:
    if heading.count(name) > 1:
        raise ConcurveError(
            f"{file} has {heading.count(name)} columns {name!r}", "one name a column"
        )
    if name in heading:
        return heading.index(name)
    if all(map(_is_plain, heading)):
        raise ConcurveError(
            f"{file} has no column {name!r}: its first line holds numbers, not names",
            f"add a line with names above it, such as {_example(len(heading))}",
        )
    lower = {column.lower(): column for column in heading}
    near = nearest(name.lower(), lower)
    remedy = meant(name, heading) if near is None else did_you_mean(lower[near])
    raise ConcurveError(f"{file} has no column {name!r}", remedy)


def _example(columns: int) -> str:
    """A first line for so many columns."""
    return ",".join(["clients", "tps", *(f"column{at}" for at in range(3, columns + 1))][:columns])


class _Column(NamedTuple):
    """The numbers of a column, a sentence on their unit if it is not as it stands there, and
    whether the cells had a unit of time."""

    values: list[float]
    said: str
    is_in_seconds: bool


def _numbers(
    rows: Sequence[tuple[int, list[str]]], place: int, name: str, separator: str, file: Path
) -> _Column:
    """The numbers of a column."""
    texts = [cells[place].strip() if place < len(cells) else "" for _, cells in rows]
    units = list(map(_unit_of, texts))
    known = _factor(units[0]) if len(set(units)) == 1 else None
    unit, factor = ("", 1.0) if known is None else (units[0], known)
    values = [
        _number(text, unit, factor, separator, f"{file}, line {line}, column {name!r}")
        for (line, _), text in zip(rows, texts, strict=True)
    ]
    said = f"{name} is read without its unit: {texts[0]} as {values[0]:g}." if factor != 1 else ""
    # Of "1.2 k ms" what follows the prefix.
    is_in_seconds = is_time_unit(unit) or is_time_unit(unit.partition(" ")[2])
    return _Column(values, said, is_in_seconds)


def _unit_of(text: str) -> str:
    found = _NUMBER.fullmatch(text)
    return (found[2] or "").strip() if found and found[1] else ""


def _factor(unit: str) -> float | None:
    """What a prefix or a unit of all cells stands for; ``None`` where it cannot be told."""
    if not unit or unit in _PREFIXES:
        return _PREFIXES.get(unit, 1.0)
    prefix, space, own = unit.partition(" ")
    if space and prefix in _PREFIXES:
        rest = _factor(own)
        return None if rest is None else _PREFIXES[prefix] * rest
    if unit == "m" or re.search(r"[^\w/µ ]", unit):
        return None
    # What a rate counts stays as it stands there; one of another time than a second is refused.
    is_converted = "/" not in unit or is_time_unit(unit) or unit.startswith("ops/")
    base = in_base_unit(unit) if is_converted else None
    if base is not None:
        return base
    return 1.0 if "/" not in unit or re.search(r"/\s*(s|sec|second)$", unit) else None


def _number(text: str, unit: str, factor: float, separator: str, where: str) -> float:
    if not text:
        raise ConcurveError(f"{where}: no value", "leave out lines without a measurement")
    bare = text.removesuffix(unit).strip()
    found = _NUMBER.fullmatch(bare)
    if "," in bare and found and not found[2]:
        if separator in ";\t" and _ONE_COMMA.fullmatch(bare):
            whole, _, rest = bare.partition(",")
            raise ConcurveError(
                f"{where}: {text!r} may be {whole}{rest} or {whole}.{rest}",
                f"write {whole}{rest}, or {whole}.{rest}",
            )
        bare = bare.replace(",", "")
    try:
        value = factor * float(bare)
    except ValueError:
        raise ConcurveError(f"{where}: {text!r} is not a number", _remedy(text)) from None
    if not math.isfinite(value) or value <= 0:
        raise ConcurveError(
            f"{where}: {text} is not a finite number above 0",
            "leave out lines without a measurement",
        )
    return value


def _remedy(text: str) -> str:
    found = _NUMBER.fullmatch(text)
    if not any(character.isdigit() for character in text):
        return f"leave out lines without a measurement; else {_PLAIN}"
    if _DECIMAL_COMMA.fullmatch(text):
        return f"write {text.replace(',', '.')}: a comma is read as a separator of thousands"
    if found and found[1] and found[2]:
        return f"{_PLAIN}; a unit or a prefix is read where all rows have the same"
    return _PLAIN
