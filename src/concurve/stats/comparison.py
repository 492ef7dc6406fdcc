"""Verdicts on many ratios, and on many claims, together."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, Protocol, TypeVar

from concurve.stats.centre import centre
from concurve.stats.rank_sums import Shifted, shifted
from concurve.stats.serial import stretched

#: Differences below this share are not relevant, unless another share is asked for.
EFFECT = 0.02

Method = Literal["pairs", "ranks"]
Direction = Literal["higher", "lower", "same", "undecided"]

Answer = TypeVar("Answer")


class LogRatio(Protocol):
    """The logarithm of a ratio, with its p-values."""

    @property
    def value(self) -> float:
        """The logarithm itself."""
        ...

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Its bounds."""
        ...

    def p_above(self, bound: float = 0.0) -> float:
        """One-sided p-value of the hypothesis that it is at most ``bound``."""
        ...

    def p_below(self, bound: float = 0.0) -> float:
        """One-sided p-value of the hypothesis that it is at least ``bound``."""
        ...


def log_shift(
    top: Sequence[Sequence[float]], bottom: Sequence[Sequence[float]], resolution: float = 0.0
) -> Shifted | None:
    """The log ratio of a cell of some runs to that of others, which share no blocks: the shift
    between their logarithms (:class:`~concurve.stats.rank_sums.Shifted`).

    Each side has the values of each of its runs. Of a single run they are the trials; of several it
    is the centre of each, as the run is what was drawn anew. ``None`` where a value is not above 0,
    or a side has fewer than two. ``resolution`` is that of a ratio: 0.01 where it may be off by
    1 %.
    """
    sides = [_units(runs) for runs in (top, bottom)]
    if any(value <= 0 for side in sides for value in side):
        return None
    above, below = (stretched([math.log(value) for value in side]) for side in sides)
    return shifted(above, below, math.log1p(resolution))


def _units(runs: Sequence[Sequence[float]]) -> Sequence[float]:
    """The independent draws: the trials of a single run, or the centres of several runs."""
    return runs[0] if len(runs) == 1 else [centre(run) for run in runs if run]


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """Adjusted p-values: those at most q hold with a share of false ones of at most q
    (Benjamini & Hochberg 1995)."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__, reverse=True)
    adjusted, least = [1.0] * len(p_values), 1.0
    for position, index in enumerate(order):
        rank = len(p_values) - position
        least = min(least, p_values[index] * len(p_values) / rank)
        adjusted[index] = least
    return adjusted


def together(
    tests: Sequence[Callable[[float], Answer]],
    is_decided: Callable[[Answer], bool],
    confidence: float = 0.95,
) -> list[Answer]:
    """The answers of some tests whose decisions hold together with this confidence, by the
    step-down of Holm (1979).

    A test takes a confidence and answers at it. All are asked at 1 − (1 − confidence) / tests;
    those that are still undecided are asked again with the number of these as the divisor, until
    none is decided any more. Each answer is the one at the confidence that decided it.
    """
    answers: dict[int, Answer] = {}
    undecided = list(range(len(tests)))
    while undecided:
        each = 1 - (1 - confidence) / len(undecided)
        answers.update({index: tests[index](each) for index in undecided})
        left = [index for index in undecided if not is_decided(answers[index])]
        if len(left) == len(undecided):
            break
        undecided = left
    return [answers[index] for index in range(len(tests))]


def directions(
    ratios: Sequence[LogRatio | None], effect: float, level: float = 0.05
) -> list[Direction]:
    """The verdicts on all ratios together, with a false discovery rate of ``level``.

    ``same``: the ratio lies within 1/(1 + effect) and 1 + effect, by two one-sided tests
    (Schuirmann 1987). ``higher`` and ``lower``: it is not 1, and it seems to be off by the
    effect at least. Else ``undecided``.
    """
    bound = math.log1p(effect)
    tested = [ratio for ratio in ratios if ratio is not None]
    unequal = benjamini_hochberg(list(map(_two_sided, tested)))
    alike = benjamini_hochberg(
        [max(ratio.p_above(-bound), ratio.p_below(bound)) for ratio in tested]
    )
    said = iter(
        _direction(ratio.value, bound, p <= level, q <= level)
        for ratio, p, q in zip(tested, unequal, alike, strict=True)
    )
    return ["undecided" if ratio is None else next(said) for ratio in ratios]


def _two_sided(ratio: LogRatio) -> float:
    """The p-value of the hypothesis that it is 1."""
    return min(1.0, 2 * min(ratio.p_above(), ratio.p_below()))


def deciding_intervals(
    ratios: Sequence[LogRatio | None], level: float = 0.05
) -> list[tuple[float, float] | None]:
    """The interval of each logarithm by which :func:`directions` tells it from 0: that of the
    ``k``-th smallest of ``m`` p-values has an error of ``k`` times ``level / m``; those that are
    told apart have the error of the last of them (Benjamini & Yekutieli 2005)."""
    tested = [(place, ratio) for place, ratio in enumerate(ratios) if ratio is not None]
    p_values = [_two_sided(ratio) for _, ratio in tested]
    adjusted = benjamini_hochberg(p_values)
    told = sum(p <= level for p in adjusted)
    ranks = {index: rank for rank, index in enumerate(
        sorted(range(len(tested)), key=p_values.__getitem__), start=1)}  # fmt: skip
    found: list[tuple[float, float] | None] = [None] * len(ratios)
    for index, (place, ratio) in enumerate(tested):
        error = level * max(ranks[index], told) / len(tested)
        found[place] = ratio.interval(1 - error)
    return found


def alike_intervals(
    ratios: Sequence[LogRatio | None], effect: float, level: float = 0.05
) -> list[tuple[float, float] | None]:
    """The interval of each logarithm by which :func:`directions` tells it to be the same: its ends
    are the two one-sided tests at the error of all that are told so together, so it lies within
    the effect."""
    bound = math.log1p(effect)
    tested = [ratio for ratio in ratios if ratio is not None]
    p_values = [max(ratio.p_above(-bound), ratio.p_below(bound)) for ratio in tested]
    told = sum(p <= level for p in benjamini_hochberg(p_values))
    error = 2 * level * max(1, told) / max(1, len(tested))
    return [None if ratio is None else ratio.interval(1 - error) for ratio in ratios]


def _direction(value: float, bound: float, unequal: bool, alike: bool) -> Direction:
    if alike:
        return "same"
    if unequal and abs(value) >= bound:
        return "higher" if value > 0 else "lower"
    return "undecided"
