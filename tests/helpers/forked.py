"""``concurve`` as a process of its own that need not start Python: it is forked from one that has
imported the whole laboratory. To start and import takes most of the CPU time of a short command.

This file is both sides: the tests call :func:`start`; as a program it is the server. Without an
argument it imports the laboratory and ends: Python keeps what it has compiled for that.
"""

from __future__ import annotations

import array
import atexit
import gc
import importlib
import json
import os
import pkgutil
import select
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

#: Third-party modules that verbs import late.
LATE = ("altair", "jinja2", "numpy", "pandas", "psycopg", "rich.progress", "rich.table", "ruptures",
        "scipy.optimize", "scipy.special", "scipy.stats")  # fmt: skip

#: Signals that a command gets once it can be ended by them, and not while it is forked.
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

#: Descriptors of a request: standard input, output and error, and where its end is told.
STREAMS = 4

#: An environment in which no effort has a disturbed trial redone, which no option of a command
#: says. Beside other tests most trials are disturbed, and a run takes twice as long.
NO_REDO = {"CONCURVE_TEST_NO_REDO": "1"}

SERVER_ENDED = "the server of the commands has ended; its error output says why"


# -- the tests' side ------------------------------------------------------------------------------


class _Server:
    """The server of this process of the tests."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None

    def begin(self, request: Mapping[str, object], descriptors: Sequence[int]) -> None:
        """Have a command started."""
        text = json.dumps(request).encode()
        with self._lock:
            link = self._socket or self._start()
            socket.send_fds(link, [len(text).to_bytes(8, "big")], descriptors)
            link.sendall(text)

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                # Threads of a library would not be there in the child.
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
            )
        self._socket = ours
        atexit.register(_end, ours, process)
        return ours


def _end(link: socket.socket, server: subprocess.Popen[bytes]) -> None:
    link.close()
    server.wait()


_server = _Server()


class Process:
    """A command that was started, with what the tests need of :class:`subprocess.Popen`."""

    def __init__(
        self, command: Sequence[str], told: int, outputs: Mapping[str, int], timeout: float
    ) -> None:
        self._command = command
        self._timeout = timeout
        self._told = told
        self._outputs = outputs
        self._texts = {descriptor: bytearray() for descriptor in (told, *outputs.values())}
        self._open = set(self._texts)
        self._read(lambda: len(self._lines()) > 0, timeout)
        self.pid = int(self._lines()[0])

    @property
    def returncode(self) -> int | None:
        """The exit code, negative for a signal; ``None`` until :meth:`poll` has seen the end."""
        lines = self._lines()
        return int(lines[1]) if len(lines) == 2 else None

    def poll(self) -> int | None:
        """Look whether it has ended; its exit code."""
        self._read(lambda: self.returncode is not None, 0)
        return self.returncode

    def wait(self, seconds: float) -> int | None:
        """Wait until it has ended, for so many seconds at most; its exit code if it has."""
        self._read(lambda: self.returncode is not None, seconds)
        return self.returncode

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def communicate(self) -> tuple[str, str]:
        """Wait until it has ended and its outputs are closed; what it has written to pipes.

        Raises:
            subprocess.TimeoutExpired: it has not ended, or what it started holds its output open.
                It is killed.
        """
        is_over = self._read(lambda: not self._open, self._timeout)
        stdout, stderr = (self._written(name) for name in ("stdout", "stderr"))
        if not is_over:
            self.send_signal(signal.SIGKILL)
            raise subprocess.TimeoutExpired(self._command, self._timeout, stdout, stderr)
        assert self.returncode is not None, SERVER_ENDED
        return stdout.decode(), stderr.decode()

    def completed(self) -> subprocess.CompletedProcess[str]:
        """As :meth:`communicate`, with the exit code."""
        said = self.communicate()
        assert self.returncode is not None
        return subprocess.CompletedProcess(self._command, self.returncode, *said)

    def _lines(self) -> list[bytes]:
        return bytes(self._texts[self._told]).split(b"\n")[:-1]

    def _written(self, name: str) -> bytes:
        return bytes(self._texts[self._outputs[name]]) if name in self._outputs else b""

    def _read(self, is_enough: Callable[[], bool], timeout: float) -> bool:
        """Read what comes, until it is enough; whether it was before the time was over."""
        deadline = time.monotonic() + timeout
        while not is_enough():
            assert self._open, SERVER_ENDED
            poll = select.poll()
            for descriptor in self._open:
                poll.register(descriptor, select.POLLIN)
            ready = poll.poll(1000 * max(0.0, deadline - time.monotonic()))
            if not ready:
                return False
            for descriptor, _ in ready:
                part = os.read(descriptor, 1 << 16)
                self._texts[descriptor] += part
                if not part:
                    self._open.remove(descriptor)
                    os.close(descriptor)
        return True


def start(
    program: str,
    arguments: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    stdout: int = subprocess.PIPE,
    closed: Sequence[int] = (),
    timeout: float,
) -> Process:
    """Start ``concurve`` with nothing on its standard input.

    Args:
        stdout: A descriptor; a pipe, if nothing is given.
        closed: Numbers of the standard streams that are closed.
        timeout: Seconds for the whole command; only a hang takes as long.
    """
    command = [program, *arguments]
    request = {"argv": command, "env": dict(env), "cwd": str(cwd), "closed": list(closed)}
    told, tell = os.pipe()
    errors, to_errors = os.pipe()
    outputs, ours = {"stderr": errors}, [tell, to_errors]
    if stdout == subprocess.PIPE:
        outputs["stdout"], stdout = os.pipe()
        ours.append(stdout)
    with Path(os.devnull).open("rb") as nothing:
        _server.begin(request, [nothing.fileno(), stdout, to_errors, tell])
    for descriptor in ours:
        os.close(descriptor)
    return Process(command, told, outputs, timeout)


# -- the server's side ----------------------------------------------------------------------------


def serve(link: socket.socket) -> None:
    """Start what is asked for; returns in each child, ready to run the command, and in the server
    when the tests have ended."""
    children: dict[int, tuple[int, int]] = {}  # process and where its end is told, by descriptor
    with selectors.DefaultSelector() as selector:
        selector.register(link, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fd in children:
                    pid, tell = children.pop(key.fd)
                    selector.unregister(key.fd)
                    _, status = os.waitpid(pid, 0)
                    os.write(tell, f"{os.waitstatus_to_exitcode(status)}\n".encode())
                    os.close(tell)
                    os.close(key.fd)
                    continue
                received = receive(link)
                if received is None:
                    os._exit(0)
                request, streams = received
                pid = os.fork()
                if pid == 0:
                    link.close()
                    for descriptor, (_, tell) in children.items():
                        os.close(descriptor)
                        os.close(tell)
                    become(request, streams)
                    return
                os.write(streams[-1], f"{pid}\n".encode())
                for descriptor in streams[:-1]:
                    os.close(descriptor)
                handle = os.pidfd_open(pid)
                children[handle] = (pid, streams[-1])
                selector.register(handle, selectors.EVENT_READ)


def receive(link: socket.socket) -> tuple[dict[str, object], list[int]] | None:
    """A request with its descriptors; nothing once the tests have ended."""
    begin, ancillary, _, _ = link.recvmsg(8, socket.CMSG_SPACE(4 * STREAMS))
    if not begin:
        return None
    descriptors = array.array("i")
    for _, _, data in ancillary:
        descriptors.frombytes(data)
    while len(begin) < 8:
        begin += link.recv(8 - len(begin))
    text, length = bytearray(), int.from_bytes(begin, "big")
    while len(text) < length:
        text += link.recv(length - len(text))
    return json.loads(text), list(descriptors)


def become(request: Mapping[str, object], streams: Sequence[int]) -> None:
    """Give this child what a process gets from its caller."""
    for number, descriptor in enumerate(streams[:-1]):
        os.dup2(descriptor, number)
    for descriptor in streams:
        os.close(descriptor)
    closed = request["closed"]
    assert isinstance(closed, list)
    for number in closed:
        # As Python has it that is started so.
        os.close(number)
        name = ("stdin", "stdout", "stderr")[number]
        setattr(sys, name, None)
        setattr(sys, f"__{name}__", None)
    os.chdir(str(request["cwd"]))
    environment, argv = request["env"], request["argv"]
    assert isinstance(environment, dict) and isinstance(argv, list)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = argv
    sys.path[0] = str(Path(argv[0]).parent)


def never_redo() -> None:
    """Have the rules of all efforts without redos, in this process."""
    import msgspec

    from concurve.definition.study import DEFAULT_RULES

    for effort, rules in DEFAULT_RULES.items():
        DEFAULT_RULES[effort] = msgspec.structs.replace(rules, redo_max=0)


def end_at_once(code: object) -> None:
    """End this child as Python ends, but for taking all modules apart: nothing depends on it, and
    it would copy the memory that is shared, which takes longer than most commands."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except KeyboardInterrupt:
        code = 130
    except OSError:  # nobody reads, as Python has it
        code = 120
    if not isinstance(code, int | None):
        print(code, file=sys.stderr, flush=True)
        code = 1
    os._exit(code or 0)


def import_everything() -> None:
    """All modules of the laboratory that a verb may import."""
    import concurve

    for name in LATE:
        importlib.import_module(name)
    for module in pkgutil.walk_packages(concurve.__path__, "concurve."):
        if "attend" not in module.name:  # programs of their own
            importlib.import_module(module.name)


if __name__ == "__main__":
    sys.path.pop(0)
    sys.path.insert(0, "")
    import_everything()
    if len(sys.argv) == 1:
        sys.exit()
    gc.collect()
    gc.freeze()  # children leave it where it is, and share its memory
    signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    serve(socket.socket(fileno=int(sys.argv[1])))
    if NO_REDO.keys() <= os.environ.keys():
        never_redo()
    from concurve.cli import main

    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
        main()
        code: object = 0
    except KeyboardInterrupt:  # before it began
        code = 130
    except SystemExit as end:
        code = end.code
    end_at_once(code)
