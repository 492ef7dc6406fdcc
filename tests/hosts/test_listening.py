"""What Ray listens with is asked for an answer: a process that is stopped accepts connections."""

from __future__ import annotations

import contextlib
import socket
import threading
import types
from collections.abc import Callable, Iterator

import pytest

from concurve.errors import HostError
from concurve.hosts import listening, ray_cluster
from concurve.hosts.connection import QUICK_SECONDS
from concurve.hosts.listening import answer_at, gone, watched

#: Settings of HTTP/2, of which there are none.
SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"

#: An alert of TLS.
ALERT = b"\x15\x03\x01\x00\x02\x02\x46"

PATIENCE = 60.0


@contextlib.contextmanager
def server(answer: bytes | None) -> Iterator[str]:
    """The address of what answers each connection once it is begun; ``None``: as a stopped process,
    whose kernel alone accepts."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"

        def serve() -> None:
            with contextlib.suppress(OSError):  # the test is over
                while True:
                    stream, _ = listener.accept()
                    with stream:
                        stream.recv(1024)
                        stream.sendall(answer or b"")

        if answer is not None:
            threading.Thread(target=serve, daemon=True).start()
        yield address
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)


def told(address: str, answer_seconds: float) -> list[str]:
    """What is told of an address until something is."""
    found: list[str] = []
    happened = threading.Event()

    def tell(reason: str) -> None:
        found.append(reason)
        happened.set()

    with watched(address, tell, 0.001, answer_seconds):
        assert happened.wait(PATIENCE)
    return found


@pytest.mark.parametrize("answer", [SETTINGS, ALERT, b""])
def test_what_answers_is_there(answer: bytes) -> None:
    """With TLS it says so, or ends the connection."""
    with server(answer) as address:
        assert answer_at(address, PATIENCE).is_of_ray
        assert answer_at(address, PATIENCE).own_address == "127.0.0.1"
        assert gone(address, PATIENCE) == ("", False)


def test_a_process_that_is_stopped_is_silent_though_it_accepts_connections() -> None:
    with server(None) as address:
        reason, is_sure = gone(address, 0.05)
        assert "says nothing within" in reason and not is_sure
        assert told(address, 0.05) == [reason]


def test_silence_is_a_loss_within_the_seconds_that_a_host_has() -> None:
    """Then the laboratory still has to end what runs elsewhere, before 7 s are over."""
    silent = listening.LATE_MAX * listening.ANSWER_SECONDS
    assert silent < QUICK_SECONDS
    assert listening.LOOK_SECONDS + silent + ray_cluster.LEAVE_BROKEN_SECONDS < 5


def test_nothing_that_listens_is_a_loss_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    reason, is_sure = gone(address, PATIENCE)
    assert "refused" in reason and is_sure
    assert told(address, PATIENCE) == [reason]


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (OSError(113, "No route to host"), "No route to host"),
        (TimeoutError("timed out"), "timed out"),
        (OSError(24, "Too many open files"), ""),
        (socket.gaierror(-2, "Name or service not known"), ""),
    ],
)
def test_what_cannot_be_told_is_no_loss(
    monkeypatch: pytest.MonkeyPatch, error: OSError, says: str
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(listening, "answer_at", fail)
    assert gone("10.0.0.1:6379", 1.0) == (says, False)


def gone_as(said: list[str]) -> Callable[[str, float], tuple[str, bool]]:
    answers = iter(said)
    return lambda address, seconds: (next(answers), False)


def test_some_late_answers_are_no_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    said = ["1", "2", "", "3", "4", "5"]
    monkeypatch.setattr(listening, "gone", gone_as(said))
    assert told("10.0.0.1:6379", 0.0) == ["5"]


def test_what_is_refused_at_once_is_a_loss_no_sooner_than_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A network that is away for a moment refuses, and does not wait."""
    looks = 0

    class Clock:
        seconds = 0.0

        def monotonic(self) -> float:
            return self.seconds

    class Ends:
        """The end of the watch, for which its thread waits between two looks."""

        def wait(self, seconds: float) -> bool:
            clock.seconds += seconds
            return False

        def set(self) -> None: ...

    def refuse(address: str, seconds: float) -> tuple[str, bool]:
        nonlocal looks
        looks += 1
        return "Network is unreachable", False

    clock = Clock()
    monkeypatch.setattr(listening, "gone", refuse)
    monkeypatch.setattr(listening, "time", clock)
    happened = threading.Event()
    shown = types.SimpleNamespace(Event=Ends, Thread=threading.Thread)
    monkeypatch.setattr(listening, "threading", shown)
    with watched("10.0.0.1:6379", lambda reason: happened.set(), 1.0, 2.0):
        assert happened.wait(PATIENCE)
    assert 6.0 <= clock.seconds <= 9.0 and looks == 4


def test_a_stopped_ray_is_refused_before_the_first_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """To join it would take for ever."""
    monkeypatch.setattr(ray_cluster, "REACH_SECONDS", 0.05)
    with (
        server(None) as address,
        pytest.raises(HostError, match=f"Ray at {address} does not answer: it accepts") as refused,
    ):
        ray_cluster.check_reachable(address, "concurve hosts up FILE")
    assert "stopped" in refused.value.remedy and "hosts up FILE" in refused.value.remedy


def test_a_raylet_at_another_port_is_no_reason() -> None:
    """Where Ray was started in another way."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    assert not ray_cluster.is_answered(address, "")
    with server(SETTINGS) as address:
        assert ray_cluster.is_answered(address, "")


@pytest.mark.parametrize("said", [b"SSH-2.0-OpenSSH_9.2\r\n", b"-ERR unknown command\r\n", b"x"])
def test_what_is_no_ray_is_refused_by_what_it_says(said: bytes) -> None:
    with server(said) as address, pytest.raises(HostError, match="is no Ray: it says") as refused:
        ray_cluster.check_reachable(address, "start it")
    assert said.decode().strip() in refused.value.what
    assert "the port of Ray's head" in refused.value.remedy
