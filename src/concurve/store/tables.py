"""The tables of a store."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

METADATA = sa.MetaData()


class _Bytes(sa.LargeBinary):
    """Bytes. SQLite keeps any type in any column: another one, in a damaged store, is read as the
    bytes of its text, so that whoever decodes them can name the run and the trial."""

    def result_processor(self, dialect: sa.Dialect, coltype: object) -> Callable[[Any], bytes]:
        """Bytes as they are stored."""

        def process(value: Any) -> bytes:
            if isinstance(value, bytes):
                return value
            return bytes(value) if isinstance(value, memoryview) else str(value).encode()

        return process


meta = sa.Table(
    "concurve_meta",
    METADATA,
    sa.Column("key", sa.String(40), primary_key=True),
    sa.Column("value", sa.String(200), nullable=False),
)

runs = sa.Table(
    "concurve_runs",
    METADATA,
    sa.Column("id", sa.String(40), primary_key=True),
    sa.Column("study", sa.String(200), nullable=False, index=True),
    sa.Column("started", sa.String(40), nullable=False),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("head", _Bytes, nullable=False),
)

trials = sa.Table(
    "concurve_trials",
    METADATA,
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
    sa.Column("figures", _Bytes, nullable=False),
    sa.UniqueConstraint("run", "cell", "block", "attempt"),
    sa.Index("concurve_trials_in_order", "run", "id"),
)

records = sa.Table(
    "concurve_records",
    METADATA,
    sa.Column("trial", sa.ForeignKey("concurve_trials.id"), primary_key=True),
    sa.Column("record", _Bytes, nullable=False),
)

campaigns = sa.Table(
    "concurve_campaigns",
    METADATA,
    sa.Column("id", sa.String(40), primary_key=True),
    sa.Column("name", sa.String(200), nullable=False, index=True),
    sa.Column("started", sa.String(40), nullable=False),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("head", _Bytes, nullable=False),
)

members = sa.Table(
    "concurve_campaign_studies",
    METADATA,
    sa.Column("campaign", sa.ForeignKey("concurve_campaigns.id"), primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("name", sa.String(200), nullable=False),
    # Written before the run itself, so that every run of a campaign has its campaign.
    sa.Column("run", sa.String(40), nullable=False, index=True),
    sa.Column("state", sa.String(20), nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
)
