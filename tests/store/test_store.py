"""The store: whole trials or none, old data intact whatever goes wrong."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from concurve.errors import StoreError
from concurve.figures import decode_figures, encode_figures
from concurve.store import Store
from concurve.store.database import STORE_FORMAT
from concurve.store.place import default_url
from concurve.store.rows import Outcome, RunRow, TrialKey
from tests.helpers.needs import small_file_system
from tests.helpers.postgres import Server
from tests.helpers.real import PATIENCE, let_others_through

RECORD = b'{"format":1,"trial":"x"}' * 40


def row(run: str = "20261121-101010-aaaa", started: str = "2026-11-21T10:10:10+00:00") -> RunRow:
    return RunRow(run, "small", started, "running", "", b"{}")


def outcome(block: int = 0, cell: int = 0, verdict: str = "ok") -> Outcome:
    return Outcome(TrialKey(cell, block, 0), verdict, 1.5, 0.25, "cause", "detail")  # type: ignore[arg-type]


def filled(url: str, trials: int = 3) -> Store:
    store = Store(url)
    store.add_run(row())
    for block in range(trials):
        store.add_trial(row().id, outcome(block), encode_figures({"wall_seconds": 1.5}), RECORD)
    return store


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def behaves(url: str) -> None:
    """What a store does, whatever the database."""
    store = filled(url)
    store.add_trial(
        row().id, outcome(0, 1, "program_error")._replace(value=None), encode_figures({}), RECORD
    )
    again = Store(url)
    trials = again.trials(row().id)
    assert [trial.outcome.key.block for trial in trials] == [0, 1, 2, 0], "in the order made"
    assert trials[0].outcome == outcome(0)
    assert trials[3].outcome.value is None
    assert decode_figures(trial.figures for trial in trials).row(0) == {"wall_seconds": 1.5}
    assert [record.record for record in again.records(row().id)] == [RECORD] * 4
    assert again.first_record(row().id) == RECORD
    assert again.count(row().id) == 4
    with pytest.raises(StoreError, match="could not be written"):
        store.add_trial(row().id, outcome(2), encode_figures({}), RECORD)
    with pytest.raises(StoreError, match="could not be written"):
        store.add_trial("no such run", outcome(9), encode_figures({}), RECORD)
    assert again.count(row().id) == 4, "no trial twice, none without its run"
    store.set_state(row().id, "complete", "done")
    assert again.runs()[0][:5] == (*row()[:3], "complete", "done")
    assert again.runs("small") and not again.runs("other")
    assert again.count("nothing") == 0 and not again.has_trials("nothing")
    store.close()
    again.close()


def test_sqlite(tmp_path: Path) -> None:
    behaves(str(tmp_path / "new" / "folder" / "s.db"))
    behaves(f"sqlite:///{tmp_path}/by-url.db")


@pytest.mark.postgresql
def test_postgresql(postgres: Server) -> None:
    behaves(postgres.database("behaves"))


@pytest.mark.postgresql
def test_postgresql_that_is_not_there_or_refuses(postgres: Server) -> None:
    with pytest.raises(StoreError, match="could not be opened") as refused:
        Store("postgresql://postgres:secret@127.0.0.1:1/x")
    assert "secret" not in str(refused.value), "no password in a message"
    assert "server runs" in refused.value.remedy
    with pytest.raises(StoreError, match="does not exist"):
        Store(postgres.url("nothing"))


def test_a_store_to_read_is_there_already(tmp_path: Path) -> None:
    place = tmp_path / "folder" / "s.db"
    for url in (str(place), f"sqlite:///{place}"):
        with pytest.raises(StoreError, match=r"there is no store .*/folder/s\.db"):
            Store.existing(url)
    assert not place.parent.exists()
    Store(str(place)).close()
    assert Store.existing(str(place)).runs() == []


def test_an_empty_database_is_no_store_to_read(tmp_path: Path) -> None:
    place = tmp_path / "s.db"
    place.touch()
    with pytest.raises(StoreError, match=r"there is no store in .*s\.db"):
        Store.existing(str(place))
    assert place.stat().st_size == 0, "no table was made"
    Store(str(place)).close()
    assert Store.existing(str(place)).runs() == []


@pytest.mark.postgresql
def test_nor_is_one_of_a_server(postgres: Server) -> None:
    url = postgres.database("foreign")
    for _ in range(2):
        with pytest.raises(StoreError, match="there is no store in postgresql://"):
            Store.existing(url)
    Store(url).close()
    assert Store.existing(url).runs() == []


def test_a_store_that_cannot_be_reached_is_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(StoreError, match="cannot be reached: File name too long") as refused:
        Store.existing(str(tmp_path / ("x" * 300)))
    assert "a store that you may read" in refused.value.remedy

    def refuse(path: Path, **_: object) -> os.stat_result:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    # As of a folder that may not be entered, which root always may.
    monkeypatch.setattr(Path, "stat", refuse)
    with pytest.raises(StoreError, match="cannot be reached: Permission denied"):
        Store.existing(str(tmp_path / "s.db"))


def test_a_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    store = filled(str(tmp_path / "s.db"))
    name = os.fsdecode(b"caf\xe9")
    with pytest.raises(StoreError, match=r"'caf.udce9' is no text in UTF-8") as refused:
        store.runs(name)
    assert "concurve runs" in refused.value.remedy
    with pytest.raises(StoreError, match="no run 'caf"):
        store.find_run(name)
    with pytest.raises(StoreError, match="could not be written"):
        store.set_state(row().id, "complete", name)
    assert store.runs("small")[0].state == "running"


def test_a_trial_is_one_transaction(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its record fails: then its figures are not there either."""
    store = filled(str(tmp_path / "s.db"))
    connection = sqlite3.connect(tmp_path / "s.db")
    connection.execute(
        "CREATE TRIGGER fail BEFORE INSERT ON concurve_records "
        "BEGIN SELECT RAISE(ABORT, 'no record today'); END"
    )
    connection.close()
    with pytest.raises(StoreError, match="no record today"):
        store.add_trial(row().id, outcome(7), encode_figures({}), RECORD)
    assert store.count(row().id) == 3
    assert len(list(store.records(row().id))) == 3


def test_a_store_of_a_newer_format_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    filled(str(path)).close()
    connection = sqlite3.connect(path)
    connection.execute("UPDATE concurve_meta SET value = ?", (str(STORE_FORMAT + 1),))
    connection.execute("DROP TABLE concurve_records")
    connection.commit()
    connection.execute("PRAGMA journal_mode=DELETE")
    connection.close()
    before = digest(path)
    with pytest.raises(StoreError, match=f"has store format {STORE_FORMAT + 1}") as refused:
        Store(str(path))
    assert "newer version of concurve" in refused.value.remedy
    assert digest(path) == before
    assert sorted(tmp_path.iterdir()) == [path], "nothing beside it either"


def test_an_unreadable_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    filled(str(path)).close()
    connection = sqlite3.connect(path)
    connection.execute("UPDATE concurve_meta SET value = 'two'")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match="has store format two"):
        Store(str(path))


def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("dear diary\n" * 100)
    before = digest(path)
    with pytest.raises(StoreError, match="not a database") as refused:
        Store(str(path))
    assert "another file" in refused.value.remedy
    assert digest(path) == before


def test_a_database_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE customers (id INTEGER)")
    connection.commit()
    connection.close()
    before = digest(path)
    with pytest.raises(StoreError, match="holds other tables") as refused:
        Store(str(path))
    assert "customers" in refused.value.what
    assert digest(path) == before


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="unable to open"):
        Store(str(tmp_path))


def test_a_url_that_is_no_store_is_refused_without_its_password() -> None:
    with pytest.raises(StoreError, match="kind 'mysql' is no store"):
        Store("mysql://x/y")
    with pytest.raises(StoreError, match="malformed") as refused:
        Store("postgresql://me:secret@host:port/x")
    assert "secret" not in str(refused.value)


UNPRIVILEGED = """
import os, sys
from concurve.errors import StoreError
from concurve.figures import decode_figures, encode_figures
from concurve.store import Store
Store(sys.argv[2]).close()  # loads what the user may not read
os.setgid(65534); os.setuid(65534)
try:
    store = Store(sys.argv[1])
    print("runs", len(store.runs()))
    if sys.argv[3:]:
        store.set_state("x", "y", "z")
except StoreError as error:
    print(error)
"""


def as_nobody(path: Path, *arguments: str) -> str:
    if os.geteuid() != 0:
        pytest.skip("needs root, to give it up")
    return subprocess.run(
        [sys.executable, "-c", UNPRIVILEGED, str(path), ":memory:", *arguments],
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.fixture
def open_folder(tmp_path: Path) -> Path:
    """A folder that every user may reach."""
    let_others_through(tmp_path / "inside")
    return tmp_path


def test_an_unwritable_folder_is_refused_with_the_remedy(open_folder: Path) -> None:
    (open_folder / "closed").mkdir(mode=0o755)
    said = as_nobody(open_folder / "closed" / "s.db")
    assert "could not be opened: unable to open database file" in said
    assert "may write to: --db FILE or CONCURVE_DB" in said
    said = as_nobody(open_folder / "closed" / "deeper" / "s.db")
    assert "cannot be made: Permission denied" in said


def test_an_unwritable_store_stays_as_it_was(open_folder: Path) -> None:
    path = open_folder / "s.db"
    filled(str(path)).close()
    before = digest(path)
    path.chmod(0o644)
    said = as_nobody(path, "write")
    assert "may write to" in said
    assert digest(path) == before
    assert Store(str(path)).count(row().id) == 3


FILL = """
import resource, signal, sys
from concurve.errors import StoreError
from concurve.figures import decode_figures, encode_figures
from concurve.store import Store
from tests.store.test_store import outcome, row
store = Store(sys.argv[1])
if len(sys.argv) > 2:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
import os
done = store.count(row().id)
try:
    for block in range(done, 10_000):
        store.add_trial(row().id, outcome(block), b"{}", os.urandom(20_000))
        done += 1
except StoreError as error:
    print(done)
    print(error)
"""


def fill(path: Path, *arguments: str) -> tuple[int, str]:
    """Store trials until it fails: how many went in, and what was said."""
    done = subprocess.run(
        [sys.executable, "-c", FILL, str(path), *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    count, message = done.stdout.split("\n", 1)
    return int(count), message


def intact(path: Path, count: int) -> None:
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    store = Store(str(path))
    assert store.count(row().id) == count == len(list(store.records(row().id)))
    store.add_trial(row().id, outcome(99_999), encode_figures({}), RECORD)
    store.close()


def test_a_limit_on_the_file_ends_writing_and_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    filled(str(path)).close()
    count, message = fill(path, "400000")
    assert count > 3
    assert "could not be written" in message and "try: " in message
    intact(path, count)


def test_a_full_disk_ends_writing_and_loses_nothing(tmp_path: Path) -> None:
    with small_file_system(tmp_path / "small", 600 << 10) as folder:
        filled(str(folder / "s.db")).close()
        count, message = fill(folder / "s.db")
        assert count > 3
        assert "disk is full" in message
        assert "try: free some space, then concurve resume" in message
        shutil.copy(folder / "s.db", tmp_path)
        for beside in folder.glob("s.db-wal"):
            shutil.copy(beside, tmp_path)
    intact(tmp_path / "s.db", count)


def test_runs_are_found_by_id_by_its_start_and_as_the_last(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "s.db"))
    with pytest.raises(StoreError, match=r"^no run 'last': /.*/s\.db has no runs"):
        store.find_run("last")
    store.add_run(row("20261121-0900-aaaa", "2026-11-21T09:00:00+00:00"))
    store.add_run(row("20261120-0800-bbbb", "2026-11-20T08:00:00+00:00"))
    store.add_run(row("20261120-0800-bbbbb", "2026-11-20T08:00:01+00:00"))
    assert store.find_run("last").id == "20261121-0900-aaaa"
    assert store.find_run("20261121").id == "20261121-0900-aaaa"
    assert store.find_run("20261120-0800-bbbb").id == "20261120-0800-bbbb", "exact before longer"
    with pytest.raises(StoreError, match="2 runs begin with '20261120'") as refused:
        store.find_run("20261120")
    assert "longer id" in refused.value.remedy
    for name in ("2025", ""):
        with pytest.raises(StoreError, match=f"no run '{name}' among the 3") as refused:
            store.find_run(name)
        assert "concurve runs" in refused.value.remedy
        assert "did you mean" not in refused.value.remedy
    study = row().study
    with pytest.raises(StoreError) as refused:
        store.find_run(f"{study[:-1]}ll")
    assert refused.value.remedy.startswith(f"did you mean '{study}'? concurve runs")
    with pytest.raises(StoreError) as refused:
        store.find_run("lst")
    assert refused.value.remedy.startswith("did you mean 'last'? concurve runs")


def test_the_place_of_a_file_is_shown_as_a_path(tmp_path: Path) -> None:
    place = tmp_path / "a.db"
    for url in (str(place), f"sqlite:///{place}"):
        with closing(Store(url)) as store:
            assert store.shown() == str(place)


MAKE = """
import sys
from concurve.store import Store
sys.stdin.readline()
for number in range(20):
    Store(f"{sys.argv[1]}{number}").close()
"""


def test_many_may_make_the_same_store_at_once(tmp_path: Path) -> None:
    makers = [
        subprocess.Popen(
            [sys.executable, "-c", MAKE, str(tmp_path / "s.db")],
            stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(4)
    ]  # fmt: skip
    for maker in makers:
        assert maker.stdin is not None
        maker.stdin.write("go\n")
        maker.stdin.flush()
    for maker in makers:
        _, stderr = maker.communicate(timeout=PATIENCE)
        assert maker.returncode == 0, stderr
    assert Store(str(tmp_path / "s.db0")).runs() == []


def test_two_writers_wait_for_each_other(tmp_path: Path) -> None:
    url = str(tmp_path / "s.db")
    first = filled(url, 0)
    second = Store(url)
    for block in range(10):
        (first, second)[block % 2].add_trial(row().id, outcome(block), encode_figures({}), RECORD)
    assert first.count(row().id) == 10


def test_the_place_of_the_store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CONCURVE_DB", "/x/y.db")
    assert default_url() == "/x/y.db"
    monkeypatch.delenv("CONCURVE_DB")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_url() == str(tmp_path / "concurve" / "concurve.db")


def test_a_store_in_wal_mode_survives_its_writer(tmp_path: Path) -> None:
    """Committed, but never closed: what was written is there for the next."""
    url = str(tmp_path / "s.db")
    store = filled(url)
    with closing(sqlite3.connect(url)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("SELECT count(*) FROM concurve_trials").fetchone() == (3,)
    assert store.count(row().id) == 3


def test_of_many_runs_that_fit_the_newest_are_named() -> None:
    store = Store()
    for number in range(25):
        store.add_run(row(f"20261127-00{number:02d}-aaaa", f"2026-11-27T00:{number:02d}:00+00:00"))
    with pytest.raises(StoreError) as refused:
        store.find_run("20261127-0")
    assert "20261127-0024-aaaa, 20261127-0023-aaaa" in refused.value.what
    assert "and 20 older ones" in refused.value.what
