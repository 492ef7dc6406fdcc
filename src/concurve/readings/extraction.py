"""Record → a figure that a program printed.

The number is the first group of a pattern that is no unit, or its group ``value``, or its group
``decimal``, in which a comma is a decimal point; elsewhere commas divide thousands. A group
``unit`` holds the unit that the program chose, and the figure is converted to the base unit
(seconds, bytes, 1/s); in a group ``unit1024`` MB are 1024 × 1024 bytes. The number is divided by
that of a group ``per``.
"""

from __future__ import annotations

import math
import re
import string
from difflib import SequenceMatcher
from typing import Any

from concurve.definition.patterns import BINARY_UNIT, PER, SEARCH_SECONDS, UNIT, matches
from concurve.definition.study import Extract
from concurve.definition.units import in_base_unit
from concurve.errors import StudyError
from concurve.wire.record import Output, RoleRecord

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

#: Groups whose names begin so hold the number.
_NUMBERS = ("value", "decimal")

#: Numbers whose commas can divide thousands, lakhs too. Of ``0,145`` and ``1234,567`` none can;
#: ``1,234`` is what tools print for a thousand and more.
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2}(,\d{2,3})*,\d{3}(\.\d*)?([eE][-+]?\d+)?")

#: What stands before a decimal comma where points or blanks divide the thousands.
_DIVIDED = re.compile(r"[-+]?\d{1,3}([.\s]\d{3})+")

#: A prefix, and what it is of.
_WITH_PREFIX = re.compile(r"([KMGT])(\w*)")

#: With these JMH begins a score that it rounded to a power of ten, the second where the locale has
#: no such sign.
_ROUNDED = ("≈ 1", "? 1")

#: What of these stands at a gap of the output may be a part of a longer number or unit.
_OF_WORDS = f"{string.ascii_letters}{string.digits}µ\u03bc.,+-"

#: What to do where a part of the output was dropped.
_PRINT_LESS = (
    "less output (fio: --group_reporting), so that nothing is dropped: of a long output only the "
    "first and the last part are kept"
)


class MissedExtractError(Exception):
    """A pattern matched no number in a trial's ``output``. ``reason`` says why there is no figure
    if it is not that alone, ``remedy`` what helps."""

    def __init__(self, extract: Extract, output: str, reason: str = "", remedy: str = "") -> None:
        self.extract = extract
        self.output = output
        self.reason = reason
        self.remedy = remedy
        super().__init__(extract.name)


class _UnreadError(Exception):
    """Why what a pattern found is no figure, and what helps."""

    def __init__(self, reason: str, remedy: str) -> None:
        self.reason = reason
        self.remedy = remedy
        super().__init__(reason)


def extracted(extract: Extract, role: RoleRecord) -> float:
    """The figure of the last match in standard output, else in standard error; or the sum over all
    matches.

    Raises:
        MissedExtractError: no match, no finite number, a number or a unit that cannot be read, a
            sum over an output of which a part was dropped, or the search took too long.
    """
    reason = remedy = ""
    try:
        for output in (role.stdout, role.stderr):
            found = _found(extract.pattern, output)
            if any(found):
                return _figure(extract, found, output.dropped)
        if dropped := role.stdout.dropped + role.stderr.dropped:
            reason = f"{dropped:,} bytes of it were dropped, and it may have stood in them"
            remedy = _PRINT_LESS
    except _UnreadError as unread:
        reason, remedy = unread.reason, unread.remedy
    except TimeoutError:
        reason = f"the search took more than {SEARCH_SECONDS:g} s: a pattern that matches less"
    except StudyError as error:  # a run of a version with another dialect
        reason = error.what
    text = role.stdout.text().strip() or role.stderr.text().strip()
    raise MissedExtractError(extract, text, reason, remedy)


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
            every = (match for part in _found(extract.pattern, output) for match in part)
            for match in filter(_is_above_zero, every):
                # A match may end lines behind its number.
                text, end = match.string, match.end(_number_group(match))
                found = text[text.rfind("\n", 0, end) + 1 :].partition("\n")[0]
            if found:
                break
    except (TimeoutError, StudyError):
        return ""
    return found.strip()[:_LINE_CHARS]


def _found(pattern: str, output: Output) -> list[list[Any]]:
    """The matches that have a number, of each part that was kept. An empty group is no figure:
    ``(.*)`` also matches the empty text at the end."""
    return [
        [match for match in matches(pattern, text) if _number(match)] for text in _texts(output)
    ]


def _texts(output: Output) -> tuple[str, ...]:
    """What was kept of an output: its head and its tail apart, without the words that the gap
    between them cuts, so that no figure begins in one and ends in the other."""
    if not output.dropped:
        return (output.text(),)
    return output.head.rstrip(_OF_WORDS), output.tail.lstrip(_OF_WORDS)


def _figure(extract: Extract, found: list[list[Any]], dropped: int) -> float:
    """The figure of the matches in the parts of an output of which so many bytes were dropped.

    Raises:
        _UnreadError: it cannot be read, or it is a sum some of whose parts, or the last of some
            matches that, may have been dropped.
    """
    if extract.combine == "last":
        if found[-1]:
            return _value(found[-1][-1])
        raise _UnreadError(
            f"its last match counts, and behind all that were kept {dropped:,} bytes of the output "
            "were dropped",
            f"the figure at the end of the output; or {_PRINT_LESS}",
        )
    if dropped:
        raise _UnreadError(
            f"it is a sum, and {dropped:,} bytes of the output were dropped", _PRINT_LESS
        )
    return math.fsum(_value(match) for part in found for match in part)


def _is_above_zero(match: Any) -> bool:
    try:
        return _value(match) > 0
    except _UnreadError:
        return False


def _value(match: Any) -> float:
    """The number of a match in its base unit.

    Raises:
        _UnreadError: it is no finite number, or its unit is not known.
    """
    figure, unit = _parsed(match), _named(match, UNIT)
    if _named(match, BINARY_UNIT):
        unit = _WITH_PREFIX.sub(r"\1i\2", unit)
    factor = in_base_unit(unit)
    if factor is None:
        raise _UnreadError(
            f"the unit {unit!r} is not known",
            "a group named unit that holds ns, µs, ms, s, min, h, B, KiB, MB, k, M, ops/ms, ns/op",
        )
    if not math.isfinite(figure * factor):
        raise _UnreadError(f"{_number(match)!r} is not finite", "a group around a finite number")
    return figure * factor / _count(match)


def _count(match: Any) -> float:
    """What the number of a match is divided by: 1 where that is nothing.

    Raises:
        _UnreadError: it is no count above 0.
    """
    groups = match.groupdict().items()
    printed = next((text for name, text in groups if PER.fullmatch(name) and text), "")
    if not printed:
        return 1.0
    if not printed.isdecimal() or int(printed) == 0:
        raise _UnreadError(f"nothing can be divided by {printed!r}", "a count in the group per")
    return float(printed)


def _parsed(match: Any) -> float:
    """The number of a match as it stands there.

    Raises:
        _UnreadError: it is none, or it is not known what its comma means.
    """
    printed = text = _number(match).strip().rstrip(",")
    if text.startswith(_ROUNDED):
        raise _UnreadError(
            f"{text!r} is a figure that is rounded to a power of ten",
            "a unit in which it is larger (JMH: -tu ns for times, -tu s for rates)",
        )
    if _named(match, "decimal"):
        text = _with_point(text)
    elif _THOUSANDS.fullmatch(text):
        text = text.replace(",", "")
    elif "," in text:
        raise _UnreadError(
            f"the comma of {text!r} divides no thousands",
            "a decimal comma is read in a group of that name, (?P<decimal>[0-9,]+); with LC_ALL=C "
            "(--env LC_ALL=C) most programs print a point",
        )
    try:
        return float(text)
    except ValueError:
        raise _UnreadError(f"{printed!r} is no number", "a group around the number alone") from None


def _with_point(text: str) -> str:
    """A number with a decimal comma as one with a point, without the points or blanks that divide
    the thousands before that comma. Without a comma a point may be that of decimals."""
    whole, comma, rest = text.rpartition(",")
    if not comma:
        return re.sub(r"\s", "", text) if "." not in text and _DIVIDED.fullmatch(text) else text
    if _DIVIDED.fullmatch(whole):
        whole = re.sub(r"[.\s]", "", whole)
    return f"{whole}.{rest}"


def _number(match: Any) -> str:
    return match[_number_group(match)] or ""


def _number_group(match: Any) -> int:
    """The group that holds the number: by its name, else the first one that is no unit and no
    count."""
    named = match.re.groupindex
    for name, group in named.items():
        if name.startswith(_NUMBERS) and match[group]:
            return int(group)
    others = {
        group for name, group in named.items() if name.startswith(UNIT) or PER.fullmatch(name)
    }
    return next((group for group in range(1, match.re.groups + 1) if group not in others), 1)


def _named(match: Any, begin: str) -> str:
    """The first group that matched, of those whose names begin so."""
    groups = match.groupdict()
    return next((text for name, text in groups.items() if name.startswith(begin) and text), "")
