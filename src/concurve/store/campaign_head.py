"""The head of a campaign: what is known before its first study. It is stored once, as JSON.

History of the format:

- 1 (2026-11): first version, without a number of its format.
- 2 (2026-11): ``format`` is written. Everything else is as in format 1.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import msgspec

from concurve import words
from concurve.definition.campaign import Campaign
from concurve.definition.inventory import Inventory
from concurve.errors import StoreError
from concurve.formats import Versions, number_alone
from concurve.secrets import NAMING_OPTIONS
from concurve.secrets.likely import masked_line
from concurve.store.consistency import check_study
from concurve.store.rows import CampaignRow, MemberRow
from concurve.terms import Waiting


class CampaignHead(msgspec.Struct, frozen=True, kw_only=True):
    """The campaign with the studies chosen, effort and seed, and the command line.

    ``started`` is an ISO 8601 time in UTC, to the millisecond, ``version`` that of the concurve
    that began it. ``hosts`` are those that its studies run on, if there are others than this
    machine. ``folder`` is the working folder that it began in; older campaigns have none.
    ``waiting``: how long it waited for a quiet machine before its first study, and how long each
    study may wait.
    """

    format: int
    id: str
    campaign: Campaign
    effort: str
    seed: int
    started: str
    again: str
    version: str
    hosts: Inventory | None = None
    folder: str | None = None
    waiting: Waiting | None = None

    def row(self) -> CampaignRow:
        """The campaign as it is stored when it begins."""
        return CampaignRow(
            self.id, self.campaign.name, self.started, "running", "", msgspec.json.encode(self)
        )

    def member_rows(self) -> list[MemberRow]:
        """Its studies, none of them begun."""
        return [MemberRow(n, member.name) for n, member in enumerate(self.campaign.studies)]

    def check_members(self, rows: Sequence[MemberRow]) -> None:
        """Refuse rows that are not those of its studies.

        Raises:
            StoreError: some were lost.
        """
        if [row.position for row in rows] != list(range(len(self.campaign.studies))):
            raise StoreError(
                f"campaign {self.id} has {words.count(len(self.campaign.studies), 'study')}, and "
                f"the store knows of {len(rows)}: it is damaged",
                "a copy of the store from before; its runs are there: concurve runs",
            )

    def again_alone(self, name: str) -> str:
        """The command that runs one of its studies again."""
        kept, skip = [], False
        for word in shlex.split(self.again):
            if not skip and word != "--only" and not word.startswith("--only="):
                kept.append(word)
            skip = word == "--only"
        return shlex.join([*kept, "--only", name])


def _check(head: CampaignHead) -> None:
    if not head.campaign.studies:
        raise ValueError("the campaign has no study")
    for member in head.campaign.studies:
        check_study(member.study, head.effort)


VERSIONS = Versions(CampaignHead, "campaign", (number_alone,), _check)

#: The format that this version writes.
FORMAT = VERSIONS.newest


def decode_campaign(row: CampaignRow) -> CampaignHead:
    """The head of a stored campaign, also one of an older format.

    Raises:
        StoreError: it has a newer format, or cannot be read.
    """
    head = VERSIONS.decode(row.head, row.id)
    # Older versions kept passwords in it.
    return msgspec.structs.replace(head, again=masked_line(head.again, NAMING_OPTIONS))
