"""Trials of a simulation that run at once: its clock is its own, so other trials do not disturb it,
and its seeds say everything of its result. They are still taken, judged and stored one by one in
the order of the plan, so a run is the same whatever ran at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence

from concurve.definition.study import FREE_PORT, TRIAL_FOLDER, Study, uses
from concurve.engine.local import revealed, run_packed
from concurve.engine.tasks import Tasks
from concurve.secrets import KNOWN
from concurve.store.rows import TrialKey
from concurve.wire import encode_spec
from concurve.wire.spec import TrialSpec


def can_run_at_once(study: Study) -> bool:
    """Do the trials of a study leave each other alone: a simulation, without a port, a folder or a
    shell command of one trial?"""
    shared = uses(study, FREE_PORT) or uses(study, TRIAL_FOLDER)
    hooks = study.hooks
    return study.simulation and not shared and not (hooks.prepare or hooks.conclude)


class Ahead:
    """Records of trials that were begun together."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._begun: deque[TrialKey] = deque()
        self._results: Iterator[bytes] = iter(())
        self._done: dict[TrialKey, bytes] = {}

    def close(self) -> None:
        """Give up what is under way."""
        if isinstance(self._results, Generator):
            self._results.close()

    def record(
        self,
        key: TrialKey,
        coming: Callable[[], Sequence[TrialKey]],
        spec_of: Callable[[TrialKey], TrialSpec],
        seconds: float,
    ) -> bytes:
        """The record of a trial. ``coming`` gives those that come next in its block, with this one
        if it is no redo; ``spec_of`` gives the spec of each, and each takes ``seconds`` at most.

        Raises:
            RunError: no machine computes it.
        """
        if key not in self._done and key not in self._begun:
            block = coming()
            keys = block if key in block else [key]
            self._begun, self._done = deque(keys), {}
            specs = (encode_spec(revealed(spec_of(other))) for other in keys)
            self._results = self._tasks.map(run_packed, specs, seconds)
        while key not in self._done:
            raw = next(self._results)
            self._done[self._begun.popleft()] = KNOWN.hide_json(raw)
        return self._done.pop(key)
