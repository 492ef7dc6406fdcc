"""Folders of killed processes are removed; nothing is that another user has put in their place."""

from __future__ import annotations

import fcntl
import os
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from concurve.host import temporary
from concurve.host.temporary import PREFIX, free_segment, remove_abandoned, temporary_folder

#: Lines of a PostgreSQL of process 77 with the segment 5.
POSTMASTER = "77\n/data\n1\n5432\n/tmp\nlocalhost\n 123 5\nready\n"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The temporary folder of these tests."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    return tmp_path / "tmp"


def left(folder: Path) -> Path:
    """What a killed process has left: a folder with a lock that nobody holds; a file in it."""
    (folder / "data").mkdir(parents=True)
    (folder / ".lock").touch()
    kept = folder / "data" / "kept"
    kept.write_text("kept")
    return kept


def ends(work: Callable[[], object]) -> bool:
    """Does it end? Only a hang takes as long."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(60)
    return not thread.is_alive()


def test_a_folder_that_was_left_is_removed(place: Path) -> None:
    left(place / f"{PREFIX}x")
    remove_abandoned()
    assert list(place.iterdir()) == []


def test_a_folder_in_use_stays_and_is_removed_at_its_end(place: Path) -> None:
    with temporary_folder() as folder:
        (folder / "used").touch()
        remove_abandoned()
        assert (folder / "used").exists()
    assert list(place.iterdir()) == []


def test_a_link_leads_to_nothing_that_is_removed(place: Path, tmp_path: Path) -> None:
    kept = left(tmp_path / "home")
    (place / f"{PREFIX}x").symlink_to(tmp_path / "home")
    inner = place / f"{PREFIX}y"
    inner.mkdir()
    (inner / ".lock").touch()
    (inner / "data").symlink_to(tmp_path / "home")
    linked = place / f"{PREFIX}z"
    (linked / "data").mkdir(parents=True)
    (linked / ".lock").symlink_to(tmp_path / "home" / ".lock")
    remove_abandoned()
    assert kept.read_text() == "kept"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a folder to another user")
def test_the_folder_of_another_user_stays(place: Path) -> None:
    kept = left(place / f"{PREFIX}x")
    os.chown(place / f"{PREFIX}x", 65534, 65534)
    remove_abandoned()
    assert kept.exists()


def test_a_pipe_in_place_of_the_lock_keeps_nobody_waiting(place: Path) -> None:
    kept = left(place / f"{PREFIX}x")
    (place / f"{PREFIX}x" / ".lock").unlink()
    os.mkfifo(place / f"{PREFIX}x" / ".lock")
    assert ends(remove_abandoned)
    assert kept.exists()


def test_a_pipe_in_place_of_the_file_of_a_server_keeps_nobody_waiting(place: Path) -> None:
    left(place / f"{PREFIX}x")
    os.mkfifo(place / f"{PREFIX}x" / "data" / "postmaster.pid")
    assert ends(remove_abandoned)
    assert list(place.iterdir()) == []


@pytest.mark.parametrize(("maker", "user", "is_freed"), [(77, 0, True), (78, 0, False),
                                                         (77, 1, False)])  # fmt: skip
def test_a_segment_is_freed_for_the_server_and_the_user_that_made_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, maker: int, user: int, is_freed: bool
) -> None:
    freed: list[int] = []

    class Libc:
        @staticmethod
        def shmctl(segment: int, *_: object) -> None:
            freed.append(segment)

    (tmp_path / "postmaster.pid").write_text(POSTMASTER)
    monkeypatch.setattr(temporary, "_LIBC", Libc)
    monkeypatch.setattr(temporary, "_maker", lambda segment: (maker, os.geteuid() + user))
    free_segment(tmp_path)
    assert freed == [5] * is_freed


def test_a_locked_folder_is_left_to_its_process(place: Path) -> None:
    kept = left(place / f"{PREFIX}x")
    with (place / f"{PREFIX}x" / ".lock").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        remove_abandoned()
        assert kept.exists()
    remove_abandoned()
    assert not kept.exists()


def test_a_folder_is_never_taken_for_one_that_was_left(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process looks for what was left at the moment before the lock is taken."""
    real, looked = fcntl.flock, list[int]()

    def flock(file: int, operation: int) -> None:
        if operation == fcntl.LOCK_EX and not looked:
            looked.append(file)
            remove_abandoned()
        real(file, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    with temporary_folder() as folder:
        assert folder.is_dir()
        remove_abandoned()
        assert folder.is_dir()
    assert looked and not list(place.iterdir())
