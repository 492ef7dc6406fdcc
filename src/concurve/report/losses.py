"""The parts of a lost speed-up, as the views name them."""

from __future__ import annotations

from concurve.findings.explanation import Cause, CellExplanation, Explanation

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


#: What is lost to each cause, in the words of the parts that it is a part of.
_LOST_TO: dict[Cause, str] = {
    "serial": LOSSES["serial"],
    "imbalance": LOSSES["imbalance"],
    "stage": LOSSES["stage"],
    "collector": LOSSES["collector"],
    "quota": LOSSES["quota"],
    "cpu": LOSSES["queue"],
    "lock": "waiting for locks",
    "io": "waiting for I/O",
    "client": "waiting for the load",
    "coherency": f"{LOSSES['cpu']} (data that moves between CPUs)",
    "memory": f"{LOSSES['cpu']} (bandwidth of memory)",
    "smt": f"{LOSSES['cpu']} (cores that CPUs share)",
    "clock": f"{LOSSES['cpu']} (a falling clock)",
    "kernel": "work in the kernel",
    "contamination": "other processes",
}


def lost_to(cause: Cause) -> str:
    """What a cause takes, as the table of what was lost has it: ``waiting for a CPU``."""
    return _LOST_TO.get(cause, cause)


#: The parts that each cause is, or is a part of.
_PART_OF: dict[Cause, str] = {
    "cpu": "queue",
    "contamination": "queue",
    "lock": "waiting",
    "io": "waiting",
    "client": "waiting",
    "coherency": "cpu",
    "memory": "cpu",
    "smt": "cpu",
    "clock": "cpu",
    "kernel": "cpu",
}


def greater_part(cell: CellExplanation) -> str:
    """That another part of the lost speed-up seems greater than that of the cause, and is not for
    sure: ``More CPU time may take more of it (0.14), but not for sure.`` Empty where none is."""
    share, second = cell.share, cell.runner_up
    if share is None or cell.speedup_possible is None or not cell.speedup_lost:
        return ""
    part = max(cell.speedup_lost, key=lambda name: cell.speedup_lost[name])
    told = [cell.cause, *([second.cause] if second is not None else [])]
    amount = cell.speedup_lost[part]
    is_told = part in [_PART_OF.get(cause, cause) for cause in told]
    if is_told or part not in LOSSES or amount <= max(share.value * cell.lost, LOST_MIN):
        return ""
    what = f"{LOSSES[part][:1].upper()}{LOSSES[part][1:]}"
    return f"{what} may take more of it ({amount:.2f}), but not for sure."


def loss_named(cell: CellExplanation) -> str:
    """What shares are shares of: the lost speed-up, or, where a speed-up is not divided, as of a
    server, what an operation takes more."""
    return "the lost speed-up" if cell.speedup_lost else "the extra time"


def lost_speedup(cell: CellExplanation) -> str:
    """The same in full: ``the lost speed-up (0.24 of 2)``, ``the extra time per operation``."""
    if not cell.speedup_lost or cell.speedup_possible is None:
        return f"{loss_named(cell)} per operation"
    return f"{loss_named(cell)} ({cell.lost:.2f} of {cell.speedup_possible:.3g})"
