"""A comparison, as JSON."""

from __future__ import annotations

import math
from typing import Annotated, ClassVar

import msgspec
from msgspec.structs import asdict

from concurve.estimate import Estimate
from concurve.fields import Positive, about
from concurve.findings.claims import VerdictName
from concurve.findings.comparison import Alike, CellComparison, Change, Comparison
from concurve.terms import Level

FORMAT = 1


class Ratio(msgspec.Struct, frozen=True):
    """New over base, with the 95 % interval of this cell alone."""

    KEYWORDS: ClassVar = {"dependentRequired": {"low": ["high"], "high": ["low"]}}

    value: Annotated[float, about(exclusiveMinimum=0)]
    low: Annotated[float | msgspec.UnsetType, about(minimum=0)]
    high: float | msgspec.UnsetType
    n: Annotated[
        Positive, about("Trials of the side that has fewer; inside a run, blocks that hold both.")
    ]


class ComparedByCpuTime(msgspec.Struct, frozen=True):
    """A cell by CPU time, where its wall time is in doubt: of a program whose one thread
    computes."""

    verdict: Change
    ratio: Ratio


class ComparedCell(msgspec.Struct, frozen=True, omit_defaults=True):
    """A cell of both sides."""

    parameters: dict[str, Level]
    indicator: str
    verdict: Annotated[Change, about("Of all cells together, with a false discovery rate of 5 %.")]
    ratio: Ratio | msgspec.UnsetType = msgspec.UNSET
    base: Annotated[float | None, about("Median of the base.")] = None
    new: Annotated[float | None, about("Median of what is compared.")] = None
    note: str = ""
    trials: Annotated[
        Positive | None,
        about(
            "Trials of each, in a run planned for it, that show a difference of the effect with a "
            "power of 80 %, by the spread of this run's. It is no number of trials of this run "
            "(ratio.n), and stands beside verdicts that are decided, too."
        ),
    ] = None
    cpu_trials: Annotated[
        Positive | None, about("The same if CPU time is compared, which spreads less or more.")
    ] = None
    by_cpu_time: Annotated[
        ComparedByCpuTime | msgspec.UnsetType,
        about(
            "What CPU time says where the machine was not quiet and the wall time leaves open "
            "which is faster. This verdict counts for --fail-on."
        ),
    ] = msgspec.UNSET


class ComparedClaim(msgspec.Struct, frozen=True):
    """A claim of the study on two machines."""

    id: str
    says: str
    base: VerdictName
    new: VerdictName
    alike: Annotated[Alike, about("Supported on both, or refuted on both.")]


class ComparedIndicator(msgspec.Struct, frozen=True):
    """An indicator that both sides are compared by."""

    name: str
    unit: str
    better: Annotated[str, about(enum=["lower", "higher"])]


class ComparisonExport(msgspec.Struct, frozen=True):
    """Written by ``concurve compare --json``. A figure that is missing is left out; ``note`` gives
    the reason."""

    format: Annotated[int, about(const=FORMAT)]
    base: Annotated[str, about("The base: a run, several, or a level.")]
    new: Annotated[str, about("What is compared with the base.")]
    effect: Annotated[float, about("Share below which a difference is not relevant.")]
    method: Annotated[str, about(enum=["pairs", "ranks"])]
    indicators: list[ComparedIndicator]
    cells: list[ComparedCell]
    warnings: tuple[str, ...]
    advice: Annotated[tuple[str, ...], about("What would decide the undecided cells.")]
    claims: Annotated[
        list[ComparedClaim] | msgspec.UnsetType,
        about("The claims of the study, where the sides are of two machines."),
    ] = msgspec.UNSET
    run: Annotated[
        str | msgspec.UnsetType, about("The run inside of which levels are compared.")
    ] = msgspec.UNSET


def to_json(comparison: Comparison) -> bytes:
    """The comparison as JSON, as ``schema/compare.schema.json`` describes it."""
    return msgspec.json.encode(
        ComparisonExport(
            FORMAT,
            comparison.base,
            comparison.new,
            comparison.effect,
            comparison.method,
            [
                ComparedIndicator(info.name, info.unit, info.better)
                for info in comparison.indicators
            ],
            [_cell(cell) for cell in comparison.cells],
            comparison.warnings,
            comparison.advice,
            [ComparedClaim(**asdict(claim)) for claim in comparison.claims] or msgspec.UNSET,
            comparison.run or msgspec.UNSET,
        )
    )


def _cell(cell: CellComparison) -> ComparedCell:
    return ComparedCell(
        parameters=cell.parameters,
        indicator=cell.indicator,
        verdict=cell.verdict,
        ratio=_ratio_of(cell.ratio) if cell.ratio else msgspec.UNSET,
        base=cell.base.value if cell.base else None,
        new=cell.new.value if cell.new else None,
        note=cell.note,
        trials=cell.trials,
        cpu_trials=cell.cpu_trials,
        by_cpu_time=ComparedByCpuTime(cell.by_cpu_time.verdict, _ratio_of(cell.by_cpu_time.ratio))
        if cell.by_cpu_time
        else msgspec.UNSET,
    )


def _ratio_of(ratio: Estimate) -> Ratio:
    low, high = ratio.low, ratio.high
    if low is None or high is None or not math.isfinite(high):
        return Ratio(ratio.value, msgspec.UNSET, msgspec.UNSET, ratio.n)
    return Ratio(ratio.value, low, high, ratio.n)
