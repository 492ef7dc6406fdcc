"""When figures are in doubt: the rules by numbers of trials, and what a list says of a run by its
outcomes alone. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Set

from concurve.planning.protocol import NOBODYS
from concurve.readings.contamination import LATE_READING, MACHINE_WIDE
from concurve.store.rows import Told

#: A figure is in doubt where more than this share of its trials is.
DOUBTFUL_SHARE_MAX = 0.25

#: So many quiet blocks are enough; of few blocks, half of them.
QUIET_MIN = 5


def is_doubtful(quiet: int, used: int) -> bool:
    """Is a figure of so many trials, of which so many were quiet, in doubt? The median bears a few
    disturbed ones."""
    return used - quiet > DOUBTFUL_SHARE_MAX * used


def is_enough(quiet: int, used: int) -> bool:
    """Are so many quiet blocks, of those in use, the figures of a run?"""
    return quiet == used or quiet >= max(2, min(QUIET_MIN, (used + 1) // 2))


def remarks(outcomes: Iterable[Told]) -> list[str]:
    """What a list says of a complete run beside its state, by its outcomes in their order: that
    cells have failed, and that figures are in doubt. The primary figure is taken as one that no
    probe reads."""
    last: dict[tuple[int, int], Told] = {}
    errors: Counter[int] = Counter()
    for it in outcomes:
        if it.verdict in ("ok", "contaminated") and it.has_value:
            last[it.cell, it.block] = it
        elif it.cause not in NOBODYS:
            # The second one ends a cell, and one that gives it up.
            errors[it.cell] += 2 if it.verdict == "abandon" else 1
    failed = {cell for cell, number in errors.items() if number > 1}
    found = ["with failures"] if failed else []
    return [*found, "in doubt"] if _is_any_in_doubt(last.values(), failed) else found


def _is_any_in_doubt(used: Iterable[Told], failed: Set[int]) -> bool:
    """Is the figure of a cell in doubt? Trials with a sign that all cells show alike are set aside
    where enough blocks are left in which all cells have theirs."""
    every: dict[int, set[int]] = {}
    quiet: dict[int, set[int]] = {}
    left: dict[int, set[int]] = {}
    for it in used:
        is_quiet = it.verdict == "ok" or it.cause == LATE_READING
        for blocks, is_one in (
            (every, True),
            (quiet, is_quiet),
            (left, is_quiet or it.cause not in MACHINE_WIDE),
        ):
            own = blocks.setdefault(it.cell, set())
            if is_one:
                own.add(it.block)
    cells = every.keys() - failed
    if not cells:
        return False
    common = (len(set.intersection(*(of[cell] for cell in cells))) for of in (left, every))
    # A cell that would have no figure left keeps its own.
    kept = {cell: left[cell] or every[cell] for cell in every} if is_enough(*common) else every
    return any(is_doubtful(len(quiet[cell]), len(kept[cell])) for cell in every)
