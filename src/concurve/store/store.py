"""Runs, trials and campaigns, append-only. SQLite by default, PostgreSQL by URL.

A run or a campaign is read as interrupted when the process that was to run it has ended
(:mod:`~concurve.store.holder`).

Records are stored as the runner wrote them (compressed); the figures beside them are a cache for
fast views and can be recomputed from the records. Each trial is one transaction.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from concurve.errors import StoreError
from concurve.figures import heading_of
from concurve.secrets import KNOWN
from concurve.store.connections import Connection
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
    Outcomes,
    RecordRow,
    RunRow,
    Told,
    TrialKey,
    Trials,
    as_bytes,
)
from concurve.store.tables import insert
from concurve.words import did_you_mean, nearest

#: The reason of what is read as interrupted: its process could not say so itself.
ENDED = "its process has ended"

#: How the keys begin under which the holders of what is running are stored.
_HOLDER = "holder "

#: How many trials of a run have their records; and whether one of them has.
_WHOLE_TRIALS = (
    "SELECT count(*) FROM concurve_trials JOIN concurve_records "
    "ON concurve_records.trial = concurve_trials.id WHERE run = :run"
)
_WHOLE_TRIAL = f"{_WHOLE_TRIALS} AND cell = :cell AND block = :block AND attempt = :attempt"

_RUN = ", ".join(RunRow._fields)
_RUN_WITHOUT_HEAD = ", ".join(RunRow._fields[:-1])
_CAMPAIGN = ", ".join(CampaignRow._fields)
_MEMBER = ", ".join(MemberRow._fields)


#: So many of the runs that fit are named.
_NAMED_MAX = 5
_LONGER = "a longer id; concurve runs lists them all"


def _newest(found: Sequence[RunRow] | Sequence[CampaignRow]) -> str:
    """The ids of the rows, which are in the order of their beginning; of many the newest."""
    ids = ", ".join([row.id for row in found][: -_NAMED_MAX - 1 : -1])
    more = len(found) - _NAMED_MAX
    return f"{ids}, and {more} older ones" if more > 0 else ids


#: What stands for the newest run.
LAST = "last"


def _meant(name: str, rows: Sequence[RunRow]) -> str:
    """The study, or the last run, that was meant by a name that is nearly its own, as a remedy;
    empty without one."""
    known = {row.study.removeprefix("sweep-"): row.study for row in rows}
    known |= {LAST: LAST} if rows else {}
    near = nearest(name.removeprefix("sweep-"), known)
    return f"{did_you_mean(known[near])} " if near else ""


class Store(Database):
    """What is stored; open as a :class:`~concurve.store.database.Database`.

    Secrets that are known are hidden in all that is written (:mod:`concurve.secrets`).
    """

    def __init__(self, url: str | None = None, *, must_exist: bool = False) -> None:
        super().__init__(url, must_exist=must_exist)
        self._written: dict[str, int] = {}
        self._added: dict[str, str] = {}

    # -- writing --------------------------------------------------------------------------

    def add_run(self, row: RunRow) -> None:
        """Store a new run."""
        with self._writing() as connection:
            hidden = row._replace(head=KNOWN.hide_json(row.head))
            connection.run(insert("concurve_runs", row._fields), **hidden._asdict())
            _hold(connection, row.id, row.state)
        self._added[row.id] = "concurve_runs"

    def set_state(self, run: str, state: str, reason: str) -> None:
        """Set the state of a run and the reason for it. This process holds one that is running; of
        one that is complete, what was written is there.
        """
        with self._writing() as connection:
            connection.run(
                "UPDATE concurve_runs SET state = :state, reason = :reason WHERE id = :run",
                run=run, state=state, reason=KNOWN.hide(reason),
            )  # fmt: skip
            _hold(connection, run, state)
        if run in self._written:
            self._check_stored(_WHOLE_TRIALS, self._written[run], run=run)

    def set_head(self, run: str, head: bytes) -> None:
        """Replace the head of a run: its allowance may grow."""
        with self._writing() as connection:
            connection.run(
                "UPDATE concurve_runs SET head = :head WHERE id = :run",
                run=run, head=KNOWN.hide_json(head),
            )  # fmt: skip

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
            connection.run(insert("concurve_trials", row), **row)
            # Its number is found by its place: no two databases tell it alike.
            connection.run(
                "INSERT INTO concurve_records (trial, record) SELECT id, :record "
                "FROM concurve_trials WHERE run = :run AND cell = :cell AND block = :block "
                "AND attempt = :attempt",
                run=run, record=zlib.compress(KNOWN.hide_json(record), 1), **outcome.key._asdict(),
            )  # fmt: skip
            if run not in self._written:
                ((stored,),) = connection.run(_WHOLE_TRIALS, run=run)
                self._written[run] = stored - 1
        self._written[run] += 1
        self._check_stored(_WHOLE_TRIAL, 1, run=run, **outcome.key._asdict())

    def _written_rows(self) -> Iterator[tuple[str, dict[str, Any], int]]:
        """What this process has stored is there: its runs, campaigns and trials."""
        for name, table in self._added.items():
            yield f"SELECT count(*) FROM {table} WHERE id = :name", {"name": name}, 1
        for run, count in self._written.items():
            yield _WHOLE_TRIALS, {"run": run}, count

    def add_campaign(self, row: CampaignRow, members: Sequence[MemberRow]) -> None:
        """Store a new campaign with its studies."""
        fields = ("campaign", *MemberRow._fields)
        with self._writing() as connection:
            hidden = row._replace(head=KNOWN.hide_json(row.head))
            connection.run(insert("concurve_campaigns", row._fields), **hidden._asdict())
            _hold(connection, row.id, row.state)
            self._added[row.id] = "concurve_campaigns"
            connection.run_each(
                insert("concurve_campaign_studies", fields),
                [{"campaign": row.id, **member._asdict()} for member in members],
            )

    def set_campaign_state(self, campaign: str, state: str, reason: str) -> None:
        """Set the state of a campaign and the reason for it."""
        with self._writing() as connection:
            connection.run(
                "UPDATE concurve_campaigns SET state = :state, reason = :reason "
                "WHERE id = :campaign",
                campaign=campaign, state=state, reason=KNOWN.hide(reason),
            )  # fmt: skip
            _hold(connection, campaign, state)

    def set_member(self, campaign: str, member: MemberRow) -> None:
        """Store the state of a study of a campaign."""
        hidden = member._replace(reason=KNOWN.hide(member.reason))
        with self._writing() as connection:
            connection.run(
                "UPDATE concurve_campaign_studies SET name = :name, run = :run, state = :state, "
                "reason = :reason WHERE campaign = :campaign AND position = :position",
                campaign=campaign, **hidden._asdict(),
            )  # fmt: skip

    # -- reading --------------------------------------------------------------------------

    def campaigns(self, name: str | None = None) -> list[CampaignRow]:
        """All campaigns, the newest last."""
        if self._format < FORMAT_OF_CAMPAIGNS:
            return []
        query = f"SELECT {_CAMPAIGN} FROM concurve_campaigns"
        query += "" if name is None else " WHERE name = :name"
        with self._reading() as connection:
            found = connection.run(f"{query} ORDER BY started, id", name=name)
            rows = [CampaignRow._make((*row[:-1], as_bytes(row[-1]))) for row in found]
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
            said = f"{len(found)} campaigns begin with {name!r}: {_newest(found)}"
            raise StoreError(said, _LONGER)
        return found[0] if found else None

    def members(self, campaign: str) -> list[MemberRow]:
        """The studies of a campaign, in order."""
        query = (
            f"SELECT {_MEMBER} FROM concurve_campaign_studies "
            "WHERE campaign = :campaign ORDER BY position"
        )
        with self._reading() as connection:
            return [MemberRow(*row) for row in connection.run(query, campaign=campaign)]

    def campaign_of(self, run: str) -> CampaignRow | None:
        """The campaign that a run belongs to, if it does."""
        if self._format < FORMAT_OF_CAMPAIGNS:
            return None
        query = (
            f"SELECT {_CAMPAIGN} FROM concurve_campaigns WHERE id = "
            "(SELECT min(campaign) FROM concurve_campaign_studies WHERE run = :run)"
        )
        with self._reading() as connection:
            rows = connection.run(query, run=run)
        return CampaignRow._make((*rows[0][:-1], as_bytes(rows[0][-1]))) if rows else None

    def runs(self, study: str | None = None, with_heads: bool = True) -> list[RunRow]:
        """All runs, the newest last. Heads are large: without them, they are empty."""
        fields = _RUN if with_heads else f"{_RUN_WITHOUT_HEAD}, ''"
        query = f"SELECT {fields} FROM concurve_runs"
        query += "" if study is None else " WHERE study = :study"
        with self._reading() as connection:
            found = connection.run(f"{query} ORDER BY started, id", study=study)
            rows = [RunRow._make((*row[:-1], as_bytes(row[-1]))) for row in found]
            left = _left_behind(connection, [row.id for row in rows if row.state == RUNNING])
        return [
            row._replace(state=INTERRUPTED, reason=ENDED) if row.id in left else row for row in rows
        ]

    def run(self, id_: str) -> RunRow:
        """The run of exactly this id: who watches one run reads no other.

        Raises:
            StoreError: there is none.
        """
        query = f"SELECT {_RUN} FROM concurve_runs WHERE id = :id"
        with self._reading() as connection:
            found = connection.run(query, id=id_)
            if not found:
                raise StoreError(f"no run {id_!r} in {self.shown()}", "concurve runs lists them")
            row = RunRow._make((*found[0][:-1], as_bytes(found[0][-1])))
            left = row.state == RUNNING and _left_behind(connection, [row.id])
        return row._replace(state=INTERRUPTED, reason=ENDED) if left else row

    def find_run(self, name: str) -> RunRow:
        """A run by its id, the start of its id, ``last``, or the name of its study: the newest
        run of that study.

        Raises:
            StoreError: none or several fit.
        """
        rows = self.runs(with_heads=False)
        if name == LAST and rows:
            return self.run(rows[-1].id)
        found = [row for row in rows if row.id == name] or [
            row for row in rows if name and row.id.startswith(name)
        ]
        if len(found) == 1:
            return self.run(found[0].id)
        if found:
            raise StoreError(f"{len(found)} runs begin with {name!r}: {_newest(found)}", _LONGER)
        if named := [row for row in rows if row.study == name]:
            return self.run(named[-1].id)
        if (campaign := self.find_campaign(name)) is not None:
            raise StoreError(
                f"{name!r} is a campaign, not a run",
                f"concurve runs {campaign.id} lists its runs",
            )
        if not rows:
            raise StoreError(
                f"no run {name!r}: {self.shown()} has no runs",
                "concurve sweep and concurve run make one; --db names another store",
            )
        raise StoreError(
            f"no run {name!r} among the {len(rows)} in {self.shown()}",
            f"{_meant(name, rows)}concurve runs lists them, by id and study; --db names another "
            "store",
        )

    def trials(self, run: str) -> Trials:
        """The trials of a run in the order in which they were made, without records."""
        first = "SELECT figures FROM concurve_trials WHERE run = :run ORDER BY id LIMIT 1"
        # Nearly all trials are accepted at once, and their figures begin with the same names, which
        # are most of the bytes: of these only what differs is returned.
        usual = (
            "verdict = 'ok' AND attempt = 0 AND cause = '' AND detail = '' "
            "AND substr(figures, 1, :size) = :heading"
        )
        of_run = "FROM concurve_trials WHERE run = :run"
        usually = (
            "SELECT cell, block, value, seconds, "
            f"CASE WHEN {usual} THEN substr(figures, :size + 1) END {of_run} ORDER BY id"
        )
        else_ = (
            "SELECT attempt, verdict, cause, detail, figures "
            f"{of_run} AND NOT ({usual}) ORDER BY id"
        )
        with self._reading() as connection:
            found = connection.run(first, run=run)
            heading = heading_of(as_bytes(found[0][0])) if found else b""
            given = {"run": run, "heading": heading, "size": len(heading)}
            return Trials.stored(
                connection.batches(usually, **given),
                lambda: connection.run(else_, **given),
                heading,
            )

    def outcomes_after(self, run: str, last: int) -> tuple[int, Outcomes]:
        """The outcomes of a run that were stored after the one with the number ``last`` (0: all),
        and the number of the newest: who watches a run reads each of its trials once."""
        query = (
            "SELECT cell, block, attempt, verdict, value, seconds, cause, detail, id "
            "FROM concurve_trials WHERE run = :run AND id > :last ORDER BY id"
        )
        with self._reading() as connection:
            rows = connection.run(query, run=run, last=last)
        newest = int(rows[-1][-1]) if rows else last
        return newest, Outcomes.stored([row[:-1] for row in rows])

    def counts(self) -> dict[str, int]:
        """The number of stored trials of each run that has some."""
        query = "SELECT run, count(*) FROM concurve_trials GROUP BY run"
        with self._reading() as connection:
            return {run: int(count) for run, count in connection.run(query)}

    def not_plain(self) -> dict[str, list[Told]]:
        """The outcomes in their order of each run that has one with another verdict than ``ok``;
        all others have neither failures nor figures in doubt."""
        query = (
            "SELECT run, cell, block, verdict, cause, value IS NOT NULL FROM concurve_trials "
            "WHERE run IN (SELECT run FROM concurve_trials WHERE verdict <> 'ok') ORDER BY run, id"
        )
        found: dict[str, list[Told]] = {}
        with self._reading() as connection:
            for run, *of_trial in connection.read(query):
                found.setdefault(run, []).append(Told(*of_trial))
        return found

    def holder(self, name: str) -> str:
        """Who runs a run or a campaign that is running (:mod:`~concurve.store.holder`); empty where
        nobody is known to."""
        query = 'SELECT value FROM concurve_meta WHERE "key" = :name'
        with self._reading() as connection:
            rows = connection.run(query, name=_HOLDER + name)
        return str(rows[0][0]) if rows else ""

    def records(self, run: str, cell: int | None = None) -> Iterator[RecordRow]:
        """The raw records of a run, or of one cell of it, in order, one by one."""
        where = "run = :run" if cell is None else "run = :run AND cell = :cell"
        query = (
            "SELECT cell, block, attempt, record FROM concurve_trials "
            f"JOIN concurve_records ON trial = id WHERE {where} ORDER BY id"
        )
        with self._reading() as connection:
            for *key, record in connection.read(query, run=run, cell=cell):
                yield RecordRow(TrialKey(*key), _decompressed(record, TrialKey(*key), run))

    def first_record(self, run: str) -> bytes | None:
        """The raw record of a run's first trial."""
        return next((row.record for row in self.records(run)), None)

    def count(self, run: str) -> int:
        """Number of stored trials of a run."""
        query = "SELECT count(*) FROM concurve_trials WHERE run = :run"
        with self._reading() as connection:
            return int(connection.run(query, run=run)[0][0])

    def has_trials(self, run: str) -> bool:
        """Is the run stored, with at least one trial?"""
        return self.count(run) > 0


def _hold(connection: Connection, name: str, state: str) -> None:
    """Store this process as the holder of a run or a campaign that is running; of others, none."""
    key = _HOLDER + name
    connection.run('DELETE FROM concurve_meta WHERE "key" = :name', name=key)
    if state == RUNNING:
        connection.run(
            'INSERT INTO concurve_meta ("key", value) VALUES (:name, :holder)',
            name=key, holder=own_holder(),
        )  # fmt: skip


def _left_behind(connection: Connection, running: list[str]) -> set[str]:
    """Those of the running ones whose holder has ended."""
    if not running:
        return set()
    query = 'SELECT "key", value FROM concurve_meta WHERE "key" LIKE :holders'
    held = connection.run(query, holders=f"{_HOLDER}%")
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
