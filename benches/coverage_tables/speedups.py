"""Intervals of speed-ups."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from concurve.stats.intervals import ratio_estimate
from coverage_tables.simulated import SEED, TRUTHS, marked


def speedups(count: int, rows: list[float]) -> Iterator[str]:
    """Ratios of means, as every report shows them (stats/intervals.py)."""
    yield "## Speed-up"
    yield ""
    yield "Ratio of two means of trials (docs/method/estimates.md). One trial has no interval."
    yield ""
    yield "| true speed-up | noise | 5 trials each | 10 trials each | 5 and 20 |"
    yield "|-|-|-|-|-|"
    rng = np.random.default_rng(SEED)
    for truth in TRUTHS:
        factor = float(truth.throughput(16) / truth.throughput(1))
        for noise in (0.03, 0.08):
            shares = [
                speedup_share(rng, factor, noise, sizes, count)
                for sizes in ((5, 5), (10, 10), (5, 20))
            ]
            rows += shares
            cells = [f"{factor:.2f}", f"{100 * noise:g} %", *(marked(share) for share in shares)]
            yield f"| {' | '.join(cells)} |"
    yield ""


def speedup_share(
    rng: np.random.Generator, factor: float, noise: float, sizes: tuple[int, int], count: int
) -> float:
    """Share of the intervals of a speed-up that contain it."""
    held = 0
    for _ in range(count):
        top, bottom = (np.exp(rng.normal(0, noise, size)) for size in sizes)
        estimate = ratio_estimate((factor * top).tolist(), bottom.tolist())
        assert estimate is not None and estimate.low is not None and estimate.high is not None
        held += estimate.low <= factor <= estimate.high
    return held / count
