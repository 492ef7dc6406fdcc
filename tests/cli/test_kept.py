"""What is kept of a run of many trials is shown again, and never where anything has changed."""

from __future__ import annotations

import gc
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from concurve import brief
from concurve.cli import kept, showing
from concurve.cli.show import verb
from concurve.cli.sweep import verb as sweep
from concurve.errors import RunError, StoreError
from concurve.store import Store
from tests.helpers.made import made_run

DB = "runs.db"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a store of one run, of more trials than are computed each time."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(kept, "KEPT_FROM", 5)
    store = Store(DB)
    made_run(store, lambda n: 1.0 / int(n), threads=(1, 2))
    store.close()
    return tmp_path


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The runs whose figures were computed, in order."""
    runs: list[str] = []
    really = brief.figures_of

    def counted(store: Store, row: object, *rest: object, **more: object) -> object:
        runs.append(row.id)  # type: ignore[attr-defined]
        return really(store, row, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(brief, "figures_of", counted)
    return runs


@pytest.fixture
def show(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    def shown(**options: str) -> str:
        store = Store.existing(DB)
        try:
            showing.show_run(store, "last", **options)  # type: ignore[arg-type]
        finally:
            store.close()
        return capsys.readouterr().out

    return shown


def change(statement: str) -> None:
    connection = sqlite3.connect(DB)
    with connection:
        assert connection.execute(statement).rowcount > 0
    connection.close()


def test_a_view_closes_its_store(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "freeze", lambda: None)  # of the process of the tests
    CliRunner().invoke(verb, ["last", "--db", DB], catch_exceptions=False)
    assert not list(folder.glob(f"{DB}-*")), "its log is gone with its last connection"


def test_numpy_is_imported_without_threads_that_others_inherit() -> None:
    code = (
        "import os; from concurve.cli import showing; showing._import_numpy(); import sys; "
        "assert 'numpy' in sys.modules and showing._BLAS_THREADS not in os.environ; "
        "assert len(os.listdir('/proc/self/task')) == 1"
    )
    own = {k: v for k, v in os.environ.items() if not k.startswith(("OPENBLAS_", "OMP_"))}
    subprocess.run([sys.executable, "-c", code], check=True, env=own)


def test_the_second_time_nothing_is_computed(show: Callable[..., str], computed: list[str]) -> None:
    first = show()
    assert "Use 2." in first
    assert show() == first
    assert len(computed) == 1


@pytest.mark.real
@pytest.mark.parametrize("export", [(), ("--export-html", "report.html")])
def test_the_end_of_a_run_keeps_what_it_prints(
    export: tuple[str, ...],
    show: Callable[..., str],
    computed: list[str],
    capsys: pytest.CaptureFixture[str],
) -> None:
    line = ["-P", "n", "1,2", "--repeats", "3..3", "--effort", "quick", "--db", DB, *export]
    sweep.main([*line, "--", "true", "{n}"], standalone_mode=False)
    printed = capsys.readouterr().out
    assert ("report: report.html" in printed) == bool(export)
    assert printed.removesuffix("report: report.html\n") == show()
    assert len(computed) == 1, "by the run alone"


def test_a_small_run_is_computed_each_time(
    show: Callable[..., str], computed: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "KEPT_FROM", 10)
    assert show() == show()
    assert len(computed) == 2
    assert not (folder / "cache").exists()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE concurve_trials SET value = 2 * value WHERE id = 3",
        "UPDATE concurve_trials SET seconds = 9 WHERE id = 3",
        "UPDATE concurve_trials SET verdict = 'contaminated', cause = 'x' WHERE id = 3",
        "UPDATE concurve_trials SET cause = 'steal' WHERE id = 3",
        "UPDATE concurve_trials SET detail = 'y' WHERE id = 3",
        "UPDATE concurve_trials SET figures = (SELECT figures FROM concurve_trials WHERE id = 4) "
        "WHERE id = 3",
        "DELETE FROM concurve_trials WHERE id = 10",
        "UPDATE concurve_records SET record = (SELECT record FROM concurve_records WHERE trial = 2)"
        " WHERE trial = 1",
        "UPDATE concurve_runs SET state = 'interrupted'",
        "UPDATE concurve_runs SET reason = 'another'",
        "UPDATE concurve_runs SET head = CAST(replace(CAST(head AS TEXT), '\"seed\":1', "
        "'\"seed\":2') AS BLOB)",
    ],
)
def test_whatever_changes_is_computed_anew(
    statement: str, show: Callable[..., str], computed: list[str]
) -> None:
    show()
    change(statement)
    try:
        show()
    except Exception as error:
        assert "StoreError" in repr(error) or "RunError" in repr(error), error
    assert len(computed) == 2


def test_damaged_figures_are_named_though_an_answer_is_kept(show: Callable[..., str]) -> None:
    show()
    change("UPDATE concurve_trials SET figures = X'00' WHERE id = 3")
    with pytest.raises(StoreError, match="damaged"):
        show()


def test_another_width_and_another_indicator_are_other_views(
    show: Callable[..., str], computed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = show()
    assert show(best_by="cpu_seconds") != wide
    monkeypatch.setenv("COLUMNS", "40")
    narrow = show()
    assert max(map(len, narrow.splitlines())) <= 40 < max(map(len, wide.splitlines()))
    assert len(computed) == 3
    monkeypatch.delenv("COLUMNS")
    assert show() == wide
    assert len(computed) == 3, "each view stays beside the others"


def test_another_version_of_the_laboratory_computes_anew(
    show: Callable[..., str], computed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    show()
    monkeypatch.setattr(kept, "_code", lambda: iter(["another"]))
    show()
    assert len(computed) == 2


def test_a_cache_that_is_damaged_or_cannot_be_written_is_none(
    show: Callable[..., str], computed: list[str], folder: Path
) -> None:
    first = show()
    (file,) = (folder / "cache").rglob("*.json")
    for damage in (b"", b"{", b'{"key":1}', b"[" * 100_000, file.read_bytes()[:-9]):
        file.write_bytes(damage)
        assert show() == first
    (folder / "cache").rename(folder / "moved")
    (folder / "cache").write_text("no folder")
    assert show() == first
    assert len(computed) == 7


def test_what_is_kept_does_not_grow_without_end(
    show: Callable[..., str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "_VIEWS_KEPT", 2)
    show()
    (file,) = (folder / "cache").rglob("*.json")
    for old in ("a", "b", "c"):
        (file.parent / f"{old}.json").write_text("{}")
    change("UPDATE concurve_runs SET reason = 'another'")
    show()
    assert len(list(file.parent.iterdir())) == 2
    assert file.exists()


def test_an_option_that_is_no_text_is_refused_as_any_other(show: Callable[..., str]) -> None:
    with pytest.raises(RunError, match="no trial has the indicator"):
        show(best_by="\udcff")
