"""Which figures count failures, and among what.

``failures`` of an indicator says it in words: ``among operations`` (a part of that count),
``beside operations`` (that count has the others alone), or ``share`` (the figure is the share
itself). ``expected`` is what a study says of failures that belong to its load, such as locks that
are refused because somebody else has them: they are counted, and no failure. It stands in
``known_outputs.toml``, in the tables of our programs, in a study file, and as the direction
``failures`` of ``--extract``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from concurve.definition.indicator_names import IndicatorName, split_name
from concurve.definition.programs import program
from concurve.definition.study import Study

#: What a study says of failures that belong to its load.
EXPECTED = "expected"

#: What ``failures`` may say.
WORDS = re.compile(rf"share|{EXPECTED}|(?P<how>among|beside) (?P<of>[a-z_][a-z0-9_]*)")

#: A share whose unit is this has 100 for all.
PERCENT = "%"


class FailureCount(NamedTuple):
    """An indicator that counts failures; ``of`` is the indicator that they are ``among`` or
    ``beside``, of the same role, and empty for a ``share``."""

    name: str
    how: Literal["among", "beside", "share"]
    of: str = ""


def default_failures(unit: str) -> str:
    """What a count of failures is among where nobody says it: a share by its unit, else a count
    among the operations."""
    return "share" if unit == PERCENT else "among operations"


def failure_counts(study: Study) -> list[FailureCount]:
    """The indicators of a study that count failures: those that say so themselves, and those that
    the programs of its roles report, but for those that the study expects."""
    found = {item.name: item.failures for item in study.indicators if item.failures}
    for name, failures in _reported(study):
        found.setdefault(name, failures)
    return [_parsed(name, failures) for name, failures in found.items() if failures != EXPECTED]


class AllFailed(NamedTuple):
    """That all of a load failed, in words, and the indicator that counts it."""

    indicator: str
    said: str


def all_failed(study: Study, figures: Mapping[str, float]) -> AllFailed | None:
    """That all of a trial's load failed; ``None`` if some of it did not, or nothing counts."""
    for count in failure_counts(study):
        failed = figures.get(count.name, 0.0)
        unit = next((item.unit for item in study.indicators if item.name == count.name), "")
        if count.how == "share":
            if failed >= (100.0 if unit == PERCENT else 1.0):
                amount = f"{failed:g}{unit if unit == PERCENT else ''}"
                return AllFailed(count.name, f"{count.name} is {amount}: all failed")
            continue
        total = figures.get(count.of)
        if failed <= 0 or total is None:
            continue
        succeeded = total if count.how == "beside" else total - failed
        if succeeded <= 0:
            return AllFailed(count.name, f"{count.name} is {failed:,.0f}, and nothing succeeded")
    return None


def _reported(study: Study) -> Iterator[tuple[str, str]]:
    for role in study.roles:
        table = program(role.program) if role.program else None
        for name, text in table.indicators.items() if table else ():
            if text.failures:
                own = "" if role.name == study.target else role.name
                yield str(IndicatorName(own, name)), text.failures


def _parsed(name: str, failures: str) -> FailureCount:
    match = WORDS.fullmatch(failures)
    if match is None or match["how"] is None:
        return FailureCount(name, "share")
    of = str(IndicatorName(split_name(name).role, match["of"]))
    return FailureCount(name, "among" if match["how"] == "among" else "beside", of)
