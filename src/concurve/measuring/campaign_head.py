"""Begins a campaign: its head, as stored before the first study."""

from __future__ import annotations

import datetime
import secrets

from concurve.definition.campaign import Campaign
from concurve.store.campaign_head import FORMAT, CampaignHead
from concurve.store.rows import CAMPAIGN_PREFIX


def new_campaign_head(
    campaign: Campaign, effort: str, seed: int, again: str, version: str
) -> CampaignHead:
    """The head of a new campaign."""
    now = datetime.datetime.now(datetime.UTC)
    return CampaignHead(
        format=FORMAT,
        id=f"{CAMPAIGN_PREFIX}{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}",
        campaign=campaign,
        effort=effort,
        seed=seed,
        started=now.isoformat(timespec="seconds"),
        again=again,
        version=version,
    )
