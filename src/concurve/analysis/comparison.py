"""Two runs, or two levels of a factor, cell by cell → :class:`~concurve.findings.Comparison`.
Pure."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from concurve.errors import ComparisonError
from concurve.estimate import Estimate
from concurve.findings import (
    CellComparison,
    CellFindings,
    Change,
    Comparison,
    Findings,
    IndicatorInfo,
    Level,
)
from concurve.host.same_machine import is_same_machine, machine_differences
from concurve.stats.comparison import (
    Direction,
    LogRatio,
    Method,
    compared,
    compared_in_pairs,
    directions,
)
from concurve.stats.moments import mean
from concurve.stats.welch import growth, log_ratio

#: Differences below this share are not worth the name, unless another is given.
EFFECT = 0.02

#: A cell's later trials differ from its earlier ones at this level: once in a hundred by chance.
_DRIFT_LEVEL = 0.01

#: Cells that a warning names one by one.
_NAMED_MAX = 3


class Options(NamedTuple):
    """How to compare. ``better`` is for indicators that have no direction of their own;
    ``seed`` that of the bootstrap."""

    indicators: tuple[str, ...] = ()
    effect: float = EFFECT
    method: Method = "welch"
    better: str = ""
    across_machines: bool = False
    seed: int = 0


DEFAULTS = Options()


class _Side(NamedTuple):
    """Sessions (runs) that stand together on one side, and the cells of each by parameters."""

    name: str
    sessions: tuple[Findings, ...]
    cells: tuple[dict[frozenset[tuple[str, Level]], CellFindings], ...]


class _Pair(NamedTuple):
    """Two cells to compare: how the table names them, and where they are on each side."""

    parameters: dict[str, Level]
    base: frozenset[tuple[str, Level]]
    new: frozenset[tuple[str, Level]]


def compare_runs(
    base: Sequence[Findings], new: Sequence[Findings], options: Options = DEFAULTS
) -> Comparison:
    """Each cell of ``new`` over the same cell of ``base``. Several runs on a side are sessions
    of one experiment.

    Raises:
        ComparisonError: no cell in common, other units, another machine, no such indicator.
    """
    twice = {run.run.id for run in base} & {run.run.id for run in new}
    if twice:
        raise ComparisonError(
            f"run {min(twice)} stands on both sides",
            "two runs, or --factor NAME --levels BASE,NEW inside one",
        )
    if options.method == "pairs":
        raise ComparisonError(
            "two runs have no blocks in common, so their trials make no pairs",
            "--interval welch or --interval bootstrap",
        )
    sides = _side(_names(base), base), _side(_names(new), new)
    common, lonely = _common(*sides)
    if not common:
        raise ComparisonError(
            f"{sides[0].name} and {sides[1].name} have no cell in common: "
            f"{_factors_of(base[0])} against {_factors_of(new[0])}",
            "runs over the same factors and levels",
        )
    pairs = [_Pair(dict(sides[1].cells[0][key].parameters), key, key) for key in common]
    warnings = [
        *_machines([*base, *new], options.across_machines),
        *_studies(base[0], new[0]),
        *_sessions(base, new),
        *lonely,
        *_states([*base, *new]),
    ]
    return _comparison(sides, pairs, warnings, options)


def compare_levels(
    run: Findings, factor: str, levels: Sequence[Level] = (), options: Options = DEFAULTS
) -> Comparison:
    """Inside a run: each further level of a factor over the first, the other factors equal.

    ``levels`` may be given as text; none stands for all of the run's.

    Raises:
        ComparisonError: no such factor or level, no such indicator.
    """
    known = {item.name: item.levels for item in run.factors}
    if factor not in known:
        raise ComparisonError(
            f"run {run.run.id} has no factor {factor!r}", _near(factor, list(known))
        )
    base, *others = _levels(run, factor, known[factor], levels)
    side = _side(f"{factor}={base}", [run])
    pairs = [
        _Pair(cell.parameters, frozenset({**cell.parameters, factor: base}.items()), key)
        for key, cell in side.cells[0].items()
        if cell.parameters[factor] in others
    ]
    sides = side, side._replace(name=" ".join(f"{factor}={level}" for level in others))
    return _comparison(sides, pairs, _states([run]), options)


def _levels(
    run: Findings, factor: str, known: Sequence[Level], asked: Sequence[Level]
) -> list[Level]:
    by_text = {str(level): level for level in known}
    all_levels = f"out of {', '.join(by_text)}"
    for level in asked:
        if str(level) not in by_text:
            raise ComparisonError(
                f"{factor}={level} is not among the levels of run {run.run.id}", all_levels
            )
    levels = [by_text[str(level)] for level in asked] or list(known)
    if len(levels) < 2 or len(set(levels)) < len(levels):
        raise ComparisonError(
            f"{factor}: {', '.join(map(str, levels))} leaves nothing to compare",
            f"--levels BASE,NEW {all_levels}",
        )
    return levels


def _side(name: str, sessions: Sequence[Findings]) -> _Side:
    cells = tuple(
        {frozenset(cell.parameters.items()): cell for cell in run.cells} for run in sessions
    )
    return _Side(name, tuple(sessions), cells)


def _names(sessions: Sequence[Findings]) -> str:
    return ", ".join(run.run.id for run in sessions)


# -- what is compared -------------------------------------------------------------------------


def _comparison(
    sides: tuple[_Side, _Side],
    pairs: Sequence[_Pair],
    warnings: Sequence[str],
    options: Options,
) -> Comparison:
    infos = _indicators(sides, options)
    drafts = [
        _draft(pair, info, sides, columns, options)
        for info in infos
        for columns in [_columns(sides, info.name)]
        for pair in pairs
    ]
    said = directions([draft.log for draft in drafts], options.effect)
    cells = tuple(
        msgspec.structs.replace(draft.cell, verdict=_verdict(direction, draft.better))
        for draft, direction in zip(drafts, said, strict=True)
    )
    return Comparison(
        base=sides[0].name,
        new=sides[1].name,
        factors=_varying(pairs),
        indicators=infos,
        effect=options.effect,
        method=options.method,
        cells=cells,
        warnings=tuple(warnings),
    )


class _Draft(NamedTuple):
    """A cell before all cells together say what it is."""

    cell: CellComparison
    log: LogRatio | None
    better: str


_Blocks = dict[int, float]
"""Values of a cell's trials in use, by block, in the order in which they were made."""

_Columns = tuple[tuple[dict[int, _Blocks], ...], ...]


def _columns(sides: tuple[_Side, _Side], name: str) -> _Columns:
    """Values by side, session, cell and block."""
    return tuple(tuple(run.blocks(name) for run in side.sessions) for side in sides)


def _draft(
    pair: _Pair,
    info: IndicatorInfo,
    sides: tuple[_Side, _Side],
    columns: _Columns,
    options: Options,
) -> _Draft:
    keys = pair.base, pair.new
    blocks = [
        [own.get(cells[key].index, {}) for cells, own in zip(side.cells, mine, strict=True)]
        for side, key, mine in zip(sides, keys, columns, strict=True)
    ]
    figures = [
        side.cells[0][key].indicators.get(info.name) if len(side.sessions) == 1 else None
        for side, key in zip(sides, keys, strict=True)
    ]
    remark = ""
    if sides[0].sessions[0] is sides[1].sessions[0] and all(blocks[0] + blocks[1]):
        blocks, remark = _interleaved(blocks, options.method)
    base, new = ([list(session.values()) for session in side] for side in blocks)
    note = _lack(sides, keys, [base, new], info)
    log = None
    if not note:
        log = _log_ratio(sides, new, base, options)
        note = remark if log else _no_interval([base, new], options.method)
    cell = CellComparison(
        parameters=pair.parameters,
        indicator=info.name,
        verdict="undecided",
        ratio=_ratio(new, base, log, options.method),
        base=figures[0],
        new=figures[1],
        note=note,
    )
    return _Draft(cell, log, info.better)


def _interleaved(
    blocks: Sequence[Sequence[_Blocks]], method: Method
) -> tuple[list[list[_Blocks]], str]:
    """Trials of two cells of one run that may be held against each other, and a remark.

    A cell that has its precision gets no further trials, the other goes on. Where the latter's
    own trials then differ from those before, the machine was no longer the same, and only the
    blocks that hold both count; in pairs it is always so.
    """
    (first,), (second,) = blocks
    both = sorted(first.keys() & second.keys())
    if method != "pairs" and not any(_drifted(cell, both) for cell in (first, second)):
        return [[first], [second]], ""
    common = [[{block: cell[block] for block in both}] for cell in (first, second)]
    if method == "pairs":
        return common, ""
    return common, (
        f"the machine changed while only one of them was measured; the {len(both)} blocks "
        "that hold both count"
    )


def _drifted(cell: _Blocks, both: Sequence[int]) -> bool:
    """Do a cell's trials outside the common blocks differ from those inside?"""
    inside = [cell[block] for block in both]
    outside = [value for block, value in cell.items() if block not in set(both)]
    if min(len(inside), len(outside)) < 2:
        return False
    change = log_ratio(outside, inside)
    return change is not None and min(change.p_above(), change.p_below()) < _DRIFT_LEVEL / 2


def _log_ratio(
    sides: tuple[_Side, _Side],
    new: Sequence[Sequence[float]],
    base: Sequence[Sequence[float]],
    options: Options,
) -> LogRatio | None:
    pilots = sides[1].sessions[0].run.pilot, sides[0].sessions[0].run.pilot
    if options.method == "pairs":
        return compared_in_pairs(new[0], base[0], pilots[0])
    return compared(new, base, options.method, pilots, options.seed)


def _lack(
    sides: tuple[_Side, _Side],
    keys: tuple[frozenset[tuple[str, Level]], ...],
    values: Sequence[Sequence[Sequence[float]]],
    info: IndicatorInfo,
) -> str:
    """Why a side has no figure, or an empty text."""
    for side, key, sessions in zip(sides, keys, values, strict=True):
        if not all(sessions):
            index = next(n for n, session in enumerate(sessions) if not session)
            cell, run = side.cells[index][key], side.sessions[index].run.id
            reason = cell.note or cell.absent.get(info.name) or "no trial has it"
            return f"{info.name} is missing in run {run}: {reason}"
    return ""


def _no_interval(values: Sequence[Sequence[Sequence[float]]], method: Method) -> str:
    for sessions in values:
        if len(sessions) == 1 and len(sessions[0]) < 2:
            return "a single trial has no interval"
    if any(mean([mean(session) for session in sessions]) <= 0 for sessions in values):
        return "a mean is not above 0, so there is no ratio"
    if method == "pairs":
        if any(value <= 0 for sessions in values for value in sessions[0]):
            return "a trial's value is not above 0, so it has no ratio (--interval welch)"
        return "fewer than two blocks hold trials of both"
    return (
        "several runs on one side, so two on each are needed" if method == "welch" else "no ratio"
    )


def _ratio(
    new: Sequence[Sequence[float]],
    base: Sequence[Sequence[float]],
    log: LogRatio | None,
    method: Method,
) -> Estimate | None:
    """The ratio with its 95 % interval; without one where the trials cannot bear it. In pairs
    it is the geometric mean of the blocks' ratios, else the ratio of the means."""
    if not all(new) or not all(base):
        return None
    top, bottom = (mean([mean(session) for session in sessions]) for sessions in (new, base))
    if top <= 0 or bottom <= 0:
        return None
    n = min(sum(map(len, sessions)) for sessions in (new, base))
    if log is None:
        return Estimate(value=top / bottom, n=n, unit="×")
    low, high = (math.exp(log.value) * growth(bound - log.value) for bound in log.interval())
    value = math.exp(log.value) if method == "pairs" else top / bottom
    return Estimate(value=value, low=low, high=high, n=n, unit="×")


def _verdict(direction: Direction, better: str) -> Change:
    """More of what should be low is slower."""
    if direction in ("same", "undecided"):
        return direction
    return "faster" if (direction == "higher") == (better == "higher") else "slower"


def _indicators(sides: tuple[_Side, _Side], options: Options) -> tuple[IndicatorInfo, ...]:
    """What is compared: the indicators asked for, else the primary one."""
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


def _info(run: Findings, name: str) -> IndicatorInfo:
    have = dict.fromkeys(known for dot in run.dots for known in dot.values)
    if name not in have:
        derived = any(name in cell.indicators for cell in run.cells)
        raise ComparisonError(
            f"run {run.run.id}: {name} is derived, not measured"
            if derived
            else f"run {run.run.id}: no trial has the indicator {name!r}",
            "--indicator wall_seconds" if derived else _near(name, list(have)),
        )
    return run.indicator(name)


# -- doubts -----------------------------------------------------------------------------------


def _machines(runs: Sequence[Findings], across: bool) -> Iterator[str]:
    """Other hardware is refused unless asked for; other settings of one machine are a warning."""
    first = runs[0]
    for run in runs[1:]:
        differences = machine_differences(first.machine, run.machine)
        listed = "; ".join(differences)
        if not is_same_machine(first.machine, run.machine):
            if not across:
                raise ComparisonError(
                    f"runs {first.run.id} and {run.run.id} are of different machines: {listed}",
                    "--across-machines, if that is what you want to compare",
                )
            yield f"{first.run.id} and {run.run.id} are of different machines: {listed}"
        elif differences:
            yield f"the machine was not the same in {first.run.id} and {run.run.id}: {listed}"


def _studies(base: Findings, new: Findings) -> Iterator[str]:
    if base.run.study != new.run.study:
        yield f"different studies: {base.run.study} and {new.run.study}"


def _sessions(base: Sequence[Findings], new: Sequence[Findings]) -> Iterator[str]:
    if (len(base) == 1) != (len(new) == 1):
        yield "one run against several: how runs of the former vary is not known"


def _states(runs: Sequence[Findings]) -> list[str]:
    found = []
    for run in runs:
        if run.run.state != "complete":
            found.append(f"run {run.run.id} is {run.run.state}, with {run.run.trials} trials")
        doubtful = sum(reject.used for reject in run.rejects)
        if doubtful:
            found.append(f"run {run.run.id}: {doubtful} trials are in use with a doubt")
    return found


def _common(base: _Side, new: _Side) -> tuple[list[frozenset[tuple[str, Level]]], list[str]]:
    """Cells that every session of both sides has, and what is said of the others."""
    everywhere = [*base.cells, *new.cells]
    common = [key for key in new.cells[0] if all(key in cells for cells in everywhere)]
    alone = {
        key: cells[key] for cells in everywhere for key in cells if key not in set(common)
    }  # fmt: skip
    if not alone or not common:
        return common, []
    names = [_setting(cell.parameters) for cell in list(alone.values())[:_NAMED_MAX]]
    more = f" and {len(alone) - _NAMED_MAX} more" if len(alone) > _NAMED_MAX else ""
    return common, [f"left out, as not every run has it: {'; '.join(names)}{more}"]


def _varying(pairs: Sequence[_Pair]) -> tuple[str, ...]:
    names = list(pairs[0].parameters)
    return tuple(n for n in names if len({pair.parameters[n] for pair in pairs}) > 1)


def _factors_of(run: Findings) -> str:
    return _setting({f.name: ",".join(map(str, f.levels)) for f in run.factors})


def _setting(parameters: Mapping[str, Level]) -> str:
    return " ".join(f"{name}={level}" for name, level in parameters.items()) or "the only cell"


def _near(name: str, names: list[str]) -> str:
    near = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {near[0]!r}?" if near else f"one of {', '.join(names) or 'none'}"
