"""Stored records → how busy each CPU was in the course of a trial, for reports."""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import pairwise
from typing import Generic, TypeVar

from concurve.analysis.records import StoredRecord
from concurve.analysis.run import StoredRun
from concurve.findings.timelines import CpuTimelines, TrialTimeline
from concurve.store.rows import TrialKey
from concurve.terms import Level
from concurve.wire.record import TrialRecord

#: At most this many cells are shown, spread evenly over the plan.
_CELLS_MAX = 12


_Found = TypeVar("_Found")


class FirstTrialReader(Generic[_Found]):
    """Something of the first trial in use of each cell, of a few cells where there are many. What
    the machine did while it simulated is not what was asked: a simulation has none."""

    def __init__(
        self,
        run: StoredRun,
        most: int,
        of: Callable[[TrialRecord, dict[str, Level]], _Found | None],
    ) -> None:
        """``most``: so many cells; ``of`` gives what is kept of a record of the cell with these
        levels, if it has any."""
        self._run = run
        self._of = of
        is_real = not run.head.study.simulation
        self._known: tuple[int, ...] = tuple(sorted(run.used)) if is_real else ()
        self._wanted = {cell: run.used[cell][0] for cell in _spread(self._known, most)}
        self._read: set[int] = set()
        self._found: dict[int, _Found] = {}

    def cells(self) -> Collection[int]:
        """Those that are shown."""
        return self._wanted

    def wants(self, key: TrialKey) -> bool:
        """Is this the first trial in use of a cell that is shown?"""
        return self._wanted.get(key.cell) == key

    def take(self, stored: StoredRecord) -> None:
        """Keep what the record has, if it has any."""
        cell = stored.key.cell
        self._read.add(cell)
        found = self._of(stored.record, self._run.plan.cells[cell].parameters)
        if found is not None:
            self._found[cell] = found

    def has_all(self, cell: int) -> bool:
        """The cell's trial is read."""
        return cell not in self._wanted or cell in self._read

    @property
    def shown(self) -> tuple[_Found, ...]:
        """What was found, in the order of the cells."""
        return tuple(self._found[cell] for cell in self._wanted if cell in self._found)

    @property
    def factors(self) -> tuple[str, ...]:
        """The factors that vary."""
        head = self._run.head
        return tuple(
            factor.name for factor in head.study.factors_at(head.effort) if len(factor.levels) > 1
        )

    @property
    def remark(self) -> str:
        """How many cells are left out; empty if none is."""
        shown, known = len(self._found), len(self._known)
        return f"{shown} of {known} cells." if shown < known else ""


class TimelineReader(FirstTrialReader[TrialTimeline]):
    """How busy the CPUs were."""

    def __init__(self, run: StoredRun) -> None:
        super().__init__(run, _CELLS_MAX, timeline_of)

    def found(self) -> CpuTimelines | None:
        """The timelines; ``None`` where no trial that was read has one."""
        if not self.shown:
            return None
        return CpuTimelines(factors=self.factors, cells=self.shown, remark=self.remark)


def timeline_of(record: TrialRecord, parameters: dict[str, Level]) -> TrialTimeline | None:
    """The timeline of a trial of the cell with these levels; ``None`` where its record has none
    that can be read. A tick may be counted in the interval after its own, so a share may come out
    above 1: it is cut."""
    machine = record.machine
    of, tick_ns = machine.cpu_timeline, machine.tick_ns
    if of is None or tick_ns is None or not of.ends_ns or of.ends_ns[-1] <= 0:
        return None
    spans_ns = [end - begin for begin, end in pairwise((0, *of.ends_ns))]
    whole = {
        int(cpu): ticks
        for cpu, ticks in of.busy_ticks.items()
        if cpu.isdecimal() and len(ticks) == len(spans_ns)
    }
    if not whole:
        return None
    return TrialTimeline(
        parameters=parameters,
        ends=tuple(end / 1e9 for end in of.ends_ns),
        cpus={
            cpu: tuple(
                min(1.0, count * tick_ns / span) if span > 0 else 0.0
                for count, span in zip(ticks, spans_ns, strict=True)
            )
            for cpu, ticks in sorted(whole.items())
        },
    )


def _spread(cells: tuple[int, ...], most: int) -> tuple[int, ...]:
    """All cells, or ``most`` of them, the first and the last among them."""
    if len(cells) <= most:
        return cells
    return tuple(cells[number * (len(cells) - 1) // (most - 1)] for number in range(most))
