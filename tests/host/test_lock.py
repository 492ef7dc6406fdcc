"""One measurement at a time: who is refused, and when the lock is gone."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from concurve.errors import BusyError, HostError
from concurve.host import lock
from concurve.host.lock import (
    lock_path,
    measurement_lock,
    measurement_under_way,
    taken_lock,
)

HOLD = """
import subprocess, sys
from concurve.host.lock import measurement_lock
with measurement_lock("concurve run other (study)"):
    child = subprocess.Popen(["sleep", "3600"], stdout=subprocess.DEVNULL) if sys.argv[1:] else None
    print(child.pid if child else 0, flush=True)
    sys.stdin.read()
"""


def holder(*arguments: str) -> tuple[subprocess.Popen[str], int]:
    """Another process that holds the lock until its standard input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.communicate()


def test_a_second_measurement_is_refused_and_the_first_is_named() -> None:
    process, _ = holder()
    try:
        with pytest.raises(HostError) as refused, measurement_lock("mine"):
            pytest.fail("two at once")
        assert f"pid {process.pid}, concurve run other (study)" in refused.value.what
        assert "wait" in refused.value.remedy
    finally:
        end(process)


def test_the_lock_is_gone_with_a_holder_that_is_killed() -> None:
    process, _ = holder()
    end(process)
    with measurement_lock("mine"):
        assert f"pid {os.getpid()}, mine" in lock_path().read_text()


def test_a_child_does_not_keep_the_lock_of_a_killed_holder() -> None:
    process, child = holder("with a child")
    end(process)
    try:
        os.kill(child, 0)
        with measurement_lock("mine"):
            pass
    finally:
        os.kill(child, 9)


def test_it_is_free_again_after_use_and_after_an_error() -> None:
    for _ in range(2):
        with pytest.raises(RuntimeError), measurement_lock("mine"):
            raise RuntimeError
    with measurement_lock("mine"):
        pass


def test_within_one_process_it_is_held_once() -> None:
    with (
        measurement_lock("first"),
        pytest.raises(HostError, match="first"),
        measurement_lock("second"),
    ):
        pytest.fail("two at once")


def test_every_user_may_open_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CONCURVE_LOCK", str(tmp_path / "new"))
    mask = os.umask(0o077)
    try:
        with measurement_lock("mine"):
            pass
    finally:
        os.umask(mask)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o666


def test_a_lock_that_cannot_be_opened_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CONCURVE_LOCK", str(tmp_path / "no" / "folder"))
    with pytest.raises(HostError, match="cannot be opened: No such file"), measurement_lock("mine"):
        pass


@pytest.mark.parametrize(("mode", "is_shared"), [(0o1777, True), (0o755, False)])
def test_root_and_other_users_find_the_same_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: int, is_shared: bool
) -> None:
    """By who may write to the folder, and not by whether the caller may: root always may."""
    monkeypatch.delenv("CONCURVE_LOCK")
    monkeypatch.setattr(lock, "_SHARED", tmp_path)
    tmp_path.chmod(mode)
    assert lock_path() == (tmp_path if is_shared else Path("/tmp")) / lock.LOCK_NAME
    monkeypatch.setattr(lock, "_SHARED", tmp_path / "missing")
    assert lock_path() == Path("/tmp") / lock.LOCK_NAME


# -- a folder in which every user may make a file ------------------------------------------------


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The path of the lock in a folder of all users."""
    monkeypatch.delenv("CONCURVE_LOCK")
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    monkeypatch.setattr(lock, "_SHARED", folder)
    return folder / lock.LOCK_NAME


def links(path: Path, file: Path) -> None:
    path.symlink_to(file)


def names(path: Path, file: Path) -> None:
    path.hardlink_to(file)


def pipes(path: Path, file: Path) -> None:
    os.mkfifo(path)


def folders(path: Path, file: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("puts", [links, names, pipes, folders])
def test_what_another_user_has_put_in_its_place_is_refused_and_unharmed(
    shared: Path, tmp_path: Path, puts: Callable[[Path, Path], None]
) -> None:
    file = tmp_path / "letter"
    file.write_text("dear")
    puts(shared, file)
    raised: list[str] = []

    def hold() -> None:
        try:
            with measurement_lock("mine"):
                pass
        except HostError as error:
            raised.append(error.what)

    # In a thread: to open a pipe may take for ever.
    for work in (hold, measurement_under_way):
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join(60)
        assert not thread.is_alive()
    assert raised and "cannot be opened: " in raised[0]
    assert file.read_text() == "dear"


def test_little_is_read_of_a_lock_whatever_it_holds(shared: Path) -> None:
    with measurement_lock("mine"):
        with shared.open("r+b") as file:
            file.write(b"pid %d, " % os.getpid() + b"x\xff" * 500 + b"\n" * 10)
            file.truncate(1 << 32)
        assert 0 < len(measurement_under_way()) <= 400
        with pytest.raises(HostError) as refused, measurement_lock("second"):
            pytest.fail("two at once")
        assert len(refused.value.what) < 500


def test_two_that_make_it_at_once_hold_it_one_by_one(shared: Path) -> None:
    with measurement_lock("first"):
        assert shared.stat().st_mode & 0o777 == 0o666
        with pytest.raises(HostError, match="first"), measurement_lock("second"):
            pytest.fail("two at once")


def test_a_lock_that_is_named_may_be_a_link(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "lock").touch()
    (tmp_path / "link").symlink_to(tmp_path / "lock")
    monkeypatch.setenv("CONCURVE_LOCK", str(tmp_path / "link"))
    with measurement_lock("mine"):
        assert "mine" in measurement_under_way()


def test_a_lock_that_was_taken_in_one_thread_is_given_back_by_another() -> None:
    """As an agent does: what may take long has a thread of its own."""
    taken: list[int] = []
    thread = threading.Thread(target=lambda: taken.append(taken_lock("the first")))
    thread.start()
    thread.join()
    with pytest.raises(BusyError, match="the first"), measurement_lock("the second"):
        pass
    with pytest.raises(BusyError, match="the first"):
        taken_lock("the second")
    os.close(taken[0])
    with measurement_lock("the second"):
        pass
