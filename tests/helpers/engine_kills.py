"""Clients that come again when their engine is killed, and who kills engines under their load.

A client whose engine dies loses its connection, and what it had asked for last may have gone either
way. All other data must be as acknowledged.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Sequence

from tests.helpers.real import wait_until
from tests.helpers.resp import DEADLINE_S, Client, ReplyError, Server

#: Two engines that are processes.
PROCESSES = ("--engines", "processes", "--engine-count", "2")


class Returning(threading.Thread):
    """A client that works until it is stopped, and reconnects whenever it is disconnected."""

    def __init__(self, name: str, port: int, patience_s: float) -> None:
        super().__init__(name=name)
        self.port, self.patience_s = port, patience_s
        #: What must not be.
        self.wrong: list[str] = []
        self.acknowledged = self.connections = 0
        self.stopped = threading.Event()
        #: Nothing is in doubt any more: it has stopped while it was connected.
        self.is_settled = False

    def look(self, client: Client) -> None:
        """Compare the data with the acknowledged count; called after each connection."""
        raise NotImplementedError

    def step(self, client: Client, draw: random.Random) -> None:
        """Ask for something, and count it in ``acknowledged`` once it is answered."""
        raise NotImplementedError

    def run(self) -> None:
        draw = random.Random(self.name)
        self.since = time.monotonic()
        try:
            while not self.is_settled:
                with contextlib.suppress(ConnectionError):
                    self.stay(draw)
                self.check_time()
        except Exception as error:
            self.wrong.append(repr(error))

    def stay(self, draw: random.Random) -> None:
        with contextlib.closing(Client(self.port)) as client:
            client.socket.settimeout(self.patience_s)
            self.connections += 1
            self.look(client)
            while not self.stopped.is_set():
                self.step(client, draw)
                self.check_time()
                self.since = time.monotonic()
            self.is_settled = True

    def check_time(self) -> None:
        """Connecting again counts: a client that is thrown out for ever waits for ever."""
        waited_s = time.monotonic() - self.since
        assert waited_s < self.patience_s, f"nothing was done for {waited_s:.1f} s"


class Teller(Returning):
    """Moves money, and knows how many of its transactions were acknowledged."""

    def __init__(self, number: int, port: int, patience_s: float) -> None:
        super().__init__(f"teller-{number}", port, patience_s)
        self.number = number
        self.in_doubt = False

    def found(self, client: Client) -> int:
        """How many transactions of this teller are there."""
        raise NotImplementedError

    def move(self, client: Client, draw: random.Random) -> None:
        """The part of a transaction between BEGIN and END."""
        raise NotImplementedError

    def look(self, client: Client) -> None:
        """What was under way may have gone either way, and nothing else has."""
        found, acknowledged = self.found(client), self.acknowledged
        if found not in (acknowledged, acknowledged + self.in_doubt):
            self.wrong.append(
                f"found {found}, acknowledged {acknowledged}, in doubt {self.in_doubt}"
            )
        self.acknowledged, self.in_doubt = found, False

    def step(self, client: Client, draw: random.Random) -> None:
        try:
            client("BEGIN")
            self.move(client, draw)
        except ReplyError as error:
            if error.code != "DEADLOCK":
                raise
            client("ABORT")
        else:
            self.in_doubt = True
            client("END")
            self.acknowledged, self.in_doubt = self.acknowledged + 1, False


def done(clients: Sequence[Returning]) -> int:
    """The number of operations acknowledged to all clients."""
    return sum(client.acknowledged for client in clients)


def kill_engines_under(
    clients: Sequence[Returning], server: Server, kills: int, pause_s: float
) -> None:
    """Have clients work while engines are killed; none of them sees anything wrong.

    ``pause_s`` lies between two kills: engines that keep dying within a second of their start are
    given up.
    """
    draw = random.Random(kills)
    for client in clients:
        client.start()
    try:
        for _ in range(kills):
            wait_for_work(clients, server, draw.randrange(50, 400))
            time.sleep(pause_s)
            kill_one(server, draw)
        wait_for_work(clients, server, 1)
        lost = "a client that lost its connection"
        wait_until(lambda: thrown_out(clients) > 0, lost, of=server)
    finally:
        for client in clients:
            client.stopped.set()
        for client in clients:
            client.join(DEADLINE_S)
    wrong = {client.name: client.wrong for client in clients if client.wrong}
    assert not wrong, wrong


def wait_for_work(clients: Sequence[Returning], server: Server, more: int) -> None:
    """Wait until the clients have done more, or one of them has seen something wrong."""
    aim = done(clients) + more

    def is_done() -> bool:
        return done(clients) >= aim or any(client.wrong for client in clients)

    wait_until(is_done, "more work", of=server)
    assert done(clients) >= aim, [client.wrong for client in clients if client.wrong]


def kill_one(server: Server, draw: random.Random) -> None:
    """Kill a random engine while all of them are there."""
    killed = False
    while not killed:
        wait_until(lambda: len(server.engines()) == 2, "all engines", of=server)
        with contextlib.suppress(ProcessLookupError, IndexError):
            os.kill(draw.choice(server.engines()), signal.SIGKILL)
            killed = True


def thrown_out(clients: Sequence[Returning]) -> int:
    """How often clients had to reconnect."""
    return sum(client.connections for client in clients) - len(clients)
