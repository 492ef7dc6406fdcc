"""The parts of a lost speed-up, as the views name them."""

from __future__ import annotations

from concurve.findings.explanation import Explanation

#: In the order from the ideal to what was measured.
LOSSES: dict[str, str] = {
    "serial": "serial work",
    "imbalance": "uneven work",
    "stage": "one stage",
    "collector": "garbage collector",
    "quota": "quota",
    "queue": "waiting for a CPU",
    "waiting": "waiting (locks, I/O)",
    "cpu": "more CPU time",
    "helping": "less help",
}
#: The same for narrow places.
SHORT: dict[str, str] = {
    "serial": "serial",
    "imbalance": "uneven",
    "stage": "stage",
    "collector": "collector",
    "queue": "for a CPU",
    "waiting": "locks, I/O",
    "cpu": "more CPU",
}
#: A part of the speed-up that is shown, if a cell of the run has it: a smaller one reads 0.00.
LOST_MIN = 0.005


def losses_of(explanation: Explanation) -> list[str]:
    """The parts that are worth showing, in their order."""
    return [
        part
        for part in LOSSES
        if any(abs(cell.speedup_lost.get(part, 0.0)) >= LOST_MIN for cell in explanation.cells)
    ]
