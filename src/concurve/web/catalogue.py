"""The packaged studies and campaigns, as forms."""

from __future__ import annotations

import msgspec

from concurve.definition.campaign import Campaign
from concurve.definition.campaign_file import load_campaign
from concurve.definition.catalogue import campaigns, entries, find
from concurve.definition.study import Study
from concurve.definition.study_files import CAMPAIGN_NAME
from concurve.host.granted import granted_cpus
from concurve.terms import joined_levels


class Factor(msgspec.Struct, frozen=True):
    """A factor with its levels at each effort, as a form shows them: ``1,2,4``."""

    name: str
    levels: dict[str, str]


class Entry(msgspec.Struct, frozen=True):
    """A packaged study, a campaign, or a study of a campaign. A campaign has ``members``, and no
    factors of its own."""

    name: str
    question: str
    source: str
    factors: tuple[Factor, ...]
    members: tuple[str, ...] = ()


def packaged() -> list[Entry]:
    """All that can be run by name, each campaign before its studies."""
    cpus = granted_cpus()
    found = []
    for entry in entries():
        study = find(entry.name, cpus)
        assert isinstance(study, Study)
        found.append(_study(entry.name, study))
    for entry in campaigns():
        campaign = load_campaign(entry.folder / CAMPAIGN_NAME, cpus)
        found.append(_campaign(campaign))
        found += [_study(f"{campaign.name}/{one.name}", one.study) for one in campaign.studies]
    return found


def _study(name: str, study: Study) -> Entry:
    case = study.test_case
    factors = tuple(
        Factor(
            factor.name,
            {
                effort: joined_levels(at.levels)
                for effort in study.efforts
                for at in study.factors_at(effort)
                if at.name == factor.name
            },
        )
        for factor in study.factors
    )
    return Entry(name, case.objective if case else study.question, study.source, factors)


def _campaign(campaign: Campaign) -> Entry:
    members = tuple(member.name for member in campaign.studies)
    return Entry(campaign.name, campaign.question, campaign.source, (), members)
