"""An indicator of a study over its stored runs, with change points. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from concurve import words
from concurve.analysis.comparison.sides import studies as differing_studies
from concurve.analysis.ranked import ranked_of
from concurve.definition.indicators_meant import indicator_meant
from concurve.errors import ComparisonError
from concurve.estimate import Estimate
from concurve.findings.history import CellHistory, History, HistoryPoint, Step
from concurve.findings.run import Findings
from concurve.host.same_machine import is_same_machine
from concurve.stats.centre import centre
from concurve.stats.changes import LENGTH_MIN, ChangePoint, change_points_of_all
from concurve.stats.comparison import log_shift
from concurve.stats.moments import growth
from concurve.terms import IndicatorInfo, Level, cell_key


class _Series(NamedTuple):
    """A cell over the runs, and of how many runs its figures are left out."""

    cell: CellHistory
    left_out: int


def history_of(
    runs: Sequence[Findings], indicator: str = "", across_machines: bool = False
) -> History:
    """The history of each cell that the newest run has; ``runs`` stand in order of time.

    Runs of other machines than the newest one's are left out, unless asked for.

    Raises:
        ComparisonError: no runs, no such indicator, or its unit changed.
    """
    if not runs:
        raise ComparisonError("no run is stored", "concurve runs lists what there is")
    newest = runs[-1]
    own = [run for run in runs if across_machines or is_same_machine(run.machine, newest.machine)]
    name = indicator or _ranked(own)
    info = _info(own, name)
    series = [_series(own, cell.parameters, name) for cell in newest.cells]
    found = change_points_of_all(
        [[point.figure.value for point in it.cell.points] for it in series]
    )
    cells = tuple(_marked(it, changes, info) for it, changes in zip(series, found, strict=True))
    return History(
        study=newest.run.study,
        indicator=info,
        factors=tuple(factor.name for factor in newest.factors if len(factor.levels) > 1),
        runs=len(own),
        cells=cells,
        warnings=(
            *_warnings(runs, own),
            *_comparing_nothing(own, info),
            *_on_left_out(sum(it.left_out for it in series)),
        ),
    )


def _ranked(runs: Sequence[Findings]) -> str:
    """The figure by which the runs compare their settings, the newest first; those without figures
    tell nothing."""
    with_figures = [run for run in reversed(runs) if any(cell.indicators for cell in run.cells)]
    return ranked_of(with_figures or runs[-1:], _has)


def _has(run: Findings, name: str) -> bool:
    return any(name in cell.indicators for cell in run.cells)


def _info(runs: Sequence[Findings], name: str) -> IndicatorInfo:
    have = [run for run in runs if _has(run, name)]
    if not have:
        known = dict.fromkeys(key for cell in runs[-1].cells for key in cell.indicators)
        raise ComparisonError(
            f"no run of {runs[-1].run.study} has the indicator {name!r}",
            indicator_meant(name, known),
        )
    units = list(dict.fromkeys(run.indicator(name).unit for run in have))
    if len(units) > 1:
        raise ComparisonError(
            f"the unit of {name} changed over the runs: {', '.join(map(repr, units))}",
            "another --indicator",
        )
    return have[-1].indicator(name)


def _series(runs: Sequence[Findings], parameters: dict[str, Level], name: str) -> _Series:
    key = cell_key(parameters)
    found = [
        (run.run, run.failures, cell)
        for run in runs
        for cell in run.cells
        if cell_key(cell.parameters) == key and name in cell.indicators
    ]
    points = tuple(
        HistoryPoint(
            run=run.id,
            started=run.started,
            version=run.version,
            figure=cell.indicators[name],
        )
        for run, counts, cell in found
        # What counts failures is not a figure of errors that stands for one of the work.
        if cell.is_of_setting or (name in counts and cell.status != "skipped")
    )
    return _Series(CellHistory(parameters=parameters, points=points), len(found) - len(points))


def _marked(series: _Series, changes: list[ChangePoint], info: IndicatorInfo) -> CellHistory:
    """The series with its change points; the change is the shift between the runs of
    two segments."""
    cell = series.cell
    if not cell.points and series.left_out:
        which = words.count(series.left_out, "run")
        note = f"no figure is left: the cell was skipped, or its load failed, in {which}"
        return msgspec.structs.replace(cell, note=note)
    if len(cell.points) < LENGTH_MIN:
        have = len(cell.points)
        which = f"{words.count(have, 'run')} {words.verb(have)}"
        note = f"{which} too few for change points, {LENGTH_MIN} are needed"
        return msgspec.structs.replace(cell, note=note)
    values = [point.figure.value for point in cell.points]
    bounds = [0, *(change.start for change in changes), len(values)]
    points = list(cell.points)
    for before, index, after in zip(bounds, bounds[1:], bounds[2:], strict=False):
        ratio = _ratio(values[index:after], values[before:index])
        points[index] = msgspec.structs.replace(
            points[index], change=ratio, verdict=_verdict(ratio, info)
        )
    return msgspec.structs.replace(cell, points=tuple(points))


def _ratio(new: Sequence[float], old: Sequence[float]) -> Estimate | None:
    """The runs of a segment over those of the one before; ``None`` where a figure is not above
    0."""
    n, shift = min(len(new), len(old)), log_shift([new], [old])
    if shift is None:
        top, bottom = centre(new), centre(old)
        return Estimate(value=top / bottom, n=n, unit="×") if min(top, bottom) > 0 else None
    low, high = shift.interval()
    return Estimate(value=growth(shift.value), low=growth(low), high=growth(high), n=n, unit="×")


def _verdict(ratio: Estimate | None, info: IndicatorInfo) -> Step:
    if ratio is None or info.better == "neither" or not math.isfinite(ratio.value):
        return "changed"
    return "faster" if (ratio.value > 1) == (info.better == "higher") else "slower"


def _comparing_nothing(runs: Sequence[Findings], info: IndicatorInfo) -> Iterator[str]:
    """A warning that runs recommend no setting by the figure, and why the newest of them does
    not."""
    held = [run.withheld for run in runs if info.name in run.withheld.indicators]
    why = [found.figures for found in held if found.figures]
    if why:
        label = info.label or info.name
        yield (
            f"{label} may tell nothing of {words.count(len(why), 'run')}: {why[-1]}; the figure "
            "that does: --indicator NAME"
        )


def _on_left_out(figures: int) -> Iterator[str]:
    if figures:
        yield (
            f"{words.count(figures, 'figure')} {words.verb(figures)} left out: of a cell that was "
            "skipped, or whose load failed"
        )


def _warnings(runs: Sequence[Findings], own: Sequence[Findings]) -> list[str]:
    found = []
    if len(own) < len(runs):
        left = len(runs) - len(own)
        found.append(
            f"{words.count(left, 'run')} of other machines {words.verb(left)} left out "
            "(--across-machines)"
        )
    elif any(not is_same_machine(run.machine, own[-1].machine) for run in own):
        found.append("the runs are of different machines: a change may be one of the machine")
    others = [run for run in own if any(differing_studies(run, own[-1]))]
    if others:
        number, (said,) = len(others), differing_studies(others[-1], own[-1])
        which = f"{words.count(number, 'run')} {words.verb(number, 'measures', 'measure')}"
        found.append(
            f"{which} another command than the newest, so a change may be one of the command "
            f"({said}); --name tells runs of different commands apart"
        )
    unfinished = [run.run.id for run in own if run.run.state != "complete"]
    if unfinished:
        number = len(unfinished)
        first = f", first {unfinished[0]}" if number > 1 else f": {unfinished[0]}"
        found.append(f"{words.count(number, 'run')} {words.verb(number)} not complete{first}")
    return found
