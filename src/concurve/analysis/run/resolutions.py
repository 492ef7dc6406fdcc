"""By how much the readings of a run may be off: its clocks tick, its programs round figures.

Counts, shares and what a simulator reports are exact. A time is not, however often the same one was
read: its clock is no finer than the step between its readings. But a load that was told to last for
two seconds lasts that long, and does more or less meanwhile: such a time is exact, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

from concurve.analysis.run.tables import Table
from concurve.definition.measured import MEASURED
from concurve.definition.units import is_rate, is_time
from concurve.stats.centre import centre
from concurve.stats.resolution import finest_digit, relative, step_of, step_of_rates, tick_of
from concurve.terms import IndicatorInfo

#: A clock that reads finer than this share of a time did not round it by what matters: that is far
#: less than the least difference that counts.
_FINE = 0.0025
_WALL, _RATE = "wall_seconds", "rate_per_second"
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
    def of_printed(name: str) -> float:
        # Where no trial differs from the others of its cell, the few readings have a common
        # divisor by chance: 0.5 of 100.5 and 200.5. What is known is to which digit they are.
        cells = [table.used.get(name, ()) for table in tables]
        if all(len(set(values)) <= 1 for values in cells):
            return finest_digit(value for values in cells for value in values) or of_run(name)
        return of_run(name)

    def of(index: int, name: str) -> float:
        """Of an indicator in a cell; 0 where it is exact or was not measured."""
        values = tables[index].used.get(name, ())
        if not values or told(name).issuperset(values):
            return 0.0
        role, _, plain = name.rpartition(".")
        time = _OF_TIME.get(plain)
        if time is not None:
            time = f"{role}.{time}" if role else time
            times = tables[index].used.get(time, ())
            return relative(of(index, time), times) * abs(centre(values)) if times else 0.0
        info = by_name.get(name) or IndicatorInfo(name=name, label=name)
        if is_rate(name, info.unit):
            middle = centre(values)
            return max(step_of_rates(values) * middle**2, _own(of_printed(name), values))
        if is_time(name, info.unit):
            return _own(of_run(name), values)
        if _is_measured(info, values):
            return _own(of_printed(name), values)
        return 0.0

    def made(index: int, table: Table) -> Table:
        return table._replace(resolution=cache(lambda name: of(index, name)))

    return [made(index, table) for index, table in enumerate(tables)]


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
