"""The cells of a run, with their raw trials."""

from __future__ import annotations

from typing import Annotated

import msgspec

from concurve.fields import Count, about
from concurve.findings.cells import (
    CellFindings,
    CellStatus,
    FastTail,
    OddTrial,
    SlowTail,
    TwoLevels,
)
from concurve.report.json.figures import Indicator, indicator_of
from concurve.terms import Level


class _Object(msgspec.Struct, frozen=True, omit_defaults=True):
    """Absent fields are left out, so that a reader never takes one for a figure."""


class Trial(_Object, frozen=True):
    """A raw trial; the ``record`` is as it was stored."""

    block: Count
    attempt: Count
    used: bool
    record: Annotated[msgspec.Raw, about("The runner's record as it was stored.", type="object")]
    reject_cause: str | None = None


class Cell(msgspec.Struct, frozen=True):
    """A cell with its figures and its trials."""

    index: Annotated[Count, about("Identity of the cell in the run.")]
    parameters: dict[str, Level]
    status: CellStatus
    indicators: dict[str, Indicator]
    absent: Annotated[dict[str, str], about("Indicators without a figure, each with the reason.")]
    including_rejects: Annotated[
        Indicator | msgspec.UnsetType,
        about("The primary indicator over all trials; left out where none was rejected."),
    ]
    including_doubtful: Annotated[
        Indicator | msgspec.UnsetType,
        about(
            "The primary indicator over all trials in use; left out where these are the figures, "
            "not the quiet trials alone."
        ),
    ]
    doubtful: Annotated[
        Count | msgspec.UnsetType,
        about("Trials in use during which the machine was not quiet; left out if none."),
    ]
    two_levels: Annotated[
        TwoLevels | msgspec.UnsetType,
        about("Two levels of the primary indicator; left out where the trials have one."),
    ]
    slow_tail: Annotated[
        SlowTail | msgspec.UnsetType,
        about("Outliers that are worse by the primary indicator; left out if none."),
    ]
    fast_tail: Annotated[
        FastTail | msgspec.UnsetType,
        about("Outliers that are better by the primary indicator; left out if none."),
    ]
    odd_trial: Annotated[
        OddTrial | msgspec.UnsetType,
        about(
            "The only outlier, without which the interval of the primary indicator were less than "
            "half as wide; left out if none. The figures keep it."
        ),
    ]
    widened: Annotated[
        float | msgspec.UnsetType,
        about(
            "By which factor the interval of the speed-up is wider, because the ratios to the base "
            "in successive blocks depend on each other; left out where that is not shown."
        ),
    ]
    load_failed: Annotated[
        str | msgspec.UnsetType,
        about(
            "What of its load failed, where it is so much that the cell is not compared; left out "
            "else."
        ),
    ]
    base: Annotated[
        Count | msgspec.UnsetType,
        about("index of the cell that speed-up and efficiency refer to."),
    ]
    stop_reason: str
    note: str
    trials: list[Trial]


def cell_of(cell: CellFindings, trials: list[Trial]) -> Cell:
    """A cell as it is exported; figures that are not finite are absent."""
    figures = {name: indicator_of(figure) for name, figure in cell.indicators.items()}
    absent = {name: "the figure is not finite" for name, figure in figures.items() if not figure}
    rejects, doubtful = cell.including_rejects, cell.including_doubtful
    return Cell(
        index=cell.index,
        parameters=cell.parameters,
        status=cell.status,
        indicators={name: figure for name, figure in figures.items() if figure},
        absent={**cell.absent, **absent},
        including_rejects=(indicator_of(rejects) if rejects else None) or msgspec.UNSET,
        including_doubtful=(indicator_of(doubtful) if doubtful else None) or msgspec.UNSET,
        doubtful=cell.doubtful or msgspec.UNSET,
        two_levels=cell.two_levels or msgspec.UNSET,
        slow_tail=cell.slow_tail or msgspec.UNSET,
        fast_tail=cell.fast_tail or msgspec.UNSET,
        odd_trial=cell.odd_trial or msgspec.UNSET,
        widened=cell.widened or msgspec.UNSET,
        load_failed=cell.load_failed or msgspec.UNSET,
        base=msgspec.UNSET if cell.base is None else cell.base,
        stop_reason=cell.stop_reason,
        note=cell.note,
        trials=trials,
    )
