"""On which of its assumptions an answer of a simulation depends, and how much. Pure.

A claim on a ratio that is judged at each level of several assumptions has a verdict for each
setting. This module looks at each assumption alone: it takes the ratio at each of its levels, as
the geometric mean over all settings of the others, and divides it by the ratio at the first level.
All cells of a block share their random draws, so both are computed block by block.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from concurve.analysis.samples import MissingError, Samples
from concurve.definition.claim_kinds import Cell, Ratio, parse_test
from concurve.definition.study import Claim, Study
from concurve.estimate import Estimate
from concurve.findings.claims import Dependence
from concurve.findings.run import Finding
from concurve.stats.intervals import paired_ratio
from concurve.terms import Level

#: A change is reported if its whole interval lies on one side of 1.
_NONE = 1.0


class _Sides(NamedTuple):
    """The geometric means of the indicator in the ratio's numerator and denominator, by block."""

    above: Mapping[int, float]
    below: Mapping[int, float]


def dependences(study: Study, samples: Samples) -> tuple[Dependence, ...]:
    """The dependence of each claim on a ratio, on each assumption with several levels in this run.
    Empty if the study is no simulation; a claim with a missing cell is left out."""
    if not study.simulation:
        return ()
    found = []
    for claim in study.claims:
        test = parse_test(claim, "study")
        if isinstance(test, Ratio):
            columns = {factor: list(samples.levels(factor)) for factor in test.each}
            for factor, levels in columns.items():
                if len(levels) > 1:
                    found += _of(claim, test, columns, factor, samples)
    return tuple(found)


def sentences(found: Sequence[Dependence]) -> Iterator[Finding]:
    """For each claim, the assumption that changes its ratio most, or that none does."""
    for says, group in itertools.groupby(found, key=lambda item: item.says):
        rows = list(group)
        sure = [item for item in rows if item.change is not None and _is_sure(item)]
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
) -> list[Dependence]:
    others = {name: levels for name, levels in columns.items() if name != factor}
    settings = [
        dict(zip(others, levels, strict=True)) for levels in itertools.product(*others.values())
    ]
    found: list[Dependence] = []
    first: _Sides | None = None
    for level in columns[factor]:
        try:
            here = _sides(test, [{**setting, factor: level} for setting in settings], samples)
        except MissingError:
            return []
        ratio = _paired(here.above, here.below, samples)
        if ratio is None:
            return []
        first = first or here
        change = None if first is here else _paired(_ratios(here), _ratios(first), samples)
        found.append(
            Dependence(
                claim=claim.id,
                says=claim.says,
                factor=factor,
                level=level,
                settings=len(settings),
                ratio=ratio,
                change=change,
            )
        )
    return found


def _sides(test: Ratio, settings: Sequence[Cell], samples: Samples) -> _Sides:
    return _Sides(*(_means(cell, settings, test.indicator, samples)
                    for cell in (test.of, test.over)))  # fmt: skip


def _means(
    cell: Cell, settings: Sequence[Cell], indicator: str, samples: Samples
) -> dict[int, float]:
    """Geometric means over the settings, for each block that has all settings."""
    columns = [samples.by_block({**cell, **setting}, indicator) for setting in settings]
    blocks = set.intersection(*(set(column) for column in columns))
    if not blocks or min(column[block] for column in columns for block in blocks) <= 0:
        raise MissingError("no block has all settings")
    return {
        block: math.exp(sum(math.log(column[block]) for column in columns) / len(columns))
        for block in blocks
    }


def _ratios(sides: _Sides) -> dict[int, float]:
    both = sides.above.keys() & sides.below.keys()
    return {block: sides.above[block] / sides.below[block] for block in both}


def _paired(
    above: Mapping[int, float], below: Mapping[int, float], samples: Samples
) -> Estimate | None:
    both = sorted(above.keys() & below.keys())
    return paired_ratio(
        [above[block] for block in both], [below[block] for block in both], pilot=samples.pilot
    )


def _is_sure(item: Dependence) -> bool:
    change = item.change
    if change is None or change.low is None or change.high is None:
        return False
    return change.low > _NONE or change.high < _NONE


def _change(item: Dependence) -> float:
    assert item.change is not None
    return item.change.value


def _first(rows: Sequence[Dependence], factor: str) -> Dependence:
    return next(item for item in rows if item.factor == factor)
