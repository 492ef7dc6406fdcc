"""Runs and trials, append-only. SQLite by default, PostgreSQL by URL.

Records stay raw as they came (compressed); the figures beside them are a cache for fast views
and can be recomputed from the records. Each trial is one transaction.

History of the format: 1 (2026-11) first version; 2 (2026-11) campaigns, in tables of their own.
An older store is brought up to date when it is opened; one that may only be read stays as it is,
and has no campaigns.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple, Self

import sqlalchemy as sa

from concurve.errors import StoreError
from concurve.measuring.protocol import Outcome, TrialKey
from concurve.store_place import check_there, default_url, open_engine, remedy

STORE_FORMAT = 2

#: The first format that has campaigns.
FORMAT_OF_CAMPAIGNS = 2

_tables = sa.MetaData()

_meta = sa.Table(
    "concurve_meta",
    _tables,
    sa.Column("key", sa.String(40), primary_key=True),
    sa.Column("value", sa.String(200), nullable=False),
)

_runs = sa.Table(
    "concurve_runs",
    _tables,
    sa.Column("id", sa.String(40), primary_key=True),
    sa.Column("study", sa.String(200), nullable=False, index=True),
    sa.Column("started", sa.String(40), nullable=False),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("head", sa.LargeBinary, nullable=False),
)

_trials = sa.Table(
    "concurve_trials",
    _tables,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("run", sa.ForeignKey("concurve_runs.id"), nullable=False),
    sa.Column("cell", sa.Integer, nullable=False),
    sa.Column("block", sa.Integer, nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("verdict", sa.String(20), nullable=False),
    sa.Column("cause", sa.Text, nullable=False),
    sa.Column("detail", sa.Text, nullable=False),
    sa.Column("value", sa.Float),
    sa.Column("seconds", sa.Float, nullable=False),
    sa.Column("figures", sa.LargeBinary, nullable=False),
    sa.UniqueConstraint("run", "cell", "block", "attempt"),
    sa.Index("concurve_trials_in_order", "run", "id"),
)

_records = sa.Table(
    "concurve_records",
    _tables,
    sa.Column("trial", sa.ForeignKey("concurve_trials.id"), primary_key=True),
    sa.Column("record", sa.LargeBinary, nullable=False),
)

_campaigns = sa.Table(
    "concurve_campaigns",
    _tables,
    sa.Column("id", sa.String(40), primary_key=True),
    sa.Column("name", sa.String(200), nullable=False, index=True),
    sa.Column("started", sa.String(40), nullable=False),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("head", sa.LargeBinary, nullable=False),
)

_members = sa.Table(
    "concurve_campaign_studies",
    _tables,
    sa.Column("campaign", sa.ForeignKey("concurve_campaigns.id"), primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("name", sa.String(200), nullable=False),
    # Written before the run itself is, so that no run is ever without its campaign.
    sa.Column("run", sa.String(40), nullable=False, index=True),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
)


#: Statements that keep other makers of a store out until the transaction ends.
_ALONE = {"sqlite": "BEGIN IMMEDIATE", "postgresql": "SELECT pg_advisory_xact_lock(20261121)"}

_FORMAT_QUERY = sa.select(_meta.c.value).where(_meta.c.key == "format")


class RunRow(NamedTuple):
    """A run as listed; ``head`` is the encoded :class:`concurve.measuring.run_head.RunHead`."""

    id: str
    study: str
    started: str
    state: str
    reason: str
    head: bytes


class CampaignRow(NamedTuple):
    """A campaign as listed; ``head`` is an encoded
    :class:`~concurve.measuring.campaign_head.CampaignHead`."""

    id: str
    name: str
    started: str
    state: str
    reason: str
    head: bytes


class MemberRow(NamedTuple):
    """A study of a campaign: the ``run`` it has (``""``: none yet) and what became of it:
    ``planned``, ``begun``, ``complete``, ``failed`` or ``not run``."""

    position: int
    name: str
    run: str = ""
    state: str = "planned"
    reason: str = ""


class TrialRow(NamedTuple):
    """A stored trial without its record."""

    outcome: Outcome
    figures: bytes


class RecordRow(NamedTuple):
    """A stored trial's raw record."""

    key: TrialKey
    record: bytes


class Store:
    """Open with a file path or a database URL."""

    def __init__(self, url: str | None = None) -> None:
        self.url = url or default_url()
        self._engine = open_engine(self.url)
        with self._errors("opened"):
            self._format = self._stored_format()
            if self._format < STORE_FORMAT:
                self._bring_up_to_date()
            self._keep_a_log()

    @classmethod
    def existing(cls, url: str | None = None) -> Self:
        """Open for reading: a file that is not there is a slip, and no store is made of it.

        Raises:
            StoreError: there is none, or it cannot be opened.
        """
        url = url or default_url()
        check_there(url)
        return cls(url)

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    # -- writing --------------------------------------------------------------------------

    def add_run(self, row: RunRow) -> None:
        """Store a new run."""
        with self._errors("written"), self._engine.begin() as connection:
            connection.execute(_runs.insert().values(row._asdict()))

    def set_state(self, run: str, state: str, reason: str) -> None:
        """Set the state of a run and the reason for it."""
        with self._errors("written"), self._engine.begin() as connection:
            connection.execute(
                _runs.update().where(_runs.c.id == run).values(state=state, reason=reason)
            )

    def set_head(self, run: str, head: bytes) -> None:
        """Replace the head of a run: its allowance may grow."""
        with self._errors("written"), self._engine.begin() as connection:
            connection.execute(_runs.update().where(_runs.c.id == run).values(head=head))

    def add_trial(self, run: str, outcome: Outcome, figures: bytes, record: bytes) -> None:
        """Store one trial, whole or not at all."""
        row = {
            "run": run,
            **outcome.key._asdict(),
            "verdict": outcome.verdict,
            "cause": outcome.cause,
            "detail": outcome.detail,
            "value": outcome.value,
            "seconds": outcome.seconds,
            "figures": figures,
        }
        with self._errors("written"), self._engine.begin() as connection:
            result = connection.execute(_trials.insert().values(row))
            assert result.inserted_primary_key is not None
            connection.execute(
                _records.insert().values(
                    trial=result.inserted_primary_key[0], record=zlib.compress(record, 1)
                )
            )

    def add_campaign(self, row: CampaignRow, members: Sequence[MemberRow]) -> None:
        """Store a new campaign with its studies."""
        rows = [{"campaign": row.id, **member._asdict()} for member in members]
        with self._errors("written"), self._engine.begin() as connection:
            connection.execute(_campaigns.insert().values(row._asdict()))
            connection.execute(_members.insert(), rows)

    def set_campaign_state(self, campaign: str, state: str, reason: str) -> None:
        """Set the state of a campaign and the reason for it."""
        changed = _campaigns.update().where(_campaigns.c.id == campaign)
        with self._errors("written"), self._engine.begin() as connection:
            connection.execute(changed.values(state=state, reason=reason))

    def set_member(self, campaign: str, member: MemberRow) -> None:
        """Write what became of a study of a campaign."""
        c = _members.c
        changed = _members.update().where(c.campaign == campaign, c.position == member.position)
        with self._errors("written"), self._engine.begin() as connection:
            connection.execute(changed.values(member._asdict()))

    # -- reading --------------------------------------------------------------------------

    def campaigns(self, name: str | None = None) -> list[CampaignRow]:
        """All campaigns, the newest last."""
        if self._format < FORMAT_OF_CAMPAIGNS:
            return []
        query = sa.select(_campaigns).order_by(_campaigns.c.started, _campaigns.c.id)
        if name is not None:
            query = query.where(_campaigns.c.name == name)
        with self._errors("read"), self._engine.connect() as connection:
            return [CampaignRow(*row) for row in connection.execute(query)]

    def find_campaign(self, name: str) -> CampaignRow | None:
        """A campaign by its id or the start of its id, or the newest one of a name; ``None``
        where there is none.

        Raises:
            StoreError: several begin with this.
        """
        rows = self.campaigns()
        exact = [row for row in rows if row.id == name] or [row for row in rows if row.name == name]
        if exact:
            return exact[-1]
        found = [row for row in rows if name.startswith("c2") and row.id.startswith(name)]
        if len(found) > 1:
            ids = ", ".join(row.id for row in found[:5])
            raise StoreError(f"{len(found)} campaigns begin with {name!r}: {ids}", "a longer id")
        return found[0] if found else None

    def members(self, campaign: str) -> list[MemberRow]:
        """The studies of a campaign, in order."""
        c = _members.c
        query = (
            sa.select(c.position, c.name, c.run, c.state, c.reason)
            .where(c.campaign == campaign)
            .order_by(c.position)
        )
        with self._errors("read"), self._engine.connect() as connection:
            return [MemberRow(*row) for row in connection.execute(query)]

    def campaign_of(self, run: str) -> CampaignRow | None:
        """The campaign that a run belongs to, if it does."""
        if self._format < FORMAT_OF_CAMPAIGNS:
            return None
        query = sa.select(_campaigns).join_from(_campaigns, _members).where(_members.c.run == run)
        with self._errors("read"), self._engine.connect() as connection:
            row = connection.execute(query).first()
        return None if row is None else CampaignRow(*row)

    def runs(self, study: str | None = None) -> list[RunRow]:
        """All runs, the newest last."""
        query = sa.select(_runs).order_by(_runs.c.started, _runs.c.id)
        if study is not None:
            query = query.where(_runs.c.study == study)
        with self._errors("read"), self._engine.connect() as connection:
            return [RunRow(*row) for row in connection.execute(query)]

    def find_run(self, name: str) -> RunRow:
        """A run by its id, the start of its id, or ``last``.

        Raises:
            StoreError: none or several fit.
        """
        rows = self.runs()
        if name == "last" and rows:
            return rows[-1]
        found = [row for row in rows if row.id == name] or [
            row for row in rows if name and row.id.startswith(name)
        ]
        if len(found) == 1:
            return found[0]
        if found:
            ids = ", ".join(row.id for row in found[:5])
            raise StoreError(f"{len(found)} runs begin with {name!r}: {ids}", "a longer id")
        if self.find_campaign(name) is not None:
            raise StoreError(
                f"{name!r} is a campaign, not a run", f"concurve runs {name} lists its runs"
            )
        raise StoreError(
            f"no run {name!r} among the {len(rows)} in {self.shown()}",
            "concurve runs lists them; --db names another store",
        )

    def trials(self, run: str) -> list[TrialRow]:
        """The trials of a run in the order in which they were made, without records."""
        c = _trials.c
        query = (
            sa.select(c.cell, c.block, c.attempt, c.verdict, c.value, c.seconds, c.cause,
                      c.detail, c.figures)
            .where(c.run == run)
            .order_by(c.id)
        )  # fmt: skip
        with self._errors("read"), self._engine.connect() as connection:
            # All at once: one by one takes twice as long.
            return [
                TrialRow(
                    Outcome(TrialKey(cell, block, attempt), verdict, value, seconds, cause, detail),
                    figures,
                )
                for cell, block, attempt, verdict, value, seconds, cause, detail, figures in (
                    connection.execute(query).all()
                )
            ]

    def records(self, run: str, cell: int | None = None) -> Iterator[RecordRow]:
        """The raw records of a run, or of one cell of it, in order, one by one."""
        c = _trials.c
        query = (
            sa.select(c.cell, c.block, c.attempt, _records.c.record)
            .join_from(_trials, _records)
            .where(c.run == run)
            .order_by(c.id)
        )
        if cell is not None:
            query = query.where(c.cell == cell)
        with self._errors("read"), self._engine.connect() as connection:
            rows = connection.execution_options(yield_per=256).execute(query)
            for *key, record in rows:
                yield RecordRow(TrialKey(*key), zlib.decompress(record))

    def first_record(self, run: str) -> bytes | None:
        """The raw record of a run's first trial."""
        return next((row.record for row in self.records(run)), None)

    def count(self, run: str) -> int:
        """Number of stored trials of a run."""
        query = sa.select(sa.func.count()).where(_trials.c.run == run)
        with self._errors("read"), self._engine.connect() as connection:
            return int(connection.execute(query).scalar_one())

    def has_trials(self, run: str) -> bool:
        """Is the run stored, with at least one trial?"""
        return self.count(run) > 0

    def shown(self) -> str:
        """The store's place without a password."""
        return self._engine.url.render_as_string(hide_password=True)

    # -- inside ---------------------------------------------------------------------------

    def _stored_format(self) -> int:
        """Before anything is touched: is it a store, and one that this version understands?
        0 for a new one.

        Raises:
            StoreError: it is something else.
        """
        with self._engine.connect() as connection:
            tables = sa.inspect(connection).get_table_names()
            if _meta.name not in tables:
                self._check_foreign(tables)
                return 0
            stored = connection.execute(_FORMAT_QUERY).scalar()
        if stored is None:
            return 0
        if stored.isdigit() and int(stored) <= STORE_FORMAT:
            return int(stored)
        raise StoreError(
            f"{self.shown()} has store format {stored}, this version reads up to "
            f"{STORE_FORMAT}; nothing was changed",
            "a newer version of concurve, or another --db",
        )

    def _check_foreign(self, tables: list[str]) -> None:
        """A file with tables of others was hardly meant; a server's database may have them."""
        foreign = sorted(name for name in tables if not name.startswith("concurve_"))
        if foreign and self._engine.dialect.name == "sqlite":
            raise StoreError(
                f"{self.shown()} holds other tables ({', '.join(foreign[:3])}) and no runs; "
                "nothing was changed",
                "another file: --db FILE",
            )

    def _bring_up_to_date(self) -> None:
        """Make the tables that are missing and write the format. An older store that may not be
        changed is read as it is."""
        try:
            self._make_tables()
        except sa.exc.DBAPIError:
            if self._format == 0:
                raise
            return
        self._format = STORE_FORMAT

    def _make_tables(self) -> None:
        """Whole or not at all, and alone: another process may open the same store."""
        alone = _ALONE[self._engine.dialect.name]
        with self._engine.begin() as connection:
            connection.exec_driver_sql(alone)
            _tables.create_all(connection)
            row = {"key": "format", "value": str(STORE_FORMAT)}
            if connection.execute(_FORMAT_QUERY).scalar() is None:
                connection.execute(_meta.insert().values(row))
            else:
                connection.execute(_meta.update().where(_meta.c.key == "format").values(row))

    def _keep_a_log(self) -> None:
        """SQLite's write-ahead log: others see a run while it goes on. The file remembers it."""
        if self._engine.dialect.name != "sqlite":
            return
        with self._engine.connect() as connection, suppress(sa.exc.OperationalError):
            # Refused where another process does it now, or where the file may only be read.
            if connection.exec_driver_sql("PRAGMA journal_mode").scalar() != "wal":
                connection.exec_driver_sql("PRAGMA journal_mode=WAL")

    @contextmanager
    def _errors(self, verb: str) -> Iterator[None]:
        """Database errors in our words; what was stored before stays."""
        try:
            yield
        except (sa.exc.SQLAlchemyError, sqlite3.Error, OSError) as error:
            text = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
            raise StoreError(
                f"the store {self.shown()} could not be {verb}: {text}", remedy(text)
            ) from error
