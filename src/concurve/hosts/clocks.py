"""The monotonic clocks of hosts: their offsets, with a bound of the error. Pure.

An exchange asks another host for its time. The host read its clock between the sending of the
question and the receipt of the answer, so its offset from ours lies between two bounds, whatever
either way took: the remote time less the time of receipt, and the remote time less the time of
sending. The middle of the two is off by half of the round trip at most, and the exchange with the
least round trip says most (Cristian 1989). Exchanges at several times bound the offset at another
one if clocks drift by no more than a stated rate; bounds that do not overlap show a clock that
jumped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

#: How many exchanges an offset is estimated from.
EXCHANGES = 128

#: How fast two monotonic clocks may run apart: NTP steers a clock by 500 parts in a million at
#: most, each of the two.
DRIFT_MOST = 1e-3


class ClockJumpError(ValueError):
    """The bounds of a clock's offset contradict each other: it jumped, or drifts faster than any
    clock that is steered."""


class Exchange(NamedTuple):
    """A question for the time, by our clock when it was sent and when the answer came, and by the
    other one's in between; all in ns."""

    sent_ns: int
    remote_ns: int
    received_ns: int

    @property
    def round_trip_ns(self) -> int:
        """How long it took."""
        return self.received_ns - self.sent_ns


class Offset(NamedTuple):
    """What another clock showed more than ours at a time of ours, and the bound of the error."""

    ns: int
    error_ns: int
    at_ns: int

    def remote(self, ours_ns: int) -> int:
        """A time of ours by the other clock."""
        return ours_ns + self.ns

    def ours(self, remote_ns: int) -> int:
        """A time of the other clock by ours."""
        return remote_ns - self.ns


def estimate(exchanges: Sequence[Exchange]) -> Offset:
    """The offset by the exchange with the least round trip.

    Raises:
        ValueError: there are none, or one was answered before it was sent.
    """
    if not exchanges:
        raise ValueError("no exchange")
    if any(exchange.round_trip_ns < 0 for exchange in exchanges):
        raise ValueError("an exchange was answered before it was sent")
    best = min(exchanges, key=lambda exchange: exchange.round_trip_ns)
    low, high = best.remote_ns - best.received_ns, best.remote_ns - best.sent_ns
    middle = (low + high) // 2
    return Offset(middle, high - middle, (best.sent_ns + best.received_ns) // 2)


def at(offset: Offset, now_ns: int, drift: float = DRIFT_MOST) -> Offset:
    """The same offset at another time of ours: its bound grows by what the clocks may drift."""
    grown = round(abs(now_ns - offset.at_ns) * drift)
    return Offset(offset.ns, offset.error_ns + grown, now_ns)


def combined(offsets: Iterable[Offset], now_ns: int, drift: float = DRIFT_MOST) -> Offset:
    """The offset that all of the estimates allow, at a time of ours.

    Raises:
        ClockJumpError: no offset does.
        ValueError: there are no estimates.
    """
    moved = [at(offset, now_ns, drift) for offset in offsets]
    if not moved:
        raise ValueError("no estimate")
    low = max(offset.ns - offset.error_ns for offset in moved)
    high = min(offset.ns + offset.error_ns for offset in moved)
    if low > high:
        raise ClockJumpError(
            f"its clock moved by {(low - high) / 1e6:.3f} ms more than clocks drift"
        )
    middle = (low + high) // 2
    return Offset(middle, high - middle, now_ns)


def spanning(before: Offset, after: Offset) -> Offset:
    """The offset from one estimate to a later one: its bounds hold both, and so all between them
    for clocks that drift one way meanwhile."""
    low = min(offset.ns - offset.error_ns for offset in (before, after))
    high = max(offset.ns + offset.error_ns for offset in (before, after))
    middle = (low + high) // 2
    return Offset(middle, high - middle, after.at_ns)


def measured(
    ask: Callable[[], int], clock: Callable[[], int], exchanges: int = EXCHANGES
) -> list[Exchange]:
    """Exchanges with a host: ``ask`` gives its time, ``clock`` ours."""
    found = []
    for _ in range(exchanges):
        sent = clock()
        remote = ask()
        found.append(Exchange(sent, remote, clock()))
    return found
