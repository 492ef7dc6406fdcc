"""Which trial comes next: document 002 §7.2, made exact. Pure and replayable.

Each block goes through all cells in a randomised order, to the end: a cell that is precise enough
runs on beside those that are not, so that ratios have both sides in each block. The pilot is
``repeats_min`` blocks. Then the second stage sets once, from the pilot's intervals, how many blocks
follow: as many as the least precise cell needs, up to ``repeats_max``, or as many as it takes to
tell which setting to use, up to ``choosing_max``; nothing is looked at again.

A trial is redone for a cause that was read, at the end of its block, at most ``redo_max`` times;
disturbed trials together may cost ``redo_share`` of the pilot's, more while one in six that were
redone is quiet, and never the time that the pilot needs. Waiting for a CPU is marked only: it can
be judged where there is a CPU for each worker, so a redo for it would favour some cells of a ratio.
A value alone is no cause. A second program error skips the cell. Where all cells but one failed so
before they gave a figure, and their levels are names alone, such as versions, nothing is left to
compare, and the run ends with that block. A number of clients has figures worth having alone.

No trial begins that would probably end after the time allowance, and no block after the first. If
not even that fits, the cells that answer most come first.

The state is a function of the outcomes in order: a resumed run replays the stored ones. Runs of
version 0.1.0 go on by its rules (``FIRST_PROTOCOL``), those stored before quiet redos earned
further ones without these (``EARNING_PROTOCOL``), and those stored before one cell alone ended a
run with all trials of that (``ENDING_PROTOCOL``).
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from enum import Enum
from typing import Literal, NamedTuple

from concurve import words
from concurve.definition.units import format_duration
from concurve.errors import RunError
from concurve.planning.plan import Plan, describe
from concurve.planning.second_stage import (
    MARGIN,
    trials_needed,
    trials_needed_by_mean,
    trials_to_choose,
)
from concurve.readings.contamination import MACHINE_WIDE
from concurve.stats.blocks import Blocks
from concurve.stats.moments import median, median_deviation
from concurve.store.rows import Outcome, Outcomes, TrialKey
from concurve.store.run_head import EARNING_PROTOCOL, ENDING_PROTOCOL, FIRST_PROTOCOL
from concurve.terms import GIVEN_UP

#: A value further from the median than this many median deviations is far off (10 σ if normal).
FAR_DEVIATIONS = 14.826

#: Causes of trials that are nobody's error, so that each is run again at the end of its block: the
#: time allowance cut it short, or a host that it ran on was lost.
CUT = "time allowance"
LOST = "host lost"
NOBODYS = (CUT, LOST)

#: So many redos are tried beside the share of the pilot's, and as many more for each that comes out
#: quiet: while one in six of them does, a run goes on redoing. What disturbs comes in bursts, so
#: the first ones often fail together. On a machine that is never quiet it soon ends.
REDOS_EARNED = 6

#: Of fewer blocks in which all cells are quiet the spread is not known.
_QUIET_MIN = 3

#: So many names of cells that were not measured are given.
_NAMES_MOST = 12

StopKind = Literal["complete", "time"]


class Stop(NamedTuple):
    """No further trial, and why."""

    kind: StopKind
    reason: str


def shown_state(state: str, reason: str, remarks: Sequence[str] = ()) -> str:
    """The state of a run as a list shows it: one that ended with its time allowance, before its
    trials were done, is stored as complete, since nothing failed, and is not called so. What one
    has whose trials are over, ``remarks``, follows: ``complete, in doubt``."""
    if state != "complete":
        return state
    shown = "out of time" if reason.startswith(f"{CUT} of ") else state
    return ", ".join([shown, *remarks])


class StopReason(Enum):
    """What set the number of trials of a cell, in the words of reports; ``{}`` is this number."""

    PRECISION = "enough for the spread"
    FIXED = "number of trials fixed"
    CHOICE = "to tell the best settings apart"
    CAP = "cap of {} trials"
    TIME = "time allowance"
    ERRORS = "skipped after a second program error"
    ALONE = "nothing left to compare with"


class CellState:
    """The protocol's state of one cell."""

    __slots__ = ("errors", "needed", "seconds", "skipped", "stop", "target", "used")

    def __init__(self, repeats: int) -> None:
        self.used: dict[int, tuple[int, float]] = {}
        self.errors = 0
        self.skipped = ""
        self.target = repeats
        self.needed: int | None = None
        self.stop: StopReason | None = None
        self.seconds = 0.0

    @property
    def stop_reason(self) -> str:
        """What set its number of trials, in words; empty while the pilot goes on."""
        return "" if self.stop is None else self.stop.value.format(self.target)

    def values(self) -> list[float]:
        """Primary values of the trials in use, by block."""
        return [value for _, (_, value) in sorted(self.used.items())]


class Protocol:
    """Feed it outcomes with :meth:`record`, ask it with :meth:`next`.

    ``used`` of the cells are the trials that count, ``doubtful`` those among them that other
    processes may have disturbed, ``rejected`` those that were redone; each with its cause and its
    detail.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.rules = plan.rules
        self.cells = [CellState(self.rules.repeats_min) for _ in plan.cells]
        self.rejected: dict[TrialKey, tuple[str, str]] = {}
        self.doubtful: dict[TrialKey, tuple[str, str]] = {}
        self.elapsed = 0.0
        #: Seconds for which the run waited for a quiet machine between its trials: no time for
        #: further ones. What orders the trials goes by the time of trials alone.
        self.waited = 0.0 if plan.waiting is None else plan.waiting.during_seconds
        self.done = 0
        #: Those among ``done`` that broke off, and their seconds: they say nothing of how long a
        #: trial takes.
        self._broken_off, self._broken_off_seconds = 0, 0.0
        self.redos = 0
        self._quiet_redos = 0
        self.stop: Stop | None = None
        self._block = -1
        self._is_begun = False
        #: The cells that have not run in this block.
        self._slots: deque[int] = deque()
        self._redo: deque[TrialKey] = deque()
        self._next_block()

    # -- queries --------------------------------------------------------------------------

    def next(self) -> TrialKey | Stop:
        """The next trial, or why there is none."""
        key = self.upcoming()
        if isinstance(key, TrialKey) and self._time_is_up(key):
            return self._stop_for_time()
        return key

    def upcoming(self) -> TrialKey | Stop:
        """The next trial, whatever time is left."""
        while self.stop is None:
            if self._slots:
                key = TrialKey(self._slots[0], self._block, 0)
            elif self._redo:
                key = self._redo[0]
            else:
                self._end_block()
                continue
            if not self.cells[key.cell].skipped:
                return key
            self._take()
        return self.stop

    def coming(self) -> list[TrialKey]:
        """The trials of this block that have not run, in their order; none of them is a redo."""
        return [
            TrialKey(cell, self._block, 0) for cell in self._slots if not self.cells[cell].skipped
        ]

    def far_off(self) -> dict[TrialKey, str]:
        """Trials in use whose value lies far from the others of their cell, with how far: a mark,
        no reason to leave them out."""
        return {
            TrialKey(index, block, cell.used[block][0]): detail
            for index, cell in enumerate(self.cells)
            for block, detail in _far_values(cell)
        }

    def unmeasured(self) -> list[int]:
        """Cells without a trial in use that were not skipped."""
        return [i for i, cell in enumerate(self.cells) if not cell.used and not cell.skipped]

    def planned(self) -> int:
        """Trials in all, as known now, redos not counted."""
        return sum(
            len(cell.used) if cell.skipped else max(cell.target, len(cell.used))
            for cell in self.cells
        )

    def in_all(self) -> int:
        """Trials in all, as known now, with those that were redone."""
        return self.done + sum(
            max(0, cell.target - len(cell.used)) for cell in self.cells if not cell.skipped
        )

    def may_grow(self) -> bool:
        """Will the spread of the pilot, which is not complete, set how many trials follow?"""
        if self.rules.repeats_min == self.rules.repeats_max:
            return False
        return any(cell.stop is None and not cell.skipped for cell in self.cells)

    def seconds_left(self) -> float | None:
        """Expected time of the trials still planned, from the cells' own mean times, as far as the
        time allowance has room for them; ``None`` before the first trial."""
        if not self.done:
            return None
        return min(self._seconds_planned(), max(0.0, self.allowance_left()))

    def ends_by_allowance(self) -> bool:
        """Is the time allowance expected to end before the trials that are still planned?"""
        return self.done > 0 and self._seconds_planned() > self.allowance_left()

    def _seconds_planned(self) -> float:
        overall = self.seconds_of(1)
        left = 0.0
        for cell in self.cells:
            open_trials = 0 if cell.skipped else max(0, cell.target - len(cell.used))
            left += open_trials * (cell.seconds / len(cell.used) if cell.used else overall)
        return left

    def allowance_left(self) -> float:
        """What is left of the time allowance, in seconds; negative where more was taken."""
        return self.rules.time_allowed_seconds - self.elapsed - self.waited

    def seconds_to_wait(self) -> float:
        """How long may be waited before the next trial: what the pilot and this block leave of the
        time allowance. The wait before the first trial takes nothing of it."""
        if not self.done:
            return math.inf
        block = [*self._slots, *(key.cell for key in self._redo)]
        needed = max(self.seconds_of(self.left_of_pilot()), sum(map(self._expected, block)))
        return max(0.0, self.allowance_left() - needed)

    def seconds_for_all(self) -> float:
        """A time allowance with room for the pilot of all cells, by the trials so far; half as much
        again, because these may be the short ones."""
        if not self.done:
            return self.rules.time_allowed_seconds
        return 1 + 1.5 * (self.elapsed + self.seconds_of(self.left_of_pilot()))

    def left_of_pilot(self) -> int:
        """The trials of the pilot that are missing."""
        low = self.rules.repeats_min
        return sum(max(0, low - len(cell.used)) for cell in self.cells if not cell.skipped)

    @property
    def has_length(self) -> bool:
        """Did a trial do its work, so that its time is the length of a trial?"""
        return self.done > self._broken_off

    def seconds_of(self, trials: int) -> float:
        """The time of so many trials, by those so far that did their work, or else by all; there
        must be one."""
        if not self.has_length:
            return trials * self.elapsed / self.done
        seconds = self.elapsed - self._broken_off_seconds
        return trials * seconds / (self.done - self._broken_off)

    def all_failed(self) -> bool:
        """Has no trial a figure, because programs failed in each of them? What is nobody's error,
        and what was disturbed, says nothing of that."""
        told = sum(cause not in NOBODYS for cause, _ in self.rejected.values())
        return 0 < told == sum(cell.errors for cell in self.cells) and not any(
            cell.used for cell in self.cells
        )

    # -- outcomes -------------------------------------------------------------------------

    def record(self, outcome: Outcome) -> None:
        """Record the outcome of the trial that :meth:`next` named."""
        self._take()
        self._is_begun = True
        self.done += 1
        self.elapsed += outcome.seconds
        if outcome.value is None and outcome.cause != CUT:
            self._broken_off += 1
            self._broken_off_seconds += outcome.seconds
        if outcome.cause in NOBODYS:
            self._reject(outcome)
            self._redo_later(outcome.key)
        elif outcome.verdict == "ok" and outcome.value is not None:
            self._accept(outcome)
        elif outcome.verdict == "contaminated":
            self._contaminated(outcome)
        elif outcome.verdict == "abandon":
            self._reject(outcome)
            cell = self.cells[outcome.key.cell]
            cell.skipped = words.why(GIVEN_UP, outcome.detail)
        else:
            self._failed(outcome)
        self._choose_what_fits()

    def _take(self) -> None:
        """The trial that comes next is done, or is not to be run."""
        if self._slots:
            self._slots.popleft()
        else:
            self._redo.popleft()

    def record_blocks(self, outcomes: Outcomes, first: int, last: int) -> int:
        """Record the whole blocks at once that stand from the outcome ``first`` on and before
        ``last``, as far as they come next; all these outcomes are plain (:func:`_unusual`). How
        many outcomes that were. What :meth:`record` does to such blocks, one by one, in a fraction
        of the time."""
        # In the first block, what fits into the time is asked between its trials.
        if self._block == 0 or not self._slots or self._is_begun or self._redo:
            return 0
        size = len(self._slots)
        blocks = range(self._block, min(self.cells[cell].target for cell in self._slots))
        count = self._as_planned(outcomes, first, last, blocks)
        if not count:
            return 0
        self._accept_blocks(outcomes, first, blocks[:count])
        self.done += count * size
        self._block += count - 1
        self._slots.clear()
        self._is_begun = True
        return count * size

    def _as_planned(self, outcomes: Outcomes, first: int, last: int, blocks: range) -> int:
        """How many of these blocks, which have the cells of this one, stand in the outcomes in
        their order."""
        size, cells = len(self._slots), frozenset(self._slots)
        for count, (block, order) in enumerate(zip(blocks, self.plan.orders(blocks), strict=True)):
            begin, end = first + count * size, first + (count + 1) * size
            if len(order) > size:
                order = [cell for cell in order if cell in cells]  # noqa: PLW2901
            if (
                end > last
                or outcomes.cells[begin:end] != order
                or outcomes.blocks[begin:end] != [block] * size
            ):
                return count
        return len(blocks)

    def _accept_blocks(self, outcomes: Outcomes, first: int, blocks: range) -> None:
        """Accept the trials of whole blocks, each cell's in the order of the blocks."""
        import numpy as np

        shape = (len(self._slots), len(blocks))
        own = slice(first, first + shape[0] * shape[1])
        by_cell = np.argsort(np.array(outcomes.cells[own]), kind="stable")
        values = np.array(outcomes.values[own], dtype=float)[by_cell].reshape(shape)
        seconds = np.array(outcomes.seconds[own], dtype=float)
        # Sums in the order of the trials: the same to the last bit as those of single trials.
        self.elapsed = float(np.cumsum(np.concatenate([[self.elapsed], seconds]))[-1])
        states = [self.cells[cell] for cell in sorted(self._slots)]
        before = np.array([[state.seconds] for state in states])
        of_cells = np.concatenate([before, seconds[by_cell].reshape(shape)], axis=1)
        totals = np.cumsum(of_cells, axis=1)[:, -1].tolist()
        for state, row, total in zip(states, values.tolist(), totals, strict=True):
            state.used.update(zip(blocks, zip(itertools.repeat(0), row), strict=False))
            state.seconds = total

    def _accept(self, outcome: Outcome) -> None:
        assert outcome.value is not None
        cell = self.cells[outcome.key.cell]
        if outcome.verdict == "ok" and self._was_disturbed(outcome.key):
            self._quiet_redos += 1
        previous = cell.used.get(outcome.key.block)
        if previous is not None:
            old = TrialKey(outcome.key.cell, outcome.key.block, previous[0])
            self.doubtful.pop(old, None)
        cell.used[outcome.key.block] = (outcome.key.attempt, outcome.value)
        cell.seconds += outcome.seconds

    def _contaminated(self, outcome: Outcome) -> None:
        """Redo the trial while redos are left; otherwise use it and mark it."""
        if self._may_redo(outcome.key, outcome.cause):
            self._reject(outcome)
            self._redo_later(outcome.key)
        elif outcome.value is not None:
            self.doubtful[outcome.key] = (outcome.cause, outcome.detail)
            self._accept(outcome)
        else:
            self._failed(outcome)

    def _failed(self, outcome: Outcome) -> None:
        """A program error: once redone, the second time the cell is skipped."""
        self._reject(outcome)
        cell = self.cells[outcome.key.cell]
        cell.errors += 1
        if cell.errors >= 2:
            cell.skipped = words.why(outcome.cause, outcome.detail)
            cell.stop = StopReason.ERRORS
        else:
            self._redo_later(outcome.key)

    def _reject(self, outcome: Outcome) -> None:
        self.rejected[outcome.key] = (outcome.cause, outcome.detail)

    def _redo_later(self, key: TrialKey) -> None:
        self._redo.append(TrialKey(key.cell, key.block, key.attempt + 1))

    def _was_disturbed(self, key: TrialKey) -> bool:
        """Is the trial the redo of one that the whole machine disturbed?"""
        before = self.rejected.get(TrialKey(key.cell, key.block, key.attempt - 1))
        return before is not None and before[0] in MACHINE_WIDE

    def _redos_allowed(self) -> float:
        """A share of the pilot's trials, and what quiet redos earned; of the latter no more than
        there are other trials so far, so a run is at most twice as long as without any."""
        first = self.rules.redo_share * (len(self.cells) * self.rules.repeats_min)
        if self.plan.protocol < EARNING_PROTOCOL or not first:
            return first
        others = self.done - self.redos
        return max(first, min(first + REDOS_EARNED * (1 + self._quiet_redos), others))

    def _may_redo(self, key: TrialKey, cause: str) -> bool:
        if key.attempt >= self.rules.redo_max or self.redos >= self._redos_allowed():
            return False
        if not self._is_first and not (cause in MACHINE_WIDE and self._pilot_fits_with_a_redo()):
            return False
        self.redos += 1
        return True

    # -- blocks ---------------------------------------------------------------------------

    @property
    def _is_first(self) -> bool:
        return self.plan.protocol == FIRST_PROTOCOL

    def _next_block(self) -> None:
        self._block += 1
        self._is_begun = False
        order = self.plan.order(self._block)
        done = {
            index
            for index, cell in enumerate(self.cells)
            if cell.skipped or cell.target <= self._block
        }
        self._slots = deque([cell for cell in order if cell not in done] if done else order)

    def _end_block(self) -> None:
        """All slots of the block are done: second stage, next block or end."""
        if self._is_one_left():
            self._end_with_one()
            return
        last_of_pilot = self._block == self.rules.repeats_min - 1
        if last_of_pilot and self._is_first and self._redo_far_values():
            return
        if last_of_pilot:
            self._second_stage()
        self._next_block()
        if not self._slots:
            self.stop = Stop("complete", self._complete_reason())

    def _is_one_left(self) -> bool:
        """Did all cells but one fail before they gave a figure, and is that one worth nothing
        alone? What their check gave up is no failure."""
        if self.plan.protocol < ENDING_PROTOCOL or not self.plan.compares_names:
            return False
        if len(self.cells) == 1:
            return False
        failed = sum(cell.stop is StopReason.ERRORS and not cell.used for cell in self.cells)
        left = [cell for cell in self.cells if not cell.skipped]
        return len(left) == 1 and failed == len(self.cells) - 1

    def _end_with_one(self) -> None:
        for cell in self.cells:
            if not cell.skipped:
                cell.target, cell.stop = len(cell.used), StopReason.ALONE
        self._slots.clear()
        reason = f"{self._complete_reason()}: nothing is left to compare with the other one"
        self.stop = Stop("complete", reason)

    def _redo_far_values(self) -> bool:
        """Queue the values that version 0.1.0 redid; each once. None in a simulation."""
        if self.plan.study.simulation:
            return False
        found = False
        for index, cell in enumerate(self.cells):
            if cell.skipped:
                continue
            for block, detail in list(_far_values(cell)):
                key = TrialKey(index, block, cell.used[block][0])
                if key.attempt == 0 and self._may_redo(key, "outlier"):
                    self.rejected[key] = ("outlier", detail)
                    self._redo_later(key)
                    del cell.used[block]
                    found = True
        return found

    def _second_stage(self) -> None:
        """Set the number of blocks, from the pilot alone."""
        low, high = self.rules.repeats_min, self.rules.repeats_max
        cells = [cell for cell in self.cells if not cell.skipped]
        for cell in cells:
            if len(cell.used) < 2 or low == high:
                cell.stop = StopReason.FIXED
                continue
            values = cell.values()
            rule = trials_needed_by_mean if self._is_first else trials_needed
            cell.needed = rule(values, self.rules)
            cell.target = min(high, cell.needed)
            cell.stop = StopReason.PRECISION if cell.needed <= high else StopReason.CAP
        if not self._is_first:
            blocks = max((cell.target for cell in cells), default=low)
            to_choose = self._blocks_to_choose()
            for cell in cells:
                cell.target = max(blocks, to_choose)
                if to_choose > blocks:
                    cell.stop = StopReason.CHOICE

    def _blocks_to_choose(self) -> int:
        """So many blocks until it is told which setting to use, as far as the time allowance has
        room; 0 where the rules ask for none, or where there is room for less than half of them."""
        most = self.rules.most
        if most == self.rules.repeats_max:
            return 0
        quiet = {
            index: values
            for index, cell in enumerate(self.cells)
            if not cell.skipped and (values := self._quiet(index))
        }
        pilot = self.rules.repeats_min
        common = len(set.intersection(*map(set, quiet.values()))) if quiet else 0
        wanted = trials_to_choose(self.plan, quiet) if common >= _QUIET_MIN else None
        if not wanted:
            return 0
        block_seconds = sum(map(self._expected, quiet))
        blocks = wanted * pilot / common
        left = self.plan.allowed_at_start - self.elapsed
        room = min(most, pilot + int(left / block_seconds)) if block_seconds else most
        return min(math.ceil(MARGIN * blocks), room) if 2 * room >= blocks else 0

    def _quiet(self, index: int) -> Blocks:
        """The values of a cell by block, without those that other processes may have disturbed."""
        return {
            block: value
            for block, (attempt, value) in sorted(self.cells[index].used.items())
            if TrialKey(index, block, attempt) not in self.doubtful
        }

    def _complete_reason(self) -> str:
        capped = sum(cell.stop is StopReason.CAP for cell in self.cells)
        skipped = sum(bool(cell.skipped) for cell in self.cells)
        parts = []
        if capped:
            parts.append(f"{capped} of {len(self.cells)} cells at the cap of trials")
        if skipped:
            parts.append(f"{skipped} of {len(self.cells)} cells skipped")
        if any(cell.stop is StopReason.CHOICE for cell in self.cells):
            parts.append("as many trials as should tell the best settings apart")
        fixed = self.rules.repeats_min == self.rules.repeats_max
        return "; ".join(parts) or (
            "all trials done" if fixed else "enough for the spread of every cell"
        )

    # -- time -----------------------------------------------------------------------------

    def _time_is_up(self, key: TrialKey) -> bool:
        """Would this trial, or the block that it begins, end after the allowance? The very first
        trial always runs: a result late is more than none."""
        if not self.done:
            return False
        left = self.allowance_left()
        if self._is_begun or key.block == 0:
            return self._expected(key.cell) > left
        return sum(map(self._expected, self._slots)) > left

    def _expected(self, cell: int) -> float:
        """Expected time of a trial of a cell: the mean of its own, or of all."""
        state = self.cells[cell]
        return state.seconds / len(state.used) if state.used else self.elapsed / self.done

    def _choose_what_fits(self) -> None:
        """If the first block will not end in time, take the cells that answer most first.

        This and the redos go by the allowance that the run began with, so that a longer one later
        does not change the order of what is stored."""
        if self._block or self._is_first or self.done & (self.done - 1):
            return  # asked after 1, 2, 4 … trials: an answer takes time for each cell
        left = self.plan.allowed_at_start - self.elapsed
        if sum(map(self._expected, self._slots)) > left:
            rank = {cell: place for place, cell in enumerate(self.plan.by_importance())}
            self._slots = deque(sorted(self._slots, key=rank.__getitem__))

    def _pilot_fits_with_a_redo(self) -> bool:
        """Is there time for all trials of the pilot and for another one?"""
        trials = 1 + len(self._redo)
        if self._block < self.rules.repeats_min:
            blocks = self.rules.repeats_min - 1 - self._block
            trials += len(self._slots) + blocks * sum(not cell.skipped for cell in self.cells)
        expected = trials * self.elapsed / self.done
        return self.elapsed + expected <= self.plan.allowed_at_start

    def _stop_for_time(self) -> Stop:
        for cell in self.cells:
            enough = cell.target
            if cell.needed is not None and cell.stop is not StopReason.CHOICE:
                enough = min(cell.needed, cell.target)
            if not cell.skipped and len(cell.used) < enough:
                cell.stop = StopReason.TIME
        self.stop = Stop("time", f"{self._time_was_up()}{self._not_measured()}")
        return self.stop

    def _time_was_up(self) -> str:
        done = min((len(cell.used) for cell in self.cells if not cell.skipped), default=0)
        blocks = max(cell.target for cell in self.cells)
        allowed = format_duration(self.rules.time_allowed_seconds)
        what = "trial" if self._is_begun or self._block == 0 else "block"
        return (
            f"time allowance of {allowed}: the next {what} did not fit after {done} of {blocks} "
            "blocks"
        )

    def _not_measured(self) -> str:
        missing = self.unmeasured()
        if not missing:
            return ""
        names = [describe(self.plan.cells[cell].parameters) for cell in missing[:_NAMES_MOST]]
        more = len(missing) - len(names)
        names += [f"{more} more"] if more else []
        were = "was" if len(missing) == 1 else "were"
        return (
            f"; {len(missing)} of {len(self.cells)} cells {were} not measured: {'; '.join(names)}"
        )


def _far_values(cell: CellState) -> Iterator[tuple[int, str]]:
    """The blocks whose values lie far from the others of a cell, with how far."""
    values = cell.values()
    if len(values) < 5:
        return
    middle, spread = median(values), median_deviation(values)
    for block, (_, value) in cell.used.items():
        if spread and abs(value - middle) / spread > FAR_DEVIATIONS:
            far = abs(value - middle) / spread
            yield block, f"{far:.0f} median deviations off the median"


def replay(plan: Plan, outcomes: Iterable[Outcome], run: str) -> Protocol:
    """The protocol's state after these outcomes of a run, whatever time they took.

    Raises:
        RunError: they do not follow from the plan.
    """
    protocol = Protocol(plan)
    stored = outcomes if isinstance(outcomes, Outcomes) else Outcomes.of(outcomes)
    unusual = _unusual(stored)
    place = 0
    while place < len(stored):
        expected = protocol.upcoming()  # an allowance ended it, if at all, after these
        while unusual[0] < place:
            unusual.popleft()
        if as_planned := protocol.record_blocks(stored, place, unusual[0]):
            place += as_planned
            continue
        if expected != stored.key(place):
            raise RunError(
                f"run {run}: trial {tuple(stored.key(place))} is stored where the plan has "
                f"{expected}",
                "another version wrote the run, or it was edited; start a new one",
            )
        protocol.record(stored[place])
        place += 1
    protocol.next()  # what follows from the last outcome: the second stage, or the end
    return protocol


def _unusual(outcomes: Outcomes) -> deque[int]:
    """The places of the outcomes that were not accepted at once, and the number of all."""
    count = len(outcomes)
    are_plain = (
        outcomes.attempts.count(0) == outcomes.verdicts.count("ok") == count
        and CUT not in outcomes.causes
        and None not in outcomes.values
    )
    if are_plain:
        return deque([count])
    columns = zip(
        outcomes.attempts, outcomes.verdicts, outcomes.causes, outcomes.values, strict=True
    )
    found = (
        place
        for place, (attempt, verdict, cause, value) in enumerate(columns)
        if attempt or verdict != "ok" or cause == CUT or value is None
    )
    return deque([*found, count])
