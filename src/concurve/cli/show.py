"""``concurve show``: a stored run as a table."""

from __future__ import annotations

import click

from concurve.cli import options

HELP = """Print a stored run.

\b
Examples:
  concurve show last
  concurve show 20261121-0912 --json
  concurve show last --best-by cpu_seconds
"""


@click.command("show", help=HELP)
@options.run_name
@click.option("--json", is_flag=True, help="Print the JSON export without the raw trials.")
@click.option(
    "--best-by",
    default="",
    metavar="INDICATOR",
    help="By what settings are the best (default: the primary indicator).",
)
@options.db
def verb(run: str, json: bool, best_by: str, db: str | None) -> None:
    """Print a run as a table or as JSON."""
    from concurve.analysis import findings_of
    from concurve.cli.showing import show_run
    from concurve.report.json import to_json
    from concurve.store import Store

    store = Store(db)
    if json:
        print(to_json(findings_of(store, store.find_run(run), best_by)).decode())
    else:
        show_run(store, run, best_by=best_by)
