"""``concurve history``: an indicator over the stored runs of a study."""

from __future__ import annotations

import click

from concurve.cli import options

HELP = """Show an indicator over the stored runs of a study, and where it changed.

\b
Examples:
  concurve history thread-scaling
  concurve history sweep-renderer --indicator cpu_seconds --json

Change points need eight runs of one machine.
"""


@click.command(
    "history", help=HELP, short_help="Show an indicator over the runs of a study, and its changes."
)
@click.argument("study")
@click.option(
    "--indicator", default="", metavar="NAME", help="Default: that by which runs compare settings."
)
@click.option("--across-machines", is_flag=True, help="Take runs of other machines, too.")
@click.option("--json", is_flag=True, help="Print JSON (schema/history.schema.json).")
@options.db
def verb(study: str, indicator: str, across_machines: bool, json: bool, db: str | None) -> None:
    """Print the history of each cell."""
    from concurve.analysis.stored_runs import history_of_stored
    from concurve.cli.showing import print_document
    from concurve.cli.streams import tell_json
    from concurve.report.json.history import to_json
    from concurve.report.sections.history import history_document
    from concurve.store import Store

    found = history_of_stored(Store.existing(db), study, indicator, across_machines)
    if json:
        tell_json(to_json(found))
    else:
        print_document(history_document(found))
