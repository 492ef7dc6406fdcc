"""Stored studies that decode but contradict themselves: a damaged or edited head."""

from __future__ import annotations

from concurve.definition.study import Study


def check_study(study: Study, effort: str) -> None:
    """Refuse a study without the parts that every plan and every view needs.

    A study is checked completely when it is defined. Here only those contradictions are refused
    that leave nothing to show, so that what an older version stored stays readable.

    Raises:
        ValueError: what is missing.
    """
    if effort not in study.efforts:
        raise ValueError(f"the study has no effort {effort!r}")
    if study.target not in [role.name for role in study.roles]:
        raise ValueError(f"the study has no role {study.target!r} to measure")
    if not study.indicators:
        raise ValueError("the study has no indicator")
    levels = {factor.name: factor.levels for factor in study.factors_at(effort)}
    if len(levels) < len(study.factors):
        raise ValueError("two factors of the study have the same name")
    for name, given in levels.items():
        if not given:
            raise ValueError(f"factor {name!r} has no levels")
    named = {"base": study.base, "conditions": study.conditions}
    if study.work:
        named["work"] = (study.work,)
        if not all(isinstance(level, int | float) for level in levels.get(study.work, ())):
            raise ValueError(f"work {study.work!r} has levels that are no numbers")
    for kind, names in named.items():
        for name in names:
            if name not in levels:
                raise ValueError(f"{kind} {name!r} is no factor of the study")
