"""``concurve resume``: go on where a run or a campaign was stopped or killed."""

from __future__ import annotations

from pathlib import Path

import click

from concurve.cli import options

HELP = """Go on with a run or a campaign that was stopped or killed.

\b
Examples:
  concurve resume last
  concurve resume 20261121-0912 --max-time 2h
  concurve resume last --wait-quiet 10m

The stored trials count, and their time too: --max-time is for the whole run. --wait-quiet is what
may be waited from now on. Exactly the planned
trials that are missing are run. The last run of a
campaign that is not done stands for the campaign. Its secrets are not stored: they are taken from
the environment.
"""


@click.command("resume", help=HELP)
@options.run_name
@options.max_time
@options.wait_quiet
@options.measure_anyway
@options.secret
@options.exports
@options.db
def verb(
    run: str,
    max_time: str | None,
    wait_quiet: str | None,
    measure_anyway: bool,
    secrets: tuple[str, ...],
    db: str | None,
    **files: Path | None,
) -> None:
    """Measure what is missing of a stored run or campaign."""
    from concurve.cli.campaigning import campaign_to_resume, resume_campaign
    from concurve.cli.measuring import Exports, resume_run
    from concurve.definition.hiding import check_marked
    from concurve.definition.units import parse_duration
    from concurve.measuring.heads import resumed_head
    from concurve.measuring.quiet import asked_quiet
    from concurve.store import Store

    check_marked(secrets, ())
    wait = asked_quiet(wait_quiet, measure_anyway)
    asked = Exports(**files).files()
    store = Store.existing(db)
    allowed = None if max_time is None else parse_duration(max_time, "--max-time")
    campaign = campaign_to_resume(store, run)
    if campaign is not None:
        resume_campaign(campaign, store, asked, allowed, wait)
        return
    resume_run(resumed_head(store, run, allowed), store, asked, allowed, wait)
