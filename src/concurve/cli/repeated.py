"""What click takes in silence: of an option that takes one value and is given twice the last one,
and for a value that was forgotten the next option."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import click

from concurve.errors import StudyError


def refuse_repeated(context: click.Context, command: click.Command, words: Sequence[str]) -> None:
    """Look at the words behind a verb; what else is wrong with them is said when it is called.

    Raises:
        StudyError: an option that takes one value is given more than once, or took another option
            for its value.
    """
    own = click.Context(command, context, **command.context_settings)
    try:
        values, rest, order = command.make_parser(own).parse_args(list(words))
    except click.UsageError:
        return
    _refuse_taken(own, command, words, values)
    counts = Counter(item for item in order if isinstance(item, click.Option))
    for option, count in counts.items():
        if count > 1 and not (option.multiple or option.is_flag or option.count):
            name = max(option.opts, key=len)
            raise StudyError(f"{name} is given {count} times, and takes one value", f"one {name}")
    if isinstance(command, click.Group) and rest:
        below = command.get_command(own, rest[0])
        if below is not None:
            refuse_repeated(own, below, rest[1:])


def _refuse_taken(
    context: click.Context, command: click.Command, words: Sequence[str], values: Mapping[str, Any]
) -> None:
    """Refuse ``--attach --extract pgbench``, where the process was forgotten: the rest would be
    read as something else.

    Raises:
        StudyError: an option of the command, or ``--``, is the value of another one.
    """
    known = {
        text for item in command.params if isinstance(item, click.Option) for text in item.opts
    }
    for option, value in _values(command, values):
        if value != "--" and value.partition("=")[0] not in known:
            continue
        place = next((at for at, word in enumerate(words) if word == value), len(words))
        behind = words[place + 1 : place + 2] if "=" not in value else []
        name = max(option.opts, key=len)
        forms = option.make_metavar(context)
        first = re.match(r"[^\[|]+", forms)  # of PID|unit:NAME, and of NAME=REGEX[:unit]
        expected = first[0].strip() if first else forms
        raise StudyError(
            f"{name} took '{value}' as its value", " ".join([name, expected, value, *behind])
        )


def _values(
    command: click.Command, values: Mapping[str, Any]
) -> Iterator[tuple[click.Option, str]]:
    """The options that take one word, each with those that it was given."""
    for item in command.params:
        given = values.get(item.name or "")
        if not isinstance(item, click.Option) or item.is_flag or item.count or item.nargs != 1:
            continue
        for value in given if isinstance(given, list) else [given]:
            if isinstance(value, str):
                yield item, value
