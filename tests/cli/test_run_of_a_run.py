"""``concurve run run:ID``: the study of a stored run, or one cell of it, measured again."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from concurve.cli import app, run, slips
from concurve.errors import StoreError, StudyError
from concurve.measuring.heads import new_head
from concurve.store import Store
from tests.helpers.fakes import small_study
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


@pytest.mark.real
def test_the_effort_is_that_of_the_run_if_no_other_is_given(db: Path) -> None:
    """More trials at another effort would be another study: other rules, another precision."""
    store = Store(str(db))
    head = new_head(small_study(n=(1, 2)), "quick", 1, "concurve sweep …")
    store.add_run(head.row())
    store.close()
    said = plan(db, "run:last", "--repeats=40")
    assert "effort quick" in said and "× 40" in said
    assert f"new run of the study of {head.id}, at effort quick" in said
    assert "its own trials alone" in said
    assert "effort rigorous" in plan(db, "run:last", "--effort=rigorous")


@pytest.mark.parametrize("option", ["--repeats", "--effort", "-n", "--set"])
def test_to_resume_with_more_trials_names_the_new_run(option: str) -> None:
    with pytest.raises(click.NoSuchOption) as error:
        app.main(["resume", "last", option, "40"], standalone_mode=False)
    known = slips.as_meant(error.value)
    assert known is not None and "concurve run run:RUN --repeats 40" in known.format_message()
