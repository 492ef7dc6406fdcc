"""Options of other tools that are typed for ours: what is meant."""

from __future__ import annotations

import click

_PARAMETER = "-P NAME LEVELS, as in -P threads 1,2,4"
_REPEATS = "--repeats 5..20: the least and the greatest number of trials of a setting"
_COMMAND = (
    "it behind --, where the command has it; to vary it: -P threads 1,2,4 -- COMMAND {threads}"
)
_WARM_UP = (
    "a warm-up of the command itself, or --prepare CMD before each trial; of a program that "
    "reports a phase measure, the rest does not count"
)

#: What is meant by each, for verbs that measure a command.
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
    "--max-time 5m, the allowance of the whole run, or --timeout 30s, the limit of a trial": (
        "--time", "--time-limit", "--limit", "--max-duration",
    ),
    "--export-json FILE, --export-csv FILE or --export-html FILE": (
        "-o", "--output", "--out", "--json", "--csv", "--html",
    ),
}  # fmt: skip

_BY_OPTION = {option: meant for meant, options in _MEANT.items() for option in options}


def as_meant(error: click.NoSuchOption) -> click.NoSuchOption | None:
    """The error with what is meant by the option of a sweep; ``None`` where that is not known."""
    verb = error.ctx.info_name if error.ctx else None
    meant = _BY_OPTION.get(error.option_name)
    if verb != "sweep" or meant is None:
        return None
    message = f"No such option '{error.option_name}'. Is this meant: {meant}?"
    return click.NoSuchOption(error.option_name, message, None, error.ctx)
