"""A run while it runs, from its stored trials alone.

Which trial is under way, how many are planned and how long they will take follow from the stored
outcomes by the protocol (:func:`concurve.planning.protocol.replay`). So a run can be followed
whoever started it, and after this server was started anew. Each trial is read once, and the
estimate of its cell alone is made again: a few milliseconds.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from concurve import words
from concurve.errors import RunError
from concurve.planning.plan import plan_of
from concurve.planning.protocol import Protocol
from concurve.readings.centres import indicator_centre
from concurve.report import format as fmt
from concurve.store import Store
from concurve.store.rows import RUNNING, Outcome, RunRow, TrialKey
from concurve.store.run_head import decode_head

#: So many of the last disturbances and errors are told.
TOLD_MAX = 5


def load_estimates() -> None:
    """Import what estimates of few and of many trials import when they are made, by making some."""
    for count in (2, 3, 8):
        indicator_centre("", [1.0 + place for place in range(count)], "")


def _left(seconds: float) -> str:
    """The time left, in words; of less than a second it is not known how much less."""
    return f"about {words.duration(seconds)} left" if seconds >= 1 else "less than 1 s left"


class LiveCell(msgspec.Struct, frozen=True):
    """A cell so far: its number, its setting, its estimate in words, the bounds of the estimate,
    and the trials that it has and is to have."""

    cell: int
    setting: str
    figure: str
    value: float | None
    low: float | None
    high: float | None
    trials: int
    target: int
    note: str


class LiveState(msgspec.Struct, frozen=True):
    """A run so far. ``cells`` are those that changed since the ``version`` that was asked for;
    ``told`` says what disturbed trials, the newest first."""

    version: int
    run: str
    state: str
    reason: str
    done: int
    planned: int
    left: str
    under_way: str
    told: tuple[str, ...]
    cells: tuple[LiveCell, ...]


class _Seen(NamedTuple):
    """What a look has found, as a whole: the run with all cells, and the versions in which each
    cell changed last."""

    state: LiveState
    changed_at: tuple[int, ...]


class LiveRun:
    """Follows one run. ``read`` takes what was stored since; ``state`` tells it.

    ``read`` may run in another thread: what the last one has found is told until it is through.
    """

    def __init__(self, row: RunRow) -> None:
        self._begin(row)
        self._seen = self._found(0)

    def _begin(self, row: RunRow) -> None:
        head = decode_head(row)
        self._row = row
        self._plan = plan_of(head)
        self._study = head.study
        self._protocol = Protocol(self._plan)
        self._last = 0
        self._told: list[str] = []
        self._cells: list[LiveCell] = [self._cell(cell.index) for cell in self._plan.cells]
        self._changed_at = [0] * len(self._cells)

    @property
    def version(self) -> int:
        """How often anything had changed by the last look."""
        return self._seen.state.version

    def read(self, store: Store) -> bool:
        """Take what was stored since the last time; whether anything was.

        Raises:
            RunError: the trials do not follow from the plan.
            StoreError: the run cannot be read.
        """
        version = self.version + 1
        row = store.run(self._row.id)
        changed = row[:-1] != self._row[:-1]
        if row.head != self._row.head:  # resumed, with another allowance
            self._begin(row)
            self._changed_at = [version] * len(self._cells)
            changed = True
        self._row = row
        self._last, outcomes = store.outcomes_after(row.id, self._last)
        if not changed and not len(outcomes):
            return False
        for index in {self._take(outcome) for outcome in outcomes}:
            self._cells[index] = self._cell(index)
            self._changed_at[index] = version
        self._seen = self._found(version)
        return True

    def state(self, since: int = -1) -> LiveState:
        """The run so far, with the cells that changed after the version ``since``."""
        whole, changed_at = self._seen
        cells = zip(whole.cells, changed_at, strict=True)
        changed = tuple(cell for cell, version in cells if version > since)
        return msgspec.structs.replace(whole, cells=changed)

    def _found(self, version: int) -> _Seen:
        """What was read by now, which no later look changes."""
        protocol = self._protocol
        left = protocol.seconds_left() if self._is_running else None
        state = LiveState(
            version=version,
            run=self._row.id,
            state=self._row.state,
            reason=fmt.clean(self._row.reason),
            done=protocol.done,
            planned=protocol.in_all(),
            left="" if left is None else _left(left),
            under_way=self._under_way(),
            told=tuple(reversed(self._told)),
            cells=tuple(self._cells),
        )
        return _Seen(state, tuple(self._changed_at))

    @property
    def _is_running(self) -> bool:
        return self._row.state == RUNNING

    def _take(self, outcome: Outcome) -> int:
        """Record an outcome; the cell that it changes."""
        expected = self._protocol.upcoming()
        if expected != outcome.key:
            raise RunError(
                f"run {self._row.id}: trial {tuple(outcome.key)} is stored where the plan has "
                f"{expected}",
                "another version wrote the run, or it was edited; concurve show has its figures",
            )
        self._protocol.record(outcome)
        cell = outcome.key.cell
        if outcome.cause:
            setting = fmt.setting(self._plan.cells[cell].parameters) or "trial"
            cause = words.cause(outcome.cause)
            self._told.append(fmt.clean(f"{setting}: {cause}: {outcome.detail}"))
            del self._told[:-TOLD_MAX]
        return cell

    def _cell(self, index: int) -> LiveCell:
        state = self._protocol.cells[index]
        values = state.values()
        study = self._study
        figure = indicator_centre(study.primary, values, study.primary_unit) if values else None
        return LiveCell(
            cell=index,
            setting=fmt.setting(self._plan.cells[index].parameters) or "the only cell",
            figure=fmt.MISSING if figure is None else fmt.estimate(figure).text,
            value=None if figure is None else figure.value,
            low=None if figure is None else figure.low,
            high=None if figure is None else figure.high,
            trials=len(values),
            target=state.target,
            note=fmt.clean(state.skipped),
        )

    def _under_way(self) -> str:
        """The trial that runs now, in words."""
        if not self._is_running:
            return ""
        key = self._protocol.upcoming()
        if not isinstance(key, TrialKey):
            return "the last trial has ended"
        again = f", attempt {key.attempt + 1}" if key.attempt else ""
        setting = fmt.setting(self._plan.cells[key.cell].parameters) or "the only cell"
        return f"{setting}, trial {key.block + 1}{again}"
