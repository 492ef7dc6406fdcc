"""Secrets are planted in every way in which a user gives them; no output holds one."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from concurve.definition.hiding import check_marked
from concurve.errors import StudyError
from concurve.secrets import Secrets
from concurve.secrets.command_line import hide_words
from concurve.store import Store
from tests.helpers.real import CONCURVE, PATIENCE, Lab, missing, wait_until

pytestmark = pytest.mark.real

#: Part of each secret.
MARK = "Pl4nt3d"

OPTION, URL, QUERY, VARIABLE, SHELL, HOOK, LITERAL, MARKED, LEVEL, INHERITED = (
    f"{MARK}-{kind}"
    for kind in ("option", "url", "query", "variable", "shell", "hook", "literal", "marked",
                 "level", "inherited")
)  # fmt: skip

#: It says all that it was given, to its output and to a file.
SCRIPT = f"""
for it in "$@" "$API_TOKEN" "$MARKED" "$SERVICE_PASSWORD"; do echo "$it"; done | tee got
echo "MYSQL_PWD={SHELL}" >&2
echo "{{\\"fact\\": \\"said\\", \\"value\\": \\"$API_TOKEN\\"}}" >&$CONCURVE_REPORT
"""

SWEEP = (
    "sweep", "-P", "n", "1,2", "-P", "word", f"{LEVEL}-1,{LEVEL}-2", "--repeats", "2..2",
    "--seed", "1", "--name", "planted", "--env", f"API_TOKEN={VARIABLE}",
    "--prepare", f"PGPASSWORD={HOOK} true", "--secret", "word", "--secret", "MARKED",
    "--secret", f"WORD_OF_MINE={LITERAL}",
)  # fmt: skip

COMMAND = (
    "--", "sh", "-c", SCRIPT, "sh", "--password", OPTION, f"redis://:{URL}@127.0.0.1:1",
    f"postgresql://me@db1/bank?password={QUERY}", LITERAL, "{word}", "{n}",
)  # fmt: skip

ENVIRONMENT = {"MARKED": MARKED, "SERVICE_PASSWORD": INHERITED}

EXPORTS = {"json": "run.json", "csv": "run.csv", "markdown": "run.md", "html": "run.html"}


#: Runs each command line of a file in a child of its own, which imports nothing of its own.
DRIVER = """
import json, os, sys
import psycopg, concurve.api, concurve.cli.sweep, concurve.report.terminal, concurve.report.html
from concurve.cli import main

for command in json.load(open(sys.argv[1])):
    if os.fork():
        _, status = os.wait()
        with open(command["file"], "a") as file:
            print("exit code", os.waitstatus_to_exitcode(status), file=file)
        continue
    output = os.open(command["file"], os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ.update(command["environment"])
    sys.argv = ["concurve", *command["words"]]
    main()
    sys.exit(0)
"""


class Planted:
    """A laboratory with a run of the command; what it has printed."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.outputs: dict[str, str] = {}
        self._commands: list[dict[str, object]] = []

    def run(self, name: str, *words: str, **environment: str) -> None:
        """Have a verb run by the next :meth:`end`."""
        file = str(self.lab.folder / f"{name}.out")
        self._commands.append({"words": words, "environment": environment, "file": file})

    def end(self) -> None:
        """Run what is to be run; ``outputs`` have what it prints."""
        commands = self.lab.folder / "commands.json"
        commands.write_text(json.dumps(self._commands), encoding="utf-8")
        environment = self.lab.environment(**ENVIRONMENT)
        subprocess.run([sys.executable, "-c", DRIVER, str(commands)], env=environment,
                       cwd=self.lab.folder, check=True, timeout=PATIENCE)  # fmt: skip
        commands.unlink()
        for command in self._commands:
            file = Path(str(command["file"]))
            self.outputs[file.stem] = file.read_text(encoding="utf-8")
            file.unlink()
        self._commands = []


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Planted]:
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    found = Planted(Lab(tmp_path_factory.mktemp("planted")))
    exports = [part for kind, file in EXPORTS.items() for part in (f"--export-{kind}", file)]
    found.outputs["progress on a terminal"] = on_terminal(found.lab, *SWEEP, *exports, *COMMAND)
    yield found
    found.lab.end()


def on_terminal(lab: Lab, *arguments: str) -> str:
    """What a verb shows on a terminal."""
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [CONCURVE, *arguments], env=lab.environment(TERM="xterm", **ENVIRONMENT), cwd=lab.folder,
        stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    said = b""
    try:
        while part := os.read(ours, 65536):
            said += part
    except OSError:
        pass  # the other end is closed
    os.close(ours)
    assert process.wait(timeout=PATIENCE) == 0, said.decode()
    return said.decode()


def test_the_measured_command_gets_them_as_they_are(planted: Planted) -> None:
    got = (planted.lab.folder / "got").read_text().splitlines()
    assert got[:5] == [
        "--password", OPTION, f"redis://:{URL}@127.0.0.1:1",
        f"postgresql://me@db1/bank?password={QUERY}", LITERAL,
    ]  # fmt: skip
    assert got[5] in (f"{LEVEL}-1", f"{LEVEL}-2")
    assert got[7:] == [VARIABLE, MARKED, INHERITED]


def test_no_output_holds_a_secret(planted: Planted) -> None:
    run = planted.run
    folder = planted.lab.folder
    run("dry run", *SWEEP, "--dry-run", *COMMAND)
    run("runs", "runs")
    run("show --all", "show", "last", "--all")
    run("show --json", "show", "last", "--json")
    run("export trials", "export", "last", "--format", "trials")
    run("report", "report", "last", "-o", "again.md")
    run("compare", "compare", "last", "--factor", "word")
    run("history", "history", "planted")
    run("explain", "explain", "last", "--json")
    run("a run that fails", "sweep", "--repeats", "2..2", "--", "sh", "-c",
        f"echo password={SHELL} >&2; exit 3")  # fmt: skip
    run("a hook that fails", "sweep", "--prepare", f"echo --token {HOOK} >&2; exit 3", "--", "true")
    run("a program that is not there", "sweep", "--", "no-such", "--password", OPTION)
    run("wrong options", "sweep", f"--passwrd={OPTION}", f"--password={OPTION}", "--", "true")
    run("a server without readiness", "sweep", "--server", f"s --password {OPTION}", "--", "true")
    run("a wrong store", "runs", "--db", f"postgresql://me:{URL}@127.0.0.1:1/x")
    run("a wrong store by a setting", "show", "--db",
        f"postgresql://127.0.0.1:1/x?password={QUERY}")  # fmt: skip
    run("a store of another kind", "runs", "--db", f"mysql://me:{URL}@127.0.0.1/x")
    run("a store of the environment", "runs", CONCURVE_DB=f"postgresql://me:{URL}@127.0.0.1:1/x")
    for scheme in ("redis", "postgresql", "mysql", "oracle"):
        run(f"load {scheme}", "load", f"{scheme}://me:{URL}@127.0.0.1:1/bank")
    run("load with a setting", "load", f"redis://127.0.0.1:1?password={QUERY}")
    run("load with a text", "load", "redis://127.0.0.1:1", "--secret", f"T={LITERAL}",
        "--command", f"AUTH {LITERAL}", "--sessions", "1")  # fmt: skip
    run("load with a password for its name", "load", "redis://h", "--password-from", OPTION)
    run("monitor", "monitor", f"redis://:{URL}@127.0.0.1:1")
    run("monitor with a password for its name", "monitor", ":1", "--password-from", OPTION)
    planted.end()
    outputs = {name: text.encode() for name, text in planted.outputs.items()}
    for path in folder.rglob("*"):
        if path.is_file() and path.name != "got":
            outputs[path.name] = path.read_bytes()
    with sqlite3.connect(planted.lab.db) as connection:
        rows = connection.execute("SELECT record FROM concurve_records").fetchall()
        connection.execute("VACUUM INTO ?", (str(folder / "backup.db"),))
    outputs["records"] = b"".join(zlib.decompress(row[0]) for row in rows)
    outputs["backup"] = (folder / "backup.db").read_bytes()
    assert len(rows) >= 8 and len(outputs) > 35
    assert [name for name, text in outputs.items() if MARK.encode() in text] == []
    assert "Traceback" not in "".join(planted.outputs.values())
    for name in ("progress on a terminal", "dry run", "runs", "show --all", "show --json", "report",
                 "compare", "history", "explain", "export trials"):  # fmt: skip
        said = planted.outputs[name]
        assert said.endswith("exit code 0\n") or "terminal" in name, said
    assert b"{secret:PASSWORD}" in outputs["run.json"], "and it says where one was"


def test_the_command_that_runs_it_again_does_so_with_the_environment(planted: Planted) -> None:
    run = json.loads((planted.lab.folder / "run.json").read_bytes())["run"]
    assert "--secret MARKED" in run["again"]
    assert "{secret:REDIS_PASSWORD}" in run["again"]
    assert [factor["levels"] for factor in run["factors"]][1] == ["{secret:WORD}",
                                                                  "{secret:WORD_2}"]  # fmt: skip


def test_a_run_is_resumed_with_the_secrets_of_the_environment(planted: Planted) -> None:
    lab = planted.lab
    store = Store(str(lab.db))
    run = next(row.id for row in store.runs() if row.study == "planted")
    # Of a run with all its trials nothing is left to do, so no secret is needed.
    with sqlite3.connect(lab.db) as connection:
        last = "SELECT max(id) FROM concurve_trials WHERE run = ?"
        connection.execute(f"DELETE FROM concurve_records WHERE trial = ({last})", (run,))
        connection.execute(f"DELETE FROM concurve_trials WHERE id = ({last})", (run,))
    planted.run("resume without them", "resume", run)
    planted.end()
    said = " ".join(planted.outputs["resume without them"].split())
    assert said.endswith("exit code 2")
    assert "needs secrets that no store keeps" in said
    assert "export REDIS_PASSWORD=…" in said
    names = {
        "PASSWORD": OPTION, "REDIS_PASSWORD": URL, "PASSWORD_2": QUERY, "API_TOKEN": VARIABLE,
        "MYSQL_PWD": SHELL, "PGPASSWORD": HOOK, "WORD_OF_MINE": LITERAL, "WORD": f"{LEVEL}-1",
        "WORD_2": f"{LEVEL}-2",
    }  # fmt: skip
    planted.run("resume with them", "resume", run, **names)
    planted.end()
    said = planted.outputs["resume with them"]
    assert said.endswith("exit code 0\n"), said
    assert MARK not in said


def test_files_are_for_their_owner(planted: Planted) -> None:
    folder = planted.lab.folder
    for name in ("concurve.db", *EXPORTS.values()):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600, name
    told = {"own.md": {}, "shared.md": {"CONCURVE_FILE_MODE": "640"}}
    for name, environment in told.items():
        (folder / name).touch()
        (folder / name).chmod(0o644)
        planted.run(name, "report", "planted", "-o", name, **environment)
    planted.run("refused", "report", "planted", "-o", "own.md", CONCURVE_FILE_MODE="rw")
    planted.end()
    for name, mode in (("own.md", 0o600), ("shared.md", 0o640)):
        assert stat.S_IMODE((folder / name).stat().st_mode) == mode
        assert (folder / name).stat().st_size > 500
    assert "CONCURVE_FILE_MODE=rw: no permissions" in planted.outputs["refused"]


def test_other_users_do_not_see_them_in_the_command_line(tmp_path: Path) -> None:
    if missing() is not None:
        pytest.skip(str(missing()))
    lab = Lab(tmp_path)
    process = lab.start("sweep", "--env", f"API_TOKEN={VARIABLE}", "--", "sleep", "600.5")
    try:
        lab.wait_for_process("sleep 600.5")
        words = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        assert MARK.encode() not in words and b"sweep" in words
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)
        lab.end()
    wait_until(lambda: process.poll() is not None, "the end of the sweep")


@pytest.mark.parametrize(
    ("marked", "said"),
    [
        ("NOT_SET_ANYWHERE", "neither a variable of the environment that is set, nor a parameter"),
        ("SHORT", "fewer than 4 characters"),
        ("X=abc", "fewer than 4 characters"),
        ("=abcdef", "no name"),
    ],
)
def test_a_secret_that_cannot_be_hidden_is_refused(
    marked: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHORT", "abc")
    with pytest.raises(StudyError, match=said):
        check_marked([marked], ["word"])


@pytest.mark.parametrize(
    ("words", "hidden"),
    [
        (["runs", "--db", "postgresql://me:geheim@h/b"],
         ["runs", "--db", "postgresql://me:{secret:STORE_PASSWORD}@h/b"]),
        (["runs", "--db=postgresql://h/b?password=geheim"],
         ["runs", "--db=postgresql://h/b?password={secret:STORE_PASSWORD}"]),
        (["sweep", "--env", "MY_TOKEN=two words", "--", "x"],
         ["sweep", "--env", "MY_TOKEN={secret:MY_TOKEN}", "--", "x"]),
        (["sweep", "--env=MY_TOKEN={n}", "--", "x"], ["sweep", "--env=MY_TOKEN={n}", "--", "x"]),
        (["sweep", "--secret", "VAR", "--", "x", "value-of-var"],
         ["sweep", "--secret", "VAR", "--", "x", "{secret:VAR}"]),
        (["sweep", "--secret=W=some-text", "--", "x", "some-text"],
         ["sweep", "--secret=W={secret:W}", "--", "x", "{secret:W}"]),
        (["run", "s", "--secret", "w", "--set", "w=first,second"],
         ["run", "s", "--secret", "w", "--set", "w={secret:W},{secret:W_2}"]),
        (["sweep", "--", "x", "--secret", "geheim"],
         ["sweep", "--", "x", "--secret", "{secret:SECRET}"]),
        (["sweep", "-P", "c", "host=a password=abcd,host=b password=wxyz", "--", "x"],
         ["sweep", "-P", "c", "host=a password={secret:PASSWORD},host=b "
          "password={secret:PASSWORD_2}", "--", "x"]),
        (["sweep", "--parameter=o", "--password=aaaa,--password=bbbb", "--", "x"],
         ["sweep", "--parameter=o",
          "--password={secret:PASSWORD},--password={secret:PASSWORD_2}", "--", "x"]),
        (["sweep", "-P", "u", r"redis://:pa\,ss@h1,redis://h2", "--", "x", "pa,ss"],
         ["sweep", "-P", "u", "redis://:{secret:REDIS_PASSWORD}@h1,redis://h2", "--", "x",
          "{secret:REDIS_PASSWORD}"]),
        (["sweep", "--secret", "k", "-P", "k", r"abcd\,efgh,ijkl", "--", "x", "abcd", "ijkl"],
         ["sweep", "--secret", "k", "-P", "k", "{secret:K},{secret:K_2}", "--", "x", "abcd",
          "{secret:K_2}"]),
        (["run", "s", "--set=password=first,second", "--base", "c=password=abcd z,n=2"],
         ["run", "s", "--set=password={secret:PASSWORD},{secret:PASSWORD_2}", "--base",
          "c=password={secret:PASSWORD_3} z,n=2"]),
        (["sweep", "-P", "c", r"a\,b,1..4", "--base", r"c=a\,b", "--", "x", "-P", "n", "1,2"],
         ["sweep", "-P", "c", r"a\,b,1..4", "--base", r"c=a\,b", "--", "x", "-P", "n", "1,2"]),
        (["sweep", "-P", "password", "hunter22,other33", "--base", "password=hunter22", "--", "x",
          "{password}"],
         ["sweep", "-P", "password", "{secret:PASSWORD},{secret:PASSWORD_2}", "--base",
          "password={secret:PASSWORD}", "--", "x", "{password}"]),
        (["sweep", "-Papi-token", "hunter22", "--base=n=1,api-token=hunter22", "--", "x"],
         ["sweep", "-Papi-token", "{secret:API_TOKEN}", "--base=n=1,api-token={secret:API_TOKEN}",
          "--", "x"]),
        (["explain", "last", "--at", "n=1,password=hunter22"],
         ["explain", "last", "--at", "n=1,password={secret:PASSWORD}"]),
        (["run", "s", "--set", "password=alpha-one, beta-two ", "--base", "password=beta-two"],
         ["run", "s", "--set", "password={secret:PASSWORD}, {secret:PASSWORD_2} ", "--base",
          "password={secret:PASSWORD_2}"]),
        (["sweep", "-P", "c", "password=abcd, --token=wxyz", "--", "x", "wxyz"],
         ["sweep", "-P", "c", "password={secret:PASSWORD}, --token={secret:TOKEN}", "--", "x",
          "{secret:TOKEN}"]),
        (["sweep", "--secret", "w", "-P", "w", "first, second", "--base", "w=second", "--", "x"],
         ["sweep", "--secret", "w", "-P", "w", "{secret:W}, {secret:W_2}", "--base",
          "w={secret:W_2}", "--", "x"]),
        (["sweep", "-P", "pass", "1,2, 8,1..4,1..,50%", "--base", "pass=1", "--", "x"],
         ["sweep", "-P", "pass", "1,2, 8,1..4,1..,50%", "--base", "pass=1", "--", "x"]),
        (["sweep", "-P", "password", r"ends-in\\,other33,20261128", "--", "x"],
         ["sweep", "-P", "password", "{secret:PASSWORD},{secret:PASSWORD_2},{secret:PASSWORD_3}",
          "--", "x"]),
        (["show", "last"], ["show", "last"]),
    ],
)  # fmt: skip
def test_the_words_of_a_command_line(words: list[str], hidden: list[str]) -> None:
    environment = {"VAR": "value-of-var"}
    assert hide_words(words, environment, Secrets(environment)) == hidden


@pytest.mark.parametrize("option", ["-P", "--set"])
def test_a_level_that_is_hidden_is_the_one_that_a_program_gets(option: str) -> None:
    given = ["-P", "password"] if option == "-P" else [option]
    known = Secrets({})
    hide_words([*given, f"{'' if option == '-P' else 'password='}one-one , two-two"], {}, known)
    assert known.reveal("{secret:PASSWORD},{secret:PASSWORD_2}") == "one-one,two-two"
