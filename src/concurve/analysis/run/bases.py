"""The cells that speed-ups are taken over, where those that were meant failed."""

from __future__ import annotations

import msgspec

from concurve.planning.plan import Cell, Plan
from concurve.planning.protocol import Protocol


def with_measured_bases(plan: Plan, protocol: Protocol) -> Plan:
    """The plan, with another base for the cells whose base was skipped without a trial in use: the
    lowest level of the work factor that has some, or without one the first cell. A base that the
    study names stays, and so does one of a single cell with trials."""
    if plan.study.base:
        return plan
    states = protocol.cells
    bases: dict[int, int] = {}
    for base in {cell.base for cell in plan.cells}:
        left = [cell for cell in plan.cells if cell.base == base and states[cell.index].used]
        if states[base].skipped and not states[base].used and len(left) > 1:
            bases[base] = min(left, key=lambda cell: _place(plan, cell)).index
    if not bases:
        return plan
    cells = tuple(
        msgspec.structs.replace(cell, base=bases.get(cell.base, cell.base)) for cell in plan.cells
    )
    return msgspec.structs.replace(plan, cells=cells)


def _place(plan: Plan, cell: Cell) -> float:
    return cell.index if plan.work is None else float(cell.parameters[plan.work])
