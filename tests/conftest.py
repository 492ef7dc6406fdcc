"""Fixtures that several test modules share."""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import postgres as server


@pytest.fixture(autouse=True)
def _own_lock_and_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test has a store and a measurement lock of its own."""
    monkeypatch.setenv("CONCURVE_LOCK", str(tmp_path / "lock"))
    monkeypatch.setenv("CONCURVE_DB", str(tmp_path / "concurve.db"))


@pytest.fixture(scope="session")
def postgres() -> Iterator[server.Server]:
    """A PostgreSQL server of the tests' own, or the reason why there is none."""
    reason = server.missing()
    if reason is not None:
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="concurve-postgres-"))
    try:
        if os.geteuid() == 0:
            user = pwd.getpwnam(server.USER)
            shutil.chown(folder, user.pw_uid, user.pw_gid)
        with server.running(folder) as running:
            yield running
    finally:
        shutil.rmtree(folder, ignore_errors=True)
