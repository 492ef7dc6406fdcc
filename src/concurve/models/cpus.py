"""Levels beyond the CPUs: more workers than CPUs share them, which no model is about.

N workers on P granted CPUs cannot do more than P of them at once. A model fitted to levels beyond P
would call the CPUs contention. So those levels are set apart, and α and β are estimated up to P.
That holds only where the CPUs are used up: workers that sleep or wait for a device do scale beyond
P, and are told by their CPU use, or by a throughput that goes on growing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from concurve import words
from concurve.models.model import Floats

#: A share of the granted CPUs in use from which they are used up.
USED_UP = 0.9
#: Growth over the throughput at the CPUs from which the workers are not bound to them.
_GROWTH = 1.15


class Within(NamedTuple):
    """The trials that models are fitted to, and what is said of used-up CPUs (empty: nothing)."""

    n: Floats
    x: Floats
    said: str


def within_cpus(
    n: Sequence[float] | Floats,
    x: Sequence[float] | Floats,
    cpus: float | None,
    used: Mapping[float, float] | None = None,
) -> Within:
    """The trials at levels that the CPUs allow.

    Args:
        n: workers of each trial.
        x: throughput of each trial.
        cpus: the CPUs that the workers may use; ``None`` if not known: nothing is set apart.
        used: CPUs in use by level. Where it is missing, throughput that no longer grows stands
            for CPUs that are used up.
    """
    levels, rates = np.asarray(n, float), np.asarray(x, float)
    if cpus is None or not len(levels):
        return Within(levels, rates, "")
    top = float(levels.max())
    if top <= cpus:
        full = used is not None and used.get(top, 0.0) >= USED_UP * cpus
        return Within(levels, rates, _used_up_at(top, cpus) if full else "")
    beyond = [float(level) for level in np.unique(levels) if level > cpus]
    below = levels <= cpus
    best = max(
        (float(np.median(rates[levels == k])) for k in np.unique(levels[below])), default=0.0
    )
    apart: list[float] = []
    for level in reversed(beyond):
        rate = float(np.median(rates[levels == level]))
        busy = None if used is None else used.get(level)
        is_used_up = rate < _GROWTH * best or not best if busy is None else busy >= USED_UP * cpus
        if not is_used_up:
            # CPUs that are not used up at a level are not used up by fewer workers.
            break
        apart.insert(0, level)
    if not apart:
        return Within(levels, rates, "")
    kept = ~np.isin(levels, apart)
    seen = used is not None and all(level in used for level in apart)
    return Within(levels[kept], rates[kept], _said(levels, rates, apart, cpus, seen=seen))


def _used_up_at(top: float, cpus: float) -> str:
    return (
        f"{_own(cpus)} used up at N = {top:g}: more workers would share "
        f"{'it' if cpus == 1 else 'them'}, and nothing is predicted beyond."
    )


def _own(cpus: float) -> str:
    return "The one CPU is" if cpus == 1 else f"The {cpus:g} CPUs are"


def _said(levels: Floats, rates: Floats, apart: Sequence[float], cpus: float, *, seen: bool) -> str:
    """Which levels are set apart, and why. Only CPU use that was ``seen`` shows that CPUs are used
    up; a throughput that no longer grows is taken for it."""
    shared = "it" if cpus == 1 else "them"
    top = apart[-1]
    kept = np.unique(levels[~np.isin(levels, apart)])
    compared = ""
    if len(kept):
        last = float(kept[-1])
        ratio = float(np.median(rates[levels == top]) / np.median(rates[levels == last]))
        compared = f"; at N = {top:g} throughput is {ratio:.3g} times that at N = {last:g}"
    if not seen:
        return (
            f"{_own(cpus)} taken as used up, because {_growth(levels, rates, apart, cpus)}: at "
            f"N = {_listed(apart)} more workers would share {shared}, and no model is fitted there."
        )
    return (
        f"{_own(cpus)} used up: at N = {_listed(apart)} more workers share {shared}, and no model "
        f"is fitted there{compared}."
    )


def _growth(levels: Floats, rates: Floats, apart: Sequence[float], cpus: float) -> str:
    """``throughput grows by only 13 % beyond N = 16``: from the greatest of the levels kept to the
    greatest of those set apart."""
    kept = np.unique(levels[~np.isin(levels, apart)])
    if not (kept <= cpus).any():
        return "no level is within them"

    def median(level: float) -> float:
        return float(np.median(rates[levels == level]))

    at = max(kept.tolist(), key=median)
    ratio = max(map(median, apart)) / median(at)
    if ratio <= 1:
        return f"throughput is not above that at N = {at:g}"
    return f"throughput grows by only {words.in_percent(ratio - 1)} % beyond N = {at:g}"


def _listed(values: Sequence[float]) -> str:
    texts = [f"{value:g}" for value in values]
    return texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} and {texts[-1]}"
