"""``concurve run run:ID``: the study of a stored run, or one cell of it, measured again."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from concurve.cli import run
from concurve.errors import StoreError, StudyError
from concurve.store import Store
from tests.helpers.made import made_run


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def stored(db: Path) -> str:
    store = Store(str(db))
    report = made_run(store, lambda n, _: 1 / int(n), threads=(1, 2, 4), sync=("none", "cas"))
    store.close()
    return report.run.id


def plan(db: Path, *words: str) -> str:
    done = CliRunner().invoke(
        run.verb, [*words, "--dry-run", "--db", str(db)], catch_exceptions=False
    )
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.real
def test_one_cell_is_measured_again(db: Path) -> None:
    id_ = stored(db)
    one = ("--set=threads=4", "--set=sync=cas", "--repeats=7..7")
    assert "1 cell × 7" in plan(db, f"run:{id_}", *one)
    assert "1 cell × 7" in plan(db, "run:last", *one)


@pytest.mark.real
def test_the_whole_study_is_measured_again(db: Path) -> None:
    assert "6 cells ×" in plan(db, f"run:{stored(db)}")


def test_what_is_no_run_of_the_store_or_no_factor_of_it(db: Path) -> None:
    id_ = stored(db)
    with pytest.raises(StoreError):
        plan(db, "run:nothing")
    with pytest.raises(StudyError, match="no such factor"):
        plan(db, f"run:{id_}", "--set=colour=red")
