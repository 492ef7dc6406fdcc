"""Hides the secrets of this process's command line before anything reads it: from then on its words
hold references (:mod:`concurve.secrets`), and all that is printed goes through the same.

Other users see the words of a command line, too, so those of this process are overwritten.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from concurve.cli.streams import hide_in_output
from concurve.secrets import KNOWN, NAMING_OPTIONS, references
from concurve.secrets.known import Secrets
from concurve.secrets.likely import of_value

#: The verbs that read a store or start programs.
VERBS = frozenset({
    "sweep", "run", "resume", "runs", "show", "explain", "report", "compare", "history", "export",
    "load", "monitor", "web",
})  # fmt: skip

#: The options that give a parameter its levels: as two words, and as one.
_LEVELS = ("-P", "--parameter")
_SET = "--set"

#: The options whose values are looked at.
_WITH_VALUES = ("--db", "--env", *NAMING_OPTIONS)


def hide_secrets(verb: str) -> None:
    """Hide what is secret in the command line and the environment, if this verb may meet any."""
    if verb not in VERBS:
        return
    hide_in_output(KNOWN.hide)
    given = sys.argv[1:]
    hidden = hide_words(given, os.environ, KNOWN)
    sys.argv[1:] = hidden
    shown = [word for word, other in zip(given, hidden, strict=True) if word != other]
    if shown:
        _overwrite_own_words(shown)


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


def _overwrite_own_words(shown: Sequence[str]) -> None:
    """Overwrite these words where the kernel shows them to others, in ``/proc/PID/cmdline``. Where
    that cannot be done, they stay as whoever typed them has shown them already."""
    with contextlib.suppress(OSError, ValueError, IndexError):
        # proc(5): fields 48 and 49 are the place of the words in this process's memory.
        fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        begin, end = int(fields[45]), int(fields[46])
        with Path("/proc/self/mem").open("r+b", buffering=0) as memory:
            memory.seek(begin)
            there = memory.read(end - begin)
            for word in shown:
                raw = os.fsencode(word)
                for at in _places(there, raw):
                    memory.seek(begin + at)
                    memory.write(b"*" * len(raw))


def _places(text: bytes, part: bytes) -> Iterator[int]:
    at = text.find(part)
    while at >= 0:
        yield at
        at = text.find(part, at + len(part))
