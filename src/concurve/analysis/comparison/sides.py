"""What stands against what: runs by side, and the cells that both have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from concurve.findings.cells import CellFindings
from concurve.findings.run import Findings
from concurve.terms import Level

#: Cells that a warning names one by one.
_NAMED_MAX = 3


class Side(NamedTuple):
    """Sessions (runs) that stand together on one side, and the cells of each by parameters."""

    name: str
    sessions: tuple[Findings, ...]
    cells: tuple[dict[frozenset[tuple[str, Level]], CellFindings], ...]


class Pair(NamedTuple):
    """Two cells to compare: how the table names them, and where they are on each side."""

    parameters: dict[str, Level]
    base: frozenset[tuple[str, Level]]
    new: frozenset[tuple[str, Level]]


def side_of(name: str, sessions: Sequence[Findings]) -> Side:
    """Runs as a side of that name."""
    cells = tuple(
        {frozenset(cell.parameters.items()): cell for cell in run.cells} for run in sessions
    )
    return Side(name, tuple(sessions), cells)


def side_name(sessions: Sequence[Findings]) -> str:
    """The runs of a side by their ids."""
    return ", ".join(run.run.id for run in sessions)


def common_cells(base: Side, new: Side) -> tuple[list[frozenset[tuple[str, Level]]], list[str]]:
    """Cells that every session of both sides has, and what is said of the others."""
    everywhere = [*base.cells, *new.cells]
    common = [key for key in new.cells[0] if all(key in cells for cells in everywhere)]
    alone = {
        key: cells[key] for cells in everywhere for key in cells if key not in set(common)
    }  # fmt: skip
    if not alone or not common:
        return common, []
    names = [_setting(cell.parameters) for cell in list(alone.values())[:_NAMED_MAX]]
    more = f" and {len(alone) - _NAMED_MAX} more" if len(alone) > _NAMED_MAX else ""
    return common, [f"left out, as not every run has it: {'; '.join(names)}{more}"]


def varying(pairs: Sequence[Pair]) -> tuple[str, ...]:
    """The factors in which the pairs differ."""
    names = list(pairs[0].parameters)
    return tuple(n for n in names if len({pair.parameters[n] for pair in pairs}) > 1)


def factors_of(run: Findings) -> str:
    """The factors of a run with their levels."""
    return _setting({f.name: ",".join(map(str, f.levels)) for f in run.factors})


def _setting(parameters: Mapping[str, Level]) -> str:
    return " ".join(f"{name}={level}" for name, level in parameters.items()) or "the only cell"
