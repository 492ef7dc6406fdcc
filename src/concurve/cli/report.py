"""``concurve report``: a stored run as a document."""

from __future__ import annotations

from pathlib import Path

import click

from concurve.cli import options

HELP = """Write the report of a stored run: HTML or Markdown, by the file's ending.

\b
Examples:
  concurve report last -o report.html
  concurve report last -o report.md --charts figures/
"""


@click.command("report", help=HELP, short_help="Write the report of a stored run.")
@options.run_name
@options.output
@click.option(
    "--charts",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Also write each chart as SVG and PNG into this folder.",
)
@options.db
def verb(run: str, file: Path | None, charts: Path | None, db: str | None) -> None:
    """Write a run's report, and its charts if asked."""
    from concurve import exports
    from concurve.analysis import findings_of
    from concurve.store import Store

    target = file or Path("report.html")
    kind = exports.format_of(target)
    exports.check_writable(target)
    store = Store(db)
    findings = findings_of(store, store.find_run(run))
    exports.write(target, exports.render(findings, store, kind))
    print(target)
    if charts is not None:
        from concurve.report.charts import write_static

        for path in write_static(findings, charts):
            print(path)
