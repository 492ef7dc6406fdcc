"""What the laboratory learns of a connected host."""

from __future__ import annotations

import contextlib
import threading

import pytest

from concurve.hosts import messages as m
from concurve.hosts.connection import HostLostError
from concurve.hosts.host import ConnectedHost, HostEvents
from tests.helpers.real import PATIENCE

DESCRIPTION = m.Description(
    version="1", python="3.11", runner="1", cpus=(0,), machine={}, probes={}, nice=0
)


class Connected:
    """A connection to an agent that describes its host, and answers ``watched`` to who watches."""

    def __init__(self, watched: m.Answer) -> None:
        self.watched = watched

    def exchange(self, body: bytes, seconds: float) -> bytes:
        request = m.request_of(body[4:])
        answer = m.Done(DESCRIPTION) if isinstance(request, m.Describe) else m.Done(None)
        return m.packed(self.watched if isinstance(request, m.Watch) else answer)[4:]

    def clock(self) -> int:
        return 0

    def another(self) -> Connected:
        return self

    def interrupt(self) -> None: ...

    def close(self) -> None: ...


@pytest.mark.parametrize(
    "watched", [m.Failed("HostError", "no memory"), m.Done("no events"), m.Done([{"reached": 1}])]
)
def test_a_host_whose_agent_says_nothing_of_use_is_lost(watched: m.Answer) -> None:
    """A trial would wait for what happens there until its time limit, or for ever."""
    events = HostEvents()
    with (  # while it is described, or later
        pytest.raises(HostLostError, match="host a was lost"),
        contextlib.closing(ConnectedHost("a", Connected(watched), events)),
    ):
        events.next(PATIENCE)


class Describing(Connected):
    """A host that is cut off while it looks for what it is asked to describe."""

    def __init__(self) -> None:
        super().__init__(m.Failed("HostError", "no answer"))
        self.interrupted = threading.Event()

    def exchange(self, body: bytes, seconds: float) -> bytes:
        if isinstance(m.request_of(body[4:]), m.Describe):
            if self.interrupted.wait(PATIENCE):
                raise HostLostError("interrupted")
            raise HostLostError("nobody noticed")
        return super().exchange(body, seconds)

    def interrupt(self) -> None:
        self.interrupted.set()


def test_a_host_that_is_lost_while_it_describes_itself_is_missed_by_its_silence() -> None:
    """What it describes may take it half a minute."""
    with pytest.raises(HostLostError, match="host a was lost: host a: no answer"):
        ConnectedHost("a", Describing(), HostEvents())
    left = [it for it in threading.enumerate() if it.name == "concurve-host-a"]
    assert left == []


class Silent(Connected):
    """A host that is asked for news, and does not answer until that is interrupted."""

    def __init__(self) -> None:
        super().__init__(m.Done([]))
        self.interrupted = threading.Event()

    def exchange(self, body: bytes, seconds: float) -> bytes:
        if isinstance(m.request_of(body[4:]), m.Watch):
            self.interrupted.wait(PATIENCE)
            raise HostLostError("interrupted")
        return super().exchange(body, seconds)

    def interrupt(self) -> None:
        self.interrupted.set()


def test_nothing_asks_a_lost_host_after_it_was_closed() -> None:
    """Ray ends a process of which a thread asks it after it was left, without a word."""
    silent = Silent()
    host = ConnectedHost("silent", silent, HostEvents())
    host.lost = HostLostError("host silent was lost: the main thread saw it first")
    host.close()
    assert silent.interrupted.is_set()
    assert "concurve-host-silent" not in [thread.name for thread in threading.enumerate()]


class Dying(Connected):
    """A host whose agent dies while its clock is asked for, which then fails as a consequence."""

    def __init__(self) -> None:
        super().__init__(m.Done([]))
        self.is_asked, self.interrupted = threading.Event(), threading.Event()

    def exchange(self, body: bytes, seconds: float) -> bytes:
        if isinstance(m.request_of(body[4:]), m.Watch):
            self.is_asked.wait(PATIENCE)
            raise HostLostError("its agent is gone")
        return super().exchange(body, seconds)

    def clock(self) -> int:
        self.is_asked.set()
        self.interrupted.wait(PATIENCE)
        raise HostLostError("its connection was given up")

    def interrupt(self) -> None:
        self.interrupted.set()


def test_the_first_cause_of_a_loss_is_told_and_not_what_follows_from_it() -> None:
    host = ConnectedHost("a", Dying(), HostEvents())
    try:
        with pytest.raises(HostLostError) as told:
            host.offset()
    finally:
        host.close()
    assert told.value.what == "host a was lost: its agent is gone"
