"""Commands name the store that was given."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import concurve
from concurve.cli import main
from concurve.errors import ConcurveError
from concurve.report.python_words import python_words
from concurve.report.store_words import command_words, function_words
from concurve.store import Store
from tests.helpers.made import made_run

RUN = "20261128-101112-ab12"
#: What messages say, with where the store belongs.
COMMANDS = [
    (f"concurve resume {RUN}", f"concurve resume {RUN} --db k2.db"),
    (f"then concurve resume {RUN}, or", f"then concurve resume {RUN} --db k2.db, or"),
    (f"concurve resume {RUN} --max-time TIME", f"concurve resume {RUN} --db k2.db --max-time TIME"),
    ("then concurve resume last", "then concurve resume last --db k2.db"),
    (f"concurve show {RUN} --models, --all", f"concurve show {RUN} --db k2.db --models, --all"),
    (f"concurve export {RUN} --format csv", f"concurve export {RUN} --db k2.db --format csv"),
    ("concurve runs lists them", "concurve runs --db k2.db lists them"),
    ("concurve resume c20261128-101112-ab12", "concurve resume c20261128-101112-ab12 --db k2.db"),
    ("concurve runs c20261128-101112-ab12", "concurve runs --db k2.db c20261128-101112-ab12"),
    ("concurve compare last --factor x", "concurve compare --db k2.db last --factor x"),
    (f"concurve compare {RUN} RUN", f"concurve compare --db k2.db {RUN} RUN"),
]
#: What is no command to be typed, or names its store.
KEPT = [
    "concurve explain on the machine says more",
    "concurve show has its figures",
    "concurve resume last --db saved.db",
    "concurve hosts down FILE",
]


def with_run(file: Path) -> None:
    store = Store(str(file))
    made_run(store, lambda threads: 1.0, threads=(1, 2))
    store.close()


@pytest.mark.parametrize(("text", "said"), COMMANDS)
def test_a_command_names_the_store_that_was_given(text: str, said: str) -> None:
    assert command_words(text, "k2.db") == said
    assert command_words(text, None) == text


@pytest.mark.parametrize("text", KEPT)
def test_what_needs_no_store_stays(text: str) -> None:
    assert command_words(text, "k2.db") == text


def test_a_place_is_quoted_as_a_shell_needs_it() -> None:
    assert command_words("concurve resume last", "my runs.db").endswith("--db 'my runs.db'")


def test_a_function_names_the_store_that_was_given() -> None:
    resumed = function_words(python_words(f"concurve resume {RUN}"), "k.db")
    assert resumed == f'concurve.load("{RUN}", db="k.db").resume()'
    assert function_words("concurve.load().resume()", "k.db") == 'concurve.load(db="k.db").resume()'
    assert function_words("concurve.runs() lists", "k.db") == 'concurve.runs(db="k.db") lists'
    assert function_words("concurve.load()", None) == "concurve.load()"
    assert function_words('concurve.load(db="other.db")', "k.db") == 'concurve.load(db="other.db")'


def test_the_command_line_names_the_store_that_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CONCURVE_DB", str(tmp_path / "default.db"))
    for name in ("default.db", "k2.db"):
        with_run(tmp_path / name)

    def refused(*argv: str) -> str:
        monkeypatch.setattr(sys, "argv", ["concurve", "show", RUN, *argv])
        with pytest.raises(SystemExit):
            main()
        return capsys.readouterr().err

    given = str(tmp_path / "k2.db")
    assert f"concurve runs --db {given} lists them" in refused("--db", given)
    assert "concurve runs lists them" in refused()


@pytest.mark.usefixtures("empty_charts")
def test_a_report_names_the_store_that_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever types a command of a page, a Markdown report, or one that Python wrote."""
    monkeypatch.setenv("CONCURVE_DB", str(tmp_path / "default.db"))
    given = str(tmp_path / "k2.db")
    for name in ("default.db", "k2.db"):
        with_run(tmp_path / name)
        store = Store(str(tmp_path / name))
        store.set_state(store.find_run("last").id, "interrupted", "stopped; concurve resume last")
        store.close()
    monkeypatch.chdir(tmp_path)
    told = re.compile(r"concurve (?:show|explain|export|resume|compare) (?:\d{8}-[\w-]+|last)")

    def commands(*argv: str, file: str) -> list[str]:
        """What follows the commands on a run in a report."""
        monkeypatch.setattr(sys, "argv", ["concurve", *argv])
        main()
        text = (tmp_path / file).read_text()
        return [text[found.end() :][:5] for found in told.finditer(text)]

    for file in ("a.html", "a.md"):
        for verb, option in (("report", "-o"), ("export", "-o")):
            asked = (verb, "last", option, file)
            plain = commands(*asked, file=file)
            named = commands(*asked, "--db", given, file=file)
            assert plain and named == [" --db"] * len(plain) and " --db" not in plain
    concurve.load(db=given).write("b.html")
    assert f"--db {given}" in (tmp_path / "b.html").read_text()


def test_an_error_in_python_names_the_store_and_has_no_other_error_behind_it(
    tmp_path: Path,
) -> None:
    place = str(tmp_path / "k.db")
    with_run(Path(place))
    with pytest.raises(ConcurveError) as error:
        concurve.load(RUN, db=place)
    assert f'concurve.runs(db="{place}")' in error.value.remedy
    with pytest.raises(ConcurveError) as error:
        concurve.load(db=str(tmp_path / "none.db"))
    assert error.value.__cause__ is None and error.value.__suppress_context__


def test_a_parameter_that_python_has_elsewhere_is_shown() -> None:
    with pytest.raises(ConcurveError, match="no parameter 'x'") as error:
        concurve.fit([1, 2, 4], [1, 2, 3], x="threads")  # type: ignore[call-arg]
    assert "the columns themselves" in error.value.remedy
    with pytest.raises(ConcurveError, match="no parameter 'predict'") as error:
        concurve.Run.models(object(), predict=[16])  # type: ignore[call-arg,arg-type]
    assert "concurve.fit(workers, throughput, predict=[N])" in error.value.remedy
