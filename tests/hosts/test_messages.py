"""What is said between laboratory, agents and stand-ins; and the lease."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concurve import errors
from concurve.hosts import messages as m
from concurve.hosts.connection import HostLostError, ask
from concurve.hosts.lease import Lease
from concurve.hosts.messages import Buffer, answer_of, packed, receive, request_of
from tests.helpers.fuzzing import fuzz

REQUESTS: list[m.Request] = [
    m.Renew(),
    m.FindProgram("load", "role load", None, ("-Xmx1g",)),
    m.Begin(b"{}", "run/0/0/0"),
    m.Watch(0.4),
    m.Open("@gate-1", 2**60),
    m.Mark({"phase": "measure", "edge": "begin", "at_ns": 5}),
    m.Arrive("@gate-1"),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda it: type(it).__name__)
def test_a_request_comes_as_it_was_sent(request_: m.Request) -> None:
    (body,) = Buffer().push(packed(request_))
    assert request_of(body) == request_


@given(st.lists(st.sampled_from(REQUESTS), max_size=6), st.data())
def test_messages_come_however_the_stream_is_cut(
    requests: list[m.Request], data: st.DataObject
) -> None:
    stream = b"".join(packed(request) for request in requests)
    buffer, found = Buffer(), []
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += buffer.push(stream[:size])
        stream = stream[size:]
    assert [request_of(body) for body in found] == requests


def test_a_message_that_is_too_long_or_cut_off_is_refused() -> None:
    with pytest.raises(ValueError, match="a message of"):
        Buffer().push(b"\xff\xff\xff\xff")
    left, right = socket.socketpair()
    with left, right:
        left.sendall(packed(m.Done(1))[:-1])
        left.close()
        with pytest.raises(EOFError):
            receive(right)


@pytest.mark.parametrize("body", [b"", b"\xc1", b"\x80", b"\x81\xa4type\xa5Never"])
def test_what_is_no_message_is_refused(body: bytes) -> None:
    for decode in (request_of, answer_of):
        with pytest.raises(ValueError, match="no message of this version"):
            decode(body)


@pytest.mark.fuzz
def test_hostile_messages() -> None:
    def parse(data: bytes) -> None:
        try:
            for body in Buffer().push(data):
                request_of(body)
        except ValueError:
            pass

    fuzz(parse, [packed(request) for request in REQUESTS], [b"type", b"\xff\xff\xff\xff"])


class Answering:
    """A connection that gives one answer."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer

    def exchange(self, body: bytes, seconds: float) -> bytes:
        return self.answer

    def clock(self) -> int:
        return 0

    def another(self) -> Answering:
        return self

    def interrupt(self) -> None: ...

    def close(self) -> None: ...


def body_of(answer: m.Answer) -> bytes:
    return packed(answer)[4:]


def test_an_error_of_a_host_is_of_its_kind_and_names_the_host() -> None:
    failed = m.Failed("BusyError", "another measurement runs", "wait")
    with pytest.raises(errors.BusyError, match="host a: another measurement") as raised:
        ask(Answering(body_of(failed)), "a", m.Lock("x"))
    assert raised.value.remedy == "wait"


@pytest.mark.parametrize("name", ["NoSuchError", "annotations", "Callable"])
def test_an_error_of_an_unknown_kind_is_still_one(name: str) -> None:
    with pytest.raises(errors.RunError, match="host a: odd"):
        ask(Answering(body_of(m.Failed(name, "odd"))), "a", m.Renew())


def test_an_answer_of_another_version_is_no_answer() -> None:
    with pytest.raises(HostLostError, match="host a does not answer as this version does"):
        ask(Answering(b"\xc1"), "a", m.Renew())


def test_a_lease_ends_unless_it_is_renewed() -> None:
    lease = Lease(3.0, now=10.0)
    assert not lease.has_ended(12.9) and lease.left(12.0) == 1.0
    lease.renew(12.0)
    assert not lease.has_ended(14.9)
    assert lease.has_ended(15.0) and lease.left(16.0) == 0.0
    lease.renew(9.0)
    assert lease.has_ended(15.0), "a renewal never makes it shorter or brings it back in time"


def test_before_its_first_renewal_a_lease_may_last_longer() -> None:
    lease = Lease(3.0, now=10.0, first=60.0)
    assert not lease.has_ended(69.0)
    lease.renew(20.0)
    assert not lease.has_ended(22.9) and lease.has_ended(23.0)
