"""A campaign: studies that answer one question together, and the texts of its report. Data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from concurve.definition.study import Study, with_java
from concurve.definition.study_check import with_rules
from concurve.errors import StudyError
from concurve.terms import CampaignTexts, Level
from concurve.words import meant


class Member(msgspec.Struct, frozen=True, kw_only=True):
    """A study of a campaign under the name of its folder."""

    name: str
    study: Study


class Answer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What of a study answers the question of its campaign.

    With a ``factor``: which of its levels is best, in each setting of the other factors. ``by`` is
    the indicator that decides (empty: the study's primary one), ``where`` the levels to which the
    comparison is confined, ``names`` what the levels are called in a sentence. ``claims`` are those
    whose verdicts belong to the answer. With neither: the study's own first answer.
    """

    study: str
    factor: str = ""
    by: str = ""
    where: dict[str, Level] = {}
    names: dict[str, str] = {}
    claims: tuple[str, ...] = ()


class Campaign(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A complete campaign: its studies in the order in which they run. ``efforts`` names those that
    run at an effort, where these are not all of them. ``answer`` says what answers the question,
    the first one with figures before all others; empty, the studies' own answers do."""

    name: str
    question: str
    studies: tuple[Member, ...]
    title: str = ""
    source: str = ""
    texts: CampaignTexts = CampaignTexts()
    glossary: dict[str, str] = {}
    efforts: dict[str, tuple[str, ...]] = {}
    answer: tuple[Answer, ...] = ()


def at_effort(campaign: Campaign, effort: str) -> Campaign:
    """The campaign with the studies that it runs at an effort."""
    return only(campaign, campaign.efforts[effort]) if effort in campaign.efforts else campaign


def only(campaign: Campaign, names: Sequence[str]) -> Campaign:
    """The campaign with the named studies only, in its own order, each once.

    Raises:
        StudyError: the campaign has no study of this name; the remedy has the most similar one.
    """
    known = [member.name for member in campaign.studies]
    for name in names:
        if name not in known:
            raise StudyError(
                f"--only: {campaign.name} has no study {name!r}",
                meant(name, known, f"some of {','.join(known)}"),
            )
    if not names:
        raise StudyError("--only: no study is named", f"some of {','.join(known)}")
    chosen = tuple(member for member in campaign.studies if member.name in names)
    return msgspec.structs.replace(campaign, studies=chosen)


def with_java_everywhere(campaign: Campaign, java: str) -> Campaign:
    """The campaign with this Java in every study that does not name one."""
    members = tuple(
        msgspec.structs.replace(member, study=with_java(member.study, java))
        for member in campaign.studies
    )
    return msgspec.structs.replace(campaign, studies=members)


def with_rules_everywhere(campaign: Campaign, given: dict[str, Any]) -> Campaign:
    """The campaign with these fields of the rules replaced in every study, at every effort."""
    members = tuple(
        msgspec.structs.replace(member, study=with_rules(member.study, given))
        for member in campaign.studies
    )
    return msgspec.structs.replace(campaign, studies=members)
