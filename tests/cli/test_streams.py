"""Standard output and error that are full, closed or without a reader, and signals that end a run:
the store is whole, the exit code says what happened, and nobody sees a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from concurve.store import Store
from tests.helpers.real import CONCURVE, PATIENCE, Lab, missing, wait_until

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

SWEEP = ("sweep", "-P", "n", "1,2", "--repeats", "2..2", "--seed", "1")

#: Each verb that prints, on a store with a run.
VERBS = {
    "help": ["--help"],
    "studies": ["studies"],
    "runs": ["runs"],
    "show": ["show", "last"],
    "show --json": ["show", "last", "--json"],
    "show --models": ["show", "last", "--models"],
    "explain": ["explain", "last"],
    "explain --json": ["explain", "last", "--json"],
    "history": ["history", "sweep-true"],
    "fit": ["fit", "m.csv", "--x", "n", "--y", "x"],
    "dry run": [*SWEEP, "--dry-run", "--", "true", "{n}"],
    "machine": ["machine", "check"],
    "refused": ["show", "no-such-run"],
}


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    laboratory = Lab(tmp_path_factory.mktemp("lab"))
    text = "n,x\n1,10\n2,19\n4,35\n8,60\n16,80\n"
    (laboratory.folder / "m.csv").write_text(text, encoding="utf-8")
    done = laboratory.run(*SWEEP, "--", "true", "{n}")
    assert done.returncode == 0, done.stderr
    yield laboratory
    laboratory.end()


def by_shell(lab: Lab, redirections: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``concurve`` with its streams as the shell sets them; 128 + n for a signal."""
    return subprocess.run(
        ["/bin/sh", "-c", f'"$@" {redirections}', "sh", CONCURVE, *arguments],
        env=lab.environment(),
        cwd=lab.folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


@pytest.mark.parametrize("verb", VERBS)
def test_a_reader_that_has_gone_is_no_error(lab: Lab, verb: str) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [CONCURVE, *VERBS[verb]],
            env=lab.environment(),
            cwd=lab.folder,
            stdin=subprocess.DEVNULL,
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    finally:
        os.close(write)
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    if verb == "refused":
        assert done.returncode == 4
    else:
        assert done.returncode == 141, "128 + SIGPIPE, as a shell has it"
        assert done.stderr == ""


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "help"])
def test_a_full_output_is_said_once(lab: Lab, verb: str) -> None:
    done = by_shell(lab, ">/dev/full", *VERBS[verb])
    assert "Traceback" not in done.stderr
    if verb != "refused":
        assert done.returncode == 1
        assert done.stderr.count("standard output cannot be written: No space left") == 1


@pytest.mark.parametrize("redirections", ["2>/dev/full", "2>&-", ">&- 2>&-", ">/dev/null 2>&-"])
def test_a_run_goes_on_without_standard_error(tmp_path: Path, redirections: str) -> None:
    lab = Lab(tmp_path)
    done = by_shell(lab, redirections, *SWEEP, "--", "true", "{n}")
    assert done.returncode == 0
    store = Store.existing(str(lab.db))
    assert store.find_run("last").state == "complete"
    assert store.count(store.find_run("last").id) >= 4


def test_a_failure_keeps_its_exit_code_without_standard_error(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    for redirections in ("2>/dev/full", "2>&-"):
        assert by_shell(lab, redirections, "sweep", "--", "no-such-program").returncode == 2


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_ended_is_interrupted(tmp_path: Path, number: signal.Signals) -> None:
    lab = Lab(tmp_path)
    process = lab.start(*SWEEP, "--", "sleep", "600.{n}")
    try:
        wait_until(
            lambda: any(line.startswith("sleep 600.") for line in lab.alive().values()), "a trial"
        )
        process.send_signal(number)
        _, said = process.communicate(timeout=PATIENCE)
    finally:
        lab.end()
    assert "Traceback" not in said
    assert process.returncode == (-9 if number == signal.SIGKILL else 130)
    (row,) = Store.existing(str(lab.db)).runs()
    assert row.state == "interrupted"
    listed, shown = lab.run("runs"), lab.run("show")
    assert len(listed.stdout.splitlines()) == 1
    for text in (listed.stdout, " ".join(shown.stdout.split())):
        assert "interrupted" in text
        assert f"concurve resume {row.id}" in text


def test_a_used_up_allowance_is_refused_with_what_would_do(lab: Lab) -> None:
    done = lab.run("resume", "last", "--max-time", "1ms")
    assert done.returncode == 2
    assert "--max-time 1 ms is for the whole run" in done.stderr
    assert "for 1 ms more, or no --max-time" in done.stderr


def test_no_control_character_of_a_parameter_reaches_a_terminal(lab: Lab, tmp_path: Path) -> None:
    evil = "a\x1b[31mb"
    sweep = ["sweep", "-P", "n", evil, "--repeats", "2..2", "--db", str(tmp_path / "e.db")]
    outputs = [
        lab.run(*sweep, "--dry-run", "--", "true", "{n}"),
        lab.run(*sweep, "--export-csv", "t.csv", "--", "true", "{n}"),
        lab.run(*sweep, "--", "no-such-program", "{n}"),
        lab.run(*sweep, "--", "false", "{n}"),
        lab.run(evil),
        lab.run("show", evil),
        lab.run("run", evil),
        lab.run("fit", "m.csv", "--x", "n", "--y", "x", "--cpus", evil),
        *(lab.run(verb, "--db", str(tmp_path / "e.db")) for verb in ("runs", "show", "explain")),
    ]
    for output in outputs:
        assert "\x1b" not in output.stdout + output.stderr
    assert "\x1b" not in (lab.folder / "t.csv").read_text(encoding="utf-8")


def test_a_long_reason_takes_one_line_and_show_has_the_rest(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    program = "import sys; sys.exit('first line\\n' + 'x' * 500 + ' the end')"
    assert lab.run(*SWEEP, "--", "python3", "-c", program, "{n}").returncode == 5
    (line,) = lab.run("runs").stdout.splitlines()
    assert len(line) < 200
    assert line.endswith("…")


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "0", "-1", "", "abc"])
def test_fit_refuses_what_is_no_number_of_cpus(lab: Lab, value: str) -> None:
    done = lab.run("fit", "m.csv", "--x", "n", "--y", "x", "--cpus", value)
    assert done.returncode == 2
    assert f"{value!r} is not a finite number of at least 1" in done.stderr


@pytest.mark.parametrize("place", ["/dev/full", "/nope/x.svg", ".", "", "m.csv/x.svg", "a" * 300])
def test_fit_refuses_a_bad_place_for_its_chart(lab: Lab, place: str) -> None:
    done = lab.run("fit", "m.csv", "--x", "n", "--y", "x", "--export-svg", place)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert "try:" in done.stderr


@pytest.mark.parametrize("verb", [["runs"], ["show"], ["sweep", "--", "true"]])
def test_an_empty_db_is_not_the_default_store(lab: Lab, verb: list[str]) -> None:
    done = lab.run(verb[0], "--db", "", *verb[1:])
    assert done.returncode == 4
    assert "the name of the store is empty" in done.stderr
