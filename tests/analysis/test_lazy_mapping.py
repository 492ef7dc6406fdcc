"""Estimates are made when they are read, once, and are the same as if made at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from concurve.analysis.lazy_mapping import LazyMapping
from concurve.readings.centres import indicator_centre
from concurve.store import Store
from tests.helpers.made import made_run


def test_values_are_made_once_when_read() -> None:
    made: list[str] = []

    def make(name: str) -> int:
        made.append(name)
        return len(name)

    found = LazyMapping(("a", "bb", "ccc"), make, {"known": 0})
    assert list(found) == ["a", "bb", "ccc", "known"] and len(found) == 4
    assert "bb" in found and "d" not in found and found.get("d") is None
    assert made == []
    assert (found["bb"], found["bb"], found["known"]) == (2, 2, 0)
    assert made == ["bb"]
    assert found == {"a": 1, "bb": 2, "ccc": 3, "known": 0}
    with pytest.raises(KeyError):
        found["d"]


def test_the_indicators_of_a_run_are_the_means_of_its_trials(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "s.db"))
    findings = made_run(store, lambda threads: 1 / float(threads), cv=0.05, threads=(1, 2, 4))
    names = {name for dot in findings.dots for name in dot.values}
    assert "wall_seconds" in names
    for name in names:
        columns = findings.columns(name)
        for cell in findings.cells:
            assert cell.indicators[name] == indicator_centre(
                name, columns[cell.index], findings.indicator(name).unit
            )
