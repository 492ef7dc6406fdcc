"""The kinds of claims: the typed keys of each, and the checks that need no run."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

import msgspec

from concurve.definition.levels import levels_meant, parse_level
from concurve.definition.measured import better_of
from concurve.definition.near_keys import remedy_for
from concurve.definition.origins import Origins
from concurve.definition.study import Claim, Study
from concurve.errors import StudyError
from concurve.terms import Level
from concurve.words import meant

Cell = dict[str, Level]

_UNKNOWN = re.compile(r"Object contains unknown field `(?P<key>[^`]*)`(?: - at `\$.?(?P<at>.*)`)?")


class Needs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What must differ before a claim can be decided at all: the greatest figure of the ``cells``
    lies above the least one by more than the share ``differ_by``.

    A comparison that shows no difference says something only where it could have shown one (assay
    sensitivity: ICH E10, 2000, section 1.5).
    """

    cells: tuple[Cell, ...]
    differ_by: float


class ClaimTest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of the kinds of claims; ``published`` is the source's figure, shown beside ours.

    A claim is judged at each level of the factors ``each``, with a verdict for every one; as a
    table ``each`` names the levels, none for all. ``needs``: cells whose figures of ``indicator``
    must differ; where they are alike, the claim cannot be decided. ``exact``: the kind is about
    readings that no other process on the machine can change, such as a priority;
    :mod:`concurve.analysis.doubt` leaves its verdicts as they are. ``ranks``: the kind asks which
    is better, so its indicator needs a better direction.
    """

    exact: ClassVar[bool] = False
    ranks: ClassVar[bool] = False

    published: float | None = None
    indicator: str = "wall_seconds"
    each: tuple[str, ...] | dict[str, tuple[Level, ...]] = ()
    needs: Needs | None = None


class Bounded(ClaimTest, frozen=True, kw_only=True):
    """Base of what a kind with bounds needs; one of the two must be given."""

    at_least: float | None = None
    at_most: float | None = None


class Ratio(Bounded, frozen=True, kw_only=True):
    """``indicator`` in cell ``of`` over that in cell ``over``, against bounds."""

    of: Cell
    over: Cell


class Speedup(Ratio, frozen=True, kw_only=True):
    """How many times as good ``of`` is as ``over``: the ratio, or its inverse where lower is
    better."""

    ranks: ClassVar[bool] = True


class RatioOfIndicators(Bounded, frozen=True, kw_only=True):
    """``indicator`` in cell ``of`` over another one, ``over_indicator``, in cell ``over``: the
    worst client here over the mean of all clients there. Both have one unit."""

    of: Cell
    over: Cell
    over_indicator: str


class ConstantWithin(ClaimTest, frozen=True, kw_only=True):
    """Over all levels of ``factor`` in the cells ``where``, the greatest figure less the least one,
    over the least one, is at most the share ``within``: the variation ("Schwankung") of
    document 002."""

    factor: str
    within: float
    where: Cell = {}


class Steadier(ClaimTest, frozen=True, kw_only=True):
    """Over all levels of ``factor``, the figures vary less in the cells ``of`` than in the cells
    ``over``: the greatest less the least, over the least."""

    factor: str
    of: Cell
    over: Cell


class Figure(Bounded, frozen=True, kw_only=True):
    """``indicator`` in cell ``of``, in its own unit, against bounds."""

    of: Cell


class BestSetting(ClaimTest, frozen=True, kw_only=True):
    """The best level of ``factor`` in the cells ``where`` is one of ``among``."""

    ranks: ClassVar[bool] = True

    factor: str
    among: tuple[Level, ...]
    where: Cell = {}


class BestRatio(Bounded, frozen=True, kw_only=True):
    """The best figure of ``indicator`` over the levels of ``factor`` in the cells ``of``, over the
    best one in the cells ``over``, or over the figure ``over_value`` of the source."""

    ranks: ClassVar[bool] = True

    factor: str
    of: Cell
    over: Cell | None = None
    over_value: float | None = None


class Mapping_(ClaimTest, frozen=True, kw_only=True):  # noqa: N801
    """Each level of ``factor`` gives exactly this value of ``indicator``: ``table`` has pairs of
    level (as text) and value."""

    exact: ClassVar[bool] = True

    factor: str
    table: dict[str, float]
    where: Cell = {}


class Spread(Bounded, frozen=True, kw_only=True):
    """The coefficient of variation of ``indicator`` over the trials of cell ``of``."""

    of: Cell


class Order(ClaimTest, frozen=True, kw_only=True):
    """``cells`` stand in order, the best first."""

    ranks: ClassVar[bool] = True

    cells: tuple[Cell, ...]


class RatioOfRatios(Bounded, frozen=True, kw_only=True):
    """``indicator`` in cell ``of`` over that in cell ``over``, against the same ratio of the cells
    ``than_of`` and ``than_over``: how many times as strong an effect is here as there."""

    of: Cell
    over: Cell
    than_of: Cell
    than_over: Cell


class Step(Bounded, frozen=True, kw_only=True):
    """The exact reading of ``indicator`` in cell ``of`` minus that in cell ``over``."""

    exact: ClassVar[bool] = True

    of: Cell
    over: Cell


class RatioOfSteps(Bounded, frozen=True, kw_only=True):
    """The step of the exact readings of ``indicator`` from cell ``over`` to cell ``of``, over that
    from ``than_over`` to ``than_of``: how many times as far it goes."""

    exact: ClassVar[bool] = True

    of: Cell
    over: Cell
    than_of: Cell
    than_over: Cell


class Same(ClaimTest, frozen=True, kw_only=True):
    """The exact reading of ``indicator`` is the same at all levels of ``factor``, or at those
    ``among`` them."""

    exact: ClassVar[bool] = True

    factor: str
    among: tuple[Level, ...] = ()
    where: Cell = {}


class Linear(ClaimTest, frozen=True, kw_only=True):
    """The exact readings of ``indicator`` over the levels of ``factor``, which are numbers, lie
    within ``within`` of a straight line that is not level."""

    exact: ClassVar[bool] = True

    factor: str
    within: float = 0.5
    where: Cell = {}


class Distinct(Bounded, frozen=True, kw_only=True):
    """How many different exact readings of ``indicator`` the levels of ``factor`` give."""

    exact: ClassVar[bool] = True

    factor: str
    where: Cell = {}


class Overlap(ClaimTest, frozen=True, kw_only=True):
    """Some exact reading of ``indicator`` is reached at two levels of ``factor`` at least (of
    those ``among`` them), over all levels of ``across``."""

    exact: ClassVar[bool] = True

    factor: str
    across: str
    among: tuple[Level, ...] = ()
    where: Cell = {}


class Untestable(ClaimTest, frozen=True, kw_only=True):
    """No machine of today can test it; ``reason`` says why."""

    reason: str


KINDS: dict[str, type[ClaimTest]] = {
    "speedup": Speedup,
    "ratio": Ratio,
    "ratio_of_indicators": RatioOfIndicators,
    "constant_within": ConstantWithin,
    "steadier": Steadier,
    "figure": Figure,
    "best_setting": BestSetting,
    "best_ratio": BestRatio,
    "mapping": Mapping_,
    "spread": Spread,
    "order": Order,
    "ratio_of_ratios": RatioOfRatios,
    "step": Step,
    "ratio_of_steps": RatioOfSteps,
    "same": Same,
    "linear": Linear,
    "distinct": Distinct,
    "overlap": Overlap,
    "untestable": Untestable,
}


#: Fields that name a cell, those that name several cells, and those that name a factor.
_CELL_FIELDS = ("of", "over", "than_of", "than_over", "where")
_CELLS_FIELDS = ("cells",)
_FACTOR_FIELDS = ("factor", "across")


def at_levels(test: ClaimTest, levels: Cell) -> ClaimTest:
    """The test with every cell that it names narrowed to ``levels``."""
    narrowed = _with_cells(test, lambda cell: {**cell, **levels})
    return msgspec.structs.replace(narrowed, each=())


def with_levels_meant(test: ClaimTest, factors: Mapping[str, Sequence[Level]]) -> ClaimTest:
    """The test with every level that it names as its factor has it: ``1.0`` of ``1`` is 1."""

    def meant_of(factor: str, level: Level) -> Level:
        return levels_meant({factor: level}, factors)[factor]

    changed: dict[str, object] = {}
    if isinstance(test.each, dict):
        changed["each"] = {
            factor: tuple(meant_of(factor, level) for level in levels)
            for factor, levels in test.each.items()
        }
    if isinstance(test, BestSetting | Same | Overlap):
        changed["among"] = tuple(meant_of(test.factor, level) for level in test.among)
    if isinstance(test, Mapping_):
        changed["table"] = {
            str(meant_of(test.factor, parse_level(level))): value
            for level, value in test.table.items()
        }
    found = _with_cells(test, lambda cell: levels_meant(cell, factors))
    return msgspec.structs.replace(found, **changed)


def _with_cells(test: ClaimTest, change: Callable[[Cell], Cell]) -> ClaimTest:
    """The test with every cell that it names changed."""
    changed: dict[str, object] = {}
    for field in test.__struct_fields__:
        value = getattr(test, field)
        if field in _CELL_FIELDS and value is not None:
            changed[field] = change(value)
        elif field in _CELLS_FIELDS:
            changed[field] = tuple(map(change, value))
        elif isinstance(value, Needs):
            cells = tuple(map(change, value.cells))
            changed[field] = msgspec.structs.replace(value, cells=cells)
    return msgspec.structs.replace(test, **changed)


def parse_test(claim: Claim, where: str) -> ClaimTest:
    """The keys of a claim as the type of its kind.

    Raises:
        StudyError: an unknown kind, or keys that do not fit it.
    """
    if claim.kind not in KINDS:
        raise StudyError(
            f"{where}: claims {claim.id!r}: unknown kind {claim.kind!r}",
            meant(claim.kind, KINDS),
        )
    kind = KINDS[claim.kind]
    try:
        return msgspec.convert(claim.test, kind)
    except msgspec.ValidationError as error:
        place = f"{where}: claims {claim.id!r}"
        if match := _UNKNOWN.fullmatch(str(error)):
            table: type[msgspec.Struct] = Needs if match["at"] == "needs" else kind
            raise StudyError(
                f"{place}: a {claim.kind} has no key {match['key']!r}",
                remedy_for(match["key"], table.__struct_encode_fields__),
            ) from error
        raise StudyError(
            f"{place}: {str(error).replace('Object', 'claim')}",
            f"a {claim.kind} has {', '.join(kind.__struct_fields__)}",
        ) from error


def check_claims(study: Study, origins: Origins) -> None:
    """Refuse claims that no run could test: unknown kinds or factors, no bounds, no direction.

    Raises:
        StudyError: names the claim and the remedy.
    """
    factors = {factor.name: factor.levels for factor in study.factors}
    for claim in study.claims:
        where = origins.of("claims", claim.id)
        test = with_levels_meant(parse_test(claim, where), factors)
        for name in _factors_of(test):
            if name not in factors:
                raise StudyError(
                    f"{where}: claims {claim.id!r}: {name!r} is no factor",
                    meant(name, factors),
                )
        if isinstance(test, Bounded):
            _check_bounds(test, f"{where}: claims {claim.id!r}")
        if test.ranks and better_of(study, test.indicator) == "neither":
            raise StudyError(
                f"{where}: claims {claim.id!r}: a {claim.kind} asks which is better, but "
                f"{test.indicator} has no better direction",
                f'[[indicators]] name = "{test.indicator}" with better = "lower" or "higher"',
            )
        if isinstance(test, BestRatio) and (test.over is None) == (test.over_value is None):
            raise StudyError(
                f"{where}: claims {claim.id!r}: needs either over or over_value",
                "over = { cpus = 1 }, or over_value = 0.255",
            )
        if isinstance(test, BestRatio) and test.over_value is not None:
            _check_value(test.over_value, f"{where}: claims {claim.id!r}")
        _check_itself(test, f"{where}: claims {claim.id!r}")
        if test.needs is not None:
            _check_needs(test, test.needs, f"{where}: claims {claim.id!r}: needs")


def _check_bounds(test: Bounded, where: str) -> None:
    if test.at_least is None and test.at_most is None:
        raise StudyError(f"{where}: neither at_least nor at_most", "at_least = 1.9")
    if test.at_least is not None and test.at_most is not None and test.at_least > test.at_most:
        raise StudyError(
            f"{where}: no figure is at least {test.at_least:g} and at most {test.at_most:g}",
            f"at_least = {test.at_most:g}, at_most = {test.at_least:g}",
        )


def _check_value(value: float, where: str) -> None:
    if not 0 < value < math.inf:
        raise StudyError(
            f"{where}: over_value: there is no ratio to {value:g}",
            "the figure of the source, above 0",
        )


def _check_itself(test: ClaimTest, where: str) -> None:
    """Refuse a claim whose verdict follows from its own words, whatever is measured."""
    if isinstance(test, BestSetting) and not test.among:
        raise StudyError(f"{where}: among has no level, and one of them is the best", "among = [4]")
    if isinstance(test, Order) and len(
        {msgspec.json.encode(cell, order="sorted") for cell in test.cells}
    ) < max(2, len(test.cells)):
        raise StudyError(
            f"{where}: cells: two different ones at least stand in order", "other cells"
        )
    if isinstance(test, Same) and len(test.among) == 1:
        raise StudyError(f"{where}: among has one level, which is the same as itself", "two levels")
    if isinstance(test, Mapping_) and not test.table:
        raise StudyError(f"{where}: table has no level", 'table = { "1" = 5 }')
    for field, cell in _cells_of(test):
        for factor in test.each:
            if factor in cell:
                raise StudyError(
                    f"{where}: {field} names {factor}, and each takes every level of it in its "
                    "place",
                    f"no {factor} in {field}, or none in each",
                )
        for name in _FACTOR_FIELDS:
            if getattr(test, name, None) in cell:
                raise StudyError(
                    f"{where}: {field} names {getattr(test, name)}, all levels of which are "
                    f"compared: it is the {name}",
                    f"no {getattr(test, name)} in {field}",
                )
    compared = [("of", "over"), ("than_of", "than_over")]
    for one, other in compared:
        cells = getattr(test, one, None), getattr(test, other, None)
        is_other_figure = (
            isinstance(test, RatioOfIndicators) and test.over_indicator != test.indicator
        )
        if None not in cells and cells[0] == cells[1] and not is_other_figure:
            raise StudyError(
                f"{where}: {one} and {other} are the same cell, so there is nothing to compare",
                "another level in one of them",
            )


def _cells_of(test: ClaimTest) -> list[tuple[str, Cell]]:
    """The cells that a claim itself compares, with the names of their keys."""
    named = [(field, getattr(test, field, None)) for field in _CELL_FIELDS]
    found = [(field, cell) for field, cell in named if cell is not None]
    found += [(field, cell) for field in _CELLS_FIELDS for cell in getattr(test, field, ())]
    return found


def _check_needs(test: ClaimTest, needs: Needs, where: str) -> None:
    if test.exact or isinstance(test, Untestable):
        raise StudyError(
            f"{where}: a claim of its kind needs no other cells",
            "remove needs, or take a kind on figures that vary, such as ratio",
        )
    if len({msgspec.json.encode(cell, order="sorted") for cell in needs.cells}) < 2:
        raise StudyError(
            f"{where}: cells: at least two different ones are compared",
            'cells = [{ scheduler = "noop" }, { scheduler = "cfq" }]',
        )
    if not 0 < needs.differ_by < math.inf:
        raise StudyError(
            f"{where}: differ_by: {needs.differ_by:g} is no share above 0",
            "differ_by = 0.02, if figures that are less than 2 % apart count as alike",
        )


def _factors_of(test: ClaimTest) -> list[str]:
    cells: list[Cell] = []
    names: list[str] = []
    for field in test.__struct_fields__:
        value = getattr(test, field)
        if field in _CELL_FIELDS and value is not None:
            cells.append(value)
        elif field in _CELLS_FIELDS:
            cells.extend(value)
        elif isinstance(value, Needs):
            cells.extend(value.cells)
        elif field == "each":
            names.extend(value)
        elif field in _FACTOR_FIELDS:
            names.append(value)
    return names + [name for cell in cells for name in cell]
