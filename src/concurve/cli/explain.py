"""``concurve explain``: where the time of an operation goes, and what limits it."""

from __future__ import annotations

import click

from concurve.cli import options

HELP = """Say for each cell of a run where its time goes, and what limits it.

\b
Examples:
  concurve explain
  concurve explain 20261121-0912 --json

The thread time of an operation is divided into CPU time, waiting for a CPU, and being blocked on
a lock, the disk, the network …; what exceeds that of the base cell names the cause: cpu, lock,
coherency, io, client, contamination (other processes on the machine), or none.
"""


@click.command(
    "explain", help=HELP, short_help="Say where the time of each cell goes, and what limits it."
)
@options.run_name
@click.option("--json", is_flag=True, help="Print JSON.")
@options.db
def verb(run: str, json: bool, db: str | None) -> None:
    """Print the explanation of a run."""
    from concurve.cli.showing import print_document
    from concurve.explain import explain_run
    from concurve.report.json.explanation import to_json
    from concurve.report.sections.limits import explanation_document
    from concurve.store import Store

    store = Store.existing(db)
    found = explain_run(store, store.find_run(run))
    if json:
        print(to_json(found).decode())
    else:
        print_document(explanation_document(found))
