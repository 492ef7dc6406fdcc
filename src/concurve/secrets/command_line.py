"""The secrets of a command line of ours, wherever it comes from: typed, or made by a form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from concurve.secrets import NAMING_OPTIONS
from concurve.secrets.known import Secrets
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
        hidden[item.place] = item.before + joined_levels([*map(known.hide, levels[item.place])])
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
        if item.parameter == parameter:
            levels = (level.strip() for level in item.levels)
            yield from (level for level in levels if level and not references(level))


def _hidden_levels(item: _Levels, known: Secrets) -> list[str]:
    """The levels of a list with references in place of what is likely a secret. Each level is a
    text of its own: no secret reaches into the next one."""
    hidden = []
    for text in item.levels:
        before, level = "", text
        if item.option in _OF_SEVERAL:
            name, equals, level = text.partition("=")
            before = f"{name}{equals}"
        if item.option == _SET and of_value(item.parameter, level):
            hidden.append(known.add(item.parameter.upper(), level))
        else:
            hidden.append(before + known.hide_words([level])[0])
    return hidden


class _Levels(NamedTuple):
    """A word of a command line that is a list of levels, or ends with one: its place, the option
    that it belongs to, what stands before the list, the levels, and the parameter whose they are;
    that is empty where the list does not say it, or has levels of several."""

    place: int
    option: str
    before: str
    levels: list[str]
    parameter: str = ""


def _lists(words: Sequence[str]) -> Iterator[_Levels]:
    """The lists of levels before ``--``."""
    end = list(words).index("--") if "--" in words else len(words)
    for place, word in enumerate(words[:end]):
        last, last_but_one = (words[place - back] if place >= back else "" for back in (1, 2))
        name = last if last_but_one in _LEVELS else _parameter_in(last)
        if name:
            yield _Levels(place, _LEVELS[0], "", split_levels(word), name)
            continue
        option, before, value = last, "", word
        if last not in (_SET, *_OF_SEVERAL, _BARE):
            option, equals, value = word.partition("=")
            before = f"{option}{equals}"
        if option == _SET:
            name, equals, value = value.partition("=")
            if equals:
                yield _Levels(place, option, f"{before}{name}=", split_levels(value), name)
        elif option in (*_OF_SEVERAL, _BARE) and value:
            yield _Levels(place, option, before, split_levels(value))


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
