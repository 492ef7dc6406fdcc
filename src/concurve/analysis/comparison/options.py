"""The options of a comparison, and the indicators that they name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from concurve.analysis.comparison.sides import Side
from concurve.errors import ComparisonError
from concurve.findings.run import TrialFindings
from concurve.stats.comparison import EFFECT
from concurve.terms import IndicatorInfo
from concurve.words import meant


class Options(NamedTuple):
    """What to compare, and which difference counts. ``better`` is for indicators that have no
    direction of their own. ``in_doubt``: trials of a machine that was not quiet are judged as any
    others. The method is none of the options: the sides set it."""

    indicators: tuple[str, ...] = ()
    effect: float = EFFECT
    better: str = ""
    across_machines: bool = False
    in_doubt: bool = False


DEFAULTS = Options()


def indicators_of(sides: tuple[Side, Side], options: Options) -> tuple[IndicatorInfo, ...]:
    """The indicators to compare: those that the options name, else the primary one."""
    infos = []
    for name in options.indicators or (sides[1].sessions[0].primary,):
        found = [_info(run, name) for side in sides for run in side.sessions]
        units = list(dict.fromkeys(info.unit for info in found))
        if len(units) > 1:
            raise ComparisonError(
                f"{name} has different units: {' and '.join(unit or 'none' for unit in units)}",
                "the same unit on both sides, or another --indicator",
            )
        better = options.better or found[-1].better
        if better == "neither":
            raise ComparisonError(
                f"{name} has no better direction, so nothing is faster or slower by it",
                "--better lower or --better higher",
            )
        infos.append(msgspec.structs.replace(found[-1], better=better))
    return tuple(infos)


def _info(run: TrialFindings, name: str) -> IndicatorInfo:
    have = dict.fromkeys(known for dot in run.dots for known in dot.values)
    if name not in have:
        derived = any(name in cell.indicators for cell in run.cells)
        raise ComparisonError(
            f"run {run.run.id}: {name} is derived, not measured"
            if derived
            else f"run {run.run.id}: no trial has the indicator {name!r}",
            "--indicator wall_seconds" if derived else meant(name, have),
        )
    return run.indicator(name)


def indicators_beside(
    sides: tuple[Side, Side], name: str, asked: Sequence[IndicatorInfo]
) -> tuple[IndicatorInfo, ...]:
    """An indicator that stands beside those asked for, where all runs have it in one unit and a
    direction; nothing where it is among them."""
    if name in {info.name for info in asked}:
        return ()
    try:
        return indicators_of(sides, Options(indicators=(name,)))
    except ComparisonError:
        return ()
