"""``concurve runs``: what is stored."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from concurve.cli import options

if TYPE_CHECKING:
    from concurve.store import CampaignRow, Store

HELP = """List the stored runs, the newest last; of one study, or of one campaign.

\b
Examples:
  concurve runs
  concurve runs thread-scaling
  concurve runs java-threads
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
    campaign = store.find_campaign(study) if study and not rows else None
    if campaign is not None:
        _print_campaign(store, campaign)
        return
    if not rows:
        note(f"no runs {f'of {study} ' if study else ''}in {store.shown()}")
        return
    of = {
        member.run: f"  of {row.id}"
        for row in store.campaigns()
        for member in store.members(row.id)
    }
    width = max(len(row.study) for row in rows)
    for row in rows:
        reason = f": {row.reason}" if row.reason else ""
        count = store.count(row.id)
        state = f"{row.state}{reason}{of.get(row.id, '')}"
        print(f"{row.id}  {row.study:<{width}}  {count:>6} trials  {state}")


def _print_campaign(store: Store, campaign: CampaignRow) -> None:
    reason = f": {campaign.reason}" if campaign.reason else ""
    print(f"{campaign.id}  {campaign.name}  {campaign.state}{reason}")
    members = store.members(campaign.id)
    width = max(len(member.name) for member in members)
    for member in members:
        run = f"{member.run:<20}  {store.count(member.run):>6} trials  " if member.run else ""
        reason = f": {member.reason}" if member.reason else ""
        print(f"  {member.name:<{width}}  {run}{member.state}{reason}")
