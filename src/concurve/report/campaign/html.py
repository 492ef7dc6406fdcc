"""The report of a campaign as one HTML page that opens offline, like that of a run."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

from concurve.findings.campaign import CampaignFindings
from concurve.report import format as fmt
from concurve.report.campaign.document import COMPARED, PROTOCOL, document, share, title_of
from concurve.report.html import DARK, environment, picture
from concurve.report.machine import facts


class Block(NamedTuple):
    """A paragraph, or the items of a list."""

    items: tuple[str, ...]
    is_list: bool


def to_campaign_html(findings: CampaignFindings) -> str:
    """The page. Everything that comes from outside is escaped by the template."""
    campaign = findings.campaign
    numbers = count()
    templates = environment()
    templates.filters |= {
        "blocks": blocks,
        "picture": lambda chart: picture(chart, next(numbers)),
        "share": share,
        "duration": fmt.duration,
        "title_of": title_of,
    }
    return templates.get_template("campaign.html.j2").render(
        findings=findings,
        campaign=campaign,
        title=fmt.clean(campaign.title or campaign.question),
        document=document(findings),
        trials=fmt.count(findings.trials, "trial"),
        machine=facts(findings.machine),
        protocol=PROTOCOL,
        compared=COMPARED,
        dark=DARK,
        missing=fmt.MISSING,
    )


def blocks(text: str) -> Iterator[Block]:
    """Paragraphs and lists of a text: an empty line parts them, ``-`` begins an item."""
    for part in text.strip().split("\n\n"):
        lines = [fmt.clean(line.strip()) for line in part.splitlines() if line.strip()]
        if lines and all(line.startswith("- ") for line in lines):
            yield Block(tuple(line[2:] for line in lines), True)
        elif lines:
            yield Block((" ".join(lines),), False)
