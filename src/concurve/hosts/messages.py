"""What is said to an agent and by it: one message after the other on a stream, each as its length
in four bytes and MessagePack. Both ends are of the same version, which the first answer shows."""

from __future__ import annotations

import socket
import struct
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

_LENGTH = struct.Struct(">I")

#: A record with its outputs is far smaller; a longer message is a mistake.
BYTES_MAX = 256 << 20


class _Message(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """Base of a message: its kind is its class."""


# -- from the laboratory: each is answered ------------------------------------------------------


class Renew(_Message, frozen=True):
    """The laboratory is there: the lease begins again. So does every other request."""


class Describe(_Message, frozen=True):
    """What is this host? Answered by :class:`Description`."""


class FindProgram(_Message, frozen=True):
    """How the command line of a packaged program begins here; answered by a list of words."""

    name: str
    where: str
    java: str | None = None
    jvm: tuple[str, ...] = ()


class DescribeProgram(_Message, frozen=True):
    """The files of a packaged program here, or of a command; answered by a mapping."""

    name: str
    where: str
    packaged: bool
    java: str | None = None
    path: str | None = None


class Check(_Message, frozen=True):
    """Could the roles of this spec start here? Answered by a list of problems."""

    spec: bytes


class Clock(_Message, frozen=True):
    """What does the monotonic clock of this host show? Answered by a number of ns."""


class Lock(_Message, frozen=True):
    """Have this host for measurements alone, until the agent ends."""

    what: str


class FreePort(_Message, frozen=True):
    """A TCP port on which nothing listens now at this address; answered by its number."""

    address: str


class MakeFolder(_Message, frozen=True):
    """Make the folder of a trial, if it is not there; answered by whether it was made."""

    path: str


class RemoveFolder(_Message, frozen=True):
    """Remove a folder that was made."""

    path: str


class Begin(_Message, frozen=True):
    """Start a trial: the spec for the runner here, with the stand-ins for roles on other hosts."""

    spec: bytes
    trial: str


class Watch(_Message, frozen=True):
    """What has happened in the trial since the last answer? Answered by a list of events, at once
    or when there is one; an empty list after ``seconds``."""

    seconds: float


class Open(_Message, frozen=True):
    """Let the roles behind a gate start, at this time of the host's monotonic clock."""

    gate: str
    at_ns: int


class Mark(_Message, frozen=True):
    """A role on another host has begun or ended a phase, at this time of this host's clock."""

    line: dict[str, Any]


class Finish(_Message, frozen=True):
    """The roles on other hosts have ended: let the roles that serve them be stopped."""


class Stop(_Message, frozen=True):
    """End the trial at once."""


class Quit(_Message, frozen=True):
    """End the trial, if there is one, and the agent."""


# -- from a stand-in ----------------------------------------------------------------------------


class Arrive(_Message, frozen=True):
    """A stand-in runs: everything before it in the trial is ready. Answered when its gate is to
    open; ``holds``: it stays then, and marks phases."""

    gate: str
    holds: bool = False


Request = (
    Renew
    | Describe
    | FindProgram
    | DescribeProgram
    | Check
    | Clock
    | Lock
    | FreePort
    | MakeFolder
    | RemoveFolder
    | Begin
    | Watch
    | Open
    | Mark
    | Finish
    | Stop
    | Quit
    | Arrive
)


# -- answers ------------------------------------------------------------------------------------


class Done(_Message, frozen=True):
    """The request was carried out."""

    value: Any = None


class Failed(_Message, frozen=True):
    """It was not: the kind of error as in :mod:`concurve.errors`, and its two parts."""

    error: str
    what: str
    remedy: str = ""


class ToStandIn(_Message, frozen=True):
    """What a stand-in is to do: open its gate at a time, write a line to its report channel, or
    exit."""

    open_at_ns: int | None = None
    line: dict[str, Any] | None = None
    exit: bool = False


Answer = Done | Failed | ToStandIn


# -- values of answers --------------------------------------------------------------------------


class Description(msgspec.Struct, frozen=True):
    """A host, as the laboratory must know it: the versions there, the CPUs that the kernel grants,
    what :mod:`concurve.host.machine` and the runner say of it, the nice value of what starts
    trials, its public addresses, as far as the kernel tells them, digests of our files there
    (:mod:`concurve.host.own_files`), and who measures there by now."""

    version: str
    python: str
    runner: str
    cpus: tuple[int, ...]
    machine: dict[str, Any]
    probes: dict[str, Any]
    nice: int
    public: tuple[str, ...] = ()
    files: dict[str, str] = {}
    busy: str = ""


class Event(msgspec.Struct, frozen=True, omit_defaults=True):
    """What happened in a trial: a gate was reached; a role marked a phase; or the runner ended,
    with a record or with an error, and with the CPU time that the daemons there used meanwhile."""

    reached: str | None = None
    role: str | None = None
    line: dict[str, Any] | None = None
    record: bytes | None = None
    error: str | None = None
    engine_cpu_ns: int | None = None


_ENCODER = msgspec.msgpack.Encoder()
_REQUESTS: msgspec.msgpack.Decoder[Request] = msgspec.msgpack.Decoder(Request)
_ANSWERS: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)


def packed(message: Request | Answer) -> bytes:
    """A message as it is sent."""
    body = _ENCODER.encode(message)
    return _LENGTH.pack(len(body)) + body


def request_of(body: bytes) -> Request:
    """The request of a message without its length.

    Raises:
        ValueError: it is none.
    """
    return _decoded(_REQUESTS, body)


def answer_of(body: bytes) -> Answer:
    """The answer of a message without its length.

    Raises:
        ValueError: it is none.
    """
    return _decoded(_ANSWERS, body)


def _decoded(decoder: msgspec.msgpack.Decoder[T], body: bytes) -> T:
    try:
        return decoder.decode(body)
    except msgspec.MsgspecError as error:
        raise ValueError(f"no message of this version: {error}") from error


class Buffer:
    """Bytes of a stream as they come, cut into messages."""

    def __init__(self) -> None:
        self._data = bytearray()

    def push(self, data: bytes) -> list[bytes]:
        """Add bytes; the messages that are complete now, without their lengths.

        Raises:
            ValueError: a message is longer than any that is sent.
        """
        self._data += data
        found = []
        while len(self._data) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._data)
            if length > BYTES_MAX:
                raise ValueError(f"a message of {length} bytes")
            end = _LENGTH.size + length
            if len(self._data) < end:
                break
            found.append(bytes(self._data[_LENGTH.size : end]))
            del self._data[:end]
        return found


def receive(stream: socket.socket) -> bytes:
    """The next message of a stream that blocks, without its length.

    Raises:
        EOFError: the stream has ended.
        OSError: it cannot be read, or nothing came within its time-out.
        ValueError: a message is longer than any that is sent.
    """
    (length,) = _LENGTH.unpack(_exactly(stream, _LENGTH.size))
    if length > BYTES_MAX:
        raise ValueError(f"a message of {length} bytes")
    return _exactly(stream, length)


def _exactly(stream: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        chunk = stream.recv(min(count - len(data), 1 << 20))
        if not chunk:
            raise EOFError("the stream has ended")
        data += chunk
    return bytes(data)
