"""``concurve report``: a stored run or campaign as a document."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from concurve.cli import options

if TYPE_CHECKING:
    from concurve.store import Store
    from concurve.store.rows import CampaignRow

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
    from concurve.store import Store

    asked = Exports(**files).files()
    if file is not None or not asked:
        target = file or Path("report.html")
        exports.check_writable(target)
        asked[exports.format_of(target)] = target
    store = Store.existing(db)
    campaign = store.find_campaign(run)
    if campaign is None:
        row = store.find_run(run)
        exports.write_run(store, row.id, asked)
    else:
        exports.write_campaign(store, campaign.id, asked)
    for target in asked.values():
        print(target)
    if charts is not None:
        written = (
            _charts(store, store.find_run(run).id, charts)
            if campaign is None
            else _campaign_charts(store, campaign, charts)
        )
        for path in written:
            print(path)


def _charts(store: Store, run: str, folder: Path) -> list[Path]:
    from concurve.analysis.run import findings_of
    from concurve.analysis.scaling import with_models
    from concurve.analysis.workers import with_shares
    from concurve.report.charts import write_static

    findings = with_models(findings_of(store, store.find_run(run)))
    return write_static(with_shares(findings, store), folder)


def _campaign_charts(store: Store, campaign: CampaignRow, folder: Path) -> list[Path]:
    """The charts of a campaign under their numbers."""
    from concurve.analysis.campaign import campaign_findings
    from concurve.exports import complete_campaign
    from concurve.report.campaign.document import document, numbered_charts
    from concurve.report.charts.chart import write_charts

    findings = complete_campaign(campaign_findings(store, campaign), store)
    return write_charts(numbered_charts(document(findings)), folder)
