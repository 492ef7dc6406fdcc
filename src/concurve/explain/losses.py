"""A cell and its base → the speed-up that is lost, by part, and the causes where wall time without
workers is most of it. Pure.

The speed-up is the base's wall time per operation over the cell's; possible is the number of
workers that could run at once over that of the base. What is lost is the sum of the parts by which
the capacity of an operation exceeds that of the base (:mod:`concurve.explain.capacity`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from statistics import NormalDist, stdev
from typing import NamedTuple

from concurve.estimate import Estimate
from concurve.explain.breakdown import (
    UNEVEN_MIN,
    Breakdown,
    capacity_excess,
    capacity_values,
    excess,
    is_beyond_noise,
    values,
)
from concurve.explain.capacity import PARTS
from concurve.explain.components import quota_words
from concurve.explain.computing import spinning_words
from concurve.explain.hot import alone_in
from concurve.explain.room import cpus_at_once, is_full, is_helped
from concurve.explain.verdict import Case, Verdict
from concurve.explain.waiting import waits_share
from concurve.findings.explanation import Cause
from concurve.stats.means import mean_difference, share_of_difference
from concurve.stats.moments import mean
from concurve.words import percent

#: A part must reach this share of the base's capacity per operation.
CAPACITY_LOSS_MIN = 0.05
#: A smaller loss than this share of the base's capacity per operation is none.
LOST_MIN = 0.02
#: More workers get no more from a pipeline if the wall time, and the CPU time, changes by less.
SAME = 0.15
#: Less help than this share of the workers is a part of the loss; with more of it, who helps is a
#: worker, too.
HELP_MIN = 0.05

#: If Go's collector marks for this share of the time, goroutines help it and are slower: more CPU
#: time is its loss, too.
MARKING_MIN = 0.3

#: A goroutine that waits for others for this share of the time does not do all the work itself.
JOINED_MIN = 0.1

#: Parts that name a cause. The thread time explains the others.
_CAUSES: dict[str, Cause] = {
    "serial": "serial",
    "imbalance": "imbalance",
    "stage": "stage",
    "collector": "collector",
    "quota": "quota",
}


class Loss(NamedTuple):
    """The speed-up over the base, what was possible, and the lost speed-up by part: ``possible`` is
    the sum of ``speedup`` and all parts, where there are any. ``by_means``: the speed-up is the
    ratio of the mean times, and is shown as another one than the tables of figures have."""

    speedup: float
    possible: float
    parts: dict[str, float]
    by_means: bool = False

    def at(self, figure: Estimate | None) -> Loss:
        """The same at the speed-up of the tables of figures, which compare the trials of each
        block: each part keeps its share of the loss. That of the mean times stands where it is not
        the same speed-up (it is outside of the interval), and where so little is lost of one of the
        two that a share of it says nothing. Without parts nothing is to add up."""
        if figure is None:
            return self
        if not self.parts:
            return self._replace(speedup=figure.value)
        by_means = self._replace(by_means=abs(self.speedup - figure.value) > _SHOWN_APART)
        if figure.low is None or figure.high is None:
            return by_means
        lost, shown = self.possible - self.speedup, self.possible - figure.value
        is_same = figure.low <= self.speedup <= figure.high
        if not is_same or lost <= 0 or not 1 / RESCALED_MAX <= shown / lost <= RESCALED_MAX:
            return by_means
        parts = {name: amount * shown / lost for name, amount in self.parts.items()}
        return Loss(figure.value, self.possible, parts)


#: The lost speed-up of the mean times, and that of the blocks, may differ by this factor.
RESCALED_MAX = 2.0
#: Speed-ups that are further apart are shown as different ones.
_SHOWN_APART = 0.005


def loss_of(cell: Breakdown, base: Breakdown) -> Loss | None:
    """The speed-up that a cell lost; ``None`` where the capacity of a side is not known, and where
    the CPUs are none. No more is possible than the CPUs over those that the base used."""
    if not cell.capacity or not base.capacity or is_beyond_cpus(cell, base):
        return None
    parts = _parts(cell, base)
    wall = cell.per_operation("wall_ns")
    before = base.per_operation("wall_ns")
    workers = _workers(base, parts)
    unit = wall * workers
    if not unit:
        return None
    lost = {
        name: capacity_excess(cell, base, *columns).value / unit for name, columns in parts.items()
    }
    return Loss(before / wall, _workers(cell, parts) / workers, lost)


#: Workers wait by themselves, and not for one another or for a CPU, if so much of the base's thread
#: time is of these kinds.
WAITS_BY_ITSELF_MIN = 0.5
_BY_ITSELF = ("sleep", "disk", "network")


def is_beyond_cpus(cell: Breakdown, base: Breakdown) -> bool:
    """Can more workers than CPUs be faster, since each waits most of the time by itself? Then the
    CPUs are no capacity of which something is lost."""
    if cell.level is None or cell.cpus is None or cell.level <= cell.cpus or not base.sampled:
        return False
    known = [kind for kind in _BY_ITSELF if kind in base.columns]
    return bool(known) and base.share(*known) >= WAITS_BY_ITSELF_MIN


def undivided_loss(cell: Breakdown, base: Breakdown) -> Loss | None:
    """The same of a phase that the program marks, without parts: records have the lives of threads
    for the whole run alone. ``None`` elsewhere, and where the workers or CPUs are not known."""
    own, before = _workers_of_phase(cell), _workers_of_phase(base)
    walls = base.per_operation("wall_ns"), cell.per_operation("wall_ns")
    if not own or not before or not all(walls):
        return None
    return Loss(walls[0] / walls[1], own / before, {})


def _workers_of_phase(side: Breakdown) -> float | None:
    """The workers that could run at once in a phase that the program marks; ``None`` elsewhere."""
    is_marked = all(account.is_marked for account in side.accounts)
    if not is_marked or side.level is None or side.cpus is None:
        return None
    return min(side.level, float(side.cpus))


def _lost_by_walls(
    cell: Breakdown, base: Breakdown, workers: tuple[float | None, float | None]
) -> Estimate | None:
    """:func:`lost_share` by the wall times of so many workers of both sides."""
    if workers[0] is None or workers[1] is None:
        return None
    own, before = (
        [many * account.wall_ns / account.operations for account in side.accounts]
        for many, side in zip((workers[0], workers[1]), (cell, base), strict=True)
    )
    is_staged = cell.is_staged or base.is_staged
    return _share_of(mean_difference(own, before, "ns", is_staged=is_staged), mean(before))


def _share_of(excess: Estimate, whole: float) -> Estimate | None:
    if not whole:
        return None
    value, low, high = (
        None if figure is None else figure / whole
        for figure in (excess.value, excess.low, excess.high)
    )
    return Estimate(value=value or 0.0, low=low, high=high, n=excess.n)


def _workers(side: Breakdown, parts: dict[str, tuple[str, ...]]) -> float:
    """The workers that could run at once. Threads that helped them by more than that are workers,
    too, unless their help is a part of what is lost."""
    if any("helping" in columns for columns in parts.values()):
        return side.of_capacity("workers")
    return cpus_at_once(side)


def whole_excess(cell: Breakdown, base: Breakdown) -> Estimate:
    """By how much the capacity of an operation exceeds that of the base, in nanoseconds."""
    return capacity_excess(cell, base, *columns_of(cell, base, _parts(cell, base)))


def whole_values(cell: Breakdown, base: Breakdown) -> tuple[list[float], list[float]]:
    """The capacity of an operation in the trials of a cell and of its base, without what is no part
    of a loss; in nanoseconds."""
    columns = columns_of(cell, base, _parts(cell, base))
    return capacity_values(cell, columns), capacity_values(base, columns)


def columns_of(cell: Breakdown, base: Breakdown, names: Iterable[str]) -> tuple[str, ...]:
    """The columns of the capacity that parts of a loss are made of."""
    parts = _parts(cell, base)
    columns = {column for name in names for column in parts[name]}
    return tuple(column for column in PARTS if column in columns)


def parts_with(cell: Breakdown, base: Breakdown, columns: Iterable[str]) -> tuple[str, ...]:
    """The parts of a loss that have one of these columns of the capacity: each column is in one
    part, or in none."""
    wanted = set(columns)
    return tuple(name for name, of_it in _parts(cell, base).items() if wanted & set(of_it))


def sure_parts(cell: Breakdown, base: Breakdown) -> dict[str, Estimate]:
    """The parts of a loss that are beyond their noise, and by how much they exceed those of the
    base, in nanoseconds. Not uneven work that CPUs of different speed explain."""
    found = {
        name: part
        for name, part, own, before in _divided_parts(cell, base)
        if is_beyond_noise(part, own, before)
    }
    every = {name: part for name, part, _, _ in _divided_parts(cell, base)}
    if "imbalance" in found and _is_of_speed(cell, base, every):
        del found["imbalance"]
    return found


def _base_capacity(cell: Breakdown, base: Breakdown) -> float:
    """The base's capacity per operation, in nanoseconds."""
    return base.per_operation("wall_ns") * _workers(base, _parts(cell, base))


def lost_share(cell: Breakdown, base: Breakdown) -> Estimate | None:
    """By how much an operation's capacity exceeds that of the base, as a share of that; ``None``
    where the capacity of a side is not known."""
    if cell.capacity and base.capacity and is_beyond_cpus(cell, base):
        return _lost_by_walls(cell, base, (cell.level, base.level))
    if not cell.capacity or not base.capacity:
        return _lost_by_walls(cell, base, (_workers_of_phase(cell), _workers_of_phase(base)))
    return _share_of(whole_excess(cell, base), _base_capacity(cell, base))


#: A smaller share of the loss is not told where no cause is named.
PART_TOLD_MIN = 0.1


def known_parts(cell: Breakdown, base: Breakdown) -> list[tuple[str, Estimate]]:
    """The parts of a loss that are beyond their noise, with their shares of it, the greatest first:
    of the lost speed-up, and where that is not divided, of the thread time that an operation takes
    more. Empty where nothing is surely lost."""
    return [(name, share) for name, share, is_sure in _shares(cell, base) if is_sure]


def seeming_part(cell: Breakdown, base: Breakdown) -> tuple[str, Estimate] | None:
    """The greatest part of a loss, with its share of it, where that is within its noise, and others
    are beyond theirs; ``None`` elsewhere."""
    shares = _shares(cell, base)
    if not shares or shares[0][2] or not any(is_sure for _, _, is_sure in shares):
        return None
    name, share, _ = shares[0]
    return name, share


def _shares(cell: Breakdown, base: Breakdown) -> list[tuple[str, Estimate, bool]]:
    """The parts of a loss that are worth telling, with their shares of it, the greatest first, and
    whether each is beyond its noise. Empty where nothing is surely lost."""
    if min(cell.trials, base.trials) < 2:
        return []
    if loss_of(cell, base) is not None:
        whole, sides = whole_excess(cell, base), whole_values(cell, base)
        each = _divided_parts(cell, base)
    else:
        whole, sides = (
            excess(cell, base, "total"),
            (values(cell, ("total",)), values(base, ("total",))),
        )
        each = _thread_parts(cell, base)
    if whole.low is None or whole.low <= 0:
        return []
    is_staged = cell.is_staged or base.is_staged
    shares = [
        (
            name,
            share_of_difference((own, before), sides, is_staged),
            is_beyond_noise(found, own, before),
        )
        for name, found, own, before in each
        if found.value >= PART_TOLD_MIN * whole.value
    ]
    return sorted(shares, key=lambda part: -part[1].value)


#: A part, by how much it exceeds that of the base, and its values in the trials of both.
_Part = tuple[str, Estimate, list[float], list[float]]


def _divided_parts(cell: Breakdown, base: Breakdown) -> Iterator[_Part]:
    for name, columns in _parts(cell, base).items():
        own, before = (capacity_values(side, columns) for side in (cell, base))
        yield name, capacity_excess(cell, base, *columns), own, before


def _thread_parts(cell: Breakdown, base: Breakdown) -> Iterator[_Part]:
    for name, column in _THREAD_PARTS.items():
        if column in cell.columns and column in base.columns:
            own, before = (values(side, (column,)) for side in (cell, base))
            yield name, excess(cell, base, column), own, before


#: The parts of the thread time, by the names of those of a lost speed-up.
_THREAD_PARTS = {"cpu": "cpu", "queue": "run_queue", "waiting": "blocked"}


def by_capacity(case: Case) -> Verdict | None:
    """The cause, where most of the lost speed-up went by without workers; ``None`` where it did
    not, or where it is within its noise."""
    found = _excesses(case)
    if not found:
        return None
    name = max(found, key=lambda part: found[part].value)
    return next((it for it in capacity_verdicts(case) if it.cause == _CAUSES.get(name)), None)


def capacity_verdicts(case: Case) -> list[Verdict]:
    """The causes by which wall time went by without workers, and that are beyond their noise; the
    greatest first."""
    cell, base = case.cell, case.base
    found = _excesses(case)
    if base is None or not found:
        return []
    parts = _parts(cell, base)
    verdicts = []
    for name in sorted(found, key=lambda part: -found[part].value):
        cause = _CAUSES.get(name)
        if cause is None or not _counts(found[name], cell, base, parts[name]):
            continue
        limit = cell.stage.name if cause == "stage" and cell.stage else ""
        words = _words(cause, cell)
        verdicts.append(Verdict(cause, words, limit=limit, is_loss=True, parts=parts[name]))
    return verdicts


def _excesses(case: Case) -> dict[str, Estimate]:
    """By how much each part exceeds the base's; empty where the capacity of a side is not known,
    and where nothing is lost: what one part lost, another has won."""
    cell, base = case.cell, case.base
    if base is None or not cell.capacity or not base.capacity:
        return {}
    if whole_excess(cell, base).value < LOST_MIN * _base_capacity(cell, base):
        return {}
    parts = _parts(cell, base)
    found = {name: capacity_excess(cell, base, *columns) for name, columns in parts.items()}
    found.pop("helping", None)
    if "imbalance" in found and _is_of_speed(cell, base, found):
        del found["imbalance"]
    return found


#: Workers that differ by no more than this between the busiest and the mean may have CPUs of
#: different speed.
OF_SPEED_UNEVEN_MAX = 1.25


def _is_of_speed(cell: Breakdown, base: Breakdown, found: dict[str, Estimate]) -> bool:
    """May the work have been even, and the CPUs of different speed?"""
    if cell.mean("spin_waits"):
        return False
    uneven = found["imbalance"].value
    return uneven <= _by_chance(cell, base) or uneven <= _by_shared_cores(cell, base, found)


#: So many times what is expected by chance is still by chance: with two workers the mean of four
#: trials is greater in 1 of 40.
CHANCE_TIMES = 1.75


def _by_chance(cell: Breakdown, base: Breakdown) -> float:
    """The imbalance that equal workers have, at most, where the CPU time of the same work differs
    as much from worker to worker as in the base from trial to trial: the expected excess of the
    greatest of so many normal values over their mean (Blom 1958), of all workers together."""
    values, workers = base.capacity["cpu"], cell.of_capacity("workers")
    if len(values) < 2 or workers < 2:
        return 0.0
    expected = NormalDist().inv_cdf((workers - 0.375) / (workers + 0.25))
    return CHANCE_TIMES * expected * stdev(values)


def _by_shared_cores(cell: Breakdown, base: Breakdown, found: dict[str, Estimate]) -> float:
    """The imbalance that a slow CPU of a virtual machine explains, at most: an operation then costs
    more CPU time, and with two workers the other one waits for as long as the slow one takes more.
    So it is where CPUs share a core of the host by turns; with more workers several of them are
    slow at a time, and the others wait for no longer than that costs."""
    may_share = all(account.may_share_cores for account in cell.accounts)
    if "cpu" not in found or not may_share or cell.of_capacity("uneven") > OF_SPEED_UNEVEN_MAX:
        return 0.0
    more = found["cpu"].value
    is_slower = more >= CAPACITY_LOSS_MIN * _base_capacity(cell, base)
    return SPEED_SLACK * more if is_slower else 0.0


#: What is measured of both may differ by this factor.
SPEED_SLACK = 1.25


def _parts(cell: Breakdown, base: Breakdown) -> dict[str, tuple[str, ...]]:
    """The parts that are told apart, each with its columns. Where a stage is the limit, the base
    may have had help by threads of other stages: that more workers get no more is its loss, too."""
    beside = ("merging", "helping")
    every: dict[str, tuple[str, ...]] = {part: (part,) for part in PARTS if part not in beside}
    uneven = "serial" if _waits_for_workers(base) else "imbalance"
    every[uneven] = (uneven, "merging")
    if is_full(cell, base):
        del every["stage"]  # the CPUs keep the others from work
        return every | {"waiting": ("waiting", "stage")}
    if cell.stage is not None:
        return every | {"stage": ("stage", "helping")}
    if cell.goroutines is not None and cell.goroutines.marking >= MARKING_MIN:
        del every["cpu"]
        return every | {"collector": ("collector", "helping", "cpu")}
    if _collects_beside(base):
        return every | {"collector": ("collector", "helping")}
    if _is_held_up(cell, base):
        del every["waiting"]
        return every | {"stage": ("stage", "helping", "waiting")}
    is_little = cpus_at_once(base) < (1 + HELP_MIN) * base.of_capacity("workers")
    return every | {"helping": ("helping",)} if is_little else every


def _waits_for_workers(base: Breakdown) -> bool:
    """Does a goroutine wait for the end of the others even where only one works? Then it is no
    worker, and what it does when they have ended is serial."""
    alone = base.goroutines
    return base.level == 1 and alone is not None and alone.joined >= JOINED_MIN


def _collects_beside(base: Breakdown) -> bool:
    """Did the collector run beside the workers of the base? What it takes where there are more of
    them is its loss, too."""
    helping = -base.of_capacity("helping")
    capacity = base.per_trial("wall_ns") * base.of_capacity("workers")
    return helping >= SAME * capacity and base.of_capacity("collector") >= helping / 2


def _is_held_up(cell: Breakdown, base: Breakdown) -> bool:
    """Do more workers change nothing, although threads beside the one of the base helped it, and
    CPUs are left? Then another part of the program is the limit, even if no thread of its own shows
    it (a goroutine runs on any)."""
    return is_helped(base) and _is_same(cell, base) and not is_full(cell, base)


def _is_same(cell: Breakdown, base: Breakdown) -> bool:
    """Does an operation take as long as in the base, and as much CPU time?"""
    wall, before = cell.per_operation("wall_ns"), base.per_operation("wall_ns")
    computed, was = cell.mean("cpu"), base.mean("cpu")
    return abs(wall - before) < SAME * before and abs(computed - was) < SAME * was


def uncounted(case: Case) -> Verdict | None:
    """That the base uses the CPUs already, and more workers change nothing: their number does not
    count all that runs. ``None`` where it is not so."""
    cell, base = case.cell, case.base
    if base is None or not cell.capacity or not base.capacity or min(cell.trials, base.trials) < 2:
        return None
    is_more = (cell.level or 0.0) > (base.level or 0.0)
    if is_more and is_full(cell, base) and _is_same(cell, base):
        return Verdict("cpu", "the number of workers does not count what runs", is_uncounted=True)
    return None


def _counts(excess: Estimate, cell: Breakdown, base: Breakdown, columns: tuple[str, ...]) -> bool:
    capacity = base.per_operation("wall_ns") * base.of_capacity("workers")
    is_sure = is_beyond_noise(excess, *(capacity_values(side, columns) for side in (cell, base)))
    return excess.value >= CAPACITY_LOSS_MIN * capacity and is_sure


def _words(cause: Cause, cell: Breakdown) -> str:
    if cause == "stage":
        return _stage_words(cell)
    if cause == "collector":
        return _collector_words(cell)
    if cause == "serial":
        return _serial_words(cell)
    if cause == "imbalance":
        return _uneven_words(cell)
    return quota_words(cell) or "the quota of its control group held it back"


def _serial_words(cell: Breakdown) -> str:
    if _waits_for_once(cell):
        return "workers waited while one of them did what is done once for all"
    if 2 * mean(cell.capacity["merging"]) > mean(cell.capacity["serial"]):
        return _merging_words(cell)
    said = (
        f"for {percent(cell.of_capacity('alone'))} of the time no worker worked, while another "
        "thread ran"
    )
    # Of processes each has a first thread, which works.
    are_processes = any(account.apart for account in cell.accounts)
    where = "" if are_processes else alone_in(cell.hot)
    said = f"{said}; the first thread alone ran in {where}" if where else said
    return f"{said}; {spinning_words(cell)}" if _spins(cell, "serial") else said


def _merging_words(cell: Breakdown) -> str:
    idle = cell.of_capacity("merging") / (cell.of_capacity("workers") - 1)
    alone = cell.of_capacity("alone") + idle / cell.per_trial("wall_ns")
    return (
        f"for {percent(min(1.0, alone))} of the time one goroutine worked while all the others had "
        "ended, or had no work"
    )


def _spins(cell: Breakdown, part: str) -> bool:
    """Is at least half of a part, of those without work, made of threads that spin?"""
    return bool(cell.mean("spin_waits")) and 2 * cell.mean("spin_waits") >= mean(
        cell.capacity[part]
    )


def _waits_for_once(cell: Breakdown) -> bool:
    """Is at least half of the serial part waits for what one worker does once for all?"""
    share = waits_share([account.sites for account in cell.accounts], "once")
    known = [account.capacity for account in cell.accounts if account.capacity is not None]
    once = sum(capacity.with_once(share).serial - capacity.serial for capacity in known)
    return once > 0 and once >= sum(capacity.serial for capacity in known)


def _uneven_words(cell: Breakdown) -> str:
    if _spins(cell, "imbalance"):
        return spinning_words(cell)
    if cell.of_capacity("uneven") < UNEVEN_MIN:
        return (
            "all workers had as much work in the end, but in each round some of them waited for "
            "the others"
        )
    return (
        f"the busiest worker ran {cell.of_capacity('uneven'):.2f} × as long as the mean of the "
        "workers; the others had ended, or waited for the end or for the next round"
    )


def _stage_words(cell: Breakdown) -> str:
    if cell.stage is None:
        return (
            "more workers neither took longer nor got more done, and threads beside them ran: "
            "another part of the program is the limit"
        )
    return f"{cell.stage.words}, while others waited for it again and again"


def _collector_words(cell: Breakdown) -> str:
    share = percent(cell.of_capacity("collected"))
    if cell.goroutines is not None:
        many = f"{cell.goroutines.collecting:.1f} threads"
        return f"the garbage collector marked {share} of the time, on {many} on the average"
    return (
        f"a thread of the garbage collector ran {share} of the time, and the workers wait meanwhile"
    )
