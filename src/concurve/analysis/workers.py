"""Stored records → the share of each worker or client, for reports."""

from __future__ import annotations

from collections.abc import Collection

from concurve.analysis.records import StoredRecord
from concurve.analysis.run import StoredRun
from concurve.definition.measured import FAIRNESS
from concurve.findings.workers import CellShares, WorkerShares
from concurve.readings.copies import is_of
from concurve.store.rows import TrialKey
from concurve.wire.record import TrialRecord

#: At most this many cells are shown, those with the most workers.
_CELLS_MAX = 8


class ShareReader:
    """The share of each worker, if the study has an indicator of fairness, such as
    ``load.session_operations_cv``."""

    def __init__(self, run: StoredRun) -> None:
        self._run = run
        asked = (item.name for item in run.head.study.indicators)
        self._name, of = next(
            ((name, name.removesuffix(f"_{ending}")) for name in asked for ending in FAIRNESS
             if name.endswith(f"_{ending}")), ("", ""),
        )  # fmt: skip
        role, _, self._indicator = of.rpartition(".")
        self._of, self._role = of, role or run.head.study.target
        self._known = [
            cell
            for cell, table in enumerate(run.tables)
            if self._name and table.used.get(self._name)
        ]
        chosen = {cell: self._middle(cell) for cell in self._with_most_workers()[:_CELLS_MAX]}
        self._wanted = {cell: key for cell, key in chosen.items() if key is not None}
        self._shares: dict[int, tuple[float, ...]] = {}

    def cells(self) -> Collection[int]:
        """The cells with the most workers."""
        return self._wanted

    def wants(self, key: TrialKey) -> bool:
        """Is this the trial with the median fairness?"""
        return self._wanted.get(key.cell) == key

    def take(self, stored: StoredRecord) -> None:
        """Keep what each worker did."""
        self._shares[stored.key.cell] = _shares(stored.record, self._role, self._indicator)

    def has_all(self, cell: int) -> bool:
        """The cell's trial is read."""
        return cell not in self._wanted or cell in self._shares

    def found(self) -> WorkerShares | None:
        """The shares; ``None`` where the study does not ask for them, or no trial has them."""
        # An indicator of that name may be the program's own, without workers.
        own = {cell: shares for cell, shares in self._shares.items() if shares}
        if not own:
            return None
        run, shown = self._run, len(own)
        factors = run.head.study.factors_at(run.head.effort)
        return WorkerShares(
            indicator=self._of,
            label=self._indicator.replace("_", " "),
            factors=tuple(factor.name for factor in factors if len(factor.levels) > 1),
            cells=tuple(
                CellShares(parameters=run.plan.cells[cell].parameters, shares=own[cell])
                for cell in self._wanted
                if cell in own
            ),
            remark=f"{shown} of {len(self._known)} cells." if shown < len(self._known) else "",
        )

    def _with_most_workers(self) -> list[int]:
        """The cells with the most workers among those that have the figure."""
        plan, work = self._run.plan, self._run.plan.work
        if work is None or not self._known:
            return self._known
        head = self._run.head
        factor = next(f for f in head.study.factors_at(head.effort) if f.name == work)
        own = {cell: plan.cells[cell].parameters[work] for cell in self._known}
        most = [level for level in factor.levels if level in own.values()][-1]
        return [cell for cell in self._known if own[cell] == most]

    def _middle(self, cell: int) -> TrialKey | None:
        run = self._run
        keys = run.trials.outcomes.keys()
        found = [
            (run.figures.row(index)[self._name], key)
            for index, (key, used) in enumerate(zip(keys, run.in_use, strict=True))
            if used and key.cell == cell and self._name in run.figures.row(index)
        ]
        middle = (len(found) - 1) // 2
        return sorted(found, key=lambda item: item[0])[middle][1] if found else None


def _shares(record: TrialRecord, role: str, indicator: str) -> tuple[float, ...]:
    """By worker of a role and of its copies, in the order of their first reports; several reports
    of one are added."""
    sums: dict[tuple[str, str], float] = {}
    for of in record.roles:
        for line in of.indicators if is_of(of.name, role) else ():
            if line.indicator == indicator and line.worker is not None:
                key = of.name, line.worker
                sums[key] = sums.get(key, 0.0) + line.value
    return tuple(sums.values())
