"""What is printed as data stays data: secrets that are the same as numbers, names that are no
text."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from concurve.definition.study import Rules
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.store import Store
from tests.helpers.fakes import FakeClock, FakeEngine, small_study
from tests.helpers.real import PATIENCE


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A store by a URL whose password is a number of its run: its seed and its levels."""
    file = tmp_path_factory.mktemp("lab") / "a&password=1000&b.db"
    store = Store(str(file))
    rules = Rules(repeats_min=5, repeats_max=5)
    head = new_head(small_study(rules, n=(1000, 2000), word=("1000",)), "normal", 1000, "…")
    Runner(head, store, FakeEngine(lambda *_: 1.0), clock=FakeClock(0.001)).start()
    store.close()
    return f"sqlite:///{file}"


def printed(*words: str, **environment: str) -> bytes:
    """What a verb prints, in a process of its own: it would keep the secrets that it knows."""
    done = subprocess.run(
        [sys.executable, "-m", "concurve", *words], env={**os.environ, **environment},
        capture_output=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_json_stays_json_where_a_secret_is_a_number(place: str) -> None:
    for words in (("show", "last", "--json"), ("export", "last")):
        found = json.loads(printed(*words, "--db", place))
        assert found["run"]["seed"] == 1000
        assert found["run"]["factors"][1]["levels"] == ["{secret:STORE_PASSWORD}"], "a text"
    found = json.loads(printed("show", "last", "--json", CONCURVE_DB=place))
    assert found["run"]["seed"] == 1000
    text = printed("compare", "last", "--factor", "n", "--json", "--db", place, "--secret",
                   "T=wall_seconds")  # fmt: skip
    assert json.loads(text) and b"wall_seconds" not in text
    assert isinstance(json.loads(printed("history", "small", "--json", "--db", place)), dict)


@pytest.mark.parametrize("kind", ["csv", "trials"])
def test_csv_keeps_its_numbers_where_a_secret_is_one(place: str, kind: str) -> None:
    text = printed("export", "last", "--format", kind, "--db", place).decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert {row["n"] for row in rows} == {"1000", "2000"}
    assert {row["word"] for row in rows} == {"{secret:STORE_PASSWORD}"}


def test_a_load_prints_json_where_a_secret_is_a_number() -> None:
    code = """if True:
        import sys
        from concurve.cli.load_hidden import load_hidden
        from concurve.cli.streams import hide_in_output, take_over_streams
        from concurve.secrets import KNOWN
        KNOWN.add("PIN", "5000")
        take_over_streams()
        hide_in_output(KNOWN.hide, KNOWN.hide_printed_json)
        sys.exit(load_hidden("echo", [sys.argv[1]], is_json=True))
    """
    told = {}
    for given in ('{\n "n": 5000,\n "said": "pin 5000"\n}', "no JSON: 5000"):
        done = subprocess.run([sys.executable, "-c", code, given], capture_output=True, text=True,
                              timeout=PATIENCE, check=True)  # fmt: skip
        told[given[0]] = done.stdout
    assert json.loads(told["{"]) == {"n": 5000, "said": "pin {secret:PIN}"}
    assert told["n"] == "no JSON: {secret:PIN}\n"


def test_a_file_whose_name_is_no_text_is_written_and_named(place: str, tmp_path: Path) -> None:
    name = os.fsencode(tmp_path / "caf") + b"\xe9.csv"
    # Where Python does not let such names through by itself, as in most locales.
    said = printed(
        "report", "last", "--db", place, "--export-csv", os.fsdecode(name),
        PYTHONIOENCODING="utf-8:strict",
    )  # fmt: skip
    assert said == name + b"\n" and Path(os.fsdecode(name)).stat().st_size > 100
