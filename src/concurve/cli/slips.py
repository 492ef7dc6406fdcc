"""Slips of the command line, and what to type in their place: options and verbs of other tools, and
words of a sweep that stand where concurve expects others."""

from __future__ import annotations

import re
from collections.abc import Sequence

import click

_EXAMPLE = "-P threads 1,2,4 -- ./mine --threads {threads}"
_PARAMETER = "A parameter is -P NAME LEVELS, as in -P threads 1,2,4."
_REPEATS = "Trials of each setting: --repeats 10 for ten, --repeats 5..20 for five to twenty."
_COMMAND = (
    "Options of the command stand with it, behind --. To measure levels of one: "
    "-P threads 1,2,4 -- COMMAND {threads}"
)
_WARM_UP = (
    "Each trial is a new process: let the command warm up and then report a phase measure, or do "
    "it by --prepare CMD."
)
_TIMES = "The whole run has --max-time 5m, one trial --timeout 30s."
_FILES = "Files are written by --export-json, --export-csv, --export-markdown and --export-html."

#: What to type, and the options in whose place.
_MEANT = {
    _PARAMETER: (
        "-p", "-L", "--param", "--params", "--parameters", "--parameter-list", "--parameter-scan",
        "--sweep", "--factor", "--vary",
    ),
    _REPEATS: (
        "-n", "-r", "-m", "-M", "--runs", "--min-runs", "--max-runs", "--trials", "--iterations",
        "--repetitions", "--repeat",
    ),
    _COMMAND: (
        "-t", "-c", "-j", "--threads", "--clients", "--workers", "--jobs", "--connections",
        "--duration", "-d", "-T",
    ),
    _WARM_UP: ("-w", "--warmup", "--warm-up"),
    _TIMES: (
        "--time", "--time-limit", "--limit", "--max-duration",
    ),
    _FILES: (
        "-o", "--output", "--out", "--json", "--csv", "--html",
    ),
}  # fmt: skip

_BY_OPTION = {option: meant for meant, options in _MEANT.items() for option in options}

_LEVELS_OF_STUDY = "Other levels of a factor of the study: --set threads=1,2,4."
#: The same of ``concurve run``, whose parameters are those of the study.
_BY_OPTION_OF_RUN = {
    option: _LEVELS_OF_STUDY if meant == _PARAMETER else meant
    for option, meant in {"-P": _PARAMETER, **_BY_OPTION}.items()
    if meant in (_PARAMETER, _REPEATS, _TIMES, _FILES)
}

#: The same of ``concurve resume``, which runs what is missing of the plan of a run, and no more.
_NO_MORE = (
    "To resume adds no trials to the plan of a run. A new run of the same study: "
    "concurve run run:RUN --repeats 40"
)
_BY_OPTION_OF_RESUME = dict.fromkeys(
    (
        "--repeats", "--effort", "--precision", "--set", "-P",
        *(option for option, meant in _BY_OPTION.items() if meant == _REPEATS),
    ),
    _NO_MORE,
)  # fmt: skip

_BY_VERB_AND_OPTION = {
    "sweep": _BY_OPTION,
    "run": _BY_OPTION_OF_RUN,
    "resume": _BY_OPTION_OF_RESUME,
}


#: Options of other tools in the place of those of the load generator.
_LOAD_MEANT = {
    "--sessions": ("-c", "--connections", "--concurrency", "--users"),
    "--transactions": ("-n", "--requests", "--number", "--count", "--iterations"),
    "--duration": ("-d", "-z", "-T", "--time", "--seconds"),
    "--threads": ("-t", "-j", "--jobs"),
    "--rate": ("-R", "-q", "--rps", "--qps", "--throughput"),
    "--pipeline": ("-P",),
    "--command": ("--query", "--statement"),
    "redis://HOST:PORT": ("-p", "-H", "--host", "--port"),
}
_BY_LOAD = {word: meant for meant, words in _LOAD_MEANT.items() for word in words}

#: Verbs of other tools: what to type, and the words in whose place.
_VERBS_MEANT = {
    "concurve --help": ("help",),
    "concurve --version": ("version",),
    "concurve runs": ("list", "ls", "log", "status"),
    "concurve sweep": ("bench", "benchmark", "measure", "perf", "test", "time"),
    "concurve sweep --dry-run": ("plan",),
    "concurve fit": ("predict", "model", "usl"),
    "concurve compare": ("diff",),
    "concurve report": ("html", "plot", "graph", "chart"),
    "concurve resume": ("continue",),
    "concurve web": ("serve", "server", "ui"),
}
_BY_VERB = {word: meant for meant, words in _VERBS_MEANT.items() for word in words}

#: Words in the place of those of a choice.
_CHOICES_MEANT = {
    "quick": ("fast", "short", "rough", "low", "coarse"),
    "normal": ("default", "medium", "standard", "usual"),
    "rigorous": ("slow", "long", "high", "full", "exact", "precise", "thorough"),
}
_BY_CHOICE = {word: meant for meant, words in _CHOICES_MEANT.items() for word in words}

_NAME = r"[A-Za-z_][\w-]*"
#: Levels of a parameter that are no word of a command, as one takes them for.
_LEVELS = re.compile(r"[^-/=][^=]*,[^=]*|-?\d+(?:\.\d+)?%?\.\..*|\d+")


def as_meant(error: click.UsageError) -> click.UsageError | None:
    """The error with what to type in place of the slip; ``None`` where that is not known."""
    if isinstance(error, click.BadOptionUsage) and error.option_name in ("-P", "--parameter"):
        # click gives it no context.
        return click.UsageError(f"{error.option_name} takes two words. {_PARAMETER}", error.ctx)
    ctx = error.ctx
    if ctx is not None and ctx.parent is None and isinstance(ctx.command, click.Group):
        return _of_all_verbs(error, ctx, ctx.command)
    if isinstance(error, click.BadParameter) and (chosen := _of_choice(error)):
        return chosen
    known = _of_verb(error)
    if known is None and ctx is not None and isinstance(error, click.NoSuchOption):
        return _by_letter(error, ctx)
    return known


def _of_choice(error: click.BadParameter) -> click.BadParameter | None:
    """What is meant by a word that is none of a choice; ``None`` where that is not known."""
    from concurve.words import did_you_mean, nearest

    kind = error.param.type if error.param is not None else None
    found = re.match(r"'([^']*)' is not one of", error.message)
    if not isinstance(kind, click.Choice) or found is None:
        return None
    word, known = found[1].lower(), [str(choice) for choice in kind.choices]
    near = nearest(word, known)
    meant = _BY_CHOICE.get(word) if near is None else near
    if meant not in known:
        return None
    message = f"{error.message.rstrip('.')}: {did_you_mean(meant)}"
    return click.BadParameter(message, error.ctx, error.param, error.param_hint)


def _of_verb(error: click.UsageError) -> click.UsageError | None:
    """What is meant by an option that a sweep or a run has not, and what a sweep lacks without a
    command."""
    verb = error.ctx.info_name if error.ctx else None
    if isinstance(error, click.NoSuchOption):
        of_verb = _BY_VERB_AND_OPTION.get(verb or "", {})
        meant = of_verb.get(error.option_name)
        if meant is None and verb == "sweep":
            meant = _as_parameter(error)
        if meant is None:
            return None
        message = f"No such option '{error.option_name}'. {meant}"
        return click.NoSuchOption(error.option_name, message, None, error.ctx)
    extra = re.search(r"unexpected extra argument \((\S+)\)", error.message)
    if verb == "studies" and extra:
        message = f"The list takes no name. What a study runs: concurve run {extra[1]} --dry-run"
        return click.UsageError(message, error.ctx)
    if verb == "show" and extra:
        message = f"{error.message.rstrip('.')}. A figure of a run: --figures {extra[1]}"
        return click.UsageError(message, error.ctx)
    if isinstance(error, click.MissingParameter) and verb == "sweep":
        message = f"There is no command to measure. It stands behind --: concurve sweep {_EXAMPLE}"
        return click.UsageError(message, error.ctx)
    return None


#: Names of options that are more alike are a slip of a letter.
_ALIKE = 0.8


def _as_parameter(error: click.NoSuchOption) -> str | None:
    """What to type in place of ``--thread 1,2``, an option of the program with several levels;
    ``None`` where it is none, or a misspelt one of ours."""
    from difflib import get_close_matches

    from concurve.cli.sweep import WORDS

    option, name = error.option_name, error.option_name.lstrip("-")
    words: Sequence[str] = error.ctx.meta.get(WORDS, ()) if error.ctx else ()
    at = next((i for i, word in enumerate(words) if word.partition("=")[0] == option), None)
    if at is None or not re.fullmatch(_NAME, name):
        return None
    _, equals, levels = words[at].partition("=")
    levels = levels if equals else "".join(words[at + 1 : at + 2])
    is_several = ("," in levels or ".." in levels) and _LEVELS.fullmatch(levels)
    ours = [text.lstrip("-") for text in error.possibilities or ()]
    if not is_several or get_close_matches(name, ours, 1, _ALIKE):
        return None
    return f"A parameter is -P NAME LEVELS: -P {name} {levels} -- COMMAND {{{name}}}"


def _of_all_verbs(
    error: click.UsageError, ctx: click.Context, verbs: click.Group
) -> click.UsageError | None:
    """What is meant by a verb that there is not, or by an option before the verb."""
    if isinstance(error, click.NoSuchOption):
        name = error.option_name
        if name in ("-V", "-v"):
            meant = "The version: concurve --version. The verbs: concurve --help."
        elif _is_of_sweep(name, ctx, verbs):
            meant = f"Options of a verb stand behind it: concurve sweep {name} …"
        else:
            return None
        return click.NoSuchOption(name, f"No such option '{name}'. {meant}", None, ctx)
    found = re.match(r"No such command '([^']+)'", error.message)
    if found is None or "Did you mean" in error.message:
        return None
    word = found[1]
    if word in _BY_VERB:
        return click.UsageError(f"No such command '{word}'. Did you mean {_BY_VERB[word]}?", ctx)
    if _is_program(word):
        meant = f"To measure a program: concurve sweep -- {word} …"
        return click.UsageError(f"No such command '{word}'. {meant}", ctx)
    return None


def _is_of_sweep(option: str, ctx: click.Context, verbs: click.Group) -> bool:
    sweep = verbs.get_command(ctx, "sweep")
    return sweep is not None and any(option in item.opts for item in sweep.params)


def _is_program(word: str) -> bool:
    """Can the word be started, as a command of its own or as the file of an interpreter?"""
    import shutil
    from pathlib import Path

    return shutil.which(word) is not None or Path(word).is_file()


def refuse_of_load(arguments: Sequence[str]) -> None:
    """Refuse an option of another tool among those of the load generator, which takes it for a
    value that it does not expect.

    Raises:
        StudyError: there is one.
    """
    from concurve.errors import StudyError

    for word in arguments:
        name = word.partition("=")[0]
        if name.startswith("-") and not name.startswith("--"):
            name = name[:2]  # -c50
        if name in _BY_LOAD:
            raise StudyError(
                f"concurve load has no option {name}",
                f"{_BY_LOAD[name]} in its place; concurve load --help names all",
            )


def _by_letter(error: click.NoSuchOption, ctx: click.Context) -> click.NoSuchOption | None:
    """The error with the long options that begin with the letter of a short one that there is not:
    click looks for likeness, and ``-a`` is not like ``--all``."""
    from concurve.words import listed

    found = re.fullmatch(r"-([A-Za-z])", error.option_name)
    options = [text for item in ctx.command.params for text in item.opts]
    near = [text for text in options if found and text.startswith(f"--{found[1]}")]
    if not near:
        return None
    message = f"No such option '{error.option_name}'. Did you mean {listed(near, 'or')}?"
    return click.NoSuchOption(error.option_name, message, None, ctx)


def refuse_words(
    sweep: click.Command,
    command: Sequence[str],
    parameters: Sequence[tuple[str, str]],
    words: Sequence[str],
) -> None:
    """Refuse words of a sweep that stand where others are expected. ``words`` are all behind the
    verb: a command that has a ``--`` of its own stands after another one.

    Raises:
        StudyError: a parameter in one word, without its levels or without ``-P``, levels with
            blanks between them, or an option behind a command without ``--``.
    """
    _refuse_one_word(sweep, parameters)
    _refuse_without_option(command, parameters, words)
    _refuse_words_apart(command, parameters, words)
    _refuse_behind_command(command, parameters, words)


def _refuse_one_word(sweep: click.Command, parameters: Sequence[tuple[str, str]]) -> None:
    """Refuse ``-P threads=1,2`` and ``-P threads``, which take the next word, often ``--`` or
    another option, for the levels, and ``-P {threads} 1,2``.

    Raises:
        StudyError: a name holds a ``=`` or is a placeholder, or an option stands where a name or
            levels are expected.
    """
    from concurve.errors import StudyError
    from concurve.terms import split_levels

    options_of_sweep = {"--", *(text for item in sweep.params for text in item.opts)}
    with_values = {
        text
        for item in sweep.params
        if isinstance(item, click.Option) and not (item.is_flag or item.count)
        for text in item.opts
    }
    for name, levels in parameters:
        if "=" in name:
            raise StudyError(
                f"-P {name}: a parameter and its levels are two words",
                f"-P {name.replace('=', ' ', 1)}",
            )
        if name in options_of_sweep:
            raise StudyError(
                f"-P: {name} stands where the name of a parameter is expected", f"-P {_EXAMPLE[3:]}"
            )
        if bare := re.fullmatch(rf"\$?\{{({_NAME})\}}|\$({_NAME})|<({_NAME})>", name):
            raise StudyError(
                f"-P {name}: a name stands bare here, and in braces in the command",
                f"-P {bare[1] or bare[2] or bare[3]} {levels}",
            )
        # Of several levels each may be an option of the program: --cpus=4,--cpus=8.
        is_single = len(split_levels(levels)) == 1
        option, equals, _ = levels.partition("=")
        if levels in options_of_sweep or (equals and is_single and option in with_values):
            of_program = (
                "; an option of the program that is the same in all cells stands in the command"
            )
            raise StudyError(
                f"-P {name}: {levels} stands where its levels are expected",
                f"-P {name} 1,2,4{'' if levels == '--' else of_program}",
            )


def _refuse_without_option(
    command: Sequence[str], parameters: Sequence[tuple[str, str]], words: Sequence[str]
) -> None:
    """Refuse ``threads 1,2 -- ./program`` and ``threads=1,2 -- ./program``, where ``-P`` was
    forgotten; without ``--`` too, if the rest of the command has the placeholder.

    Raises:
        StudyError: a name and its levels stand where the command is expected.
    """
    from concurve.errors import StudyError

    if _is_behind_dashes(command, words):
        return
    found: list[tuple[str, str]] = []
    rest = list(command)
    while rest:
        one = re.fullmatch(rf"({_NAME})=(.+)", rest[0])
        if one and _LEVELS.fullmatch(one[2]):
            found.append((one[1], one[2]))
            del rest[0]
        elif re.fullmatch(_NAME, rest[0]) and len(rest) > 1 and _LEVELS.fullmatch(rest[1]):
            found.append((rest[0], rest[1]))
            del rest[:2]
        else:
            break
    is_used = any(f"{{{name}}}" in word for name, _ in found for word in rest)
    if not found or not (is_used or rest[:1] == ["--"]):
        return
    given = [f"-P {name} {levels}" for name, levels in (*parameters, *found)]
    program = " ".join(rest[1:] if rest[0] == "--" else rest)
    raise StudyError(
        f"{' '.join(command[: len(command) - len(rest)])}: a parameter and its levels stand "
        "behind -P",
        f"{' '.join(given)} -- {program}; or -- {' '.join(command)}, if all of that is the command",
    )


def _is_behind_dashes(command: Sequence[str], words: Sequence[str]) -> bool:
    """Was the command given after ``--``, which click takes away?"""
    return tuple(words[: -len(command)][-1:]) == ("--",)


def _refuse_behind_command(
    command: Sequence[str], parameters: Sequence[tuple[str, str]], words: Sequence[str]
) -> None:
    """Refuse ``./program {threads} -P threads 1,2`` without ``--``: all behind the first word that
    is no option of ours is the program's.

    Raises:
        StudyError: ``-P`` and a name whose placeholder is in the command stand behind it.
    """
    from concurve.errors import StudyError

    if "--" in words:
        return
    given = {name for name, _ in parameters}
    for place, word in enumerate(command):
        name = command[place + 1] if place + 1 < len(command) else ""
        if word not in ("-P", "--parameter") or name in given or not place:
            continue
        if any(f"{{{name}}}" in other for other in command):
            raise StudyError(
                f"-P {name} stands behind the command, and would be the program's",
                f"concurve sweep {' '.join(command[place:])} -- {' '.join(command[:place])}",
            )


#: An option, and no negative number.
_OPTION = re.compile(r"--?[A-Za-z]")


def _refuse_words_apart(
    command: Sequence[str], parameters: Sequence[tuple[str, str]], words: Sequence[str]
) -> None:
    """Refuse ``-P sync none lock -- ./program``: of levels that are words of their own all but the
    first are taken for the command. ``words`` are all behind the verb: a command that has a ``--``
    of its own stands after another one.

    Raises:
        StudyError: words that belong to no option stand before ``--``.
    """
    from concurve.errors import StudyError

    if _is_behind_dashes(command, words) or "--" not in command:
        return
    before = command[: command.index("--")]
    remedy = f"-- {' '.join(command)}, if all of that is the command"
    if parameters:
        name, levels = parameters[-1]
        # Each word may end with a comma of its own: 1, 2, 4. Levels end where an option begins.
        end = next((at for at, word in enumerate(before) if _OPTION.match(word)), len(before))
        items = [word.strip(",") for word in (levels, *before[:end])]
        together = " ".join([",".join(filter(None, items)), *before[end:]])
        apart = f"levels are separated by commas, without blanks: -P {name} {together}"
        remedy = f"{apart}; or {remedy}"
    raise StudyError(
        f"{' '.join(before)}: no option of concurve, and the command stands after --", remedy
    )
