"""``concurve report``: a stored run or campaign as a document."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from concurve.cli import options
from concurve.errors import StudyError

HELP = """Write the report of a stored run, or of a campaign by its id or name: HTML or Markdown, by
the file's ending.

\b
Examples:
  concurve report last -o report.html
  concurve report last -o report.md --charts figures/
  concurve report java-threads --export-html std.html --export-markdown std.md
"""


@click.command("report", help=HELP, short_help="Write the report of a stored run or campaign.")
@options.run_name
@options.output
@options.exports
@click.option(
    "--charts",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Also write each chart as SVG and PNG into this folder.",
)
@options.db
def verb(
    run: str, file: Path | None, charts: Path | None, db: str | None, **files: Path | None
) -> None:
    """Write a run's or a campaign's report, and its charts if asked."""
    from concurve import exports
    from concurve.cli.measuring import Exports
    from concurve.cli.showing import note_measured
    from concurve.cli.streams import with_store
    from concurve.store import Store

    asked = Exports(**files).files()
    if file is not None or not asked:
        target = file or Path("report.html")
        exports.check_writable(target)
        form = exports.format_of(target)
        if (other := asked.get(form, target)) != target:
            raise StudyError(
                f"{target} and {other} are both {form}, and a report writes one file of a format",
                f"-o {shlex.quote(str(target))} alone, or --export-{form} alone",
            )
        asked[form] = target
    store = Store.existing(db)
    campaign = store.find_campaign(run)
    note_measured()
    written = (
        exports.write_run(store, run, asked, charts, with_store)
        if campaign is None
        else exports.write_campaign(store, campaign.id, asked, charts, with_store)
    )
    for path in written:
        print(path)
