"""``concurve`` as a process of its own that need not start Python: it is forked from one that has
imported the whole laboratory. To start and import takes most of the CPU time of a short command.

This file is both sides: the tests call :func:`run`; as a program it is the server.
"""

from __future__ import annotations

import array
import atexit
import gc
import importlib
import json
import os
import pkgutil
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

#: Third-party modules that verbs import late.
LATE = ("altair", "jinja2", "numpy", "pandas", "psycopg", "rich.progress", "rich.table", "ruptures",
        "scipy.optimize", "scipy.special", "scipy.stats")  # fmt: skip

#: Descriptors of a request: standard input, output and error, and where its end is told.
STREAMS = 4


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


def run(
    program: str,
    arguments: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: Path,
    timeout: float,
) -> subprocess.CompletedProcess[str]:
    """Run ``concurve`` to its end, with nothing on its standard input.

    Raises:
        subprocess.TimeoutExpired: it has not ended, or what it started holds its output open.
            It is killed.
    """
    command = [program, *arguments]
    request = {"argv": command, "env": dict(env), "cwd": str(cwd)}
    outputs = [os.pipe() for _ in range(3)]
    with Path(os.devnull).open("rb") as nothing:
        _server.begin(request, [nothing.fileno(), *(theirs for _, theirs in outputs)])
    for _, theirs in outputs:
        os.close(theirs)
    texts: dict[int, bytearray] = {ours: bytearray() for ours, _ in outputs}
    stdout, stderr, told = texts.values()
    deadline = time.monotonic() + timeout
    with selectors.DefaultSelector() as selector:
        for ours in texts:
            selector.register(ours, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                if told:
                    os.kill(json.loads(told.splitlines()[0]), signal.SIGKILL)
                raise subprocess.TimeoutExpired(command, timeout, bytes(stdout), bytes(stderr))
            for key, _ in ready:
                part = os.read(key.fd, 1 << 16)
                texts[key.fd] += part
                if not part:
                    selector.unregister(key.fd)
                    os.close(key.fd)
    assert told.count(b"\n") == 2, "the server of the commands has ended; its error output says why"
    _, code = map(json.loads, told.splitlines())
    return subprocess.CompletedProcess(arguments, code, stdout.decode(), stderr.decode())


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
    os.chdir(str(request["cwd"]))
    environment, argv = request["env"], request["argv"]
    assert isinstance(environment, dict) and isinstance(argv, list)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = argv
    sys.path[0] = str(Path(argv[0]).parent)


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
    gc.collect()
    gc.freeze()  # children leave it where it is, and share its memory
    serve(socket.socket(fileno=int(sys.argv[1])))
    from concurve.cli import main

    main()
