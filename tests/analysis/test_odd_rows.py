"""Figures that look mistyped are named, and curves as they are measured are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from concurve.analysis.odd_rows import odd_rows
from tests.models.reference import CURVES, curve

LEVELS = (1, 2, 3, 4, 5, 6, 7, 8)
FIGURES = (1000.0, 1900.0, 2700.0, 3400.0, 4000.0, 4500.0, 4900.0, 5200.0)


def said(n: object, x: object) -> str:
    return " ".join(odd_rows(list(n), list(x), "n", "x"))  # type: ignore[call-overload]


@pytest.mark.parametrize("at", range(len(LEVELS)))
@pytest.mark.parametrize("factor", [10, 0.1, 100, 0.01, 0.001])
def test_a_misplaced_point_in_one_row_is_named(at: int, factor: float) -> None:
    figures = [x * factor if place == at else x for place, x in enumerate(FIGURES)]
    assert f"At n = {LEVELS[at]} x is " in said(LEVELS, figures)
    # Nor do repeated rows hide it.
    n, x = LEVELS * 3, [*FIGURES, *FIGURES, *figures]
    assert f"A row of n = {LEVELS[at]} has x " in said(n, x)
    assert f"The two rows of n = {LEVELS[at]} have" in said(LEVELS * 2, [*FIGURES, *figures])


@pytest.mark.parametrize("first", range(1, len(LEVELS)))
def test_points_that_separate_thousands_are_suspicious(first: int) -> None:
    """996, 1.906, 2.7: from 1000 on the point separates thousands."""
    figures = [x / 1000 if place >= first else x for place, x in enumerate(FIGURES)]
    text = said(LEVELS, figures)
    assert "thousands separator" in text
    assert "1 to 2" in text or f"n = {first}" in text or f"n = {first + 1}" in text


SHAPES: dict[str, Callable[[Any], Any]] = {
    "line": lambda n: n,
    "knee": lambda n: np.minimum(n, 4),
    "falling": lambda n: 1 / n,
    "steep": lambda n: n**-1.5,
    "superlinear": lambda n: n**1.5,
    "drop": lambda n: np.where(n <= 8, n, 4),
    "collapse": lambda n: np.where(n <= 6, n, 108 / n**1.6),
    "peak": lambda n: n / (1 + 0.02 * n * (n - 1)),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("top", [3, 6])
def test_measured_shapes_are_not_suspicious(shape: str, top: int) -> None:
    rng = np.random.default_rng(1)
    for n in (2.0 ** np.arange(top), np.arange(1.0, 17), np.repeat(2.0 ** np.arange(top), 5)):
        for _ in range(20):
            x = 1000 * SHAPES[shape](n) * np.exp(rng.normal(0, 0.1, len(n)))
            assert said(n, x) == ""


@pytest.mark.parametrize("name", sorted(path.stem for path in CURVES.glob("*.csv")))
def test_published_curves_are_not_suspicious(name: str) -> None:
    assert said(*curve(name)) == ""
