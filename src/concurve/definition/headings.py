"""What a list of studies says of each: read from their files alone, and unchecked. A whole study
takes many times as long."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from concurve.definition.study_files import CAMPAIGN_NAME, STUDY_NAME, study_files, taken_over
from concurve.definition.toml_file import read_tables, read_text, to_type


class StudyHeading(msgspec.Struct, frozen=True):
    """A study: its ``factors`` by their names; the ``objective`` of its test case, or ``""``."""

    name: str
    question: str
    source: str
    factors: tuple[str, ...]
    objective: str


class CampaignHeading(msgspec.Struct, frozen=True):
    """A campaign with its studies, each by the name of its folder."""

    question: str
    source: str
    studies: dict[str, StudyHeading]


class _Head(msgspec.Struct, frozen=True):
    name: str
    question: str
    source: str = ""
    studies: tuple[str, ...] = ()


class _TestCase(msgspec.Struct, frozen=True):
    objective: str = ""


class _Study(msgspec.Struct, frozen=True):
    study: _Head
    factors: dict[str, Any]
    test_case: _TestCase = _TestCase()


class _Campaign(msgspec.Struct, frozen=True):
    campaign: _Head


def study_heading(path: Path) -> StudyHeading:
    """The heading of a study file, or of what it extends.

    Raises:
        StudyError: a file cannot be read, is not TOML, or lacks what a heading needs.
    """
    where = str(path)
    tables, _ = taken_over(study_files(read_text(path, "a study file"), where))
    found = to_type(tables, lambda _: where, _Study, {}, "docs/studies.md")
    return StudyHeading(
        name=found.study.name,
        question=found.study.question,
        source=found.study.source,
        factors=tuple(found.factors),
        objective=found.test_case.objective,
    )


def campaign_heading(folder: Path) -> CampaignHeading:
    """The heading of the campaign in a folder.

    Raises:
        StudyError: as :func:`study_heading`, of the campaign's file or of one of its studies.
    """
    path = folder / CAMPAIGN_NAME
    text = read_text(path, "a campaign file")
    head = read_tables(text, str(path), _Campaign, {}, "docs/campaigns.md").campaign
    studies = {name: study_heading(folder / name / STUDY_NAME) for name in head.studies}
    return CampaignHeading(head.question, head.source, studies)
