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

from concurve.analysis.samples import MissingError, Samples
from concurve.definition.claim_kinds import Cell, Ratio, parse_test
from concurve.definition.study import Claim, Study
from concurve.estimate import Estimate
from concurve.findings.claims import Dependence
from concurve.findings.run import Finding
from concurve.stats.blocks import Blocks, block_ratio, geometric_means, quotients
from concurve.stats.comparison import together
from concurve.terms import Level


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
    for claim in study.claims:
        test = parse_test(claim, "study")
        if isinstance(test, Ratio):
            columns = {factor: list(samples.levels(factor)) for factor in test.each}
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


def sentences(found: Sequence[Dependence]) -> Iterator[Finding]:
    """For each claim, the assumption that changes its ratio most, or that none does."""
    for says, group in itertools.groupby(found, key=lambda item: item.says):
        rows = list(group)
        sure = [item for item in rows if _is_significant(item.change)]
        ratios = [item.ratio.value for item in rows]
        span = f"{says} The ratio is {min(ratios):.3g} to {max(ratios):.3g}"
        if not sure:
            text = f"{span}, and no assumption changes it significantly."
        else:
            most = max(sure, key=lambda item: abs(math.log(_change(item))))
            text = (
                f"{span}; it depends most on {most.factor}: {_change(most):.3g} times as much at "
                f"{most.level} as at {_first(rows, most.factor).level}."
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
    settings = [
        dict(zip(others, levels, strict=True)) for levels in itertools.product(*others.values())
    ]
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
