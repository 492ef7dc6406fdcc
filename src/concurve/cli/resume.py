"""``concurve resume``: go on where a run was stopped or killed."""

from __future__ import annotations

from pathlib import Path

import click

from concurve.cli import options

HELP = """Go on with a run that was stopped or killed.

\b
Examples:
  concurve resume last
  concurve resume 20261121-0912 --max-time 2h

The stored trials count; exactly the planned ones that are missing are run.
"""


@click.command("resume", help=HELP)
@options.run_name
@options.max_time
@options.exports
@options.db
def verb(run: str, max_time: str | None, db: str | None, **files: Path | None) -> None:
    """Measure what is missing of a stored run."""
    from concurve.cli.measuring import Exports, measure
    from concurve.run_head import decode_head, with_allowance
    from concurve.store import Store
    from concurve.units import parse_duration

    asked = Exports(**files).files()
    store = Store(db)
    head = decode_head(store.find_run(run))
    if max_time is not None:
        head = with_allowance(head, parse_duration(max_time, "--max-time"))
    measure(head, store, asked, resume=True)
