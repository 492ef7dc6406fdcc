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

The stored trials count, and their time too: --max-time is for the whole run. Exactly the planned
trials that are missing are run. The last run of a
campaign that is not done stands for the campaign. Its secrets are not stored: they are taken from
the environment.
"""


@click.command("resume", help=HELP)
@options.run_name
@options.max_time
@options.secret
@options.exports
@options.db
def verb(
    run: str,
    max_time: str | None,
    secrets: tuple[str, ...],
    db: str | None,
    **files: Path | None,
) -> None:
    """Measure what is missing of a stored run or campaign."""
    from concurve.cli.campaigning import campaign_to_resume, resume_campaign
    from concurve.cli.measuring import Exports, resume_run
    from concurve.definition.hiding import check_marked
    from concurve.definition.units import parse_duration
    from concurve.measuring.heads import check_time_left, with_allowance
    from concurve.store import Store
    from concurve.store.run_head import decode_head

    check_marked(secrets, ())
    asked = Exports(**files).files()
    store = Store.existing(db)
    allowed = None if max_time is None else parse_duration(max_time, "--max-time")
    campaign = campaign_to_resume(store, run)
    if campaign is not None:
        resume_campaign(campaign, store, asked, allowed)
        return
    head = decode_head(store.find_run(run))
    if allowed is not None:
        check_time_left(head, store, allowed)
        head = with_allowance(head, allowed)
    resume_run(head, store, asked)
