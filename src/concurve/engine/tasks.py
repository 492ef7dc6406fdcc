"""A function over many items, several at once: simulations, whose results depend on their input
alone. On this machine by processes (:class:`Processes`); on the CPUs of many by Ray
(:class:`concurve.hosts.ray_tasks.RayTasks`)."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

from concurve.errors import RunError
from concurve.host.orphans import ending_with_parent

T = TypeVar("T")
R = TypeVar("R")


class Tasks(Protocol):
    """Computes results that depend on nothing but the function and its item: they are the same
    wherever and however many at once they are computed."""

    def map(
        self, function: Callable[[T], R], items: Iterable[T], seconds: float | None = None
    ) -> Iterator[R]:
        """The results in the order of the items. One that is asked for is waited for so many
        ``seconds``, or until it is there.

        Raises:
            RunError: a result was not computed, for want of a machine.
        """
        ...


#: What forks compute: a function may hold others that do not travel between processes.
_SHARED: list[Any] = []


class Processes:
    """On this machine, in so many processes; one: in this one."""

    def __init__(self, count: int) -> None:
        self._count = count

    def map(
        self, function: Callable[[T], R], items: Iterable[T], seconds: float | None = None
    ) -> Iterator[R]:
        """See :meth:`Tasks.map`; it waits until a result is there.

        Raises:
            RunError: one of the processes has ended.
        """
        if self._count <= 1:
            yield from map(function, items)
            return
        listed = list(items)
        if not listed:
            return
        _SHARED[:] = [function, listed]
        others = {child.pid for child in multiprocessing.active_children()}
        context = multiprocessing.get_context("fork")
        end_with_parent = ending_with_parent(signal.SIGKILL)
        pool = ProcessPoolExecutor(self._count, context, _begin, (end_with_parent,))
        # Who waits for a result that is not there holds its lock at times: an interruption in such
        # a moment would keep it for good, and the pool could never end.
        arrived: SimpleQueue[Future[Any]] = SimpleQueue()
        with _without_signals():  # the first one that is submitted makes the forks
            results = [pool.submit(_numbered, number) for number in range(len(listed))]
            for result in results:
                result.add_done_callback(arrived.put)
        forks = [child for child in multiprocessing.active_children() if child.pid not in others]
        try:
            there: set[Future[Any]] = set()
            for result in results:
                while result not in there:
                    there.add(arrived.get())
                yield result.result()
        except BrokenProcessPool:
            raise RunError(
                "a process that computes simulations was ended from outside",
                "more memory, if the kernel ended it for want of that (dmesg says so)",
            ) from None
        finally:
            # Whatever they do: one that was killed from outside may have held the lock of the
            # queue, and then no other would get the word to end.
            for fork in forks:
                fork.kill()
            pool.shutdown(cancel_futures=True)


#: Those by which this process may be asked to end.
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


@contextmanager
def _without_signals() -> Iterator[None]:
    """Forks that are made within get no signal before they say how they heed it: this process may
    have a handler that waits for what it does, and a fork that waited so would never end."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(end_with_parent: Callable[[], None]) -> None:
    """In a fork: end with the process that made it, however that ends."""
    end_with_parent()
    _heed_signals()


def _heed_signals() -> None:
    """In a fork: end at once by SIGTERM. What a terminal sends to all of them is heeded by the
    process that made them."""
    for number in _ENDING:
        # Never to ignore SIGTERM, not even for a moment: one that waits already would be lost.
        signal.signal(number, signal.SIG_DFL if number == signal.SIGTERM else signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)


def _numbered(number: int) -> Any:
    function, items = _SHARED
    return function(items[number])
