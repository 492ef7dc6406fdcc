"""Two cells → the ratio of their figures, or why there is none."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from concurve.analysis.comparison.options import Options
from concurve.analysis.comparison.sides import Pair, Side
from concurve.estimate import Estimate
from concurve.findings.cells import CellFindings
from concurve.findings.comparison import CellComparison, Change
from concurve.findings.run import TrialFindings
from concurve.readings.centres import indicator_centre
from concurve.stats.blocks import Blocks, log_ratios
from concurve.stats.centre import centre, staged
from concurve.stats.comparison import Direction, LogRatio, Method, log_shift
from concurve.stats.moments import growth, stdev
from concurve.stats.power import trials_to_tell
from concurve.stats.resolution import relative
from concurve.stats.serial import stretched
from concurve.terms import CellKey, IndicatorInfo, Level

#: What may need fewer trials where a machine is shared.
CPU_TIME = "cpu_seconds"
#: A program may suffer more than another one from the same neighbours: by caches and by memory, not
#: by a factor of so much.
_BEYOND_NEIGHBOURS = 1.25
_THREADS = "threads_peak"
_CPUS = "cpus_used"
#: A program that runs, or waits for the CPU that others take, for this share of its time computes.
_COMPUTES = 0.5
_QUEUED = "run_queue_seconds"
_WALL = "wall_seconds"
#: A thread used as much of a CPU with both if it used no more than so many times as much.
_CPUS_ALIKE = 1.1


class Draft(NamedTuple):
    """A compared cell whose verdict still needs the p-values of all cells. ``is_coarse``: the step
    of its clock is as large as the effect, so no number of trials shows it. ``is_withheld``: it is
    in doubt, so it counts among the cells that are judged together and has no verdict itself; a
    verdict that is told in doubt has the note ``clear``."""

    cell: CellComparison
    log: LogRatio | None
    better: str
    is_coarse: bool
    is_withheld: bool = False
    clear: str = ""


Columns = tuple[tuple[dict[int, dict[int, float]], ...], ...]
"""The values of an indicator by side, run, cell and block."""


def columns_of(sides: tuple[Side, Side], name: str, *, disturbed: bool = False) -> Columns:
    """The values of both sides; ``disturbed``: with those of the trials that were set aside."""
    return tuple(
        tuple(run.blocks(name, disturbed=disturbed) for run in side.sessions) for side in sides
    )


class _Compared(NamedTuple):
    """The values of two cells by run and block, and by which share their ratio may be off."""

    new: list[Blocks]
    base: list[Blocks]
    off: float

    def log(self, method: Method) -> LogRatio | None:
        """The log ratio of both."""
        if method == "pairs":
            return log_ratios(self.new[0], self.base[0], self.off)
        return log_shift(self._values(self.new), self._values(self.base), self.off)

    def spread(self, method: Method) -> float:
        """The standard deviation of what the log ratio is the centre of, a trial of each."""
        if method == "pairs":
            both = self.new[0].keys() & self.base[0].keys()
            new, base = self.new[0], self.base[0]
            logs = [math.log(new[block]) - math.log(base[block]) for block in sorted(both)]
            return stdev(stretched(logs))
        sides = (self._values(side)[0] for side in (self.new, self.base))
        logarithms = ([math.log(value) for value in side] for side in sides)
        return math.hypot(*(stdev(stretched(values)) for values in logarithms))

    def _values(self, side: Sequence[Blocks]) -> list[list[float]]:
        return [list(run.values()) for run in side]


def draft_of(
    pair: Pair,
    info: IndicatorInfo,
    sides: tuple[Side, Side],
    columns: Columns,
    cpu: Columns,
    options: Options,
    method: Method,
) -> Draft:
    """A pair compared by an indicator, still without its verdict; ``cpu`` has the CPU times."""
    keys = pair.base, pair.new
    found = _compared(sides, keys, columns, info.name)
    figures = [
        _figure(side, key, info, runs) if len(side.sessions) == 1 else None
        for side, key, runs in zip(sides, keys, (found.base, found.new), strict=True)
    ]
    note = _lack(sides, keys, found, info)
    log = None if note else found.log(method)
    ratio = None if note else _ratio(found, log, method, is_staged(sides))
    doubt = "" if note else _doubt(sides, keys, found, info)
    is_clear = bool(doubt) and _is_clear(ratio, pair, sides, method, found)
    if doubt and ratio is not None:
        ratio = ratio.doubted()
    cell = CellComparison(
        parameters=pair.parameters,
        indicator=info.name,
        verdict="undecided",
        ratio=ratio,
        base=figures[0],
        new=figures[1],
        note=note or doubt or ("" if log else _no_interval(found, method)),
        trials=_trials(found, log, method, sides, options),
        cpu_trials=_by_cpu_time(_compared(sides, keys, cpu, CPU_TIME), method, sides, options)
        if info.name != CPU_TIME
        else None,
        is_without_figures=bool(note),
    )
    return Draft(
        cell,
        log,
        info.better,
        is_coarse=log is not None and 0 < found.off >= options.effect,
        is_withheld=bool(doubt) and not is_clear and not options.in_doubt,
        clear=f"{doubt}, but {_CLEAR}" if is_clear else "",
    )


def _figure(
    side: Side, key: CellKey, info: IndicatorInfo, runs: Sequence[Blocks]
) -> Estimate | None:
    """The figure of the only run of a side. Where trials that it leaves out are compared, it is
    that of all of them, in doubt."""
    cell, values = side.cells[0][key], list(runs[0].values())
    figure = cell.indicators.get(info.name)
    if figure is None or len(values) <= figure.n:
        return figure
    step = cell.resolutions.get(info.name, 0.0)
    is_set_by_data = side.sessions[0].run.is_staged
    return indicator_centre(info.name, values, info.unit, is_set_by_data, step).doubted()


def _doubt(
    sides: tuple[Side, Side], keys: tuple[CellKey, ...], found: _Compared, info: IndicatorInfo
) -> str:
    """The run whose figure is in doubt, or leaves out trials that are compared, so that nothing is
    said of the ratio; empty if none is."""
    for side, key, values in zip(sides, keys, (found.base, found.new), strict=True):
        for cells, run, own in zip(side.cells, side.sessions, values, strict=True):
            figure = cells[key].indicators.get(info.name)
            if figure is not None and (figure.in_doubt or len(own) > figure.n):
                return f"in doubt: the machine was not quiet in run {run.run.id}"
    return ""


#: Why a difference is told although the machine was not quiet.
_CLEAR = (
    "both ran in turns with equally many threads, and the difference is larger than neighbours make"
)


def _is_clear(
    ratio: Estimate | None,
    pair: Pair,
    sides: tuple[Side, Side],
    method: Method,
    found: _Compared,
) -> bool:
    """Is a difference certain although the machine was not quiet? Neighbours disturb both cells
    alike where trials take turns within a run, and each cell asks for as many CPUs as the other:
    the only role has as many threads in both, and where numbers differ, which may count those that
    work, it has one, which used as much of a CPU (decision 75). The trials that nothing disturbed
    do not point the other way. The ratio would be another one on a quiet machine, its direction
    would not."""
    if method != "pairs" or ratio is None or ratio.low is None or ratio.high is None:
        return False
    run = sides[0].sessions[0]
    cells = [side.cells[0][key] for side, key in zip(sides, (pair.base, pair.new), strict=True)]
    if len(run.roles) != 1 or not _are_alike(cells, _THREADS, 1.0):
        return False
    levels = _levels_apart(cells)
    are_numbers = any(isinstance(level, (int, float)) for level in levels)
    if are_numbers and not (_is_single(cells) and _are_alike(cells, _CPUS, _CPUS_ALIKE)):
        return False
    if not (ratio.low >= _BEYOND_NEIGHBOURS or ratio.high <= 1 / _BEYOND_NEIGHBOURS):
        return False
    new, base = (
        _undisturbed(run, cells[1], found.new[0]),
        _undisturbed(run, cells[0], found.base[0]),
    )
    both = [block for block in new if block in base]
    if not both:
        return True
    quiet = [centre([values[block] for block in both]) for values in (new, base)]
    return (quiet[0] > quiet[1]) == (ratio.value > 1)


def _levels_apart(cells: Sequence[CellFindings]) -> Iterator[Level]:
    """The levels by which two cells differ."""
    one, other = (cell.parameters for cell in cells)
    for name in dict.fromkeys((*one, *other)):
        if one.get(name) != other.get(name):
            yield from (own[name] for own in (one, other) if name in own)


def _undisturbed(run: TrialFindings, cell: CellFindings, values: Blocks) -> Blocks:
    """The values of the trials of a cell that nothing disturbed, by block."""
    doubted = {item.block for item in run.rejects if item.used and item.cell == cell.index}
    return {block: value for block, value in values.items() if block not in doubted}


def _is_single(cells: Sequence[CellFindings]) -> bool:
    """Does one thread do all the work? Of several, a limit of how many work at a time may count on
    CPUs that others have."""
    found = [cell.indicators.get(_THREADS) for cell in cells]
    return all(figure is not None and figure.value <= 1 for figure in found)


class ToldByCpuTime(NamedTuple):
    """Cells of which CPU time may say which is faster, by the parameters of the new one: their
    ``pairs`` of trials, ``quiet`` of them in the figures of the wall time."""

    parameters: dict[str, Level]
    quiet: int
    pairs: int


def told_by_cpu_time(
    pairs: Sequence[Pair], sides: tuple[Side, Side], method: Method
) -> list[ToldByCpuTime]:
    """The cells of which CPU time may say which is faster where the machine was not quiet."""
    told = [pair for pair in pairs if _is_told_by_cpu_time(pair, sides, method)]
    found = quiet_pairs(told, sides) if told else []
    return [
        ToldByCpuTime(pair.parameters, *counts) for pair, counts in zip(told, found, strict=True)
    ]


def quiet_pairs(pairs: Sequence[Pair], sides: tuple[Side, Side]) -> list[tuple[int, int]]:
    """How many pairs of trials the figures of the wall time hold of each two cells, and how many
    there are with the trials that were set aside."""
    quiet, every = (columns_of(sides, _WALL, disturbed=disturbed) for disturbed in (False, True))
    return [(_common(pair, sides, quiet), _common(pair, sides, every)) for pair in pairs]


def _common(pair: Pair, sides: tuple[Side, Side], columns: Columns) -> int:
    """How many blocks have a wall time of both cells."""
    found = _compared(sides, (pair.base, pair.new), columns, _WALL)
    return len(found.new[0].keys() & found.base[0].keys())


def _is_told_by_cpu_time(pair: Pair, sides: tuple[Side, Side], method: Method) -> bool:
    """Of a program alone whose one thread computes for most of the time: CPU time is then what the
    wall time would be without others, and no other thread waits for it. Both took turns in one
    run."""
    run = sides[0].sessions[0]
    if method != "pairs" or len(run.roles) != 1:
        return False
    cells = [side.cells[0][key] for side, key in zip(sides, (pair.base, pair.new), strict=True)]
    return _is_single(cells) and all(_ready(cell) >= _COMPUTES for cell in cells)


def _ready(cell: CellFindings) -> float:
    """The share of its time for which a program with one thread ran, or waited for a CPU."""
    used, queued, wall = (cell.indicators.get(name) for name in (_CPUS, _QUEUED, _WALL))
    ran = used.value if used is not None else 0.0
    return ran + (queued.value / wall.value if queued and wall and wall.value else 0.0)


def _are_alike(cells: Sequence[CellFindings], name: str, most: float) -> bool:
    """Is an indicator of all cells the same, but for this factor?"""
    found = [cell.indicators.get(name) for cell in cells]
    values = [figure.value for figure in found if figure is not None]
    return len(values) == len(cells) and max(values) <= most * min(values)


def is_staged(sides: Sequence[Side]) -> bool:
    """Have the data of any run set its number of trials?"""
    return any(run.run.is_staged for side in sides for run in side.sessions)


def _compared(
    sides: tuple[Side, Side],
    keys: tuple[CellKey, ...],
    columns: Columns,
    name: str,
) -> _Compared:
    values: list[list[Blocks]] = []
    off = 0.0
    for side, key, mine in zip(sides, keys, columns, strict=True):
        cells = [own[key] for own in side.cells]
        runs: list[Blocks] = [
            own.get(cell.index, {}) for cell, own in zip(cells, mine, strict=True)
        ]
        off += max(
            relative(cell.resolutions.get(name, 0.0), list(run.values())) if run else 0.0
            for cell, run in zip(cells, runs, strict=True)
        )
        values.append(runs)
    return _Compared(new=values[1], base=values[0], off=off)


def _lack(
    sides: tuple[Side, Side],
    keys: tuple[CellKey, ...],
    found: _Compared,
    info: IndicatorInfo,
) -> str:
    """The reason why a side has no figure to compare; empty if both have one."""
    for side, key, sessions in zip(sides, keys, (found.base, found.new), strict=True):
        for own, of in zip(side.cells, side.sessions, strict=True):
            # It has the figures of its trials until then all the same: no verdict rests on them.
            if own[key].status == "skipped":
                return f"it was skipped in run {of.run.id}: {own[key].note}"
            if own[key].load_failed:
                return f"its load failed in run {of.run.id}: {own[key].load_failed}"
        if not all(sessions):
            index = next(n for n, session in enumerate(sessions) if not session)
            cell, run = side.cells[index][key], side.sessions[index].run.id
            reason = cell.note or cell.absent.get(info.name) or "no trial has it"
            return f"{info.name} is missing in run {run}: {reason}"
    return ""


def _no_interval(found: _Compared, method: Method) -> str:
    if any(
        value <= 0 for side in (found.new, found.base) for run in side for value in run.values()
    ):
        return "a trial's value is not above 0, so there is no ratio"
    if any(len(side) == 1 and len(side[0]) < 2 for side in (found.new, found.base)):
        return "a single trial has no interval"
    if method == "pairs":
        return "fewer than two blocks hold trials of both"
    return "several runs on one side, so two on each are needed"


def _ratio(
    found: _Compared, log: LogRatio | None, method: Method, is_staged: bool
) -> Estimate | None:
    """The ratio with its 95 % interval, or without one if there are too few trials. Its ``n``
    counts what the interval rests on: the trials of a single run, or several runs."""
    sides = found.new, found.base
    n = min(len(side) if len(side) > 1 else len(side[0]) for side in sides)
    if log is not None:
        if method == "pairs":
            n = len(found.new[0].keys() & found.base[0].keys())
        low, high = log.interval(staged(0.95, is_staged))
        return Estimate(value=growth(log.value), low=growth(low), high=growth(high), n=n, unit="×")
    top, bottom = (centre([centre(list(run.values())) for run in side]) for side in sides)
    if top <= 0 or bottom <= 0:
        return None
    return Estimate(value=top / bottom, n=n, unit="×")


def _trials(
    found: _Compared,
    log: LogRatio | None,
    method: Method,
    sides: Sequence[Side],
    options: Options,
) -> int | None:
    """Trials of each, in all, that would show a difference as large as the effect with a power of
    80 %. ``None`` where several runs are a side, and where no number would."""
    if log is None or any(len(side.sessions) > 1 for side in sides):
        return None
    tail = (1 - staged(0.95, is_staged(sides))) / 2
    effect, off = math.log1p(options.effect), math.log1p(found.off)
    return trials_to_tell(effect, found.spread(method), tail, off)


def _by_cpu_time(
    found: _Compared, method: Method, sides: Sequence[Side], options: Options
) -> int | None:
    """The same by CPU time, where that is measured and above 0 in every trial."""
    both = (*found.new, *found.base)
    if not all(both) or any(value <= 0 for run in both for value in run.values()):
        return None
    return _trials(found, found.log(method), method, sides, options)


def verdict_of(direction: Direction, better: str) -> Change:
    """The verdict for a significant change: an increase is slower where lower is better."""
    if direction in ("same", "undecided"):
        return direction
    return "faster" if (direction == "higher") == (better == "higher") else "slower"
