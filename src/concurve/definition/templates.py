"""Placeholders: ``{threads}`` in commands, controls and environments.

Only ``{identifier}`` is a placeholder, so that ``{}`` and ``awk '{print $1}'`` pass as they are;
``{{threads}}`` stands for a literal ``{threads}``. ``{class.nice}`` is a part of what a level
stands for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from concurve.errors import StudyError
from concurve.terms import Level
from concurve.words import nearest

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")

_PATH = rf"{NAME.pattern}(?:\.{NAME.pattern})?"

_PLACEHOLDER = re.compile(rf"\{{\{{({_PATH})\}}\}}|\{{({_PATH})\}}")

#: What a placeholder stands for: a level, or several arguments.
Value = Level | tuple[str, ...]


def placeholders(text: str) -> list[str]:
    """Names of the placeholders in a text, in order."""
    return [match[2] for match in _PLACEHOLDER.finditer(text) if match[2]]


def render(text: str, values: Mapping[str, Value]) -> str:
    """The text with each placeholder replaced by its value, which is no list."""
    return _PLACEHOLDER.sub(
        lambda match: "{" + match[1] + "}" if match[1] else str(values[match[2]]), text
    )


def escape(text: str, names: Iterable[str]) -> str:
    """The text with the placeholders of these names literal: ``{n}`` becomes ``{{n}}``."""
    literal = set(names)
    return _PLACEHOLDER.sub(
        lambda match: "{" + match[0] + "}" if match[2] in literal else match[0], text
    )


def is_whole(text: str) -> bool:
    """Whether a text is one placeholder and nothing else."""
    match = _PLACEHOLDER.fullmatch(text)
    return bool(match and match[2])


def expand(arguments: Iterable[str], values: Mapping[str, Value]) -> list[str]:
    """The arguments rendered; an argument that is only a placeholder for a list becomes one
    argument for each element of the list."""
    expanded: list[str] = []
    for argument in arguments:
        whole = _PLACEHOLDER.fullmatch(argument)
        value = values[whole[2]] if whole and whole[2] else None
        if isinstance(value, tuple):
            expanded.extend(value)
        else:
            expanded.append(render(argument, values))
    return expanded


def check_placeholders(
    text: str, known: Iterable[str], where: str, parameter: Callable[[str], str]
) -> None:
    """Refuse a placeholder without a parameter. ``parameter`` says how one of that name is added
    (:meth:`~concurve.definition.origins.Origins.parameter`).

    Raises:
        StudyError: names the place, the placeholder and the nearest parameter.
    """
    names = list(known)
    for name in placeholders(text):
        if name not in names:
            near = nearest(name, names)
            hint = f"did you mean {{{near}}}? or " if near else ""
            raise StudyError(
                f"{where}: placeholder {{{name}}} has no parameter",
                f"{hint}add {parameter(name)}, or write {{{{{name}}}}} for the literal text",
            )
