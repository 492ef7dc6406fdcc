"""The processes behind a port of this machine."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from concurve.host.listening import serving

HEAD = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt uid inode\n"


def line(port: int, state: str, inode: int, width: int = 8) -> str:
    return (
        f"   0: {'0' * width}:{port:04X} {'0' * width}:0000 {state} 00000000:00000000 00:00000000 "
        f"00000000     0        0 {inode} 1 0000000000000000 100 0 0 10 0\n"
    )


def process(proc: Path, pid: int, parent: int, *inodes: int) -> None:
    folder = proc / str(pid)
    (folder / "fd").mkdir(parents=True)
    (folder / "stat").write_text(f"{pid} (a) b) S {parent} 1 1\n")
    (folder / "fd" / "0").symlink_to("/dev/null")
    for number, inode in enumerate(inodes, 3):
        (folder / "fd" / str(number)).symlink_to(f"socket:[{inode}]")


def test_the_processes_behind_a_port(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "net/tcp").write_text(
        HEAD + line(7379, "0A", 11) + line(7380, "0A", 12) + line(7379, "01", 13)
    )
    (tmp_path / "net/tcp6").write_text(HEAD + line(7379, "0A", 14, 32))
    process(tmp_path, 1, 0)
    process(tmp_path, 20, 1, 11)
    process(tmp_path, 21, 20)
    process(tmp_path, 22, 21)
    process(tmp_path, 30, 1, 12)
    process(tmp_path, 40, 1, 13)  # a client of it
    process(tmp_path, 50, 1, 14)
    assert serving(7379, tmp_path) == [20, 21, 22, 50]
    assert serving(7380, tmp_path) == [30]
    assert serving(7381, tmp_path) == []


def test_a_system_without_such_tables(tmp_path: Path) -> None:
    assert serving(7379, tmp_path) == []


def test_this_process_is_found() -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        assert os.getpid() in serving(listening.getsockname()[1])
