"""``concurve show``: a stored run or campaign as a table."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from concurve.cli import options
from concurve.errors import ConcurveError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from concurve.findings.run import TrialFindings
    from concurve.report.sections.run import Topic
    from concurve.store import Store
    from concurve.store.rows import CampaignRow

HELP = """Print a stored run, or a campaign by its id or name.

\b
Examples:
  concurve show last
  concurve show 20261121-0912 --json
  concurve show last --best-by cpu_seconds
  concurve show last --figures
  concurve show last --figures 'server.*'
  concurve show last --claims
  concurve show last --all
  concurve show java-threads
"""


#: What stands for all figures where no pattern is given: no name is empty.
_ALL_FIGURES = ""


@click.command("show", help=HELP)
@options.run_name
@click.option("--json", is_flag=True, help="Print the JSON export without the raw trials.")
@click.option(
    "--best-by",
    default="",
    metavar="INDICATOR",
    help="Indicator by which the best settings are named (default: the primary one).",
)
@click.option(
    "--figures",
    is_flag=False,
    flag_value=_ALL_FIGURES,
    metavar="[NAME]",
    help="List all figures, also those of other roles; or one, or those that a pattern matches.",
)
@click.option("--claims", is_flag=True, help="Add the verdicts on the claims of the source.")
@click.option("--published", is_flag=True, help="Add the published figures beside the new ones.")
@click.option("--models", is_flag=True, help="Fit scaling models to the throughput, and add them.")
@click.option("--rejected", is_flag=True, help="Add what was rejected or is in doubt, and why.")
@click.option("--machine", is_flag=True, help="Add what is known of the machine.")
@click.option("--all", "everything", is_flag=True, help="Add all of this, and every warning.")
@options.db
def verb(
    run: str,
    json: bool,
    best_by: str,
    figures: str | None,
    models: bool,
    everything: bool,
    db: str | None,
    **more: bool,
) -> None:
    """Print a run or a campaign as a table or as JSON."""
    from concurve.cli.showing import note_measured, show_run
    from concurve.cli.streams import tell_json
    from concurve.store import Store

    topics = {**more, "models": models, "figures": figures is not None}
    asked = {name for name, wanted in topics.items() if wanted}
    with closing(Store.existing(db)) as store:
        is_named = (
            click.get_current_context().get_parameter_source("run") is not ParameterSource.DEFAULT
        )
        if figures and not is_named and _is_stored(store, figures):
            run, figures = figures, _ALL_FIGURES  # show --figures RUN
        campaign = store.find_campaign(run)
        note_measured()
        if campaign is not None:
            options_of_runs = sorted(asked - {"models"} if json else asked)
            if everything:
                options_of_runs = ["all"]
            _show_campaign(store, campaign, json, best_by, models, options_of_runs)
        elif json and figures:
            raise ConcurveError(
                f"--figures {figures} names figures of the table, and --json has all of them",
                "one of the two",
            )
        elif json:
            from concurve.brief import figures_of
            from concurve.report.json.export import figures_to_json

            with_models = models or everything
            found = figures_of(store, store.find_run(run), best_by, models=with_models)
            tell_json(figures_to_json(found.findings, found.scaling))
        else:
            show_run(
                store,
                run,
                best_by=best_by,
                topics=_topics(asked, everything),
                figures=figures or "",
            )
            if run == "last":
                _tell_of_newest(store)


def _is_stored(store: Store, name: str) -> bool:
    """Whether a run or a campaign has this name."""
    try:
        return store.find_campaign(name) is not None or bool(store.find_run(name))
    except ConcurveError:
        return False


def _tell_of_newest(store: Store) -> None:
    """Say which run is the newest that has figures, where the last one failed without any."""
    row = store.find_run("last")
    if row.state != "failed":
        return
    from concurve.analysis.run import newest_in_use, stored_run
    from concurve.cli.showing import note

    if not stored_run(store, row).used and (other := newest_in_use(store, row)):
        note(f"note: the newest run that has figures: concurve show {other}")


def _topics(asked: Collection[str], everything: bool) -> Collection[Topic]:
    """The topics that were asked for."""
    if not asked and not everything:
        return ()
    # Only here: an answer that is kept is shown without what makes one.
    from concurve.report.sections.run import ALL_TOPICS, Topic

    return ALL_TOPICS if everything else {Topic(name) for name in asked}


def _show_campaign(
    store: Store,
    campaign: CampaignRow,
    json: bool,
    best_by: str,
    models: bool,
    options_of_runs: Sequence[str],
) -> None:
    from concurve.cli.streams import tell_json

    if best_by or options_of_runs:
        option = "--best-by" if best_by else f"--{options_of_runs[0]}"
        raise ConcurveError(
            f"{campaign.id} is a campaign: {option} is for runs",
            "concurve show RUN with it; concurve report CAMPAIGN has the whole of all its runs",
        )
    if json:
        tell_json(_campaign_json(store, campaign, models))
    else:
        from concurve.cli.showing import show_campaign

        show_campaign(store, campaign.id)


def _campaign_json(store: Store, campaign: CampaignRow, models: bool) -> bytes:
    from concurve.analysis.campaign import campaign_findings
    from concurve.analysis.run import trial_findings_of
    from concurve.report.json.campaign import to_campaign_json
    from concurve.report.json.export import figures_to_json

    found = campaign_findings(store, campaign, lambda run: trial_findings_of(store, run))
    if not models:
        return to_campaign_json(found, figures_to_json)
    from concurve.analysis.granted import granted_cpus
    from concurve.analysis.run import stored_run
    from concurve.analysis.scaling import scaling_of

    def with_models(run: TrialFindings) -> bytes:
        stored = stored_run(store, store.run(run.run.id))
        return figures_to_json(run, scaling_of(run, granted_cpus(stored.head, stored.plan)))

    return to_campaign_json(found, with_models)
