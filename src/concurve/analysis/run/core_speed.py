"""Did the machine itself run faster in some trials than in others? Pure.

The runner times two fixed loops right before and after each trial. Where something else shares a
core (another virtual machine on its other hardware thread), or the clock frequency changes, trials
take longer without a sign: nothing is stolen, and nobody waits. The loops show it, and say which of
the two it is. It is said where the trials themselves spread: it is the reason of that. Whether
trials count does not hang on it: a core that is shared is so in any setting, as settings take
turns, and more trials average it (decision 110).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from concurve.analysis.run.tables import Table
from concurve.definition.study import Study
from concurve.findings.run import CORE_SPEED_VARIES, Finding
from concurve.readings.measures import FIXED_CHAIN, FIXED_LOOP
from concurve.stats.moments import median

#: Fewer trials do not tell how nine in ten of them spread.
TRIALS_MIN = 20
#: A cell with fewer has no middle to compare its trials with.
_OF_CELL_MIN = 3
#: The speed varies if nine trials in ten are apart by this factor.
VARIES = 1.1
#: The clock is the reason where it changes by half as much as the speed of a core, or more.
_BY_CLOCK = 0.5
#: The trials spread if half of them are further apart than this factor: below it nothing needs a
#: reason.
_SPREAD = 1.05
#: Logarithms further apart than this are no factor that a number holds.
_APART_MOST = 700.0


def speed_sentences(study: Study, tables: Sequence[Table], primary: str) -> Iterator[Finding]:
    """A warning where the speed of the cores varied, and the ``primary`` figure spreads. None of a
    simulation."""
    if study.simulation or _factor(tables, primary, 0.25) < _SPREAD:
        return
    core = _factor(tables, FIXED_LOOP, 0.05)
    if core < VARIES:
        return
    clock = _factor(tables, FIXED_CHAIN, 0.05)
    why = "something else seems to share its cores"
    if math.log(clock) >= _BY_CLOCK * math.log(core):
        why = "the clock frequency changes (load, temperature, power saving: concurve doctor)"
    yield Finding(
        kind="warning",
        sentence=(
            f"The speed of the CPUs changed: Concurve's own fixed loop ran {core:.2g}× as "
            f"fast beside some trials as beside others, so {why}. The trials spread with it; more "
            "of them average it."
        ),
        subject=CORE_SPEED_VARIES,
    )


def _factor(tables: Sequence[Table], name: str, tail: float) -> float:
    """How far the figures of trials are apart, each over the median of its cell, but for a ``tail``
    at either end: a factor of 1 or more; 1 where there are too few."""
    logs: list[float] = []
    for table in tables:
        values = table.used.get(name, [])
        if len(values) < _OF_CELL_MIN or min(values) <= 0:
            continue
        of_cell = [math.log(value) for value in values]
        middle = median(of_cell)
        logs += [value - middle for value in of_cell]
    if len(logs) < TRIALS_MIN:
        return 1.0
    ordered = sorted(logs)
    cut = math.floor(tail * len(ordered))
    return math.exp(min(_APART_MOST, ordered[len(ordered) - 1 - cut] - ordered[cut]))
