"""A trial that runs on a host: its runner, as the agent sees it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import IO, Any

import msgspec

from concurve.engine.local import TRIAL_VARIABLE
from concurve.host import native
from concurve.host.orphans import end_marked
from concurve.host.own_python import module
from concurve.host.temporary import remove_abandoned
from concurve.hosts.messages import Event
from concurve.hosts.parts import COMMAND, STAND_IN
from concurve.secrets import environment_of_trials
from concurve.wire import decode_spec, encode_spec

_CHUNK = 1 << 18

_LINES = msgspec.json.Decoder(dict[str, Any])

#: Seconds between two looks at a runner that is being ended.
_LOOK_SECONDS = 0.01


def runner_command() -> list[str]:
    """The command of the runner.

    Raises:
        HostError: it is not installed.
    """
    return [str(native.runner())]


class RunningTrial:
    """A trial from its start; the spec is that of this host. ``path`` is the socket of the agent,
    for the stand-ins."""

    def __init__(self, spec: bytes, trial: str, path: Path) -> None:
        self._name = trial
        self._spec = memoryview(with_stand_ins(spec, path))
        self._output: dict[int, bytearray] = {}
        self._lines = bytearray()
        reads, writes = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            self._process = subprocess.Popen(
                [*runner_command(), "--events", str(writes)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                process_group=0,
                pass_fds=[writes],
                env=environment_of_trials(),
            )
        except OSError:
            os.close(reads)
            raise
        finally:
            os.close(writes)
        self._events = os.fdopen(reads, "rb", buffering=0)
        assert self._process.stdout is not None and self._process.stderr is not None
        assert self._process.stdin is not None
        self.input = self._process.stdin
        os.set_blocking(self.input.fileno(), False)
        self._open = [self._process.stdout, self._process.stderr]
        self._output = {stream.fileno(): bytearray() for stream in self._open}
        self._stdout, self._stderr = (self._output[stream.fileno()] for stream in self._open)

    def streams(self) -> list[IO[bytes]]:
        """What the runner writes to."""
        return [*self._open, self._events]

    def feed(self) -> bool:
        """Give the runner as much of its spec as it takes; whether that is all. One that has ended
        says why itself."""
        try:
            while self._spec:
                self._spec = self._spec[os.write(self.input.fileno(), self._spec[:_CHUNK]) :]
        except BlockingIOError:
            return False
        except OSError:
            pass
        with contextlib.suppress(OSError):
            self.input.close()
        return True

    def read(self, stream: IO[bytes]) -> bool:
        """Take what a stream has; ``True`` at its end."""
        try:
            data = os.read(stream.fileno(), _CHUNK)
        except BlockingIOError:
            return False
        if stream is self._events:
            self._lines += data
            return not data
        self._output[stream.fileno()] += data
        if not data:
            self._open.remove(stream)
        return not data

    def new_lines(self) -> list[Event]:
        """What roles have marked since the last call."""
        *lines, rest = bytes(self._lines).split(b"\n")
        self._lines = bytearray(rest)
        found = []
        for line in lines:
            with contextlib.suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                said = _LINES.decode(line)
                role = said.pop("role", None)
                if isinstance(role, str) and not role.startswith(STAND_IN):
                    found.append(Event(role=role, line=said))
        return found

    def is_over(self) -> bool:
        """Has the runner written all that it writes?"""
        return not self._open

    def stop(self) -> None:
        """Let the runner end its trial; it still writes a record."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()

    def end(self) -> Event:
        """The end of a trial whose runner has written all."""
        code = self._process.wait()
        self._close()
        if code == 0 and self._stdout:
            return Event(record=bytes(self._stdout))
        # Killed by the out-of-memory killer, say: it has left the trial's processes.
        self._end_processes()
        said = self._stderr.decode(errors="replace").strip() or "it said nothing"
        return Event(error=f"the trial runner failed with exit code {code}: {said}")

    def end_at_once(self, seconds: float) -> None:
        """End the trial: by its runner, which has so many seconds, then by force."""
        self.stop()
        until = time.monotonic() + seconds
        while self._process.poll() is None and time.monotonic() < until:
            for stream in (*self._open, self._events):
                os.set_blocking(stream.fileno(), False)
                with contextlib.suppress(BlockingIOError):
                    os.read(stream.fileno(), _CHUNK)
            time.sleep(_LOOK_SECONDS)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._end_processes()
        self._close()

    def _end_processes(self) -> None:
        end_marked(TRIAL_VARIABLE, self._name)
        remove_abandoned()

    def _close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._events.close()


def with_stand_ins(spec: bytes, path: Path) -> bytes:
    """The spec with the command of this host for its stand-ins."""
    decoded = decode_spec(spec)
    own = (*module("concurve.hosts.stand_in"), str(path))
    roles = tuple(
        msgspec.structs.replace(role, argv=(*own, *role.argv[1:]))
        if role.argv[:1] == (COMMAND,)
        else role
        for role in decoded.roles
    )
    return encode_spec(msgspec.structs.replace(decoded, roles=roles))
