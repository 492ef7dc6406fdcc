"""By which indicator the settings of a run are compared.

Wall time compares settings that do the same work. Two kinds of programs do not: those that run for
a fixed time and print how much they did (``pgbench -T 2``, ``wrk -d 2s``), and those in which each
worker brings its own work. Both are recognised by what they count, by what they print, and by
their CPU time; then wall time is never the ground of a recommendation, and no speed-up follows
from it. Decision 33 says why these signs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from concurve import words
from concurve.definition.extracting import (
    extract_option,
    parse_named_direction,
    tool_of,
    tool_to_read,
)
from concurve.definition.indicator_names import split_name
from concurve.definition.indicators_meant import indicator_meant
from concurve.definition.measured import MEASURED, fairness_info
from concurve.definition.study import Study
from concurve.definition.units import is_rate
from concurve.errors import RunError
from concurve.findings.run import Finding
from concurve.planning.plan import Plan
from concurve.stats.centre import centre, centre_estimate
from concurve.store.run_head import RunHead
from concurve.terms import IndicatorInfo

if TYPE_CHECKING:
    from concurve.analysis.run.tables import Table

WALL = "wall_seconds"
RATE = "rate_per_second"
EACH = "seconds_per_operation"

#: Indicators that follow from the wall time alone where no operations are counted.
_OF_WALL = (WALL, "run_seconds", "rate_per_second", "rate_per_worker")

#: Cells whose counts of operations differ by more than this share did unequal work.
_COUNTS_EQUAL = 0.01
#: As much for work that is the product of a printed rate and the wall time, whose noises add up.
_WORK_EQUAL = 0.10
#: Wall times are constant if they differ by no more than this share, or by no more than the middle
#: half of the trials of a cell do, up to the second one,
_CONSTANT = 0.05
_CONSTANT_MOST = 0.25
#: A figure moves if it differs by so many times as much as they do, and by more than its noise;
#: whatever that is, by this share.
_MOVES = 0.10
_MOVES_TIMES = 4.0
#: Where nothing else tells that a time was fixed, the wall times are the same within this share.
_SAME = 0.02
#: CPU time is proportional to the level within this share.
_PROPORTIONAL = 0.10
#: Work that grows keeps the wall time of the base cell at least; noise may take this share of it.
_FASTER = 0.05


class Speed(NamedTuple):
    """The indicator whose ratios are the speed-ups of a run; of a rate more is faster."""

    indicator: IndicatorInfo
    is_rate: bool

    def by(self, primary: str) -> str:
        """`` by wall time``; empty where this is what the study asks for."""
        return "" if self.indicator.name == primary else f" by {self.indicator.label}"


class Ground(NamedTuple):
    """``indicator``: by which settings are compared. ``doubt``: why none is recommended.
    ``speed``: by what speed-ups are measured; ``None`` where nothing compares the cells. ``said``:
    what was recognised, and how to overrule it. ``is_of_fixed_time``: nothing compares them, as the
    program decides for how long it runs."""

    indicator: IndicatorInfo
    doubt: str
    speed: Speed | None
    said: tuple[Finding, ...] = ()
    is_of_fixed_time: bool = False

    @property
    def throughput(self) -> str:
        """The rate by which the cells compare: the one of the speed-ups, else the total rate, which
        follows from the time; empty where nothing compares them."""
        if self.speed is None:
            return ""
        return self.speed.indicator.name if self.speed.is_rate else RATE


class _Unequal(NamedTuple):
    """Why wall times do not compare the cells. ``by``: the figure that shows it, if one does."""

    kind: Literal["counted", "fixed time", "unread", "unequal work", "growing work"]
    says: str
    by: str = ""


def ground_of(
    head: RunHead,
    plan: Plan,
    tables: Sequence[Table],
    infos: Sequence[IndicatorInfo],
    best_by: str,
) -> Ground:
    """The ground of a run. ``best_by`` is what the user asks for: an indicator, or one with its
    better direction as in ``tps:higher``; empty for the study's primary one.

    Raises:
        RunError: no trial has that indicator, or which direction is better is not known.
    """
    known = {info.name: info for info in infos}
    asked = _asked(head, tables, known, best_by)
    measured = [table for table in tables if table.used]
    counted = bool(measured) and all(EACH in table.used for table in measured)
    unequal = _unequal(head, plan, tables, known)
    directed = _directed(head, measured, known)
    speed = _of_versions(head, plan, measured, known, unequal is not None) or _speed(
        head, known, counted, unequal, directed
    )
    if unequal is None:
        said = (*_scaled(head, plan), *_unread(head, plan, measured, known))
        return Ground(asked, "", speed, said)
    if asked.name not in following_wall(tables):
        return Ground(asked, "", speed, _scaled(head, plan))
    if best_by:
        return Ground(asked, f"{unequal.says}, so it compares no settings", speed)
    if unequal.kind == "counted":
        return Ground(known[EACH], "", speed, (_switched(unequal, known[EACH]),))
    if directed:
        return Ground(directed[0], "", speed, (_switched(unequal, directed[0]),))
    is_of_fixed_time = unequal.kind in ("fixed time", "unread")
    said = (_remedy(head, plan, unequal, known),)
    return Ground(asked, unequal.says, None, said, is_of_fixed_time)


def following_wall(tables: Sequence[Table]) -> tuple[str, ...]:
    """The indicators that follow from the wall time alone; a rate does not where all programs
    counted their operations."""
    measured = [table for table in tables if table.used]
    are_counted = bool(measured) and all(EACH in table.used for table in measured)
    return (WALL, "run_seconds") if are_counted else _OF_WALL


def undirected(head: RunHead, ground: Ground) -> Iterator[Finding]:
    """That no setting is recommended because nobody said which direction of the figure is better,
    and how to say it; nothing where no setting is chosen, or of what the laboratory measures."""
    info, name = ground.indicator, ground.indicator.name
    is_known = info.better != "neither" or ground.doubt
    if is_known or not _is_directed_by_user(head.study, head.effort, name):
        return
    better, _ = _next_time(head.study, name, is_sweep=head.is_sweep)
    yield Finding(
        kind="answer",
        sentence=f"No setting is recommended: whether higher or lower {info.label or name} is "
        f"better is not known. For this run: concurve show {head.id} --best-by {name}:higher "
        f"(or :lower). For the next: {better}.",
    )


def undirected_before(study: Study, effort: str, *, is_sweep: bool) -> str:
    """The same before the run, in short; empty where its answer will have a direction."""
    name = study.primary
    info = next((item for item in study.indicators if item.name == name), None)
    if info is None or info.better != "neither" or not _is_directed_by_user(study, effort, name):
        return ""
    better, _ = _next_time(study, name, is_sweep=is_sweep)
    return f"no setting will be recommended: is higher or lower {name} better? Say it by {better}"


def _is_directed_by_user(study: Study, effort: str, name: str) -> bool:
    """Does a setting depend on a direction that only the user knows?"""
    chosen = [
        factor
        for factor in study.factors_at(effort)
        if len(factor.levels) > 1 and factor.name not in study.conditions
    ]
    plain = split_name(name)[1]
    is_known = {name, plain} & MEASURED.keys() or fairness_info(name)
    return bool(chosen) and not is_known and not study.simulation


def _asked(
    head: RunHead, tables: Sequence[Table], known: Mapping[str, IndicatorInfo], best_by: str
) -> IndicatorInfo:
    have = {name for table in tables for name in table.used}
    name, better = (best_by, "neither") if best_by in have else parse_named_direction(best_by)
    if not best_by:
        name = head.study.primary
    elif name not in have:
        stem, _, direction = best_by.rpartition(":")
        if stem in have:
            raise RunError(
                f"--best-by {best_by}: {direction!r} is no direction",
                f"--best-by {stem}:higher, or --best-by {stem}:lower",
            )
        if not have:
            raise RunError(
                f"run {head.id} has no trial in use, so it has no figures",
                f"concurve show {head.id} says why",
            )
        raise RunError(
            f"run {head.id}: no trial has the indicator {name!r}",
            indicator_meant(name, sorted(have)),
        )
    info = known.get(name, IndicatorInfo(name=name, label=name))
    if better != "neither":
        info = _replaced(info, better)
    if best_by and info.better == "neither":
        raise RunError(
            f"run {head.id}: whether higher or lower {name} is better is not known",
            f"--best-by {name}:higher, or --best-by {name}:lower",
        )
    return info


def _replaced(info: IndicatorInfo, better: str) -> IndicatorInfo:
    return msgspec.structs.replace(info, better=better)


# -- what is recognised -----------------------------------------------------------------------


def _unequal(
    head: RunHead, plan: Plan, tables: Sequence[Table], known: Mapping[str, IndicatorInfo]
) -> _Unequal | None:
    """Why the wall times of the cells do not compare equal work; ``None`` where they may."""
    study = head.study
    measured = [table for table in tables if table.used.get(WALL)]
    if study.simulation or study.work_amount == "fixed" or len(measured) < 2:
        return None
    if all(EACH in table.used for table in measured):
        return _counted(measured)
    return _printed(head, measured, known) or (
        _growing(plan, tables)
        if study.work_amount == "unknown" and not _rates(head, measured, known)
        else None
    )


def _counted(measured: Sequence[Table]) -> _Unequal | None:
    """Do the cells differ in the operations that were counted?"""
    times = zip(_centres(measured, WALL), _centres(measured, EACH), strict=True)
    if _spread([wall / each for wall, each in times if each > 0]) <= _COUNTS_EQUAL:
        return None
    return _Unequal("counted", "the cells did different numbers of operations", EACH)


def _printed(
    head: RunHead, measured: Sequence[Table], known: Mapping[str, IndicatorInfo]
) -> _Unequal | None:
    """Do the figures that were printed show unequal work? A rate says how much was done; other
    figures only that a time was fixed."""
    walls = _centres(measured, WALL)
    rates = _rates(head, measured, known)
    for info in rates:
        work = [_work(table, info.name) for table in measured]
        if unequal := _of_rate(info, measured, walls, work):
            return unequal
    if rates:
        return None  # they did the same work
    figures = _figures(head, measured, known)
    return _moving(measured, walls, figures) or _unread_tool(head, measured, walls, figures)


def _rates(
    head: RunHead, measured: Sequence[Table], known: Mapping[str, IndicatorInfo]
) -> list[IndicatorInfo]:
    """The rates that say how much was done: those of which more is better, else those of which
    nothing is known."""
    rates = [info for info in _figures(head, measured, known) if is_rate(info.name, info.unit)]
    return [info for info in rates if info.better == "higher"] or [
        info for info in rates if info.better == "neither"
    ]


def _of_rate(
    info: IndicatorInfo,
    measured: Sequence[Table],
    walls: Sequence[float],
    work: Sequence[Sequence[float]],
) -> _Unequal | None:
    """Unequal work: rate × wall time differs. Beside a constant wall time it is the rate alone that
    moves, so less of it will do."""
    differs = _spread([centre(values) for values in work])
    if _is_constant(measured, walls):
        is_fixed = differs >= _WORK_EQUAL or _move(work, walls)
        return _fixed_time(info, walls) if is_fixed else None
    if differs < _WORK_EQUAL:
        return None
    says = (
        f"the cells did different amounts of work ({info.label} times wall time differs by "
        f"{words.share(differs)})"
    )
    return _Unequal("unequal work", says, info.name)


def _moving(
    measured: Sequence[Table], walls: Sequence[float], figures: Sequence[IndicatorInfo]
) -> _Unequal | None:
    """A fixed time: a figure moves, and the wall time does not."""
    if not _is_constant(measured, walls):
        return None
    for info in figures:
        if _move([table.used[info.name] for table in measured], walls):
            return _fixed_time(info, walls)
    return None


def _unread_tool(
    head: RunHead,
    measured: Sequence[Table],
    walls: Sequence[float],
    figures: Sequence[IndicatorInfo],
) -> _Unequal | None:
    """A tool that is known to print how much it did, of which nothing is read, and that took the
    same time in all cells: it mostly is one that it was given."""
    tool = _tool(head)
    is_open = head.study.work_amount == "unknown" and not figures
    if not tool or not is_open or not _is_constant(measured, walls):
        return None
    took = words.duration(centre(list(walls)))
    return _Unequal(
        "unread", f"the tool {tool} seems to run for a fixed time ({took} in every cell)"
    )


def _tool(head: RunHead) -> str | None:
    """The tool that the measured role runs, if its output is known."""
    return tool_of(_command(head))


def _command(head: RunHead) -> Sequence[str]:
    """What the measured role starts that is none of our programs."""
    target = next((role for role in head.study.roles if role.name == head.study.target), None)
    return target.command if target and not target.program else ()


def _reading(head: RunHead) -> str:
    """The option that has read what the program prints."""
    tool = tool_to_read(_command(head))
    return f"--extract {tool}" if tool else "--extract 'rate=PATTERN:1/s:higher'"


def _fixed_time(info: IndicatorInfo, walls: Sequence[float]) -> _Unequal:
    says = (
        f"the program seems to run for a fixed time ({words.duration(centre(list(walls)))} in "
        f"every cell, while {info.label} differs)"
    )
    return _Unequal("fixed time", says, info.name)


def _growing(plan: Plan, tables: Sequence[Table]) -> _Unequal | None:
    """Work that grows: CPU time is proportional to the level, and no cell is faster than its
    base."""
    if plan.work is None or not plan.work_grows:
        return None
    most = 1.0
    for cell in plan.cells:
        own, base = tables[cell.index], tables[cell.base]
        level, least = plan.workers(cell), plan.workers(plan.cells[cell.base])
        if not level or not least or level <= least:
            continue
        if not (own.used.get(WALL) and base.used.get(WALL)):
            continue  # skipped, or not measured yet
        if not (own.used.get("cpu_seconds") and base.used.get("cpu_seconds")):
            return None
        cpu = _quotient(own, base, "cpu_seconds")
        if abs(cpu / (level / least) - 1) > _PROPORTIONAL or _quotient(own, base, WALL) < (
            1 - _FASTER
        ):
            return None
        most = max(most, level / least)
    if most < 2:
        return None
    says = (
        f"the work seems to grow with {plan.work} (CPU time is proportional to it: {most:g} times "
        f"at {most:g} times as many)"
    )
    return _Unequal("growing work", says)


# -- the figures that may compare -------------------------------------------------------------


def _figures(
    head: RunHead, measured: Sequence[Table], known: Mapping[str, IndicatorInfo]
) -> list[IndicatorInfo]:
    """The figures of the program that all cells have, above 0: those that the study names, and in a
    sweep all that the measured role reports."""
    study = head.study
    names = dict.fromkeys(item.name for item in study.indicators)
    if study.work_amount == "unknown":
        reported = (name for table in measured for name in table.used if "." not in name)
        names.update(
            dict.fromkeys(
                name
                for name in reported
                if name in known and known[name].is_reported and not fairness_info(name)
            )
        )
    return [
        known[name]
        for name in names
        if name in known
        and name not in MEASURED
        and all(table.used.get(name) and min(table.used[name]) > 0 for table in measured)
    ]


def _directed(
    head: RunHead, measured: Sequence[Table], known: Mapping[str, IndicatorInfo]
) -> list[IndicatorInfo]:
    """The figures of which it is known which direction is better, the throughputs first."""
    found = [info for info in _figures(head, measured, known) if info.better != "neither"]
    return sorted(found, key=lambda info: not _is_throughput(info))


def _is_throughput(info: IndicatorInfo) -> bool:
    return info.better == "higher" and is_rate(info.name, info.unit)


#: Units of a time.
_TIMES = ("s", "ms", "µs", "us", "ns")


def _of_versions(
    head: RunHead,
    plan: Plan,
    measured: Sequence[Table],
    known: Mapping[str, IndicatorInfo],
    is_unequal: bool,
) -> Speed | None:
    """The time or rate that is asked for in place of the wall time, where nothing counts as
    concurrency: versions are compared, and that one is faster by another figure is no answer.
    ``None`` where none is asked for, or where it grows with work that differs."""
    asked = known.get(head.study.primary)
    if plan.work is not None or asked is None or asked.name in (*_OF_WALL, EACH):
        return None
    if is_unequal and asked.name in MEASURED:
        return None
    is_time = asked.better == "lower" and asked.unit in _TIMES
    if not (is_time or _is_throughput(asked)):
        return None
    has_all = all(
        table.used.get(asked.name) and min(table.used[asked.name]) > 0 for table in measured
    )
    return Speed(asked, is_rate=not is_time) if has_all else None


def _speed(
    head: RunHead,
    known: Mapping[str, IndicatorInfo],
    counted: bool,
    unequal: _Unequal | None,
    directed: Sequence[IndicatorInfo],
) -> Speed | None:
    """By what speed-ups are measured: the throughput that is extracted where it is primary; the
    time per operation where operations are counted, or the rate of these where that is primary; the
    throughput that is extracted where wall time compares nothing; else the wall time."""
    extracted = {extract.name for extract in head.study.extracts}
    rates = [info for info in directed if _is_throughput(info)]
    primary = [info for info in rates if info.name == head.study.primary in extracted]
    if counted and not primary:
        is_asked = head.study.primary == RATE
        return Speed(known[RATE], is_rate=True) if is_asked else Speed(known[EACH], is_rate=False)
    if primary or (unequal and rates):
        return Speed((primary or rates)[0], is_rate=True)
    return None if unequal else Speed(known[WALL], is_rate=False)


# -- what is said -----------------------------------------------------------------------------


def _switched(unequal: _Unequal, info: IndicatorInfo) -> Finding:
    says = words.sentence(unequal.says)
    return Finding(
        kind="note", sentence=f"{says}, so settings are compared by {info.label}, not by wall time."
    )


def _scaled(head: RunHead, plan: Plan) -> tuple[Finding, ...]:
    if head.study.work_amount != "scales" or plan.work is None:
        return ()
    sentence = (
        f"Each of {plan.work} counts as one unit of work, since the work scales, so rates are "
        "units of work a second."
    )
    return (Finding(kind="note", sentence=sentence),)


def _unread(
    head: RunHead, plan: Plan, measured: Sequence[Table], known: Mapping[str, IndicatorInfo]
) -> Iterator[Finding]:
    """A hint where nothing but the wall time was read of a program, and that is the same in all
    cells: it may run for a fixed time and print how much it did, which nobody asked for."""
    is_open = head.study.work_amount == "unknown" and plan.work is not None
    if not is_open or len(measured) < 2 or _figures(head, measured, known):
        return
    walls = _centres(measured, WALL)
    if _spread(walls) <= _SAME:
        yield Finding(
            kind="note",
            sentence=f"Wall time is the same in all cells. If the program runs for a fixed time "
            f"({words.duration(centre(walls))}) and prints how much it did, have that read: "
            f"{_reading(head)} (concurve sweep --help).",
        )


def _remedy(
    head: RunHead, plan: Plan, unequal: _Unequal, known: Mapping[str, IndicatorInfo]
) -> Finding:
    """What to add, so that a setting can be recommended."""
    says = words.sentence(unequal.says)
    if unequal.kind == "growing work":
        sentence = (
            f"{says}, so wall time does not compare the cells. If each of {plan.work} brings its "
            "own work, add --work scales: then cells are compared by work a second. If all cells "
            "do the same work, add --work fixed."
        )
        return Finding(kind="warning", sentence=sentence)
    if unequal.kind == "unread":
        sentence = (
            f"{says}, so wall time does not compare the cells. Have its figures read in the next "
            f"run: {_reading(head)}. If all cells do the same work: --work fixed."
        )
        return Finding(kind="warning", sentence=sentence)
    name = unequal.by
    better, fixed = _next_time(head.study, name, is_sweep=head.is_sweep)
    sentence = (
        f"{says}, so wall time does not compare the cells. Say whether higher or lower "
        f"{known[name].label} is better. For this run: concurve show {head.id} --best-by "
        f"{name}:higher (or :lower). For the next: {better}. If all cells do the same work: "
        f"{fixed}."
    )
    return Finding(kind="warning", sentence=sentence)


def _next_time(study: Study, name: str, *, is_sweep: bool) -> tuple[str, str]:
    """How the better direction of a figure, and that the work is fixed, are said in the next run:
    by options of a sweep, or by keys of a study file."""
    if not is_sweep:
        better = f'better = "higher" (or "lower") in the entry {name} of [[indicators]]'
        return better, 'work_amount = "fixed" in [protocol]'
    extract = next((item for item in study.extracts if item.name == name), None)
    option = f"--primary {name}:higher" if extract is None else extract_option(extract, "higher")
    return f"{option} (or :lower)", "--work fixed"


# -- arithmetic -------------------------------------------------------------------------------


def _centres(tables: Sequence[Table], name: str) -> list[float]:
    return [centre(table.used[name]) for table in tables]


def _spread(values: Sequence[float]) -> float:
    """By which share the greatest exceeds the least; 0 where one is not above 0."""
    return max(values) / min(values) - 1 if values and min(values) > 0 else 0.0


def _work(table: Table, rate: str) -> list[float]:
    """How much was done: rate × wall time, trial by trial, since their noises belong together."""
    rates, walls = table.by_block(rate), table.by_block(WALL)
    return [rates[block] * walls[block] for block in rates.keys() & walls.keys()] or [0.0]


def _move(cells: Sequence[Sequence[float]], walls: Sequence[float]) -> bool:
    """Does a figure differ between cells while their wall times do not?"""
    moved = _spread([centre(values) for values in cells])
    if moved < _MOVES_TIMES * _spread(walls):
        return False
    return moved >= _MOVES or _differ(cells)


def _differ(cells: Sequence[Sequence[float]]) -> bool:
    """Do cells differ by more than their noise? Intervals that hold together have a gap."""
    confidence = 1 - 0.05 / len(cells)
    found = [centre_estimate(values, confidence=confidence) for values in cells]
    bounds = [(it.low, it.high) for it in found if it.low is not None and it.high is not None]
    known = len(bounds) == len(cells)
    return known and max(low for low, _ in bounds) > min(high for _, high in bounds)


def _is_constant(measured: Sequence[Table], walls: Sequence[float]) -> bool:
    """Are the wall times of the cells the same within their noise?"""
    spread = _spread(walls)
    if spread <= _CONSTANT or spread > _CONSTANT_MOST:
        return spread <= _CONSTANT  # whatever the noise: it is looked at only where it decides
    return spread <= max(_scatter(table.used[WALL]) for table in measured)


def _scatter(values: Sequence[float]) -> float:
    """By which share the middle half of some values spreads."""
    ordered = sorted(values)
    cut = len(ordered) // 4
    return _spread(ordered[cut : len(ordered) - cut])


def _quotient(own: Table, base: Table, name: str) -> float:
    below = centre(base.used[name])
    return centre(own.used[name]) / below if below > 0 else 0.0
