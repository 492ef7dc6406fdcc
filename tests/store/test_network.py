"""Which mounts are of a network, by made-up lines of ``mountinfo``."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from concurve.store import Store, network
from concurve.store.network import is_on_network

_MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:30 / /home rw,relatime shared:2 - nfs4 server:/home rw,vers=4.2
31 30 8:2 / /home/local rw,relatime - xfs /dev/sdb1 rw
32 22 0:31 / /mnt/my\\040disk rw - fuse.sshfs host:/x rw
33 22 0:32 / /data rw - nfs server:/data rw
34 33 8:3 / /data rw - ext4 /dev/sdc1 rw
not a line
"""


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("/var/c.db", False),
        ("/home/ann/c.db", True),
        ("/homes/c.db", False),
        ("/home/local/c.db", False),
        ("/mnt/my disk/c.db", True),
        ("/data/c.db", False),
    ],
)
def test_the_mount_that_holds_a_file_tells(tmp_path: Path, place: str, expected: bool) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(_MOUNTS)
    assert is_on_network(Path(place), mounts) is expected
    assert not is_on_network(Path(place), tmp_path / "absent")


def test_a_store_of_several_machines_has_no_write_ahead_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def mode(file: Path) -> str:
        with contextlib.closing(sqlite3.connect(file)) as connection:
            return str(connection.execute("PRAGMA journal_mode").fetchone()[0])

    Store(str(tmp_path / "own.db")).close()
    assert mode(tmp_path / "own.db") == "wal"
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"22 1 0:30 / {tmp_path.resolve()} rw - nfs4 server:/x rw\n")
    monkeypatch.setattr(
        "concurve.store.sqlite.is_on_network", lambda file: network.is_on_network(file, mounts)
    )
    Store(str(tmp_path / "own.db")).close()
    Store(str(tmp_path / "new.db")).close()
    assert mode(tmp_path / "own.db") == mode(tmp_path / "new.db") == "delete"
