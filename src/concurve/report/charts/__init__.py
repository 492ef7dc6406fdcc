"""The charts of a run: findings in, Altair charts out. :mod:`~concurve.report.charts.image`
makes SVG and PNG of them.

With a numeric work factor: the indicator by which settings are compared, the speed-up with its
ideal line, the efficiency and the CPU time, each against the work factor, one curve per combination
of levels of the other factors. Where scaling models were fitted, the curves are theirs, on to twice
the greatest level. Without a numeric work factor: a row a cell, with its interval. Every trial is a
dot; rejected ones are crosses. Where the trials were long enough, also how busy each CPU was in the
course of some.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from concurve.findings.run import Report
from concurve.report.charts.against_work import against_work
from concurve.report.charts.cells import of_cells
from concurve.report.document import Chart
from concurve.terms import Factor


def charts(findings: Report) -> list[Chart]:
    """All charts of the findings; none if no cell has the indicator that compares settings."""
    work = findings.work
    if work is not None and len(work.levels) > 1 and _numeric(work):
        wanted = dict.fromkeys(_wanted(findings))
        drawn = (against_work(findings, work, name) for name in wanted)
    else:
        drawn = (
            of_cells(findings, name)
            for name in dict.fromkeys((findings.ranked, *_varying(findings)))
        )
    found = [chart for chart in drawn if chart is not None]
    if findings.shares is not None:
        from concurve.report.charts.workers import bars

        found.append(bars(findings.shares))
    if findings.timelines is not None:
        from concurve.report.charts.timelines import timelines

        found.append(timelines(findings.timelines))
    return found


def of_indicator(findings: Report, name: str, *, marks_best: bool = False) -> Chart | None:
    """The chart of an indicator: against the work factor where that has numbers, else a row a cell.
    ``None`` if no cell has the indicator."""
    work = findings.work
    if work is not None and len(work.levels) > 1 and _numeric(work):
        return against_work(findings, work, name, marks_best=marks_best)
    return of_cells(findings, name, marks_best=marks_best)


def hero(findings: Report) -> Chart | None:
    """The chart that shows the answer, with the recommended settings marked: the speed-up against
    the work factor where it is by what the study asks for, else the primary indicator. ``None`` if
    no cell has it."""
    work = findings.work
    if work is None or len(work.levels) < 2 or not _numeric(work):
        return of_cells(findings, findings.ranked, marks_best=True)
    is_time = findings.ranked in ("wall_seconds", "seconds_per_operation")
    names = ("speedup", findings.ranked) if is_time else (findings.ranked, "speedup")
    drawn = (against_work(findings, work, name, marks_best=True) for name in names)
    return next((chart for chart in drawn if chart is not None), None)


def _wanted(findings: Report) -> Iterator[str]:
    """The indicators to draw, with each that was extracted and differs. If the time of an operation
    counts, also its CPU time, since runs of a fixed duration all take equally long, and the high
    percentiles of latency."""
    yield from (findings.ranked, *_of_models(findings), "speedup", "efficiency")
    yield from _varying(findings)
    if findings.ranked == "seconds_per_operation":
        yield "cpu_seconds_per_operation"
        yield from (name for name in findings.asked if name.endswith("latency_ns_p99"))
    else:
        yield "cpu_seconds"


def _varying(findings: Report) -> list[str]:
    """The figures that were extracted, without those that a chart says nothing of: one value in
    each trial of all cells."""
    return [name for name in findings.extracted if not findings.is_same(name)]


def _of_models(findings: Report) -> tuple[str, ...]:
    """The fitted throughput, if no other chart shows its curves."""
    shown = (findings.ranked, "speedup")
    fitted = [item for item in findings.scaling if item.fit is not None]
    is_drawn = any(name in item.curves for item in fitted for name in shown)
    return (fitted[0].indicator,) if fitted and not is_drawn else ()


def _numeric(factor: Factor) -> bool:
    return all(isinstance(level, (int, float)) and math.isfinite(level) for level in factor.levels)
