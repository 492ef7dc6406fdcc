"""The options of a comparison, and the indicators that they name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from concurve.analysis.comparison.sides import Side
from concurve.analysis.ranked import ranked_of
from concurve.definition.indicators_meant import indicator_meant
from concurve.errors import ComparisonError
from concurve.findings.run import TrialFindings
from concurve.stats.comparison import EFFECT
from concurve.terms import IndicatorInfo


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
    """The indicators to compare: those that the options name, else the one by which the runs
    compare their settings."""
    infos = []
    for name in options.indicators or (_ranked(sides),):
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


def _ranked(sides: tuple[Side, Side]) -> str:
    """The figure by which the runs compare their settings, those of the new side first."""
    runs = [run for side in reversed(sides) for run in side.sessions]
    return ranked_of(runs, TrialFindings.has_measured)


def compares_nothing(sides: tuple[Side, Side], infos: Sequence[IndicatorInfo]) -> Iterator[str]:
    """Warnings that a run recommends no setting by an indicator that is compared, and why."""
    for info in infos:
        runs = {run.run.id: run for side in sides for run in side.sessions}
        for name, run in runs.items():
            if run.withheld.figures and info.name in run.withheld.indicators:
                yield (
                    f"{info.label or info.name} may compare nothing in run {name}: "
                    f"{run.withheld.figures}; another figure: --indicator NAME"
                )


def _info(run: TrialFindings, name: str) -> IndicatorInfo:
    have = dict.fromkeys(known for dot in run.dots for known in dot.values)
    if name not in have:
        derived = any(name in cell.indicators for cell in run.cells)
        raise ComparisonError(
            f"run {run.run.id}: {name} is derived, not measured"
            if derived
            else f"run {run.run.id}: no trial has the indicator {name!r}",
            "--indicator wall_seconds" if derived else indicator_meant(name, have),
        )
    return run.indicator(name)


def indicators_beside(
    sides: tuple[Side, Side], name: str, asked: Sequence[IndicatorInfo]
) -> tuple[IndicatorInfo, ...]:
    """An indicator that stands beside those asked for, where all runs have it in one unit and a
    direction; nothing where it is among them."""
    if name in {info.name for info in asked}:
        return ()
    # Most runs lack most of them: a refusal would look for the name that was meant.
    if not all(run.has_measured(name) for side in sides for run in side.sessions):
        return ()
    try:
        return indicators_of(sides, Options(indicators=(name,)))
    except ComparisonError:
        return ()
