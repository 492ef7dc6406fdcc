"""Stored runs and campaigns → their reports. The records of a run are read once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from concurve.analysis.campaign import campaign_findings
from concurve.analysis.program import ProgramFacts
from concurve.analysis.records import FirstRecord, Reader, StoredRecord, read_records
from concurve.analysis.run import (
    RecordWarnings,
    StoredRun,
    analyse,
    stored_run,
    with_trials,
)
from concurve.analysis.timelines import TimelineReader
from concurve.analysis.workers import ShareReader
from concurve.findings.campaign import CampaignReport
from concurve.findings.run import Report, TrialFindings
from concurve.report.json.export import RawTrial
from concurve.store import Store
from concurve.store.rows import CampaignRow, RunRow, TrialKey


def report_of(store: Store, row: RunRow, raw: RawRecords | None = None) -> Report:
    """The report of a run, with its scaling models, the limits of each cell, the shares of workers,
    the timelines of CPUs and threads, and the facts of the measured program. ``raw`` also keeps
    each record as it is stored."""
    from concurve.analysis.granted import granted_cpus
    from concurve.analysis.scaling import scaling_of
    from concurve.explain import (
        AccountReader,
        ThreadTimelineReader,
        explained,
        may_explain,
        with_experiments,
    )

    run = stored_run(store, row)
    first, facts, shares = FirstRecord(run.first_key), ProgramFacts(run), ShareReader(run)
    accounts = AccountReader(run) if may_explain(run) else None
    timelines, threads = TimelineReader(run), ThreadTimelineReader(run)
    warnings = RecordWarnings(run)
    readers: list[Reader] = [first, facts, shares, timelines, threads]
    readers += warnings.readers
    readers += [accounts] if accounts is not None else []
    if raw is not None:
        raw.begin(run)
        readers.append(raw)
    read_records(store, row.id, readers)
    findings = with_trials(analyse(run, first.record, warned=warnings.found()), run)
    explanation = explained(findings, run.head, accounts)
    return Report.whole(
        findings,
        scaling=scaling_of(findings, granted_cpus(run.head, run.plan)),
        explanation=None if explanation is None else with_experiments(store, row, explanation),
        facts=facts.found(findings.cells),
        shares=shares.found(),
        timelines=timelines.found(),
        threads=threads.found(),
    )


def campaign_of(
    store: Store, row: CampaignRow, raw: dict[str, RawRecords] | None = None
) -> CampaignReport:
    """A campaign with the whole report of each of its runs; ``raw`` gets their records by the
    run's id."""

    def read(run: RunRow) -> Report:
        records = None if raw is None else raw.setdefault(run.id, RawRecords())
        return report_of(store, run, records)

    return campaign_findings(store, row, read)


@dataclass
class RawRecords:
    """Every record of a run as it is stored."""

    _cells: Collection[int] = ()
    _records: dict[TrialKey, bytes] = field(default_factory=dict)

    def begin(self, run: StoredRun) -> None:
        """The records of this run are to be kept."""
        self._cells = range(len(run.plan.cells))

    def cells(self) -> Collection[int]:
        """All cells."""
        return self._cells

    def wants(self, key: TrialKey) -> bool:
        """Every one."""
        return True

    def take(self, stored: StoredRecord) -> None:
        """Keep it."""
        self._records[stored.key] = stored.raw

    def has_all(self, cell: int) -> bool:
        """Always false: every record of a cell is needed."""
        return False

    def of(self, findings: TrialFindings) -> Iterator[RawTrial]:
        """Every raw trial with what became of it, in the form that the JSON export takes."""
        return raw_trials(findings, self._records.items())


def raw_trials(
    findings: TrialFindings, records: Iterable[tuple[TrialKey, bytes]]
) -> Iterator[RawTrial]:
    """Raw trials with what became of them, in the form that the JSON export takes."""
    used = {(dot.cell, dot.block, dot.attempt) for dot in findings.dots if dot.used}
    causes = {
        (reject.cell, reject.block, reject.attempt): f"{reject.cause}: {reject.detail}"
        for reject in findings.rejects
    }
    for key, record in records:
        yield (key.cell, key.block, key.attempt, tuple(key) in used, causes.get(key), record)
