"""Options that several verbs share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from concurve.cli import completing
from concurve.definition.study import EFFORTS

F = TypeVar("F", bound=Callable[..., Any])


class _File(click.Path):
    """A file of the user's: what looks like a secret in its name is a name."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path as it was typed."""
        if "{secret:" in str(value):
            from concurve.secrets import KNOWN

            value = KNOWN.reveal(str(value))
        return super().convert(value, param, ctx)


#: The type of an option or argument that names a file.
FILE_TYPE = _File(path_type=Path, dir_okay=False)


def _keep_store(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """What is printed names the store that was given."""
    from concurve.cli.streams import name_store

    name_store(value)
    return value


db = click.option(
    "--db",
    metavar="FILE|URL",
    callback=_keep_store,
    help="Where runs are stored: a SQLite file or postgresql://… (default: CONCURVE_DB, else a "
    "file in ~/.local/share/concurve).",
)

run_name = click.argument("run", metavar="RUN", default="last", shell_complete=completing.runs)

secret = click.option(
    "--secret",
    "secrets",
    multiple=True,
    metavar="NAME[=TEXT]",
    help="Hide the value of this environment variable, the levels of this parameter, or this text "
    "in all that is stored and printed; the command gets it as it is. Passwords in URLs and in "
    "options whose names say so are hidden anyway. Repeatable.",
)

max_time = click.option(
    "--max-time",
    metavar="TIME",
    help="Time of the whole run, e.g. 20m (default: as the study says; of a sweep 2m with --effort "
    "quick, 1h with normal, 24h with rigorous).",
)


wait_quiet = click.option(
    "--wait-quiet",
    metavar="TIME",
    help="Wait at most so long, in all, while other processes use the machine, e.g. 5m (a number "
    "alone is of seconds): before the first trial, and before each that follows. Measure nothing "
    "if it is not quiet by then (default: no waiting).",
)

measure_anyway = click.option(
    "--measure-anyway",
    is_flag=True,
    help="If the machine is not quiet when --wait-quiet ends: measure all the same, and mark "
    "the trials that others disturb; never beside another measurement.",
)


#: Groups of the options below, for the help of a verb (:class:`~concurve.cli.grouped.Grouped`).
HOW_LONG = {
    "how long, how precise": ("effort", "max_time", "repeats", "precision", "timeout", "dry_run"),
    "on a busy machine": ("wait_quiet", "measure_anyway"),
}
SHOWN = {
    "what is written and stored": ("export_html", "export_markdown", "export_csv", "export_json",
                                   "db", "secrets"),
}  # fmt: skip
ELSEWHERE = {"on other hosts": ("hosts", "ray", "places")}


def together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator, shown in this order."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


protocol: Callable[[F], F] = together(
    click.option(
        "--effort",
        type=click.Choice(EFFORTS),
        default="normal",
        show_default=True,
        help="How precise each figure is to be: ±5 %, ±2 % or ±1 %. Sets --precision, --repeats "
        "and --max-time together.",
    ),
    click.option(
        "--repeats",
        metavar="MIN..MAX",
        help="Trials of each setting, at least and at most; 10 is exactly ten (default: as the "
        "study says; of a sweep 5..10 with --effort quick, 8..30 with normal, 15..200 with "
        "rigorous).",
    ),
    click.option(
        "--precision",
        metavar="SHARE",
        help="How precise each figure is to be: half the width of its 95 % interval, as 3% "
        "(default: that of --effort).",
    ),
    click.option(
        "--timeout",
        metavar="TIME",
        help="Time limit of one trial, e.g. 90s; one that takes longer has failed (default: what "
        "is left of --max-time).",
    ),
    max_time,
    wait_quiet,
    measure_anyway,
    click.option(
        "--seed",
        type=click.IntRange(min=0),
        help="Seed of the order of trials (default: drawn, and recorded).",
    ),
    click.option(
        "--dry-run", is_flag=True, help="Print the plan and the time it will take; run nothing."
    ),
    click.option(
        "--hosts",
        type=FILE_TYPE,
        metavar="FILE",
        help="Run on the hosts of this file, each role on its own (default: this machine).",
    ),
    click.option(
        "--ray",
        metavar="ADDRESS",
        help="Run on the nodes of a Ray cluster that runs already, such as 10.0.0.11:6379.",
    ),
    click.option(
        "--place",
        "places",
        multiple=True,
        metavar="ROLE=HOST",
        help="Run a role (* for all) on this host, on hosts with this label, on each, or on any of "
        "several (any:LABEL), another one in each block. Repeatable.",
    ),
)

exports: Callable[[F], F] = together(
    click.option(
        "--export-json",
        type=FILE_TYPE,
        metavar="FILE",
        help="Write everything, raw trials included.",
    ),
    click.option(
        "--export-csv", type=FILE_TYPE, metavar="FILE", help="Write the table of the figures."
    ),
    click.option(
        "--export-markdown", type=FILE_TYPE, metavar="FILE", help="Write the report as Markdown."
    ),
    click.option(
        "--export-html",
        type=FILE_TYPE,
        metavar="FILE",
        help="Write the report as a page: one file, opens offline.",
    ),
)

output = click.option(
    "-o", "--output", "file", type=FILE_TYPE, metavar="FILE", help="Where to write."
)
