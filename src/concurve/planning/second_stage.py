"""How many trials a precision needs: from a pilot, and beforehand for an assumed spread. How many
it takes to tell which setting to use: from a pilot."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from concurve.definition.measured import better_of
from concurve.definition.study import Rules
from concurve.planning.plan import Cell, Plan
from concurve.stats.best import RIVALS_MAX, best_set, gap, trials_to_place
from concurve.stats.blocks import Blocks
from concurve.stats.centre import centre_estimate, staged
from concurve.stats.moments import mean, stdev, t_quantile
from concurve.terms import Level

#: The interval of a median varies between samples of the same program, by a fifth at 25 trials, and
#: so does that of the pilot. With this margin, 95 % of the runs reach their precision
#: (``tests/planning/test_noise.py``), and more of them tell which setting to use.
MARGIN = 1.5

#: Up to this number of trials the interval of the pilot is Student's or the whole range, whose
#: width holds a margin already.
FEW = 5

#: The interval of a median is wider than that of a mean by √(π/2), where trials vary normally.
MEDIAN_FACTOR = math.sqrt(math.pi / 2)

#: Never computed with more trials than the square of this.
_ROOT_OF_TRIALS_MOST = 1e9


def trials_needed(values: list[float], rules: Rules) -> int:
    """Trials for which the printed interval of the centre has the half-width asked for.

    The interval of the pilot itself is scaled: its width falls with √n. So a slow tail, which does
    not widen the interval of a median, does not ask for trials either. Nor does a centre of 0: no
    number of trials gives an interval that is a share of it.
    """
    if not all(map(math.isfinite, values)):
        return rules.repeats_max + 1
    # Another answer is a new protocol: stored runs are replayed by the one that they were made by.
    reached = centre_estimate(values, floor=None, is_staged=True).precision or 0.0
    margin = 1.0 if len(values) <= FEW else MARGIN
    root = min(margin * reached / rules.precision, _ROOT_OF_TRIALS_MOST)
    return max(rules.repeats_min, math.ceil(len(values) * root**2))


def trials_to_choose(plan: Plan, columns: Mapping[int, Blocks]) -> int | None:
    """Trials of each cell that tell which setting to use, with a power of 80 %, by a pilot; 0 where
    it tells that, or nothing is to be chosen; ``None`` where no number of trials tells.

    ``columns`` has the values of each cell by block. Among the cells of equal conditions, the
    settings that are not told from the best are to be shown as good as it, or worse. Only spreads
    and distances of the pilot set the number, which is not looked at again.
    """
    better = better_of(plan.study, plan.study.primary)
    if better == "neither":
        return 0
    # Another answer is a new protocol here, too: stored runs are replayed by the one they followed.
    groups: dict[tuple[Level, ...], list[Blocks]] = {}
    for index, values in columns.items():
        groups.setdefault(_conditions(plan, plan.cells[index]), []).append(values)
    found = [_to_choose_among(group, better == "lower") for group in groups.values()]
    known = [number for number in found if number is not None]
    return max(known, default=0) if len(known) == len(found) else None


def _conditions(plan: Plan, cell: Cell) -> tuple[Level, ...]:
    return tuple(cell.parameters[name] for name in plan.study.conditions)


def _to_choose_among(cells: Sequence[Blocks], is_lower: bool) -> int | None:
    """The same of the settings of one group."""
    if len(cells) < 2:
        return 0
    best = best_set(cells, is_lower, is_staged=True)
    others = [index for index in best.ranking if index in best.members and index != best.leader]
    gaps = [gap(cells[best.leader], cells[index]) for index in others[:RIVALS_MAX]]
    found = [each for each in gaps if each is not None and each.is_of_centres]
    if len(found) < len(gaps):
        return None
    return trials_to_place(found, 2 * staged(0.95, is_staged=True) - 1)


def trials_needed_by_mean(values: list[float], rules: Rules) -> int:
    """The rule of version 0.1.0, for its runs: Stein (1945), n = ⌈(t·s / (ε·mean))²⌉."""
    aim = rules.precision * abs(mean(values))
    t = t_quantile(0.975, len(values) - 1)
    wanted = min(t * stdev(values) / aim, _ROOT_OF_TRIALS_MOST) ** 2 if aim else 0.0
    return max(rules.repeats_min, math.ceil(wanted))


def precision_of(trials: int, spread: float) -> float | None:
    """The relative half-width to expect of the interval of a centre over so many trials, if they
    vary normally by this share; ``None`` for a single trial, which has no interval."""
    if trials < 2:
        return None
    factor = 1.0 if trials <= FEW else MEDIAN_FACTOR
    return t_quantile(0.975, trials - 1) * factor * spread / math.sqrt(trials)
