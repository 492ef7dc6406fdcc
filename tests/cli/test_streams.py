"""Standard output and error that are full, closed or without a reader, and signals that end a run:
the store is whole, the exit code says what happened, and nobody sees a traceback."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from concurve.store import Store
from tests.helpers.needs import small_file_system
from tests.helpers.real import CONCURVE, PATIENCE, Lab, missing, wait_until

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
]

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
    "export": ["export", "last"],
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


@contextlib.contextmanager
def nobody_reads() -> Iterator[int]:
    """The end of a pipe whose other end is closed."""
    read, write = os.pipe()
    os.close(read)
    yield write
    os.close(write)


@pytest.mark.parametrize("verb", VERBS)
def test_a_reader_that_has_gone_is_no_error(lab: Lab, verb: str) -> None:
    with nobody_reads() as output:
        done = lab.fork(*VERBS[verb], stdout=output).completed()
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr
    if verb == "refused":
        assert done.returncode == 4
    else:
        assert done.returncode == 141, "128 + SIGPIPE, as a shell has it"
        assert done.stderr == ""


def test_nor_is_it_where_python_starts_anew(lab: Lab) -> None:
    with nobody_reads() as output:
        done = subprocess.run(
            [CONCURVE, "show", "last"], env=lab.environment(), stdin=subprocess.DEVNULL,
            stdout=output, stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("verb", VERBS)
def test_a_full_output_is_said_once(lab: Lab, verb: str) -> None:
    with Path("/dev/full").open("wb") as full:
        done = lab.fork(*VERBS[verb], stdout=full.fileno()).completed()
    assert "Traceback" not in done.stderr
    if verb != "refused":
        assert done.returncode == 1
        said = "concurve: standard output cannot be written: No space left on device\n"
        assert done.stderr.endswith(f"{said}  try: more space\n")
        assert done.stderr.count(said) == 1


@pytest.mark.parametrize("closed", [(1,), (2,), (0, 1, 2)])
def test_closed_streams_end_no_verb(lab: Lab, closed: tuple[int, ...]) -> None:
    shown = [VERBS[verb] for verb in ("show", "explain", "export", "runs", "studies")]
    for words in (*shown, ["--version"]):
        done = lab.fork(*words, closed=closed).completed()
        assert done.returncode == 0, words
        assert "Traceback" not in done.stderr
    # Python itself, too, is started without them.
    done = by_shell(lab, " ".join(f"{number}>&-" for number in closed), "show", "last")
    assert done.returncode == 0 and "Traceback" not in done.stderr


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
            lambda: any(line.startswith("sleep 600.") for line in lab.alive().values()),
            "a trial",
            of=process,
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


def test_who_stops_the_first_trial_is_told_what_it_printed_last(tmp_path: Path) -> None:
    lab = Lab(tmp_path)
    began = tmp_path / "began"
    text = f"echo ready; echo waiting for 10.0.0.{{n}} >&2; touch {began}; exec sleep 600"
    process = lab.start(*SWEEP, "--", "sh", "-c", text)
    try:
        wait_until(began.exists, "a trial", of=process)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE)
    finally:
        lab.end()
    assert process.returncode == 130
    assert "the program last printed 'waiting for 10.0.0." in " ".join(said.split())


# -- signals at any moment -----------------------------------------------------------------------

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGKILL)

A_STUDY = """
[study]
name = "mine"
question = "How?"
[factors]
n = [1, 2]
[[roles]]
name = "target"
command = ["sleep", "0.0{n}"]
"""

BANK = ("--workload", "tpcb-strict", "--scale", "1", "--accounts", "100", "--init")

#: Each verb that measures, loads or writes, on a store with a run.
WORK = {
    "run": ["run", "mine.toml", "--repeats", "2..2", "--seed", "1", "--export-json", "out.json"],
    "sweep": [*SWEEP, "--export-html", "out.html", "--", "sleep", "0.0{n}"],
    "export": ["export", "last", "-o", "out.json"],
    "report": ["report", "last", "-o", "out.html"],
    "load": ["load", "records:bank", *BANK, "--duration", "100ms", "--ledger", "out.json"],
    "hidden load": [
        "load",
        "--secret",
        "WORD=hidden",
        "records:bank",
        *BANK,
        "--duration",
        "100ms",
    ],
}


def test_a_signal_at_any_moment_leaves_nothing_behind(tmp_path: Path) -> None:
    lab = lab_with_a_run(tmp_path)
    for place, verb in enumerate(WORK):
        signal_at_moments(lab, verb, [ENDING[place % len(ENDING)]])


@pytest.mark.parametrize("number", [n for n in ENDING if n != signal.SIGKILL])
def test_a_load_with_secrets_ends_with_the_signal_that_it_was_sent(number: signal.Signals) -> None:
    # One that the caller ignores, as nohup does, would stay ignored.
    code = f"""if True:
        import signal, sys
        from concurve.cli.load_hidden import load_hidden
        signal.signal({number:d}, signal.SIG_DFL)
        sys.exit(load_hidden("sh", ["-c", "echo begun; exec sleep 600"]))
    """
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as load:
        assert load.stdout is not None and load.stdout.readline() == "begun\n"
        load.send_signal(number)
        assert load.wait(PATIENCE) == 128 + number


def test_a_load_with_secrets_ends_with_its_reader(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    code = f"""if True:
        import sys
        from concurve.cli import load_hidden
        from concurve.cli.streams import OutputError, take_over_streams
        take_over_streams()
        load_hidden.REST_S = 0.2
        told = "echo $$ >{pid}; while echo told; do sleep 0.05; done"
        try:
            load_hidden.load_hidden("sh", ["-c", told])
        except OutputError:
            sys.exit(141)
    """
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as load:
        assert load.stdout is not None and load.stdout.readline() == "told\n"
        load.stdout.close()
        try:
            assert load.wait(PATIENCE) == 141
            assert not Path(f"/proc/{int(pid.read_text())}").exists()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid.read_text()), signal.SIGKILL)


@pytest.mark.parametrize(("ends_with", "code"), [(0, 141), (1, 1)])
def test_a_load_with_secrets_verifies_its_data_without_a_reader(
    tmp_path: Path, ends_with: int, code: int
) -> None:
    verified = tmp_path / "verified"
    load = (
        f"sleep 0.2; echo figures; sleep 0.5; echo >{verified}; echo broken >&2; exit {ends_with}"
    )
    program = f"""if True:
        import sys
        from concurve.cli.load_hidden import load_hidden
        from concurve.cli.streams import OutputError, exit_code_of, take_over_streams
        take_over_streams()
        try:
            sys.exit(load_hidden("sh", ["-c", {load!r}]))
        except OutputError as error:
            sys.exit(exit_code_of(error))
    """
    with nobody_reads() as output:
        done = subprocess.run(
            [sys.executable, "-c", program], stdout=output, stderr=subprocess.PIPE, text=True,
            timeout=PATIENCE, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (code, "broken\n")
    assert verified.exists()


def test_a_load_beside_an_attached_server_notices_that_nobody_reads() -> None:
    code = """if True:
        import sys
        from concurve.cli import load, main
        load._attached = lambda *_: print("figures") or 7
        sys.argv = ["concurve", "load", "redis://127.0.0.1:1", "--attach", "1"]
        main()
    """

    # What is written at once fails at once.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}

    def ended(stdout: int) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, stdout=stdout, stderr=subprocess.PIPE,
            text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        return done.returncode, done.stderr

    assert ended(subprocess.DEVNULL) == (7, "")
    with nobody_reads() as output:
        assert ended(output) == (141, "")
    with Path("/dev/full").open("wb") as full:
        code_of_full, said = ended(full.fileno())
    assert code_of_full == 1
    assert said.startswith("concurve: standard output cannot be written: No space left on device")


def test_a_signal_while_a_load_with_secrets_is_started_is_not_lost() -> None:
    # Python calls these while it forks, and ignores what a handler raises there.
    code = """if True:
        import os, signal, sys
        from concurve.cli.load_hidden import load_hidden
        os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), signal.SIGINT))
        sys.exit(load_hidden("sleep", ["600"]))
    """
    ended = subprocess.run(
        [sys.executable, "-c", code],
        stderr=subprocess.PIPE,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (128 + signal.SIGINT, "")


@pytest.mark.soak
@pytest.mark.parametrize("verb", WORK)
def test_thirty_signals_leave_nothing_behind(tmp_path: Path, verb: str) -> None:
    signal_at_moments(lab_with_a_run(tmp_path), verb, ENDING * 6)


def lab_with_a_run(folder: Path) -> Lab:
    (folder / "mine.toml").write_text(A_STUDY, encoding="utf-8")
    lab = Lab(folder)
    assert lab.run(*SWEEP, "--", "true", "{n}").returncode == 0
    return lab


def signal_at_moments(lab: Lab, verb: str, numbers: Sequence[signal.Signals]) -> None:
    folder, draw = lab.folder, random.Random(f"moments of {verb}")
    begin = time.monotonic()
    undisturbed = lab.run(*WORK[verb])
    assert undisturbed.returncode == 0, undisturbed.stderr
    seconds = time.monotonic() - begin
    for number in numbers:
        for path in folder.glob("out.*"):
            path.unlink()
        ended = lab.run_signalled(draw.uniform(0.0, seconds), number, *WORK[verb])
        assert ended.returncode in (0, 130, 128 + number, -number), ended.stderr
        assert "Traceback" not in ended.stderr
        assert lab.wait_until_alone() == {}, number
        check_whole(lab)
        # One who is killed between two steps cannot remove the file that it has just named.
        if number != signal.SIGKILL:
            assert list(folder.glob(".concurve-*")) == [], number


def check_whole(lab: Lab) -> None:
    """The store opens, nobody is said to measure, and what was written is complete."""
    store = Store.existing(str(lab.db))
    assert {row.state for row in store.runs()} <= {"complete", "interrupted"}
    store.close()
    with contextlib.closing(sqlite3.connect(lab.db)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    with (lab.folder / "lock").open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    if (lab.folder / "out.json").exists():
        json.loads((lab.folder / "out.json").read_bytes())
    if (lab.folder / "out.html").exists():
        assert (lab.folder / "out.html").read_text(encoding="utf-8").rstrip().endswith("</html>")
    mounts = Path("/proc/self/mounts").read_text(encoding="utf-8")
    assert str(lab.folder) not in mounts


@pytest.mark.parametrize("ending", ["json", "csv", "md", "html"])
def test_a_full_disk_under_an_export_leaves_no_part_of_it(
    lab: Lab, tmp_path: Path, ending: str
) -> None:
    verb = ["report" if ending in ("md", "html") else "export", "last"]
    if ending == "csv":
        verb += ["--format", "csv"]
    with small_file_system(tmp_path / "small", 64 << 10) as small:
        (small / "ballast").write_bytes(bytes(60 << 10))
        file = small / f"out.{ending}"
        file.write_text("older", encoding="utf-8")
        with contextlib.suppress(OSError), (small / "more").open("ab", buffering=0) as more:
            while True:
                more.write(bytes(512))
        done = lab.run(*verb, "-o", str(file))
        assert done.returncode == 1, done.stderr
        assert "No space left" in done.stderr and "Traceback" not in done.stderr
        assert file.read_text(encoding="utf-8") == "older"
        assert {path.name for path in small.iterdir()} == {"ballast", "more", file.name}


def test_a_used_up_allowance_is_refused_with_what_would_do(lab: Lab) -> None:
    done = lab.run("resume", "last", "--max-time", "1ms")
    assert done.returncode == 2
    assert "an allowance of 1 ms is for the whole run" in done.stderr
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
    assert outputs[1].returncode == 0, outputs[1].stderr
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
