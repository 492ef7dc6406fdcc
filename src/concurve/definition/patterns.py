"""Regular expressions that users write: in the dialect of RE2, which matches in linear time.

Python's own ``re`` tries alternatives one after the other, and some patterns take years on a line
of forty characters. RE2 runs an automaton instead, so a pattern cannot stop the laboratory; in
return it has no look-around and no references back. ``^`` and ``$`` match at every line.
Syntax: https://github.com/google/re2/wiki/Syntax.
"""

from __future__ import annotations

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

#: What RE2 calls the things that users of other dialects miss.
_MISSING = {
    "invalid perl operator": "RE2 has no look-around: write the text around the group",
    "invalid escape sequence": "RE2 has no references back; \\ before a letter is a class: \\d \\s",
    "invalid repetition size": "at most 1000 repetitions, nested ones multiplied",
    "pattern too large": "a shorter pattern, with fewer repetitions",
}


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
