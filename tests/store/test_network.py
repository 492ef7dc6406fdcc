"""Which mounts are of a network, by made-up lines of ``mountinfo``."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from concurve.host.mounts import mount_of, parse_mounts
from concurve.store import Store
from concurve.store.network import is_of_network, is_on_network

_MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:30 / /home rw,relatime shared:2 - nfs4 server:/home rw,vers=4.2
31 30 8:2 / /home/local rw,relatime - xfs /dev/sdb1 rw
32 22 0:31 / /mnt/my\\040disk rw - fuse.sshfs host:/x rw
33 22 0:32 / /snap rw - fuse.squashfuse /dev/loop0 rw
"""


def test_the_type_of_a_mount_tells_a_network() -> None:
    found = {str(mount.where): is_of_network(mount) for mount in parse_mounts(_MOUNTS)}
    assert found == {
        "/": False,
        "/home": True,
        "/home/local": False,
        "/mnt/my disk": True,
        "/snap": False,
    }


def test_a_file_that_is_not_there_is_on_no_network(tmp_path: Path) -> None:
    assert not is_on_network(tmp_path / "absent")
    file = tmp_path / "here"
    file.touch()
    mount = mount_of(file)
    assert mount is not None and is_on_network(file) == is_of_network(mount)


def test_a_store_of_several_machines_has_no_write_ahead_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mode(file: Path) -> str:
        with contextlib.closing(sqlite3.connect(file)) as connection:
            return str(connection.execute("PRAGMA journal_mode").fetchone()[0])

    Store(str(tmp_path / "own.db")).close()
    assert mode(tmp_path / "own.db") == "wal"
    monkeypatch.setattr("concurve.store.sqlite.is_on_network", lambda file: True)
    Store(str(tmp_path / "own.db")).close()
    Store(str(tmp_path / "new.db")).close()
    assert mode(tmp_path / "own.db") == mode(tmp_path / "new.db") == "delete"
