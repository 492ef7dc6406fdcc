"""Which trial comes next: document 002 §7.2, made exact. Pure and replayable.

Blocks: each pass goes through all cells in a randomised order. The pilot is ``repeats_min``
blocks. Then Stein's second stage (Stein 1945; facts: half-width ε·mean at 95 %) sets once, from
the pilot's variance, how many trials a cell needs in all, up to ``repeats_max``; nothing is
looked at again. A trial is redone for a cause, at the end of its block, at most ``redo_max``
times; contamination and outliers together may cost ``redo_share`` of the planned trials. A
second program error skips the cell.

The state is a function of the outcomes in order: a resumed run replays the stored ones.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from enum import Enum
from typing import Literal, NamedTuple

from concurve.errors import RunError
from concurve.planning.plan import Plan
from concurve.stats.moments import mean, median, median_deviation, stdev, t_quantile
from concurve.store.rows import Outcome, TrialKey

#: A value further from the median than this many median deviations is redone (10 σ if normal).
OUTLIER_DEVIATIONS = 14.826

#: The second stage never computes with more trials than the square of this.
_ROOT_OF_TRIALS_MOST = 1e9

StopKind = Literal["complete", "time", "too_long"]


class Stop(NamedTuple):
    """No further trial, and why."""

    kind: StopKind
    reason: str


class StopReason(Enum):
    """What set the number of trials of a cell, in the words of reports; ``{}`` is this number."""

    PRECISION = "precision reached"
    FIXED = "number of trials fixed"
    CAP = "cap of {} trials"
    TIME = "time allowance"
    ERRORS = "skipped after a second program error"


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

    @property
    def is_imprecise(self) -> bool:
        """Did it stop before the precision asked for?"""
        return self.stop in (StopReason.CAP, StopReason.TIME)

    def values(self) -> list[float]:
        """Primary values of the trials in use, by block."""
        return [value for _, (_, value) in sorted(self.used.items())]


class Protocol:
    """Feed it outcomes with :meth:`record`, ask it with :meth:`next`."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.rules = plan.rules
        self.cells = [CellState(self.rules.repeats_min) for _ in plan.cells]
        self.rejected: dict[TrialKey, tuple[str, str]] = {}
        self.doubtful: dict[TrialKey, tuple[str, str]] = {}
        self.elapsed = 0.0
        self.done = 0
        self.redos = 0
        self.stop: Stop | None = None
        self._block = -1
        self._slots: deque[TrialKey] = deque()
        self._redo: deque[TrialKey] = deque()
        self._next_block()

    # -- queries --------------------------------------------------------------------------

    def next(self) -> TrialKey | Stop:
        """The next trial, or why there is none."""
        while self.stop is None:
            queue = self._slots or self._redo
            if not queue:
                self._end_block()
                continue
            key = queue[0]
            if self.cells[key.cell].skipped:
                queue.popleft()
            elif key.block >= self.rules.repeats_min and self._time_is_up(key):
                self._stop_for_time()
            else:
                return key
        return self.stop

    def planned(self) -> int:
        """Trials in all, as known now, redos not counted."""
        return sum(
            len(cell.used) if cell.skipped else max(cell.target, len(cell.used))
            for cell in self.cells
        )

    def seconds_left(self) -> float | None:
        """Expected time of the trials still planned, from the cells' own mean times."""
        if not self.done:
            return None
        overall = self.elapsed / self.done
        left = 0.0
        for cell in self.cells:
            open_trials = 0 if cell.skipped else max(0, cell.target - len(cell.used))
            left += open_trials * (cell.seconds / len(cell.used) if cell.used else overall)
        return min(left, max(0.0, self.rules.time_allowed_seconds - self.elapsed))

    # -- outcomes -------------------------------------------------------------------------

    def record(self, outcome: Outcome) -> None:
        """Record the outcome of the trial that :meth:`next` named."""
        (self._slots or self._redo).popleft()
        self.done += 1
        self.elapsed += outcome.seconds
        if outcome.verdict == "ok" and outcome.value is not None:
            self._accept(outcome)
        elif outcome.verdict == "contaminated":
            self._contaminated(outcome)
        elif outcome.verdict == "abandon":
            self._reject(outcome)
            cell = self.cells[outcome.key.cell]
            cell.skipped = f"given up by the check: {outcome.detail}".rstrip(": ")
        else:
            self._failed(outcome)

    def _accept(self, outcome: Outcome) -> None:
        assert outcome.value is not None
        cell = self.cells[outcome.key.cell]
        previous = cell.used.get(outcome.key.block)
        if previous is not None:
            old = TrialKey(outcome.key.cell, outcome.key.block, previous[0])
            self.doubtful.pop(old, None)
        cell.used[outcome.key.block] = (outcome.key.attempt, outcome.value)
        cell.seconds += outcome.seconds

    def _contaminated(self, outcome: Outcome) -> None:
        """Redo the trial while redos are left; otherwise use it and mark it."""
        if self._may_redo(outcome.key):
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
            cell.skipped = f"{outcome.cause}: {outcome.detail}".rstrip(": ")
            cell.stop = StopReason.ERRORS
        else:
            self._redo_later(outcome.key)

    def _reject(self, outcome: Outcome) -> None:
        self.rejected[outcome.key] = (outcome.cause, outcome.detail)

    def _redo_later(self, key: TrialKey) -> None:
        self._redo.append(TrialKey(key.cell, key.block, key.attempt + 1))

    def _may_redo(self, key: TrialKey) -> bool:
        planned = len(self.cells) * self.rules.repeats_min
        if key.attempt >= self.rules.redo_max or self.redos >= self.rules.redo_share * planned:
            return False
        self.redos += 1
        return True

    # -- blocks ---------------------------------------------------------------------------

    def _next_block(self) -> None:
        self._block += 1
        active = [cell.target > self._block and not cell.skipped for cell in self.cells]
        self._slots = deque(
            TrialKey(cell, self._block, 0) for cell in self.plan.order(self._block) if active[cell]
        )

    def _end_block(self) -> None:
        """All slots of the block are done: outliers, second stage, next block or end."""
        last_of_pilot = self._block == self.rules.repeats_min - 1
        if self._block == 0 and self._pilot_is_too_long():
            return
        if last_of_pilot and self._redo_outliers():
            return
        if last_of_pilot:
            self._second_stage()
        self._next_block()
        if not self._slots:
            self.stop = Stop("complete", self._complete_reason())

    def _redo_outliers(self) -> bool:
        """Queue trials that statistics alone find unrealistic; each once. None in a simulation:
        a redo would repeat the same draws."""
        if self.plan.study.simulation:
            return False
        found = False
        for index, cell in enumerate(self.cells):
            values = cell.values()
            if cell.skipped or len(values) < 5:
                continue
            middle, spread = median(values), median_deviation(values)
            if spread == 0:
                continue
            for block, (attempt, value) in list(cell.used.items()):
                key = TrialKey(index, block, attempt)
                far = abs(value - middle) / spread
                if far > OUTLIER_DEVIATIONS and attempt == 0 and self._may_redo(key):
                    self.rejected[key] = ("outlier", f"{far:.0f} median deviations off the median")
                    self._redo_later(key)
                    del cell.used[block]
                    found = True
        return found

    def _second_stage(self) -> None:
        """Stein: n = ⌈(t·s / (ε·mean))²⌉ from the pilot alone."""
        low, high = self.rules.repeats_min, self.rules.repeats_max
        for cell in self.cells:
            values = cell.values()
            if cell.skipped:
                continue
            if len(values) < 2 or low == high:
                cell.stop = StopReason.FIXED
                continue
            centre, spread = abs(mean(values)), stdev(values)
            t = t_quantile(0.975, len(values) - 1)
            aim = self.rules.precision * centre
            # Bounded, because the square of a spread that is not finite is no number of trials.
            wanted = min(t * spread / aim, _ROOT_OF_TRIALS_MOST) ** 2 if aim else 0.0
            cell.needed = max(low, math.ceil(wanted))
            cell.target = min(high, cell.needed)
            cell.stop = StopReason.PRECISION if cell.needed <= high else StopReason.CAP

    def _complete_reason(self) -> str:
        capped = sum(cell.stop is StopReason.CAP for cell in self.cells)
        skipped = sum(bool(cell.skipped) for cell in self.cells)
        parts = []
        if capped:
            parts.append(f"{capped} of {len(self.cells)} cells at the cap of trials")
        if skipped:
            parts.append(f"{skipped} of {len(self.cells)} cells skipped")
        fixed = self.rules.repeats_min == self.rules.repeats_max
        return "; ".join(parts) or ("all trials done" if fixed else "precision reached everywhere")

    # -- time -----------------------------------------------------------------------------

    def _pilot_is_too_long(self) -> bool:
        """After the first block: can the pilot end inside the allowance at all?"""
        expected = self.elapsed * self.rules.repeats_min
        if expected <= self.rules.time_allowed_seconds or self.rules.repeats_min == 1:
            return False
        self.stop = Stop("too_long", f"{expected:.0f}")
        return True

    def _time_is_up(self, key: TrialKey) -> bool:
        """Would this trial of the second stage end after the allowance?"""
        cell = self.cells[key.cell]
        expected = cell.seconds / len(cell.used) if cell.used else 0.0
        return self.elapsed + expected > self.rules.time_allowed_seconds

    def _stop_for_time(self) -> None:
        for cell in self.cells:
            if not cell.skipped and len(cell.used) < cell.target:
                cell.stop = StopReason.TIME
        self.stop = Stop("time", f"time allowance of {self.rules.time_allowed_seconds:.0f} s")


def replay(plan: Plan, outcomes: Iterable[Outcome], run: str) -> Protocol:
    """The protocol's state after these outcomes of a run.

    Raises:
        RunError: they do not follow from the plan.
    """
    protocol = Protocol(plan)
    for outcome in outcomes:
        expected = protocol.next()
        if expected != outcome.key:
            raise RunError(
                f"run {run}: trial {tuple(outcome.key)} is stored where the plan has {expected}",
                "another version wrote the run, or it was edited; start a new one",
            )
        protocol.record(outcome)
    return protocol
