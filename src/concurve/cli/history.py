"""``concurve history``: an indicator over the stored runs of a study."""

from __future__ import annotations

import click

from concurve.cli import options

HELP = """Show an indicator over the stored runs of a study, and where it changed.

\b
Examples:
  concurve history thread-scaling
  concurve history sweep --indicator cpu_seconds --json

Change points need eight runs of one machine.
"""


@click.command(
    "history", help=HELP, short_help="Show an indicator over the runs of a study, and its changes."
)
@click.argument("study")
@click.option("--indicator", default="", metavar="NAME", help="Default: the primary indicator.")
@click.option("--across-machines", is_flag=True, help="Take runs of other machines, too.")
@click.option("--json", is_flag=True, help="Print JSON (schema/history.schema.json).")
@options.db
def verb(study: str, indicator: str, across_machines: bool, json: bool, db: str | None) -> None:
    """Print the history of each cell."""
    from concurve.analysis.history import history_of
    from concurve.analysis.run import findings_of
    from concurve.cli.showing import note, print_document
    from concurve.errors import ComparisonError, RunError, StoreError
    from concurve.report.json.history import to_json
    from concurve.report.sections.history import history_document
    from concurve.store import Store

    store = Store.existing(db)
    rows = [row for row in store.runs(study) if store.has_trials(row.id)]
    if not rows:
        names = ", ".join(dict.fromkeys(row.study for row in store.runs())) or "none yet"
        raise ComparisonError(f"no run of {study!r} in {store.shown()}", f"stored are {names}")
    runs, damaged = [], []
    for row in rows:
        try:
            runs.append(findings_of(store, row))
        except (StoreError, RunError) as error:
            damaged.append(error)
            note(f"warning: run {row.id} is left out: {error}")
    if not runs:
        raise damaged[-1]
    found = history_of(runs, indicator, across_machines)
    if json:
        print(to_json(found).decode())
    else:
        print_document(history_document(found))
