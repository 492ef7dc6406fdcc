"""Damaged files, full disks, foreign kinds of files and stopped processes under the real server."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from concurve.host import native
from tests.helpers.engine_kills import PROCESSES
from tests.helpers.needs import small_file_system
from tests.helpers.real import stop, wait_until
from tests.helpers.resp import DEADLINE_S, Client, ReplyError, Server, missing, serving

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

REST = "x" * 88
BEFORE, AFTER = 2_000, 300


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that was killed: records, a checkpoint, and acknowledged records after it."""
    folder = tmp_path_factory.mktemp("killed") / "data"
    with serving("--service", "records", "--folder", str(folder)) as server:
        with contextlib.closing(Client(server.port)) as client:
            client("CREATE", "f", 100, "KEY", "0:12:text")
            client("FILL", "f", 1, BEFORE, REST)
            client("CHECKPOINT")
            for number in range(BEFORE + 1, BEFORE + AFTER + 1):
                client("INSERT", "f", f"{number:012}{REST}")
        server.end(signal.SIGKILL)
    return folder


def copied(folder: Path, to: Path) -> Path:
    return Path(shutil.copytree(folder, to / "data"))


def newest_log(folder: Path) -> Path:
    return max(folder.glob("log-*"))


def last_byte(path: Path) -> int:
    """Where the last byte stands that is not zero."""
    return len(path.read_bytes().rstrip(b"\0")) - 1


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 0x55
    path.write_bytes(content)


def run(*options: str) -> subprocess.CompletedProcess[str]:
    """A server that is expected to end by itself."""
    line = [str(native.binary("concurve-server")), "--port", "0", *options]
    return subprocess.run(line, capture_output=True, text=True, timeout=DEADLINE_S, check=False)


def refusal(folder: Path) -> str:
    ended = run("--service", "records", "--folder", str(folder))
    assert ended.returncode == 1, ended
    return ended.stderr


def found(folder: Path) -> int | str:
    """How many records a server finds, or what it says."""
    server = Server("--service", "records", "--folder", str(folder))
    try:
        server.wait_until_ready()
        with contextlib.closing(Client(server.port)) as client:
            return int(client("COUNT", "f"))
    except AssertionError as error:
        return str(error)
    finally:
        server.end()


def test_a_killed_store_has_all_that_was_acknowledged(killed: Path, tmp_path: Path) -> None:
    assert found(copied(killed, tmp_path)) == BEFORE + AFTER


@pytest.mark.parametrize("before_end", [0, 1, 17, 200, 5_000, 50_000])
def test_a_byte_of_the_log_that_is_flipped_is_told(
    killed: Path, tmp_path: Path, before_end: int
) -> None:
    folder = copied(killed, tmp_path)
    log = newest_log(folder)
    flip(log, last_byte(log) - before_end)
    text = refusal(folder)
    assert log.name in text and " byte " in text and "--salvage" in text, text
    assert "panicked" not in text


def test_a_log_that_is_cut_or_missing_is_told(killed: Path, tmp_path: Path) -> None:
    folder = copied(killed, tmp_path)
    log = newest_log(folder)
    os.truncate(log, last_byte(log) // 2)
    assert f"{log.name} of the log ends at byte" in refusal(folder)
    log.unlink()
    assert f"{log.name} of the log is missing" in refusal(folder)


@pytest.mark.parametrize("length", [0, 32, 8192, 20_000, 8 * 8192])
def test_a_data_file_that_is_cut_is_mended_or_told(
    killed: Path, tmp_path: Path, length: int
) -> None:
    """The pages that were written last are mended from pages.double, if that is there."""
    folder = copied(killed, tmp_path)
    os.truncate(folder / "data-f", length)
    (folder / "pages.double").unlink()
    text = refusal(folder)
    assert "data-f" in text and " byte " in text, text
    assert "panicked" not in text
    shutil.copy(killed / "pages.double", folder)
    os.truncate(folder / "data-f", length)
    outcome = found(folder)
    if outcome != BEFORE + AFTER:
        assert isinstance(outcome, str) and "data-f" in outcome and " byte " in outcome


def test_what_is_whole_is_saved_and_the_damaged_folder_stays_as_it_is(
    killed: Path, tmp_path: Path
) -> None:
    folder, new = copied(killed, tmp_path), tmp_path / "new"
    log = newest_log(folder)
    flip(log, last_byte(log) - 50_000)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    options = ("--service", "records", "--folder", str(folder), "--salvage", str(new))
    ended = run(*options)
    assert ended.returncode == 0, ended
    saved = found(new)
    assert isinstance(saved, int) and BEFORE < saved < BEFORE + AFTER
    assert f"saved f: {saved} records\n" in ended.stdout
    assert f"the file {log.name}" in ended.stdout and "whole records" in ended.stdout
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    again = run(*options)
    assert again.returncode == 1 and "not empty" in again.stderr
    assert run("--folder", str(folder), "--salvage", str(new)).returncode == 2


def test_no_client_is_accepted_before_the_recovery_has_ended(tmp_path: Path) -> None:
    """A start that is refused at the last page has never listened."""
    folder = tmp_path / "data"
    options = ("--service", "records", "--folder", str(folder))
    with serving(*options) as server, contextlib.closing(Client(server.port)) as client:
        client("CREATE", "f", 1000, "KEY", "0:12:text")
        for first in range(0, 40_000, 5_000):
            client("FILL", "f", first + 1, first + 5_000, "x" * 988)
    flip(folder / "data-f", (folder / "data-f").stat().st_size - 100)
    (folder / "pages.double").unlink()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    line = [str(native.binary("concurve-server")), "--port", str(port), *options]
    process = subprocess.Popen(line, stderr=subprocess.PIPE, text=True)
    accepted = 0
    while process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            accepted += 1
    _, stderr = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 1 and "data-f" in stderr
    assert accepted == 0


def foreign(kind: str, folder: Path) -> Path:
    """A file of a kind that is no regular one."""
    if kind.startswith("/"):
        return Path(kind)
    path = folder / kind
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(path))
    elif kind == "link":
        path.symlink_to("/dev/full")
    else:
        assert kind == "block device"
        try:
            os.mknod(path, stat.S_IFBLK | 0o600, os.makedev(7, 250))
        except PermissionError:
            pytest.skip("only root may make a device")
    return path


KINDS = ("/dev/full", "/dev/null", "pipe", "folder", "socket", "link", "block device")


@pytest.mark.parametrize("name", ["locks", "locks.new"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_backup_that_is_no_regular_file_is_refused(tmp_path: Path, kind: str, name: str) -> None:
    """The file, and the second one into which it is compacted."""
    path = tmp_path / name
    path.symlink_to(foreign(kind, tmp_path))
    ended = run("--backup", str(tmp_path / "locks"))
    assert ended.returncode == 1, ended
    assert str(path) in ended.stderr and "panicked" not in ended.stderr
    if name == "locks":
        assert "name a regular file" in ended.stderr


def test_a_pipe_in_a_folder_of_records_is_refused(killed: Path, tmp_path: Path) -> None:
    folder = copied(killed, tmp_path)
    os.mkfifo(folder / "data-pipe")
    assert "data-pipe" in refusal(folder)


def lock(client: Client, number: int) -> None:
    assert client("LOCK", "T", f"argument {number}", "E", "SCOPE", 2, "BACKUP") == 1


@pytest.fixture(scope="module")
def killed_backup(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A backup file of 20 locks, and its second file, whose server was killed."""
    path = tmp_path_factory.mktemp("backup") / "locks"
    with serving("--backup", str(path)) as server:
        with contextlib.closing(Client(server.port)) as client:
            for number in range(20):
                lock(client, number)
        server.end(signal.SIGKILL)
    return path


def held(path: Path) -> int | str:
    """How many locks a server reads from the file, or what it says."""
    server = Server("--backup", str(path))
    try:
        server.wait_until_ready()
        with contextlib.closing(Client(server.port)) as client:
            return len(client.locks())
    except AssertionError as error:
        return str(error)
    finally:
        server.end()


def test_no_damage_of_a_backup_file_loses_a_lock_silently(
    killed_backup: Path, tmp_path: Path
) -> None:
    whole = killed_backup.read_bytes()
    other = killed_backup.with_name("locks.new")
    cases: dict[str, bytes | None] = {"deleted": None, "doubled": whole + whole}
    for at in (0, 3, 16, 17, 20, 30, 36, 37, 41, 50, len(whole) // 2, len(whole) - 1):
        cases[f"flipped at {at}"] = whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :]
        cases[f"cut at {at}"] = whole[:at]
        cases[f"zero from {at}"] = whole[:at] + bytes(len(whole) - at)
    wrong = {}
    for number, (name, content) in enumerate(cases.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = folder / "locks"
        shutil.copy(other, folder)
        if content is not None:
            path.write_bytes(content)
        outcome = held(path)
        is_told = isinstance(outcome, str) and str(path) in outcome and "panicked" not in outcome
        if outcome != 20 and not is_told:
            wrong[name] = outcome
    assert not wrong


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB in memory."""
    with small_file_system(tmp_path / "small", 64 << 10) as folder:
        yield folder


VARIANTS = {
    "worker": (),
    "two workers": ("--engine-count", "2", "--io-threads", "2"),
    "engine replies": ("--replies", "engine"),
    "inline": ("--execution", "inline", "--io-threads", "2"),
    "spinning": ("--idle", "spin:50"),
    "processes": PROCESSES,
}


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS.keys())
def test_a_full_disk_under_the_backup_ends_the_server(
    small_disk: Path, variant: tuple[str, ...]
) -> None:
    """At once, with the reason: no further connection is needed."""
    server = Server("--backup", str(small_disk / "locks"), *variant)
    server.wait_until_ready()
    try:
        with (
            contextlib.closing(Client(server.port)) as client,
            pytest.raises((OSError, ReplyError)),
        ):
            for number in range(100_000):
                lock(client, number)
        server.process.wait(DEADLINE_S)
    finally:
        stderr = server.end(signal.SIGKILL)
    assert server.process.returncode == 1
    assert "locks" in stderr and "No space left" in stderr


SERVICES = ("locks", "records", "statements")


def of_service(service: str, folder: Path) -> tuple[str, ...]:
    return () if service == "locks" else ("--service", service, "--folder", str(folder / "data"))


def stopped_among_clients(options: tuple[str, ...], idle_s: float) -> tuple[list[str], str, int]:
    """Stop an engine that was left alone so long, and let eight clients come: their answers, and
    how the server ended."""
    answered: list[str] = []
    with serving(*options) as server:
        stopped = server.engines()[0]
        time.sleep(idle_s)
        stop(stopped)

        def ask() -> None:
            with contextlib.closing(Client(server.port)) as client, contextlib.suppress(OSError):
                answered.append(client("PING"))

        clients = [threading.Thread(target=ask) for _ in range(8)]
        for thread in clients:
            thread.start()
        for thread in clients:
            thread.join(DEADLINE_S)
        wait_until(lambda: stopped not in server.engines(), "its end")
        wait_until(lambda: len(server.engines()) == 2, "its successor", of=server)
        stderr = server.end()
    return answered, stderr, server.process.returncode


@pytest.mark.parametrize("service", SERVICES)
def test_a_stopped_engine_gets_no_clients_and_is_replaced(tmp_path: Path, service: str) -> None:
    for attempt in range(5):
        options = (*PROCESSES, *of_service(service, tmp_path / str(attempt)))
        # One that was stopped with a latch takes the others with it, and their clients. At its
        # start it makes files and a checkpoint under latches, which takes as long as the disk.
        answered, stderr, code = stopped_among_clients(options, idle_s=0.5 * 2**attempt)
        if "all engines are ended" not in stderr:
            break
    assert answered == ["PONG"] * 8, stderr
    assert "engine 1 was stopped by SIGSTOP, and answers no client" in stderr
    assert "there is a new engine 1" in stderr
    assert code == 0


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("which", [1, 2], ids=["keeper", "engine"])
def test_a_server_with_a_stopped_process_ends_on_request(
    tmp_path: Path, which: int, service: str
) -> None:
    with serving(*PROCESSES, *of_service(service, tmp_path)) as server:
        stop(server.processes()[which])
        time.sleep(0.1)
        begin = time.monotonic()
        stderr = server.end()
    assert time.monotonic() - begin < DEADLINE_S / 2
    assert "was stopped by SIGSTOP" in stderr


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("model", [("--io-threads", "2"), ("--execution", "inline")])
def test_engines_that_are_threads_stop_and_continue_with_their_process(
    tmp_path: Path, model: tuple[str, ...], service: str
) -> None:
    """Nobody can answer then, and a request to end is obeyed as soon as the process continues."""
    with (
        serving(*model, *of_service(service, tmp_path)) as server,
        contextlib.closing(Client(server.port)) as client,
    ):
        stop(server.process.pid)
        client.send("PING")
        os.kill(server.process.pid, signal.SIGCONT)
        assert client.reply() == "PONG"
        stop(server.process.pid)
        server.process.send_signal(signal.SIGTERM)
        os.kill(server.process.pid, signal.SIGCONT)
        server.process.wait(DEADLINE_S)
    assert server.process.returncode == 0


def test_an_engine_that_continues_is_kept() -> None:
    with serving(*PROCESSES) as server:
        engines = server.engines()
        stop(engines[0])
        time.sleep(1)
        os.kill(engines[0], signal.SIGCONT)
        time.sleep(6)
        assert server.engines() == engines
        with contextlib.closing(Client(server.port)) as client:
            assert client("PING") == "PONG"
    assert server.process.returncode == 0
