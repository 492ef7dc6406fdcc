"""Stored records → what single workers or clients did, for reports."""

from __future__ import annotations

import msgspec

from concurve.findings.cells import CellFindings
from concurve.findings.run import Findings
from concurve.findings.workers import CellShares, WorkerShares
from concurve.readings.fairness_measures import FAIRNESS
from concurve.store import Store
from concurve.store.run_head import decode_head
from concurve.wire import decode_record
from concurve.wire.record import TrialRecord

#: Cells that are shown: of those with most workers.
_CELLS_MAX = 8


def with_shares(findings: Findings, store: Store) -> Findings:
    """The findings with the shares of single workers, where the study asks how even they are: by an
    indicator of fairness, such as ``load.session_operations_cv``."""
    ending, name = next(
        ((ending, name) for name in findings.asked for ending in FAIRNESS
         if name.endswith(f"_{ending}")), ("", ""),
    )  # fmt: skip
    if not name:
        return findings
    of = name.removesuffix(f"_{ending}")
    role, _, indicator = of.rpartition(".")
    role = role or decode_head(store.find_run(findings.run.id)).study.target
    shares = []
    for cell in _cells(findings, name):
        record = _middle(cell, findings, name, store)
        if record is not None:
            own = _shares(record, role, indicator)
            shares.append(CellShares(parameters=cell.parameters, shares=own))
    if not shares:
        return findings
    known = [cell for cell in findings.cells if cell.indicators.get(name)]
    return msgspec.structs.replace(
        findings,
        shares=WorkerShares(
            indicator=of,
            label=indicator.replace("_", " "),
            factors=tuple(f.name for f in findings.factors if len(f.levels) > 1),
            cells=tuple(shares),
            remark=f"{len(shares)} of {len(known)} cells." if len(shares) < len(known) else "",
        ),
    )


def _cells(findings: Findings, name: str) -> list[CellFindings]:
    """Those with most workers, of the cells that have the figure."""
    cells = [cell for cell in findings.cells if cell.indicators.get(name)]
    work = findings.work
    if work is not None:
        levels = [level for level in work.levels if any(c.parameters[work.name] == level
                                                        for c in cells)]  # fmt: skip
        cells = [cell for cell in cells if cell.parameters[work.name] == levels[-1]]
    return cells[:_CELLS_MAX]


def _middle(cell: CellFindings, findings: Findings, name: str, store: Store) -> TrialRecord | None:
    """The trial whose figure of fairness is the middle one of those in use."""
    dots = [d for d in findings.dots if d.cell == cell.index and d.used and name in d.values]
    if not dots:
        return None
    dot = sorted(dots, key=lambda it: it.values[name])[(len(dots) - 1) // 2]
    records = store.records(findings.run.id, cell.index)
    found = (raw for key, raw in records if (key.block, key.attempt) == (dot.block, dot.attempt))
    raw = next(found, None)
    return decode_record(raw) if raw else None


def _shares(record: TrialRecord, role: str, indicator: str) -> tuple[float, ...]:
    """By worker, in the order of their first reports; several reports of one are added."""
    sums: dict[str, float] = {}
    for of in record.roles:
        for line in of.indicators if of.name == role else ():
            if line.indicator == indicator and line.worker is not None:
                sums[line.worker] = sums.get(line.worker, 0.0) + line.value
    return tuple(sums.values())
