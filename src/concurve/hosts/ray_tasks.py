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
from concurve.hosts.duties import take_all_cpus

T = TypeVar("T")
R = TypeVar("R")

#: How often a task is placed again whose worker or host was lost.
RETRIES = 3

#: So many tasks for each CPU are under way: one computes, and the next one is there when it ends.
TASKS_A_CPU = 2

#: Seconds between two looks at whether a result can still come.
LOOK_SECONDS = 0.2

#: Seconds beyond the time that tasks take, for Ray to place them.
MARGIN_SECONDS = 60.0


class RayTasks:
    """The tasks of a Ray that was joined; see :class:`concurve.engine.tasks.Tasks`."""

    def __init__(self, ray: Any, check: Callable[[], None] = lambda: None) -> None:
        """``check`` raises where no result can come any more, whichever hosts are left."""
        self._ray = ray
        self._check = check
        self._task: Any = None

    def map(
        self, function: Callable[[T], R], items: Iterable[T], seconds: float | None = None
    ) -> Iterator[R]:
        """See :meth:`concurve.engine.tasks.Tasks.map`."""
        cpus = max(1, int(asked(self._ray.cluster_resources, self._check).get("CPU", 1)))
        # A result may have to wait for those that were placed before it.
        limit = None if seconds is None else TASKS_A_CPU * seconds + MARGIN_SECONDS
        under_way: deque[Any] = deque()
        for item in items:
            under_way.append(asked(partial(self._begun, function, item), self._check))
            if len(under_way) >= TASKS_A_CPU * cpus:
                yield self._result(under_way.popleft(), limit)
        while under_way:
            yield self._result(under_way.popleft(), limit)

    def _begun(self, function: Callable[[T], R], item: T) -> Any:
        """A task that is under way."""
        if self._task is None:
            remote = self._ray.remote(computed)
            self._task = remote.options(num_cpus=1, max_retries=RETRIES)
        return self._task.remote(function, item)

    def _result(self, reference: Any, seconds: float | None) -> Any:
        failures = self._ray.exceptions
        try:
            return result_of(self._ray, reference, seconds, self._check)
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


def asked(function: Callable[[], R], check: Callable[[], None]) -> R:
    """What a call gives that asks Ray's head, however long that takes; ``check`` is called
    meanwhile, and may raise: a head that is stopped would be waited for without end."""
    found: Future[R] = Future()

    def ask() -> None:
        try:
            found.set_result(function())
        except BaseException as error:  # raised in the thread that waits
            found.set_exception(error)

    threading.Thread(target=ask, name="concurve-asks-ray", daemon=True).start()
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
