"""How many runs a test simulates: few in ``make test``, as many as it takes in ``make soak``."""

from __future__ import annotations

import math

import pytest
from _pytest.mark import ParameterSet


def few_or_many(few: int, many: int) -> list[int | ParameterSet]:
    """The numbers to parametrize a test by; the greater one is for ``make soak`` alone."""
    return [few, pytest.param(many, marks=pytest.mark.soak)]


def at_most(share: float, count: int, deviations: float = 2.0) -> float:
    """So many of ``count`` may err of what errs with a probability of ``share``: their mean number
    and so many standard deviations. Few are as many by chance, so that a test of few stands no
    stricter bound than one of many."""
    return share * count + deviations * math.sqrt(share * (1 - share) * count)
