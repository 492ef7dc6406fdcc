"""The facts that the measured program reported: records → facts, each with the cells of its value.

One trial of each cell is read. A fact that only repeats a level of the cell is left out, and so are
warnings: :mod:`concurve.analysis.run.reported` tells them, of all trials.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence

from concurve.analysis.records import StoredRecord
from concurve.analysis.run import StoredRun
from concurve.findings.cells import CellFindings
from concurve.findings.workers import ProgramFact
from concurve.store.rows import TrialKey
from concurve.terms import Level
from concurve.wire.record import WARNINGS_FACT

#: Runs with more cells get no facts, because a record of each cell would have to be read.
CELLS_MAX = 1_000
#: A fact that has more values than this belongs to trials, not to cells.
VALUES_MAX = 12


class ProgramFacts:
    """The facts that the measured role reported in the first trial in use of each cell. Runs with
    very many cells get none."""

    def __init__(self, run: StoredRun) -> None:
        few = len(run.plan.cells) <= CELLS_MAX
        in_use = zip(run.trials.outcomes.keys(), run.in_use, strict=True)
        used = [key for key, is_used in in_use if is_used]
        # The cells in the order that exports have had from the start.
        self._first = {key.cell: key for key in reversed(used)} if few else {}
        self._target = run.head.study.target
        self._said: dict[int, dict[str, str]] = {}

    def cells(self) -> Collection[int]:
        """The cells that have a trial in use."""
        return self._first

    def wants(self, key: TrialKey) -> bool:
        """One trial of each cell is enough."""
        return self._first.get(key.cell) == key

    def take(self, stored: StoredRecord) -> None:
        """Keep the facts of the record as text."""
        roles = stored.record.roles
        facts = next((role.facts for role in roles if role.name == self._target), {})
        self._said[stored.key.cell] = {
            name: _text(_without_warnings(value))
            for name, value in facts.items()
            if name != WARNINGS_FACT
        }

    def has_all(self, cell: int) -> bool:
        """Was the trial of this cell read?"""
        return cell not in self._first or cell in self._said

    def found(self, cells: Sequence[CellFindings]) -> tuple[ProgramFact, ...]:
        """The facts, each with the cells of its value."""
        return facts_of(
            cells, {cell: self._said[cell] for cell in self._first if cell in self._said}
        )


def _without_warnings(value: object) -> object:
    if isinstance(value, dict):
        return {key: inner for key, inner in value.items() if key != WARNINGS_FACT}
    return value


def _text(value: object) -> str:
    """A list of texts as a command line, any other value as it is."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return " ".join(value)
    return value if isinstance(value, str) else json.dumps(value)


def facts_of(
    cells: Sequence[CellFindings], said: Mapping[int, Mapping[str, str]]
) -> tuple[ProgramFact, ...]:
    """A fact for each name and value, with the levels that its cells share."""
    spoken = [cell for cell in cells if cell.index in said]
    found = []
    for name in dict.fromkeys(name for facts in said.values() for name in facts):
        by_value: dict[str, list[CellFindings]] = {}
        for cell in spoken:
            if name in said[cell.index]:
                by_value.setdefault(said[cell.index][name], []).append(cell)
        if len(by_value) <= VALUES_MAX and not _is_level(name, by_value):
            found += [_fact(name, value, members, spoken) for value, members in by_value.items()]
    return tuple(found)


def _is_level(name: str, by_value: Mapping[str, Sequence[CellFindings]]) -> bool:
    """Does the fact only repeat the level of the factor with the same name?"""
    factor = name.replace("_", "-")
    return all(
        value in (str(cell.parameters.get(name)), str(cell.parameters.get(factor)))
        for value, members in by_value.items()
        for cell in members
    )


def _fact(
    name: str, value: str, members: Sequence[CellFindings], spoken: Sequence[CellFindings]
) -> ProgramFact:
    if len(members) == len(spoken):
        return ProgramFact(name=name, value=value, cells=len(members), among=len(members))
    shared: dict[str, Level] = {
        factor: level
        for factor, level in members[0].parameters.items()
        if all(cell.parameters[factor] == level for cell in members)
        and any(cell.parameters[factor] != level for cell in spoken)
    }
    among = sum(shared.items() <= cell.parameters.items() for cell in spoken)
    return ProgramFact(name=name, value=value, where=shared, cells=len(members), among=among)
