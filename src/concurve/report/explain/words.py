"""What limits a cell, and what is missing, in the words of every view."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from concurve.findings.explanation import CellExplanation, Explanation
from concurve.report import format as fmt

_EVIDENCE = {
    "waits": "what threads wait for",
    "run_queue": "the time in run queues",
    "cpu": "CPU time",
    "steal": "CPU time that a hypervisor took",
    "foreign_cpu": "CPU time of processes outside the trial",
}


def named(cell: CellExplanation) -> str:
    """The cause, with what is used up where that is known."""
    return f"{cell.cause}: {fmt.clean(cell.limit)}" if cell.limit else cell.cause


def remarks(explanation: Explanation) -> Iterator[str]:
    """What is missing, and how to read the rest."""
    for name, why in explanation.missing.items():
        yield f"Not granted here: {_EVIDENCE.get(name, name)}: {why}."
    alone = Counter(
        (name, why)
        for cell in explanation.cells
        for name, why in cell.missing.items()
        if explanation.missing.get(name) != why
    )
    for (name, why), count in alone.items():
        yield f"In {fmt.count(count, 'cell')}: {_EVIDENCE.get(name, name)}: {why}."
    yield from explanation.notes


def percent(share: float) -> str:
    """A share in whole percent; a small one as such."""
    return "<1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"
