"""A connected host, as the laboratory sees it: its description, its clock, and what happens."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from concurve.errors import ConcurveError, HostError, RunError
from concurve.host.own_files import SAME_WHEELS, differing, own_files
from concurve.hosts import messages as m
from concurve.hosts.clocks import ClockJumpError, Exchange, Offset, combined, estimate, measured
from concurve.hosts.connection import (
    ANSWER_SECONDS,
    QUICK_SECONDS,
    Connection,
    HostLostError,
    ask,
    lost,
)
from concurve.hosts.lease import RENEWAL_SECONDS
from concurve.hosts.messages import Description, Event, Request
from concurve.version import __version__

#: Exchanges before a trial; the first estimate of a connection takes more.
EXCHANGES_AGAIN = 32

#: Estimates of an offset that are kept, to see whether a clock jumps.
OFFSETS_KEPT = 8


class HostEvent(NamedTuple):
    """An event of a host, or the error by which it was lost."""

    host: str
    event: Event | None
    lost: HostLostError | None = None


class HostEvents:
    """What happens on all hosts, in the order in which the laboratory learns of it."""

    def __init__(self) -> None:
        self._queue: queue.Queue[HostEvent] = queue.Queue()
        self.lost: set[str] = set()

    def add(self, happened: HostEvent) -> None:
        """Have it taken by :meth:`next`."""
        if happened.lost is not None:
            self.lost.add(happened.host)
        self._queue.put(happened)

    def next(self, seconds: float) -> HostEvent | None:
        """What happens next; ``None`` if nothing does within a time.

        Raises:
            HostLostError: a host is lost.
        """
        try:
            happened = self._queue.get(timeout=max(0.0, seconds))
        except queue.Empty:
            return None
        if happened.lost is not None:
            raise happened.lost
        return happened

    def forget(self) -> None:
        """Drop what happened before a trial; a host that was lost is not forgotten."""
        while self.next(0.0) is not None:
            pass


def _of_one(exchange: Exchange) -> Offset:
    return estimate([exchange])


class ConnectedHost:
    """A host with its connection, and a thread that renews the lease of its agent and passes on
    what happens there."""

    def __init__(self, name: str, connection: Connection, events: HostEvents) -> None:
        self.name = name
        self.connection = connection
        self._watching = connection.another()
        self._events = events
        self._offsets: list[Offset] = []
        self.round_trip_ns = 0
        self.usual_round_trip_ns = 0
        self.lost: HostLostError | None = None
        self._ends = threading.Event()
        self._thread = threading.Thread(
            target=self._watch, name=f"concurve-host-{name}", daemon=True
        )
        self._thread.start()
        try:
            # It may take the host long; whether that is still there is seen meanwhile.
            self.description = self._described()
        except BaseException:
            self.close()
            raise

    def ask(self, request: Request, seconds: float = ANSWER_SECONDS) -> Any:
        """The value of the answer to a request; see :func:`~concurve.hosts.connection.ask`. A host
        that was lost is asked for nothing more."""
        if self.lost is not None:
            raise self.lost
        try:
            return ask(self.connection, self.name, request, seconds)
        except HostLostError as error:
            raise self._lose(error) from error

    def offset(self) -> Offset:
        """The offset of the host's clock from ours, by new exchanges and by those before.

        Raises:
            RunError: its clock jumped.
            HostLostError: it does not answer.
        """
        exchanges = EXCHANGES_AGAIN if self._offsets else EXCHANGES_AGAIN * 4
        try:
            exchanged = measured(self.connection.clock, time.monotonic_ns, exchanges)
        except HostLostError as error:
            raise self._lose(error) from error
        round_trips = sorted(exchange.round_trip_ns for exchange in exchanged)
        self.round_trip_ns = round_trips[0]
        self.usual_round_trip_ns = round_trips[len(round_trips) // 2]
        try:
            # All of them bound the offset, so a jump among them is seen.
            found = combined(map(_of_one, exchanged), time.monotonic_ns())
            self._offsets = [*self._offsets[1 - OFFSETS_KEPT :], found]
            return combined(self._offsets, time.monotonic_ns())
        except ClockJumpError as error:
            raise RunError(
                f"host {self.name}: {error}: times of its roles would mean nothing",
                "look at its clock source, and at a virtual machine that was moved or paused; "
                "then concurve resume last",
            ) from error

    def close(self) -> None:
        """End the agent and the connection; no answer is awaited of a host that was lost. Its
        thread ends too: one that asks Ray after we have left it would have Ray end this process."""
        self._ends.set()
        with contextlib.suppress(RunError, HostError):
            self.ask(m.Quit(), RENEWAL_SECONDS * 10)
        if self.lost is not None:
            self._watching.interrupt()
        self._thread.join(RENEWAL_SECONDS * 10)
        self.connection.close()
        self._watching.close()

    def _lose(self, error: HostLostError) -> HostLostError:
        """Have this host be lost; the error to tell, which is the first: others follow from it."""
        if self.lost is None:
            self.lost = lost(self.name, error)
        return self.lost

    def _described(self) -> Description:
        found = self.ask(m.Describe())
        try:
            return msgspec.convert(found, Description)
        except msgspec.ValidationError as error:
            raise HostError(
                f"host {self.name} is of another version: {error}", "concurve of one version"
            ) from error

    def _watch(self) -> None:
        """Renew the lease by asking what happened, until the connection is closed or lost."""
        while not self._ends.is_set():
            try:
                limit = RENEWAL_SECONDS + QUICK_SECONDS
                answer = ask(self._watching, self.name, m.Watch(RENEWAL_SECONDS), limit)
                found = msgspec.convert(answer, list[Event])
            except (ConcurveError, msgspec.ValidationError) as error:
                if not self._ends.is_set():
                    if not isinstance(error, HostLostError):
                        error = HostLostError(str(error))
                    first = self._lose(error)
                    self.connection.interrupt()
                    self._events.add(HostEvent(self.name, None, first))
                return
            for event in found:
                self._events.add(HostEvent(self.name, event))


def check_alike(hosts: Iterable[ConnectedHost]) -> None:
    """Refuse hosts of other versions, and one that would run programs at another priority.

    Raises:
        HostError: names the host, and both versions.
    """
    first: Description | None = None
    ours = own_files()
    own_nice = os.getpriority(os.PRIO_PROCESS, 0)
    for host in hosts:
        found = host.description
        if found.version != __version__:
            raise HostError(
                f"host {host.name} has concurve {found.version}, this machine has {__version__}",
                f"one version on all hosts: {SAME_WHEELS}",
            )
        if what := differing(ours, found.files):
            raise HostError(
                f"host {host.name}: {what} is not the same there as on this machine, though both "
                f"are {__version__}",
                SAME_WHEELS,
            )
        if first is not None and found.runner != first.runner:
            raise HostError(
                f"host {host.name} has the trial runner {found.runner}, another host has "
                f"{first.runner}",
                "concurve-native of one version on all hosts",
            )
        if found.nice != own_nice:
            raise HostError(
                f"host {host.name}: programs would inherit the nice value {found.nice} there, and "
                f"{own_nice} here",
                "concurve hosts down and up; a Ray of your own is to start with "
                "RAY_worker_niceness=0 in its environment",
            )
        first = first or found
