"""Commands in messages and reports name the store that was given, where it is not the default one:
without it they would look for the run in another.

Messages are written without it, by parts that do not know how the store was named.
"""

from __future__ import annotations

import re
import shlex

#: A run or a campaign as commands name it: an id, which has a date, or a word that stands for one.
_RUN = r"(?:last|RUN|c?\d{8}-[\w-]*\w)"
_COMMAND = re.compile(
    rf"\bconcurve (?:(?:resume|show|explain|report|export) {_RUN}|history(?= \S+ --)"
    r"|compare(?= (?:RUN1 RUN2|last|\d{8}-))|runs(?= (?:(?:lists|shows)\b|c\d{8}-)))"
    r"(?! --db)(?![\w-])"
)
_FUNCTION = re.compile(r'\bconcurve\.(load|runs)\(((?:"[^"]*")?)\)')


def command_words(text: str, place: str | None) -> str:
    """The text with ``--db PLACE`` in each command that reads a run; as it is for the default store
    (``None``)."""
    if not place:
        return text
    option = f" --db {shlex.quote(place)}"
    return _COMMAND.sub(lambda match: match[0] + option, text)


def function_words(text: str, place: str | None) -> str:
    """The text in the words of Python with ``db="PLACE"`` in each function that finds a run."""
    if not place:
        return text
    quoted = place.replace("\\", "\\\\").replace('"', '\\"')

    def named(match: re.Match[str]) -> str:
        given = ", ".join(filter(None, (match[2], f'db="{quoted}"')))
        return f"concurve.{match[1]}({given})"

    return _FUNCTION.sub(named, text)
