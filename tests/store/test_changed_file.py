"""A store whose file is deleted, replaced, cut or made read-only while a run writes to it: the run
never ends well with data lost, and says where they are."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from concurve.definition.study import Rules
from concurve.errors import StoreError
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.store import Store
from concurve.store.run_head import decode_head
from concurve.wire.spec import TrialSpec
from tests.helpers.fakes import FakeClock, FakeEngine, small_study
from tests.store.test_store import as_nobody, filled

THREE = Rules(repeats_min=3, repeats_max=3)
TRIALS = 6


def another_store(path: Path) -> Path:
    """A store of somebody else, larger than a new one."""
    other = path.parent.parent / "other.db"
    filled(str(other), 40).close()
    return other


def copy_over(path: Path) -> None:
    """Change the contents of the same file, as cp does."""
    path.write_bytes(another_store(path).read_bytes())


def replace(path: Path, make: Callable[[Path], object]) -> None:
    """Delete a file and make another one in its place."""
    path.unlink()
    make(path)


def cut(path: Path, bytes_: int) -> None:
    with path.open("r+b") as file:
        file.truncate(bytes_)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "deleted": Path.unlink,
    "moved away": lambda path: path.rename(path.with_suffix(".old")),
    "replaced by nothing": lambda path: replace(path, Path.touch),
    "replaced by a text": lambda path: replace(path, lambda it: it.write_text("notes")),
    "replaced by a store": lambda path: another_store(path).rename(path),
    "replaced by a link": lambda path: replace(path, lambda it: it.symlink_to(another_store(it))),
    "cut to nothing": lambda path: cut(path, 0),
    "cut to a page": lambda path: cut(path, 4096),
    "folder deleted": lambda path: shutil.rmtree(path.parent),
    "folder moved": lambda path: path.parent.rename(path.parent.with_suffix(".old")),
    "log deleted": lambda path: Path(f"{path}-wal").unlink(),
    "log cut": lambda path: cut(Path(f"{path}-wal"), 0),
}

#: What leaves the open file as it is, so that all of it can be saved.
SAVED = {
    "deleted", "moved away", "replaced by nothing", "replaced by a text", "replaced by a store",
    "replaced by a link", "folder deleted", "folder moved", "log deleted",
}  # fmt: skip


class Damaging(FakeEngine):
    """Damages the store while a trial runs."""

    def __init__(self, at: int, damage: Callable[[], object]) -> None:
        super().__init__()
        self._at, self._damage = at, damage

    def run(self, spec: TrialSpec) -> bytes:
        if len(self.specs) == self._at:
            self._damage()
        return super().run(spec)


def run_with(store: Store, engine: FakeEngine) -> Runner:
    head = new_head(small_study(THREE, threads=(1, 2)), "normal", 5, "concurve sweep …")
    runner = Runner(head, store, engine, clock=FakeClock())
    runner.start()
    return runner


@pytest.mark.parametrize("at", [0, 3, TRIALS - 1])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_run_ends_with_the_reason_and_what_was_stored_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str, at: int
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "folder" / "s.db"
    store = Store(str(path))
    engine = Damaging(at, lambda: DAMAGES[damage](path))
    with pytest.raises(StoreError) as failed:
        run_with(store, engine)
    assert failed.value.exit_code == 4
    assert str(path) in failed.value.what
    assert failed.value.remedy
    assert len(engine.specs) <= at + 1, "not one trial more is run in vain"
    store.close()
    saved = re.search(r"is in (\S+)$", failed.value.what)
    assert saved or damage not in SAVED, failed.value
    if saved:
        place = Path(saved[1])
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        again = Store.existing(str(place))
        (run,) = [item for item in again.runs() if item.study == "small"]
        assert again.count(run.id) >= at
        resumed = Runner(decode_head(run), again, FakeEngine(), clock=FakeClock())
        resumed.resume()
        assert again.count(run.id) == len(list(again.records(run.id))) == TRIALS
        again.close()


@pytest.mark.parametrize("at", [0, 3, TRIALS - 1])
def test_contents_that_are_replaced_lose_no_trial_unseen(tmp_path: Path, at: int) -> None:
    path = tmp_path / "folder" / "s.db"
    store = Store(str(path))
    try:
        runner = run_with(store, Damaging(at, lambda: copy_over(path)))
    except StoreError:
        return
    store.close()
    again = Store.existing(str(path))
    assert len(list(again.records(runner.head.id))) == TRIALS


def test_trials_that_somebody_deletes_are_missed(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = Store(str(path))

    def delete() -> None:
        with sqlite3.connect(path) as connection:
            connection.execute("DELETE FROM concurve_records WHERE trial = 1")

    with pytest.raises(StoreError, match="5 of 6 trials that were written"):
        run_with(store, Damaging(TRIALS - 1, delete))


def test_a_store_that_stays_is_not_suspected(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = Store(str(path))

    def read() -> None:
        reader = Store.existing(str(path))
        assert reader.runs()
        reader.close()

    runner = run_with(store, Damaging(2, read))
    assert store.count(runner.head.id) == TRIALS
    store.close()
    assert sorted(tmp_path.glob("*recovered*")) == []


def sqlite(path: Path, *statements: str) -> None:
    """What another client does."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement).fetchall()


def hold(path: Path, begin: str, seconds: float) -> None:
    """Another client begins a transaction, and ends it after a while."""
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    connection.execute(begin)
    connection.execute("SELECT count(*) FROM concurve_trials").fetchall()

    def end() -> None:
        connection.execute("COMMIT")
        connection.close()

    threading.Timer(seconds, end).start()


def grow(path: Path) -> None:
    """Much of the file becomes free: runs of others are deleted."""
    sqlite(
        path,
        "CREATE TABLE IF NOT EXISTS concurve_other (b BLOB)",
        "INSERT INTO concurve_other VALUES (randomblob(2000000))",
        "DELETE FROM concurve_other",
        "PRAGMA wal_checkpoint(TRUNCATE)",
    )


#: What other clients of SQLite may do to a store that a run writes to.
MAINTENANCE: dict[str, Callable[[Path], object]] = {
    "vacuum": lambda path: sqlite(path, "VACUUM"),
    "vacuum and checkpoint": lambda path: sqlite(path, "VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"),
    "checkpoint truncate": lambda path: sqlite(path, "PRAGMA wal_checkpoint(TRUNCATE)"),
    "checkpoint restart": lambda path: sqlite(path, "PRAGMA wal_checkpoint(RESTART)"),
    "analyze": lambda path: sqlite(path, "ANALYZE", "PRAGMA optimize"),
    "reindex": lambda path: sqlite(path, "REINDEX"),
    "an index": lambda path: sqlite(
        path, "CREATE INDEX IF NOT EXISTS other ON concurve_trials (verdict)"
    ),
    "a copy": lambda path: sqlite(path, f"VACUUM INTO '{path}-{time.monotonic_ns()}'"),
    "a check": lambda path: sqlite(path, "PRAGMA integrity_check"),
    "a reader": lambda path: hold(path, "BEGIN", 0.3),
    "a writer": lambda path: hold(path, "BEGIN IMMEDIATE", 1.5),
    "an exclusive writer": lambda path: hold(path, "BEGIN EXCLUSIVE", 1.5),
    "another run": lambda path: filled(str(path)).close(),
    "another setting": lambda path: suppressed(lambda: sqlite(path, "PRAGMA journal_mode=DELETE")),
}


def suppressed(call: Callable[[], None]) -> None:
    with contextlib.suppress(sqlite3.Error):
        call()


@pytest.mark.parametrize("what", MAINTENANCE)
def test_maintenance_by_other_clients_ends_no_run(tmp_path: Path, what: str) -> None:
    path = tmp_path / "s.db"
    store = Store(str(path))
    grow(path)
    runner = run_with(store, Damaging(3, lambda: MAINTENANCE[what](path)))
    assert store.count(runner.head.id) == len(list(store.records(runner.head.id))) == TRIALS
    store.close()
    assert sorted(tmp_path.glob("*recovered*")) == []


def test_a_shorter_file_without_the_run_is_another_one(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = Store(str(path))
    grow(path)

    def forget() -> None:
        sqlite(path, "DELETE FROM concurve_runs WHERE study = 'small'", "VACUUM",
               "PRAGMA wal_checkpoint(TRUNCATE)")  # fmt: skip

    with pytest.raises(StoreError, match="was cut from"):
        run_with(store, Damaging(3, forget))


def test_a_deleted_store_is_not_made_anew_by_its_reader(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    filled(str(path)).close()
    store = Store.existing(str(path))
    store.close()
    path.unlink()
    with pytest.raises(StoreError, match="unable to open"):
        store.runs()
    assert not path.exists()


def test_a_new_store_is_for_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    store = filled(str(path))
    for file in (path, Path(f"{path}-wal")):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    store.close()


@pytest.mark.parametrize(("told", "mode"), [(None, 0o600), ("640", 0o640)])
def test_a_store_of_an_older_version_is_for_its_owner_once_it_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: str | None, mode: int
) -> None:
    if told is not None:
        monkeypatch.setenv("CONCURVE_FILE_MODE", told)
    path = tmp_path / "s.db"
    filled(str(path)).close()
    path.chmod(0o644)
    Store.existing(str(path)).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o644, "who reads it changes nothing"
    store = Store(str(path))
    store.set_state(store.runs()[0].id, "interrupted", "stopped")
    for file in (path, Path(f"{path}-wal")):
        assert stat.S_IMODE(file.stat().st_mode) == mode
    store.close()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user may reach, whatever other tests do to pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="concurve-open-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


KILLED = """
import os, sys
from tests.store.test_store import filled
filled(sys.argv[1], 3)
os._exit(0)  # without closing: what was written last is in the log
"""


@pytest.mark.parametrize("is_closed", [True, False])
@pytest.mark.parametrize("mode", [0o555, 0o755])
def test_a_store_that_may_only_be_read_is_read_whole(
    open_folder: Path,
    mode: int,
    is_closed: bool,
) -> None:
    folder = open_folder / "closed"
    folder.mkdir(mode=0o755)
    path = folder / "s.db"
    if is_closed:
        filled(str(path)).close()
    else:
        subprocess.run(
            [sys.executable, "-c", KILLED, str(path)], check=True, cwd=Path(__file__).parents[2]
        )
        Path(f"{path}-shm").unlink()
        assert Path(f"{path}-wal").stat().st_size > 0
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(mode)
    before = sorted(folder.iterdir())
    said = as_nobody(path, "write")
    assert said.startswith("runs 1\n")
    assert "may write to" in said
    assert sorted(folder.iterdir()) == before


READ_ONLY = """
import os, sys
sys.path.insert(0, {root!r})
from concurve.errors import StoreError
from concurve.store import Store
from tests.store.test_store import filled, outcome, row
from concurve.figures import encode_figures
encode_figures({{}})
filled(":memory:", 1).close()
os.setgid(65534); os.setuid(65534)
path = sys.argv[1]
store = filled(path, 3)
os.chmod(path, 0o444)
os.chmod(os.path.dirname(path), 0o555)
try:
    store.add_trial(row().id, outcome(3), encode_figures({{}}), b"{{}}")
    store.set_state(row().id, "complete", "")
    print("stored")
except StoreError as error:
    print(error)
store.close()
print(Store.existing(path).count(row().id))
"""


def test_a_store_that_is_made_read_only_meanwhile_loses_nothing(
    open_folder: Path,
) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root, to give it up")
    folder = open_folder / "mine"
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    done = subprocess.run(
        [sys.executable, "-c", READ_ONLY.format(root=str(Path(__file__).parents[2])),
         str(folder / "s.db")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *said, count = done.stdout.splitlines()
    assert (said, count) == (["stored"], "4") or (said[0] != "stored" and count == "3"), said
