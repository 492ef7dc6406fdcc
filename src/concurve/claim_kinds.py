"""The kinds of claims: what each needs, typed, and what of it can be refused before any run."""

from __future__ import annotations

import difflib

import msgspec

from concurve.errors import StudyError
from concurve.findings import Level
from concurve.study import Claim, Study

Cell = dict[str, Level]


class ClaimTest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of what a kind needs; ``published`` is the source's figure, shown beside ours."""

    published: float | None = None
    indicator: str = "wall_seconds"


class Ratio(ClaimTest, frozen=True, kw_only=True):
    """``indicator`` in cell ``of`` over that in cell ``over``, against bounds.

    ``speedup`` is the inverse for times: how many times as fast ``of`` is.
    """

    of: Cell
    over: Cell
    at_least: float | None = None
    at_most: float | None = None


class ConstantWithin(ClaimTest, frozen=True, kw_only=True):
    """Over all levels of ``factor`` in the cells ``where``, the means stay within the share
    ``within`` of their common mean."""

    factor: str
    within: float
    where: Cell = {}


class BestSetting(ClaimTest, frozen=True, kw_only=True):
    """The best level of ``factor`` in the cells ``where`` is one of ``among``."""

    factor: str
    among: tuple[Level, ...]
    where: Cell = {}


class Mapping_(ClaimTest, frozen=True, kw_only=True):  # noqa: N801
    """Each level of ``factor`` gives exactly this value of ``indicator``: ``table`` has pairs of
    level (as text) and value."""

    factor: str
    table: dict[str, float]
    where: Cell = {}


class Spread(ClaimTest, frozen=True, kw_only=True):
    """The coefficient of variation of ``indicator`` over the trials of cell ``of``."""

    of: Cell
    at_most: float | None = None
    at_least: float | None = None


class Order(ClaimTest, frozen=True, kw_only=True):
    """``cells`` stand in order, the best first."""

    cells: tuple[Cell, ...]


KINDS: dict[str, type[ClaimTest]] = {
    "speedup": Ratio,
    "ratio": Ratio,
    "constant_within": ConstantWithin,
    "best_setting": BestSetting,
    "mapping": Mapping_,
    "spread": Spread,
    "order": Order,
}


def parse_test(claim: Claim, where: str) -> ClaimTest:
    """What a claim's kind needs, typed.

    Raises:
        StudyError: an unknown kind, or keys that do not fit it.
    """
    if claim.kind not in KINDS:
        near = difflib.get_close_matches(claim.kind, KINDS, n=1)
        raise StudyError(
            f"{where}: claims {claim.id!r}: unknown kind {claim.kind!r}",
            f"did you mean {near[0]!r}?" if near else f"one of {', '.join(KINDS)}",
        )
    kind = KINDS[claim.kind]
    try:
        return msgspec.convert(claim.test, kind)
    except msgspec.ValidationError as error:
        raise StudyError(
            f"{where}: claims {claim.id!r}: {str(error).replace('Object', 'claim')}",
            f"a {claim.kind} has {', '.join(kind.__struct_fields__)}",
        ) from error


def check_claims(study: Study, where: str) -> None:
    """Refuse claims that no run could test: unknown kinds, factors or levels.

    Raises:
        StudyError: names the claim and the remedy.
    """
    factors = {factor.name for factor in study.factors}
    for claim in study.claims:
        test = parse_test(claim, where)
        for name in _factors_of(test):
            if name not in factors:
                near = difflib.get_close_matches(name, factors, n=1)
                raise StudyError(
                    f"{where}: claims {claim.id!r}: {name!r} is no factor",
                    f"did you mean {near[0]!r}?" if near else f"one of {', '.join(factors)}",
                )
        if isinstance(test, Ratio | Spread) and test.at_least is None and test.at_most is None:
            raise StudyError(
                f"{where}: claims {claim.id!r}: neither at_least nor at_most", "at_least = 1.9"
            )


def _factors_of(test: ClaimTest) -> list[str]:
    cells: list[Cell] = []
    names: list[str] = []
    for field in test.__struct_fields__:
        value = getattr(test, field)
        if field in ("of", "over", "where"):
            cells.append(value)
        elif field == "cells":
            cells.extend(value)
        elif field == "factor":
            names.append(value)
    return names + [name for cell in cells for name in cell]
