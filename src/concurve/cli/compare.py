"""``concurve compare``: two runs, or two levels inside one, cell by cell."""

from __future__ import annotations

import click

from concurve.cli import completing, options
from concurve.cli.judging import judged

HELP = """Compare two runs, or two levels of a factor inside one, cell by cell.

\b
Examples:
  concurve compare 20261121-0912 last
  concurve compare last                # all levels of the only factor
  concurve compare last --factor sync --levels none,cas
  concurve compare 20261121-0912 last --fail-on slower     # exit code 10

A is the base, B is new: the ratio is B over A. Further runs (A B C) are each compared with A, and
judged together. Several runs with commas between them (A1,A2) are sessions of one experiment. A
difference below --effect counts as none.
Levels of one run are compared block by block (signed ranks), runs by their trials (rank sums).
"""


@click.command("compare", help=HELP, short_help="Compare two runs, or two levels inside one.")
@click.argument(
    "runs", nargs=-1, required=True, metavar="A B… | RUN", shell_complete=completing.runs
)
@click.option(
    "--factor",
    metavar="NAME",
    help="Compare levels of this factor inside one run (default: the only one that varies).",
)
@click.option(
    "--levels",
    metavar="BASE,NEW…",
    help="Levels to compare (default: all, with the first as the base).",
)
@click.option(
    "--indicator",
    "indicators",
    multiple=True,
    metavar="NAME",
    help="What to compare (default: that by which the runs compare settings); repeatable.",
)
@click.option(
    "--better",
    type=click.Choice(["lower", "higher"]),
    help="For indicators that have no better direction of their own.",
)
@click.option("--across-machines", is_flag=True, help="Compare runs of different machines.")
@judged
@click.option("--all", "everything", is_flag=True, help="Say by which rule cells are judged, too.")
@click.option("--json", is_flag=True, help="Print JSON: of several runs a line for each.")
@options.secret
@options.db
def verb(
    runs: tuple[str, ...],
    factor: str | None,
    levels: str | None,
    indicators: tuple[str, ...],
    better: str | None,
    effect: str,
    across_machines: bool,
    in_doubt: bool,
    fail_on: tuple[str, ...],
    everything: bool,
    json: bool,
    secrets: tuple[str, ...],
    db: str | None,
) -> None:  # fmt: skip
    """Print the comparisons, then judge them by ``--fail-on``."""
    from concurve.analysis.comparison.options import Options
    from concurve.analysis.stored_runs import compare_stored
    from concurve.cli.judging import Asked, judge
    from concurve.cli.showing import print_document
    from concurve.cli.streams import tell_json
    from concurve.definition.hiding import check_marked
    from concurve.definition.units import parse_share
    from concurve.report.document import Detail
    from concurve.report.json.comparison import to_json
    from concurve.report.sections.comparison import comparison_document
    from concurve.store import Store

    if len(runs) > 1 and (factor is not None or levels is not None):
        raise click.UsageError(
            "levels are compared inside one RUN, runs without --factor, --levels"
        )
    check_marked(secrets, ())
    chosen = Options(
        indicators=indicators,
        effect=parse_share(effect, "--effect"),
        better=better or "",
        across_machines=across_machines,
        in_doubt=in_doubt,
    )
    found = compare_stored(Store.existing(db), runs, factor or "", levels or "", chosen)
    for item in found:
        if json:
            tell_json(to_json(item))
        else:
            detail = Detail.FULL if everything else Detail.BRIEF
            print_document(comparison_document(item, detail))
    judge(found, Asked(fail_on, chosen.effect, in_doubt), runs)
