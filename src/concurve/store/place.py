"""Where a store is: a file or the URL of a database, and what to try when it cannot be reached."""

from __future__ import annotations

import os
import sqlite3
from functools import partial
from pathlib import Path
from typing import NamedTuple

from concurve.errors import StoreError
from concurve.host.folders import data_folder, no_home
from concurve.secrets import KNOWN
from concurve.store.connections import Connections
from concurve.store.file import StoreFile

#: A database that is gone with its connection.
_IN_MEMORY = ":memory:"


def default_url() -> str:
    """``CONCURVE_DB``, else a file in the user's data folder.

    Raises:
        StoreError: the user has no such folder.
    """
    given = os.environ.get("CONCURVE_DB")
    if given:
        return given
    data = data_folder()
    if data is None:
        raise StoreError(
            f"there is no place for the store: {no_home()}",
            "--db FILE or CONCURVE_DB=FILE, or a folder of your own as HOME",
        )
    return str(data / "concurve" / "concurve.db")


class Place(NamedTuple):
    """The connections to a store, and its file where it has one."""

    connections: Connections
    file: StoreFile | None


def open_place(url: str) -> Place:
    """The place of a store. It is connected later; the file and its folder are made now.

    Raises:
        StoreError: no such kind of database, no driver, no folder, or a malformed URL.
    """
    path = _file(url)
    return _sqlite(path) if path is not None else _postgresql(KNOWN.reveal(url))


def check_there(url: str) -> None:
    """Refuse a path without a file; a database server is checked when connecting.

    Raises:
        StoreError: the file does not exist, or its folder may not be entered.
    """
    path = _file(url)
    if path is None:
        return
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError, ValueError):  # the last one: no path at all
        raise no_store(str(path)) from None
    except OSError as error:
        raise StoreError(
            f"the store {path} cannot be reached: {error.strerror}",
            "a store that you may read: --db FILE or CONCURVE_DB",
        ) from error


def no_store(shown: str) -> StoreError:
    """The error of a place without a store."""
    return StoreError(
        f"there is no store {shown}",
        "concurve sweep and concurve run make one; --db or CONCURVE_DB names another",
    )


def _file(url: str) -> Path | None:
    """The file of a store in SQLite."""
    if "://" in url and not url.startswith("sqlite:///"):
        return None
    return Path(KNOWN.reveal(url.removeprefix("sqlite:///")))


def _sqlite(path: Path) -> Place:
    from concurve.store.sqlite import ERROR, SqliteConnection

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"the folder of the store {path} cannot be made: {error.strerror}",
            "a folder you may write to: --db FILE or CONCURVE_DB",
        ) from error
    shown = str(path)
    if str(path) == _IN_MEMORY:
        connect = partial(SqliteConnection, partial(sqlite3.connect, _IN_MEMORY))
        return Place(Connections(shown, connect, ERROR, is_file=True), None)
    file = StoreFile(path.absolute())  # a run that is resumed goes to its own folder
    file.make()
    connect = partial(SqliteConnection, file.connect)
    return Place(Connections(shown, connect, ERROR, is_file=True), file)


def _postgresql(url: str) -> Place:
    scheme = url.partition("://")[0]
    if scheme not in ("postgresql", "postgres"):
        raise StoreError(f"a database of kind {scheme!r} is no store", "a file, or postgresql://…")
    try:
        from concurve.store.postgresql import ERROR, PostgresqlConnection
    except ModuleNotFoundError as error:
        raise StoreError(
            f"the driver for PostgreSQL is not installed: {error}",
            "pip install 'concurve[postgresql]'",
        ) from error
    connect = partial(PostgresqlConnection, url)
    return Place(Connections(KNOWN.hide(_without_password(url)), connect, ERROR), None)


def _without_password(url: str) -> str:
    """A URL of PostgreSQL as it is shown; its options may hold a password, too.

    Raises:
        StoreError: it is malformed.
    """
    import urllib.parse  # for servers alone: it takes longer to import than a file to open

    try:
        parts = urllib.parse.urlsplit(url)
        user, port = parts.username, parts.port
    except ValueError as error:
        # Without the URL: it may hold a password.
        raise StoreError(
            "the URL of the store is malformed", "postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
        ) from error
    place = f"{parts.hostname or ''}{f':{port}' if port else ''}{parts.path}"
    if user is None:
        return f"{parts.scheme}://{place}"
    hidden = ":***" if parts.password is not None else ""
    return f"{parts.scheme}://{user}{hidden}@{place}"


_REMEDIES = {
    "disk is full": "free some space, then concurve resume last: every finished trial is stored",
    "readonly": "a folder you may write to: --db FILE or CONCURVE_DB",
    "unable to open": "a folder that exists and that you may write to: --db FILE or CONCURVE_DB",
    "not a database": "another file: --db FILE",
    "is locked": "wait until the other process is done with it",
    "disk i/o": "another disk: --db FILE; what was stored before is intact",
    "malformed": "a copy of the file, and sqlite3 FILE .recover",
    "password": "the right user and password in the URL",
    "refused": "check that the PostgreSQL server runs, and its port",
}


def remedy(text: str) -> str:
    """The remedy for an error message of the database."""
    lowered = text.lower()
    return next((remedy for sign, remedy in _REMEDIES.items() if sign in lowered), "another --db")
