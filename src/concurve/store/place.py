"""Where a store is: a file or the URL of a database, and what to try when it cannot be reached."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from concurve.errors import StoreError
from concurve.host.folders import data_folder, no_home


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


def open_engine(url: str) -> sa.Engine:
    """The SQLAlchemy engine of a store. It connects later; the folder of a file is created now.

    Raises:
        StoreError: no such kind of database, no driver, no folder, or a malformed URL.
    """
    path = _file(url)
    if path is not None:
        return _sqlite(path)
    scheme, rest = url.split("://", 1)
    if scheme not in ("postgresql", "postgres"):
        raise StoreError(f"a database of kind {scheme!r} is no store", "a file, or postgresql://…")
    try:
        return sa.create_engine(f"postgresql+psycopg://{rest}", pool_pre_ping=True)
    except ModuleNotFoundError as error:
        raise StoreError(
            f"the driver for PostgreSQL is not installed: {error}",
            "pip install 'concurve[postgresql]'",
        ) from error
    except (sa.exc.SQLAlchemyError, ValueError) as error:
        # Without the URL: it may hold a password.
        raise StoreError(
            "the URL of the store is malformed", "postgresql://USER:PASSWORD@HOST:PORT/DATABASE"
        ) from error


def check_there(url: str) -> None:
    """Refuse a path without a file; a database server is checked when connecting.

    Raises:
        StoreError: the file does not exist.
    """
    path = _file(url)
    if path is not None and not path.exists():
        raise StoreError(
            f"there is no store {path}",
            "concurve sweep and concurve run make one; --db or CONCURVE_DB names another",
        )


def _file(url: str) -> Path | None:
    """The file of a store in SQLite."""
    if "://" in url and not url.startswith("sqlite:///"):
        return None
    return Path(url.removeprefix("sqlite:///"))


def _sqlite(path: Path) -> sa.Engine:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"the folder of the store {path} cannot be made: {error.strerror}",
            "a folder you may write to: --db FILE or CONCURVE_DB",
        ) from error
    engine = sa.create_engine(f"sqlite:///{path}", connect_args={"timeout": 20})

    @sa.event.listens_for(engine, "connect")
    def _configure(connection: Any, _: Any) -> None:
        cursor = connection.cursor()
        # Full sync: a committed trial survives a crash of the machine.
        for pragma in ("synchronous=FULL", "foreign_keys=ON"):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    return engine


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
