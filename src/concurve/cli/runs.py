"""``concurve runs``: what is stored."""

from __future__ import annotations

import click

from concurve.cli import options

HELP = """List the stored runs, the newest last.

\b
Examples:
  concurve runs
  concurve runs thread-scaling
"""


@click.command("runs", help=HELP)
@click.argument("study", required=False)
@options.db
def verb(study: str | None, db: str | None) -> None:
    """Print a line for each stored run."""
    from concurve.cli.showing import note
    from concurve.store import Store

    store = Store(db)
    rows = store.runs(study)
    if not rows:
        note(f"no runs {f'of {study} ' if study else ''}in {store.shown()}")
        return
    width = max(len(row.study) for row in rows)
    for row in rows:
        reason = f": {row.reason}" if row.reason else ""
        count = store.count(row.id)
        print(f"{row.id}  {row.study:<{width}}  {count:>6} trials  {row.state}{reason}")
