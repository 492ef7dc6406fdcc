"""``[[answer]]`` of a campaign file: what of its studies answers the question of the campaign. Each
entry is checked against the study that it names."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import msgspec

from concurve.definition.campaign import Answer, Member
from concurve.definition.study import Study
from concurve.errors import StudyError
from concurve.terms import Level
from concurve.words import meant


class AnswerTable(Answer, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An answer, as it is written: a key that is not known is a mistake."""


def answers_of(
    tables: Sequence[AnswerTable], members: Sequence[Member], file: str
) -> tuple[Answer, ...]:
    """The entries of a campaign with these studies; ``file`` is named in errors.

    Raises:
        StudyError: an entry names what its study, or the campaign, does not have.
    """
    studies = {member.name: member.study for member in members}
    return tuple(
        _checked(table, studies, f"{file}: answer {number}")
        for number, table in enumerate(tables, 1)
    )


def _checked(table: AnswerTable, studies: Mapping[str, Study], where: str) -> Answer:
    _one_of(table.study, studies, f"{where}, study", "a study of this campaign")
    study = studies[table.study]
    levels = _levels(study)
    if table.factor:
        _check_factor(table, study, levels, where)
    else:
        for key in ("by", "where", "names"):
            if getattr(table, key):
                raise StudyError(
                    f"{where}, {key}: there is no factor whose levels are compared",
                    'factor = "NAME", or leave it out: then the study\'s own answer counts',
                )
    for factor, level in table.where.items():
        _one_of(factor, levels, f"{where}, where", f"a factor of {table.study}")
        _one_of(str(level), [str(item) for item in levels[factor]],
                f"{where}, where.{factor}", "one of its levels")  # fmt: skip
    claims = [claim.id for claim in study.claims]
    for claim in table.claims:
        _one_of(claim, claims, f"{where}, claims", f"a claim of {table.study}")
    return Answer(**msgspec.structs.asdict(table))


def _check_factor(
    table: AnswerTable, study: Study, levels: Mapping[str, Sequence[Level]], where: str
) -> None:
    _one_of(table.factor, levels, f"{where}, factor", f"a factor of {table.study}")
    if len(levels[table.factor]) < 2:
        raise StudyError(
            f"{where}, factor: {table.factor!r} has a single level in {table.study}",
            "a factor with several levels to choose from",
        )
    if table.factor in table.where:
        raise StudyError(
            f"{where}, where: {table.factor!r} is the factor whose levels are compared",
            "other factors there",
        )
    for level in table.names:
        _one_of(level, [str(item) for item in levels[table.factor]],
                f"{where}, names", f"a level of {table.factor}")  # fmt: skip
    better = {item.name: item.better for item in study.indicators}
    by = table.by or study.primary
    _one_of(by, better, f"{where}, by", f"an indicator of {table.study}")
    if better[by] == "neither":
        raise StudyError(
            f"{where}, by: whether higher or lower {by} is better is not known",
            'an indicator of the study that has better = "higher" or "lower"',
        )


def _levels(study: Study) -> dict[str, list[Level]]:
    """The levels of each factor at any effort."""
    return {
        factor.name: list(
            dict.fromkeys(
                level
                for effort in study.efforts
                for own in study.factors_at(effort)
                if own.name == factor.name
                for level in own.levels
            )
        )
        for factor in study.factors
    }


def _one_of(name: str, known: Collection[str], where: str, what: str) -> None:
    if name in known:
        return
    remedy = meant(name, known)
    raise StudyError(f"{where}: {name!r} is not {what}", remedy)
