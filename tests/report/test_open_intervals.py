"""An interval that tells nothing is left out of the table, and the legend says why."""

from __future__ import annotations

import re

import msgspec
import pytest

from concurve.estimate import Estimate
from concurve.report.document import Document
from concurve.report.sections.figures import brief
from concurve.report.terminal import lines
from concurve.store import Store
from tests.helpers.made import made_run


@pytest.mark.parametrize(
    ("low", "high", "n", "is_open"),
    [
        (0.0, 41_000.0, 4, True),
        (10.0, 2_000.0, 4, True),
        (0.0, 41_000.0, 30, False),
        (250.0, 41_000.0, 4, False),
        (0.0, 400.0, 4, False),
    ],
)
def test_an_interval_that_tells_nothing_is_left_out(
    low: float, high: float, n: int, is_open: bool
) -> None:
    run = made_run(Store(":memory:"), lambda level: 1.0, n=(1, 2))
    figure = Estimate(value=300.0, low=low, high=high, n=n, unit="s", in_doubt=True)
    first, *others = run.cells
    first = msgspec.structs.replace(first, indicators={**first.indicators, "wall_seconds": figure})
    shown = brief(msgspec.structs.replace(run, cells=(first, *others)))
    text = "\n".join(line.plain for line in lines(Document(title="", blocks=(shown,)), 80))
    assert bool(re.search(r"300 +± – +\?", text)) is is_open, text
    assert ("± – too few trials for an interval" in text) is is_open
    assert "°" not in text
