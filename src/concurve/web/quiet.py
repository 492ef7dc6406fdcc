"""Keeps this process from disturbing a measurement on this machine.

While one runs, this process uses none of the CPUs that are measured, if there are others, and
makes no report unless its reader insists. It looks for a measurement once a second, by reading two
files; what a look costs is a foreign process's CPU time in the record of the trial.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from concurve.errors import ConcurveError
from concurve.host.lock import measurement_under_way
from concurve.host.machine import allowed_cpus
from concurve.planning.plan import plan_of, trial_spec
from concurve.store import Store
from concurve.store.run_head import RunHead, decode_head
from concurve.web.aside import in_time
from concurve.wire.spec import TrialSpec

#: A measurement is looked for so often.
LOOK_SECONDS = 1.0

#: A run whose head is not found in so many looks is one of another store.
LOOKS_IN_VAIN_MAX = 5

_RUN = re.compile(r"concurve run (\S+) \(")


def free_cpus(specs: Iterable[TrialSpec], allowed: tuple[int, ...]) -> tuple[int, ...]:
    """The CPUs that no role of these trials may use; none where a role may use all."""
    used: set[int] = set()
    for spec in specs:
        for role in spec.roles:
            used.update(allowed if role.controls.cpus is None else role.controls.cpus)
    return tuple(cpu for cpu in allowed if cpu not in used)


def run_named_in(said: str) -> str | None:
    """The run that the holder of the measurement lock measures; ``None`` where it names none."""
    found = _RUN.search(said)
    return None if found is None else found[1]


def move_all_threads(cpus: tuple[int, ...]) -> None:
    """Confine each thread of this process to these CPUs; new threads and processes inherit it."""
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended
            os.sched_setaffinity(int(task.name), cpus)


class Quiet:
    """Knows who measures, and keeps off the CPUs that are measured meanwhile. ``find`` gives the
    head of a run of our store; ``None`` where it has none of this id."""

    def __init__(
        self,
        find: Callable[[str], RunHead | None],
        look: Callable[[], str] = measurement_under_way,
        move: Callable[[tuple[int, ...]], None] = move_all_threads,
        allowed: tuple[int, ...] = (),
    ) -> None:
        self._find = find
        self._look = look
        self._move = move
        self._allowed = allowed or allowed_cpus()
        self._kept_off_for = ""
        self._sought = ""
        self._looks_in_vain = 0
        self.holder = ""

    def look(self) -> str:
        """Who measures now, in the words of the lock; empty if nobody does."""
        self.holder = self._look()
        if self.holder != self._kept_off_for:
            self._keep_off()
        return self.holder

    def come_back(self) -> None:
        """Use all CPUs again: a process that is started gets those of this one."""
        if self._kept_off_for:
            self._kept_off_for = ""
            self._move(self._allowed)

    async def watch(self, measured: Callable[[], None] = lambda: None) -> None:
        """Look until this task is cancelled, and call ``measured`` after each look that finds a
        measurement. A look that fails is made again."""
        while True:
            with contextlib.suppress(Exception):
                if await in_time("the store", self.look):
                    measured()
            await asyncio.sleep(LOOK_SECONDS)

    def _keep_off(self) -> None:
        self.come_back()
        name = run_named_in(self.holder)
        head = None if name is None else self._find(name)
        if self.holder != self._sought:
            self._sought, self._looks_in_vain = self.holder, 0
        if head is None and name is not None and self._looks_in_vain < LOOKS_IN_VAIN_MAX:
            self._looks_in_vain += 1  # a run holds the lock before its head is stored
            return
        if head is not None and (free := self._free(head)):
            self._move(free)
        self._kept_off_for = self.holder

    def _free(self, head: RunHead) -> tuple[int, ...]:
        with contextlib.suppress(ConcurveError):
            plan = plan_of(head)
            specs = (
                trial_spec(plan, cell, "web", self._allowed, lambda *_: ("",))
                for cell in plan.cells
            )
            return free_cpus(specs, self._allowed)
        return ()


def head_in(url: str | None) -> Callable[[str], RunHead | None]:
    """Finds the heads of runs in a store."""

    def find(run: str) -> RunHead | None:
        with contextlib.suppress(ConcurveError):
            store = Store.existing(url)
            try:
                return decode_head(store.find_run(run))
            finally:
                store.close()
        return None

    return find
