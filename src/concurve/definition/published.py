"""Published figures: ``published.csv`` → what a source printed, tied to the cells of a study.

One row a figure. Columns: ``table``, ``figure_row`` and ``figure_column`` (where the source
prints it), ``value`` (a number, or minutes and seconds as ``1:09``), ``unit``, ``indicator`` and
``parameters`` (``cpus=2;threads=1``: the cell of the study that it belongs to). In a campaign's
file ``test_case`` names the study. Optional columns: ``title`` of the table, ``figure`` and
``figure_title`` (number and title of the source's chart of it), ``base``, ``compare``, and
``tolerance``: the share by which ours may differ and still agrees.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import msgspec

from concurve.definition.levels import parse_level
from concurve.errors import StudyError
from concurve.inputs import read_named
from concurve.terms import Level
from concurve.words import meant, one_of

#: How a published figure is compared with a new one: both divided by their base; the figure is
#: itself such a factor, or an improvement in percent; both minus their base; whether both lie on
#: the same side of their base; or side by side, without a comparison.
Compare = Literal["ratio", "factor", "improvement", "difference", "order", "none"]

#: The ways of comparing that do not use the figure of the base.
OF_THEMSELVES = ("factor", "improvement")

#: The tolerance of figures that name none: repeats of a source that gives no spread differed by
#: several percent.
TOLERANCE = 0.10

COLUMNS = ("table", "figure_row", "figure_column", "value", "unit", "indicator", "parameters")
OPTIONAL = ("test_case", "title", "figure", "figure_title", "base", "compare", "tolerance")

_CLOCK = re.compile(r"(?:(\d+):)?(\d+):([0-5]\d(?:\.\d+)?)")


class PublishedFigure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A figure of the source.

    ``printed`` is its text there, ``rounding`` half a unit of the last digit printed.
    ``parameters`` name the cell, ``base`` the levels by which its base differs from it;
    ``base_value`` is the published figure of that base, where there is one.
    """

    table: str
    row: str
    column: str
    value: float
    printed: str
    rounding: float
    unit: str = ""
    indicator: str = ""
    parameters: dict[str, Level] = {}
    base: dict[str, Level] = {}
    base_value: float | None = None
    compare: Compare = "none"
    tolerance: float = TOLERANCE
    title: str = ""
    figure: str = ""
    figure_title: str = ""

    @property
    def base_parameters(self) -> dict[str, Level]:
        """The cell that this one is compared with."""
        return {**self.parameters, **self.base}


class _Row(NamedTuple):
    """A row of the file with its line."""

    where: str
    test_case: str
    figure: PublishedFigure
    base: dict[str, Level] | None


def load_published(path: Path) -> dict[str, tuple[PublishedFigure, ...]]:
    """The figures of a file in its order, by test case (``""`` where the file names none).

    Raises:
        StudyError: unreadable, a missing or unknown column, a malformed figure, or a base without a
            figure in the source; with file, line and remedy.
    """
    try:
        return dict(_parsed(read_named(path).decode("utf-8-sig"), str(path)))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise StudyError(f"{path}: cannot be read: {error}", "a CSV file in UTF-8") from error


@lru_cache(maxsize=8)
def _parsed(text: str, where: str) -> dict[str, tuple[PublishedFigure, ...]]:
    """The figures in the text of a file. Every study of a campaign reads the campaign's file."""
    rows = list(_rows(csv.DictReader(io.StringIO(text, newline=""), strict=True), where))
    cases = dict.fromkeys(row.test_case for row in rows)
    return {case: tuple(_based([row for row in rows if row.test_case == case])) for case in cases}


def _rows(reader: csv.DictReader[str], where: str) -> Iterator[_Row]:
    _check_heading(list(reader.fieldnames or ()), where)
    for fields in reader:
        place = f"{where}: line {reader.line_num}"
        if None in fields or None in fields.values():
            raise StudyError(
                f"{place}: {'more' if None in fields else 'fewer'} fields than columns",
                'quotes around a text that holds a comma: "Load, small"',
            )
        yield _row({name: text.strip() for name, text in fields.items()}, place)


def _check_heading(names: list[str], where: str) -> None:
    known = (*COLUMNS, *OPTIONAL)
    for name in names:
        if name not in known:
            raise StudyError(
                f"{where}: unknown column {name!r}",
                meant(name, known, f"the columns are {', '.join(known)}"),
            )
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        raise StudyError(f"{where}: no column {missing[0]!r}", f"a first line {','.join(COLUMNS)}")


def _row(fields: Mapping[str, str], where: str) -> _Row:
    for name in ("table", "figure_row", "figure_column", "value"):
        if not fields[name]:
            raise StudyError(f"{where}: {name} is empty", "where and what the source prints")
    value, rounding = _value(fields["value"], where)
    parameters = parse_setting(fields["parameters"], f"{where}: parameters")
    figure = PublishedFigure(
        table=fields["table"],
        row=fields["figure_row"],
        column=fields["figure_column"],
        value=value,
        printed=fields["value"],
        rounding=rounding,
        unit=fields["unit"],
        indicator=fields["indicator"],
        parameters=parameters,
        compare=_compare(fields, where),
        tolerance=_tolerance(fields.get("tolerance", ""), where),
        title=fields.get("title", ""),
        figure=fields.get("figure", ""),
        figure_title=fields.get("figure_title", ""),
    )
    base = parse_setting(fields.get("base", ""), f"{where}: base")
    return _Row(where, fields.get("test_case", ""), figure, base or None)


def _value(text: str, where: str) -> tuple[float, float]:
    """The number, and half a unit of its last digit."""
    if match := _CLOCK.fullmatch(text):
        hours, minutes, seconds = (float(part or 0) for part in match.groups())
        return 3600 * hours + 60 * minutes + seconds, _half_digit(match[3])
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise StudyError(
            f"{where}: value {text!r} is no number", "digits and a point (35.72), or 1:09"
        )
    return value, _half_digit(text)


def _tolerance(text: str, where: str) -> float:
    if not text:
        return TOLERANCE
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < 1:
        raise StudyError(
            f"{where}: tolerance {text!r} is no share", "a number between 0 and 1: 0.01, or nothing"
        )
    return value


def _half_digit(text: str) -> float:
    return 0.5 * 10.0 ** -len(text.partition(".")[2])


def _compare(fields: Mapping[str, str], where: str) -> Compare:
    """The given way; else ``factor`` by its unit, ``ratio`` if the figure has a cell, or
    ``none``."""
    given: Any = fields.get("compare", "")
    if given and given not in get_args(Compare):
        raise StudyError(f"{where}: compare {given!r}", f"{one_of(get_args(Compare))}, or nothing")
    measured = bool(fields["indicator"] and fields["parameters"])
    if given and given != "none" and not measured:
        raise StudyError(
            f"{where}: compare {given!r} without an indicator and parameters",
            "both, or compare none",
        )
    if given:
        return given  # type: ignore[no-any-return]
    if not measured:
        return "none"
    return "factor" if fields["unit"] == "factor" else "ratio"


def parse_setting(text: str, where: str) -> dict[str, Level]:
    """``cpus=2;sync=none`` → levels by factor.

    Raises:
        StudyError: a part without a name or a level, or a name twice.
    """
    setting: dict[str, Level] = {}
    for part in filter(None, (part.strip() for part in text.split(";"))):
        name, sign, level = (piece.strip() for piece in part.partition("="))
        if not (name and sign and level):
            raise StudyError(f"{where}: {part!r} is no NAME=LEVEL", "cpus=2;threads=1;sync=none")
        if name in setting:
            raise StudyError(f"{where}: {name} appears twice", "each factor once")
        setting[name] = parse_level(level)
    return setting


def _based(rows: list[_Row]) -> Iterator[PublishedFigure]:
    """The figures of a test case with their bases: the one named, else the first figure of the
    same indicator in the same table."""
    for row in rows:
        figure = row.figure
        if figure.compare == "none":
            yield figure
            continue
        first = next(
            other.figure.parameters
            for other in rows
            if (other.figure.table, other.figure.indicator) == (figure.table, figure.indicator)
        )
        figure = msgspec.structs.replace(figure, base=row.base or first)
        value = _base_value(figure, rows)
        if figure.compare not in OF_THEMSELVES and value is None:
            setting = ";".join(f"{name}={level}" for name, level in figure.base_parameters.items())
            raise StudyError(
                f"{row.where}: no published {figure.indicator} at the base {setting}",
                "a base that the source has a figure of, or compare none",
            )
        yield msgspec.structs.replace(figure, base_value=value)


def _base_value(figure: PublishedFigure, rows: list[_Row]) -> float | None:
    """The published figure of the base: in the same table, else in another of the test case."""
    base = figure.base_parameters
    found = [
        other.figure
        for other in rows
        if other.figure.compare == figure.compare not in OF_THEMSELVES
        and other.figure.indicator == figure.indicator
        and other.figure.parameters == base
    ]
    own = [other for other in found if other.table == figure.table]
    divided = figure.compare == "ratio"
    return next((o.value for o in [*own, *found] if o.value or not divided), None)
