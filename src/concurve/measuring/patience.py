"""Says while something runs unusually long that it does, and when it will be stopped.

A thread sleeps beside the trial and wakes once, after a minute; before that it takes no CPU time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from concurve.definition.units import format_duration

#: What runs for so many seconds is announced.
LONG_SECONDS = 60.0


class Patience:
    """Announces through ``tell`` what takes longer than ``seconds``; after an announcement,
    what takes twice as long as that."""

    def __init__(self, tell: Callable[[str], None], seconds: float | None = None) -> None:
        self._tell = tell
        self._seconds = LONG_SECONDS if seconds is None else seconds

    @contextmanager
    def watch(self, what: str, limit_seconds: float, remedy: str) -> Iterator[None]:
        """While the block runs: announce ``what`` once, when it takes long, unless it would be
        stopped before. ``remedy`` is the option that changes the limit."""
        after = self._seconds
        if limit_seconds <= after:
            yield
            return

        def announce() -> None:
            self._seconds = 2 * after
            self._tell(
                f"{what} has run for {format_duration(after)}; it is stopped after "
                f"{format_duration(limit_seconds)} ({remedy} changes that, Ctrl-C ends the run)"
            )

        timer = threading.Timer(after, announce)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()
