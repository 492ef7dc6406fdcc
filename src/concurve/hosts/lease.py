"""The right of an agent to be there: it lasts as long as the laboratory renews it. Pure."""

from __future__ import annotations

#: Without a renewal for so long, an agent ends what it runs, and itself. The laboratory renews
#: every :data:`RENEWAL_SECONDS`; what the agent started is gone within :data:`END_SECONDS` more.
LEASE_SECONDS = 3.0
RENEWAL_SECONDS = 0.4
END_SECONDS = 1.0


class Lease:
    """A lease that begins now, and lasts for ``first`` seconds until it is renewed; times are those
    of one monotonic clock, in seconds."""

    def __init__(self, seconds: float, now: float, first: float = 0.0) -> None:
        self.seconds = seconds
        self._until = now + max(seconds, first)
        self._is_first = True

    def renew(self, now: float) -> None:
        """Let it begin again."""
        until = now + self.seconds
        self._until = until if self._is_first else max(self._until, until)
        self._is_first = False

    def left(self, now: float) -> float:
        """Seconds until it ends; 0 if it has ended."""
        return max(0.0, self._until - now)

    def has_ended(self, now: float) -> bool:
        """Was it not renewed in time?"""
        return now >= self._until
