"""Options of other tools that are typed for those of a sweep: what to type in their place."""

from __future__ import annotations

import click

_PARAMETER = "A parameter is -P NAME LEVELS, as in -P threads 1,2,4."
_REPEATS = "The least and the greatest number of trials of a setting: --repeats 5..20."
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


def as_meant(error: click.NoSuchOption) -> click.NoSuchOption | None:
    """The error with what is meant by the option of a sweep; ``None`` where that is not known."""
    verb = error.ctx.info_name if error.ctx else None
    meant = _BY_OPTION.get(error.option_name)
    if verb != "sweep" or meant is None:
        return None
    message = f"No such option '{error.option_name}'. {meant}"
    return click.NoSuchOption(error.option_name, message, None, error.ctx)
