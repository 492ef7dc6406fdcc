"""Which level of a factor is best in each setting of the others: what an ``[[answer]]`` of a
campaign asks of a run. Pure.

In each setting the levels are judged by the blocks that they share, as the best settings of a run
are (:func:`~concurve.stats.best.best_set`); all settings together hold with 95 %.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from concurve.definition.campaign import Answer
from concurve.estimate import Estimate
from concurve.findings.cells import CellFindings
from concurve.findings.run import TrialFindings
from concurve.stats.best import best_set
from concurve.stats.blocks import Blocks, block_ratio
from concurve.stats.resolution import relative
from concurve.terms import Level, cell_key


class Setting(NamedTuple):
    """The levels of the other factors; the level that is best there, or ``None`` where none can be
    told from all others; and by how much: ``ratio`` says how many times as good it is as ``next``,
    the next best. ``in_doubt``: the machine was not quiet, so none is named."""

    where: Mapping[str, Level]
    best: Level | None
    next: Level | None
    ratio: Estimate | None
    in_doubt: bool = False


class Compared(NamedTuple):
    """The ``levels`` that were compared, in the order of the study, in the ``settings`` of the
    other ``factors``, by an indicator with this ``label``. ``doubt``: why the run recommends no
    setting, whatever its trials say; then none is said to be best here either."""

    levels: tuple[Level, ...]
    factors: tuple[str, ...]
    settings: tuple[Setting, ...]
    label: str
    doubt: str = ""


class _Candidate(NamedTuple):
    """A measured cell: the level that it stands for, and its values."""

    level: Level
    cell: CellFindings
    values: Blocks


def compared(run: TrialFindings, asked: Answer) -> Compared | None:
    """The comparison that is asked for; ``None`` where no setting has two levels with values."""
    name = asked.by or run.primary
    groups = _settings(run, asked, name)
    comparisons = sum(len(group) - 1 for group in groups.values())
    if not comparisons:
        return None
    factors = [factor.name for factor in run.factors if factor.name != asked.factor]
    varied = tuple(
        factor for place, factor in enumerate(factors) if len({key[place] for key in groups}) > 1
    )
    settings = tuple(
        _judged(
            run,
            name,
            {factor: key[factors.index(factor)] for factor in varied},
            group,
            comparisons,
        )
        for key, group in groups.items()
    )
    measured = {candidate.level for group in groups.values() for candidate in group}
    order = next(factor.levels for factor in run.factors if factor.name == asked.factor)
    info = run.indicator(name)
    return Compared(
        tuple(level for level in order if level in measured),
        varied,
        settings,
        info.label or name,
        _doubt(run, asked.factor),
    )


def _doubt(run: TrialFindings, factor: str) -> str:
    """Why the run recommends no level of a factor, other than that its trials do not decide or that
    the machine was not quiet: these are judged here anew, in each setting. Empty without a reason.

    Of several findings the one that compares the fewest factors counts: a factor that was probably
    not set is a reason only where its own levels are compared.
    """
    found = [item for item in run.best if factor in item.factors] or run.best
    item = min(found, key=lambda item: len(item.factors), default=None)
    return "" if item is None or item.is_open or item.is_tentative else item.doubt


def _settings(
    run: TrialFindings, asked: Answer, name: str
) -> dict[tuple[Level, ...], list[_Candidate]]:
    """The cells that differ in the factor alone, by the levels of all others; those of a single
    cell are left out, and so are the cells that the run leaves out of its best settings."""
    blocks = run.blocks(name)
    groups: dict[tuple[Level, ...], list[_Candidate]] = {}
    for cell in run.cells:
        is_meant = cell_key(asked.where) <= cell_key(cell.parameters)
        values = blocks.get(cell.index, {})
        if is_meant and values and cell.is_of_setting and asked.factor in cell.parameters:
            key = tuple(
                cell.parameters[factor.name]
                for factor in run.factors
                if factor.name != asked.factor
            )
            level = cell.parameters[asked.factor]
            groups.setdefault(key, []).append(_Candidate(level, cell, values))
    return {key: group for key, group in groups.items() if len(group) > 1}


def _judged(
    run: TrialFindings,
    name: str,
    where: Mapping[str, Level],
    group: Sequence[_Candidate],
    comparisons: int,
) -> Setting:
    is_lower = run.indicator(name).better == "lower"
    columns = [candidate.values for candidate in group]
    resolutions = [candidate.cell.resolutions.get(name, 0.0) for candidate in group]
    found = best_set(
        columns, is_lower, is_staged=run.run.is_staged, resolutions=resolutions,
        comparisons=comparisons,
    )  # fmt: skip
    first = found.leader
    second = next(index for index in found.ranking if index != first)
    top, bottom = (second, first) if is_lower else (first, second)
    ratio = block_ratio(
        columns[top],
        columns[bottom],
        1 - 0.05 / comparisons,
        run.run.is_staged,
        sum(relative(resolutions[side], list(columns[side].values())) for side in (top, bottom)),
    )
    in_doubt = any(
        name in candidate.cell.indicators and candidate.cell.indicators[name].in_doubt
        for candidate in group
    )
    is_sole = len(found.members) == 1 and not in_doubt
    return Setting(
        where, group[first].level if is_sole else None, group[second].level, ratio, in_doubt
    )
