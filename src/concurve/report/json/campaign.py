"""A campaign as JSON: ``schema/campaign.schema.json`` describes it.

History of the format (``FORMAT``): 1 (2026-11) first version.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec.structs import asdict

from concurve.fields import Count, Positive, Text, about
from concurve.findings.campaign import CampaignFindings, MemberState, RunT_co, StudyFindings
from concurve.findings.claims import VerdictName
from concurve.findings.published import Agreement
from concurve.terms import Goal

FORMAT = 1


Verdicts = Annotated[
    dict[VerdictName, Positive],
    about(
        "How many claims of the source have each verdict.",
        propertyNames={"enum": list(get_args(VerdictName))},
    ),
]
Agreements = Annotated[
    dict[Agreement, Positive],
    about(
        "How many published figures have each verdict.",
        propertyNames={"enum": list(get_args(Agreement))},
    ),
]


class _Closed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the objects without further keys."""


class CampaignEntry(_Closed, frozen=True):
    """The campaign, and how to run it again."""

    id: Text
    name: str
    title: str
    question: str
    source: str
    effort: str
    seed: int
    started: Annotated[str, about("ISO 8601, UTC.")]
    state: Literal["running", "complete", "interrupted", "incomplete"]
    reason: str
    again: Annotated[str, about("Command that runs it again.")]
    version: str
    trials: Count
    duration_seconds: Annotated[float, about(minimum=0)]


class FindingEntry(_Closed, frozen=True):
    """One sentence of the answer."""

    kind: Literal["answer", "warning", "note"]
    sentence: str


class DeviationEntry(_Closed, frozen=True):
    """A deviation from the procedure."""

    study: Annotated[str, about("Empty: all studies.")]
    kind: Literal["missing", "warning", "rejected", "not testable", "machine"]
    says: str


class TestCaseEntry(_Closed, frozen=True, omit_defaults=True):
    """The test case that the study is."""

    __test__ = False  # not one of pytest's

    id: str
    objective: str
    area: str = ""
    goal: str = ""
    expected: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()
    indicators: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()


class ProcedureEntry(_Closed, frozen=True):
    """How a study was run: its cells, the rules in force and their result."""

    cells: int
    blocks: Annotated[int, about("The greatest number of trials in use of a cell.")]
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


class StudyEntry(_Closed, frozen=True):
    """A study of the campaign, with its state and its run."""

    name: Annotated[str, about("Its folder in the campaign.")]
    question: str
    state: MemberState
    reason: Annotated[str, about("Why it failed or was not run.")]
    verdicts: Verdicts
    agreements: Agreements
    test_case: TestCaseEntry | msgspec.UnsetType = msgspec.UNSET
    procedure: Annotated[
        ProcedureEntry | msgspec.UnsetType,
        about("How it was run; left out where it did not begin."),
    ] = msgspec.UNSET
    run: Annotated[
        msgspec.Raw | msgspec.UnsetType,
        about("As export.schema.json describes it.", type="object"),
    ] = msgspec.UNSET


class GoalEntry(_Closed, frozen=True, omit_defaults=True):
    """A goal that test cases serve."""

    id: str
    says: str
    priority: Annotated[
        Literal["must", "can"] | msgspec.UnsetType, about("That of the requirement.")
    ] = msgspec.UNSET


class MeasureEntry(_Closed, frozen=True, omit_defaults=True):
    """An indicator, and the means by which it is read."""

    name: str
    meaning: str
    source: Annotated[str, about("How the source read it.")] = ""
    here: Annotated[str, about("How it is read here.")] = ""
    left_out: Annotated[str, about("Why it counts for nothing.")] = ""


class ReferenceEntry(_Closed, frozen=True):
    """A document that the texts refer to."""

    id: str
    says: str


class CampaignExport(_Closed, frozen=True):
    """Written by ``concurve run CAMPAIGN --export-json``, ``concurve report CAMPAIGN
    --export-json`` (with the raw trials) and ``concurve show CAMPAIGN --json`` (without them)."""

    format: Annotated[int, about(const=FORMAT)]
    campaign: CampaignEntry
    answers: Annotated[list[FindingEntry], about("What its studies say to its question.")]
    summary: list[FindingEntry]
    verdicts: Verdicts
    agreements: Agreements
    studies: list[StudyEntry]
    deviations: list[DeviationEntry]
    glossary: dict[str, str]
    machine: dict[str, Any]
    goals: list[GoalEntry] | msgspec.UnsetType = msgspec.UNSET
    measures: list[MeasureEntry] | msgspec.UnsetType = msgspec.UNSET
    references: list[ReferenceEntry] | msgspec.UnsetType = msgspec.UNSET


def to_campaign_json(
    findings: CampaignFindings[RunT_co], run_json: Callable[[RunT_co], bytes]
) -> bytes:
    """The whole campaign; each study's ``run`` is the export of its run, as ``run_json`` makes
    it."""
    texts = findings.texts
    return msgspec.json.encode(
        CampaignExport(
            format=FORMAT,
            campaign=CampaignEntry(
                **asdict(findings.campaign),
                trials=findings.trials,
                duration_seconds=findings.duration_seconds,
            ),
            answers=[
                FindingEntry(kind=item.kind, sentence=item.sentence) for item in findings.answers
            ],
            summary=[
                FindingEntry(kind=item.kind, sentence=item.sentence) for item in findings.summary
            ],
            verdicts=findings.verdicts,
            agreements=findings.agreements,
            studies=[_study(study, run_json) for study in findings.studies],
            deviations=[DeviationEntry(**asdict(item)) for item in findings.deviations],
            glossary=findings.glossary,
            machine=findings.machine,
            goals=[_goal(item) for item in texts.goals] or msgspec.UNSET,
            measures=[MeasureEntry(**asdict(item)) for item in texts.measures] or msgspec.UNSET,
            references=[ReferenceEntry(**asdict(item)) for item in texts.references]
            or msgspec.UNSET,
        )
    )


def _goal(goal: Goal) -> GoalEntry:
    return GoalEntry(id=goal.id, says=goal.says, priority=goal.priority or msgspec.UNSET)


def _study(study: StudyFindings[RunT_co], run_json: Callable[[RunT_co], bytes]) -> StudyEntry:
    case, procedure, run = study.test_case, study.procedure, study.run
    return StudyEntry(
        name=study.name,
        question=study.question,
        state=study.state,
        reason=study.reason,
        verdicts=study.verdicts,
        agreements=study.agreements,
        test_case=TestCaseEntry(**asdict(case)) if case else msgspec.UNSET,
        procedure=ProcedureEntry(**asdict(procedure)) if procedure else msgspec.UNSET,
        run=msgspec.Raw(run_json(run)) if run else msgspec.UNSET,
    )
