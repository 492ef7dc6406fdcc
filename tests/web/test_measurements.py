"""What a measurement of a browser's is: its command line, its lines, its run."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from concurve.host.own_python import PYTHON
from concurve.secrets import KNOWN
from concurve.web import measurements
from concurve.web.measurements import _BEGUN, Measurements


@pytest.mark.parametrize(
    ("line", "run"),
    [
        ("small: 3 cells, effort quick, seed 7, run 20261123-091200-abcd", "20261123-091200-abcd"),
        ("concurve: campaign c20261123-091200-abcd: java-threads, 2 studies, effort quick, seed 1",
         "c20261123-091200-abcd"),
        ("concurve: note: 3 cells need 9 s (as run 20261123-091200-abcd took)", None),
        ("[1/6]  n=1  trial 1, run 2", None),
    ],
)  # fmt: skip
def test_how_a_run_names_itself(line: str, run: str | None) -> None:
    found = _BEGUN.search(line)
    assert (found and found[1]) == run


def test_the_line_that_is_shown_is_the_one_that_does_the_same() -> None:
    words = ["sweep", "-P", "n", "1,2", "--", "sh", "-c", "echo {n}"]
    assert Measurements(None).shown(words) == "concurve sweep -P n 1,2 -- sh -c 'echo {n}'"
    assert Measurements("a b.db").shown(words) == (
        "concurve sweep --db 'a b.db' -P n 1,2 -- sh -c 'echo {n}'"
    )


def test_the_line_that_is_shown_holds_no_secret() -> None:
    words = ["sweep", "--", "redis-cli", "-u", "redis://:hunter2hunter2@db1", "--token=Tr0ub4dor&3"]
    shown = Measurements("postgresql://u:Sesam123Open@db/x").shown(words)
    for secret in ("hunter2hunter2", "Tr0ub4dor&3", "Sesam123Open"):
        assert secret not in shown


def test_what_a_form_marks_as_secret_is_hidden_as_on_the_command_line() -> None:
    words = [
        *("sweep", "--env", "PGPASSWORD=hunter22x1", "--secret", "TOK=hunter22x2"),
        *("--secret", "pw", "-P", "pw", "hunter22x3", "--", "client", "{pw}"),
    ]
    shown = Measurements(None).shown(words)
    assert "hunter22x" not in shown and "PGPASSWORD" in shown


def test_what_is_started_gets_the_store_by_its_environment() -> None:
    hidden = KNOWN.hide_store("postgresql://u:Sesam123Open@db/x")
    given = Measurements(hidden)._environment()
    assert given["CONCURVE_DB"] == "postgresql://u:Sesam123Open@db/x"


#: Says what others see of its command line, and what it was given besides.
SHOWS = (
    "import sys; print(open('/proc/self/cmdline').read()); print('given', sys.stdin.read()); "
    "print(len(sys.stdin.read()))"
)


def test_what_is_started_shows_no_word_of_a_form_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(measurements, "_COMMAND", (*PYTHON, "-c", SHOWS))
    words = ["sweep", "--env=LIMIT=Sesam-Open-1", "--", "./mine", "x" * 60_000]
    done = asyncio.run(Measurements(None).plan(words))
    seen, given = done.output.split("given ")
    assert "Sesam" not in seen and "mine" not in seen
    assert "Sesam-Open-1" in given and "--dry-run" in given


@pytest.mark.real
def test_the_command_line_gets_its_words(tmp_path: Path) -> None:
    db = str(tmp_path / "x.db")
    line = ["sweep", "-P", "n", "1,2", "--", "sh", "-c", "echo {n} ä"]
    done = asyncio.run(Measurements(db).plan(line))
    assert done.code == 0, done.said
    assert "2 cells" in done.output


@pytest.mark.real
def test_what_is_started_calls_itself_concurve(tmp_path: Path) -> None:
    done = asyncio.run(Measurements(str(tmp_path / "x.db")).plan(["sweep", "--no-such-option"]))
    assert done.code == 2 and "concurve sweep" in done.said
