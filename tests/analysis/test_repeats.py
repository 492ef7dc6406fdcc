"""The options of a new run with so many trials."""

from __future__ import annotations

import pytest

from concurve.findings.repeats import repeats_options


@pytest.mark.parametrize(
    ("seconds", "allowed", "options"),
    [
        (None, 120.0, ""),
        (320.0, None, ""),
        (100.0, 120.0, ""),  # it fits
        (101.0, 120.0, " --max-time 3m"),
        (320.0, 120.0, " --max-time 7m"),
        (80.0, 60.0, " --max-time 96s"),
        (36_000.0, 3600.0, " --max-time 12h"),
    ],
)
def test_an_allowance_that_would_not_hold_is_told_with_the_trials(
    seconds: float | None, allowed: float | None, options: str
) -> None:
    assert repeats_options(88, seconds, allowed) == f"--repeats 88{options}"
