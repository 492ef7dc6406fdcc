"""What is known of a campaign before its first study, and stored with it."""

from __future__ import annotations

import datetime
import secrets
import shlex

import msgspec

from concurve.definition.campaign import Campaign
from concurve.store.rows import CampaignRow, MemberRow


class CampaignHead(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The campaign with the studies chosen, effort and seed, and the command line."""

    id: str
    campaign: Campaign
    effort: str
    seed: int
    started: str
    again: str
    version: str

    def row(self) -> CampaignRow:
        """The campaign as it is stored when it begins."""
        return CampaignRow(
            self.id, self.campaign.name, self.started, "running", "", msgspec.json.encode(self)
        )

    def member_rows(self) -> list[MemberRow]:
        """Its studies, none of them begun."""
        return [MemberRow(n, member.name) for n, member in enumerate(self.campaign.studies)]

    def again_alone(self, name: str) -> str:
        """The command that runs one of its studies again."""
        words, skip = [], False
        for word in shlex.split(self.again):
            if not skip and word != "--only" and not word.startswith("--only="):
                words.append(word)
            skip = word == "--only"
        return shlex.join([*words, "--only", name])


def new_campaign_head(
    campaign: Campaign, effort: str, seed: int, again: str, version: str
) -> CampaignHead:
    """The head of a new campaign."""
    now = datetime.datetime.now(datetime.UTC)
    return CampaignHead(
        id=f"c{now:%Y%m%d-%H%M%S}-{secrets.token_hex(2)}",
        campaign=campaign,
        effort=effort,
        seed=seed,
        started=now.isoformat(timespec="seconds"),
        again=again,
        version=version,
    )


def decode_campaign(row: CampaignRow) -> CampaignHead:
    """The head of a stored campaign."""
    return msgspec.json.decode(row.head, type=CampaignHead)
