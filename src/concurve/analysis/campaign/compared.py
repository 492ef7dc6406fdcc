"""Which level of a factor is best in each setting of the others: what an ``[[answer]]`` of a
campaign asks of a run. Pure.

In each setting the levels are judged by the blocks that they share, as the best settings of a run
are (:func:`~concurve.stats.best.best_set`); all settings together hold with 95 %.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from concurve.analysis.ranked import ranked_of
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


#: Why a level is not compared in a setting.
Why = Literal["load failed", "skipped", "no figures"]


class LeftOut(NamedTuple):
    """The ``levels`` that are not compared in the settings ``where``."""

    why: Why
    levels: tuple[Level, ...]
    where: tuple[Mapping[str, Level], ...]


class Compared(NamedTuple):
    """The ``levels`` that were compared, in the order of the study, in the ``settings`` of the
    other ``factors``, by an indicator with this ``label``; all levels where no setting has two to
    compare. ``doubt``: why the run recommends no level, whatever its trials say; then none is said
    to be best here either. ``every`` has the levels of the factors in each setting that was asked
    for, also in those that are not compared, and ``left_out`` says what of them is not."""

    levels: tuple[Level, ...]
    factors: tuple[str, ...]
    settings: tuple[Setting, ...]
    label: str
    doubt: str = ""
    every: tuple[Mapping[str, Level], ...] = ()
    left_out: tuple[LeftOut, ...] = ()

    @property
    def is_partial(self) -> bool:
        """Are there settings that were asked for and are not compared?"""
        return len(self.settings) < len(self.every)


class _Candidate(NamedTuple):
    """A measured cell: the level that it stands for, and its values."""

    level: Level
    cell: CellFindings
    values: Blocks


#: The levels of all other factors of a run, which the cells of a setting share.
_Key = tuple[Level, ...]


class _Group(NamedTuple):
    """The cells of a setting: those that can be compared, and the levels of the others."""

    candidates: list[_Candidate]
    left_out: dict[Level, Why]


def compared(run: TrialFindings, asked: Answer) -> Compared | None:
    """The comparison that is asked for; ``None`` where no setting has two levels with values,
    unless that is because loads failed or cells were skipped: this is an answer, too."""
    name = asked.by or ranked_of([run], TrialFindings.has_measured)
    groups = _groups(run, asked, name)
    several = {key: it.candidates for key, it in groups.items() if len(it.candidates) > 1}
    reasons = {why for group in groups.values() for why in group.left_out.values()}
    if not several and not reasons - {"no figures"}:
        return None
    comparisons = sum(len(group) - 1 for group in several.values())
    factors = [factor.name for factor in run.factors if factor.name != asked.factor]
    varied = tuple(
        factor for place, factor in enumerate(factors) if len({key[place] for key in groups}) > 1
    )
    where: dict[_Key, Mapping[str, Level]] = {
        key: {factor: key[factors.index(factor)] for factor in varied} for key in groups
    }
    settings = tuple(
        _judged(run, name, where[key], group, comparisons) for key, group in several.items()
    )
    named = {candidate.level for group in several.values() for candidate in group}
    if not named:
        named = {
            level
            for group in groups.values()
            for level in (*group.left_out, *(candidate.level for candidate in group.candidates))
        }
    order = next(factor.levels for factor in run.factors if factor.name == asked.factor)
    info = run.indicator(name)
    return Compared(
        tuple(level for level in order if level in named),
        varied,
        settings,
        info.label or name,
        run.withheld.why(asked.factor, name),
        tuple(where.values()),
        _left_out(groups, where),
    )


def _groups(run: TrialFindings, asked: Answer, name: str) -> dict[_Key, _Group]:
    """The cells that differ in the factor alone, by the levels of all others. The cells that the
    run leaves out of its best settings are not compared."""
    blocks = run.blocks(name)
    others = [factor.name for factor in run.factors if factor.name != asked.factor]
    groups: dict[_Key, _Group] = {}
    for cell in run.cells:
        is_meant = cell_key(asked.where) <= cell_key(cell.parameters)
        if not is_meant or asked.factor not in cell.parameters:
            continue
        group = groups.setdefault(
            tuple(cell.parameters[factor] for factor in others), _Group([], {})
        )
        level, values = cell.parameters[asked.factor], blocks.get(cell.index, {})
        if cell.is_of_setting and values:
            group.candidates.append(_Candidate(level, cell, values))
        else:
            group.left_out[level] = _why(cell)
    return groups


def _why(cell: CellFindings) -> Why:
    """Why a cell is not compared."""
    if cell.status == "skipped":
        return "skipped"
    return "load failed" if cell.load_failed else "no figures"


def _left_out(
    groups: Mapping[_Key, _Group], where: Mapping[_Key, Mapping[str, Level]]
) -> tuple[LeftOut, ...]:
    """What is not compared; levels that are left out of the same settings for the same reason stand
    together."""
    keys: dict[tuple[Why, Level], list[_Key]] = {}
    for key, group in groups.items():
        for level, why in group.left_out.items():
            keys.setdefault((why, level), []).append(key)
    levels: dict[tuple[Why, tuple[_Key, ...]], list[Level]] = {}
    for (why, level), own in keys.items():
        levels.setdefault((why, tuple(own)), []).append(level)
    return tuple(
        LeftOut(why, tuple(named), tuple(where[key] for key in own))
        for (why, own), named in levels.items()
    )


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
