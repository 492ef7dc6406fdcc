"""``campaign.toml`` and the folders beside it → :class:`~concurve.definition.campaign.Campaign`;
every refusal names file, key and remedy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

from concurve.definition.campaign import Campaign, Member
from concurve.definition.campaign_answer import AnswerTable, answers_of
from concurve.definition.published import load_published
from concurve.definition.study import EFFORTS, Study
from concurve.definition.study_file import load_study
from concurve.definition.study_files import CAMPAIGN_NAME, PUBLISHED_NAME, STUDY_NAME
from concurve.definition.templates import NAME
from concurve.definition.toml_file import read_tables, read_text
from concurve.errors import StudyError
from concurve.terms import CampaignTexts, Goal, Measure, Reference
from concurve.words import meant, one_of


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Base of the tables of a campaign file."""


class _Head(_Table, frozen=True):
    name: str
    question: str
    studies: list[str]
    title: str = ""
    source: str = ""


class _Texts(_Table, frozen=True):
    introduction: str = ""
    scope: str = ""
    platform: str = ""
    procedure: str = ""
    deviations: str = ""


class _Goal(_Table, frozen=True):
    id: str
    says: str
    priority: Literal["must", "can"] | None = None


class _Measure(_Table, frozen=True):
    name: str
    meaning: str
    source: str = ""
    here: str = ""
    left_out: str = msgspec.field(default="", name="left-out")


class _Reference(_Table, frozen=True):
    id: str
    says: str


class _Effort(_Table, frozen=True):
    studies: tuple[str, ...]


class _File(_Table, frozen=True):
    campaign: _Head
    texts: _Texts = _Texts()
    glossary: dict[str, str] = {}
    effort: dict[str, _Effort] = {}
    answer: tuple[AnswerTable, ...] = ()
    goal: tuple[_Goal, ...] = ()
    measure: tuple[_Measure, ...] = ()
    reference: tuple[_Reference, ...] = ()


_KEYS: dict[str, type[msgspec.Struct]] = {
    "": _File,
    "campaign": _Head,
    "texts": _Texts,
    "effort": _Effort,
    "answer": AnswerTable,
    "goal": _Goal,
    "measure": _Measure,
    "reference": _Reference,
}


def load_campaign(path: Path, cpus: int) -> Campaign:
    """Read a campaign file and the studies in the folders beside it.

    ``cpus`` is what levels such as ``50%`` refer to.

    Raises:
        StudyError: unreadable, an unknown key, a wrong type, a study that is missing or malformed,
            or published figures of a study that is not there.
    """
    where = str(path)
    file = _read(path)
    _check_efforts(file, path)
    _check_published(file.campaign.studies, path)
    members = tuple(_members(file.campaign.studies, path, cpus))
    _check_goals(file.goal, members, path)
    return Campaign(
        name=file.campaign.name,
        title=file.campaign.title,
        question=file.campaign.question,
        source=file.campaign.source,
        studies=members,
        texts=CampaignTexts(
            **msgspec.structs.asdict(file.texts),
            goals=tuple(
                Goal(id=goal.id, says=goal.says, priority=goal.priority or "") for goal in file.goal
            ),
            measures=tuple(Measure(**msgspec.structs.asdict(item)) for item in file.measure),
            references=tuple(Reference(**msgspec.structs.asdict(item)) for item in file.reference),
        ),
        glossary=file.glossary,
        efforts={name: effort.studies for name, effort in file.effort.items()},
        answer=answers_of(file.answer, members, where),
    )


def load_member(path: Path, name: str, cpus: int) -> Study:
    """Read one study of a campaign, by the name of its folder; the others are not read.

    Raises:
        StudyError: as :func:`load_campaign`, of the campaign's file and this study; no such study.
    """
    head = _read(path).campaign
    if name not in head.studies:
        raise StudyError(f"campaign {head.name} has no study {name!r}", meant(name, head.studies))
    return next(_members([name], path, cpus)).study


def _read(path: Path) -> _File:
    text = read_text(path, "a campaign file")
    file = read_tables(text, str(path), _File, _KEYS, "docs/campaigns.md")
    _check_head(file.campaign, path)
    return file


def _check_head(head: _Head, path: Path) -> None:
    if not NAME.fullmatch(head.name):
        raise StudyError(
            f"{path}: campaign, name {head.name!r}: not a name",
            "letters, digits, _ and -, no blanks",
        )
    if not head.studies:
        raise StudyError(f"{path}: campaign, studies: none", 'folders beside it: ["tc01", "tc02"]')
    for name in head.studies:
        if not NAME.fullmatch(name):
            raise StudyError(
                f"{path}: campaign, studies: {name!r} is no name of a folder beside it",
                "letters, digits, _ and -, no blanks",
            )
        if head.studies.count(name) > 1:
            raise StudyError(f"{path}: campaign, studies: {name!r} appears twice", "each once")


def _check_efforts(file: _File, path: Path) -> None:
    for effort, own in file.effort.items():
        if effort not in EFFORTS:
            raise StudyError(f"{path}: no effort {effort!r}", one_of(EFFORTS))
        if not own.studies:
            raise StudyError(f"{path}: effort.{effort}, studies: none", "one of them at least")
        for name in own.studies:
            if name not in file.campaign.studies:
                raise StudyError(
                    f"{path}: effort.{effort}, studies: {name!r} is none of the campaign's",
                    meant(name, file.campaign.studies, "a name out of campaign, studies"),
                )


def _members(names: Iterable[str], path: Path, cpus: int) -> Iterator[Member]:
    folders = [folder.parent.name for folder in sorted(path.parent.glob(f"*/{STUDY_NAME}"))]
    taken: dict[str, str] = {}
    for name in names:
        file = path.parent / name / STUDY_NAME
        if name not in folders:
            raise StudyError(
                f"{path}: campaign, studies: {name!r} has no {file}",
                meant(name, folders, f"a study file at {file}"),
            )
        study = load_study(file, cpus)
        if study.name in taken:
            raise StudyError(
                f"{file}: study, name {study.name!r} is that of {taken[study.name]} too",
                "a name of its own: runs are stored under it",
            )
        taken[study.name] = name
        yield Member(name=name, study=study)


def _check_goals(goals: tuple[_Goal, ...], members: Iterable[Member], path: Path) -> None:
    """Refuse goals of one name, and a test case that serves a goal that is not there. A campaign
    may do without goals."""
    known = [goal.id for goal in goals]
    for id_ in known:
        if known.count(id_) > 1:
            raise StudyError(f"{path}: goal, id {id_!r}: appears twice", "each once")
    for member in members if goals else ():
        case = member.study.test_case
        if case is not None and case.goal and case.goal not in known:
            raise StudyError(
                f"{path.parent / member.name / STUDY_NAME}: test_case, goal {case.goal!r} is no "
                f"goal of {CAMPAIGN_NAME}",
                meant(case.goal, known),
            )


def _check_published(names: list[str], path: Path) -> None:
    """Refuse published figures of a test case that is no study of the campaign."""
    file = path.parent / PUBLISHED_NAME
    if not file.is_file():
        return
    for case in load_published(file):
        if case not in names:
            raise StudyError(
                f"{file}: test_case {case!r} is no study of {CAMPAIGN_NAME}",
                meant(case, names),
            )
