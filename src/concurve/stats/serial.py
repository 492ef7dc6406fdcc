"""Do the values of successive blocks depend on each other? And how much less do they say then?

Intervals take the blocks of a run as independent. What a block shares drops out of a ratio, so the
drift of a machine does too. What one cell alone keeps from trial to trial does not: its files, its
caches, a mode that lasts, or a machine whose heat slows some cells more than others. Neighbouring
ratios are then alike, and many of them know hardly more than a few.

The rank version of von Neumann's ratio (Bartels 1982) tests that. Where it rejects independence,
the values are spread about their centre as far as a first-order autoregression with their serial
correlation asks for: every test and interval of them widens by this factor, the estimate stays.
Where blocks are independent, that befalls :data:`LEVEL` of the ratios, and does them no harm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import TYPE_CHECKING

from concurve.stats.signed_ranks import are_enough, ranked, values_of_rows

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: Of fewer blocks no dependence can be told from chance.
LENGTH_MIN = 8

#: The share of independent series that are widened.
LEVEL = 0.05

_NORMAL = NormalDist()


def p_value(values: Sequence[float]) -> float:
    """How likely neighbouring values are as much alike as these, or more, if each is independent of
    the one before; 1 for fewer than :data:`LENGTH_MIN`, and for equal ones."""
    return p_values([values])[0]


def p_values(series: Sequence[Sequence[float]]) -> list[float]:
    """:func:`p_value` of many series; those of one length are computed together."""
    import numpy as np

    found = [1.0] * len(series)
    alike: dict[int, list[int]] = {}
    for place, values in enumerate(series):
        alike.setdefault(len(values), []).append(place)
    for length, places in alike.items():
        if length < LENGTH_MIN:
            continue
        ratios = _ratios(np.array([series[place] for place in places], dtype=float))
        for place, ratio in zip(places, ratios.tolist(), strict=True):
            found[place] = _NORMAL.cdf((ratio - 2) / _deviation(length))
    return found


def widening(values: Sequence[float]) -> float:
    """By which factor an interval of values in the order of time must be wider, because they depend
    on each other: 1 where that is not shown."""
    return 1.0 if len(values) < LENGTH_MIN else _widening(tuple(values))


@lru_cache(maxsize=256)
def _widening(values: tuple[float, ...]) -> float:
    """:func:`widening`; the claims of a study, its cells and its answer ask for that of the same
    ratios in turn."""
    import numpy as np

    return float(_widenings(np.asarray(values, dtype=float)[None, :])[0])


def stretched(values: Sequence[float]) -> Sequence[float]:
    """Values in the order of time, spread about their Hodges–Lehmann centre by what they
    :func:`need <widening>`."""
    factor = widening(values)
    if factor == 1:
        return values
    found = ranked(values)
    assert found is not None
    middle = found.value
    if not math.isfinite(middle):
        return values
    return [middle + factor * (value - middle) for value in values]


def stretched_rows(
    rows: npt.NDArray[np.float64], like: npt.NDArray[np.intp] | None = None
) -> npt.NDArray[np.float64]:
    """:func:`stretched` of very many series, a row each; values that are NaN are missing. ``like``
    is for each row the place of the one that says how far it is spread: its own, that of the same
    values with the other sign, or −1 for a row of equal values."""
    import numpy as np

    n = rows.shape[1]
    if n < LENGTH_MIN:
        return rows
    whole = np.isfinite(rows).all(axis=1)
    factors, judged = np.ones(len(rows)), whole
    if like is not None:
        judged = whole & (like == np.arange(len(rows)))
    factors[judged] = _widenings(rows[judged])
    if like is not None:
        factors = np.where(like < 0, 1.0, factors[like])
    wide = np.flatnonzero(factors > 1)
    gaps = np.flatnonzero(np.isnan(rows).any(axis=1))
    if not len(wide) and not len(gaps):
        return rows
    found, alone = rows.copy(), gaps
    if are_enough(n, 0.95):
        middles = values_of_rows(np.sort(rows[wide], axis=1))[:, None]
        found[wide] = middles + factors[wide, None] * (rows[wide] - middles)
    else:
        alone = np.concatenate([wide, gaps])
    for place in alone.tolist():
        known = ~np.isnan(rows[place])
        found[place, known] = stretched(rows[place, known].tolist())
    return found


def _deviation(n: int) -> float:
    """The standard deviation of the ratio for independent values (Bartels 1982)."""
    return math.sqrt(4 * (n - 2) * (5 * n**2 - 2 * n - 9) / (5 * n * (n + 1) * (n - 1) ** 2))


def _widenings(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    import numpy as np

    n = rows.shape[1]
    ratios = _ratios(rows)
    found = np.ones(len(rows))
    alike = ratios < 2 + _NORMAL.inv_cdf(LEVEL) * _deviation(n)
    # One less half the ratio is the serial correlation; estimated from few values it is too small
    # by about three times itself over their number (Marriott & Pope 1954).
    correlation = np.minimum((1 - ratios[alike] / 2) * n / (n - 3), 1.0)
    # The values know as much as n / effect independent ones. Two of those are the least of which a
    # spread can be computed. That of dependent values is too small: their number less the effect.
    with np.errstate(divide="ignore"):
        effect = np.minimum((1 + correlation) / (1 - correlation), n / 2)
    found[alike] = np.sqrt(effect * (n - 1) / (n - effect))
    return found


def _ratios(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Von Neumann's ratio of the ranks of each row: about 2 for independent values, less where
    neighbours are alike; 2 for equal values."""
    import numpy as np

    ranks = _ranks(rows)
    apart = ranks - ranks.mean(axis=1, keepdims=True)
    squares = (apart**2).sum(axis=1)
    steps = (np.diff(apart, axis=1) ** 2).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        found: npt.NDArray[np.float64] = np.where(squares > 0, steps / squares, 2.0)
    return found


def _ranks(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Ranks in each row; equal values share the mean of theirs."""
    import numpy as np

    order = np.argsort(rows, axis=1)
    ordered = np.take_along_axis(rows, order, axis=1)
    ranks = np.empty(rows.shape)
    np.put_along_axis(ranks, order, np.arange(rows.shape[1], dtype=float)[None, :], axis=1)
    # Of equal values and of none, the order of a sort in which ties may change places says nothing.
    is_clear = (ordered[:, 1:] > ordered[:, :-1]).all(axis=1)
    if not is_clear.all():
        ranks[~is_clear] = _shared_ranks(rows[~is_clear])
    return ranks


def _shared_ranks(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """:func:`_ranks` of rows in which values are equal."""
    import numpy as np

    order = np.argsort(rows, axis=1, kind="stable")
    ordered = np.take_along_axis(rows, order, axis=1)
    places = np.broadcast_to(np.arange(rows.shape[1]), rows.shape)
    is_new = np.ones(rows.shape, dtype=bool)
    is_new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    is_last = np.ones(rows.shape, dtype=bool)
    is_last[:, :-1] = is_new[:, 1:]
    first = np.maximum.accumulate(np.where(is_new, places, 0), axis=1)
    ends = np.where(is_last, places, rows.shape[1])
    last = np.minimum.accumulate(ends[:, ::-1], axis=1)[:, ::-1]
    ranks = np.empty(rows.shape)
    np.put_along_axis(ranks, order, (first + last) / 2, axis=1)
    return ranks
