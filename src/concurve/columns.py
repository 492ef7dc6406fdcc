"""Numbers from columns of any CSV file.

The first line names the columns; comma, semicolon or tab separate them; lines that begin with ``#``
and empty lines are skipped. A cell that is not a number is an error, which names its line.
"""

from __future__ import annotations

import csv
import difflib
import io
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from concurve.errors import ConcurveError
from concurve.inputs import BYTES_MAX, read_named_text

_SEPARATORS = (",", ";", "\t")

#: What ``concurve export`` writes beside the figures of a cell and of a trial: a table with all of
#: either kind is ours (:mod:`concurve.report.csv`).
_OWN = ({"cell", "status", "trials", "in_doubt"}, {"cell", "block", "used", "in_doubt"})

_IN_DOUBT = "in doubt (--in-doubt takes them)"


class OwnRows(NamedTuple):
    """The named columns of a table, without the rows by which a table of ours says of itself that
    they do not count; ``left_out`` is a sentence that says how many, and why."""

    columns: dict[str, list[float]]
    left_out: str


def read_columns(file: Path, names: Sequence[str]) -> dict[str, list[float]]:
    """The named columns of a CSV file, as finite numbers above 0. ``-`` is standard input.

    Raises:
        ConcurveError: the file cannot be read, is empty, lacks a column, or has a cell that is not
            a finite number above 0.
    """
    return read_table(file, names, doubtful=True).columns


def read_table(file: Path, names: Sequence[str], *, doubtful: bool = False) -> OwnRows:
    """The same. Of a table that ``concurve export`` wrote rows are left out that were not measured
    or have no figure, and, without ``doubtful``, those in doubt.

    Raises:
        ConcurveError: as :func:`read_columns`, or no row is left.
    """
    rows = _rows(_text(file), file)
    if not rows:
        raise ConcurveError(f"{file} is empty", "a first line with names, then a line a trial")
    heading = [name.strip() for name in rows[0][1]]
    places = {name: _place(name, heading, file) for name in names}
    if len(rows) == 1:
        raise ConcurveError(f"{file} has names but no rows", "a line a trial below the names")
    kept, reasons = rows[1:], {}
    if any(own <= set(heading) for own in _OWN):
        why = {line: _why_not(heading, cells, places, doubtful) for line, cells in kept}
        reasons = {reason: list(why.values()).count(reason) for reason in why.values() if reason}
        kept = [(line, cells) for line, cells in kept if not why[line]]
    said = _left_out(reasons)
    if not kept:
        raise ConcurveError(
            f"{file} has no row that counts. {said}",
            "--in-doubt, or measure again with --wait-quiet 5m"
            if _IN_DOUBT in reasons
            else "another run, or column",
        )
    columns = {
        name: [_number(cells, place, name, line, file) for line, cells in kept]
        for name, place in places.items()
    }
    return OwnRows(columns, said)


def _why_not(heading: list[str], cells: list[str], places: dict[str, int], doubtful: bool) -> str:
    """Why a row of a table of ours does not count; empty if it does."""
    row = dict(zip(heading, (cell.strip() for cell in cells), strict=False))
    status = row.get("status", "measured")
    if status == "skipped":
        return "of levels that were skipped"
    if row.get("used") == "no":
        return "not used by the run"
    if row.get("load_failed") == "yes":
        return "of levels whose load failed"
    empty = [name for name, place in places.items() if place >= len(cells) or not row.get(name)]
    if empty:
        return f"without {' and '.join(empty)}"
    return _IN_DOUBT if row.get("in_doubt") == "yes" and not doubtful else ""


def _left_out(reasons: dict[str, int]) -> str:
    """``Left out: 1 row skipped, 2 rows in doubt (--in-doubt takes them).``"""
    said = [
        f"{count} {'row' if count == 1 else 'rows'} {reason}" for reason, count in reasons.items()
    ]
    return f"Left out: {', '.join(said)}." if said else ""


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


def _rows(text: str, file: Path) -> list[tuple[int, list[str]]]:
    """Rows that are not empty, with their line numbers."""
    lines = [
        (number, line)
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip() and not line.lstrip().startswith("#")
    ]
    if not lines:
        return []
    separator = max(_SEPARATORS, key=lines[0][1].count)
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


def _place(name: str, heading: list[str], file: Path) -> int:
    if heading.count(name) > 1:
        raise ConcurveError(
            f"{file} has {heading.count(name)} columns {name!r}", "one name a column"
        )
    if name in heading:
        return heading.index(name)
    lower = {column.lower(): column for column in heading}
    near = difflib.get_close_matches(name.lower(), list(lower), n=1)
    remedy = f"did you mean {lower[near[0]]!r}?" if near else f"one of {', '.join(heading)}"
    raise ConcurveError(f"{file} has no column {name!r}", remedy)


def _number(cells: list[str], place: int, name: str, line: int, file: Path) -> float:
    where = f"{file}, line {line}, column {name!r}"
    if place >= len(cells) or not cells[place].strip():
        raise ConcurveError(f"{where}: no value", "leave out lines without a measurement")
    text = cells[place].strip()
    try:
        value = float(text)
    except ValueError:
        raise ConcurveError(
            f"{where}: {text!r} is not a number", "for example 1200 or 1.2e3"
        ) from None
    if not math.isfinite(value) or value <= 0:
        raise ConcurveError(
            f"{where}: {text} is not a finite number above 0",
            "leave out lines without a measurement",
        )
    return value
