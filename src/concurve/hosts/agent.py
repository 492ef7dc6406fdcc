"""The agent of a host: ``python -m concurve.hosts.agent SOCKET LEASE_SECONDS FIRST_SECONDS``.

It starts the runner of each trial, and is what of the laboratory runs on the host: one process,
which waits in one place, and does in a thread what may take long. It belongs to no process group
and to no parent of whoever started it, so that it outlives them; it lives by a lease that the
laboratory renews. Without a renewal it ends what it runs and itself. If it is killed, the kernel
tells the runner, which then ends its trial. Of what a runner leaves that is killed, the agent
becomes the parent, and ends it; if the agent is killed as well, its keeper does
(:mod:`concurve.hosts.keeper`).

It prints ``ready`` once it listens on its socket, which only its own user may open, in a folder
that is removed at its end. Exit codes: 0 told to quit, 1 it could not listen, 2 wrong usage, 3 its
lease has ended.
"""

from __future__ import annotations

import contextlib
import os
import queue
import selectors
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from concurve.errors import ConcurveError, HostError
from concurve.host.orphans import become_subreaper, end_children
from concurve.host.own_cpus import take_all_cpus
from concurve.host.temporary import taken_folder
from concurve.hosts import messages as m
from concurve.hosts.commands import MARK_VARIABLE
from concurve.hosts.connection import ANSWER_SECONDS
from concurve.hosts.daemons import CpuOfDaemons
from concurve.hosts.duties import Duties
from concurve.hosts.keeper import kept
from concurve.hosts.lease import END_SECONDS, Lease
from concurve.hosts.messages import Answer, Buffer, Event, Request, packed, request_of
from concurve.hosts.running import RunningTrial, runner_command

_USAGE = "usage: python -m concurve.hosts.agent SOCKET LEASE_SECONDS FIRST_SECONDS"

_CHUNK = 1 << 18

#: What is done at once. Anything else may take long, and is done beside: the laboratory sees by the
#: answers to its question for news that the host is there.
_AT_ONCE = (m.Renew, m.Clock, m.Begin, m.Open, m.Mark, m.Finish, m.Stop, m.Quit)

#: Seconds between two looks at a lease that has ended while something is done.
_DUTY_SECONDS = 0.1

#: So long a request for news may wait.
_WATCH_SECONDS_MAX = 60.0

#: Pause where no connection can be accepted, because no descriptor is left.
_ACCEPT_SECONDS = 0.01


class _Client:
    """A connection to the agent, of the laboratory or of a stand-in."""

    def __init__(self, stream: socket.socket) -> None:
        self.stream = stream
        self.buffer = Buffer()
        self.gate: str | None = None
        self.holds = False
        self.out = bytearray()
        self.watches_until: float | None = None


class Agent:
    """Serves requests and watches the runner, in one loop; what may take long has a thread.
    ``end_strays`` ends what a runner has left, if this process is its subreaper."""

    def __init__(
        self,
        listener: socket.socket,
        path: Path,
        lease: Lease,
        mark: str = "",
        end_strays: Callable[[], None] = lambda: None,
    ) -> None:
        self._listener = listener
        self._path = path
        self._lease = lease
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ, None)
        self._clients: list[_Client] = []
        self._duties = Duties()
        self._wakes, self._waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self._selector.register(self._wakes, selectors.EVENT_READ, None)
        self._finished: queue.Queue[tuple[_Client, Answer]] = queue.Queue()
        self._at_work = 0
        self._at_work_until = 0.0
        self._is_watched = False
        self._trial: RunningTrial | None = None
        self._events: list[Event] = []
        #: Of what connects the hosts, this agent included, if that has a mark.
        self._daemons = CpuOfDaemons(mark) if mark else None
        self._end_strays = end_strays
        self._quits = False
        self._marks: list[m.ToStandIn] = []
        self._is_finished = False

    def serve(self) -> int:
        """Serve until told to quit, or until the lease ends; the exit code. However it ends, its
        trial ends with it."""
        try:
            while not self._quits:
                self._turn()
                if self._lease.has_ended(time.monotonic()) and not self._is_at_work():
                    return 3
            return 0
        finally:
            self._end_trial()

    def close(self) -> None:
        """Give everything back."""
        self._duties.close()
        self._listener.close()

    def _turn(self) -> None:
        """Wait for something to happen, and do what it asks for."""
        now = time.monotonic()
        waits = [max(self._lease.left(now), _DUTY_SECONDS if self._is_at_work() else 0.0)]
        waits += [max(0.0, c.watches_until - now) for c in self._clients if c.watches_until]
        for key, mask in self._selector.select(min(waits)):
            if key.fileobj is self._listener:
                self._accept()
            elif key.fd == self._wakes:
                self._answer_what_is_done()
            elif isinstance(key.data, _Client):
                self._of_client(key.data, mask)
            elif self._trial is not None:
                self._of_runner(key)
        self._answer_watches()

    def _accept(self) -> None:
        try:
            stream, _ = self._listener.accept()
        except OSError:  # the client has gone, or no descriptor is left
            time.sleep(_ACCEPT_SECONDS)
            return
        stream.setblocking(False)
        client = _Client(stream)
        self._clients.append(client)
        self._selector.register(stream, selectors.EVENT_READ, client)

    def _of_client(self, client: _Client, mask: int) -> None:
        try:
            if mask & selectors.EVENT_WRITE:
                self._flush(client)
            if mask & selectors.EVENT_READ:
                data = client.stream.recv(_CHUNK)
                if not data:
                    self._drop(client)
                    return
                for body in client.buffer.push(data):
                    self._request(client, request_of(body))
        except BlockingIOError:
            return
        except (OSError, ValueError):
            self._drop(client)

    def _drop(self, client: _Client) -> None:
        if client in self._clients:
            self._clients.remove(client)
            self._selector.unregister(client.stream)
            client.stream.close()

    def _request(self, client: _Client, request: Request) -> None:
        if isinstance(request, m.Arrive):
            self._arrived(client, request)
            return
        self._lease.renew(time.monotonic())
        if isinstance(request, m.Watch):
            self._is_watched = True
            seconds = min(max(0.0, request.seconds), _WATCH_SECONDS_MAX)
            client.watches_until = time.monotonic() + seconds
            return
        if isinstance(request, _AT_ONCE):
            self._send(client, self._answer_to(request))
            return
        self._at_work += 1
        self._at_work_until = time.monotonic() + ANSWER_SECONDS
        threading.Thread(target=self._work, args=(client, request), daemon=True).start()

    def _work(self, client: _Client, request: Request) -> None:
        """Do what may take long, in a thread of its own."""
        self._finished.put((client, self._answer_to(request)))
        with contextlib.suppress(OSError):  # the agent has ended
            os.write(self._waker, b"x")

    def _answer_what_is_done(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._wakes, _CHUNK)
        while True:
            try:
                client, answer = self._finished.get_nowait()
            except queue.Empty:
                return
            self._at_work -= 1
            self._lease.renew(time.monotonic())
            self._send(client, answer)

    def _is_at_work(self) -> bool:
        """Is something done for a laboratory that does not ask for news yet? The lease lasts as
        long: who only waits for an answer cannot renew meanwhile."""
        is_waited_for = self._at_work > 0 and time.monotonic() < self._at_work_until
        return is_waited_for and not self._is_watched

    def _answer_to(self, request: Request) -> Answer:
        try:
            return m.Done(self._done(request))
        except ConcurveError as error:
            return m.Failed(type(error).__name__, error.what, error.remedy)
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            return m.Failed("HostError", f"{where}{error.strerror or error}")
        except Exception as error:  # told to the laboratory: nobody reads what an agent prints
            return m.Failed("RunError", f"{type(error).__name__}: {error}")

    def _done(self, request: Request) -> object:
        """Carry a request out; the value of its answer."""
        match request:
            case m.Clock():
                return time.monotonic_ns()
            case m.Begin(spec, trial):
                self._begin(spec, trial)
            case m.Open(gate, at_ns):
                self._tell(m.ToStandIn(open_at_ns=at_ns), lambda client: client.gate == gate)
            case m.Mark(line):
                self._tell_who_holds(m.ToStandIn(line=line))
            case m.Finish():
                self._is_finished = True
                self._tell(m.ToStandIn(exit=True), lambda client: client.gate is not None)
            case m.Stop():
                if self._trial is not None:
                    self._trial.stop()
            case m.Quit():
                self._quits = True
            case _:
                return self._duties.do(request)
        return None

    def _begin(self, spec: bytes, trial: str) -> None:
        if self._trial is not None:
            raise HostError("a trial runs on this host", "wait until it has ended")
        self._events.clear()
        self._marks.clear()
        self._is_finished = False
        if self._daemons is not None:
            self._daemons.begin()
        self._trial = RunningTrial(spec, trial, self._path)
        for stream in self._trial.streams():
            self._selector.register(stream, selectors.EVENT_READ, stream)
        if not self._trial.feed():
            self._selector.register(self._trial.input, selectors.EVENT_WRITE, self._trial.input)

    def _of_runner(self, key: selectors.SelectorKey) -> None:
        """Read what the runner wrote; when it has written all, its trial is over."""
        trial = self._trial
        assert trial is not None
        if key.data is trial.input:
            if trial.feed():
                self._selector.unregister(key.fileobj)
            return
        if trial.read(key.data):
            self._selector.unregister(key.fileobj)
        self._events += trial.new_lines()
        if trial.is_over():
            for stream in (*trial.streams(), trial.input):
                with contextlib.suppress(KeyError, ValueError):  # not registered, closed
                    self._selector.unregister(stream)
            self._trial = None
            ended = trial.end()
            self._end_strays()
            used_ns = None if self._daemons is None else self._daemons.used_ns()
            self._happened(msgspec.structs.replace(ended, engine_cpu_ns=used_ns))

    def _arrived(self, client: _Client, request: m.Arrive) -> None:
        """A stand-in is there: it is told what it has missed, on a busy host."""
        client.gate, client.holds = request.gate, request.holds
        self._happened(Event(reached=request.gate))
        if client.holds:
            for line in self._marks:
                self._send(client, line)
        if self._is_finished:
            self._send(client, m.ToStandIn(exit=True))

    def _tell_who_holds(self, line: m.ToStandIn) -> None:
        self._marks.append(line)
        self._tell(line, lambda client: client.holds)

    def _tell(self, what: m.ToStandIn, is_meant: Callable[[_Client], bool]) -> None:
        """Tell the stand-ins that are meant."""
        for client in list(self._clients):
            if is_meant(client):
                self._send(client, what)

    def _happened(self, event: Event) -> None:
        self._events.append(event)

    def _answer_watches(self) -> None:
        now = time.monotonic()
        for client in list(self._clients):
            until = client.watches_until
            if until is not None and (self._events or now >= until):
                client.watches_until = None
                events, self._events = self._events, []
                self._send(client, m.Done(events))

    def _send(self, client: _Client, answer: Answer) -> None:
        client.out += packed(answer)
        self._flush(client)

    def _flush(self, client: _Client) -> None:
        """Send what the connection takes; the rest when it takes more."""
        if client not in self._clients:
            return
        try:
            while client.out:
                del client.out[: client.stream.send(client.out)]
        except BlockingIOError:
            pass
        except OSError:
            self._drop(client)
            return
        mask = selectors.EVENT_READ | (selectors.EVENT_WRITE if client.out else 0)
        self._selector.modify(client.stream, mask, client)

    def _end_trial(self) -> None:
        """End the trial that runs, whatever its processes do."""
        if self._trial is not None:
            self._trial.end_at_once(END_SECONDS)
            self._end_strays()


def main(argv: Sequence[str] | None = None) -> int:
    """Listen, leave whoever started this, and serve."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        path, seconds, first = Path(words[0]), float(words[1]), float(words[2])
    except (IndexError, ValueError):
        print(_USAGE, file=sys.stderr)
        return 2
    with contextlib.ExitStack() as stack:
        try:
            runner_command()  # it is missing for the first trial as well
            stack.enter_context(taken_folder(path.parent))
            listener = _listen(path)
        except (OSError, ConcurveError) as error:
            print(f"the agent of this host cannot listen on {path}: {error}", file=sys.stderr)
            return 1
        _detach()
        # Ours, but not of the programs that are measured.
        lease = Lease(seconds, time.monotonic(), first)
        agent = Agent(listener, path, lease, os.environ.pop(MARK_VARIABLE, ""), end_children)
        stack.callback(agent.close)
        return agent.serve()


def _listen(path: Path) -> socket.socket:
    """A socket that only this user may open, from the beginning."""
    listener = socket.socket(socket.AF_UNIX)
    usual = os.umask(0o177)
    try:
        listener.bind(str(path))
    finally:
        os.umask(usual)
    listener.listen(64)
    return listener


def _detach() -> None:
    """Go on in a process that has no terminal and no parent here but its keeper; the one that was
    started ends, and gives nothing back: what kills its descendants does not find ours."""
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    if os.fork():
        os._exit(0)
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    if not kept():
        os._exit(1)
    os.setsid()  # who signals the group of one does not signal the other
    become_subreaper()
    signal.signal(signal.SIGTERM, _quit)
    take_all_cpus()


def _quit(*_: object) -> None:
    raise SystemExit(0)


if __name__ == "__main__":
    sys.exit(main())
