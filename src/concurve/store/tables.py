"""The tables of a store, as statements that make those that are missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from concurve.store.connections import Types

META = "concurve_meta"
"""Keys with their values: the format, and who holds what is running."""

# Trials are unique by their place in the plan. The run of a campaign's study is written before the
# run itself, so that every run of a campaign has its campaign.
_STATEMENTS = (
    """CREATE TABLE IF NOT EXISTS concurve_meta (
        "key" VARCHAR(40) NOT NULL,
        value VARCHAR(200) NOT NULL,
        PRIMARY KEY ("key")
    )""",
    """CREATE TABLE IF NOT EXISTS concurve_runs (
        id VARCHAR(40) NOT NULL,
        study VARCHAR(200) NOT NULL,
        started VARCHAR(40) NOT NULL,
        state VARCHAR(20) NOT NULL,
        reason TEXT NOT NULL,
        head {blob} NOT NULL,
        PRIMARY KEY (id)
    )""",
    "CREATE INDEX IF NOT EXISTS ix_concurve_runs_study ON concurve_runs (study)",
    """CREATE TABLE IF NOT EXISTS concurve_trials (
        id {number} NOT NULL,
        run VARCHAR(40) NOT NULL,
        cell INTEGER NOT NULL,
        block INTEGER NOT NULL,
        attempt INTEGER NOT NULL,
        verdict VARCHAR(20) NOT NULL,
        cause TEXT NOT NULL,
        detail TEXT NOT NULL,
        value FLOAT,
        seconds FLOAT NOT NULL,
        figures {blob} NOT NULL,
        PRIMARY KEY (id),
        UNIQUE (run, cell, block, attempt),
        FOREIGN KEY (run) REFERENCES concurve_runs (id)
    )""",
    "CREATE INDEX IF NOT EXISTS concurve_trials_in_order ON concurve_trials (run, id)",
    """CREATE TABLE IF NOT EXISTS concurve_records (
        trial INTEGER NOT NULL,
        record {blob} NOT NULL,
        PRIMARY KEY (trial),
        FOREIGN KEY (trial) REFERENCES concurve_trials (id)
    )""",
    """CREATE TABLE IF NOT EXISTS concurve_campaigns (
        id VARCHAR(40) NOT NULL,
        name VARCHAR(200) NOT NULL,
        started VARCHAR(40) NOT NULL,
        state VARCHAR(20) NOT NULL,
        reason TEXT NOT NULL,
        head {blob} NOT NULL,
        PRIMARY KEY (id)
    )""",
    "CREATE INDEX IF NOT EXISTS ix_concurve_campaigns_name ON concurve_campaigns (name)",
    """CREATE TABLE IF NOT EXISTS concurve_campaign_studies (
        campaign VARCHAR(40) NOT NULL,
        position INTEGER NOT NULL,
        name VARCHAR(200) NOT NULL,
        run VARCHAR(40) NOT NULL,
        state VARCHAR(20) NOT NULL,
        reason TEXT NOT NULL,
        PRIMARY KEY (campaign, position),
        FOREIGN KEY (campaign) REFERENCES concurve_campaigns (id)
    )""",
    """CREATE INDEX IF NOT EXISTS ix_concurve_campaign_studies_run
        ON concurve_campaign_studies (run)""",
)


def making(types: Types) -> Iterator[str]:
    """The statements that make the tables and indexes that are missing."""
    return (statement.format(**types._asdict()) for statement in _STATEMENTS)


def insert(table: str, columns: Iterable[str]) -> str:
    """The statement that stores a row with these columns."""
    names = list(columns)
    values = ", ".join(f":{name}" for name in names)
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({values})"
