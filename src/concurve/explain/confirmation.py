"""The stored trials of experiments → what they say of the cause that they are to confirm."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import NamedTuple

import msgspec

from concurve import words
from concurve.analysis.records import StoredRecord, read_records
from concurve.analysis.run import StoredRun, stored_run
from concurve.errors import RunError, StoreError
from concurve.estimate import Estimate
from concurve.explain.accounts import account
from concurve.explain.experiments import (
    AS_IS,
    BY_CPU_TIME,
    HELD,
    HOGS,
    ONE_CPU,
    PROCESSES,
    RECORDED,
    TESTABLE,
    factor_of,
)
from concurve.explain.predicted_gain import (
    BLOCKS_MIN,
    GAIN_MIN,
    Bound,
    gain_of,
    signed_mean,
    slope_at_zero,
)
from concurve.explain.recorded import recorded
from concurve.findings.confirmation import Confirmation, Confirmed, Gain, Recorded, Tried
from concurve.planning.plan import describe
from concurve.readings.operations import asked_of
from concurve.stats.moments import mean
from concurve.store import Store
from concurve.store.rows import RunRow, TrialKey
from concurve.store.run_head import Confirms, decode_head
from concurve.wire.record import RecordedWaits, RoleRecord
from concurve.words import percent

#: What the library in front of locks reports (``instrument/interposer``).
_HOLDS, _HELD_SECONDS = "perturbed_holds", "perturbed_held_seconds"
#: The prediction is for a lock that is held for this part of its time.
HALF = 0.5
#: CPU time that threads share something for must fall by this on one CPU.
CPU_CHANGE_MIN = 0.05
#: What bandwidth costs must exceed what a CPU costs by this.
BANDWIDTH_MIN = 1.05


class _Took(NamedTuple):
    """What an operation of a trial took: wall time, CPU time, holds of the lock, and their time."""

    wall_ns: float
    cpu_ns: float
    holds: float | None
    held_ns: float | None
    threads: float
    cpus: float
    is_marked: bool = False


#: What an operation took, by block, of each level.
_Trials = dict[str, dict[int, _Took]]


def confirm_run(store: Store, row: RunRow) -> Confirmation:
    """What the experiments of a stored run say.

    Raises:
        RunError: its trials are no experiments.
    """
    confirms = decode_head(row).confirms
    if confirms is None:
        raise RunError(
            f"the trials of run {row.id} are no experiments", f"concurve explain {row.id} --confirm"
        )
    run = stored_run(store, row)
    reader = _Reader(run)
    read_records(store, row.id, (reader,))
    found = confirmation(run.head.id, run.head.study.name, confirms, reader.levels, reader.trials)
    return msgspec.structs.replace(found, recorded=_recorded(run, confirms, reader))


def confirmations_of(store: Store, run: str, study: str) -> tuple[list[Confirmation], list[str]]:
    """What the experiments on a run say, the newest last; those without a trial are left out. Those
    that cannot be read are, too, with a note: nothing that was stored later takes the findings of a
    run away."""
    found, notes = [], []
    for row in store.runs(f"{study}-confirm"):
        try:
            confirms = decode_head(row).confirms
            if confirms is not None and confirms.run == run and store.has_trials(row.id):
                found.append(confirm_run(store, row))
        except (StoreError, RunError) as error:
            notes.append(f"Run {row.id} of experiments is left out: {error.what}.")
    return found, notes


def _recorded(run: StoredRun, confirms: Confirms, reader: _Reader) -> Recorded | None:
    """What the flight recorder says; ``None`` where none was asked."""
    if confirms.unrecorded:
        return Recorded(missing=confirms.unrecorded)
    if RECORDED not in reader.levels:
        return None
    if reader.recordings:
        return recorded(reader.recordings, _ratio(reader.trials, RECORDED, AS_IS, "wall_ns"))
    failed = run.protocol.cells[reader.levels.index(RECORDED)].skipped
    ended = f"its trials with the recorder failed: {failed}" if failed else "no trial with it ended"
    why = reader.unread or ended
    return Recorded(missing=why)


class _Reader:
    """What an operation took in the trials in use, by level and block, and what was recorded
    there."""

    def __init__(self, run: StoredRun) -> None:
        factor = factor_of(run.head.study)
        self.levels = [str(cell.parameters[factor]) for cell in run.plan.cells]
        self.trials: _Trials = {level: {} for level in self.levels}
        self.recordings: list[RecordedWaits] = []
        self.unread = ""
        self._used = {cell: set(keys) for cell, keys in run.used.items()}
        self._left = {cell: len(keys) for cell, keys in self._used.items()}
        self._asked = asked_of(run.head.study)
        self._workers = [run.plan.workers(cell) for cell in run.plan.cells]

    def cells(self) -> Collection[int]:
        return self._used

    def wants(self, key: TrialKey) -> bool:
        return key in self._used[key.cell]

    def has_all(self, cell: int) -> bool:
        return not self._left.get(cell)

    def take(self, stored: StoredRecord) -> None:
        cell = stored.key.cell
        self._left[cell] -= 1
        found = account(stored.record, self._asked, self._workers[cell])
        role = stored.record.role(self._asked.roles.subject)
        if role is not None:
            self._take_recording(role)
        if found is None or role is None or not found.operations:
            return
        sums = {
            name: math.fsum(line.value for line in role.indicators if line.indicator == name)
            for name in {line.indicator for line in role.indicators}
        }
        holds, held = sums.get(_HOLDS), sums.get(_HELD_SECONDS)
        self.trials[self.levels[cell]][stored.key.block] = _Took(
            found.wall_ns / found.operations,
            found.cpu_ns / found.operations,
            None if holds is None else holds / found.operations,
            None if held is None else held * 1e9 / found.operations,
            found.level or found.threads,
            found.cpus or 1,
            found.is_marked,
        )

    def _take_recording(self, role: RoleRecord) -> None:
        if role.recorded is not None:
            self.recordings.append(role.recorded)
        self.unread = role.absent.get("recorded", self.unread)


def confirmation(
    run: str, study: str, confirms: Confirms, levels: Sequence[str], trials: _Trials
) -> Confirmation:
    """What the trials of experiments say. Pure."""
    held = [level for level in levels if level in HELD]
    # What was recorded is no comparison: a cause is judged without it, too.
    blocks = _complete(trials, held or [level for level in levels if level != RECORDED])
    tried = tuple(_tried(trials, levels))
    base = Confirmation(
        run=run,
        of=confirms.run,
        study=study,
        parameters=confirms.parameters,
        cause=confirms.cause,
        result="open",
        evidence="",
        lock=confirms.lock,
        tried=tried,
        blocks=len(blocks),
    )
    if len(blocks) < BLOCKS_MIN:
        why = f"only {words.count(len(blocks), 'block')} of its experiments came to an end"
        return _said(base, "open", f"{why}; a longer --budget gives more")
    if held:
        alone = confirms.cpu_ns if confirms.is_alone else None
        return _of_lock(base, trials, held, blocks, alone)
    by_level = {item.level: item for item in tried}
    if confirms.cause not in TESTABLE:
        why = "no experiment tries this out; where its threads wait was to be recorded"
        return _said(base, "out of reach", why)
    if confirms.cause == "lock":
        return _out_of_reach(base, confirms, by_level.get(ONE_CPU))
    if confirms.cause in BY_CPU_TIME:
        return _of_sharing(base, confirms, trials, by_level, blocks)
    return _of_cpus(base, trials, by_level.get(ONE_CPU), blocks)


def _complete(trials: _Trials, levels: Sequence[str]) -> list[int]:
    """The blocks in which all of these levels have a trial in use."""
    common = set.intersection(*(set(trials.get(level, {})) for level in levels))
    return sorted(common)


def _tried(trials: _Trials, levels: Sequence[str]) -> list[Tried]:
    """What each experiment did to the time of an operation."""
    first_held = next(iter(HELD))
    found = []
    for level in levels:
        if level == AS_IS:
            continue
        is_dose = level in HELD and level != first_held
        against = first_held if is_dose else AS_IS
        found.append(
            Tried(
                level=level,
                says=_says(level),
                against=against,
                wall=_ratio(trials, level, against, "wall_ns"),
                cpu=_ratio(trials, level, against, "cpu_ns"),
            )
        )
    return found


def _says(level: str) -> str:
    if level == ONE_CPU:
        return "all threads on one CPU"
    if level == PROCESSES:
        return "processes in place of threads"
    if level == RECORDED:
        return "its JVM recorded where threads waited"
    if level in HOGS:
        take, share = HOGS[level]
        what = "copied memory" if take == "memory" else "computed"
        return f"beside a process that {what} for {percent(share)} of the time"
    times = HELD[level]
    if times == 1:
        return "with the library in front of its locks, which were held as long"
    return f"the lock held {times:g} × as long"


def _ratio(trials: _Trials, level: str, against: str, figure: str) -> Estimate | None:
    """How many times as much an operation took, block by block."""
    top, bottom = trials.get(level, {}), trials.get(against, {})
    ratios = [
        getattr(top[block], figure) / getattr(bottom[block], figure)
        for block in sorted(set(top) & set(bottom))
        if getattr(bottom[block], figure)
    ]
    return signed_mean(ratios) if len(ratios) > 1 else None


# -- a lock -----------------------------------------------------------------------------------


def _of_lock(
    base: Confirmation,
    trials: _Trials,
    held: Sequence[str],
    blocks: Sequence[int],
    alone_ns: float | None,
) -> Confirmation:
    first = [trials[held[0]][block] for block in blocks]
    holds = [took.holds for took in first if took.holds]
    if not holds:
        return _said(
            base,
            "out of reach",
            "the library in front of its locks saw nobody take this one: the program may be "
            "statically linked, have locks of its own, start without the environment, or end by a "
            "signal before it reports",
        )
    doses = [HELD[level] - HELD[held[0]] for level in held]
    slope = slope_at_zero(
        doses, [[trials[level][block].wall_ns for level in held] for block in blocks]
    )
    assert slope is not None
    held_ns = [took.held_ns for took in first if took.held_ns is not None]
    bound = Bound(
        cpu=mean([took.cpu_ns for took in first]),
        held=mean(held_ns),
        wall=mean([took.wall_ns for took in first]),
        cpus=min(first[0].threads, first[0].cpus),
        alone=alone_ns,
    )
    gain = gain_of(slope, HALF, bound)
    found = msgspec.structs.replace(
        base,
        slope=slope,
        gain=gain,
        holds=mean(holds),
        held_ns=mean(held_ns) / mean(holds),
        held_share=_held_share(first),
        notes=tuple(_notes(base.tried, bound)),
    )
    return _judged(found, slope, gain)


def _held_share(trials: Sequence[_Took]) -> Estimate | None:
    """The part of the time in which a thread has the lock; ``None`` where that is not known."""
    known = [took.held_ns / took.wall_ns for took in trials if took.held_ns is not None]
    if len(known) < len(trials) or any(it.is_marked or it.threads > it.cpus for it in trials):
        return None
    return signed_mean(known)


def _judged(found: Confirmation, slope: Estimate, gain: Gain) -> Confirmation:
    times = gain.times
    assert slope.low is not None and times.low is not None and times.high is not None
    if slope.low > 0 and times.value >= GAIN_MIN:
        bounded = ", which its CPU time then limits" if gain.is_bounded else ""
        return _said(
            found,
            "confirmed",
            f"holding it longer takes longer; if it were held half as long, "
            f"{_who(found)} would do {interval(times)} times as much{bounded}",
        )
    if times.high < GAIN_MIN or (slope.high or 0.0) <= 0:
        return _said(
            found,
            "not confirmed",
            "holding it longer takes no longer, so holding it half as long would gain nothing "
            f"({interval(times)})",
        )
    return _said(
        found,
        "not confirmed" if times.value < GAIN_MIN else "open",
        "what holding it longer costs is within the noise: if it were held half as long, "
        f"{_who(found)} would do {interval(times)} times as much; a longer --budget says more",
    )


def _who(found: Confirmation) -> str:
    """Who does the work, in words."""
    return describe(found.parameters) if found.parameters else "the program"


def _notes(tried: Sequence[Tried], bound: Bound) -> list[str]:
    """What the library itself costs, and what contention does."""
    found = []
    if math.isfinite(bound.uncontended(HALF)):
        found.append(
            "Together the threads do less than one alone would: contention itself costs time. The "
            "upper end of the gain is what an operation takes without it."
        )
    first = next((item.wall for item in tried if item.level == next(iter(HELD))), None)
    if first is None or first.low is None or first.high is None:
        return found
    if first.low > 1.02 or first.high < 0.98:
        found.append(
            f"The library that stands in front of the locks changes the time of an operation by "
            f"itself: {interval(first)} times. The prediction is for the program with it."
        )
    return found


def _out_of_reach(base: Confirmation, confirms: Confirms, one_cpu: Tried | None) -> Confirmation:
    beside = ""
    if one_cpu is not None and one_cpu.wall is not None:
        beside = (
            f". On one CPU an operation took {interval(one_cpu.wall)} times as long; 1 or less "
            "means that the other CPUs gave nothing"
        )
    return _said(base, "out of reach", f"{confirms.missing}{beside}")


# -- shared data, bandwidth, CPUs -------------------------------------------------------------


def _of_sharing(
    base: Confirmation,
    confirms: Confirms,
    trials: _Trials,
    tried: dict[str, Tried],
    blocks: Sequence[int],
) -> Confirmation:
    one = tried.get(ONE_CPU)
    if one is None or one.cpu is None or one.cpu.low is None or one.cpu.high is None:
        return _said(base, "open", "the program could not be put on one CPU")
    said = f"on one CPU an operation takes {interval(one.cpu)} times the CPU time"
    gone = _gone(trials, blocks, confirms.cpu_ns)
    said += f", so {percent(gone)} of what it lost is gone" if gone is not None else ""
    if one.cpu.low > 1 - CPU_CHANGE_MIN:
        return _said(
            base, "not confirmed", f"{said}: running at the same time costs its threads nothing"
        )
    if one.cpu.high > 1 - CPU_CHANGE_MIN:
        return _said(base, "open", f"{said}, which is within the noise")
    return _by_bandwidth(base, trials, said)


def _by_bandwidth(base: Confirmation, trials: _Trials, said: str) -> Confirmation:
    """Shared data and bandwidth both go on one CPU; only bandwidth is missed beside a hog."""
    extra = _ratio(trials, "memory-hog", "cpu-hog", "wall_ns")
    if extra is None or extra.low is None or extra.high is None:
        return (
            _said(base, "confirmed", said)
            if base.cause != "memory"
            else _said(base, "open", f"{said}; beside which process it loses more is not known")
        )
    more = (
        f"beside a process that copies memory it takes {interval(extra)} times as long as beside "
        "one that computes"
    )
    if base.cause == "memory":
        result: Confirmed = "confirmed" if extra.low > BANDWIDTH_MIN else "open"
        if extra.high < BANDWIDTH_MIN:
            result = "not confirmed"
        return _said(base, result, f"{said}; {more}")
    if extra.low > BANDWIDTH_MIN:
        return _said(base, "open", f"{said}, but {more}: bandwidth may be the cause as well")
    return _said(base, "confirmed", f"{said}; {more}, so bandwidth is not what it lacks")


def _gone(trials: _Trials, blocks: Sequence[int], base_ns: float | None) -> float | None:
    """The part of the CPU time beyond that of the base which is gone on one CPU."""
    if base_ns is None:
        return None
    as_is = mean([trials[AS_IS][block].cpu_ns for block in blocks])
    alone = mean([trials[ONE_CPU][block].cpu_ns for block in blocks])
    return min(1.0, max(0.0, (as_is - alone) / (as_is - base_ns))) if as_is > base_ns else None


def _of_cpus(
    base: Confirmation, trials: _Trials, one: Tried | None, blocks: Sequence[int]
) -> Confirmation:
    if one is None or one.wall is None or one.wall.low is None or one.wall.high is None:
        return _said(base, "open", "the program could not be put on one CPU")
    cpus = trials[AS_IS][blocks[0]].cpus
    half_way = (1 + cpus) / 2
    said = f"on one of its {cpus:g} CPUs an operation takes {interval(one.wall)} times as long"
    if one.wall.low > half_way:
        return _said(base, "confirmed", f"{said}: CPUs are what it lacks")
    if one.wall.high < half_way:
        return _said(base, "not confirmed", f"{said}: something else limits it, too")
    return _said(base, "open", f"{said}, which is within the noise")


def _said(found: Confirmation, result: Confirmed, sentence: str) -> Confirmation:
    return msgspec.structs.replace(found, result=result, evidence=f"{sentence}.")


def interval(figure: Estimate) -> str:
    """``1.31 [1.22, 1.39]``."""
    if figure.low is None or figure.high is None:
        return f"{figure.value:.2f}"
    return f"{figure.value:.2f} [{figure.low:.2f}, {figure.high:.2f}]"
