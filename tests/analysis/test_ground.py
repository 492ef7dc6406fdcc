"""Which figure a setting is recommended by, judged by planted programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from concurve.store import Store
from tests.helpers.meant import CASES, Case, run_of


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "s.db"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_question_that_was_meant_is_answered(case: Case, store: Store) -> None:
    found = run_of(case, store)
    said = " ".join(item.sentence for item in found.sentences)
    best = found.best_overall
    assert best is not None
    if case.run:
        assert not best.doubt, said
        assert best.recommended["n"] in case.run, said
    else:
        assert best.doubt and "No setting is recommended" in said
        assert "Run n=" not in said
        assert all("speedup" not in cell.indicators for cell in found.cells)
    for part in case.says:
        assert part in said
