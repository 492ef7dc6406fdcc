"""What CPU time says of cells whose verdict is undecided: a hint, and no verdict.

A verdict by another figure of the same trials, because the first was undecided, would be a second
try (decision 27). Yet a reader should not have to look for what did differ.
"""

from __future__ import annotations

from collections.abc import Sequence

from concurve.findings.comparison import CellComparison
from concurve.terms import IndicatorInfo

#: So many cells are named.
_NAMED_MAX = 3


def hints(
    cells: Sequence[CellComparison],
    beside: Sequence[CellComparison],
    infos: Sequence[IndicatorInfo],
) -> tuple[str, ...]:
    """A sentence on the undecided cells whose CPU time differs; none where none does. ``beside``
    are the same cells by CPU time, with the verdicts of all of them together."""
    undecided = [cell.parameters for cell in cells if cell.verdict == "undecided"]
    found = [
        cell
        for cell in beside
        if cell.verdict in ("faster", "slower") and cell.parameters in undecided
    ]
    if not found:
        return ()
    said = "; ".join(_differs(cell) for cell in found[:_NAMED_MAX])
    more = f"; and in {len(found) - _NAMED_MAX} more cells" if len(found) > _NAMED_MAX else ""
    names = {info.name: (info.label or info.name).lower() for info in infos}
    of = " and ".join(
        dict.fromkeys(names[cell.indicator] for cell in cells if cell.verdict == "undecided")
    )
    return (
        f"CPU time differs where {of} is undecided: {said}{more}. "
        "That is a second figure of the same trials: a hint, and no verdict.",
    )


def _differs(cell: CellComparison) -> str:
    ratio = cell.ratio
    assert ratio is not None and ratio.low is not None and ratio.high is not None
    where = " ".join(f"{name}={level}" for name, level in cell.parameters.items())
    word = "higher" if ratio.value > 1 else "lower"
    ends = sorted(abs(100 * (end - 1)) for end in (ratio.low, ratio.high))
    return (
        f"{100 * abs(ratio.value - 1):.2g} % {word} [{ends[0]:.2g}, {ends[1]:.2g} %]"
        f"{f' at {where}' if where else ''}"
    )
