"""Record → a figure that a program printed.

The number is group 1 of a pattern, or its group ``value``; a group ``unit`` holds the unit that the
program chose, and the figure is converted to the base unit (seconds, bytes, 1/s).
"""

from __future__ import annotations

import math
from typing import Any

from concurve.definition.patterns import SEARCH_SECONDS, matches
from concurve.definition.study import Extract
from concurve.definition.units import in_base_unit
from concurve.errors import StudyError
from concurve.wire.record import RoleRecord

#: So much of a line is quoted.
_LINE_CHARS = 120


class MissedExtractError(Exception):
    """A pattern matched no number in a trial's output. ``reason`` says why if it is not that."""

    def __init__(self, extract: Extract, excerpt: str, reason: str = "") -> None:
        self.extract = extract
        self.excerpt = excerpt
        self.reason = reason
        super().__init__(extract.name)


def extracted(extract: Extract, role: RoleRecord) -> float:
    """The figure of the last match in standard output, else in standard error; or the sum over all
    matches.

    Raises:
        MissedExtractError: no match, no finite number, or the search took too long.
    """
    reason = ""
    try:
        for output in (role.stdout, role.stderr):
            # An empty group is no figure: (.*) also matches the empty text at the end.
            found = [match for match in matches(extract.pattern, output.text()) if _number(match)]
            if found:
                figure = _figure(extract, found)
                if figure is not None:
                    return figure
                break
    except TimeoutError:
        reason = f"the search took more than {SEARCH_SECONDS:g} s: a pattern that matches less"
    except StudyError as error:  # a run of a version with another dialect
        reason = error.what
    text = role.stdout.text().strip() or role.stderr.text().strip()
    raise MissedExtractError(extract, text[-200:], reason)


def printed_line(extract: Extract, role: RoleRecord) -> str:
    """The line of the output in which the last figure above 0 stands, for people; empty if there is
    none, or it is not found in time."""
    found = ""
    try:
        for output in (role.stdout, role.stderr):
            text = output.text()
            for match in matches(extract.pattern, text):
                if _number(match) and _value(match):
                    found = text[text.rfind("\n", 0, match.end()) + 1 :].partition("\n")[0]
            if found:
                break
    except (TimeoutError, StudyError):
        return ""
    return found.strip()[:_LINE_CHARS]


def _figure(extract: Extract, found: list[Any]) -> float | None:
    if extract.combine == "last":
        return _value(found[-1])
    values = [_value(match) for match in found]
    return None if None in values else math.fsum(value for value in values if value is not None)


def _value(match: Any) -> float | None:
    """The number of a match in its base unit; ``None`` if it is no finite number."""
    try:
        figure = float(_number(match).replace(",", ""))
    except ValueError:
        return None
    factor = in_base_unit(_named(match, "unit"))
    if factor is None or not math.isfinite(figure * factor):
        return None
    return figure * factor


def _number(match: Any) -> str:
    return _named(match, "value") or match[1] or ""


def _named(match: Any, begin: str) -> str:
    """The first group that matched, of those whose names begin so."""
    groups = match.groupdict()
    return next((text for name, text in groups.items() if name.startswith(begin) and text), "")
