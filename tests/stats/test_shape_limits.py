"""The limits of shapes that are known are those that a simulation gives."""

from __future__ import annotations

from itertools import pairwise

import pytest

from concurve.stats import shape
from concurve.stats.shape import critical, simulated_limits
from concurve.stats.shape_limits import FILE, Limits, limits_of


@pytest.mark.parametrize("n", [8, 30, 200])
def test_each_usual_number_of_trials_is_as_simulated(n: int) -> None:
    found = limits_of(n)
    assert found is not None
    assert tuple(found) == pytest.approx(tuple(simulated_limits(n)), rel=1e-9)


def test_a_number_between_two_of_the_grid_lies_between_them() -> None:
    sizes = [int(line.partition(",")[0]) for line in FILE.read_text("ascii").splitlines()[1:]]
    below, above = next(pair for pair in pairwise(sizes) if pair[1] - pair[0] > 1)
    between = (below + above) // 2
    found = limits_of(between)
    assert found is not None
    for value, low, high in zip(found, critical(below), critical(above), strict=True):
        assert min(low, high) < value < max(low, high)
    assert tuple(found) == pytest.approx(tuple(simulated_limits(between, 400)), rel=0.3)


def test_what_is_not_known_is_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    assert limits_of(7) is None and limits_of(1_000_000) is None
    made = Limits(1.0, 2.0)
    monkeypatch.setattr(shape, "simulated_limits", lambda n: made)
    assert shape.critical(1_000_001) is made
