"""Damaged files of every kind that a verb reads: each is read or refused with its name and a
remedy, and none ends in a traceback."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from concurve import inputs
from concurve.cli import app
from concurve.errors import ConcurveError
from concurve.host.lock import measurement_lock
from concurve.store import Store
from concurve.store.holder import is_gone, own_holder
from tests.helpers.campaigns import write_campaign
from tests.helpers.damages import damages
from tests.store.test_damage import GOLDEN, RUN

STUDIES = Path(__file__).parents[2] / "src" / "concurve" / "studies"


def a_study(folder: Path) -> tuple[Path, list[str]]:
    """A study file and the verb that reads it."""
    path = folder / "mine.toml"
    path.write_bytes(
        b'[study]\nname = "mine"\nquestion = "How?"\n[factors]\nn = [1, 2]\n'
        b'[[roles]]\nname = "target"\ncommand = ["true", "{n}"]\n'
    )
    return path, ["run", str(path), "--dry-run", "--db", str(folder / "s.db")]


def a_campaign(folder: Path) -> tuple[Path, list[str]]:
    """A campaign file and the verb that reads it."""
    path = write_campaign(folder)
    return path, ["run", str(path), "--dry-run", "--db", str(folder / "s.db")]


def a_shared_file(folder: Path) -> tuple[Path, list[str]]:
    """The shared part of a study, and the verb that reads it."""
    shutil.copytree(STUDIES / "java-threads" / "tc01", folder / "tc01")
    path = folder / "shared.toml"
    shutil.copy(STUDIES / "java-threads" / "shared.toml", path)
    study = folder / "tc01" / "study.toml"
    return path, ["run", str(study), "--dry-run", "--db", str(folder / "s.db")]


def columns(folder: Path) -> tuple[Path, list[str]]:
    """A table of numbers and the verb that fits them."""
    path = folder / "numbers.csv"
    path.write_text("workers,throughput\n1,1000\n2,1900\n4,3400\n8,5200\n")
    return path, ["fit", str(path), "--x", "workers", "--y", "throughput"]


def a_store(folder: Path) -> tuple[Path, list[str]]:
    """A store and the verb that shows its run."""
    path = folder / "s.db"
    shutil.copy(GOLDEN, path)
    return path, ["show", RUN, "--db", str(path)]


def runs_of_a_store(folder: Path) -> tuple[Path, list[str]]:
    """A store and the verb that lists its runs."""
    path, _ = a_store(folder)
    return path, ["runs", "--db", str(path)]


KINDS: dict[str, tuple[Callable[[Path], tuple[Path, list[str]]], int]] = {
    "study": (a_study, 60),
    "campaign": (a_campaign, 40),
    "shared": (a_shared_file, 20),
    "columns": (columns, 16),
    "store, shown": (a_store, 60),
    "store, listed": (runs_of_a_store, 60),
}


# The runner checks the programs that a study starts, in a dry run too.
MARKED = [
    pytest.param(kind, marks=pytest.mark.real if kind in ("study", "shared") else ())
    for kind in KINDS
]


@pytest.mark.parametrize("kind", MARKED)
def test_no_damage_ends_in_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    make, count = KINDS[kind]
    path, words = make(tmp_path)
    assert CliRunner().invoke(app, words).exception is None
    refused = 0
    for damaged in damages(path.read_bytes(), 5, count):
        for beside in tmp_path.glob("*.db-*"):
            beside.unlink()
        path.unlink()  # connections of the last verb may still be open
        path.write_bytes(damaged)
        error = CliRunner().invoke(app, words).exception
        if error is not None:
            refused += 1
            assert isinstance(error, ConcurveError), error
            assert str(path.name) in error.what or RUN in error.what, error.what
            assert error.remedy
    assert refused > count // 4


def test_a_damaged_lock_names_an_unknown_holder_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "lock"
    monkeypatch.setenv("CONCURVE_LOCK", str(path))
    for damaged in damages(b"pid 4711, concurve run x (y)\n", 5, 60):
        path.write_bytes(damaged)
        with measurement_lock("a run"):
            assert path.read_bytes().endswith(b", a run\n")


def test_a_damaged_holder_is_gone_or_not_but_no_error() -> None:
    for damaged in damages(own_holder().encode(), 5, 200):
        is_gone(damaged.decode(errors="replace"))


def test_a_damaged_holder_in_a_store_hides_no_run(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    shutil.copy(GOLDEN, path)
    store = Store(str(path))
    store.set_state(RUN, "running", "")
    for damaged in damages(own_holder().encode(), 5, 60):
        with store._writing() as connection:
            connection.run(
                'UPDATE concurve_meta SET value = :value WHERE "key" LIKE :holder',
                value=damaged.decode(errors="replace"), holder="holder %",
            )  # fmt: skip
        assert RUN in [row.id for row in store.runs()]
    store.close()


# -- what is no file -----------------------------------------------------------------------------


def a_pipe_without_writer(path: Path) -> None:
    os.mkfifo(path)


def a_folder(path: Path) -> None:
    path.mkdir()


def a_device_without_end(path: Path) -> None:
    path.symlink_to("/dev/zero")


def an_empty_device(path: Path) -> None:
    path.symlink_to("/dev/null")


def a_socket(path: Path) -> None:
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as listener:
        listener.bind(str(path))


def nothing(path: Path) -> None:
    """A link to no file."""
    path.symlink_to(path.with_name("nowhere"))


NO_FILES = (
    a_pipe_without_writer,
    a_folder,
    a_device_without_end,
    an_empty_device,
    a_socket,
    nothing,
)


@pytest.mark.parametrize("what", NO_FILES)
@pytest.mark.parametrize("kind", MARKED)
def test_what_is_no_file_is_refused_by_name_and_at_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    what: Callable[[Path], None],
) -> None:
    monkeypatch.setattr(inputs, "PATIENCE_S", 0.05)
    monkeypatch.chdir(tmp_path)
    path, words = KINDS[kind][0](tmp_path)
    path.unlink()
    what(path)
    result = CliRunner().invoke(app, words)
    if kind.startswith("store") and what is nothing:
        return  # a new store is made where the link leads
    error = result.exception
    said = error.what if isinstance(error, ConcurveError) else result.output
    assert isinstance(error, ConcurveError | SystemExit), error
    assert path.name in said, said


def test_a_pipe_is_read_to_its_end_and_no_further_than_the_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reads, writes = os.pipe()
    path = Path(f"/proc/self/fd/{reads}")
    try:
        os.write(writes, b"n\r\n1\n")

        def write_more() -> None:
            os.write(writes, b"2\n")
            os.close(writes)

        later = threading.Timer(0.02, write_more)
        later.start()
        assert inputs.read_named_text(path) == "n\n1\n2\n"
        later.join()
        assert inputs.read_named(path) == b""
    finally:
        os.close(reads)
    monkeypatch.setattr(inputs, "BYTES_MAX", 100_000)
    reads, writes = os.pipe()

    def write_for_ever() -> None:
        with contextlib.suppress(OSError):
            while True:
                os.write(writes, bytes(4096))

    endless = threading.Thread(target=write_for_ever)
    endless.start()
    try:
        with pytest.raises(OSError, match="more than"):
            inputs.read_named(Path(f"/proc/self/fd/{reads}"))
    finally:
        os.close(reads)
        endless.join()
        os.close(writes)


def test_a_file_may_be_as_long_as_the_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inputs, "BYTES_MAX", 10)
    path = tmp_path / "file"
    path.write_bytes(bytes(10))
    assert inputs.read_named(path) == bytes(10)
    path.write_bytes(bytes(11))
    with pytest.raises(OSError, match="more than"):
        inputs.read_named(path)
