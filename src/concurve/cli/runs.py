"""``concurve runs``: what is stored."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from concurve.cli import options
from concurve.cli.streams import with_store
from concurve.definition.units import format_count

if TYPE_CHECKING:
    from concurve.store import Store
    from concurve.store.rows import CampaignRow, RunRow

HELP = """List the stored runs, the newest last; of one study, or of one campaign.

\b
Examples:
  concurve runs
  concurve runs thread-scaling
  concurve runs java-threads
"""

#: A reason is shown up to this width: those of failures may be long.
REASON_WIDTH = 100


@click.command("runs", help=HELP, short_help="List the stored runs, the newest last.")
@click.argument("study", required=False)
@options.db
def verb(study: str | None, db: str | None) -> None:
    """Print a line for each stored run."""
    from concurve.cli.showing import note
    from concurve.store import Store

    store = Store.existing(db)
    rows = store.runs(study)
    campaign = store.find_campaign(study) if study and not rows else None
    if campaign is not None:
        _print(_campaign(store, campaign))
        return
    if not rows:
        note(f"no runs {f'of {study} ' if study else ''}in {store.shown()}{_meant(store, study)}")
        return
    _print(_runs(store, rows))


def _meant(store: Store, study: str | None) -> str:
    """The study that was meant by a name of none; empty where nothing is stored."""
    from concurve.words import meant

    studies = list(dict.fromkeys(row.study for row in store.runs(with_heads=False)))
    return f"\n  try: {meant(study, studies)}" if study and studies else ""


def _runs(store: Store, rows: list[RunRow]) -> Iterator[str]:
    from concurve.planning.doubt import remarks
    from concurve.planning.protocol import shown_state

    of = {
        member.run: f"  of {row.id}"
        for row in store.campaigns()
        for member in store.members(row.id)
    }
    width = max(len(row.study) for row in rows)
    counts, outcomes = store.counts(), store.not_plain()
    for row in rows:
        count = format_count(counts.get(row.id, 0), "trial")
        remarked = remarks(outcomes.get(row.id, ()))
        state = f"{shown_state(row.state, row.reason, remarked)}{of.get(row.id, '')}{_why(row)}"
        yield f"{row.id}  {row.study:<{width}}  {count:>12}  {state}"


def _campaign(store: Store, campaign: CampaignRow) -> Iterator[str]:
    yield f"{campaign.id}  {campaign.name}  {campaign.state}{_why(campaign)}"
    members = store.members(campaign.id)
    width = max((len(member.name) for member in members), default=0)
    for member in members:
        count = format_count(store.count(member.run), "trial") if member.run else ""
        run = f"{member.run:<20}  {count:>12}  " if member.run else ""
        yield f"  {member.name:<{width}}  {run}{member.state}{_short(member.reason)}"


def _why(row: RunRow | CampaignRow) -> str:
    """The reason of a state, and for what was interrupted the command that goes on."""
    from concurve.store.rows import INTERRUPTED

    resume = with_store(f"; concurve resume {row.id}") if row.state == INTERRUPTED else ""
    return f"{_short(row.reason)}{resume}"


def _short(reason: str) -> str:
    """The beginning of a reason on one line; ``concurve show`` has the rest."""
    from concurve.report.console import cut
    from concurve.report.format import clean

    line = cut(" ".join(clean(reason).split()), REASON_WIDTH)
    return f": {line}" if line else ""


def _print(lines: Iterator[str]) -> None:
    """Print each line; a terminal gets it cut to its width."""
    from concurve.report.console import Line, cut, print_lines

    fits = cut if sys.stdout.isatty() else lambda line, _: line
    print_lines(lambda width: (Line(fits(line, width)) for line in lines))
