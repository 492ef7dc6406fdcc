"""Simulations as plain tasks of Ray, on all CPUs of its hosts: Ray places them, and places one
again whose host is lost. A task depends on its input alone, so the results are those of one
machine."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from concurve.errors import RunError
from concurve.hosts.duties import take_all_cpus

T = TypeVar("T")
R = TypeVar("R")

#: How often a task is placed again whose worker or host was lost.
RETRIES = 3

#: So many tasks for each CPU are under way: one computes, and the next one is there when it ends.
TASKS_A_CPU = 2

#: Seconds beyond the time that tasks take, for Ray to place them.
MARGIN_SECONDS = 60.0


class RayTasks:
    """The tasks of a Ray that was joined; see :class:`concurve.engine.tasks.Tasks`."""

    def __init__(self, ray: Any) -> None:
        self._ray = ray

    def map(
        self, function: Callable[[T], R], items: Iterable[T], seconds: float | None = None
    ) -> Iterator[R]:
        """See :meth:`concurve.engine.tasks.Tasks.map`."""
        task = self._ray.remote(computed).options(num_cpus=1, max_retries=RETRIES)
        cpus = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        # A result may have to wait for those that were placed before it.
        limit = None if seconds is None else TASKS_A_CPU * seconds + MARGIN_SECONDS
        under_way: deque[Any] = deque()
        for item in items:
            under_way.append(task.remote(function, item))
            if len(under_way) >= TASKS_A_CPU * cpus:
                yield self._result(under_way.popleft(), limit)
        while under_way:
            yield self._result(under_way.popleft(), limit)

    def _result(self, reference: Any, seconds: float | None) -> Any:
        failures = self._ray.exceptions
        try:
            return self._ray.get(reference, timeout=seconds)
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
