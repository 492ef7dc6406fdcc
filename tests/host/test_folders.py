"""The folders of a user, who may have no home."""

from __future__ import annotations

import pwd
from pathlib import Path

import pytest

from concurve.attendants.attendant import AttendantError
from concurve.attendants.servers.data import originals
from concurve.attendants.servers.postgresql import PostgreSQL
from concurve.errors import StoreError
from concurve.host.folders import cache_folder, data_folder
from concurve.store import Store

VARIABLES = ("HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "CONCURVE_DB",
             "CONCURVE_POSTGRESQL_18")  # fmt: skip


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user whom the machine does not know, as a container's may be."""

    def unknown(number: int) -> None:
        raise KeyError(f"getpwuid(): uid not found: {number}")

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_the_folders_are_named_or_in_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/one")
    assert data_folder() == Path("/home/one/.local/share")
    assert cache_folder() == Path("/home/one/.cache")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert (data_folder(), cache_folder()) == (Path("/data"), Path("/cache"))


@pytest.mark.usefixtures("homeless")
def test_who_has_no_home_is_told_what_to_name(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="has no home folder") as refused:
        Store()
    assert "--db FILE or CONCURVE_DB=FILE" in refused.value.remedy
    with pytest.raises(AttendantError, match="no home folder; XDG_CACHE_HOME names a place"):
        originals()
    # A store that is named needs no home, nor does the search for servers.
    Store(str(tmp_path / "s.db")).close()
    assert PostgreSQL("18").places() == ["/usr/lib/postgresql/18", "/opt/concurve/postgresql/18"]
