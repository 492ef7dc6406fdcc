"""Two runs, or two levels of a factor, cell by cell →
:class:`~concurve.findings.comparison.Comparison`. Pure.

``options`` says what is compared, ``sides`` finds the cells to compare and warns of differences,
and ``cells`` compares each pair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec

from concurve import words
from concurve.analysis.comparison.advice import advice, together
from concurve.analysis.comparison.cells import (
    CPU_TIME,
    Draft,
    ToldByCpuTime,
    columns_of,
    draft_of,
    is_staged,
    quiet_pairs,
    told_by_cpu_time,
    verdict_of,
)
from concurve.analysis.comparison.claims import claims_on_both
from concurve.analysis.comparison.hints import (
    hints,
    hints_of_others,
    other_figures,
    verdicts_by_cpu_time,
    with_verdicts,
)
from concurve.analysis.comparison.options import (
    DEFAULTS,
    Options,
    compares_nothing,
    indicators_beside,
    indicators_of,
)
from concurve.analysis.comparison.sides import (
    Pair,
    Side,
    apart,
    common_cells,
    factors_of,
    machines,
    names_of,
    sessions,
    side_of,
    states,
    studies,
    varying,
    without,
)
from concurve.errors import ComparisonError
from concurve.findings.comparison import CellComparison, Comparison
from concurve.findings.run import TrialFindings
from concurve.stats.centre import staged
from concurve.stats.comparison import (
    Direction,
    Method,
    deciding_intervals,
    directions,
)
from concurve.terms import IndicatorInfo, Level, cell_key
from concurve.words import meant


def compare_runs(
    base: Sequence[TrialFindings], new: Sequence[TrialFindings], options: Options = DEFAULTS
) -> Comparison:
    """Each cell of ``new`` over the same cell of ``base``. Several runs on a side are sessions
    of one experiment. A factor of one level on each side, another on each, is what is compared:
    the settings of a server, say, that ran before either.

    Raises:
        ComparisonError: no cell in common, other units, another machine, no such indicator.
    """
    return compare_with_base(base, [new], options)[0]


def compare_with_base(
    base: Sequence[TrialFindings],
    news: Sequence[Sequence[TrialFindings]],
    options: Options = DEFAULTS,
) -> list[Comparison]:
    """The same of several sides against one base. The verdicts are of all cells of all of them
    together.

    Raises:
        ComparisonError: as :func:`compare_runs`.
    """
    drafted = [_drafted_runs(base, new, options) for new in news]
    return [
        msgspec.structs.replace(found, claims=claims_on_both(item.sides))
        for item, found in zip(drafted, _settled(drafted, options), strict=True)
    ]


def _drafted_runs(
    base: Sequence[TrialFindings], new: Sequence[TrialFindings], options: Options
) -> _Drafted:
    twice = {run.run.id for run in base} & {run.run.id for run in new}
    if twice:
        raise ComparisonError(
            f"run {min(twice)} is on both sides",
            "two runs, or --factor NAME --levels BASE,NEW inside one",
        )
    names = apart(base, new)
    called = names_of(base, new)
    sides = side_of(called[0], base, names), side_of(called[1], new, names)
    common, unmatched = common_cells(*sides)
    if not common:
        raise ComparisonError(
            f"{sides[0].name} and {sides[1].name} have no cell in common: "
            f"{factors_of(base[0])} against {factors_of(new[0])}",
            "runs over the same factors and levels",
        )
    pairs = [Pair(without(sides[1].cells[0][key].parameters, names), key, key) for key in common]
    warnings = [
        *machines([*base, *new], options.across_machines),
        *studies(base[0], new[0]),
        *sessions(base, new),
        *unmatched,
        *states([*base, *new], options.in_doubt),
    ]
    return _drafted(sides, pairs, warnings, options, "ranks")


def compare_levels(
    run: TrialFindings, factor: str, levels: Sequence[Level] = (), options: Options = DEFAULTS
) -> Comparison:
    """Inside a run: each further level of a factor over the first, the other factors equal.

    ``levels`` may be given as text; none stands for all of the run's.

    Raises:
        ComparisonError: no such factor or level, no such indicator.
    """
    return _settled([_drafted_levels(run, factor, levels, options)], options)[0]


class OfUndecided(NamedTuple):
    """What :func:`compare_levels` says of undecided levels: which is faster by CPU time, where the
    machine was not quiet (``verdicts``, by the level), that their CPU time differs (``hints``), and
    how many trials would decide (``plan``); nothing where it says nothing."""

    verdicts: dict[Level, str]
    hints: tuple[str, ...]
    plan: tuple[str, ...]


def of_undecided_levels(
    run: TrialFindings, factor: str, levels: Sequence[Level], options: Options = DEFAULTS
) -> OfUndecided:
    """What :func:`compare_levels` says of the levels where they are undecided. There is no plan
    where one of them is in doubt: a quiet machine comes first.

    Raises:
        ComparisonError: as :func:`compare_levels`.
    """
    drafted = _drafted_levels(run, factor, levels, options)
    error = _errors([drafted], options)
    cells, beside = (
        _judged(drafts, iter(_directions(drafts, options, level)))
        for drafts, level in (
            (drafted.drafts, error.cells),
            (drafted.by_cpu_time, error.by_cpu_time),
        )
    )
    is_doubted = any(cell.is_doubted for cell in cells)
    verdicts, hinted = _by_cpu_time(drafted, cells, beside, options)
    cells = list(with_verdicts(cells, list(verdicts.values())))
    return OfUndecided(
        {cell.parameters[factor]: text for text, cell in verdicts.items()},
        hinted,
        () if is_doubted else _advice(drafted, cells, options),
    )


def _by_cpu_time(
    drafted: _Drafted,
    cells: Sequence[CellComparison],
    beside: Sequence[CellComparison],
    options: Options,
) -> tuple[dict[str, CellComparison], tuple[str, ...]]:
    """What CPU time says of the cells that are undecided: verdicts, and hints on the others."""
    if not beside:
        return {}, ()
    sides, infos = drafted.sides, drafted.infos
    verdicts = verdicts_by_cpu_time(cells, beside, drafted.told, sides[0].name, options.effect)
    left = [cell for cell in beside if cell not in verdicts.values()]
    return verdicts, hints(cells, left, infos, _cpu_time(sides))


def _advice(
    drafted: _Drafted, cells: Sequence[CellComparison], options: Options
) -> tuple[str, ...]:
    """What would decide of the cells that are undecided."""
    return advice(
        cells,
        [draft.log is not None and not draft.is_withheld for draft in drafted.drafts],
        [draft.is_coarse for draft in drafted.drafts],
        drafted.sides,
        options,
    )


def _drafted_levels(
    run: TrialFindings, factor: str, levels: Sequence[Level], options: Options
) -> _Drafted:
    known = {item.name: item.levels for item in run.factors}
    if factor not in known:
        raise ComparisonError(f"run {run.run.id} has no factor {factor!r}", meant(factor, known))
    base, *others = _levels(run, factor, known[factor], levels)
    side = side_of(f"{factor}={base}", [run])
    pairs = [
        Pair(cell.parameters, cell_key({**cell.parameters, factor: base}), key)
        for key, cell in side.cells[0].items()
        if cell.parameters[factor] in others
    ]
    sides = side, side._replace(name=" ".join(f"{factor}={level}" for level in others))
    warnings = [*states([run], options.in_doubt), *_quiet_pairs(pairs, sides, options)]
    return _drafted(sides, pairs, warnings, options, "pairs")


def _quiet_pairs(
    pairs: Sequence[Pair], sides: tuple[Side, Side], options: Options
) -> Iterator[str]:
    """How many pairs are judged, where trials are set aside."""
    counts = quiet_pairs(pairs, sides)
    quiet, every = (sum(each) for each in zip(*counts, strict=True)) if counts else (0, 0)
    if quiet < every and not options.in_doubt:
        were = words.verb(quiet, "was", "were")
        yield f"{words.count_of(quiet, every, 'pair')} {were} quiet; --in-doubt judges all"


def _levels(
    run: TrialFindings, factor: str, known: Sequence[Level], asked: Sequence[Level]
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


class _Drafted(NamedTuple):
    """Two sides compared, still without verdicts."""

    sides: tuple[Side, Side]
    pairs: Sequence[Pair]
    warnings: tuple[str, ...]
    method: Method
    infos: tuple[IndicatorInfo, ...]
    drafts: list[Draft]
    by_cpu_time: list[Draft]
    told: list[ToldByCpuTime]
    figures: list[IndicatorInfo]
    by_others: Callable[[], list[Draft]]


def _drafted(
    sides: tuple[Side, Side],
    pairs: Sequence[Pair],
    warnings: Sequence[str],
    options: Options,
    method: Method,
) -> _Drafted:
    infos = indicators_of(sides, options)
    told = told_by_cpu_time(pairs, sides, method)
    quiet, every = (
        columns_of(sides, CPU_TIME, disturbed=disturbed or options.in_doubt)
        for disturbed in (False, True)
    )
    names = [item.parameters for item in told]
    # Neighbours add nothing to the CPU time of what is told by it.
    cpu = [every if pair.parameters in names else quiet for pair in pairs]
    drafts = [
        draft_of(pair, info, sides, columns, own, options, method)
        for info in infos
        for columns in [columns_of(sides, info.name, disturbed=options.in_doubt)]
        for pair, own in zip(pairs, cpu, strict=True)
    ]
    # Hints need no quiet machine: they are no verdicts.
    beside = options._replace(indicators=(CPU_TIME,), better="", in_doubt=True)
    by_cpu_time = [
        draft_of(pair, info, sides, own, own, beside, method)
        for info in indicators_beside(sides, CPU_TIME, infos)
        for pair, own in zip(pairs, cpu, strict=True)
    ]
    figures = other_figures(sides, infos)

    def by_others() -> list[Draft]:
        return [
            draft_of(pair, info, sides, columns, own, beside, method)
            for info in figures
            for columns in [columns_of(sides, info.name, disturbed=options.in_doubt)]
            for pair, own in zip(pairs, cpu, strict=True)
        ]

    warnings = (*warnings, *compares_nothing(sides, infos))
    return _Drafted(
        sides, pairs, tuple(warnings), method, infos, drafts, by_cpu_time, told, figures, by_others
    )


def _cpu_time(sides: tuple[Side, Side]) -> str:
    """The label of CPU time: it says whose that is, where the measured role is a client."""
    return sides[1].sessions[0].indicator(CPU_TIME).label


def _settled(drafted: Sequence[_Drafted], options: Options) -> list[Comparison]:
    """The comparisons with their verdicts, which are of all cells of all of them together."""
    error = _errors(drafted, options)
    level = error.cells
    drafts = [draft for item in drafted for draft in item.drafts]
    logs = [draft.log for draft in drafts]
    found = _directions(drafts, options, level)
    said = iter(found)
    deciding = iter(deciding_intervals(logs, level))
    judged = sum(log is not None for log in logs)
    beside = iter(
        directions(
            [d.log for item in drafted for d in item.by_cpu_time], options.effect, error.by_cpu_time
        )
    )
    # Nobody asks for the others where all is decided.
    others = [item.by_others() if "undecided" in found else [] for item in drafted]
    further = iter(directions([d.log for drafts in others for d in drafts], options.effect, level))
    return [
        _settled_one(item, said, deciding, judged, beside, _judged(drafts, further), options)
        for item, drafts in zip(drafted, others, strict=True)
    ]


def _directions(drafts: Sequence[Draft], options: Options, level: float) -> list[Direction]:
    """The direction of each; what is in doubt is judged with the others, and withheld after it: no
    verdict hangs on which of them are told."""
    found = directions([draft.log for draft in drafts], options.effect, level)
    return [
        "undecided" if draft.is_withheld else direction
        for draft, direction in zip(drafts, found, strict=True)
    ]


class _Errors(NamedTuple):
    """The levels of significance: of the cells by what is compared, and by CPU time."""

    cells: float
    by_cpu_time: float


#: The part of the error that CPU time has where it may decide what the wall time leaves open.
_OF_CPU_TIME = 0.2


def _errors(drafted: Sequence[_Drafted], options: Options) -> _Errors:
    """The levels of significance: lower ones where the data have set the number of trials. Cells
    that both wall time and CPU time may decide have two tries, which share the error. It is shared
    for what the machine did, before any figure is looked at."""
    level = 1 - staged(0.95, any(is_staged(item.sides) for item in drafted))
    if any(_are_tried_twice(item, options) for item in drafted):
        return _Errors((1 - _OF_CPU_TIME) * level, _OF_CPU_TIME * level)
    return _Errors(level, level)


def _are_tried_twice(drafted: _Drafted, options: Options) -> bool:
    """Is there a cell that CPU time may decide, whose wall time is judged, too? That is so where
    enough pairs are quiet, or all are to be judged. Where all are in doubt, the wall time has no
    verdict."""
    wall = [draft.cell for draft in drafted.drafts if draft.cell.indicator == "wall_seconds"]
    if not wall or not drafted.by_cpu_time:
        return False
    doubted = [cell.parameters for cell in wall if cell.is_doubted]
    return any(
        options.in_doubt if it.parameters in doubted else it.quiet < it.pairs for it in drafted.told
    )


def _judged(drafts: Sequence[Draft], said: Iterator[Direction]) -> list[CellComparison]:
    return [_verdict(draft, next(said)) for draft in drafts]


def _verdict(draft: Draft, said: Direction) -> CellComparison:
    verdict = verdict_of(said, draft.better)
    is_told = verdict in ("faster", "slower") and draft.clear
    note = draft.clear if is_told else draft.cell.note
    return msgspec.structs.replace(draft.cell, verdict=verdict, note=note)


def _settled_one(
    item: _Drafted,
    said: Iterator[Direction],
    deciding: Iterator[tuple[float, float] | None],
    judged: int,
    beside: Iterator[Direction],
    others: Sequence[CellComparison],
    options: Options,
) -> Comparison:
    cells = tuple(_judged(item.drafts, said))
    wider = [
        None if draft.is_withheld else interval
        for draft, interval in zip(item.drafts, deciding, strict=False)
    ]
    verdicts, hinted = _by_cpu_time(item, cells, _judged(item.by_cpu_time, beside), options)
    cells = tuple(with_verdicts(cells, list(verdicts.values())))
    return Comparison(
        base=item.sides[0].name,
        new=item.sides[1].name,
        factors=varying(item.pairs),
        indicators=item.infos,
        effect=options.effect,
        method=item.method,
        cells=cells,
        advice=(
            *verdicts,
            *hinted,
            *hints_of_others(cells, others, item.infos, item.figures),
            *together(cells, wider, judged),
            *_advice(item, cells, options),
        ),
        warnings=item.warnings,
        run=item.sides[0].sessions[0].run.id if item.method == "pairs" else "",
    )
