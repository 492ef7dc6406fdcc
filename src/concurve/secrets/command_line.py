"""The secrets of a command line of ours, wherever it comes from: typed, or made by a form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from concurve.secrets import NAMING_OPTIONS
from concurve.secrets.known import Secrets
from concurve.secrets.likely import of_value
from concurve.secrets.secret import references

#: The options that give a parameter its levels: as two words, and as one.
_LEVELS = ("-P", "--parameter")
_SET = "--set"

#: The options whose values are looked at.
_WITH_VALUES = ("--db", "--env", *NAMING_OPTIONS)


def hide_words(words: Sequence[str], environment: Mapping[str, str], known: Secrets) -> list[str]:
    """The words of a command line of ours with references in place of its secrets."""
    known.add_environment()
    known.hide_store(environment.get("CONCURVE_DB", ""))
    for name in marked(words):
        _add_marked(name, words, environment, known)
    hidden = []
    for option, before, value in _values(words):
        text = value
        if option == "--db":
            text = known.hide_store(value)
        elif option == "--env":
            name, _, given = value.partition("=")
            text = f"{name}={known.add(name, given)}" if of_value(name, given) else value
        hidden.append(f"{before}{text}")
    return list(known.hide_words(hidden, NAMING_OPTIONS))


def marked(words: Sequence[str]) -> list[str]:
    """What the options before ``--`` mark as secret."""
    return [it.value for it in _values(words) if it.option in NAMING_OPTIONS]


def _add_marked(
    text: str, words: Sequence[str], environment: Mapping[str, str], known: Secrets
) -> None:
    """Know what a ``--secret`` names: a text, the levels of a parameter, or a variable."""
    levels = list(_levels_of(text, words))
    for level in levels:
        known.add(text.upper(), level)
    if not levels:
        known.add_marked(text, environment)


def _levels_of(parameter: str, words: Sequence[str]) -> Iterator[str]:
    """The levels that a command line gives a parameter."""
    for number, word in enumerate(words):
        texts = []
        if word in _LEVELS and words[number + 1 : number + 2] == [parameter]:
            texts = list(words[number + 2 : number + 3])
        elif word.startswith(f"{parameter}=") and number and words[number - 1] == _SET:
            texts = [word.partition("=")[2]]
        elif word.startswith(f"{_SET}={parameter}="):
            texts = [word.split("=", 2)[2]]
        for text in texts:
            levels = [level.strip() for level in text.split(",")]
            yield from (level for level in levels if level and not references(level))


class _Word(NamedTuple):
    """A word of a command line: the option of ours that it belongs to, and the part of it that is
    the option's value, after ``before``."""

    option: str
    before: str
    value: str


def _values(words: Sequence[str]) -> Iterator[_Word]:
    """Each word with the option of ours that it belongs to: the word before it, or its own
    beginning in ``--option=value``. After ``--`` there is none."""
    is_own = True
    for number, word in enumerate(words):
        is_own = is_own and word != "--"
        name, equals, value = word.partition("=")
        if is_own and equals and name in _WITH_VALUES:
            yield _Word(name, f"{name}=", value)
        else:
            yield _Word(words[number - 1] if number and is_own else "", "", word)
