"""Pictures of a cell and of its base → the cause, with the words of its evidence. Pure.

The component that exceeds the base's most, and by enough, names the factor; what it means is
asked of the samples and of the other roles (``docs/method/explain.md``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from concurve.explain.cells import Excess, Picture, excess
from concurve.explain.components import (
    IDLE,
    OUTSIDE,
    blocked,
    computing,
    idling,
    outside,
    queueing,
    spinning,
    storing,
    synchronising,
)
from concurve.explain.contention import wait_often
from concurve.explain.others import is_doubtful, strangers
from concurve.explain.thresholds import WHOLE_SHARE
from concurve.explain.verdict import Here, Verdict
from concurve.explain.words import mixture, percent, times
from concurve.findings.explanation import Cause

#: Share of the base's time per operation from which an excess is one.
LOSS_MIN = 0.02
#: The same for CPU time, which the machine itself moves (clock, caches, steal).
CPU_LOSS_MIN = 0.05
#: Waiting for a CPU of which there are enough: the runner and the kernel make threads wait, too.
QUEUE_LOSS_MIN = 0.05
#: A lock needs less: nothing else makes threads wait for one another again and again.
LOCK_LOSS_MIN = 0.005
#: Else more: threads wait at a common start, too, long if the machine is busy.
START_LOSS_MIN = 0.05


def cause_of(
    cell: Picture, base: Picture | None, clients: tuple[str, ...] = (), serving: bool = False
) -> Verdict:
    """What limits a cell. ``base`` is the picture of its base, ``None`` for the base itself."""
    here = Here(cell, base, clients, serving)
    served = _serving(here)
    if served is not None:
        return served
    verdict = _by_time(here, base)
    if verdict.cause == "none" and cell.used:
        others = f", while {strangers(cell)}" if is_doubtful(cell) else ""
        return verdict._replace(words=f"{verdict.words}; {cell.used}{others}")
    return verdict


def _by_time(here: Here, base: Picture | None) -> Verdict:
    """What limits it by where the thread time goes."""
    cell = here.cell
    by_itself = _by_composition(here)
    if base is None:
        strangers = by_itself.open and is_doubtful(cell)
        return _blamed(cell) if strangers else by_itself
    by_excess = _by_excess(here, base)
    if by_excess is not None and by_excess.cause not in ("none", "contamination"):
        return by_excess
    if by_itself.cause != "none":
        return by_itself
    if by_excess is None or by_excess.open:
        return _disturbed(here, base) or by_excess or by_itself._replace(unproven=True)
    return by_excess


def _serving(here: Here) -> Verdict | None:
    """What is used up where a server was loaded: by itself, whoever else was on the machine."""
    limit = here.cell.limit
    if limit is None:
        return None
    base = here.base
    cost = f", at {times(here.cell, base)} the CPU time" if base and base.mean("cpu") else ""
    cause: Cause = "client" if limit.is_client else "cpu"
    return Verdict(cause, f"{limit.words}{cost}", limit=limit.name)


class _Candidate(NamedTuple):
    components: tuple[str, ...]
    found: Excess
    judge: Callable[[Here, float], Verdict | None]


def _by_excess(here: Here, base: Picture) -> Verdict | None:
    """The greatest excess that stands its test; ``None`` if there is none."""
    doubts = []
    for candidate in sorted(_candidates(here, base), key=lambda c: -c.found.value):
        if candidate.found.value < _least(here, base, candidate) * base.mean("total"):
            continue
        if candidate.found.low is None or candidate.found.low <= 0:
            continue
        verdict = candidate.judge(here, candidate.found.value)
        if verdict is not None and (verdict.cause != "none" or candidate.judge is blocked):
            return verdict  # a lesser part is no cause beside a greater that is not known
        doubts += [verdict] if verdict else []
    return doubts[0] if doubts else None


def _disturbed(here: Here, base: Picture) -> Verdict | None:
    """A loss that nothing else explains, on a machine that was not ours."""
    cell = here.cell
    loss = cell.mean("total") - base.mean("total")
    if not is_doubtful(cell) or loss < LOSS_MIN * base.mean("total"):
        return None
    return _blamed(cell)


def _blamed(cell: Picture) -> Verdict:
    return Verdict("contamination", f"{mixture(cell)}, while {strangers(cell)}")


def _least(here: Here, base: Picture, candidate: _Candidate) -> float:
    """Share of the base's time that an excess must reach."""
    if candidate.components == ("cpu",):
        return CPU_LOSS_MIN
    if candidate.components == ("run_queue",):
        enough = here.cell.cpus is not None and here.cell.threads <= here.cell.cpus
        return QUEUE_LOSS_MIN if enough else LOSS_MIN
    if candidate.components == ("futex",):
        return LOCK_LOSS_MIN if wait_often(here.cell, base) else START_LOSS_MIN
    return LOSS_MIN


def _candidates(here: Here, base: Picture) -> Iterator[_Candidate]:
    groups: list[tuple[tuple[str, ...], Callable[[Here, float], Verdict | None]]] = [
        (("run_queue",), queueing),
        (("cpu",), computing),
    ]
    if here.cell.told and base.told:
        groups += [
            (("futex",), synchronising),
            (("futex", "cpu"), spinning),
            (("disk",), storing),
            (OUTSIDE, outside),
            (IDLE, idling),
        ]
    else:
        groups.append((("blocked",), blocked))
    for components, judge in groups:
        if all(name in side.columns for side in (here.cell, base) for name in components):
            yield _Candidate(components, excess(here.cell, base, *components), judge)


def _by_composition(here: Here) -> Verdict:
    """What more than half of the time goes to, for the base and for cells without a loss."""
    cell = here.cell
    parts: list[tuple[tuple[str, ...], Callable[[Here, float], Verdict | None]]] = [
        (("run_queue",), queueing),
        (("futex",), synchronising),
        (("disk",), storing),
        (OUTSIDE, outside),
        (IDLE, idling),
    ]
    if not cell.told:
        parts[1:] = [(("blocked",), blocked)]
    for components, judge in parts:
        if cell.share(*components) >= WHOLE_SHARE:
            verdict = judge(here, sum(map(cell.mean, components)))
            if verdict is not None:
                return verdict
    if cell.share("cpu") >= WHOLE_SHARE:
        return Verdict("none", f"{percent(cell.share('cpu'))} of it on a CPU")
    return Verdict("none", mixture(cell))
