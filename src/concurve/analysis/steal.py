"""Does the hypervisor take CPU time only where the load itself uses most of the CPUs?

Whoever takes it is not seen from inside of a virtual machine: another one, or a limit of this one
(a quota, or credits that are used up), which only a load of most of its CPUs reaches. Bursts of
others come in any setting, since these take turns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from concurve.analysis.granted import cpus_used
from concurve.findings.cells import CellFindings, Reject
from concurve.readings.contamination import STEAL

#: Settings with it have it in so many of their trials, and those without in so few.
_OF_TRIALS_MIN, _OF_TRIALS_FEW = 0.5, 0.05
#: So many trials with it, and so many of the settings without, are no chance.
_TRIALS_MIN = 4
#: What the hypervisor takes from a load of all CPUs is missing in what that uses.
_MOST_CPUS = 2 / 3


def follows_load(
    cells: Sequence[CellFindings],
    in_use: Mapping[int, int],
    rejects: Iterable[Reject],
    cpus: int | None,
) -> float | None:
    """How many CPUs are in use at least where the hypervisor takes CPU time, if it does so only in
    the settings that use most of the ``cpus`` of the machine, and in none of the others; else
    ``None``. ``in_use`` has the trials in use by cell, ``rejects`` those with signs."""
    stolen: Counter[int] = Counter()
    trials = Counter(in_use)
    for reject in rejects:
        stolen[reject.cell] += reject.cause == STEAL
        trials[reject.cell] += not reject.used
    shares = {cell.index: stolen[cell.index] / trials[cell.index] for cell in cells if cell.trials}
    used = {cell.index: cpus_used(cell) for cell in cells if cell.trials}
    having = [cell for cell, share in shares.items() if share >= _OF_TRIALS_MIN]
    without = [cell for cell, share in shares.items() if share <= _OF_TRIALS_FEW]
    if not cpus or not having or not without or len(having) + len(without) < len(shares):
        return None
    if min(sum(stolen[it] for it in having), sum(trials[it] for it in without)) < _TRIALS_MIN:
        return None
    least = min(used[cell] for cell in having)
    is_most = least >= _MOST_CPUS * cpus and least > max(used[cell] for cell in without)
    return least if is_most else None
