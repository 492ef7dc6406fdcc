"""Databases as roles: data made once and copied, run as their own user, nothing left behind."""

from __future__ import annotations

import hashlib
import os
import pwd
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from concurve.attendants import servers
from concurve.attendants.attendant import AttendantError, Signals, StoppedError
from concurve.attendants.servers import process as process_of
from concurve.attendants.servers.data import copy, originals, restore
from concurve.attendants.servers.mariadb import MariaDB
from concurve.attendants.servers.postgresql import VERSIONS, PostgreSQL
from concurve.errors import HostError
from concurve.host.temporary import (
    free_port,
    maker_of,
    parse_postmaster,
    remove_abandoned,
    temporary_folder,
)
from concurve.measuring import packaged
from tests.helpers.attended import PATIENCE, Attended, refused
from tests.helpers.needs import small_file_system


def usable(name: str) -> bool:
    server = servers.SERVERS[name]
    return server.find() is not None and server.lacks() is None


INSTALLED = [version for version in VERSIONS if usable(f"postgresql-{version}")]

#: The oldest and the newest PostgreSQL, and MariaDB.
NAMES = [
    *dict.fromkeys(f"postgresql-{v}" for v in (*INSTALLED[:1], *INSTALLED[-1:])),
    *(["mariadb"] if usable("mariadb") else []),
]
needs_database = pytest.mark.skipif(not NAMES, reason="neither PostgreSQL nor MariaDB is installed")

#: Stands for concurve-load: says that it was called, and makes a table through the URL.
LOADER = f"""#!{sys.executable}
import os
import sys
from pathlib import Path
from urllib.parse import urlsplit
called = Path(__file__).with_name("called")
called.write_text(called.read_text() + " ".join(sys.argv[2:]) + "\\n" if called.exists()
                  else " ".join(sys.argv[2:]) + "\\n")
url = urlsplit(sys.argv[1])
if "CONCURVE_REPORT" in os.environ:
    sys.exit("no such channel")
if "fail" in sys.argv:
    sys.exit("no such workload: fail")
if url.scheme == "postgresql":
    import psycopg
    with psycopg.connect(sys.argv[1]) as link:
        link.execute("CREATE TABLE filled AS SELECT generate_series(1, 1000) AS n")
else:
    import pymysql
    link = pymysql.connect(host=url.hostname, port=url.port, user=url.username, autocommit=True)
    cursor = link.cursor()
    for statement in ("CREATE DATABASE concurve", "USE concurve",
                      "CREATE TABLE filled AS SELECT seq AS n FROM seq_1_to_1000"):
        cursor.execute(statement)
"""


@pytest.fixture
def places(tmp_path: Path) -> dict[str, str]:
    """A cache and a concurve-load of the test's own."""
    native_folder = tmp_path / "native"
    native_folder.mkdir()
    loader = native_folder / "concurve-load"
    loader.write_text(LOADER, encoding="utf-8")
    loader.chmod(0o755)
    return {"XDG_CACHE_HOME": str(tmp_path / "cache"), "CONCURVE_NATIVE": str(native_folder)}


@pytest.fixture(params=NAMES or ["none"])
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Attending:
    """Attendants of one kind of server, ended with the test."""

    def __init__(self, name: str, places: dict[str, str]) -> None:
        self.name, self.places = name, places
        self.all: list[Attended] = []

    def __call__(self, *arguments: str) -> Attended:
        file = str(servers.program(self.name, "here"))
        attended = Attended(self.name, file, free_port(), *arguments, **self.places)
        self.all.append(attended)
        return attended


@pytest.fixture
def attend(name: str, places: dict[str, str]) -> Iterator[Attending]:
    attending = Attending(name, places)
    yield attending
    for attended in attending.all:
        attended.process.terminate()
        attended.process.wait(PATIENCE)
    remove_abandoned()


def ask(attended: Attended, name: str, query: str) -> Any:
    """The first column of the first row."""
    if name == "mariadb":
        import pymysql

        link = pymysql.connect(host="127.0.0.1", port=attended.port, user="root")
        with link, link.cursor() as cursor:
            cursor.execute(query)
            row = cursor.fetchone()
    else:
        import psycopg

        url = f"postgresql://postgres@127.0.0.1:{attended.port}/postgres"
        with psycopg.connect(url) as connection:
            row = connection.execute(query.encode()).fetchone()
    assert row is not None
    return row[0]


def folder_of(attended: Attended, name: str) -> Path:
    query = "SELECT @@datadir" if name == "mariadb" else "SHOW data_directory"
    return Path(str(ask(attended, name, query)))


@needs_database
def test_it_serves_as_its_own_user_and_leaves_nothing(attend: Attending, name: str) -> None:
    attended = attend()
    attended.wait_until_ready()
    folder = folder_of(attended, name)
    assert folder.exists()
    if name == "mariadb":
        own = ask(attended, name, "SELECT @@tmpdir")
        assert own == str(folder.parent), "another one that starts would empty a shared one"
        read = ask(attended, name, "SELECT LOAD_FILE('/etc/passwd')")
        assert read is None, "any user of the machine may connect"
    user = servers.SERVERS[name].user
    assert user is not None
    if os.geteuid() == 0:
        assert folder.stat().st_uid == pwd.getpwnam(user).pw_uid
    said = attended.stop()
    assert attended.process.returncode == 0, said
    assert refused(attended.port)
    assert not folder.exists()
    facts = attended.of("fact")
    version = facts["mariadb_version" if name == "mariadb" else "postgresql_version"]
    assert version.startswith(name.partition("-")[2])


@needs_database
def test_data_are_made_once_and_copied(
    attend: Attending, name: str, places: dict[str, str]
) -> None:
    filled = "SELECT count(*) FROM " + ("concurve.filled" if name == "mariadb" else "filled")
    for _ in range(2):
        attended = attend("--data", "--workload tiny --scale 2")
        attended.wait_until_ready()
        assert ask(attended, name, filled) == 1000
        attended.stop()
    called = Path(places["CONCURVE_NATIVE"]) / "called"
    assert called.read_text().splitlines() == ["--workload tiny --scale 2 --init-only"]
    kept = list((Path(places["XDG_CACHE_HOME"]) / "concurve" / "data").iterdir())
    assert len(kept) == 1
    with temporary_folder() as copied:
        copy(kept[0], copied)
        assert contents(copied) == contents(kept[0])


def contents(folder: Path) -> dict[str, tuple[int, str]]:
    """Owner and digest of every file."""
    return {
        str(path.relative_to(folder)): (
            path.stat().st_uid,
            hashlib.sha256(path.read_bytes()).hexdigest(),
        )
        for path in folder.rglob("*")
        if path.is_file()
    }


@needs_database
def test_a_load_that_cannot_fill_it_is_told_and_nothing_is_kept(
    attend: Attending, places: dict[str, str]
) -> None:
    attended = attend("--data", "--workload fail")
    said = attended.end()
    assert attended.process.returncode == 1
    assert "no such workload: fail" in said
    assert "could not make its data (exit code 1): no such workload: fail" in said
    assert attended.lines == []
    assert not list(Path(places["XDG_CACHE_HOME"]).rglob(".new-*"))


@needs_database
def test_after_a_kill_the_next_one_removes_what_is_left(attend: Attending, name: str) -> None:
    attended = attend()
    attended.wait_until_ready()
    folder = folder_of(attended, name)
    segment = None
    if name != "mariadb":
        # The server, too, so that it cannot clean up.
        lines = (folder / "postmaster.pid").read_text(encoding="ascii")
        server, segment = parse_postmaster(lines)
        assert maker_of(segment) == server
        attended.process.send_signal(signal.SIGSTOP)
        os.kill(server, signal.SIGKILL)
    attended.process.kill()
    attended.process.wait()
    wait_until(lambda: refused(attended.port))
    assert folder.exists()
    second = attend()
    second.wait_until_ready()
    wait_until(lambda: removed(folder))
    assert segment is None or maker_of(segment) != server
    assert folder_of(second, name).exists()
    second.stop()
    assert second.process.returncode == 0


def removed(folder: Path) -> bool:
    """What still ends may write once more."""
    remove_abandoned()
    return not folder.exists()


def wait_until(happened: Any) -> None:
    deadline = time.monotonic() + PATIENCE
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@needs_database
def test_a_setting_that_it_refuses_is_told_with_its_words(attend: Attending) -> None:
    attended = attend("--nonsense=1")
    said = attended.end()
    assert attended.process.returncode == 1
    assert "nonsense" in said
    assert "it ended unexpectedly with" in said


# -- without any database ---------------------------------------------------------------------


def broken(folder: Path, name: str, script: str) -> Path:
    """A program that is no server."""
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    file.chmod(0o755)
    return file


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """One that other users may enter, unlike that of the tests."""
    with temporary_folder() as folder:
        folder.chmod(0o755)
        yield folder


def test_programs_that_are_broken_are_told(open_folder: Path, places: dict[str, str]) -> None:
    if servers.SERVERS["postgresql-18"].lacks() is not None:
        pytest.skip("no user postgres, or no psycopg")
    server = broken(open_folder, "postgres", "echo disk is upside down >&2; exit 3")
    for initdb, message in (
        (None, "initdb cannot be started: No such file"),
        ("echo no locale >&2; exit 1", "initdb failed with 1; its output is above"),
        ("exit 0", "it ended unexpectedly with 3; its output is above"),
    ):
        if initdb is not None:
            broken(open_folder, "initdb", initdb)
        attended = Attended("postgresql-18", str(server), free_port(), **places)
        said = attended.end()
        assert attended.process.returncode == 1
        assert message in said
        assert attended.lines == []
    assert "disk is upside down" in said


def test_one_that_never_answers_is_given_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(process_of, "PATIENCE_SECONDS", 0.05)
    server = PostgreSQL("18")
    monkeypatch.setattr(server, "connect", lambda _: None)
    with (
        subprocess.Popen(["sleep", "1000"]) as sleeping,
        pytest.raises(AttendantError, match="did not answer on port 1 within"),
    ):
        try:
            process_of.wait_until_it_answers(server, 1, sleeping, Quiet())
        finally:
            sleeping.kill()


class Quiet(Signals):
    """No signal ever comes."""

    def __init__(self) -> None: ...

    def stopped(self, seconds: float) -> bool:
        return False


class Stopping(Quiet):
    """The signal to stop is there."""

    def stopped(self, seconds: float) -> bool:
        return True


def test_one_that_is_stopped_before_it_answers_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    server = MariaDB()
    monkeypatch.setattr(server, "connect", lambda _: None)
    with subprocess.Popen(["sleep", "1000"]) as sleeping:
        try:
            with pytest.raises(StoppedError):
                process_of.wait_until_it_answers(server, 1, sleeping, Stopping())
            assert sleeping.wait(PATIENCE) == -server.stop_signal
        finally:
            sleeping.kill()


def test_versions_that_are_unknown_or_not_installed_are_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(HostError, match="no packaged program 'postgresql-8'") as caught:
        packaged.command("postgresql-8", "role target")
    assert "postgresql-18" in caught.value.remedy
    monkeypatch.setenv("CONCURVE_POSTGRESQL_9_6", str(tmp_path / "nothing"))
    with pytest.raises(HostError, match=r"postgresql-9\.6 is not installed") as caught:
        packaged.command("postgresql-9.6", "role target")
    assert caught.value.remedy.startswith("scripts/install-postgresql.sh 9.6")


def test_a_machine_without_its_user_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CONCURVE_MARIADB", str(broken(tmp_path, "mariadbd", "exit 1")))
    monkeypatch.setattr(servers.SERVERS["mariadb"], "user", "nobody-of-that-name")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(HostError, match="refuses root, and there is no user nobody-of-that-name"):
        packaged.command("mariadb", "role target")


def test_wrong_data_is_wrong_usage() -> None:
    for arguments in (["redis-server", "/x", "--port", "1", "--data", "x"],
                      ["mariadb", "/x", "--port", "1", "--data"]):  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-m", "concurve.attendants.servers.attend", *arguments],
            capture_output=True, text=True, check=False, timeout=PATIENCE,
        )  # fmt: skip
        assert done.returncode == 2 and "usage:" in done.stderr


# -- originals and folders --------------------------------------------------------------------


def test_an_original_is_made_once_and_a_failed_one_is_not_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = []

    def make(folder: Path) -> None:
        made.append(folder)
        if len(made) == 1:
            raise AttendantError("no")
        (folder / "pages").write_bytes(b"\0" * 5000)

    folders = [tmp_path / f"trial-{number}" for number in range(4)]
    for folder in folders:
        folder.mkdir()
    with pytest.raises(AttendantError):
        restore(["records", "scale 1"], [], make, folders[0])
    assert not originals().exists()
    restore(["records", "scale 1"], [], make, folders[1])
    restore(["records", "scale 1"], [], make, folders[2])
    assert made == folders[:2]
    assert (folders[2] / "pages").read_bytes() == b"\0" * 5000
    restore(["records", "scale 2"], [], make, folders[3])
    assert made == [*folders[:2], folders[3]]


def test_originals_that_nobody_used_for_long_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = tmp_path / "trial"
    folder.mkdir()
    restore(["a"], [], lambda path: None, folder)
    old = next(originals().iterdir())
    os.utime(old, (0, 0))
    restore(["a"], [], lambda path: None, folder)  # used again: it stays
    restore(["b"], [], lambda path: None, folder)
    assert old.exists()
    os.utime(old, (0, 0))
    restore(["c"], [], lambda path: None, folder)
    assert not old.exists()


def test_another_build_makes_its_own_and_takes_the_place_of_the_older(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder, program = tmp_path / "trial", tmp_path / "program"
    folder.mkdir()
    made: list[Path] = []
    for build in ("first", "second build"):
        program.write_text(build, encoding="utf-8")
        for _ in range(2):
            restore(["a"], [program], made.append, folder)
        restore(["b"], [], lambda path: None, folder)
    assert len(made) == 2
    assert len(list(originals().iterdir())) == 2, "of a and of b"


def test_a_full_disk_is_told(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "pages").write_bytes(b"x" * 500_000)
    with (
        small_file_system(tmp_path / "small", 64 << 10) as small,
        pytest.raises(AttendantError, match=r"No space left on device; TMPDIR and"),
    ):
        copy(source, small)


def test_a_folder_lives_as_long_as_its_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    held = (
        "from concurve.host.temporary import temporary_folder\n"
        "with temporary_folder() as folder: print(folder, flush=True); input()"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", held], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None
    folder = Path(other.stdout.readline().strip())
    (folder / "page").write_text("x", encoding="utf-8")
    remove_abandoned()
    with temporary_folder() as own:
        assert own != folder and folder.exists()
    assert not own.exists()
    other.kill()
    other.communicate()
    assert folder.exists()
    remove_abandoned()
    assert list(tmp_path.iterdir()) == []
