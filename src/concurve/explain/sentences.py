"""What limits a cell, as one sentence with its numbers."""

from __future__ import annotations

from concurve.explain.breakdown import Breakdown, excess
from concurve.explain.causes import LOSS_MIN
from concurve.explain.verdict import Verdict
from concurve.findings.cells import CellFindings
from concurve.terms import Level


def sentence(
    cell: CellFindings,
    base_cell: CellFindings,
    own: Breakdown,
    base: Breakdown | None,
    verdict: Verdict,
    varying: tuple[str, ...],
) -> str:
    """One sentence of evidence, with its numbers."""
    where = _setting({name: cell.parameters[name] for name in varying})
    start = f"With {where} an operation" if where else "An operation"
    if base is None or not base.mean("total"):
        return f"{start} takes {_time(own.mean('total'))} of thread time: {verdict.words}."
    ratio = own.mean("total") / base.mean("total")
    times = f"{ratio:.2f}" if ratio < 1.95 else f"{ratio:.1f}"
    said = f"{start} takes {times} × the thread time of {_named(base_cell, cell)}: {verdict.words}"
    if min(own.trials, base.trials) < 2:
        return f"{said}; a single trial has no interval, so no excess is named."
    if verdict.cause == "none" and ratio < 1 + LOSS_MIN:
        return f"{said}; there is no loss to explain."
    more = excess(own, base, "total")
    if verdict.cause == "none" and (more.low is None or more.low <= 0):
        return f"{said}; the excess is within its noise."
    if verdict.cause == "none" and verdict.unproven:
        return f"{said}; no part of the excess is significant: more trials may show one."
    return f"{said}."


def _named(cell: CellFindings, other: CellFindings) -> str:
    """The levels in which a cell differs from another."""
    mine = {k: v for k, v in cell.parameters.items() if other.parameters.get(k) != v}
    return _setting(mine)


def _setting(parameters: dict[str, Level]) -> str:
    return " ".join(f"{name}={level}" for name, level in parameters.items())


def _time(ns: float) -> str:
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.3g} ns"
