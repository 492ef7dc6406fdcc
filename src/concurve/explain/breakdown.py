"""The accounts of a cell's trials → the breakdown of its thread time, and by how much it exceeds
that of its base. Pure.

Figures are per operation, in nanoseconds of thread time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from concurve.estimate import Estimate
from concurve.explain.accounts import READINGS_MIN, Account, OtherRole
from concurve.explain.capacity import PARTS, Stage
from concurve.explain.goroutines import Goroutines, mean_goroutines
from concurve.explain.hot import Hot, Spun, spun
from concurve.explain.stations import Limit, Serving, limit_of, used_words
from concurve.explain.threads import Dispatcher
from concurve.explain.waiting import (
    KINDS,
    AtBarriers,
    Place,
    waits_at_barriers,
    waits_for_locks,
    waits_share,
)
from concurve.stats.means import mean_difference, mean_estimate
from concurve.stats.moments import mean

#: Below this share, blocked time is not divided by what the threads waited for.
BLOCKED_SHARE_NEGLIGIBLE = 0.02
#: Fewer readings do if they agree: six of six mean a share above 0.6 (Clopper & Pearson 1934,
#: one-sided, 95 %).
CLEAR_READINGS_MIN = 6
CLEAR_SHARE = 0.9
#: With fewer blocked readings in a trial, the readings of all trials of the cell divide its time.
_TRIAL_READINGS_MIN = 10
#: Threads wait for locks if so many of the sampled places are functions that take one.
LOCKS_SHARE = 0.5
#: With less between the busiest worker and the mean, the work of all was even.
UNEVEN_MIN = 1.1


class Breakdown(NamedTuple):
    """The components of a cell's thread time per operation, one value per trial, and further
    figures of the trials.

    Components: ``total``, ``cpu``, ``run_queue``, ``blocked``, and the kinds of waiting where
    there are samples. Parts of the CPU time: ``spin_waits``, for which threads of OpenMP, or in
    loops of the program's own, spun because they had no work; ``spin_delays``, the same because
    others were kept from a CPU; and
    ``spin_locks``, for which threads spun for a lock. ``running`` is the mean number of active
    threads at once that wait neither at a futex nor at a pipe. ``is_staged``: the data have set the
    number of trials. ``capacity``: what that of the workers went to, per operation; empty where it
    is not known. ``lock_places``: where threads take a lock, by the samples of all cells of the
    run: a cell with few of its own has the same program.
    """

    columns: dict[str, list[float]]
    accounts: tuple[Account, ...]
    is_staged: bool
    readings: dict[str, int]
    capacity: dict[str, list[float]]
    lock_places: frozenset[Place] = frozenset()

    @property
    def is_go(self) -> bool:
        """Is it a Go program, whose threads say little of its goroutines?"""
        return any(account.is_go for account in self.accounts)

    @property
    def is_jvm(self) -> bool:
        """Does a JVM run the threads, whose lines no sample of a stack names?"""
        return any(account.is_jvm for account in self.accounts)

    @property
    def goroutines(self) -> Goroutines | None:
        """What the goroutines of a Go program did at a time."""
        return mean_goroutines([account.goroutines for account in self.accounts])

    @property
    def trials(self) -> int:
        """Trials behind it."""
        return len(self.accounts)

    @property
    def threads(self) -> int:
        """The number of active threads in most trials."""
        return _usual([account.threads for account in self.accounts])

    @property
    def cpus(self) -> int | None:
        """The number of CPUs that the active threads may use."""
        return self.accounts[0].cpus

    @property
    def has_every_cpu(self) -> bool:
        """Are these all CPUs of the machine?"""
        return self.accounts[0].has_every_cpu

    @property
    def level(self) -> float | None:
        """The number of workers that were asked for, where a factor counts them."""
        return self.accounts[0].level

    @property
    def sampled(self) -> bool:
        """Do samples say what blocked threads waited for?"""
        return any(kind in self.columns for kind in KINDS)

    @property
    def enough_samples(self) -> bool:
        """Are the samples enough to rely on, or is the blocked time negligible?"""
        kinds = [self.readings.get(kind, 0) for kind in KINDS]
        enough = sum(self.readings.values()) >= READINGS_MIN
        clear = sum(kinds) >= CLEAR_READINGS_MIN and max(kinds) >= CLEAR_SHARE * sum(kinds)
        negligible = self.share("blocked") < BLOCKED_SHARE_NEGLIGIBLE
        return self.sampled and (enough or clear or negligible)

    def mean(self, component: str) -> float:
        """Mean time per operation of a component; 0 where there is none."""
        column = self.columns.get(component)
        return mean(column) if column else 0.0

    def share(self, *components: str) -> float:
        """Share of the thread time that components take together."""
        total = self.mean("total")
        return sum(map(self.mean, components)) / total if total else 0.0

    def estimate(self, component: str) -> Estimate:
        """A component with its interval."""
        return mean_estimate(self.columns[component], "ns", is_staged=self.is_staged)

    def per_trial(self, name: str) -> float:
        """The mean of a figure of the account over the trials."""
        return mean([float(getattr(account, name)) for account in self.accounts])

    def per_operation(self, name: str) -> float:
        """The mean of a figure of the account, per operation, over the trials."""
        return mean([getattr(account, name) / account.operations for account in self.accounts])

    @property
    def ready(self) -> float:
        """The mean number of active threads that run or wait for a CPU."""
        parts = [name for name in ("cpu", "run_queue") if name in self.columns]
        wall = self.per_operation("wall_ns")
        return sum(map(self.mean, parts)) / wall if wall else 0.0

    @property
    def running(self) -> float:
        """The mean number of active threads that do not wait for another active thread, without
        those that sleep beside the workers."""
        at_once = mean([account.thread_ns / account.wall_ns for account in self.accounts])
        working = at_once * (1 - self.share("futex", "pipe", "wake_up"))
        return max(0.0, working - self.per_trial("asleep"))

    @property
    def others(self) -> list[OtherRole]:
        """Other roles of the trials, each with its means over the trials."""
        seen: dict[str, list[OtherRole]] = {}
        for account in self.accounts:
            for other in account.others:
                seen.setdefault(other.name, []).append(other)
        return [
            OtherRole(
                name,
                mean([other.cpus for other in found]),
                found[0].nice,
                mean([other.busiest for other in found]),
                mean([other.asleep for other in found]),
                found[0].is_client,
            )
            for name, found in seen.items()
        ]

    @property
    def limit(self) -> Limit | None:
        """The saturated station, if the cell serves clients and a station is saturated."""
        return limit_of(self._serving) if self._serving else None

    def ready_at(self, station: str) -> list[float]:
        """How long the threads of a station of a server ran, or waited for a CPU, per operation; a
        value per trial, 0 where it had none."""
        return [
            sum(
                (it.cpus + it.queued) * account.wall_ns / account.operations
                for it in (account.serving.stations if account.serving else ())
                if it.name == station
            )
            for account in self.accounts
        ]

    @property
    def used(self) -> str:
        """How much CPU time each kind of threads used, if the cell serves clients."""
        return used_words(self._serving) if self._serving else ""

    @property
    def server_cpu(self) -> Estimate | None:
        """The CPU time per operation of all threads of a server under load, in nanoseconds;
        ``None`` of what serves nobody, and where operations are not counted."""
        if any(it.counted not in ("reported", "rate") for it in self.accounts):
            return None
        each = [
            it.serving.server * it.wall_ns / it.operations for it in self.accounts if it.serving
        ]
        if len(each) < self.trials:
            return None
        return mean_estimate(each, "ns", is_staged=self.is_staged)

    @property
    def _serving(self) -> list[Serving]:
        """The figures of the stations in all trials; empty if one trial has none. Trials of which
        only the server's whole life is known count where no other one is there: its waits before
        and after the load are no use of CPUs."""
        loaded = [account for account in self.accounts if not account.is_lifetime]
        accounts = loaded or self.accounts
        found = [account.serving for account in accounts if account.serving is not None]
        return found if len(found) == len(accounts) else []

    @property
    def dispatcher(self) -> Dispatcher | None:
        """The thread that hands out the work, where most trials have one."""
        found = [account.dispatcher for account in self.accounts if account.dispatcher is not None]
        if 2 * len(found) <= len(self.accounts):
            return None
        is_full, is_used_up = (
            2 * sum(each) > len(found)
            for each in zip(*((one.waits_for_workers, one.used_up) for one in found), strict=True)
        )
        ran = mean([dispatcher.ran for dispatcher in found])
        return Dispatcher(found[0].name, ran, is_full, is_used_up)

    @property
    def stage(self) -> Stage | None:
        """The thread that was busy throughout while others waited for it, where the trials have
        one."""
        return _stage_of(self.accounts)

    def of_capacity(self, name: str) -> float:
        """The mean of a figure of the capacity over the trials."""
        return mean([float(getattr(a.capacity, name)) for a in self.accounts if a.capacity])

    @property
    def at_barriers(self) -> AtBarriers:
        """How its threads wait at barriers."""
        return _at_barriers(self.accounts)

    @property
    def hot(self) -> list[Hot | None]:
        """Where the threads of each trial ran."""
        return [account.hot for account in self.accounts]

    @property
    def missing(self) -> dict[str, str]:
        """Evidence that the records lack, and why."""
        return {name: why for account in self.accounts for name, why in account.missing.items()}


def breakdown(accounts: Sequence[Account], is_staged: bool = False) -> Breakdown | None:
    """The breakdown of a cell from the trials in use; ``None`` without any."""
    counted = [account for account in accounts if account.operations > 0]
    if not counted:
        return None
    if _stage_of(counted) is None:
        counted = [_without_stage(account) for account in counted]
    if waits_for_locks([account.sites for account in counted]) >= LOCKS_SHARE:
        counted = [_with_locks(account) for account in counted]
    readings: Counter[str] = Counter()
    for account in counted:
        readings.update(account.readings)
    columns: dict[str, list[float]] = {
        "total": [a.thread_ns / a.operations for a in counted],
        "cpu": [a.cpu_ns / a.operations for a in counted],
        "blocked": [a.blocked_ns / a.operations for a in counted],
    }
    if all(account.run_queue_ns is not None for account in counted):
        columns["run_queue"] = [(a.run_queue_ns or 0.0) / a.operations for a in counted]
    if any(readings.values()):
        columns |= _by_kind(counted, readings)
    spinning = spun([account.hot for account in counted])
    spinning = [one._replace(waiting=one.waiting + one.uneven) for one in spinning]
    delayed = [min(one.waiting, _delay(a)) for one, a in zip(spinning, counted, strict=True)]
    columns["spin_locks"] = [one.locking for one in spinning]
    columns["spin_delays"] = delayed
    columns["spin_waits"] = [
        one.waiting - delay for one, delay in zip(spinning, delayed, strict=True)
    ]
    counted = [
        _without_spinning(account, one, waited)
        for account, one, waited in zip(counted, spinning, columns["spin_waits"], strict=True)
    ]
    return Breakdown(columns, tuple(counted), is_staged, dict(readings), _capacity(counted))


def _stage_of(accounts: Sequence[Account]) -> Stage | None:
    """The stage that most trials have, if it is the same part of the program in each of these."""
    found = [a.capacity.limit for a in accounts if a.capacity and a.capacity.limit]
    if 2 * len(found) <= len(accounts) or len({stage.part for stage in found}) > 1:
        return None
    many = _usual([stage.threads for stage in found])
    return found[0]._replace(ran=mean([stage.ran for stage in found]), threads=many)


def _without_stage(account: Account) -> Account:
    """The account whose capacity is divided as if no thread were a stage."""
    divided = account.capacity.unstaged if account.capacity else None
    return account._replace(capacity=divided) if divided else account


def _with_locks(account: Account) -> Account:
    """The account whose capacity is divided as threads do that wait for locks."""
    divided = account.capacity.locked if account.capacity else None
    return account._replace(capacity=divided) if divided else account


def _delay(account: Account) -> float:
    """How long the other threads spin, at most, for those that are kept from a CPU; per
    operation."""
    kept = (account.run_queue_ns or 0.0) + account.steal_ns
    return max(0, account.threads - 1) * kept / account.operations


def _without_spinning(account: Account, one: Spun, waited: float) -> Account:
    """The account whose capacity has the time for which threads spun without work apart."""
    if account.capacity is None or not waited:
        return account
    wait, alone = (time * account.operations for time in (waited, one.alone))
    divided = account.capacity.with_spinning(wait, alone, account.wall_ns)
    return account._replace(capacity=divided)


def excess(cell: Breakdown, base: Breakdown, *components: str, station: str = "") -> Estimate:
    """By how much components together exceed the base's, in nanoseconds, with the time of the
    threads of a ``station``; without an interval where a cell has a single trial."""
    own, other = (values(side, components, station) for side in (cell, base))
    return mean_difference(own, other, "ns", is_staged=cell.is_staged or base.is_staged)


def values(side: Breakdown, components: Sequence[str], station: str = "") -> list[float]:
    """Components together, a value for each trial, in nanoseconds, with the time of the threads of
    a ``station``."""
    columns = [side.columns[component] for component in components]
    columns += [side.ready_at(station)] if station else []
    return [sum(each) for each in zip(*columns, strict=True)]


#: So many trials on each side, all of one above all of the other, are no chance.
APART_TRIALS_MIN = 4


def is_beyond_noise(found: Estimate, own: Sequence[float], before: Sequence[float]) -> bool:
    """Does the interval of an excess leave out 0, or does the least of the cell exceed the greatest
    of the base? That is as rare by chance as 1 in 70 with :data:`APART_TRIALS_MIN` trials on each
    side (Mann & Whitney 1947), however the values are spread: where a lock, or a line of a cache,
    costs twice or five times as much by turns, the interval of the mean is wide."""
    if found.low is None:
        return False
    if found.low > 0:
        return True
    return min(len(own), len(before)) >= APART_TRIALS_MIN and min(own) > max(before)


def capacity_values(side: Breakdown, parts: Sequence[str]) -> list[float]:
    """Parts of the capacity together, a value for each trial, in nanoseconds."""
    return [sum(each) for each in zip(*(side.capacity[part] for part in parts), strict=True)]


def capacity_excess(cell: Breakdown, base: Breakdown, *parts: str) -> Estimate:
    """By how much parts of the capacity together exceed the base's, in nanoseconds."""
    own, other = (capacity_values(side, parts) for side in (cell, base))
    return mean_difference(own, other, "ns", is_staged=cell.is_staged or base.is_staged)


def _capacity(accounts: Sequence[Account]) -> dict[str, list[float]]:
    """The parts of the capacity, a value per trial; empty if one trial lacks them. The places where
    threads wait are few in a trial, so those of all trials say how many are of which kind."""
    known = [account.capacity for account in accounts if account.capacity is not None]
    if len(known) < len(accounts):
        return {}
    sites = [account.sites for account in accounts]
    barriers, once = _at_barriers(accounts), waits_share(sites, "once")
    divided = [capacity.with_barriers(barriers.by_place).with_once(once) for capacity in known]
    divided = [capacity.with_locks_before_barriers(barriers.behind) for capacity in divided]
    return {
        part: [
            getattr(capacity, part) / account.operations
            for capacity, account in zip(divided, accounts, strict=True)
        ]
        for part in PARTS
    }


#: Who gets a lock last comes to the barrier last. If threads wait for locks so many times as long
#: as at barriers, or for so much of the time in which others could work beside one and are not at
#: the barrier, that is why they wait there.
BEHIND_MIN, LOCKED_MIN = 1 / 3, 0.4


def _at_barriers(accounts: Sequence[Account]) -> AtBarriers:
    """How threads wait at barriers. Only where all have as much work do they wait there for who
    gets a lock last: for as long as they wait for the lock, or for as much of the time as they do
    so where none of them is at the barrier."""
    found = waits_at_barriers(
        [account.sites for account in accounts],
        sum(account.readings.get("futex", 0) for account in accounts),
        sum(account.word.rounds for account in accounts),
    )
    known = [account.capacity for account in accounts if account.capacity is not None]
    are_even = len(known) == len(accounts) and mean([it.uneven for it in known]) < UNEVEN_MIN
    if not (are_even and found.at_barriers and found.at_locks):
        return found
    waited = mean([capacity.waiting + capacity.imbalance for capacity in known])
    beside_one = mean([capacity.idle_beside_one for capacity in known])
    inside = max(beside_one - found.at_barriers * waited, found.at_locks * waited)
    locked = found.at_locks * waited / inside if inside else 0.0
    as_long = found.at_locks / found.at_barriers
    is_behind = as_long >= BEHIND_MIN or locked >= LOCKED_MIN
    return found._replace(behind=min(1.0, max(as_long, locked)) if is_behind else 0.0)


def _by_kind(accounts: Sequence[Account], readings: Counter[str]) -> dict[str, list[float]]:
    """Blocked time divided as the samples of the trial are; where they are few, as those of all
    trials; where no thread was seen blocked, under ``other``."""
    everywhere = _shares(readings) or {"other": 1.0}
    columns: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for account in accounts:
        blocked = sum(account.readings.get(kind, 0) for kind in KINDS)
        own = _shares(account.readings) if blocked >= _TRIAL_READINGS_MIN else None
        shares = own or everywhere
        for kind in KINDS:
            time = account.blocked_ns * shares.get(kind, 0.0) / account.operations
            columns[kind].append(time)
    return columns


def _shares(readings: dict[str, int] | Counter[str]) -> dict[str, float] | None:
    blocked = sum(readings.get(kind, 0) for kind in KINDS)
    return {kind: readings.get(kind, 0) / blocked for kind in KINDS} if blocked else None


def _usual(values: Sequence[int]) -> int:
    return sorted(values)[len(values) // 2]
