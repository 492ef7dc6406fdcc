"""``concurve show --figures``: all figures, one of them, or those that a pattern names."""

from __future__ import annotations

import shutil
from pathlib import Path

import click
import msgspec
import pytest
from click.testing import CliRunner

from concurve.cli import app, slips
from concurve.errors import ConcurveError
from concurve.report.document import Table
from concurve.report.sections.figures import every
from tests.report import samples
from tests.store.test_damage import GOLDEN, RUN


@pytest.fixture
def db(tmp_path: Path) -> str:
    path = tmp_path / "s.db"
    shutil.copy(GOLDEN, path)
    return str(path)


def listed(*words: str) -> list[str]:
    """The figures that a command lists, each once."""
    done = CliRunner().invoke(app, ["show", *words], catch_exceptions=False)
    lines = done.stdout.splitlines()
    at = next(at for at, line in enumerate(lines) if line.startswith(("all figures", "figures by")))
    rows = (line.split() for line in lines[at + 2 :])
    names = [row[0] for row in rows if row and "_" in row[0] and row[0][0] != "-"]
    return list(dict.fromkeys(names))


def refused(*words: str) -> str:
    with pytest.raises(ConcurveError) as error:
        CliRunner().invoke(app, ["show", *words], catch_exceptions=False)
    return str(error.value)


def test_a_figure_or_a_pattern_is_listed_alone(db: str) -> None:
    assert listed(RUN, "--figures", "wall_seconds", "--db", db) == ["wall_seconds"]
    seconds = listed(RUN, "--figures", "*_seconds", "--db", db)
    assert {"wall_seconds", "cpu_seconds"} <= set(seconds)
    assert all(name.endswith("_seconds") for name in seconds)


def test_the_run_may_stand_behind_the_option(db: str) -> None:
    """As it could before the option took a name."""
    assert listed("--db", db, "--figures", RUN) == listed(RUN, "--figures", "--db", db)


def test_a_run_without_figures_says_so(db: str) -> None:
    words = ["show", "last", "--figures", "wall_seconds", "--db", db]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert "no figures yet" in done.stdout


def test_a_name_of_no_figure_is_refused_with_those_that_there_are(db: str) -> None:
    near = refused(RUN, "--figures", "wall_second", "--db", db)
    assert "has no figure 'wall_second'" in near and "did you mean 'wall_seconds'?" in near
    far = refused(RUN, "--figures", "qqq", "--db", db)
    assert "one of wall_seconds, " in far and f"concurve show {RUN} --figures lists all" in far


def test_the_json_takes_no_name_of_a_figure(db: str) -> None:
    assert "--json has all of them" in refused(
        RUN, "--figures", "wall_seconds", "--json", "--db", db
    )


def test_a_second_word_is_taken_for_a_figure() -> None:
    with pytest.raises(click.UsageError) as error:
        app.main(["show", "last", "wall_seconds"], standalone_mode=False)
    meant = slips.as_meant(error.value)
    assert meant is not None and "--figures wall_seconds" in meant.message


def test_the_rows_of_a_condition_stand_together() -> None:
    found = samples.thread_scaling()
    cells = sorted(found.cells, key=lambda cell: str(cell.parameters["threads"]))
    mixed = msgspec.structs.replace(found, cells=tuple(cells))
    table = every(mixed, ["wall_seconds"]).blocks[0]
    assert isinstance(table, Table)
    (cpus,) = [column for column in table.columns if column.title == "cpus"]
    assert [str(entry) for entry in cpus.cells] == ["1"] * 6 + ["2"] * 6
