"""Regular expressions that users write: in the dialect of RE2, which matches in linear time.

Python's own ``re`` tries alternatives one after the other, and some patterns take years on a line
of forty characters. RE2 runs an automaton instead, so a pattern cannot stop the laboratory; in
return it has no look-around and no references back. ``^`` and ``$`` match at every line.
Syntax: https://github.com/google/re2/wiki/Syntax.

Patterns that the trial runner matches are those that it reads as RE2 does
(:func:`check_for_runner`): its dialect has the same roots, and differs at the edges.
"""

from __future__ import annotations

import re
import time
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from concurve.errors import StudyError

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The memory that one pattern may take.
_MEMORY_BYTES = 16 << 20

#: How long a pattern may search in one output. One search is linear; many matches of which each
#: looks at the whole rest are not.
SEARCH_SECONDS = 5.0

#: Groups whose names begin so hold the unit that a program chose for its number.
UNIT = "unit"

#: Of these units the prefixes are those of 1024 though they look like those of 1000.
BINARY_UNIT = "unit1024"

#: Groups that are named so hold a count by which the number is divided.
PER = re.compile(r"per\d*")

#: What RE2 calls the things that users of other dialects miss.
_MISSING = {
    "invalid perl operator": "RE2 has no look-around: write the text around the group",
    "invalid escape sequence": "RE2 has no references back; \\ before a letter is a class: \\d \\s",
    "invalid repetition size": "at most 1000 repetitions, nested ones multiplied",
    "pattern too large": "a shorter pattern, with fewer repetitions",
}


#: Parts of a pattern in which a parenthesis opens no group, and the parentheses that do.
_PARTS = re.compile(
    r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\]|\((?:\?P?<([^>]*)>)?|\)",
    re.DOTALL,
)


@lru_cache(maxsize=256)
def compiled(pattern: str) -> Any:
    """The pattern, ready to match.

    Raises:
        StudyError: no regular expression of RE2.
    """
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY_BYTES
    try:
        return re2.compile(f"(?m){pattern}", options=options)
    except re2.error as error:
        said = error.args[0].decode(errors="replace")
        remedy = next((text for key, text in _MISSING.items() if key in said), "")
        raise StudyError(
            f"'{pattern}' is no regular expression of RE2: {said}",
            remedy or r"for example 'rate=(\d+) req/s'",
        ) from error
    except UnicodeEncodeError as error:
        raise StudyError(f"{pattern!r} is not UTF-8", "a pattern in UTF-8") from error


def matches(pattern: str, text: str) -> Iterator[Any]:
    """All matches in order. Stops with :class:`TimeoutError` after :data:`SEARCH_SECONDS`.

    Raises:
        StudyError: no regular expression of RE2.
    """
    expression = compiled(pattern)
    ends = time.monotonic() + SEARCH_SECONDS
    for match in expression.finditer(text.encode(errors="replace").decode()):
        yield match
        if time.monotonic() > ends:
            raise TimeoutError


def group_can_be(pattern: str, begin: str, text: str) -> bool:
    """Can a group whose name begins so be this text? Flags outside of the group are not heeded.

    Raises:
        StudyError: no regular expression of RE2.
    """
    compiled(pattern)
    return any(compiled(f"(?:{part})").fullmatch(text) for part in _group_parts(pattern, begin))


@lru_cache(maxsize=64)
def _group_parts(pattern: str, begin: str) -> tuple[str, ...]:
    """What stands within the groups whose names begin so: of one group hundreds of texts are
    asked."""
    opened: list[tuple[str, int]] = []
    found: list[str] = []
    for part in _PARTS.finditer(pattern):
        if part[0].startswith("("):
            opened.append((part[1] or "", part.end()))
        elif part[0] == ")" and opened:
            name, at = opened.pop()
            if name.startswith(begin):
                found.append(pattern[at : part.start()])
    return tuple(found)


# -- what the trial runner reads as well --------------------------------------------------------

#: Escapes that RE2 and the runner (the crate ``regex-syntax``) read alike; those of punctuation are
#: literal in both.
_ESCAPES = "dDwWsSbBAzafnrtv"
_CLASS_NAME = re.compile(
    r"\[:\^?(?:alnum|alpha|ascii|blank|cntrl|digit|graph|lower|print|punct|space|upper|word|xdigit)"
    r":\]"
)
_OF_UNICODE = re.compile(r"\\[pP](?:\{([^}]*)\}|.)", re.DOTALL)
_BY_NUMBER = re.compile(r"\\x(?:\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2}))")
_REPEATED = re.compile(r"\{(\d+)(?:(,)(\d*))?\}")
_FLAGS = re.compile(r"\(\?[A-Za-z-]+\)")
_GROUP = re.compile(r"\((?:\?P?<(?P<name>[^>]*)>|\?[A-Za-z-]*:)?")
_GROUP_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

#: The runner's most states, and how deep groups may lie in each other for its parser.
_STATES_MAX = 10_000
_DEPTH_MAX = 60


def check_for_runner(pattern: str) -> None:
    """Refuse a pattern that RE2 and the trial runner do not read alike: one of the two would refuse
    it, or find something else.

    Raises:
        StudyError: no regular expression of RE2, or one with a construct that only one of them has.
    """
    compiled(pattern)
    groups = [_Group()]
    at = 0
    while at < len(pattern):
        sign = pattern[at]
        if sign in "\\[":
            at = _after_escape(pattern, at) if sign == "\\" else _after_class(pattern, at)
            groups[-1].add(1)
        elif sign == "(":
            at = _open(pattern, at, groups)
        elif sign == ")" and len(groups) > 1:
            inner = groups.pop()
            groups[-1].add(inner.states)
            at += 1
        elif sign == "{":
            at = _repeat(pattern, at, groups[-1])
        else:
            groups[-1].take(sign)
            at += 1
    if groups[0].states >= _STATES_MAX:
        raise _unlike(pattern, "what it repeats", "fewer repetitions: it is too large")


class _Group:
    """The states that the runner needs for a part of a pattern, at most, and those of its last
    element."""

    def __init__(self) -> None:
        self.states = 0
        self.last = 0

    def add(self, states: int) -> None:
        self.states += states
        self.last = states

    def repeat(self, least: int, most: int | None) -> None:
        """The last element so often: each time in full, and one that may be missing with a
        branch."""
        once = self.last
        more = once + 2 if most is None else (most - least) * (once + 1)
        self.states += least * once + more - once
        self.last = least * once + more

    def take(self, sign: str) -> None:
        match sign:
            case "*":
                self.repeat(0, None)
            case "+":
                self.repeat(1, None)
            case "?":
                self.repeat(0, 1)
            case "|":
                self.states += 2
                self.last = 0
            case _:
                self.add(1)


def _unlike(pattern: str, what: str, remedy: str) -> StudyError:
    return StudyError(f"'{pattern}': {what} is not available in the pattern of a line", remedy)


def _after_escape(pattern: str, at: int) -> int:
    """The position after an escape."""
    sign = pattern[at + 1 : at + 2]
    if sign and sign in _ESCAPES:
        return at + 2
    if sign in ("p", "P") and (found := _OF_UNICODE.match(pattern, at)):
        name = found[1] or ""
        if name.startswith("^") or name == "Cs":
            raise _unlike(pattern, found[0], r"\P{…} for all others")
        return found.end()
    if sign == "x" and (found := _BY_NUMBER.match(pattern, at)):
        if 0xD800 <= int(found[1] or found[2], 16) <= 0xDFFF:
            raise _unlike(pattern, found[0], "a number that is a character")
        return found.end()
    if sign.isascii() and not sign.isalnum() and sign not in "<>":
        return at + 2
    remedies = {"Q": r"\ before each sign that means something", "C": ". for any character"}
    remedy = remedies.get(sign, f"{sign} itself" if sign in "<>" else r"\x{…} with its number")
    raise _unlike(pattern, f"\\{sign}", remedy)


def _after_class(pattern: str, at: int) -> int:
    """The position after a class in brackets."""
    at += 2 if pattern[at + 1 : at + 2] == "^" else 1
    first = at
    while at < len(pattern):
        sign = pattern[at]
        if sign == "]" and at > first:
            return at + 1
        if sign == "\\":
            at = _after_escape(pattern, at)
        elif sign == "[":
            named = _CLASS_NAME.match(pattern, at)
            if named is None:
                raise _unlike(pattern, "[ within a class", r"\[")
            at = named.end()
        elif pattern[at : at + 2] in ("&&", "--", "~~"):
            raise _unlike(pattern, f"{sign * 2} within a class", f"\\{sign}")
        else:
            at += 1
    return at


def _open(pattern: str, at: int, groups: list[_Group]) -> int:
    """The position after the begin of a group, or after flags that stand alone."""
    if flags := _FLAGS.match(pattern, at):
        if pattern[flags.end() : flags.end() + 1] in tuple("*+?{"):
            raise _unlike(pattern, "a repetition after flags", "the flags at the begin")
        return flags.end()
    begin = _GROUP.match(pattern, at)
    assert begin is not None  # a parenthesis alone matches
    name = begin["name"]
    if name is not None and not _GROUP_NAME.fullmatch(name):
        raise _unlike(pattern, f"the name {name!r} of a group", "letters, digits and _")
    groups.append(_Group())
    if len(groups) > _DEPTH_MAX:
        raise _unlike(pattern, f"a group in {_DEPTH_MAX} others", "fewer parentheses")
    return begin.end()


def _repeat(pattern: str, at: int, group: _Group) -> int:
    """The position after a repetition in braces."""
    found = _REPEATED.match(pattern, at)
    if found is None:
        raise _unlike(pattern, "{ as a sign", r"\{")
    least = int(found[1])
    most = least if found[2] is None else int(found[3]) if found[3] else None
    group.repeat(least, most)
    return found.end()
