"""``concurve show``: a stored run or campaign as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from concurve.cli import options

if TYPE_CHECKING:
    from concurve.store import Store
    from concurve.store.rows import CampaignRow

HELP = """Print a stored run, or a campaign by its id or name.

\b
Examples:
  concurve show last
  concurve show 20261121-0912 --json
  concurve show last --best-by cpu_seconds
  concurve show last --models
  concurve show java-threads
"""


@click.command("show", help=HELP)
@options.run_name
@click.option("--json", is_flag=True, help="Print the JSON export without the raw trials.")
@click.option(
    "--best-by",
    default="",
    metavar="INDICATOR",
    help="Indicator by which the best settings are named (default: the primary one).",
)
@click.option("--models", is_flag=True, help="Fit scaling models to the throughput.")
@options.db
def verb(run: str, json: bool, best_by: str, models: bool, db: str | None) -> None:
    """Print a run or a campaign as a table or as JSON."""
    from concurve.assemble import figures_of
    from concurve.cli.showing import show_run
    from concurve.store import Store

    store = Store.existing(db)
    campaign = store.find_campaign(run)
    if campaign is not None:
        _show_campaign(store, campaign, json, best_by, models)
    elif json:
        from concurve.report.json.export import figures_to_json

        found = figures_of(store, store.find_run(run), best_by, models=models)
        print(figures_to_json(*found).decode())
    else:
        show_run(store, run, best_by=best_by, models=models)


def _show_campaign(
    store: Store, campaign: CampaignRow, json: bool, best_by: str, models: bool
) -> None:
    from concurve.errors import ConcurveError

    if best_by or (models and not json):
        raise ConcurveError(
            f"{campaign.id} is a campaign: {'--best-by' if best_by else '--models'} is for runs",
            "concurve show RUN with it; concurve report CAMPAIGN has the models of all its runs",
        )
    if json:
        print(_campaign_json(store, campaign, models).decode())
    else:
        from concurve.cli.showing import show_campaign

        show_campaign(store, campaign.id)


def _campaign_json(store: Store, campaign: CampaignRow, models: bool) -> bytes:
    from concurve.analysis.campaign import campaign_findings
    from concurve.analysis.run import findings_of, trial_findings_of
    from concurve.report.json.campaign import to_campaign_json
    from concurve.report.json.export import figures_to_json

    if not models:
        cells = campaign_findings(store, campaign, lambda run: findings_of(store, run))
        return to_campaign_json(cells, figures_to_json)
    from concurve.analysis.scaling import scaling_of

    trials = campaign_findings(store, campaign, lambda run: trial_findings_of(store, run))
    return to_campaign_json(trials, lambda run: figures_to_json(run, scaling_of(run)))
