"""A form of a browser → the words of the command line that does the same. Pure.

The command line says what is wrong with a value: a form is checked here as far as it could mean
another command line than the one that its reader sees.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec

from concurve.definition.levels import parse_levels
from concurve.errors import StudyError
from concurve.terms import Level, joined_levels


class _Form(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of forms. An empty text is a field that was left empty; a bool is a box to tick."""

    effort: str = "normal"
    repeats: str = ""
    precision: str = ""
    timeout: str = ""
    max_time: str = ""
    wait_quiet: str = ""
    measure_anyway: bool = False
    seed: str = ""


class Parameter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A parameter of a sweep and its levels."""

    name: str
    levels: str


class SweepForm(_Form, frozen=True):
    """``concurve sweep``. Of a text with several lines each line is an option of its own."""

    command: str
    parameters: tuple[Parameter, ...] = ()
    cpus: str = ""
    nice: str = ""
    policy: str = ""
    env: str = ""
    background: str = ""
    server: str = ""
    ready: str = ""
    attach: str = ""
    extract: str = ""
    primary: str = ""
    work: str = ""
    condition: str = ""
    base: str = ""
    name: str = ""
    prepare: str = ""
    conclude: str = ""
    check: str = ""
    secret: str = ""


class StudyForm(_Form, frozen=True):
    """``concurve run`` of a packaged study or campaign, or of a file; ``levels`` by factor."""

    study: str
    only: str = ""
    java: str = ""
    levels: dict[str, str] = {}
    target: str = ""
    attach: str = ""
    server: str = ""
    ready: str = ""
    password_from: str = ""
    counters: str = ""
    secret: str = ""


class ResumeForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """``concurve resume``."""

    max_time: str = ""


class MoreForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """More trials of a cell of a stored run."""

    cell: int
    trials: int


F = TypeVar("F")

#: The fields whose lines are options of their own.
_REPEATED = ("env", "background", "extract", "work", "condition", "secret")

_PROTOCOL = (
    "effort", "repeats", "precision", "timeout", "max_time", "wait_quiet", "measure_anyway", "seed",
)  # fmt: skip
_OF_SWEEP = (
    "cpus", "nice", "policy", "env", "background", "server", "ready", "attach", "extract",
    "primary", "work", "condition", "base", "name", "prepare", "conclude", "check", "secret",
)  # fmt: skip
_OF_STUDY = (
    "only", "java", "target", "attach", "server", "password_from", "ready", "counters", "secret",
)  # fmt: skip

#: So many more trials of a cell may be asked for at once.
MORE_MAX = 1000

#: The greatest number of options of a form.
_OPTIONS_MAX = 500


def decode(body: bytes, kind: type[F]) -> F:
    """What a page sends.

    Raises:
        StudyError: it is malformed, or has a field that is not known.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise StudyError(f"the form cannot be read: {error}", "the form of this page") from error


def sweep_words(form: SweepForm) -> list[str]:
    """The words of ``concurve sweep``.

    Raises:
        StudyError: no command, or one whose quotes are not closed.
    """
    command = _split(form.command)
    words = ["sweep"]
    for parameter in form.parameters:
        if not parameter.name.strip():
            raise StudyError("a parameter has no name", "threads, and its levels 1,2,4")
        if not parameter.levels.strip():
            raise StudyError(f"parameter {parameter.name}: no levels", "1,2,4 or 1..16*2")
        words += ["-P", _word(parameter.name.strip()), _word(parameter.levels.strip())]
    words += _options(form, (*_OF_SWEEP, *_PROTOCOL))
    return [*words, "--", *command]


def study_words(form: StudyForm) -> list[str]:
    """The words of ``concurve run``.

    Raises:
        StudyError: no study, or one that would be read as an option.
    """
    study = _word(form.study.strip())
    if not study or study.startswith("-"):
        raise StudyError(
            f"{study!r} is no study" if study else "no study is chosen",
            "a packaged study, or the path of a .toml file",
        )
    words = ["run", study]
    for factor, levels in form.levels.items():
        if levels.strip():
            words.append(f"--set={_word(factor)}={_word(levels.strip())}")
    return [*words, *_options(form, (*_OF_STUDY, *_PROTOCOL))]


def resume_words(run: str, form: ResumeForm) -> list[str]:
    """The words of ``concurve resume``."""
    return ["resume", run, *_options(form, ("max_time",))]


def more_words(run: str, effort: str, setting: Mapping[str, Level], trials: int) -> list[str]:
    """The words of ``concurve run`` that measure one cell of a stored run so many times more: a run
    of its own, since each block of a run holds all of its cells.

    Raises:
        StudyError: too few or too many trials, or a level that cannot be written as an option.
    """
    if not 2 <= trials <= MORE_MAX:
        raise StudyError(f"{trials} more trials", f"a number from 2 to {MORE_MAX}")
    words = ["run", f"run:{run}", f"--effort={effort}", f"--repeats={trials}"]
    for name, level in setting.items():
        text = _word(joined_levels([level]))
        if "=" in name or not _is_read_as(level, text):
            raise StudyError(
                f"{name}={text[:80]} cannot be written as an option of the command line",
                "the run again as a whole, or the study from a file with this level alone",
            )
        words.append(f"--set={_word(name)}={text}")
    return words


def _is_read_as(level: Level, text: str) -> bool:
    """Does the command line read this text as that level alone?"""
    try:
        return list(map(str, parse_levels(text, 1, "level"))) == [str(level)]
    except StudyError:
        return False


def _options(form: object, names: tuple[str, ...]) -> list[str]:
    """The options of the fields that were filled in. ``--name=value`` is one word, so no value is
    read as an option.

    Raises:
        StudyError: there are too many.
    """
    words = list(_each_option(form, names))
    if len(words) > _OPTIONS_MAX:
        raise StudyError(f"{len(words)} options in one form", f"at most {_OPTIONS_MAX}")
    return words


def _each_option(form: object, names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        given: str | bool = getattr(form, name)
        option = f"--{name.replace('_', '-')}"
        if isinstance(given, bool):
            if given:
                yield option
            continue
        lines = given.splitlines() if name in _REPEATED else [given]
        for line in lines:
            if line.strip() and not (name == "effort" and line == "normal"):
                yield f"{option}={_word(line.strip())}"


def _split(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise StudyError(
            f"the command {command[:80]!r} cannot be split into words: {error}",
            "a closing quote, or a backslash before a quote that is meant",
        ) from error
    if not words:
        raise StudyError("no command to measure", "./mine --threads {threads}")
    return [_word(word) for word in words]


def _word(text: str) -> str:
    """A text that can be a word of a command line.

    Raises:
        StudyError: it has a NUL, or half of a character.
    """
    if "\0" in text:
        raise StudyError(f"{text[:40]!r}: a NUL cannot stand in a command line", "the text alone")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise StudyError(f"{text[:40]!r} is no text in UTF-8", "the same, typed anew") from error
    return text
