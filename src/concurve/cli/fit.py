"""``concurve fit``: scaling models fitted to measured numbers of any origin."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from concurve.errors import ConcurveError

if TYPE_CHECKING:
    from concurve.analysis.fit import Numbers

HELP = """Fit scaling models to measured numbers: what limits, where the peak is, what to expect.

FILE is CSV with the names of its columns in the first line, or - for standard input; a Markdown
table and columns divided by spaces are read, too. Rows of the same N are trials of one level. Of a
table by concurve export, rows that were skipped, are in doubt, or had a load that failed are left
out.

\b
Examples:
  concurve fit measured.csv --x threads --y requests_per_second
  concurve fit run.csv --x threads --y rps --predict 64,128 --export-svg c.svg
  concurve fit measured.csv --x threads --y seconds --time
  concurve fit measured.csv --x clients --r latency_seconds

With --r, any two of N, X and R give the third by Little's law; all three must agree within 5 %.
"""

#: A message lists so many columns.
_NAMES_MOST = 12
_FILE = click.Path(path_type=Path, dir_okay=False, allow_dash=True)


class _Number(click.ParamType):  # type: ignore[type-arg]
    """A finite number between bounds."""

    name = "number"

    def __init__(self, least: float, most: float = math.inf) -> None:
        self._least, self._most = least, most

    def convert(
        self, value: str | float, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number of a text."""
        try:
            number = float(value)
        except ValueError:
            number = math.nan
        if not (math.isfinite(number) and self._least <= number <= self._most):
            bounds = (
                f"of at least {self._least:g}"
                if math.isinf(self._most)
                else f"from {self._least:g} to {self._most:g}"
            )
            self.fail(f"{value!r} is not a finite number {bounds}", param, ctx)
        return number


@click.command("fit", help=HELP, short_help="Fit scaling models to measured numbers.")
@click.argument("file", metavar="FILE", type=_FILE)
@click.option("--x", "n", metavar="N", help="Column with the number of workers, clients, CPUs.")
@click.option("--y", "x", metavar="X", help="Column with the throughput, in operations a second.")
@click.option(
    "--r",
    "r",
    metavar="R",
    help="Column with the mean response time: in seconds, unless its name or its cells have "
    "another unit, as in latency_ms or 35 ms.",
)
@click.option(
    "--time/--no-time",
    default=None,
    help="X is the time of a fixed piece of work: its throughput is 1/time. --no-time: X is a "
    "throughput, whatever its name.",
)
@click.option(
    "--in-doubt", is_flag=True, help="Take the rows in doubt, too, of a table by concurve export."
)
@click.option(
    "--where",
    multiple=True,
    metavar="COLUMN=VALUE",
    help="Take the rows with this value alone; COLUMN=* takes all as replicates of one curve. "
    "Repeatable.",
)
@click.option(
    "--think-time",
    type=_Number(0),
    default=0.0,
    metavar="SECONDS",
    help="Time of a client between operations, which R does not contain.",
)
@click.option("--predict", multiple=True, metavar="N[,N…]", help="Predict at N; repeatable.")
@click.option(
    "--cpus",
    type=_Number(1),
    metavar="P",
    help="CPUs that the workers may use: levels beyond that use them up are left out.",
)
@click.option("--absolute", is_flag=True, help="Least squares of X itself, not of its logarithm.")
@click.option(
    "--confidence",
    type=_Number(0.5, 0.9999),
    default=0.95,
    show_default=True,
    help="Level of the intervals.",
)
@click.option("--json", is_flag=True, help="Print JSON (schema/fit.schema.json).")
@click.option("--export-svg", type=click.Path(path_type=Path), metavar="FILE", help="Draw a chart.")
def verb(
    file: Path,
    n: str | None,
    x: str | None,
    r: str | None,
    time: bool | None,
    in_doubt: bool,
    where: tuple[str, ...],
    think_time: float,
    predict: tuple[str, ...],
    cpus: float | None,
    absolute: bool,
    confidence: float,
    json: bool,
    export_svg: Path | None,
) -> None:
    """Read, fit, predict, show."""
    from concurve.analysis.fit import fit_numbers

    predict_at = _predict_at(predict)
    if export_svg is not None:
        from concurve.exports import check_writable

        check_writable(export_svg)
    numbers = _numbers(file, n, x, r, time, in_doubt, _where(where), think_time)
    fit = fit_numbers(numbers, predict_at, absolute=absolute, confidence=confidence, cpus=cpus)
    if json:
        from concurve.report.json.fit import to_json

        print(to_json(fit).decode())
    else:
        from concurve.cli.showing import print_document
        from concurve.report.sections.fit import fit_document

        print_document(fit_document(fit))
    if export_svg is not None:
        from concurve.exports import write
        from concurve.report.charts.fit import fit_chart
        from concurve.report.charts.image import to_svg

        write(export_svg, to_svg(fit_chart(fit)).encode())


def _predict_at(texts: tuple[str, ...]) -> list[float]:
    """Numbers of workers from repeated and comma-separated values."""
    numbers = []
    for text in ",".join(texts).split(",") if texts else []:
        try:
            numbers.append(float(text))
        except ValueError:
            raise ConcurveError(
                f"--predict: {text!r} is not a number of workers", "for example --predict 64,128"
            ) from None
        if not 0 < numbers[-1] < float("inf"):
            raise ConcurveError(
                f"--predict: {text} is not a finite number above 0", "for example --predict 64,128"
            )
    return numbers


def _where(texts: tuple[str, ...]) -> dict[str, str]:
    """Columns with the value that their rows must have."""
    found = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise ConcurveError(f"--where: {text!r} is not COLUMN=VALUE", "--where mode=fast")
        found[name] = value
    return found


def _is_rate(name: str) -> bool:
    from concurve.definition.units import is_rate, time_by_name

    return is_rate(name, "") or time_by_name(name) is None


def _numbers(
    file: Path,
    n: str | None,
    x: str | None,
    r: str | None,
    time: bool | None,
    in_doubt: bool,
    where: dict[str, str],
    think_time: float,
) -> Numbers:
    """The requested columns, completed and checked by Little's law."""
    from concurve.analysis.fit import Numbers, falls_as_times_do
    from concurve.columns import names_in, read_table
    from concurve.definition.units import time_by_name
    from concurve.models import little

    names = [name for name in (n, x, r) if name is not None]
    if len(names) < 2:
        there = [name for name in names_in(file) if name not in names]
        raise ConcurveError(
            "two columns are needed: --x with the number of workers, and --y or --r",
            f"for example --x threads --y requests_per_second; {file} has the columns "
            f"{_short(there)}"
            if there
            else f"a file with a column of throughputs or response times, too; {file} has no "
            f"other column than {names[0]}",
        )
    if len(set(names)) < len(names):
        raise ConcurveError(f"one column twice: {', '.join(names)}", "a different column for each")
    if time and (r is not None or x is None):
        raise ConcurveError("--time goes with --x and --y alone", "leave out --r")
    by_name = None if x is None else time_by_name(x)
    if time is None and by_name is True:
        raise ConcurveError(
            f"--y {x}: by its name that is a time, and --y is a throughput",
            "--time if it is the time of a fixed piece of work; --r if it is a mean response time; "
            "--no-time if it is a throughput all the same",
        )
    table = read_table(file, names, doubtful=in_doubt, where=where, one_curve=True)
    columns, told = table.columns, table.said
    if time:
        assert x is not None and n is not None
        rates = [1 / seconds for seconds in columns[x]]
        rises = falls_as_times_do(columns[n], rates)
        if rises or _is_rate(x):
            told += (
                f"{x} {'rises as ' + n + ' grows' if rises else 'is a rate by its name'}, as a "
                "throughput does: with --time its inverse is read as the throughput. If it is a "
                "throughput, leave out --time.",
            )
        return Numbers(columns[n], rates, n, x, is_time=True, told=told)
    responses = None if r is None else columns[r]
    if r is not None and responses and r not in table.in_seconds:
        seconds, said = _unit_of(r, responses[0])
        responses = [response * seconds for response in responses]
        told += said
    law = little.complete(
        columns[n] if n else None, columns[x] if x else None, responses, think_time
    )
    little.check(law)
    if time is None and r is None and falls_as_times_do(columns[names[0]], columns[names[1]]):
        told += (
            f"{x} falls as {n} grows, as a time does. If it is the time of a fixed piece of work, "
            "add --time: what is said here holds for a throughput only.",
        )
    elif time is None and r is None and x is not None and by_name is None:
        told += (
            f"{x} is read as a throughput: so much in a unit of time. If it is a time, add --time; "
            "--no-time says that it is none.",
        )
    return Numbers(
        law.n.tolist(), law.x.tolist(), n or "N", x or "throughput", False, law.derived, told
    )


def _short(names: list[str]) -> str:
    """Names as a list; a table by concurve export has a hundred."""
    return ", ".join([*names[:_NAMES_MOST], *(["…"] if len(names) > _NAMES_MOST else [])])


def _unit_of(name: str, first: float) -> tuple[float, tuple[str, ...]]:
    """How many seconds one of the unit is that a column of response times has by its name, and what
    is said of it, with the ``first`` of its numbers. Without a unit they are seconds."""
    from concurve.definition.units import seconds_by_name, units_by_name
    from concurve.words import listed

    seconds = seconds_by_name(name)
    if seconds is not None and seconds != 1.0:
        said = f"{name} is read with the unit of its name: {first:g} as {first * seconds:g} s."
    elif seconds is None and (units := units_by_name(name)):
        said = (
            f"{name} may be in {listed(units, 'or')} by its name, and is read in seconds: "
            f"{first:g} as {first:g} s. If that is wrong, write the unit into its cells: "
            f"{first:g} {units[0]}."
        )
    else:
        return 1.0, ()
    return seconds or 1.0, (said,)
