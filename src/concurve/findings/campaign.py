"""The findings of a campaign."""

from __future__ import annotations

from typing import Any, Generic, Literal, TypeAlias, TypeVar

import msgspec

from concurve.findings.claims import VerdictName
from concurve.findings.published import Agreement
from concurve.findings.run import Finding, Report, TrialFindings
from concurve.terms import CampaignTexts, TestCase

MemberState = Literal["planned", "begun", "complete", "failed", "not run"]

#: What was read of each run: its figures with those of its trials, or its whole report.
RunT_co = TypeVar("RunT_co", bound=TrialFindings, covariant=True)


class Procedure(msgspec.Struct, frozen=True, kw_only=True):
    """How a study was run: its cells, the rules in force and their result. ``stopped`` counts cells
    by the reason why they got no more trials."""

    cells: int
    blocks: int
    repeats_min: int
    repeats_max: int
    precision: float
    redo_max: int
    redo_share: float
    time_allowed_seconds: float
    timeout_seconds: float | None
    trials: int
    rejected: int
    duration_seconds: float
    stopped: dict[str, int]


class Deviation(msgspec.Struct, frozen=True, kw_only=True):
    """A deviation from the procedure; ``study`` is empty if it concerns all studies."""

    study: str
    kind: Literal["missing", "warning", "rejected", "not testable", "machine"]
    says: str


class StudyFindings(msgspec.Struct, Generic[RunT_co], frozen=True, kw_only=True):
    """A study of a campaign: what became of it, and what its run says, if it has one.

    ``verdicts`` counts its claims, ``agreements`` the published figures.
    """

    name: str
    question: str
    test_case: TestCase | None
    state: MemberState
    reason: str
    run: RunT_co | None = None
    procedure: Procedure | None = None
    verdicts: dict[VerdictName, int] = {}
    agreements: dict[Agreement, int] = {}


class CampaignInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Which campaign this is, and how to run it again."""

    id: str
    name: str
    title: str
    question: str
    source: str
    effort: str
    seed: int
    started: str
    state: Literal["running", "complete", "interrupted", "incomplete"]
    reason: str
    again: str
    version: str


class CampaignFindings(msgspec.Struct, Generic[RunT_co], frozen=True, kw_only=True):
    """Everything that a view of a campaign shows. ``answers`` is what its studies say to its
    question, and ``answered_by`` the study that the first of them is said of, or empty;
    ``summary`` is for a reader who has a minute."""

    campaign: CampaignInfo
    texts: CampaignTexts
    glossary: dict[str, str]
    answers: tuple[Finding, ...]
    answered_by: str
    summary: tuple[Finding, ...]
    studies: tuple[StudyFindings[RunT_co], ...]
    deviations: tuple[Deviation, ...]
    machine: dict[str, Any]
    trials: int
    duration_seconds: float
    verdicts: dict[VerdictName, int]
    agreements: dict[Agreement, int]


CampaignReport: TypeAlias = CampaignFindings[Report]
"""A campaign with the whole report of each of its runs."""
