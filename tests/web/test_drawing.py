"""Reports that a process of their own makes, as the pages ask for them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from concurve.errors import ComparisonError
from concurve.store import Store
from concurve.web.drawing import Drawings, Job


@pytest.mark.real
def test_a_report_that_is_refused_is_refused_as_what_it_is(tmp_path: Path) -> None:
    """The page answers with the status of the error: what is asked wrongly is no fault of ours."""
    db = str(tmp_path / "runs.db")
    Store(db).close()
    job = Job(kind="history", names=("nothing",), db=db)
    with pytest.raises(ComparisonError, match="no run of 'nothing' in "):
        asyncio.run(Drawings().make(job))
