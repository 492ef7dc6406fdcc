"""Placeholders: ``{threads}`` in commands, controls and environments.

Only ``{identifier}`` is a placeholder, so that ``{}`` and ``awk '{print $1}'`` pass as they are;
``{{threads}}`` stands for a literal ``{threads}``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping

from concurve.errors import StudyError
from concurve.findings import Level

_PLACEHOLDER = re.compile(r"\{\{([A-Za-z_][A-Za-z0-9_-]*)\}\}|\{([A-Za-z_][A-Za-z0-9_-]*)\}")

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


def placeholders(text: str) -> list[str]:
    """Names of the placeholders in a text, in order."""
    return [match[2] for match in _PLACEHOLDER.finditer(text) if match[2]]


def render(text: str, values: Mapping[str, Level]) -> str:
    """The text with each placeholder replaced by its value."""
    return _PLACEHOLDER.sub(
        lambda match: "{" + match[1] + "}" if match[1] else str(values[match[2]]), text
    )


def check_placeholders(text: str, known: Iterable[str], where: str) -> None:
    """Refuse a placeholder that no parameter fills.

    Raises:
        StudyError: names the place, the placeholder and the nearest parameter.
    """
    names = list(known)
    for name in placeholders(text):
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            hint = f"did you mean {{{near[0]}}}? or " if near else ""
            raise StudyError(
                f"{where}: placeholder {{{name}}} has no parameter",
                f"{hint}add -P {name} LEVELS, or write {{{{{name}}}}} for the literal text",
            )
