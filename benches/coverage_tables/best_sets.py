"""Sets of settings that cannot be distinguished from the best."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from concurve.stats.best import best_set
from coverage_tables.simulated import EIGHT, SEED, TRUTHS, Floats, marked, percent

BEST_TEXT = """## Best set

Share of the experiments whose set of settings that cannot be distinguished from the best holds the
best one (docs/method/best-setting.md). Settings that are equally good are the worst case: the best
is then one of them. Five times as many experiments as above.
"""
BEST_OF_CURVES_TEXT = """
Where one setting is truly best, the set holds it more often still. For the throughput of the curves
above at the eight levels, with 3 and 8 % noise (mean size of the set in parentheses; not counted in
the sum below):
"""
#: Trials of each setting, in turn.
SIZES = {"5 trials each": (5,), "10 trials each": (10,), "5 and 20": (5, 20)}


def best_sets(count: int, rows: list[float]) -> Iterator[str]:
    """Equal settings, then those of the curves."""
    yield from BEST_TEXT.splitlines()
    yield ""
    yield f"| settings | noise | {' | '.join(SIZES)} |"
    yield "|-|-|-|-|-|"
    rng = np.random.default_rng([SEED, 1])
    for settings in (2, 4, 8):
        for noise in (0.03, 0.08):
            found = [
                best_share(rng, np.ones(settings), noise, sizes, 5 * count)[0]
                for sizes in SIZES.values()
            ]
            rows += found
            cells = [f"{settings} equal", f"{100 * noise:g} %", *map(marked, found)]
            yield f"| {' | '.join(cells)} |"
    yield from BEST_OF_CURVES_TEXT.splitlines()
    yield ""
    yield f"| α | β | best of the eight | noise | {' | '.join(SIZES)} |"
    yield "|-|-|-|-|-|-|-|"
    for truth in TRUTHS:
        x = truth.throughput(np.array(EIGHT, float))
        for noise in (0.03, 0.08):
            shares = [best_share(rng, x, noise, sizes, count) for sizes in SIZES.values()]
            cells = [f"{truth.alpha:g}", f"{truth.beta:g}", f"{EIGHT[int(x.argmax())]}"]
            cells += [f"{100 * noise:g} %"]
            cells += [f"{percent(share)} ({size:.1f})" for share, size in shares]
            yield f"| {' | '.join(cells)} |"
    yield ""


def best_share(
    rng: np.random.Generator, means: Floats, noise: float, sizes: tuple[int, ...], count: int
) -> tuple[float, float]:
    """Share of the sets that hold the best setting (the first of equal ones), and their mean
    size."""
    best, held, size = int(means.argmax()), 0, 0
    for _ in range(count):
        cells = [
            dict(
                enumerate(
                    (mean * np.exp(rng.normal(0, noise, sizes[number % len(sizes)]))).tolist()
                )
            )
            for number, mean in enumerate(means)
        ]
        members = best_set(cells, lower_is_better=False).members
        held += best in members
        size += len(members)
    return held / count, size / count
