"""An option that takes one value and is given twice: click takes the last one and says nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import click

from concurve.errors import StudyError


def refuse_repeated(context: click.Context, command: click.Command, words: Sequence[str]) -> None:
    """Look at the words behind a verb; what else is wrong with them is said when it is called.

    Raises:
        StudyError: an option that takes one value is given more than once.
    """
    own = click.Context(command, context, **command.context_settings)
    try:
        _, rest, order = command.make_parser(own).parse_args(list(words))
    except click.UsageError:
        return
    counts = Counter(item for item in order if isinstance(item, click.Option))
    for option, count in counts.items():
        if count > 1 and not (option.multiple or option.is_flag or option.count):
            name = max(option.opts, key=len)
            raise StudyError(f"{name} is given {count} times, and takes one value", f"one {name}")
    if isinstance(command, click.Group) and rest:
        below = command.get_command(own, rest[0])
        if below is not None:
            refuse_repeated(own, below, rest[1:])
