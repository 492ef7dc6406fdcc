"""Did a cell begin cold? Its first trial reads the program and its data from disk, where the later
ones find them in memory: records → a sentence on the cells of which that is seen.

It is said, and the trial counts: what a cold start is shows only beside later trials, and those are
made by then (decision 99).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from concurve import words
from concurve.analysis.records import StoredRecord
from concurve.analysis.run.tables import Table
from concurve.analysis.sentences.naming import name
from concurve.definition.measured import better_of
from concurve.definition.study import Study
from concurve.findings.run import Finding
from concurve.planning.plan import Plan
from concurve.store.rows import TrialKey
from concurve.wire.record import TrialRecord

#: A first trial is compared with so many later ones of its cell, at least and at most.
_LATER_MIN, _LATER_MAX = 3, 30
#: Fewer faults or bytes are no cold start, nor is what is less than so many times that of each
#: later trial: a program that reads from disk does so in each of them.
_FAULTS_MIN, _BYTES_MIN, _TIMES_MIN = 20, 1 << 20, 5
#: The blocks of ``getrusage``.
_BLOCK_BYTES = 512


class _Reads(NamedTuple):
    """What the processes of a trial read from disk, by the readings that it has: the role and the
    counter of each."""

    faults: int
    bytes: int
    readings: frozenset[tuple[str, str]]

    @classmethod
    def of(cls, record: TrialRecord) -> _Reads:
        faults = {role.name: role.usage.major_faults for role in record.roles}
        blocks = {role.name: role.usage.block_inputs for role in record.roles}
        return cls(
            sum(value or 0 for value in faults.values()),
            _BLOCK_BYTES * sum(value or 0 for value in blocks.values()),
            frozenset(
                (role, counter)
                for counter, values in (("faults", faults), ("blocks", blocks))
                for role, value in values.items()
                if value is not None
            ),
        )

    @property
    def is_much(self) -> bool:
        """May it be that of a cold start?"""
        return self.faults >= _FAULTS_MIN or self.bytes >= _BYTES_MIN

    def is_beyond(self, faults: int, read: int) -> bool:
        """Is it much, and clearly more than so many faults, or so many bytes?"""
        is_faulting = self.faults >= max(_FAULTS_MIN, _TIMES_MIN * faults)
        return is_faulting or self.bytes >= max(_BYTES_MIN, _TIMES_MIN * read)


class ColdStarts:
    """The cells of a run whose first trial in use read much more from disk than all its later ones,
    and has the worst primary figure of them. Few records are read: those of cells of which the
    figures allow it. ``used`` and ``tables`` are the trials in use and their figures by cell."""

    def __init__(
        self, used: Mapping[int, Sequence[TrialKey]], tables: Sequence[Table], study: Study
    ) -> None:
        better = better_of(study, study.primary)
        self._keys = {
            cell: list(keys[: _LATER_MAX + 1])
            for cell, keys in used.items()
            if _begins_worst(tables[cell].used.get(study.primary, ()), len(keys), better)
        }
        self._reads: dict[TrialKey, _Reads] = {}

    def cells(self) -> Collection[int]:
        """Those whose first trial has the worst figure."""
        return self._keys

    def wants(self, key: TrialKey) -> bool:
        """Is it among the first trials of such a cell?"""
        return key in self._keys.get(key.cell, ()) and not self.has_all(key.cell)

    def take(self, stored: StoredRecord) -> None:
        """Keep what it read."""
        self._reads[stored.key] = _Reads.of(stored.record)

    def has_all(self, cell: int) -> bool:
        """Are all of its trials read, or did the first one read little?"""
        keys = self._keys.get(cell, ())
        first = self._reads.get(keys[0]) if keys else None
        is_warm = first is not None and not first.is_much
        return is_warm or all(key in self._reads for key in keys)

    def found(self, plan: Plan) -> tuple[Finding, ...]:
        """One sentence for all cells that began cold, with the reads of the worst."""
        cold: dict[int, tuple[_Reads, int, int]] = {}
        for cell, keys in self._keys.items():
            if not all(key in self._reads for key in keys):
                continue
            first, *later = (self._reads[key] for key in keys)
            # A reading that a trial lacks is not 0: such trials are not compared.
            if any(it.readings != first.readings for it in later):
                continue
            faults, read = max(it.faults for it in later), max(it.bytes for it in later)
            if first.is_beyond(faults, read):
                cold[cell] = (first, faults, read)
        if not cold:
            return ()
        worst = max(cold, key=lambda cell: cold[cell][0].faults)
        first, faults, read = cold[worst]
        where = name(plan, plan.cells[worst].parameters)
        more = len(cold) - 1
        others = f" (as in {words.count(more, 'other cell')})" if more else ""
        said = (
            f"The first trial of {where} was a cold start, and the worst of its cell{others}: "
            f"{words.count(first.faults, 'major fault')} and {_megabytes(first.bytes)} from disk, "
            f"against at most {faults:,} and {_megabytes(read)} in later ones. It counts; a new "
            "run finds the files in memory."
        )
        return (Finding(kind="warning", sentence=said),)


def _megabytes(read: int) -> str:
    return f"{read / 1e6:,.0f} MB"


def _begins_worst(figures: Sequence[float], trials: int, better: str) -> bool:
    """Is the first of the figures of so many trials worse than all others?"""
    if len(figures) != trials or trials <= _LATER_MIN:
        return False
    first, later = figures[0], figures[1:]
    return first > max(later) if better == "lower" else better == "higher" and first < min(later)
