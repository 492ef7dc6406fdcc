"""Settings whose responses differ in size are told: they may not answer with the same."""

from __future__ import annotations

import pytest

from concurve.findings.run import TrialFindings
from concurve.store import Store
from tests.helpers.meant import Case, run_of


def run_of_sizes(factor: float) -> TrialFindings:
    """Runs of wrk whose responses are 1 KiB, and with four connections and more this factor of
    it."""

    def prints(n: int, wall: float, noise: float) -> str:
        size = 1024 * (factor if n >= 4 else 1.0)
        return (
            f"  2000 requests in 2.00s, {2000 * size / 1024**2:.2f}MB read\n"
            f"Requests/sec:  {1000 * noise:.2f}\n"
        )

    return run_of(Case("sizes", lambda n: 2.0, prints, {"extracts": ("wrk",)}), Store())


def told(factor: float) -> list[str]:
    every = [item.sentence for item in run_of_sizes(factor).sentences]
    return [text for text in every if "differ in size" in text]


@pytest.mark.parametrize("factor", [0.97, 1.0, 1.03])
def test_sizes_that_hardly_differ_are_not_told(factor: float) -> None:
    assert not told(factor)


def test_the_smallest_and_the_largest_are_told_with_their_settings() -> None:
    (said,) = told(0.25)
    assert "1,022 bytes in the mean with n=1, 257 with n=4" in said
    assert len(said.split()) <= 40
    (said,) = told(2.0)
    assert "with n=4, 1,022 with n=1. " in said
