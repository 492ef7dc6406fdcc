"""On which of its assumptions an answer of a simulation depends, and how much. Pure.

A claim on a ratio that is judged at each level of several assumptions has a verdict for each
setting. This module looks at each assumption alone: it takes the ratio at each of its levels, as
the geometric mean over all settings of the others, and divides it by the ratio at the first level.
All cells of a block share their random draws, so both are computed block by block. The changes of
all claims hold together with 95 % (:func:`~concurve.stats.comparison.together`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from concurve.analysis.claims.parsed import tests_of
from concurve.analysis.samples import MissingError, Samples
from concurve.definition.claim_kinds import Cell, Ratio
from concurve.definition.study import Claim, Study
from concurve.estimate import Estimate
from concurve.findings.claims import AssumedRatio, Dependence
from concurve.findings.run import Finding
from concurve.stats.blocks import Blocks, block_ratio, geometric_means, quotients
from concurve.stats.comparison import together
from concurve.terms import Level

Each = Sequence[str] | Mapping[str, Sequence[Level]]
"""The factors at whose levels a claim is judged; as a mapping with these levels, none for all."""


class _Sides(NamedTuple):
    """The geometric means of the indicator in the ratio's numerator and denominator, by block."""

    above: Blocks
    below: Blocks


class _Compared(NamedTuple):
    """A dependence without its change; and the ratios of its level and of the first one, by block,
    whose ratio that is. The first level has none."""

    item: Dependence
    here: Blocks
    first: Blocks | None
    is_staged: bool

    def change(self, confidence: float) -> Estimate | None:
        """The change at a confidence."""
        if self.first is None:
            return None
        return block_ratio(self.here, self.first, confidence, self.is_staged)


def dependences(study: Study, samples: Samples) -> tuple[Dependence, ...]:
    """The dependence of each claim on a ratio, on each assumption with several levels in this run.
    Empty if the study is no simulation; a claim with a missing cell is left out."""
    if not study.simulation:
        return ()
    found: list[_Compared] = []
    for claim, test in tests_of(study, samples):
        if isinstance(test, Ratio):
            columns = _columns(test.each, samples)
            for factor, levels in columns.items():
                if len(levels) > 1:
                    found += _of(claim, test, columns, factor, samples)
    tested = [index for index, one in enumerate(found) if one.first is not None]
    changes = together([found[index].change for index in tested], _is_significant)
    changed = dict(zip(tested, changes, strict=True))
    return tuple(
        msgspec.structs.replace(one.item, change=changed.get(index), family=len(tested))
        for index, one in enumerate(found)
    )


def assumed_ratios(study: Study, samples: Samples) -> tuple[AssumedRatio, ...]:
    """For each factor of which claims compare levels with one of them, the ratio of every other
    level of it to that one, at each level of each assumption with several in this run. Empty if the
    study is no simulation; what lacks a cell is left out. Of each comparison the assumption whose
    levels change a ratio most comes first."""
    if not study.simulation:
        return ()
    found: list[AssumedRatio] = []
    for compared in _comparisons(study, samples):
        columns = _columns(compared.each, samples)
        along = [
            list(_along(compared, columns, name, samples))
            for name in columns
            if len(columns[name]) > 1
        ]
        for ratios in sorted(along, key=_span, reverse=True):
            found += ratios
    return tuple(found)


def sentences(found: Sequence[Dependence]) -> Iterator[Finding]:
    """For each claim, the assumption that changes its ratio most, or that none does."""
    for says, group in itertools.groupby(found, key=lambda item: item.says):
        rows = list(group)
        sure = [item for item in rows if _is_significant(item.change)]
        ratios = [item.ratio.value for item in rows]
        span = f"Claim: {says} Here the ratio is {min(ratios):.3g} to {max(ratios):.3g}"
        if not sure:
            text = f"{span}, and no assumption changes it significantly."
        else:
            most = max(sure, key=lambda item: abs(math.log(_change(item))))
            text = (
                f"{span}; it depends most on {most.factor}: at {most.level} it is "
                f"{_change(most):.3g} times as large as at {_first(rows, most.factor).level}."
            )
        yield Finding(kind="answer", sentence=text)


def _of(
    claim: Claim,
    test: Ratio,
    columns: Mapping[str, Sequence[Level]],
    factor: str,
    samples: Samples,
) -> list[_Compared]:
    others = {name: levels for name, levels in columns.items() if name != factor}
    settings = _settings(others)
    found: list[_Compared] = []
    first: Blocks | None = None
    for level in columns[factor]:
        try:
            here = _sides(test, [{**setting, factor: level} for setting in settings], samples)
        except MissingError:
            return []
        ratio = block_ratio(here.above, here.below, is_staged=samples.is_staged)
        by_block = quotients(here.above, here.below)
        if ratio is None or by_block is None:
            return []
        item = Dependence(
            claim=claim.id,
            says=claim.says,
            factor=factor,
            level=level,
            settings=len(settings),
            ratio=ratio,
        )
        found.append(_Compared(item, by_block, first, samples.is_staged))
        first = first or by_block
    return found


def _sides(test: Ratio, settings: Sequence[Cell], samples: Samples) -> _Sides:
    return _Sides(*(_means(cell, settings, test.indicator, samples)
                    for cell in (test.of, test.over)))  # fmt: skip


def _means(cell: Cell, settings: Sequence[Cell], indicator: str, samples: Samples) -> Blocks:
    """Geometric means over the settings."""
    found = geometric_means(
        [samples.by_block({**cell, **setting}, indicator) for setting in settings]
    )
    if not found:
        raise MissingError(f"no block has {indicator} above 0 in all settings")
    return found


def _is_significant(change: Estimate | None) -> bool:
    """Does the whole interval of a change lie on one side of 1?"""
    if change is None or change.low is None or change.high is None:
        return False
    return change.low > 1 or change.high < 1


def _change(item: Dependence) -> float:
    assert item.change is not None
    return item.change.value


def _first(rows: Sequence[Dependence], factor: str) -> Dependence:
    return next(item for item in rows if item.factor == factor)


# -- ratios over an assumption ----------------------------------------------------------------


class _Comparison(NamedTuple):
    """What claims compare: levels of ``factor`` with its level ``base``, in the cells ``where``.
    ``published`` has the source's ratio of a level, ``differences`` the shares by which claims need
    cells to differ."""

    indicator: str
    factor: str
    base: Level
    where: Cell
    each: Each
    published: dict[Level, float]
    differences: list[float]


def _comparisons(study: Study, samples: Samples) -> list[_Comparison]:
    """The comparisons of a study, each once."""
    found: dict[tuple[str, ...], _Comparison] = {}
    for claim, test in tests_of(study, samples):
        if not isinstance(test, Ratio) or not test.each:
            continue
        varied = [name for name in test.of if test.of[name] != test.over.get(name)]
        if len(varied) != 1 or test.of.keys() != test.over.keys():
            continue
        (factor,) = varied
        where = {name: level for name, level in test.over.items() if name != factor}
        key = (test.indicator, factor, str(test.over[factor]), str(sorted(where.items())))
        compared = found.setdefault(
            key,
            _Comparison(
                indicator=test.indicator,
                factor=factor,
                base=test.over[factor],
                where=where,
                each=test.each,
                published={},
                differences=[],
            ),
        )
        if test.needs is not None:
            compared.differences.append(test.needs.differ_by)
        if test.published is not None and claim.kind == "ratio":
            compared.published[test.of[factor]] = test.published
    return list(found.values())


def _along(
    compared: _Comparison, columns: Mapping[str, Sequence[Level]], name: str, samples: Samples
) -> Iterator[AssumedRatio]:
    """The ratios of a comparison over the levels of one assumption."""
    for level in samples.levels(compared.factor):
        if level == compared.base:
            continue
        of = {**compared.where, compared.factor: level}
        over = {**compared.where, compared.factor: compared.base}
        for at in columns[name]:
            settings = _settings({**columns, name: [at]})
            try:
                above, below = (
                    _means(cell, settings, compared.indicator, samples) for cell in (of, over)
                )
            except MissingError:
                continue
            ratio = block_ratio(above, below, is_staged=samples.is_staged)
            if ratio is not None:
                yield AssumedRatio(
                    indicator=compared.indicator,
                    factor=compared.factor,
                    base=compared.base,
                    level=level,
                    assumption=name,
                    at=at,
                    settings=len(settings),
                    ratio=ratio,
                    published=compared.published.get(level),
                    alike_within=min(compared.differences, default=None),
                )


def _columns(each: Each, samples: Samples) -> dict[str, list[Level]]:
    """The levels at which a claim is judged, by factor."""
    named = each if isinstance(each, Mapping) else dict.fromkeys(each, ())
    return {name: list(levels or samples.levels(name)) for name, levels in named.items()}


def _settings(columns: Mapping[str, Sequence[Level]]) -> list[Cell]:
    """Every combination of the levels of some factors."""
    return [
        dict(zip(columns, levels, strict=True)) for levels in itertools.product(*columns.values())
    ]


def _span(ratios: Sequence[AssumedRatio]) -> float:
    """By how much a ratio changes at most over the levels of an assumption, as a logarithm."""
    logs: dict[Level, list[float]] = {}
    for item in ratios:
        logs.setdefault(item.level, []).append(math.log(item.ratio.value))
    return max((max(values) - min(values) for values in logs.values()), default=0.0)
