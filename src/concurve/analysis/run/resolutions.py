"""By how much the readings of a run may be off: its clocks tick, its programs round figures.

Counts, shares and what a simulator reports are exact. A time is not, however often the same one was
read: its clock is no finer than the step between its readings. But a load that was told to last for
two seconds lasts that long, and does more or less meanwhile: such a time is exact, too.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from functools import cache, partial

from concurve.analysis.run.tables import Table
from concurve.definition.measured import MEASURED
from concurve.definition.units import is_rate, is_time
from concurve.stats.centre import centre
from concurve.stats.resolution import (
    finest_digit,
    relative,
    step_of,
    step_of_looks,
    step_of_rates,
    tick_of,
)
from concurve.terms import IndicatorInfo

#: A clock that reads finer than this share of a time did not round it by what matters: that is far
#: less than the least difference that counts.
_FINE = 0.0025
_WALL, _RATE = "wall_seconds", "rate_per_second"
#: What a start may take of a time, at most.
_START = 0.1
#: Figures that are computed from a time; its clock is theirs.
_OF_TIME = {
    _RATE: _WALL,
    "rate_per_worker": _WALL,
    "seconds_per_operation": _WALL,
    "cpu_seconds_per_operation": "cpu_seconds",
    "cpus_used": "cpu_seconds",
}


def with_resolutions(tables: Sequence[Table], infos: Sequence[IndicatorInfo]) -> list[Table]:
    """The tables of a run, each with the resolution of its indicators."""
    by_name = {info.name: info for info in infos}

    told = cache(partial(_told_times, tables))

    @cache
    def of_run(name: str) -> float:
        cells = [table.used.get(name, ()) for table in tables]
        return tick_of(cells, step_of(value for values in cells for value in values))

    @cache
    def of_looks(role: str) -> float:
        return _looks_of_role(tables, role)

    @cache
    def of_printed(name: str) -> float:
        # Where no trial differs from the others of its cell, the few readings have a common
        # divisor by chance: 0.5 of 100.5 and 200.5. What is known is to which digit they are.
        cells = [table.used.get(name, ()) for table in tables]
        if all(len(set(values)) <= 1 for values in cells):
            return finest_digit(value for values in cells for value in values) or of_run(name)
        return of_run(name)

    @cache
    def follow_looks(name: str, role: str) -> bool:
        return bool(of_looks(role)) and _follow(tables, name, _of(role, _WALL), of_looks(role))

    def of_rates(name: str, role: str, values: Sequence[float], times: Sequence[float]) -> float:
        middle = centre(values)
        by_time = step_of_rates(values) * middle**2
        if follow_looks(name, role) and _are_by(values, times):
            by_time = relative(of_looks(role), times) * middle
        return max(by_time, _own(of_printed(name), values))

    def of(index: int, name: str) -> float:
        """Of an indicator in a cell; 0 where it is exact or was not measured."""
        used = tables[index].used
        values = used.get(name, ())
        if not values or told(name).issuperset(values):
            return 0.0
        role, _, plain = name.rpartition(".")
        if plain in _OF_TIME:
            time = _of(role, _OF_TIME[plain])
            times = used.get(time, ())
            step = of(index, time)
            if plain == _RATE and of_looks(role) and not follow_looks(name, role):
                step = _own(of_run(time), times)
            return relative(step, times) * abs(centre(values)) if times else 0.0
        info = by_name.get(name) or IndicatorInfo(name=name, label=name)
        if is_rate(name, info.unit):
            return of_rates(name, role, values, used.get(_of(role, _WALL), ()))
        if is_time(name, info.unit):
            looks = of_looks(role) if plain == _WALL else 0.0
            return looks or _own(of_run(name), values)
        if _is_measured(info, values):
            return _own(of_printed(name), values)
        return 0.0

    def made(index: int, table: Table) -> Table:
        return table._replace(resolution=cache(lambda name: of(index, name)))

    return [made(index, table) for index, table in enumerate(tables)]


def looks_of(tables: Sequence[Table], name: str) -> float:
    """The step of the times of a role that ends only when it looks whether it is done, where this
    indicator of it is such a time, or a rate by it; else 0."""
    role, _, plain = name.rpartition(".")
    is_by_time = _WALL in (plain, _OF_TIME.get(plain))
    rates = [table for table in tables if table.used.get(name)]
    step = _looks_of_role(tables, role)
    is_rate_by_time = plain == _RATE or not is_by_time
    if is_rate_by_time and not _follow(tables, name, _of(role, _WALL), step):
        return 0.0
    if is_by_time or all(
        _are_by(table.used[name], table.used.get(_of(role, _WALL), ())) for table in rates
    ):
        return step
    return 0.0


def _looks_of_role(tables: Sequence[Table], role: str) -> float:
    """The same of the wall times of a role; the target has no name."""
    return step_of_looks(table.used.get(_of(role, _WALL), ()) for table in tables)


def _of(role: str, name: str) -> str:
    return f"{role}.{name}" if role else name


def _are_by(rates: Sequence[float], times: Sequence[float]) -> bool:
    """Are these the rates of one amount of work in these times, but for what a start takes?"""
    if len(rates) != len(times):
        return False
    work = [rate * time for rate, time in zip(rates, times, strict=True)]
    return max(work) <= (1 + _START) * min(work)


def _follow(tables: Sequence[Table], name: str, wall: str, step: float) -> bool:
    """Do these rates follow the times of their trials, as those of a fixed amount of work do? Where
    the trials of a cell end on other steps, the work of a load that was told how long to last
    differs as the times do, and its rates do not."""
    of_work = of_rates = 0.0
    for table in tables:
        rates, times = table.used.get(name, ()), table.used.get(wall, ())
        is_known = len(rates) == len(times) > 1 and min(*rates, *times) > 0
        if is_known and max(times) - min(times) > step / 2:
            logs = [
                (math.log(rate), math.log(time)) for rate, time in zip(rates, times, strict=True)
            ]
            of_rates += len(logs) * statistics.pvariance([rate for rate, _ in logs])
            of_work += len(logs) * statistics.pvariance([rate + time for rate, time in logs])
    return of_work <= of_rates


def _told_times(tables: Sequence[Table], name: str) -> frozenset[float]:
    """The wall times that the program was told to last: the same in all trials of a cell, while the
    rate by it differs from one of them to the next. With a fixed amount of work and a coarse clock,
    both would be the same. A finer clock may have made the rates: then the times of other cells
    show the step of this one."""
    role, _, plain = name.rpartition(".")
    if plain != _WALL:
        return frozenset()
    rate = f"{role}.{_RATE}" if role else _RATE
    cells = [
        (table.used[name], table.used.get(rate, ())) for table in tables if table.used.get(name)
    ]
    step = _step_shown(cells)
    return frozenset(
        times[0]
        for times, rates in cells
        if _never_differ(times) and not _never_differ(rates) and step <= _FINE * times[0]
    )


def _step_shown(cells: Sequence[tuple[Sequence[float], Sequence[float]]]) -> float:
    """The step of the clock where the times of some cells differ from trial to trial, or some have
    the same rate in all trials, which was made from such times; else 0: that cells were told to
    last for 2 s and 5 s says nothing of a clock."""
    are_read = any(not _never_differ(times) for times, _ in cells)
    are_made_of_times = any(len(rates) > 1 and _never_differ(rates) for _, rates in cells)
    every = {time for times, _ in cells for time in times}
    # Few readings have a common divisor by chance, so the times of all cells count.
    return step_of(every) if (are_read or are_made_of_times) and len(every) > 1 else 0.0


def _never_differ(values: Sequence[float]) -> bool:
    return len(set(values)) <= 1


def _own(of_run: float, values: Sequence[float]) -> float:
    """The step of all cells together, where they have one, else that of the cell."""
    return of_run or step_of(values)


def _is_measured(info: IndicatorInfo, values: Sequence[float]) -> bool:
    """Is this a figure of a program's own that is no count?"""
    known = info.name.rpartition(".")[2] in MEASURED
    return not known and info.better != "neither" and any(value % 1 for value in values)
