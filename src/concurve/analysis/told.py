"""The facts that the measured program reported: records → facts, each with the cells of its value.

One trial is read of each cell. A fact that only repeats a level of the cell is left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from concurve.findings.cells import CellFindings
from concurve.findings.run import Findings
from concurve.findings.workers import ToldFact
from concurve.store import Store
from concurve.store.run_head import decode_head
from concurve.terms import Level

#: Runs of more cells are left without: each would be read.
CELLS_MAX = 1_000
#: A fact that has more values than this belongs to trials, not to cells.
VALUES_MAX = 12


class _Role(msgspec.Struct):
    name: str
    facts: dict[str, Any] = {}


class _Record(msgspec.Struct):
    """As much of a record as is read here."""

    roles: list[_Role] = []


def with_facts(findings: Findings, store: Store) -> Findings:
    """The findings with what the measured role said of itself; as they are where the trials one by
    one, or the cells, are not to be read."""
    if len(findings.cells) > CELLS_MAX:
        return findings
    target = decode_head(store.find_run(findings.run.id)).study.target
    said = _said(findings, target, store)
    return msgspec.structs.replace(findings, facts=facts_of(findings.cells, said))


def _said(findings: Findings, target: str, store: Store) -> dict[int, dict[str, str]]:
    """The facts of each cell, as text."""
    first = {dot.cell: (dot.block, dot.attempt) for dot in reversed(findings.dots) if dot.used}
    said = {}
    for cell, key in first.items():
        for row in store.records(findings.run.id, cell):
            if (row.key.block, row.key.attempt) == key:
                roles = msgspec.json.decode(row.record, type=_Record).roles
                facts = next((role.facts for role in roles if role.name == target), {})
                said[cell] = {name: _text(value) for name, value in facts.items()}
                break
    return said


def _text(value: object) -> str:
    """Lists of texts as a command line, the rest as it is."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return " ".join(value)
    return value if isinstance(value, str) else json.dumps(value)


def facts_of(
    cells: Sequence[CellFindings], said: Mapping[int, Mapping[str, str]]
) -> tuple[ToldFact, ...]:
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
    """Does it say no more than the level of the factor of its name?"""
    factor = name.replace("_", "-")
    return all(
        value in (str(cell.parameters.get(name)), str(cell.parameters.get(factor)))
        for value, members in by_value.items()
        for cell in members
    )


def _fact(
    name: str, value: str, members: Sequence[CellFindings], spoken: Sequence[CellFindings]
) -> ToldFact:
    if len(members) == len(spoken):
        return ToldFact(name=name, value=value, cells=len(members), among=len(members))
    shared: dict[str, Level] = {
        factor: level
        for factor, level in members[0].parameters.items()
        if all(cell.parameters[factor] == level for cell in members)
        and any(cell.parameters[factor] != level for cell in spoken)
    }
    among = sum(shared.items() <= cell.parameters.items() for cell in spoken)
    return ToldFact(name=name, value=value, where=shared, cells=len(members), among=among)
