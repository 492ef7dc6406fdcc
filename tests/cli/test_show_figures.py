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
from concurve.findings.run import Report
from concurve.host.lock import measurement_lock
from concurve.report.charts import charts
from concurve.report.document import Table
from concurve.report.sections.figures import drawn, every
from concurve.terms import IndicatorInfo
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


def test_the_figures_stand_alone(db: str) -> None:
    """Who asks for the list has seen the answer."""
    done = CliRunner().invoke(app, ["show", RUN, "--figures", "--db", db], catch_exceptions=False)
    head, blank, heading, *_ = done.stdout.splitlines()
    assert head.startswith("Figures of ") and RUN in head
    assert (blank, heading) == ("", "all figures:")


def test_a_figure_that_all_trials_had_alike_stands_on_a_line_and_has_no_chart() -> None:
    """What is asked for by name has its rows all the same."""
    found = samples.thread_scaling()
    six = msgspec.structs.replace(
        found.cells[0].indicators["wall_seconds"], value=6.0, low=6.0, high=6.0
    )

    def with_six(cells: int) -> Report:
        changed = (
            msgspec.structs.replace(cell, indicators={**cell.indicators, "failed": six})
            if at < cells
            else cell
            for at, cell in enumerate(found.cells)
        )
        return msgspec.structs.replace(found, cells=tuple(changed), extracted=("failed",))

    def rows(report: Report, *named: str) -> tuple[bool, str]:
        table, *left = every(report, named).blocks
        assert isinstance(table, Table)
        return "failed" in table.columns[0].cells, str(left)

    every_cell, one_less = with_six(len(found.cells)), with_six(len(found.cells) - 1)
    has_rows, said = rows(every_cell)
    assert not has_rows and "failed 6" in said
    assert rows(every_cell, "failed")[0] and rows(one_less)[0]
    assert "failed-by-threads" not in {chart.name for chart in charts(every_cell)}
    assert "failed-by-threads" in {chart.name for chart in charts(one_less)}
    assert "failed 6" in str(drawn(every_cell)).partition("not drawn: ")[2]
    both = dict.fromkeys(("rate_per_second", "failed"), six)
    rated = msgspec.structs.replace(
        one_less,
        cells=tuple(msgspec.structs.replace(cell, indicators=both) for cell in found.cells),
        indicators=(IndicatorInfo(name="failed", label="requests", unit="1/s"),),
    )
    assert "rate_per_second: rate_per_second; failed: as the program prints." in rows(rated)[1]


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


@pytest.mark.parametrize("words", [["show", RUN], ["explain", RUN], ["report", RUN, "-o"]])
def test_who_reads_while_a_measurement_runs_is_told_once(
    words: list[str], db: str, tmp_path: Path
) -> None:
    words = [*words, *([str(tmp_path / "r.md")] if words[-1] == "-o" else []), "--db", db]
    quiet = CliRunner().invoke(app, words, catch_exceptions=False)
    assert "a measurement is running" not in quiet.stderr
    with measurement_lock("run of a test"):
        busy = CliRunner().invoke(app, words, catch_exceptions=False)
    assert busy.stderr.count(" note: a measurement is running (pid ") == 1
    assert "run of a test): this command takes CPU time from it" in busy.stderr
    assert busy.stdout == quiet.stdout
