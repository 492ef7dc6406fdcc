"""Published figures beside the new ones: ratios against a base cell, never absolute times. Pure.

A machine of today is many times as fast as that of a source, so its times say nothing about
ours. What can be compared is the ratio of a figure to that of a base cell, each on its own
machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from concurve.analysis.samples import MissingError, Samples
from concurve.definition.published import PublishedFigure
from concurve.definition.study import Study
from concurve.estimate import Estimate
from concurve.findings.published import Agreement, PublishedComparison, PublishedTable
from concurve.stats.centre import centre, staged
from concurve.stats.serial import stretched
from concurve.stats.signed_ranks import ranked
from concurve.terms import Level


class _Measured(NamedTuple):
    """Our figures: the values of the cells, and the levels of factors that a source leaves open."""

    samples: Samples
    first: Mapping[str, Level]
    unit_of: Callable[[str], str]

    def values(
        self, parameters: Mapping[str, Level], indicator: str, called: str = "the cell"
    ) -> Sequence[float]:
        """Return the values of a cell.

        Raises:
            MissingError: the cell has none. The error names the cell as ``called``, so that
                figures with the same reason have the same text.
        """
        try:
            return self.samples.values({**self.first, **parameters}, indicator)
        except MissingError as missing:
            raise MissingError(missing.reason, called) from missing

    def ratio(
        self, top: Mapping[str, Level], bottom: Mapping[str, Level], indicator: str
    ) -> Estimate | None:
        """One cell over another."""
        return self.samples.ratio({**self.first, **top}, {**self.first, **bottom}, indicator)

    def difference(
        self, top: Mapping[str, Level], bottom: Mapping[str, Level], indicator: str
    ) -> Estimate:
        """One cell less another, over their common blocks.

        Raises:
            MissingError: no block holds both.
        """
        cells = {**self.first, **top}, {**self.first, **bottom}
        above, below = (self.samples.by_block(cell, indicator) for cell in cells)
        apart = [above[block] - below[block] for block in sorted(above.keys() & below.keys())]
        if not apart:
            raise MissingError("has no block in common with its base", "the cell")
        off = sum(self.samples.resolution(cell, indicator) for cell in cells)
        found = ranked(stretched(apart), off)
        if found is None:
            return Estimate(value=apart[0], n=1)
        low, high = found.interval(staged(0.95, self.samples.is_staged))
        return Estimate(value=found.value, low=low, high=high, n=len(apart))


class _Answer(NamedTuple):
    verdict: Agreement
    reason: str
    published: float | None = None
    ours: Estimate | None = None


def published_tables(
    study: Study, samples: Samples, first: Mapping[str, Level]
) -> tuple[PublishedTable, ...]:
    """Every published figure of a study with its counterpart, by table, in the source's order.

    ``first`` has the first level of each factor: what a cell is looked for at where the source
    names none.
    """
    measured = _Measured(samples, first, study.unit_of)
    numbers = dict.fromkeys(figure.table for figure in study.published)
    return tuple(
        _table(number, [f for f in study.published if f.table == number], measured)
        for number in numbers
    )


def _table(number: str, figures: Sequence[PublishedFigure], measured: _Measured) -> PublishedTable:
    def first(texts: list[str]) -> str:
        return next(filter(None, texts), "")

    return PublishedTable(
        number=number,
        title=first([f.title for f in figures]),
        rows=tuple(dict.fromkeys(f.row for f in figures)),
        columns=tuple(dict.fromkeys(f.column for f in figures)),
        figures=tuple(_compared(figure, measured) for figure in figures),
        figure=first([f.figure for f in figures]),
        figure_title=first([f.figure_title for f in figures]),
    )


def _compared(figure: PublishedFigure, measured: _Measured) -> PublishedComparison:
    try:
        answer = _WAYS[figure.compare](figure, measured)
    except MissingError as missing:
        answer = _Answer("not comparable", str(missing), _published(figure))
    return PublishedComparison(
        row=figure.row,
        column=figure.column,
        printed=figure.printed,
        unit=figure.unit,
        indicator=figure.indicator,
        parameters=figure.parameters,
        base=figure.base_parameters if figure.compare != "none" else {},
        compare=figure.compare,
        verdict=answer.verdict,
        reason=answer.reason,
        published=answer.published,
        ours=answer.ours,
    )


# -- one function for each way of comparing --------------------------------------------------------


def _ratio(figure: PublishedFigure, measured: _Measured) -> _Answer:
    """The figure over that of its base."""
    if _is_base(figure):
        return _base(figure, measured, 1.0)
    return _judged(figure, _ratio_of(figure, measured), _published(figure))


def _factor(figure: PublishedFigure, measured: _Measured) -> _Answer:
    """The ratio that is above 1 if the cell is better than its base. The source printed this
    ratio, or the improvement in percent."""
    if _is_base(figure):
        return _base(figure, measured, 1.0)
    inverse = measured.samples.better(figure.indicator) != "higher"
    return _judged(figure, _ratio_of(figure, measured, inverse), _published(figure))


def _difference(figure: PublishedFigure, measured: _Measured) -> _Answer:
    """The figure minus that of its base, for counts that start from another number."""
    if _is_base(figure):
        return _base(figure, measured, 0.0)
    _values(figure, measured)  # raises where a cell has none
    ours = measured.difference(figure.parameters, figure.base_parameters, figure.indicator)
    return _judged(figure, msgspec.structs.replace(ours, unit=figure.unit), _published(figure))


def _order(figure: PublishedFigure, measured: _Measured) -> _Answer:
    """Whether the figure lies below, at or above its base. Nothing else can be compared if two
    systems have different scales, such as priorities."""
    own, base = _values(figure, measured)
    ours = Estimate(value=centre(own), n=len(own), min=min(own), max=max(own))
    if _is_base(figure):
        return _Answer("base", "the others are relative to it", figure.value, ours)
    assert figure.base_value is not None
    theirs = _side(figure.value, figure.base_value)
    sides = {_side(value, other) for value in own for other in base}
    if len(sides) > 1:
        return _Answer("undecided", "trials lie on both sides of the base", figure.value, ours)
    side = sides.pop()
    reason = f"{theirs} its base in the source, {side} it here"
    return _Answer("agrees" if side == theirs else "differs", reason, figure.value, ours)


def _side(value: float, base: float) -> str:
    return "at" if value == base else "below" if value < base else "above"


def _beside(figure: PublishedFigure, measured: _Measured) -> _Answer:
    """The source's figure alone, or ours beside it where one is measured."""
    if not figure.indicator or not figure.parameters:
        return _Answer("not comparable", "nothing is measured for it here")
    values = measured.values(figure.parameters, figure.indicator)
    value = centre(values)
    unit = measured.unit_of(figure.indicator)
    ours = Estimate(value=value, n=len(values), unit=unit, min=min(values), max=max(values))
    return _Answer("not comparable", "side by side only: the scales differ", None, ours)


_WAYS: dict[str, Callable[[PublishedFigure, _Measured], _Answer]] = {
    "ratio": _ratio,
    "factor": _factor,
    "improvement": _factor,
    "difference": _difference,
    "order": _order,
    "none": _beside,
}


def _is_base(figure: PublishedFigure) -> bool:
    return figure.base_parameters == figure.parameters


def _base(figure: PublishedFigure, measured: _Measured, exactly: float) -> _Answer:
    """The base itself: there is nothing to compare, but it must have been measured."""
    own, _ = _values(figure, measured)
    ours = Estimate(value=exactly, low=exactly, high=exactly, n=len(own))
    return _Answer("base", "the others are relative to it", exactly, ours)


def _published(figure: PublishedFigure) -> float | None:
    """The published figure relative to its base, or as printed where the two are not related."""
    if figure.compare in ("factor", "order"):
        return figure.value
    if figure.compare == "improvement":
        return 1 + figure.value / 100
    if figure.base_value is None:
        return None
    if figure.compare == "difference":
        return figure.value - figure.base_value
    return figure.value / figure.base_value if figure.compare == "ratio" else None


def _ratio_of(figure: PublishedFigure, measured: _Measured, inverse: bool = False) -> Estimate:
    _values(figure, measured)  # raises where a cell has none
    cells = (figure.parameters, figure.base_parameters)
    top, bottom = reversed(cells) if inverse else cells
    estimate = measured.ratio(top, bottom, figure.indicator)
    if estimate is None:
        raise MissingError(f"{figure.indicator} is 0 in one of the cells, so there is no ratio")
    return estimate


def _values(
    figure: PublishedFigure, measured: _Measured
) -> tuple[Sequence[float], Sequence[float]]:
    return (
        measured.values(figure.parameters, figure.indicator),
        measured.values(figure.base_parameters, figure.indicator, "the base"),
    )


def _judged(figure: PublishedFigure, ours: Estimate, published: float | None) -> _Answer:
    """``agrees`` if the whole interval lies within the tolerance, ``differs`` if it lies
    outside."""
    if published is None:
        return _Answer("not comparable", "the source has no figure of the base", None, ours)
    tolerance = _tolerance(figure, published)
    low, high = published - tolerance, published + tolerance
    within = f"within {low:.3g} to {high:.3g}"
    if ours.low is None or ours.high is None:
        return _Answer("undecided", "one trial has no interval", published, ours)
    if low <= ours.low and ours.high <= high:
        return _Answer("agrees", f"the whole interval lies {within}", published, ours)
    if ours.high < low or ours.low > high:
        return _Answer("differs", f"none of the interval lies {within}", published, ours)
    return _Answer("undecided", f"the interval lies only partly {within}", published, ours)


def _tolerance(figure: PublishedFigure, published: float) -> float:
    """The tolerance, and what the source's rounding leaves open."""
    if figure.compare == "difference":
        return max(figure.tolerance * abs(published), figure.rounding)
    if figure.compare == "factor":
        return figure.tolerance * abs(published) + figure.rounding
    if figure.compare == "improvement":
        return figure.tolerance * abs(published) + figure.rounding / 100
    assert figure.base_value is not None
    rounded = figure.rounding * (1 + abs(published)) / abs(figure.base_value)
    return figure.tolerance * abs(published) + rounded
