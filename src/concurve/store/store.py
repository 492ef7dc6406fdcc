"""Runs, trials and campaigns, append-only. SQLite by default, PostgreSQL by URL.

A run or a campaign is read as interrupted when the process that was to run it has ended
(:mod:`~concurve.store.holder`).

Records are stored as the runner wrote them (compressed); the figures beside them are a cache for
fast views and can be recomputed from the records. Each trial is one transaction.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

import sqlalchemy as sa

from concurve.errors import StoreError
from concurve.secrets import KNOWN
from concurve.store import tables
from concurve.store.database import FORMAT_OF_CAMPAIGNS, Database
from concurve.store.holder import is_gone, own_holder
from concurve.store.rows import (
    CAMPAIGN_PREFIX,
    DAMAGED_TRIAL_REMEDY,
    INTERRUPTED,
    RUNNING,
    CampaignRow,
    MemberRow,
    Outcome,
    RecordRow,
    RunRow,
    TrialKey,
    TrialRow,
)

#: The reason of what is read as interrupted: its process could not say so itself.
ENDED = "its process has ended"

#: How the keys begin under which the holders of what is running are stored.
_HOLDER = "holder "


class Store(Database):
    """What is stored; open as a :class:`~concurve.store.database.Database`.

    Secrets that are known are hidden in all that is written (:mod:`concurve.secrets`).
    """

    def __init__(self, url: str | None = None) -> None:
        super().__init__(url)
        self._written: dict[str, int] = {}

    # -- writing --------------------------------------------------------------------------

    def add_run(self, row: RunRow) -> None:
        """Store a new run."""
        with self._writing() as connection:
            hidden = row._replace(head=KNOWN.hide_json(row.head))
            connection.execute(tables.runs.insert().values(hidden._asdict()))
            _hold(connection, row.id, row.state)

    def set_state(self, run: str, state: str, reason: str) -> None:
        """Set the state of a run and the reason for it. This process holds one that is running; of
        one that is complete, what was written is there.
        """
        with self._writing() as connection:
            connection.execute(
                tables.runs.update()
                .where(tables.runs.c.id == run)
                .values(state=state, reason=KNOWN.hide(reason))
            )
            _hold(connection, run, state)
        if run in self._written:
            self._check_stored(_whole_trials(run), self._written[run])

    def set_head(self, run: str, head: bytes) -> None:
        """Replace the head of a run: its allowance may grow."""
        changed = tables.runs.update().where(tables.runs.c.id == run)
        with self._writing() as connection:
            connection.execute(changed.values(head=KNOWN.hide_json(head)))

    def add_trial(self, run: str, outcome: Outcome, figures: bytes, record: bytes) -> None:
        """Store one trial, completely or not at all."""
        row = {
            "run": run,
            **outcome.key._asdict(),
            "verdict": outcome.verdict,
            "cause": KNOWN.hide(outcome.cause),
            "detail": KNOWN.hide(outcome.detail),
            "value": outcome.value,
            "seconds": outcome.seconds,
            "figures": figures,
        }
        with self._writing() as connection:
            result = connection.execute(tables.trials.insert().values(row))
            assert result.inserted_primary_key is not None
            trial = result.inserted_primary_key[0]
            packed = zlib.compress(KNOWN.hide_json(record), 1)
            connection.execute(tables.records.insert().values(trial=trial, record=packed))
            if run not in self._written:
                stored = connection.execute(_whole_trials(run)).scalar_one()
                self._written[run] = int(stored) - 1
        self._written[run] += 1
        self._check_stored(_whole_trials(run, trial), 1)

    def add_campaign(self, row: CampaignRow, members: Sequence[MemberRow]) -> None:
        """Store a new campaign with its studies."""
        rows = [{"campaign": row.id, **member._asdict()} for member in members]
        with self._writing() as connection:
            hidden = row._replace(head=KNOWN.hide_json(row.head))
            connection.execute(tables.campaigns.insert().values(hidden._asdict()))
            _hold(connection, row.id, row.state)
            connection.execute(tables.members.insert(), rows)

    def set_campaign_state(self, campaign: str, state: str, reason: str) -> None:
        """Set the state of a campaign and the reason for it."""
        changed = tables.campaigns.update().where(tables.campaigns.c.id == campaign)
        with self._writing() as connection:
            connection.execute(changed.values(state=state, reason=KNOWN.hide(reason)))
            _hold(connection, campaign, state)

    def set_member(self, campaign: str, member: MemberRow) -> None:
        """Store the state of a study of a campaign."""
        c = tables.members.c
        changed = tables.members.update().where(
            c.campaign == campaign, c.position == member.position
        )
        with self._writing() as connection:
            hidden = member._replace(reason=KNOWN.hide(member.reason))
            connection.execute(changed.values(hidden._asdict()))

    # -- reading --------------------------------------------------------------------------

    def campaigns(self, name: str | None = None) -> list[CampaignRow]:
        """All campaigns, the newest last."""
        if self._format < FORMAT_OF_CAMPAIGNS:
            return []
        query = sa.select(tables.campaigns).order_by(
            tables.campaigns.c.started, tables.campaigns.c.id
        )
        if name is not None:
            query = query.where(tables.campaigns.c.name == name)
        with self._errors("read"), self._engine.connect() as connection:
            rows = [CampaignRow(*row) for row in connection.execute(query)]
            left = _left_behind(connection, [row.id for row in rows if row.state == RUNNING])
        return [
            row._replace(state=INTERRUPTED, reason=ENDED) if row.id in left else row for row in rows
        ]

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
        # The prefix alone, or nothing, stands for no campaign.
        found = [
            row for row in rows if len(name) > len(CAMPAIGN_PREFIX) and row.id.startswith(name)
        ]
        if len(found) > 1:
            ids = ", ".join(row.id for row in found[:5])
            raise StoreError(f"{len(found)} campaigns begin with {name!r}: {ids}", "a longer id")
        return found[0] if found else None

    def members(self, campaign: str) -> list[MemberRow]:
        """The studies of a campaign, in order."""
        c = tables.members.c
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
        query = (
            sa.select(tables.campaigns)
            .join_from(tables.campaigns, tables.members)
            .where(tables.members.c.run == run)
        )
        with self._errors("read"), self._engine.connect() as connection:
            row = connection.execute(query).first()
        return None if row is None else CampaignRow(*row)

    def runs(self, study: str | None = None) -> list[RunRow]:
        """All runs, the newest last."""
        query = sa.select(tables.runs).order_by(tables.runs.c.started, tables.runs.c.id)
        if study is not None:
            query = query.where(tables.runs.c.study == study)
        with self._errors("read"), self._engine.connect() as connection:
            rows = [RunRow(*row) for row in connection.execute(query)]
            left = _left_behind(connection, [row.id for row in rows if row.state == RUNNING])
        return [
            row._replace(state=INTERRUPTED, reason=ENDED) if row.id in left else row for row in rows
        ]

    def find_run(self, name: str) -> RunRow:
        """A run by its id, the start of its id, ``last``, or the name of its study: the newest
        run of that study.

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
        if named := [row for row in rows if row.study == name]:
            return named[-1]
        if self.find_campaign(name) is not None:
            raise StoreError(
                f"{name!r} is a campaign, not a run", f"concurve runs {name} lists its runs"
            )
        raise StoreError(
            f"no run {name!r} among the {len(rows)} in {self.shown()}",
            "concurve runs lists them, by id and study; --db names another store",
        )

    def trials(self, run: str) -> list[TrialRow]:
        """The trials of a run in the order in which they were made, without records."""
        c = tables.trials.c
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
        c = tables.trials.c
        query = (
            sa.select(c.cell, c.block, c.attempt, tables.records.c.record)
            .join_from(tables.trials, tables.records)
            .where(c.run == run)
            .order_by(c.id)
        )
        if cell is not None:
            query = query.where(c.cell == cell)
        with self._errors("read"), self._engine.connect() as connection:
            rows = connection.execution_options(yield_per=256).execute(query)
            for *key, record in rows:
                yield RecordRow(TrialKey(*key), _decompressed(record, TrialKey(*key), run))

    def first_record(self, run: str) -> bytes | None:
        """The raw record of a run's first trial."""
        return next((row.record for row in self.records(run)), None)

    def count(self, run: str) -> int:
        """Number of stored trials of a run."""
        query = sa.select(sa.func.count()).where(tables.trials.c.run == run)
        with self._errors("read"), self._engine.connect() as connection:
            return int(connection.execute(query).scalar_one())

    def has_trials(self, run: str) -> bool:
        """Is the run stored, with at least one trial?"""
        return self.count(run) > 0


def _whole_trials(run: str, trial: int | None = None) -> sa.Select[int]:
    """How many trials of a run have their records; or whether this one has."""
    c = tables.trials.c
    query = (
        sa.select(sa.func.count())
        .select_from(tables.trials)
        .join(tables.records)
        .where(c.run == run)
    )
    return query if trial is None else query.where(c.id == trial)


def _hold(connection: sa.Connection, name: str, state: str) -> None:
    """Store this process as the holder of a run or a campaign that is running; of others, none."""
    key = _HOLDER + name
    connection.execute(tables.meta.delete().where(tables.meta.c.key == key))
    if state == RUNNING:
        connection.execute(tables.meta.insert().values(key=key, value=own_holder()))


def _left_behind(connection: sa.Connection, running: list[str]) -> set[str]:
    """Those of the running ones whose holder has ended."""
    if not running:
        return set()
    c = tables.meta.c
    held = connection.execute(sa.select(c.key, c.value).where(c.key.startswith(_HOLDER)))
    gone = {key.removeprefix(_HOLDER) for key, holder in held if is_gone(holder)}
    return gone & set(running)


def _decompressed(stored: bytes, key: TrialKey, run: str) -> bytes:
    """A record as the runner wrote it.

    Raises:
        StoreError: it is damaged. A damaged database may hold text in place of bytes.
    """
    try:
        return zlib.decompress(stored)
    except (zlib.error, TypeError) as error:
        raise StoreError(
            f"the record of {key.shown(run)} is damaged: {error}", DAMAGED_TRIAL_REMEDY
        ) from error
