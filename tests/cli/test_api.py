"""Concurve from Python, on real processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

import concurve
from concurve.host.native import binary

pytestmark = pytest.mark.real


@pytest.fixture
def swept(tmp_path: Path) -> concurve.Run:
    """A small real run in this test's own store."""
    return concurve.sweep(
        [str(binary("concurve-targets")), "busy", "--threads", "{threads}", "--cpu-ms", "5"],
        {"threads": [1, 2]},
        repeats="2",
        seed=1,
    )


def test_a_run_gives_a_frame_of_cells_and_one_of_trials(swept: concurve.Run) -> None:
    frame = swept.frame()
    assert list(frame["threads"]) == [1, 2]
    assert (frame["trials"] == 2).all()
    assert (frame["wall_seconds_low"] <= frame["wall_seconds"]).all()
    assert (frame["wall_seconds"] <= frame["wall_seconds_high"]).all()
    assert frame["operations"].notna().all(), "what the program reports is a column"
    trials = swept.trials()
    assert trials["used"].sum() == 4
    assert len(trials) == len(swept.records()) >= 4


def test_a_used_up_allowance_is_refused(swept: concurve.Run) -> None:
    """As by the command: a run that is resumed with it would measure nothing more."""
    with pytest.raises(
        concurve.ConcurveError, match="allowance of 1 ms is for the whole"
    ) as refused:
        swept.resume(max_time="1ms")
    assert refused.value.remedy.endswith("for 1 ms more, or no max_time")


def test_a_run_is_found_again_and_written(swept: concurve.Run, tmp_path: Path) -> None:
    assert concurve.load("last").id == swept.id
    assert [run.id for run in concurve.runs()] == [swept.id]
    exported = json.loads(swept.write(tmp_path / "run.json").read_text())
    assert len(exported["cells"]) == 2
    with pytest.raises(concurve.ConcurveError, match="no format for the ending"):
        swept.write(tmp_path / "run.docx")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"command": "./mine --threads 2"}, "command: a text instead of a list"),
        ({"background": "2@nice=5"}, "background: a text instead of a list"),
        ({"parameters": {"threads": 2}}, "threads: 2 instead of levels"),
        ({"effort": "fast"}, "no effort 'fast'"),
        ({"repeats": 0}, "repeats '0'"),
    ],
)
def test_what_is_given_wrongly_is_refused_by_name(arguments: dict[str, Any], says: str) -> None:
    given = {"command": ["true"], "parameters": {}, **arguments}
    with pytest.raises(concurve.ConcurveError, match=says):
        concurve.sweep(**given)


def test_a_study_from_a_file_runs(tmp_path: Path) -> None:
    study = tmp_path / "mine.toml"
    study.write_text(
        '[study]\nname = "mine"\nquestion = "?"\n[factors]\nn = [1, 2]\n'
        '[[roles]]\nname = "target"\ncommand = ["sh", "-c", "exit 0 # {n}"]\n'
    )
    run = concurve.run(study, repeats="2", effort="quick")
    assert list(run.frame()["n"]) == [1, 2]
    assert run.findings.run.study == "mine"


def test_the_package_itself_is_imported_at_once() -> None:
    script = "import sys, concurve; sys.exit('numpy' in sys.modules or 'sqlite3' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
    assert {"run", "sweep", "load", "runs"} <= set(concurve.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        concurve.nonsense  # noqa: B018


def planted_run(**given: Any) -> concurve.Run:
    """A run of a command that prints what it was given."""
    return concurve.sweep(
        ["sh", "-c", "echo $0 $API_TOKEN $MARKED", "{word}", "--password", "Pl4nt3d-option"],
        {"word": ["Pl4nt3d-level-1", "Pl4nt3d-level-2"]},
        env={"API_TOKEN": "Pl4nt3d-variable"},
        repeats="2",
        seed=1,
        **given,
    )


def test_secrets_are_hidden_as_from_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MARKED", "Pl4nt3d-marked")
    monkeypatch.setenv("OTHER_TOKEN", "Pl4nt3d-inherited")
    db = tmp_path / "secrets.db"
    run = planted_run(secrets=["MARKED", "word"], db=str(db))
    for ending in (".html", ".md", ".csv", ".json"):
        assert "Pl4nt3d" not in run.write(tmp_path / f"run{ending}").read_text()
    findings = str(msgspec.structs.asdict(run.findings)) + run._repr_html_() + str(run)
    assert "Pl4nt3d" not in str(run.records()) + str(run.frame()) + findings
    assert b"Pl4nt3d" not in db.read_bytes()
    printed = run.records()[0].roles[0].stdout.text()
    assert printed.split() == ["{secret:WORD}", "{secret:API_TOKEN}", "{secret:MARKED}"]
    again = run.resume(secrets=["MARKED"])
    assert len(again.records()) == len(run.records())


@pytest.mark.parametrize(
    ("secrets", "says"),
    [
        (["NO_SUCH_VARIABLE"], "secrets NO_SUCH_VARIABLE: neither a variable"),
        (["x=abc"], "fewer than 4 characters"),
        (["a b"], "no name of a variable"),
        ("MARKED", "a text instead of a list"),
    ],
)
def test_wrong_secrets_are_refused(secrets: Any, says: str, tmp_path: Path) -> None:
    with pytest.raises(concurve.ConcurveError, match=says):
        planted_run(secrets=secrets, db=str(tmp_path / "s.db"))


def test_no_error_holds_a_secret(tmp_path: Path) -> None:
    db = str(tmp_path / "s.db")
    for call in (
        lambda: concurve.sweep(["no-such", "--password", "Pl4nt3d-a"], {}, db=db),
        lambda: concurve.sweep(["true"], {}, server="s --token Pl4nt3d-b", db=db),
        lambda: concurve.sweep(["true"], {}, cpus="Pl4nt3d-c", secrets=["X=Pl4nt3d-c"], db=db),
        lambda: concurve.runs(db="postgresql://me:Pl4nt3d-d@127.0.0.1:1/x"),
        lambda: concurve.runs(db="postgresql://127.0.0.1:1/x?password=Pl4nt3d-e"),
    ):
        with pytest.raises(concurve.ConcurveError) as refused:
            call()
        assert "Pl4nt3d" not in str(refused.value) + refused.value.what + refused.value.remedy


def test_numbers_and_paths_are_arguments_too() -> None:
    run = concurve.sweep(
        [binary("concurve-targets"), "busy", "--threads", "{threads}", "--cpu-ms", 5],
        {"threads": [1]},
        repeats=2,
        precision=0.5,
        timeout=60,
        max_time=600,
        env={"N": 4},
        seed=1,
    )
    with pytest.raises(concurve.ConcurveError, match="is not a share"):
        concurve.compare(run, run, effect="2 percent")
    with pytest.raises(concurve.ConcurveError, match="is on both sides"):
        concurve.compare(run, run, effect="2%", indicators="wall_seconds")


def test_a_number_to_predict_at_needs_no_list() -> None:
    found = concurve.fit([1, 1, 2, 2, 4, 4], [1.0, 1.01, 1.9, 1.92, 3.5, 3.52], predict=8)
    assert [item.n for item in found.expectations] == [8]
