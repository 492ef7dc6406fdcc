"""Simulations as plain tasks of Ray, on all CPUs of its hosts: Ray places them, and places one
again whose host is lost. A task depends on its input alone, so the results are those of one
machine."""

from __future__ import annotations

import math
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

from concurve.errors import RunError
from concurve.host.own_cpus import take_all_cpus

T = TypeVar("T")
R = TypeVar("R")

#: How often a task is placed again whose worker or host was lost.
RETRIES = 3

#: So many tasks for each CPU are under way: one computes, and the next one is there when it ends.
TASKS_A_CPU = 2

#: Seconds between two looks at whether a result can still come.
LOOK_SECONDS = 0.2

#: Seconds for Ray to miss a host that was lost.
MISSED_SECONDS = 5.0

#: Seconds beyond the time that tasks take, for Ray to place them.
MARGIN_SECONDS = 60.0


class _LostMeanwhileError(Exception):
    """A host was lost while a result was waited for: it may have been there."""


class RayTasks:
    """The tasks of a Ray that was joined; see :class:`concurve.engine.tasks.Tasks`. ``check``
    raises where no result can come any more, whichever hosts are left; ``lost`` says how many hosts
    are known to be lost."""

    def __init__(
        self,
        ray: Any,
        check: Callable[[], None] = lambda: None,
        lost: Callable[[], int] = lambda: 0,
    ) -> None:
        self._ray = ray
        self._check = check
        self._lost = lost
        self._known_lost = 0
        self._times_again = 0
        self._task: Any = None

    def map(
        self, function: Callable[[T], R], items: Iterable[T], seconds: float | None = None
    ) -> Iterator[R]:
        """See :meth:`concurve.engine.tasks.Tasks.map`."""
        cpus = max(1, int(asked(self._ray.cluster_resources, self._check).get("CPU", 1)))
        # A result may have to wait for those that were placed before it.
        limit = None if seconds is None else TASKS_A_CPU * seconds + MARGIN_SECONDS
        under_way: deque[tuple[T, Any]] = deque()
        for item in items:
            under_way.append((item, self._begun(function, item)))
            if len(under_way) >= TASKS_A_CPU * cpus:
                yield self._next(function, under_way, limit)
        while under_way:
            yield self._next(function, under_way, limit)

    def _begun(self, function: Callable[[T], R], item: T) -> Any:
        """A task that is under way."""

        def begin() -> Any:
            if self._task is None:
                self._task = self._ray.remote(computed).options(**self._options())
            return self._task.remote(function, item)

        return asked(begin, self._check)

    def _options(self) -> dict[str, Any]:
        """Of tasks. Ray waits on for the answer of a host that is cut off before it places further
        tasks of the same needs: those that begin again need some bytes of memory too."""
        options: dict[str, Any] = {"num_cpus": 1, "max_retries": RETRIES}
        return {**options, "memory": self._times_again} if self._times_again else options

    def _next(
        self, function: Callable[[T], R], under_way: deque[tuple[T, Any]], seconds: float | None
    ) -> Any:
        """The result of the first task that is under way."""
        while True:
            try:
                result = self._result(under_way[0][1], seconds)
            except _LostMeanwhileError:
                self._begin_again(function, under_way)
                continue
            under_way.popleft()
            return result

    def _begin_again(self, function: Callable[[T], R], under_way: deque[tuple[T, Any]]) -> None:
        """Begin all that is under way again: Ray does so itself for a host that is gone, and not
        for one that is cut off. What is computed twice gives the same."""
        begun = list(under_way)
        under_way.clear()
        for _, reference in begun:
            asked(partial(self._ray.cancel, reference, force=True), self._check)
        self._wait_until_ray_knows()
        self._times_again += 1
        self._task = None
        under_way.extend((item, self._begun(function, item)) for item, _ in begun)

    def _wait_until_ray_knows(self) -> None:
        """Wait until Ray has missed as many hosts as are lost, or for some time: one whose agent
        alone is lost is not missed. Until then it would place tasks there."""
        self._known_lost = self._lost()
        until = time.monotonic() + MISSED_SECONDS
        while time.monotonic() < until:
            nodes = asked(self._ray.nodes, self._check)
            if sum(not node["Alive"] for node in nodes) >= self._known_lost:
                break
            time.sleep(LOOK_SECONDS)
        time.sleep(LOOK_SECONDS)  # its daemons on the other hosts learn of it

    def _look(self) -> None:
        self._check()
        if self._lost() > self._known_lost:
            raise _LostMeanwhileError

    def _result(self, reference: Any, seconds: float | None) -> Any:
        failures = self._ray.exceptions
        try:
            return result_of(self._ray, reference, seconds, self._look)
        except failures.GetTimeoutError as error:
            raise RunError(
                f"a simulation gave no result within {seconds:g} s on any host",
                "concurve hosts list FILE: are the hosts there? Then concurve resume last",
            ) from error
        except failures.RayTaskError as error:
            cause = getattr(error, "cause", None)
            raise (cause if isinstance(cause, Exception) else _lost(error)) from error
        except failures.RayError as error:
            raise _lost(error) from error


def result_of(ray: Any, reference: Any, seconds: float | None, check: Callable[[], None]) -> Any:
    """The result of a call of Ray within so many seconds, or whenever it comes; ``check`` is called
    meanwhile, and may raise. Ray would wait on where its head is lost, and then end the process.

    Raises:
        GetTimeoutError: Ray's; it did not come.
    """
    until = math.inf if seconds is None else time.monotonic() + seconds
    while True:
        left = until - time.monotonic()
        try:
            return ray.get(reference, timeout=min(LOOK_SECONDS, max(0.0, left)))
        except ray.exceptions.GetTimeoutError:
            check()
            if left <= LOOK_SECONDS:
                raise
        except ray.exceptions.RayError:
            check()
            raise


def asked(
    function: Callable[[], R], check: Callable[[], None], name: str = "concurve-asks-ray"
) -> R:
    """What a call gives that asks Ray's head, however long that takes; ``check`` is called
    meanwhile, and may raise: a head that is stopped would be waited for without end. ``name`` is
    that of the thread which waits then."""
    found: Future[R] = Future()

    def ask() -> None:
        try:
            found.set_result(function())
        except BaseException as error:  # raised in the thread that waits
            found.set_exception(error)

    threading.Thread(target=ask, name=name, daemon=True).start()
    while True:
        try:
            return found.result(LOOK_SECONDS)
        except TimeoutError:
            if found.done():
                raise
            check()


def _lost(error: BaseException) -> RunError:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return RunError(
        f"a simulation was lost {RETRIES + 1} times: {lines[0] if lines else type(error).__name__}",
        "concurve hosts list FILE: are the hosts there? Then concurve resume last",
    )


def computed(function: Callable[[T], R], item: T) -> R:
    """What a worker of Ray does: it has the CPUs of Ray's daemons, and one thread for OpenMP, which
    programs would inherit."""
    take_all_cpus()
    os.environ.pop("OMP_NUM_THREADS", None)
    return function(item)
