"""Scaling models of a run: its throughput against the work factor, for each combination of the
other factors. Pure; findings in, :class:`~concurve.findings.fit.ScalingFinding` out.

A module of its own, so that views without curves do not wait for the fits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from concurve import words
from concurve.analysis.fit import notes_of
from concurve.analysis.granted import Pool
from concurve.analysis.ground import RATE
from concurve.errors import ConcurveError
from concurve.estimate import Estimate
from concurve.findings.cells import CellFindings
from concurve.findings.fit import CurvePoint, FitResult, Prediction
from concurve.findings.run import Findings, TrialFindings
from concurve.findings.scaling import ScalingFinding
from concurve.models import fit_many, predict
from concurve.models.cpus import USED_UP, Within, within_cpus
from concurve.models.curve import REPLICATES_MIN, make_curve
from concurve.models.predict import FAR, HELD, beyond_the_curve, curve_of, no_value
from concurve.models.sentences import in_digits, in_words
from concurve.readings.centres import greatest_of
from concurve.terms import Factor, Level

#: Why no model is fitted where the cells do not compare.
_NOTHING = "wall time does not compare the cells, and no throughput is known that does"
#: Ratios of a figure to that of a base cell: no throughput, although more is better.
_RELATIVE = ("speedup", "efficiency")
#: Points of a drawn curve, from the least level to twice the greatest.
_POINTS = 64
#: Throughput that is this many times another one has grown.
_GROWN = 1.15
#: Trials do the same work if rate × time differs by no more than this share.
_SAME_WORK = 1e-6


class _Group(NamedTuple):
    """Cells that differ in the work factor only, with the levels that they share; those whose load
    ``failed`` are apart from the others."""

    shared: dict[str, Level]
    cells: list[CellFindings]
    failed: list[CellFindings]


def scaling_of(
    findings: TrialFindings, granted: Mapping[int, Sequence[Pool]] | None = None
) -> tuple[ScalingFinding, ...]:
    """The models of each group of cells that differ in the work factor only; none where no numeric
    factor of three levels or more counts as concurrency. ``granted`` are the CPUs of each cell:
    levels beyond those of a role that has them for itself are set apart where they are used up, and
    nothing is predicted beyond any that are."""
    work = findings.work
    if work is None or not findings.can_have_models:
        return ()
    name, groups = throughput_of(findings), _groups(findings, work)
    if not name:
        return tuple(
            _refused(findings, work, findings.primary, group, _NOTHING) for group in groups
        )
    trials = findings.columns(name)
    if not trials:
        return ()
    limited = [
        _within(findings, group, work.name, _trials_of(group, work.name, trials), granted or {})
        for group in groups
    ]
    columns = [(within.n.tolist(), within.x.tolist()) for within in limited]
    reasons = [
        _refusal(*column, within.said) if group.cells else "the load failed at all levels"
        for group, column, within in zip(groups, columns, limited, strict=True)
    ]
    fitted = iter(
        fit_many(
            [column for column, reason in zip(columns, reasons, strict=True) if not reason],
            unit=findings.indicator(name).unit,
        )
    )
    done = work_done(findings, name)
    return tuple(
        _refused(findings, work, name, group, reason)
        if reason
        else _finding(
            findings,
            work,
            name,
            group,
            next(fitted),
            done,
            within.said,
            _pools(group, granted or {}),
        )
        for group, reason, within in zip(groups, reasons, limited, strict=True)
    )


def throughput_of(findings: Findings) -> str:
    """The indicator that models are fitted to: the primary one where it is a rate of its own (more
    of it is better, and nothing bounds it), else the rate by which the cells compare; empty where
    nothing compares them."""
    primary = findings.indicator(findings.primary)
    bounded = primary.name in _RELATIVE or greatest_of(primary.name, primary.unit) is not None
    is_own = primary.better == "higher" and not bounded and primary.name != RATE
    return primary.name if is_own else findings.throughput


def work_done(findings: TrialFindings, throughput: str) -> float | None:
    """What each trial does, as throughput × wall time, where that is the same for all: then the
    time and the speed-up follow from the throughput. ``None`` where it differs."""
    failed = {cell.index for cell in findings.cells if cell.load_failed}
    found = [
        dot.values[throughput] * dot.values["wall_seconds"]
        for dot in findings.dots
        if dot.used and {throughput, "wall_seconds"} <= dot.values.keys() and dot.cell not in failed
    ]
    if not found or min(found) <= 0 or max(found) > min(found) * (1 + _SAME_WORK):
        return None
    return found[0]


def _groups(findings: Findings, work: Factor) -> list[_Group]:
    varied = [f.name for f in findings.factors if len(f.levels) > 1 and f.name != work.name]
    groups: dict[tuple[Level, ...], _Group] = {}
    for cell in findings.cells:
        shared = {name: cell.parameters[name] for name in varied}
        group = groups.setdefault(tuple(shared.values()), _Group(shared, [], []))
        (group.failed if cell.load_failed else group.cells).append(cell)
    return list(groups.values())


def _trials_of(
    group: _Group, work: str, trials: dict[int, list[float]]
) -> tuple[list[float], list[float]]:
    """Workers and throughput of every trial of a group, without those of skipped cells."""
    n: list[float] = []
    x: list[float] = []
    for cell in group.cells:
        values = () if cell.status == "skipped" else trials.get(cell.index, ())
        n += [float(cell.parameters[work])] * len(values)
        x += values
    return n, x


def _within(
    findings: TrialFindings,
    group: _Group,
    work: str,
    trials: tuple[list[float], list[float]],
    granted: Mapping[int, Sequence[Pool]],
) -> Within:
    """The trials of a group at levels that its CPUs allow. Where the CPUs differ between its cells,
    or are not known, or other roles share them, or their use was not measured, nothing is set
    apart."""
    pools = _pools(group, granted)
    cpus = pools[0].cpus if len(pools) == 1 and pools[0].is_own else None
    used = {
        float(cell.parameters[work]): _wanted_cpus(cell)
        for cell in group.cells
        if "cpus_used" in cell.indicators
    }
    beyond = {level for level in trials[0] if cpus is not None and level > cpus}
    return within_cpus(*trials, cpus if beyond <= used.keys() else None, used)


def _pools(group: _Group, granted: Mapping[int, Sequence[Pool]]) -> Sequence[Pool]:
    """The pools of CPUs that all cells of a group have; none where they are not known."""
    of_cells = [granted.get(cell.index, ()) for cell in group.cells]
    first = of_cells[0] if of_cells else ()
    return [pool for pool in first if all(pool in other for other in of_cells)]


def _wanted_cpus(cell: CellFindings, role: str = "") -> float:
    """The CPUs that a role of a cell used; where others had the CPUs too, with those that it waited
    for. On a quiet machine it would have them, so more workers would share what is there."""
    figures, of = cell.indicators, f"{role}." if role else ""
    used = figures[f"{of}cpus_used"]
    wall, queue = figures.get(f"{of}wall_seconds"), figures.get(f"{of}run_queue_seconds")
    if not used.in_doubt or wall is None or queue is None or wall.value <= 0:
        return used.value
    return used.value + queue.value / wall.value


class _Ceiling(NamedTuple):
    """CPUs, or a single thread, that a throughput uses: ``name`` says which, ``most`` how many
    there are, ``used`` how many the greatest level used, or waited for while others had them, and
    ``own`` how many it used itself. ``throughput``: where they are used up, by what it takes more
    of them; infinite where it takes no more."""

    name: str
    most: float
    used: float
    throughput: float
    own: float

    @property
    def is_reached(self) -> bool:
        """Are they used up at the greatest level?"""
        return self.used >= USED_UP * self.most

    @property
    def is_with_others(self) -> bool:
        """Are they used up, and not by the roles alone?"""
        return self.is_reached and self.own < USED_UP * self.most


def _ceilings(
    group: _Group, work: str, result: FitResult, pools: Sequence[Pool]
) -> Iterator[_Ceiling]:
    """What the greatest level of a fit uses of each pool, and of the only thread of a role."""
    by_level = {float(cell.parameters[work]): cell for cell in group.cells}
    first, last = (by_level[level] for level in (min(result.levels), max(result.levels)))
    several = len(pools) > 1 or any(len(pool.roles) > 1 for pool in pools)
    for pool in pools:
        whose = _whose(pool, several=several)
        named = f"{'the one CPU' if pool.cpus == 1 else f'the {pool.cpus:g} CPUs'}{whose}"
        yield from _ceiling(named, pool.cpus, pool.roles, (first, last), result)
    for role in sorted({role for pool in pools for role in pool.roles}):
        threads = last.indicators.get(f"{role}.threads_peak" if role else "threads_peak")
        if threads is not None and threads.value == 1:
            of = f" of {role}" if role else " of the measured role" if several else ""
            yield from _ceiling(f"the one thread{of}", 1.0, (role,), (first, last), result)


def _whose(pool: Pool, *, several: bool) -> str:
    """Which roles have the CPUs, where the study has several."""
    if not several:
        return ""
    if len(pool.roles) > 1:
        return " that all roles share"
    return f" of {pool.roles[0] or 'the measured role'}"


def _ceiling(
    name: str,
    most: float,
    roles: Sequence[str],
    cells: tuple[CellFindings, CellFindings],
    result: FitResult,
) -> Iterator[_Ceiling]:
    """The ceiling of these CPUs, by what the least and the greatest level used; none where no use
    is known. Of a role without accounts the others' alone count: then they are less than is used.
    """
    used = [
        sum(
            _wanted_cpus(cell, role)
            for role in roles
            if (f"{role}.cpus_used" if role else "cpus_used") in cell.indicators
        )
        for cell in cells
    ]
    if used[1] <= 0:
        return
    low, top = (
        next(
            centre.value
            for level, centre in zip(result.levels, result.centres, strict=True)
            if level == at
        )
        for at in (min(result.levels), max(result.levels))
    )
    if used[0] >= USED_UP * most and top > _GROWN * low:
        return  # the least level used them all, and more workers got further all the same
    # What is used without any throughput, such as by who spins, does not grow with it.
    rising = (top - low) / (used[1] - used[0]) if used[1] > used[0] else math.inf
    growth = max(rising, top / used[1])
    names = [f"{role}.cpus_used" if role else "cpus_used" for role in roles]
    figures = [figure for it in names if (figure := cells[1].indicators.get(it)) is not None]
    own = sum(figure.value for figure in figures)
    yield _Ceiling(name, most, used[1], top + max(0.0, most - used[1]) * growth, own)


def _refusal(n: Sequence[float], x: Sequence[float], apart: str) -> str:
    """Why no curve can be fitted to these trials; empty if one can."""
    try:
        make_curve(n, x, absolute=False)
    except ConcurveError as error:
        if not apart:
            return error.what
        return f"{apart} Up to the CPUs, {error.what}"
    return ""


def _refused(
    findings: Findings, work: Factor, name: str, group: _Group, reason: str
) -> ScalingFinding:
    return ScalingFinding(
        indicator=name,
        label=findings.indicator(name).label,
        work=work.name,
        group=group.shared,
        reason=f"{reason}. {_left_out(work, group)}".removesuffix(".")
        if group.cells and group.failed
        else reason,
    )


def _finding(
    findings: Findings,
    work: Factor,
    name: str,
    group: _Group,
    result: FitResult,
    done: float | None,
    apart: str,
    pools: Sequence[Pool],
) -> ScalingFinding:
    """What the models say. Beyond CPUs that are used up nothing is predicted: there they are the
    limit, not the curve; nor where no model describes the curve, or the chosen one has no value."""
    result = _as_printed(result, work.name, group, name)
    ceilings = list(_ceilings(group, work.name, result, pools))
    if not apart and result.misfit is None:
        apart = _used_up(work.name, result, ceilings)
    is_open = not apart and result.misfit is None
    far = [FAR * max(result.levels)]
    is_lost = is_open and bool(beyond_the_curve(result, far))
    twice = predict(result, far)[0] if is_open and not is_lost else None
    lowest = min(ceilings, key=lambda item: item.throughput, default=None)
    if twice is not None and lowest is not None and twice.throughput.value > lowest.throughput:
        apart, twice = _out_of_reach(work.name, result, lowest), None
    most = math.inf if lowest is None else lowest.throughput
    said = in_words(result)
    return ScalingFinding(
        indicator=name,
        label=findings.indicator(name).label,
        work=work.name,
        group=group.shared,
        fit=result,
        expected=twice,
        curves=_curves(findings, name, group, result, done, most if is_open else 0.0),
        parameters=said.partition(": ")[2].removesuffix("."),
        answers=tuple(
            filter(
                None,
                (
                    said,
                    *result.answers,
                    apart if twice is None else _ahead(work.name, result, twice),
                    f"{words.sentence(no_value(result, far))}." if is_lost else "",
                    _left_out(work, group),
                ),
            )
        ),
        warnings=(*_doubted(work.name, group, name), *result.warnings),
        notes=notes_of(result, work.name, name),
    )


def _used_up(work: str, result: FitResult, ceilings: Sequence[_Ceiling]) -> str:
    """That CPUs are used up at the greatest level; empty where none are."""
    full = next((item for item in ceilings if item.is_reached), None)
    if full is None:
        return ""
    are = "are" if "CPUs" in full.name else "is"
    by = " by others too" if full.is_with_others else ""
    waits = ", and more waited for while others had them" if full.is_with_others else ""
    return (
        f"{words.sentence(full.name)} {are} used up{by} at {work}={max(result.levels):g} "
        f"({min(full.own, full.most):.3g} in use{waits}): nothing is predicted beyond."
    )


def _out_of_reach(work: str, result: FitResult, ceiling: _Ceiling) -> str:
    """That the CPUs are used up before the throughput is reached that the models expect."""
    top = max(result.levels)
    unit = result.best.parameters["gamma"].unit
    most = f"{in_digits(ceiling.throughput, 3)}{f' {unit}' if unit else ''}"
    are = "are" if "CPUs" in ceiling.name else "is"
    return (
        f"Nothing is predicted at {work}={FAR * top:g}: by the CPU use at {work}={top:g} "
        f"({ceiling.used:.3g}), {ceiling.name} {are} used up at a throughput of about {most}."
    )


def _doubted(work: str, group: _Group, name: str) -> Iterator[str]:
    """That the curve rests on figures in doubt."""
    figures = [cell.indicators[name] for cell in group.cells if name in cell.indicators]
    doubted = sum(figure.in_doubt for figure in figures)
    if not doubted:
        return
    some = f"{doubted} of {len(figures)} levels"
    if doubted == len(figures):
        some = f"All {len(figures)} levels"
    yield (
        f"{some} of {work} {'is' if doubted == 1 else 'are'} in doubt, because the machine was "
        "not quiet: the curve, and what is expected by it, may show the disturbance."
    )


def _left_out(work: Factor, group: _Group) -> str:
    """``n=4 and n=8 are left out: their load failed.``; empty where none did."""
    levels = [f"{work.name}={cell.parameters[work.name]}" for cell in group.failed]
    are = "is left out: its" if len(levels) == 1 else "are left out: their"
    return f"{words.listed(levels)} {are} load failed." if levels else ""


def _as_printed(result: FitResult, work: str, group: _Group, name: str) -> FitResult:
    """The fit with the figures of the cells at its levels: their intervals know of the clock, of
    doubts, and of what set the number of trials. Few trials have a wider one about the curve."""
    figures = {float(cell.parameters[work]): cell.indicators.get(name) for cell in group.cells}

    def printed(level: float, own: Estimate) -> Estimate:
        figure = figures.get(level)
        if figure is None or figure.low is None or figure.n < REPLICATES_MIN:
            return own
        return figure

    centres = (printed(*pair) for pair in zip(result.levels, result.centres, strict=True))
    return msgspec.structs.replace(result, centres=tuple(centres))


def _ahead(work: str, result: FitResult, expected: Prediction) -> str:
    """What to expect at twice the greatest level, in words."""
    figure = expected.throughput
    assert figure.low is not None and figure.high is not None
    unit = f" {figure.unit}" if figure.unit else ""
    return (
        f"At {work}={expected.n:g}, twice the greatest level measured, "
        f"{in_digits(figure.value)}{unit} is expected over all models "
        f"({in_digits(figure.low)} to {in_digits(figure.high)}, {HELD}); further out any "
        "prediction is a guess."
    )


def _curves(
    findings: Findings,
    name: str,
    group: _Group,
    result: FitResult,
    done: float | None,
    most: float,
) -> dict[str, tuple[CurvePoint, ...]]:
    """The curve of the throughput, and of the indicators that follow from it; beyond the levels as
    far as it is no more than ``most``."""
    rate = tuple(point for point in _curve(result) if not point.beyond or point.value <= most)
    curves = {name: rate}
    if done is None:
        return curves
    curves["wall_seconds"] = tuple(
        msgspec.structs.replace(
            point, value=done / point.value, low=done / point.high, high=done / point.low
        )
        for point in rate
    )
    bases = {cell.base for cell in group.cells if "speedup" in cell.indicators}
    base = bases.pop() if len(bases) == 1 else None
    wall = None if base is None else findings.cells[base].indicators.get("wall_seconds")
    if wall is not None:
        curves["speedup"] = tuple(_times(point, wall.value / done) for point in rate)
    return curves


def _times(point: CurvePoint, factor: float) -> CurvePoint:
    return msgspec.structs.replace(
        point, value=point.value * factor, low=point.low * factor, high=point.high * factor
    )


def _curve(result: FitResult) -> tuple[CurvePoint, ...]:
    """The chosen model within the measured range, the expectation from its end to twice that, as
    far as there is one."""
    bottom, top = min(result.levels), max(result.levels)
    steps = (bottom * (FAR * top / bottom) ** (step / _POINTS) for step in range(_POINTS))
    inside = sorted({*(n for n in steps if n < top), *result.levels})
    further = [top * FAR ** (step / 16) for step in range(17)]
    lost = set(beyond_the_curve(result, further))
    ahead = [n for n in further if n not in lost]
    chosen = curve_of(result.best, inside)
    points = []
    for number, item in enumerate(predict(result, [*inside, *ahead])):
        figure, beyond = item.throughput, number >= len(inside)
        assert figure.low is not None and figure.high is not None
        value = figure.value if beyond else float(chosen[number])
        points.append(
            CurvePoint(n=item.n, value=value, low=figure.low, high=figure.high, beyond=beyond)
        )
    return tuple(point for point in points if math.isfinite(point.value))
