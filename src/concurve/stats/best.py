"""The settings that cannot be distinguished from the best, by the blocks that they share."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from concurve.estimate import Estimate
from concurve.stats.blocks import Blocks, block_ratio, log_ratios
from concurve.stats.centre import centre, centre_estimate, staged
from concurve.stats.comparison import EFFECT
from concurve.stats.moments import growth, stdev
from concurve.stats.power import POWER, trials_to_tell
from concurve.stats.serial import stretched, stretched_rows
from concurve.stats.signed_ranks import Ranked, p_values_above, ranked

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: Each setting is compared with at most this many others, to save time with thousands of cells.
RIVALS_MAX = 50

#: A setting that is worse than another one by no more than this share is as good in practice.
ALIKE = 0.05

#: Most settings of many are already worse than one of so few.
_FIRST = 8

#: So many differences are computed at once.
_CHUNK = 2_000_000


class BestSet(NamedTuple):
    """``members``: indices that cannot be distinguished from the best, in the order given;
    ``p_values``: how likely data like these are if that setting is the best, for one that left an
    upper bound; ``ranking``: all indices, the best centre first."""

    members: tuple[int, ...]
    p_values: tuple[float, ...]
    ranking: tuple[int, ...]

    @property
    def leader(self) -> int:
        """The member with the best centre."""
        return next(index for index in self.ranking if index in self.members)

    @property
    def rival(self) -> int | None:
        """The member with the next best centre."""
        members = (index for index in self.ranking if index in self.members)
        return next(itertools.islice(members, 1, None), None)


def best_set(
    cells: Sequence[Blocks],
    lower_is_better: bool = True,
    confidence: float = 0.95,
    is_staged: bool = False,
    resolutions: Sequence[float] = (),
    comparisons: int | None = None,
) -> BestSet:
    """Subset selection: it contains the best setting with at least this confidence.

    ``comparisons``: how many are made in all the sets of a run; one less than settings unless
    given. Each setting is held against every other by a one-sided signed-rank test of "that one is
    better" over the blocks that hold both (:class:`~concurve.stats.signed_ranks.Ranked`), and
    leaves the set if one of them is, at the level (1 − confidence) / 2 / comparisons: the best
    leaves only if one of so many true hypotheses is rejected (Bonferroni), whatever the others are.
    The half is that of a two-sided interval of the ratio: a speed-up that is announced, and a
    setting that leaves the set, follow from one rule. Only the :data:`RIVALS_MAX` best centres are
    compared with: fewer tests reject no more. This is Gupta's subset selection (Hsu 1996, ch. 4) by
    ranks. Positive values are compared by their ratios, others by their differences. A setting that
    shares fewer than two blocks with another cannot be distinguished from it.

    ``is_staged``: the data have set the number of trials. ``resolutions``: by how much the values
    of each cell may be off, in their unit; none stands for not at all.
    """
    sign = 1 if lower_is_better else -1
    centres = [sign * centre(list(cell.values())) for cell in cells]
    ranking = tuple(sorted(range(len(cells)), key=centres.__getitem__))
    level = 1 - staged(confidence, is_staged)
    tests = 2 * max(1, len(cells) - 1, comparisons or 0)
    least = _least_p_values(cells, ranking[:RIVALS_MAX], sign, resolutions, level / tests)
    p_values = tuple(min(1.0, p * tests) for p in least)
    members = tuple(index for index, p in enumerate(p_values) if p > level)
    # Each may be worse than another one by turns; then nothing is known.
    return BestSet(members or tuple(range(len(cells))), p_values, ranking)


def _least_p_values(
    cells: Sequence[Blocks],
    rivals: Sequence[int],
    sign: int,
    resolutions: Sequence[float],
    level: float,
) -> list[float]:
    """For each cell the least one-sided p-value of "it is no worse than that one"; for one that the
    first rivals beat at this level, the least over these."""
    import numpy as np

    values, off, are_logs = _by_cell_and_block(cells, resolutions)
    values *= sign
    least = np.ones(len(cells))
    for against in (rivals[:_FIRST], rivals[_FIRST:]):
        left = np.flatnonzero(least > level)
        chunk = max(1, _CHUNK // max(1, len(against) * values.shape[1]))
        for first in range(0, len(left) if against else 0, chunk):
            rows = left[first : first + chunk]
            with np.errstate(over="ignore", invalid="ignore"):
                apart = values[rows, None, :] - values[None, against, :]
                flat = apart.reshape(-1, values.shape[1])
                apart = stretched_rows(flat, _mirrors(rows, against)).reshape(apart.shape)
                margin = off[rows, None] + off[None, against]
                if are_logs:
                    margin = np.log1p(margin)
                p = p_values_above(apart.reshape(-1, values.shape[1]), margin.ravel(), level)
            p = p.reshape(apart.shape[:2])
            p[rows[:, None] == np.asarray(against)[None, :]] = 1.0
            least[rows] = np.minimum(least[rows], p.min(axis=1))
    return [float(p) for p in least]


def _mirrors(rows: npt.NDArray[np.intp], against: Sequence[int]) -> npt.NDArray[np.intp]:
    """For the difference of each of the cells ``rows`` to each of those ``against``: its place, or
    that of the same two cells the other way round; −1 for a cell and itself."""
    import numpy as np

    first, second = rows[:, None], np.asarray(against)[None, :]
    row_of, column_of = (
        np.full(1 + max(rows.max(), second.max()), -1, dtype=np.intp) for _ in range(2)
    )
    row_of[rows], column_of[second[0]] = np.arange(len(rows)), np.arange(len(against))
    own = np.arange(first.size * second.size).reshape(first.size, second.size)
    are_both = (row_of[second] >= 0) & (column_of[first] >= 0)
    other = row_of[second] * second.size + column_of[first]
    found = np.where(are_both & (first > second), other, own)
    return np.where(first == second, -1, found).ravel()


def _by_cell_and_block(
    cells: Sequence[Blocks], resolutions: Sequence[float]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64], bool]:
    """A row a cell and a column a block, NaN where a cell lacks it; by how much each cell's values
    may be off, and whether these are shares of them, and the values logarithms: where all are
    positive."""
    import numpy as np

    are_alike = all(list(cell) == list(cells[0]) for cell in cells)
    blocks = sorted(cells[0] if cells and are_alike else set().union(*cells))
    places = {block: place for place, block in enumerate(blocks)}
    values = np.full((len(cells), len(blocks)), np.nan)
    for row, cell in enumerate(cells):
        if list(cell) == blocks:
            values[row] = list(cell.values())
        else:
            values[row, [places[block] for block in cell]] = list(cell.values())
    off = np.array(resolutions or [0.0] * len(cells))
    if np.nanmin(values, initial=np.inf) <= 0:
        return values, off, False
    centres = np.array([centre(list(cell.values())) for cell in cells])
    with np.errstate(over="ignore"):
        return np.log(values), off / centres, True


def best_centre(
    cells: Sequence[Blocks],
    lower_is_better: bool = True,
    confidence: float = 0.95,
    is_staged: bool = False,
    resolutions: Sequence[float] = (),
) -> tuple[int, Estimate]:
    """The best of the true centres: the index of the setting with the best centre, and an interval.

    The best of the observed centres is biased: noise contributes to its being the best. So the
    interval runs from the best of the lower bounds to the best of the upper bounds of simultaneous
    intervals (Bonferroni), between which the best true centre lies if each true centre lies in its
    own. No interval where a setting has a single trial.
    """
    each = 1 - (1 - confidence) / len(cells)
    found = [
        centre_estimate(list(cell.values()), confidence=each, is_staged=is_staged, resolution=off)
        for cell, off in zip(cells, resolutions or [0.0] * len(cells), strict=True)
    ]
    best = min if lower_is_better else max
    index = best(range(len(found)), key=lambda position: found[position].value)
    lows = [estimate.low for estimate in found if estimate.low is not None]
    highs = [estimate.high for estimate in found if estimate.high is not None]
    sure = len(lows) == len(highs) == len(found)
    return index, Estimate(
        value=found[index].value,
        low=best(lows) if sure else None,
        high=best(highs) if sure else None,
        n=min(estimate.n for estimate in found),
        confidence=confidence,
    )


def best_ratio(
    cells: Sequence[Blocks],
    others: Sequence[Blocks],
    lower_is_better: bool = True,
    confidence: float = 0.95,
    is_staged: bool = False,
    resolution: float = 0.0,
) -> Estimate | None:
    """The best true centre of some cells over that of others, by the blocks that they share.

    The ratio of two least centres is minᵢ maxⱼ of the ratios of all pairs, of two greatest ones
    maxᵢ minⱼ. Both grow with each ratio, so their bounds are those of the simultaneous intervals of
    all pairs (Bonferroni). ``None`` where a pair shares no block or a value is not above 0;
    ``resolution`` is that of a ratio.
    """
    each = 1 - (1 - confidence) / (len(cells) * len(others))
    rows = [
        [block_ratio(top, bottom, each, is_staged, resolution) for bottom in others]
        for top in cells
    ]
    if any(ratio is None for row in rows for ratio in row):
        return None
    found = [[ratio for ratio in row if ratio is not None] for row in rows]
    outer, inner = (min, max) if lower_is_better else (max, min)

    def chosen(values: list[list[float | None]]) -> float | None:
        known = [[value for value in row if value is not None] for row in values]
        is_whole = all(len(row) == len(others) for row in known)
        return outer(inner(row) for row in known) if is_whole else None

    value = chosen([[ratio.value for ratio in row] for row in found])
    assert value is not None
    return Estimate(
        value=value,
        low=chosen([[ratio.low for ratio in row] for row in found]),
        high=chosen([[ratio.high for ratio in row] for row in found]),
        n=min(ratio.n for row in found for ratio in row),
        confidence=confidence,
    )


class Choice(NamedTuple):
    """Which member of a best set to use. ``chosen``: the first one, in the order asked for, that is
    shown to be as good as the best; ``None`` where the trials do not decide that. ``passed``: those
    before it that may be as good; ``others``: the further ones that are not told from it. Where
    none is chosen, these are the members that are not told from the leader."""

    chosen: int | None
    passed: tuple[int, ...]
    others: tuple[int, ...]


def choose(
    cells: Sequence[Blocks],
    best: BestSet,
    order: Sequence[int],
    lower_is_better: bool = True,
    confidence: float = 0.95,
    is_staged: bool = False,
    resolutions: Sequence[float] = (),
) -> Choice:
    """The first member, in this ``order``, that is as good as the best.

    That is shown, not assumed: against every rival a one-sided test rejects that it is worse by
    :data:`ALIKE` or more, and it is not told to be worse by :data:`EFFECT`. Tests and levels are
    those of a comparison of the two alone (:func:`~concurve.stats.comparison.directions`), so that
    one contradicts no choice. A member is passed over where it is told to be worse than another
    cell, or seems to be worse than the leader by more than :data:`ALIKE`. Where the figures have it
    alike, and its interval is wider than that, nothing is decided: whoever prefers it cannot be
    told not to.
    """
    pairs = _Pairs(cells, lower_is_better, 1 - staged(confidence, is_staged), resolutions)
    passed: list[int] = []
    for place, index in enumerate(order):
        rivals = [rival for rival in best.ranking[:RIVALS_MAX] if rival != index]
        if all(pairs.is_as_good(index, rival) for rival in rivals):
            later = order[place + 1 :]
            return Choice(index, pairs.not_told(passed, index), pairs.not_told(later, index))
        is_behind = index != best.leader and pairs.is_behind(index, best.leader)
        if not is_behind and not any(pairs.is_told_worse(index, rival) for rival in rivals):
            break
        passed.append(index)
    others = [index for index in order if index != best.leader]
    return Choice(None, (), pairs.not_told(others, best.leader))


class _Pairs:
    """Pairs of cells, each compared alone; each pair is computed once."""

    def __init__(
        self,
        cells: Sequence[Blocks],
        lower_is_better: bool,
        level: float,
        resolutions: Sequence[float],
    ) -> None:
        self._cells = cells
        self._lower = lower_is_better
        self._level = level
        self._off = resolutions or [0.0] * len(cells)
        self._known: dict[tuple[int, int], Gap | None] = {}

    def _gap(self, index: int, rival: int) -> Gap | None:
        """By how much a cell is worse than another one."""
        first, second = (rival, index) if self._lower else (index, rival)
        if (first, second) not in self._known:
            self._known[first, second] = gap(
                self._cells[first], self._cells[second], (self._off[first], self._off[second])
            )
        return self._known[first, second]

    def is_as_good(self, index: int, rival: int) -> bool:
        """Is it shown that a cell is worse than another one by no more than :data:`ALIKE`?"""
        found = self._gap(index, rival)
        return found is not None and (
            found.is_none
            or (found.p_at_least(ALIKE) <= self._level and not self.is_told_worse(index, rival))
        )

    def is_told_worse(self, index: int, rival: int) -> bool:
        """Is a cell told to be worse than another one, by :data:`EFFECT` at least?"""
        found = self._gap(index, rival)
        return (
            found is not None
            and 2 * found.ranked.p_above() <= self._level
            and found.is_beyond(EFFECT)
        )

    def not_told(self, some: Sequence[int], index: int) -> tuple[int, ...]:
        """Those of some cells that are not told to be worse than this one."""
        return tuple(one for one in some if not self.is_told_worse(one, index))

    def is_behind(self, index: int, leader: int) -> bool:
        """Do the figures have a cell worse than the leader by :data:`ALIKE`?"""
        found = self._gap(index, leader)
        return found is not None and found.is_beyond(ALIKE)


class Gap(NamedTuple):
    """How far a setting lies from another: ``ranked`` tests the logarithms of the ratios of their
    common blocks, or the differences where not all values are positive; ``unit`` is then by what a
    difference is divided to be a share. ``is_of_centres``: that is the centre of one of the two;
    else both are 0, it is the greatest value, and the share is no figure to tell."""

    ranked: Ranked
    unit: float | None = None
    is_of_centres: bool = True

    @property
    def share(self) -> float:
        """By which share of the one the other differs from it."""
        return abs(self._share_of(self.ranked.value))

    def is_within(self, effect: float, confidence: float) -> bool:
        """Does the whole interval lie within this share?"""
        low, high = self.ranked.interval(confidence)
        return max(abs(self._share_of(low)), abs(self._share_of(high))) <= effect

    def is_beyond(self, effect: float) -> bool:
        """Does the second setting lie above the first, by this share at least?"""
        return self.ranked.value >= self._least(effect)

    def p_at_least(self, effect: float) -> float:
        """One-sided p-value of the hypothesis that the second lies above the first by this share at
        least."""
        return self.ranked.p_below(self._least(effect))

    @property
    def is_none(self) -> bool:
        """Are both the same in each block, by exact readings?"""
        values = self.ranked.values
        return values[0] == values[-1] == self.ranked.resolution == 0

    def is_within_resolution(self, effect: float) -> bool:
        """Is what would be told, the difference seen or at least this share, no more than what the
        clock may be off by?"""
        return 0 < self._distance(effect) <= self.ranked.resolution

    def trials(self, effect: float, confidence: float) -> int | None:
        """Trials of each that would show the difference seen, or at least this share, with a power
        of 80 % at a two-sided confidence; ``None`` as in
        :func:`~concurve.stats.power.trials_to_tell`."""
        off, spread = self.ranked.resolution, stdev(self.ranked.values)
        return trials_to_tell(self._distance(effect), spread, (1 - confidence) / 2, off)

    def trials_to_place(self, effect: float, confidence: float, power: float) -> int | None:
        """Trials of each that would show the difference seen to be none as great as this share, or
        to be there at all, whichever takes fewer; otherwise as :meth:`trials`."""
        off, spread = self.ranked.resolution, stdev(self.ranked.values)
        distance = self._to_place(effect)
        return trials_to_tell(distance, spread, (1 - confidence) / 2, off, power)

    def is_placed_within_resolution(self, effect: float) -> bool:
        """Is the distance that :meth:`trials_to_place` has to show within what the clock is off
        by?"""
        return 0 < self._to_place(effect) <= self.ranked.resolution

    def _to_place(self, effect: float) -> float:
        seen = abs(self.ranked.value)
        return max(seen, self._least(effect) - seen)

    def _distance(self, effect: float) -> float:
        return max(abs(self.ranked.value), self._least(effect))

    def _least(self, effect: float) -> float:
        return math.log1p(effect) if self.unit is None else effect * self.unit

    def _share_of(self, apart: float) -> float:
        if self.unit is None:
            return growth(apart) - 1
        return apart / self.unit if self.unit else math.copysign(math.inf, apart) if apart else 0.0


def trials_to_place(gaps: Sequence[Gap], confidence: float) -> int | None:
    """Trials of each setting that would place all these distances (:meth:`Gap.trials_to_place`),
    by :data:`ALIKE`, together with a power of 80 %; ``None`` where one of them cannot be."""
    power = 1 - (1 - POWER) / max(1, len(gaps))
    wanted = [each.trials_to_place(ALIKE, confidence, power) for each in gaps]
    known = [number for number in wanted if number is not None]
    return max(known, default=0) if len(known) == len(wanted) else None


def gap(first: Blocks, second: Blocks, resolutions: tuple[float, float] = (0.0, 0.0)) -> Gap | None:
    """How far the second setting lies from the first, by their common blocks; ``None`` for fewer
    than two, or differences beyond a float. ``resolutions``: by how much the values of each may be
    off, in their unit."""
    both = sorted(first.keys() & second.keys())
    if len(both) < 2:
        return None
    columns = [[cell[block] for block in both] for cell in (first, second)]
    middles = [abs(centre(column)) for column in columns]
    if min(map(min, columns)) > 0:
        off = sum(step / middle for step, middle in zip(resolutions, middles, strict=True))
        logs = log_ratios(second, first, off)
        return None if logs is None else Gap(logs)
    apart = [after - before for before, after in zip(*columns, strict=True)]
    if not all(map(math.isfinite, apart)):
        return None
    found = ranked(stretched(apart), sum(resolutions))
    if found is None:
        return None
    middle = max(middles)
    # Of many counts the median is 0, and no share of it is one.
    unit = middle or max(abs(value) for column in columns for value in column)
    return Gap(found, unit, is_of_centres=middle > 0)
