"""Numbers and shares for prose."""

from __future__ import annotations

from concurve.explain.cells import Picture


def mixture(cell: Picture) -> str:
    """What the time of a cell is made of."""
    waiting = [f"{percent(cell.share('cpu'))} of it on a CPU"]
    if "run_queue" in cell.columns:
        waiting.append(f"{percent(cell.share('run_queue'))} waiting for one")
    waiting.append(f"{percent(cell.share('blocked'))} blocked")
    return ", ".join(waiting)


def percent(share: float) -> str:
    """A share for prose: ``51 %``, ``0.4 %``."""
    value = 100 * share
    return f"{value:.0f} %" if value >= 9.95 else f"{value:.1f} %"


def number(value: float) -> str:
    """A number of CPUs or threads: ``1.9``, ``0.03``."""
    return f"{value:.1f}" if value >= 0.05 else f"{value:.2g}"


def count(number: int, singular: str) -> str:
    """``1 CPU``, ``2 CPUs``."""
    return f"{number} {singular if number == 1 else singular + 's'}"


def times(cell: Picture, base: Picture) -> str:
    """How many times the base's CPU time an operation takes."""
    ratio = cell.mean("cpu") / base.mean("cpu") if base.mean("cpu") else 0.0
    return f"{ratio:.2f} ×" if ratio < 1.95 else f"{ratio:.1f} ×"
