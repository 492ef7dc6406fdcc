"""The parts of a lost speed-up, as the views name them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from concurve.estimate import Estimate
from concurve.findings.explanation import (
    CPUS,
    Cause,
    CellExplanation,
    Explanation,
    RunnerUp,
)
from concurve.report import format as fmt
from concurve.words import listed, percent

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
    "helping": "less help from other threads",
}
#: The same of a JVM, whose own threads are known.
LESS_HELP_IN_JVM = "less help from the JVM's compilers and collector"
#: More CPU time where the evidence cannot tell what takes it.
CPU_OF_NO_CAUSE = f"{LOSSES['cpu']}, of no known cause"
#: The same for narrow places.
SHORT: dict[str, str] = {
    "serial": "serial",
    "imbalance": "uneven",
    "stage": "stage",
    "collector": "collector",
    "queue": "for a CPU",
    "waiting": "locks, I/O",
    "cpu": "more CPU",
    "helping": "less help",
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
    "coherency": f"{LOSSES['cpu']} (perhaps data that moves between CPUs)",
    "memory": f"{LOSSES['cpu']} (perhaps the bandwidth of memory)",
    "smt": f"{LOSSES['cpu']} (perhaps cores that CPUs share)",
    "clock": f"{LOSSES['cpu']} (a falling clock)",
    "kernel": "work in the kernel",
    "contamination": "other processes",
}


def lost_to(cause: Cause) -> str:
    """What a cause takes, as the table of what was lost has it: ``waiting for a CPU``."""
    return _LOST_TO.get(cause, cause)


#: What more CPU time may go to that nothing tells apart without counters of the hardware.
_MAY_BE: dict[Cause, str] = {
    "coherency": "data that threads share",
    "memory": "the bandwidth of memory",
    "smt": "CPUs that share a core",
}
_OF_JVM = ("the compilers of the JVM", "its collector")


def apart_from(second: RunnerUp) -> str:
    """What the evidence cannot tell the cause of a cell apart from."""
    return _MAY_BE.get(second.cause) or lost_to(second.cause)


def lost_to_cause(cell: CellExplanation) -> str:
    """What the cause of a cell takes. More CPU time has no known cause where its cause is one of
    several that the evidence cannot tell apart: what it may be is told, and of Java that its
    compilers and its collector may take it."""
    if not cell.is_guess:
        return lost_to(cell.cause)
    second = cell.runner_up
    others = [second.cause] if second is not None and second.is_indistinct else []
    may_be = [_MAY_BE[it] for it in (cell.cause, *others) if it in _MAY_BE]
    every = ", ".join([*may_be, *(_OF_JVM if cell.is_jvm else ())])
    return f"{CPU_OF_NO_CAUSE} (perhaps {every})"


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


def _parts_of(known: Sequence[str], cause: Cause) -> Sequence[str]:
    """The parts that a cause is of, or that it is named after, where these are not known."""
    return known or (_PART_OF.get(cause, cause),)


def told_parts(cell: CellExplanation) -> str:
    """The parts of the lost speed-up that a share is the sum of, with what they cost, where they
    are not the one that the cause is named after, or are more than all: ``waiting (locks, I/O) 0.33
    and waiting for a CPU 0.04``. Else empty."""
    parts = _shown_parts(cell, cell.share_parts)
    own = _PART_OF.get(cell.cause, cell.cause)
    is_more = sum(_amount(cell, part) for part in parts) - cell.lost >= LOST_MIN
    # What wall time went by without workers is told with its amount, as the evidence.
    if not parts or (parts == [own] and (not is_more or own == cell.cause)):
        return ""
    said = _with_amounts(cell, parts)
    return f"{said}; other parts win some back" if is_more else said


def _amount(cell: CellExplanation, part: str) -> float:
    return cell.speedup_lost.get(part, 0.0)


def _shown_parts(cell: CellExplanation, parts: Sequence[str]) -> list[str]:
    """Those that do not read 0.00, the greatest first."""
    shown = [part for part in parts if part in LOSSES and abs(_amount(cell, part)) >= LOST_MIN]
    return sorted(shown, key=lambda part: -_amount(cell, part))


def _with_amounts(cell: CellExplanation, parts: Sequence[str]) -> str:
    amounts = ((part, _amount(cell, part)) for part in parts)
    return listed([f"{LOSSES[it]} {'−' if of < 0 else ''}{abs(of):.2f}" for it, of in amounts])


def next_lost(cell: CellExplanation, second: RunnerUp) -> str:
    """What comes next, with its share and what it is the sum of: ``serial work, 12 %``."""
    share = second.share
    of = "" if share is None or says_nothing(share) else f", {percent(share.value)}"
    return f"{_next_named(cell, second)}{of}{_sum_of(cell, second) if of else ''}"


def lost_by(cell: CellExplanation, second: RunnerUp) -> str:
    """The same without its share."""
    return f"{_next_named(cell, second)}{_sum_of(cell, second)}"


def _next_named(cell: CellExplanation, second: RunnerUp) -> str:
    if second.cause == "none" and second.parts:
        is_of_jvm = cell.is_jvm and second.parts[0] == "helping"
        return LESS_HELP_IN_JVM if is_of_jvm else LOSSES[second.parts[0]]
    return lost_to(second.cause)


def _sum_of(cell: CellExplanation, second: RunnerUp) -> str:
    """What comes next as the sum of its parts; empty where it is the one that it is named after."""
    parts = _shown_parts(cell, second.parts)
    is_own = second.cause == "none" or parts == [_PART_OF.get(second.cause, second.cause)]
    return f" ({_with_amounts(cell, parts)})" if parts and not is_own else ""


def is_next_greater(cell: CellExplanation) -> bool:
    """Is what comes next a greater part of the loss than the cause, as both are told? A part
    without a known cause only where it surely is: else what is known goes first."""
    second = cell.runner_up
    return _seems_greater(cell) and second is not None and not second.may_be_less


def may_be_greater(cell: CellExplanation) -> bool:
    """Is the figure of a part without a known cause greater than that of the cause, but not surely
    the part?"""
    second = cell.runner_up
    return _seems_greater(cell) and second is not None and second.may_be_less


def _seems_greater(cell: CellExplanation) -> bool:
    share, second = cell.share, cell.runner_up
    if share is None or second is None or second.share is None or second.is_indistinct:
        return False
    is_told = not says_nothing(share) and not says_nothing(second.share)
    return (
        is_told
        and second.share.value > share.value
        and percent(second.share.value) != percent(share.value)
    )


def greater_without_cause(cell: CellExplanation) -> str:
    """The part of the lost speed-up that is greater than that of the cause, and of which no cause
    is known; empty where there is none."""
    second = cell.runner_up
    is_unknown = second is not None and second.cause == "none" and bool(second.parts)
    return (
        _next_named(cell, second)
        if second is not None and is_unknown and is_next_greater(cell)
        else ""
    )


#: An interval of a share that begins below this, and ends as close to all, says nothing.
_NOTHING = 0.05


def says_nothing(share: Estimate) -> bool:
    """May it be next to nothing of the loss, and more than half of it, or nearly all?"""
    low, high = share.low, share.high
    if low is None or high is None:
        return False
    return (low < _NOTHING and high - low > 0.5) or high - low > 0.75


def greater_part(cell: CellExplanation) -> str:
    """That another part of the lost speed-up seems greater than what is told, and is not for sure:
    ``More CPU time may take more of it (0.14), but not for sure.`` Empty where none is."""
    share, second = cell.share, cell.runner_up
    if share is None or cell.speedup_possible is None or not cell.speedup_lost:
        return ""
    told = {*_parts_of(cell.share_parts, cell.cause)}
    if second is not None:
        told.update(_parts_of(second.parts, second.cause))
    left = [part for part in LOSSES if part in cell.speedup_lost and part not in told]
    part = max(left, key=lambda name: cell.speedup_lost[name], default="")
    amount = _amount(cell, part)
    what = f"{LOSSES[part][:1].upper()}{LOSSES[part][1:]}" if part else ""
    if part and amount > max(share.value * cell.lost, LOST_MIN):
        return f"{what} may take more of it ({amount:.2f}), but not for sure."
    after = None if second is None or second.is_indistinct else second.share
    if part and after is not None and amount > max(after.value * cell.lost, LOST_MIN):
        return f"{what} may come before it ({amount:.2f}), but not for sure."
    return ""


def greatest_part(cell: CellExplanation) -> tuple[str, float]:
    """The greatest part of the lost speed-up, sure or not, as the columns name it, and how much it
    is; empty where none is as much as the columns show."""
    known = [part for part in LOSSES if _amount(cell, part) >= LOST_MIN]
    part = max(known, key=lambda name: _amount(cell, name), default="")
    return (LOSSES[part], _amount(cell, part)) if part else ("", 0.0)


def loss_named(cell: CellExplanation) -> str:
    """What shares are shares of: the lost speed-up, or, where a speed-up is not divided, as of a
    server, what an operation takes more."""
    return "the lost speed-up" if cell.speedup_lost else "the extra time"


def lost_speedup(cell: CellExplanation) -> str:
    """The same in full: ``the lost speed-up (0.24 of 2)``, ``the extra time per operation``."""
    if not cell.speedup_lost or cell.speedup_possible is None:
        return f"{loss_named(cell)} per operation"
    return f"{loss_named(cell)} ({cell.lost:.2f} of {cell.speedup_possible:.3g})"


class Extra(NamedTuple):
    """How much more thread time an operation takes than in the base, as the beginning of a sentence
    (empty where it was said before), and how its shares refer to that."""

    begin: str
    of: str


#: From this ratio of two times on, the ratio is told and not the difference.
RATIO_TOLD_MIN = 2.0


def extra_of(cell: CellExplanation, *, is_said: bool = False) -> Extra | None:
    """What shares of an operation are of, where a speed-up is not divided, as of a server; ``None``
    where it is, and where the base is not known. ``is_said``: the evidence, which compares both
    thread times, stands before."""
    base = cell.base or {}
    apart = {k: v for k, v in base.items() if cell.parameters.get(k) != v}
    if cell.speedup_lost or not apart:
        return None
    if is_said:
        return Extra("", "of the extra thread time")
    begin, where = "An operation takes", fmt.setting(apart)
    own, more = cell.per_operation.get("total"), cell.excess.get("total")
    if own is None or more is None or not 0 < more.value < own.value:
        return Extra(f"{begin} more thread time than with {where}; ", "of that")
    ratio = own.value / (own.value - more.value)
    if ratio < RATIO_TOLD_MIN:
        more_of_it = f"{percent(ratio - 1)} more thread time than with {where}"
        return Extra(f"{begin} {more_of_it}; ", "of that")
    return Extra(f"{begin} {ratio:.1f} × the thread time of {where}; ", "of the extra")


def shown_as(cell: CellExplanation) -> str:
    """What a cause takes, as shares of it are told: who waits for a thread of a server that is used
    up is blocked."""
    is_thread = cell.cause == "cpu" and cell.limit not in ("", CPUS)
    return "blocked time" if is_thread else lost_to(cell.cause)
