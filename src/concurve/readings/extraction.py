"""Record → a figure that a program printed.

The number is group 1 of a pattern, or its group ``value``; a group ``unit`` holds the unit that the
program chose, and the figure is converted to the base unit (seconds, bytes, 1/s).
"""

from __future__ import annotations

import math
import re
from difflib import SequenceMatcher
from typing import Any

from concurve.definition.patterns import SEARCH_SECONDS, matches
from concurve.definition.study import Extract
from concurve.definition.units import in_base_unit
from concurve.errors import StudyError
from concurve.wire.record import RoleRecord

#: So much of a line is quoted.
_LINE_CHARS = 120

#: Where a pattern does not match, the nearest lines are looked for among so many of the last ones;
#: so many of them are shown, or so many of the last ones where none has this share of its letters.
_LINES_SEARCHED = 300
_NEAR_LINES, _LAST_LINES = 3, 5
_NEAR = 0.7

#: What of a pattern is no text that is sought, and the words of the rest.
_NOT_LITERAL = re.compile(r"\(\?[^()]*\)|\([^()]*\)|\[[^\]]*\]|\\.|\{[^}]*\}")
_LITERAL = re.compile(r"[^\W\d_][^\W\d]+")


class MissedExtractError(Exception):
    """A pattern matched no number in a trial's ``output``. ``reason`` says why if it is not
    that."""

    def __init__(self, extract: Extract, output: str, reason: str = "") -> None:
        self.extract = extract
        self.output = output
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
    raise MissedExtractError(extract, text, reason)


def shown_lines(pattern: str, output: str) -> str:
    """The lines of an output that are nearest to a pattern that did not match, or its last ones, a
    line each below what they are; one sentence where there are none."""
    lines = [line.strip()[:_LINE_CHARS] for line in output.splitlines()[-_LINES_SEARCHED:]]
    lines = list(dict.fromkeys(filter(None, lines)))
    if not lines:
        return "it printed nothing"
    sought = " ".join(_LITERAL.findall(_NOT_LITERAL.sub(" ", pattern))).lower()
    alike = {line: _alike(sought, line.lower()) for line in lines} if sought else {}
    near = sorted((line for line in alike if alike[line] >= _NEAR), key=lambda it: -alike[it])
    shown = near[:_NEAR_LINES] or lines[-_LAST_LINES:]
    what = "the nearest" if near else "the last"
    return "\n    ".join([f"{what} of what it printed:", *shown])


def _alike(sought: str, line: str) -> float:
    """Which share of some letters a line has in their order, in pieces of two or more; lines that
    have little beside them come first."""
    blocks = SequenceMatcher(None, sought, line, autojunk=False).get_matching_blocks()
    found = sum(block.size for block in blocks if block.size > 1)
    return found / len(sought) - 1e-4 * len(line)


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
