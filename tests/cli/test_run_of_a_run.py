"""``concurve run run:ID``: the study of a stored run, or one cell of it, measured again."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from concurve.cli import app, run, slips
from concurve.definition.study import Rules
from concurve.errors import StoreError, StudyError
from concurve.findings.run import Report
from concurve.measuring.heads import new_head
from concurve.report.sections.run import brief_run_document
from concurve.report.terminal import lines
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


def shown_command(report: Report) -> list[str]:
    """The command of more trials, as a terminal shows it below the report."""
    (shown,) = [
        line.plain
        for line in lines(brief_run_document(report), 200)
        if line.plain.startswith("more trials: ")
    ]
    return shlex.split(shown.removeprefix("more trials: "))


@pytest.mark.real
@pytest.mark.parametrize("allowed", [0.03, 3600.0])
def test_the_command_of_more_trials_has_room_for_them(db: Path, allowed: float) -> None:
    """It measures the levels among which is not decided, as often as the answer says, and in the
    time that this takes, whatever the allowance of the run was."""
    trials = {"1": [2.0, 2.1, 1.9] * 2, "2": [1.0] * 6, "4": [0.9, 1.03, 1.0, 1.08, 0.95, 1.0]}
    each = {level: iter(values) for level, values in trials.items()}
    rules = Rules(repeats_min=6, repeats_max=6, time_allowed_seconds=allowed)
    store = Store(str(db))
    report = made_run(store, lambda n: next(each[n]), cv=0, rules=rules, threads=(1, 2, 4))
    store.close()
    best = report.best_overall
    assert best is not None and best.is_open and best.trials is not None
    program, verb, *words = shown_command(report)
    assert (program, verb, words[0]) == ("concurve", "run", f"run:{report.run.id}")
    said = plan(db, *words)
    assert f"2 cells × {best.trials} each = {2 * best.trials}\n" in said
    assert f"{best.trials} trials a cell fit in the allowance (the cap;" in said
    assert ("--max-time" in words) == (allowed < 1)


@pytest.mark.real
def test_the_precision_is_told_by_the_spread_of_the_run(db: Path) -> None:
    """Trials of one level spread by 10 %: an assumed 2 % would promise a fifth of that."""
    values = {"1": [1.0, 1.1, 0.9, 1.0, 1.15, 0.85] * 4, "2": [0.5] * 24}
    each = {level: iter(those) for level, those in values.items()}
    store = Store(str(db))
    rules = Rules(repeats_min=24, repeats_max=24)
    id_ = made_run(store, lambda n: next(each[n]), cv=0, rules=rules, threads=(1, 2)).run.id
    store.close()
    said = plan(db, f"run:{id_}")
    found = re.search(rf"about ±(\S+) %, as trials of run {id_} spread", said)
    assert found and 4 < float(found[1]) < 7
    assert "assumption" not in said
