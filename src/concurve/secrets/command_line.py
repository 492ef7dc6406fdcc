"""The secrets of a command line of ours, wherever it comes from: typed, or made by a form."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from concurve.secrets import NAMING_OPTIONS
from concurve.secrets.known import CHARS_MIN, Secrets
from concurve.secrets.likely import of_value
from concurve.secrets.secret import references
from concurve.terms import joined_levels, split_levels

#: The options that give a parameter its levels: as two words, and as one.
_LEVELS = ("-P", "--parameter")
_SET = "--set"

#: The options whose values are levels of several parameters, and levels alone.
_OF_SEVERAL = ("--base", "--at")
_BARE = "--levels"

#: The options whose values are looked at.
_WITH_VALUES = ("--db", "--env", *NAMING_OPTIONS)

#: What stands for several levels, or for a number of CPUs.
_NOTATION = re.compile(r"-?[\d.]+(?:\.\.-?[\d.]*(?:[+*][\d.]+|x)?|%)")


def hide_words(words: Sequence[str], environment: Mapping[str, str], known: Secrets) -> list[str]:
    """The words of a command line of ours with references in place of its secrets."""
    known.add_environment()
    known.hide_store(environment.get("CONCURVE_DB", ""))
    for name in marked(words):
        _add_marked(name, words, environment, known)
    lists = list(_lists(words))
    levels = {item.place: _hidden_levels(item, known) for item in lists}
    hidden = []
    for place, (option, before, value) in enumerate(_values(words)):
        text = value
        if option == "--db":
            text = known.hide_store(value)
        elif option == "--env":
            name, _, given = value.partition("=")
            text = f"{name}={known.add(name, given)}" if of_value(name, given) else value
        hidden.append("" if place in levels else f"{before}{text}")
    hidden = list(known.hide_words(hidden, NAMING_OPTIONS))
    for item in lists:
        whole = zip(item.levels, map(known.hide, levels[item.place]), strict=True)
        hidden[item.place] = item.before + joined_levels([it.around(text) for it, text in whole])
    return hidden


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
    for item in _lists(words):
        for level in item.levels:
            if level.parameter == parameter and level.text and not references(level.text):
                yield level.text


def _hidden_levels(item: _Levels, known: Secrets) -> list[str]:
    """The levels of a list with references in place of what is likely a secret. Each level is a
    text of its own: no secret reaches into the next one."""
    return [
        known.add(level.parameter.upper(), level.text)
        if _is_likely(level)
        else known.hide_words([level.text])[0]
        for level in item.levels
    ]


def _is_likely(level: _Level) -> bool:
    """Is a level likely a secret, by the name of its parameter? A short number counts something,
    such as the passes of a program, and what stands for several levels is none."""
    is_short = level.text.isdigit() and len(level.text) < CHARS_MIN
    is_likely = not is_short and of_value(level.parameter, level.text)
    return is_likely and not _NOTATION.fullmatch(level.text)


class _Level(NamedTuple):
    """A level of a list: what stands before it and behind it, its text as a program gets it, and
    the parameter whose it is; that is empty where the list does not say it."""

    before: str
    text: str
    behind: str
    parameter: str = ""

    def around(self, text: str) -> str:
        """The part of the list with another text in its place."""
        return f"{self.before}{text}{self.behind}"


class _Levels(NamedTuple):
    """A word of a command line that is a list of levels, or ends with one: its place, the option
    that it belongs to, what stands before the list, and the levels."""

    place: int
    before: str
    levels: list[_Level]


def _level(given: str, parameter: str = "", before: str = "") -> _Level:
    """A level without the blanks around it, which no program gets."""
    text = given.strip()
    begin = len(given) - len(given.lstrip()) if text else len(given)
    return _Level(before + given[:begin], text, given[begin + len(text) :], parameter.strip())


def _lists(words: Sequence[str]) -> Iterator[_Levels]:
    """The lists of levels before ``--``."""
    end = list(words).index("--") if "--" in words else len(words)
    for place, word in enumerate(words[:end]):
        last, last_but_one = (words[place - back] if place >= back else "" for back in (1, 2))
        name = last if last_but_one in _LEVELS else _parameter_in(last)
        if name:
            yield _Levels(place, "", [_level(part, name) for part in split_levels(word)])
            continue
        option, before, value = last, "", word
        if last not in (_SET, *_OF_SEVERAL, _BARE):
            option, equals, value = word.partition("=")
            before = f"{option}{equals}"
        if option == _SET:
            name, equals, value = value.partition("=")
            if equals:
                parts = [_level(part, name) for part in split_levels(value)]
                yield _Levels(place, f"{before}{name}=", parts)
        elif option in _OF_SEVERAL and value:
            yield _Levels(place, before, [*map(_named_level, split_levels(value))])
        elif option == _BARE and value:
            yield _Levels(place, before, [*map(_level, split_levels(value))])


def _named_level(part: str) -> _Level:
    """The level of ``NAME=LEVEL``."""
    name, equals, level = part.partition("=")
    return _level(level, name, f"{name}=") if equals else _level(part)


def _parameter_in(word: str) -> str:
    """The parameter of an option that has it in the same word: ``-Pn``, ``--parameter=n``."""
    short, long = _LEVELS
    if word.startswith(f"{long}="):
        return word.removeprefix(f"{long}=")
    return word.removeprefix(short) if word.startswith(short) and word != short else ""


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
