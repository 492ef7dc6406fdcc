"""Work that waits for others, beside the loop that answers browsers.

It runs in a thread that dies with the process: what waits for a server that hangs keeps nothing
from ending, as a thread of the loop's own pool would. What it holds is bounded: so many at once,
each for so long.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from concurve.errors import ConcurveError

P = ParamSpec("P")
T = TypeVar("T")

#: So long a browser waits for what is read for it: longer than for a store that another client
#: keeps locked.
PATIENCE_SECONDS = 30.0

#: So many threads wait at once. Those that nobody waits for any more count, too.
THREADS_MAX = 64


class LateError(ConcurveError):
    """What was asked for does not answer, or too many wait for it."""


_free = threading.BoundedSemaphore(THREADS_MAX)


async def aside(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What a function returns, or raises, that runs in a thread of its own."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def tell(result: T | None, error: BaseException | None) -> None:
        if future.done():  # nobody waits any more
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]

    def run() -> None:
        result, error = None, None
        try:
            result = function(*args, **kwargs)
        except BaseException as raised:
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(tell, result, error)

    threading.Thread(target=run, daemon=True).start()
    return await future


async def in_time(what: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The same of what may not answer; ``what`` names it.

    Raises:
        LateError: it did not within :data:`PATIENCE_SECONDS`, or too many wait already.
    """
    free = _free
    if not free.acquire(blocking=False):
        raise LateError(f"{what} does not answer, and {THREADS_MAX} wait already", "again later")

    def counted() -> T:
        try:
            return function(*args, **kwargs)
        finally:
            free.release()

    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await aside(counted)
    except TimeoutError as error:
        raise LateError(
            f"{what} did not answer within {PATIENCE_SECONDS:.0f} s",
            "again later; does another program keep it locked, or does its server hang?",
        ) from error
