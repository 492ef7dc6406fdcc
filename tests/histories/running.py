"""A server that is started again and again, and what befalls it while clients work."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.helpers.real import wait_until
from tests.helpers.resp import DEADLINE_S, Client, ReplyError, Server
from tests.histories.history import History, Operation, Way, now_ns

#: Engines that die five times in a row, each within a second, are given up.
ENGINE_KILLS_MAX = 3


class Running:
    """A server, its folder, and the history of its clients.

    ``variants`` are options that its starts take in turn. ``volatile`` are the registers that a
    server forgets when it ends.
    """

    def __init__(
        self,
        history: History,
        options: Sequence[str],
        variants: Sequence[Sequence[str]],
        volatile: Sequence[str] = (),
    ) -> None:
        self.history, self.options, self.variants = history, options, variants
        self.volatile = volatile
        #: When each incarnation had ended.
        self.ends_ns: dict[int, int] = {}
        self.incarnation = 0
        self._place = threading.Condition()
        self._port: int | None = None
        self._engine_kills = 0

    def start(self) -> None:
        """Start it with the next variant; it has forgotten what is volatile."""
        variant = self.variants[self.incarnation % len(self.variants)]
        self.server = Server(*self.options, *variant)
        self.server.wait_until_ready()
        self._engine_kills = 0
        if self.incarnation:
            self.forget(self.ends_ns[self.incarnation] + 1, "a new server")
        self._open()

    def _open(self) -> None:
        with self._place:
            self.incarnation += 1
            self._port = self.server.port
            self._place.notify_all()

    def end(self, by: signal.Signals) -> str:
        """End it, for whatever reason; what it wrote to standard error."""
        with self._place:
            self._port = None
        # Returns when the last of its processes has closed its standard error.
        stderr = self.server.end(by)
        self.ends_ns[self.incarnation] = now_ns()
        return stderr

    def connect(self, after: int = 0, stopped: threading.Event | None = None) -> tuple[Client, int]:
        """A connection to the server as soon as there is one, and its incarnation, above ``after``.

        Raises:
            OSError: it has ended since, or ``stopped`` says that nobody waits any more.
        """
        deadline = time.monotonic() + DEADLINE_S
        with self._place:
            while self._port is None or self.incarnation <= after:
                self._place.wait(0.1)
                if stopped is not None and stopped.is_set():
                    raise ConnectionAbortedError("stopped while no server was there")
                assert time.monotonic() < deadline, "no server was started"
            port, incarnation = self._port, self.incarnation
        return Client(port), incarnation

    def forget(self, since_ns: int, why: str) -> None:
        """What is volatile was lost at one moment between this time and now."""
        until_ns, client = now_ns(), self.history.client()
        for register in self.volatile:
            way = Way(sets={register: None})
            self.history.add(Operation(client, since_ns, until_ns, f"{why}: {register}", (way,)))

    def figures(self) -> dict[str, str]:
        """The fields of INFO."""
        client, _ = self.connect()
        with contextlib.closing(client):
            lines = client("INFO").splitlines()
        return dict(line.split(":", maxsplit=1) for line in lines if ":" in line)

    # -- faults -----------------------------------------------------------------------------------

    def kill(self) -> None:
        """SIGKILL of the server, and another one on its files."""
        self.end(signal.SIGKILL)
        self.start()

    def restart(self) -> None:
        """An end in order, and another server on its files."""
        stderr = self.end(signal.SIGTERM)
        assert self.server.process.returncode == 0, stderr
        self.start()

    def lose(self, process: int) -> None:
        """SIGKILL of an engine, which is replaced, or of the keeper of the engines: then, and if an
        engine has died with a latch, all are replaced."""
        before, since_ns = self._settled(None), now_ns()
        self._engine_kills += 1
        os.kill(process, signal.SIGKILL)
        after = self._settled(before)
        wait_until(lambda: len(self.server.engines()) == 2, "all engines", of=self.server)
        if after[0] != before[0]:
            self.forget(since_ns, "new engines")

    def _settled(self, before: tuple[int, int] | None) -> tuple[int, int]:
        """The generation of the engines, and how many were replaced in it, as soon as they say
        another one than ``before``."""
        found = before

        def is_another() -> bool:
            nonlocal found
            with contextlib.suppress(OSError):
                figures = self.figures()
                found = int(figures["generation"]), int(figures["engine_deaths"])
            return found != before

        wait_until(is_another, "new engines", of=self.server)
        assert found is not None
        return found

    def faults(self, draw: random.Random) -> dict[str, Callable[[], None]]:
        """What can befall the server as it was started last, by name."""
        possible: dict[str, Callable[[], None]] = {
            "kill": self.kill,
            "restart": self.restart,
            "pause": lambda: pause(self.server.processes(), draw),
        }
        if engines := self.server.engines():
            possible["pause of an engine"] = lambda: pause([draw.choice(engines)], draw)
            if self._engine_kills < ENGINE_KILLS_MAX:
                keeper = self.server.processes()[1]
                possible["kill of an engine"] = lambda: self.lose(draw.choice(engines))
                possible["kill of the keeper"] = lambda: self.lose(keeper)
        return possible


def pause(processes: Sequence[int], draw: random.Random) -> None:
    """SIGSTOP, and SIGCONT after a time for which some clients wait and others do not."""
    with contextlib.ExitStack() as continued:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGSTOP)
                continued.callback(let_continue, process)
        time.sleep(draw.uniform(0.05, 0.9))


def let_continue(process: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGCONT)


def fill(folder: Path) -> Path:
    """Fill the file system of a folder; the file that does so."""
    ballast = folder / "ballast"
    with contextlib.suppress(OSError), ballast.open("ab", buffering=0) as file:
        while True:
            file.write(bytes(4096))
    return ballast


class Worker(threading.Thread):
    """A client that asks at random until it is stopped, and reconnects when it is disconnected.

    It waits ``patience_s`` for a reply. Its questions depend on ``seed`` and on the replies alone.
    """

    #: What a reply says when the engine has stopped, so that only another server will help.
    STOPPED = ("DISKFULL", "IOERROR")

    def __init__(self, number: int, running: Running, seed: str, patience_s: float) -> None:
        super().__init__(name=f"{type(self).__name__}-{number}")
        self.number, self.running, self.history = number, running, running.history
        self.draw = random.Random(f"{seed}-{number}")
        self.patience_s = patience_s
        self.stopped = threading.Event()
        #: What must not be.
        self.wrong: list[str] = []
        self._values = 0
        self._seen = 0

    @classmethod
    def create(cls, client: Client) -> None:
        """Make what the clients need of a new server."""

    @classmethod
    def observe(cls, client: Client, history: History) -> None:
        """Note all registers while no client is at work."""
        raise NotImplementedError

    def greet(self) -> None:
        """Prepare a new connection."""

    def step(self) -> None:
        """Ask for something."""
        raise NotImplementedError

    def run(self) -> None:
        try:
            while not self.stopped.is_set():
                with contextlib.suppress(OSError):
                    self._stay()
                self.stopped.wait(0.001)
        except Exception as error:
            self.wrong.append(f"{self.name}: {error!r}")

    def _stay(self) -> None:
        connection, self.incarnation = self.running.connect(self._seen, self.stopped)
        self.client = self.history.client()
        with contextlib.closing(connection) as self.connection:
            self.connection.socket.settimeout(self.patience_s)
            self.greet()
            while not self.stopped.is_set():
                self.step()

    def value(self) -> str:
        """A value that nobody else writes."""
        self._values += 1
        return f"{self.number:04}{self._values:08}"

    def ask(self, *words: str | int) -> object:
        """Send a request and read its reply; a :class:`ReplyError` is returned as one.

        Raises:
            OSError: no reply came, or none that says anything.
        """
        try:
            return self.connection(*words)
        except ReplyError as error:
            if error.code not in self.STOPPED:
                return error
            # This server will do nothing more.
            self._seen = self.incarnation
            raise ConnectionAbortedError(str(error)) from None

    def do(
        self,
        words: Sequence[str | int],
        ways: Callable[[object], Sequence[Way]],
        unanswered: Sequence[Way] = (),
    ) -> object:
        """Ask for one operation and note it; its reply.

        ``ways`` says how it has gone by its reply, ``unanswered`` what it may have done if there is
        no reply (nothing: it only reads).
        """
        what, call_ns = " ".join(map(str, words)), now_ns()
        try:
            reply = self.ask(*words)
        except OSError:
            self.unanswered(call_ns, what, unanswered)
            raise
        self.answered(call_ns, f"{what} -> {reply}", ways(reply))
        return reply

    def answered(self, call_ns: int, what: str, ways: Sequence[Way]) -> None:
        self.history.add(Operation(self.client, call_ns, now_ns(), what, tuple(ways)))

    def unanswered(self, call_ns: int, what: str, ways: Sequence[Way]) -> None:
        if ways:
            self.history.add_unanswered(self.client, call_ns, self.incarnation, what, ways)


def unexpected(reply: object) -> AssertionError:
    return AssertionError(f"the reply {reply!r} is none of the documented ones")


def code(reply: object) -> str | None:
    """The first word of an error reply."""
    return reply.code if isinstance(reply, ReplyError) else None


def work_under_faults(
    running: Running, workers: Sequence[Worker], seed: str, faults: int, between: int
) -> list[str]:
    """Let clients work while ``faults`` things befall the server, with some ``between`` answered
    operations before each; their names.

    Raises:
        AssertionError: a client saw what no order of operations explains, such as an undocumented
            reply.
    """
    draw = random.Random(f"faults of {seed}")
    done: list[str] = []
    for worker in workers:
        worker.start()
    try:
        for _ in range(faults):
            wait_for_answers(running.history, workers, draw.randrange(1, 2 * between))
            possible = running.faults(draw)
            done.append(draw.choice(list(possible)))
            possible[done[-1]]()
        wait_for_answers(running.history, workers, between)
    finally:
        stop(workers)
    return done


def wait_for_answers(history: History, workers: Sequence[Worker], more: int) -> None:
    aim = history.answered + more
    wait_until(lambda: history.answered >= aim or any(it.wrong for it in workers), "more answers")
    assert_none_wrong(workers)


def stop(workers: Sequence[Worker]) -> None:
    for worker in workers:
        worker.stopped.set()
    for worker in workers:
        worker.join(2 * DEADLINE_S)
        assert not worker.is_alive(), f"{worker.name} waits for ever"
    assert_none_wrong(workers)


def assert_none_wrong(workers: Sequence[Worker]) -> None:
    wrong = [text for worker in workers for text in worker.wrong]
    assert not wrong, wrong
