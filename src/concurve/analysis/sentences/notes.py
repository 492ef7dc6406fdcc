"""How to read the figures of a run."""

from __future__ import annotations

from collections.abc import Iterator

from concurve import words
from concurve.analysis.ground import Speed
from concurve.analysis.sentences.gains import speedups_compared
from concurve.analysis.sentences.naming import name
from concurve.definition.indicator_names import IndicatorName, split_name
from concurve.findings.cells import CellFindings
from concurve.planning.plan import Plan
from concurve.readings.measures import MEASURE_PHASE

#: The run time is named beside the measured phase if it is this many times as long.
START_UP_FACTOR = 1.02

#: All of so many trials are at one of two speeds in 1 of 16 cells: about what an interval may miss.
FEW = 5

#: Servers that switch more often in a second have lost some percent (docs/method/overhead.md).
OFTEN_PER_SECOND = 10_000


def notes_of(
    plan: Plan, cells: tuple[CellFindings, ...], speed: Speed | None, *, are_judged: bool = False
) -> list[str]:
    """Notes on what times and speed-ups are, and on their intervals. ``are_judged``: the answer
    tells the levels apart as a comparison does, and has its intervals."""
    notes = [*_few(plan, cells), *_slowed(plan, cells)]
    if any(_has_start_up(cell) for cell in cells):
        notes.append(
            f"Times are those of the phase '{MEASURE_PHASE}' that the program marked; run_seconds "
            "includes the start-up."
        )
    if speed is None or not any("speedup" in cell.indicators for cell in cells):
        return notes
    if plan.work_grows:
        notes.append(
            f"Speed-up is by {speed.indicator.label}, against the base cell of each group, block "
            "by block: it is the centre of their ratios, and not the ratio of two medians. "
            f"Efficiency is speed-up over the ratio of {plan.work}."
        )
    elif plan.work:
        base = ", ".join(f"{name}={level}" for name, level in plan.study.base.items())
        notes.append(
            f"Speed-up is by {speed.indicator.label}, against {base} at the same {plan.work}, "
            "block by block: it is the centre of their ratios, and not the ratio of two medians."
        )
    compared = speedups_compared(cells)
    if compared > 1 and are_judged:
        notes.append(
            f"The intervals of the answer are those by which its {compared} verdicts are told "
            "together; those of the tables are of each cell alone."
        )
    elif compared > 1:
        notes.append(
            "The intervals of the answer hold for "
            f"{words.all_of(compared, 'speed-up')} together, from which it is chosen; so they are "
            "wider than those of the tables."
        )
    return notes


def _few(plan: Plan, cells: tuple[CellFindings, ...]) -> Iterator[str]:
    """What intervals of so few trials take for granted."""
    figures = [cell.indicators.get(plan.study.primary) for cell in cells]
    counts = [figure.n for figure in figures if figure is not None and 1 < figure.n < FEW]
    if counts and not plan.study.simulation:
        n = min(counts)
        yield (
            f"Intervals of fewer than {FEW} trials take the noise as normal: of a program with "
            f"two speeds, {n} trials show only one in 1 of {2 ** (n - 1)} cells."
        )


def _has_start_up(cell: CellFindings) -> bool:
    run, wall = cell.indicators.get("run_seconds"), cell.indicators.get("wall_seconds")
    return run is not None and wall is not None and run.value > START_UP_FACTOR * wall.value


def _slowed(plan: Plan, cells: tuple[CellFindings, ...]) -> Iterator[str]:
    """How much measuring may cost the role that switches most often. The switches of a simulation
    are not those of its figures."""
    most = max(_switch_rates(cells), key=lambda it: it[0], default=None)
    if most is None or most[0] <= OFTEN_PER_SECOND or plan.study.simulation:
        return
    rate, role, cell = most
    yield (
        f"{role or plan.study.target} switched {rate:,.0f} times a second with "
        f"{name(plan, cell.parameters)}. Measuring may slow such a program: a server with 10,000 "
        "switches a second by 5 %, two threads with 750,000 by a quarter "
        "(docs/method/overhead.md)."
    )


def _switch_rates(cells: tuple[CellFindings, ...]) -> Iterator[tuple[float, str, CellFindings]]:
    """How often the threads of each role switched in a second, in each cell."""
    for cell in cells:
        for figure, found in cell.indicators.items():
            role, own = split_name(figure)
            seconds = cell.indicators.get(str(IndicatorName(role, "wall_seconds")))
            if own == "context_switches" and seconds is not None and seconds.value > 0:
                yield found.value / seconds.value, role, cell
