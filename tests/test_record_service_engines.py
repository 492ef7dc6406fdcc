"""Engine processes of the record service that are killed under load: nothing committed is lost."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest

from tests.real import wait_until
from tests.resp import DEADLINE_S, Client, ReplyError, Server, missing, serving

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

TELLERS, ACCOUNTS = 6, 12


def options(folder: Path, durability: str) -> tuple[str, ...]:
    engines = ("--engines", "processes", "--engine-count", "2", "--latching", "record")
    return ("--service", "records", "--folder", str(folder), "--durability", durability, *engines)


def make(server: Server) -> None:
    with contextlib.closing(Client(server.port)) as client:
        client("CREATE", "accounts", 24, "KEY", "0:12:text")
        client("FILL", "accounts", 1, ACCOUNTS, "0" * 12)
        client("CREATE", "history", 24, "KEY", "0:12:text")


class Teller(threading.Thread):
    """Moves money, comes again when it is thrown out, and knows what it was told."""

    def __init__(self, number: int, port: int, patience_s: float) -> None:
        super().__init__(name=f"teller-{number}")
        self.number, self.port, self.patience_s = number, port, patience_s
        self.told = self.connections = 0
        self.in_doubt = False
        self.wrong: list[str] = []
        self.stopped = threading.Event()

    def run(self) -> None:
        draw = random.Random(self.name)
        try:
            while not self.stopped.is_set():
                with contextlib.suppress(ConnectionError):
                    self.stay(draw)
        except Exception as error:
            self.wrong.append(repr(error))

    def stay(self, draw: random.Random) -> None:
        with contextlib.closing(Client(self.port)) as client:
            client.socket.settimeout(self.patience_s)
            self.connections += 1
            self.look(client)
            while not self.stopped.is_set():
                try:
                    self.move(client, draw)
                except ReplyError as error:
                    if error.code != "DEADLOCK":
                        raise
                    client("ABORT")

    def look(self, client: Client) -> None:
        """What was under way may have gone either way, and nothing else has."""
        found = 0
        with contextlib.suppress(ReplyError):
            last = client("GET", "ATMOST", "history", 0, self.key(99_999_999))
            found = int(last[4:12]) if int(last[:4]) == self.number else 0
        if found not in (self.told, self.told + self.in_doubt):
            self.wrong.append(f"{found} are there, told {self.told}, in doubt {self.in_doubt}")
        self.told, self.in_doubt = found, False

    def key(self, transaction: int) -> str:
        return f"{self.number:04}{transaction:08}"

    def move(self, client: Client, draw: random.Random) -> None:
        amount = draw.randrange(1, 1000)
        client("BEGIN")
        one, other = draw.sample(range(1, ACCOUNTS + 1), 2)
        for account, by in ((one, -amount), (other, amount)):
            equal = ("GET", "EQUAL", "accounts", 0, f"{account:012}")
            record, balance = client(*equal, "MULTIPLE", "FIELD", 12, 12)
            client("UPDATE", "accounts", f"{record[:12]}{balance + by:012}")
        client("INSERT", "history", self.key(self.told + 1) + f"{amount:012}")
        self.in_doubt = True
        client("END")
        self.told, self.in_doubt = self.told + 1, False


def kill_engines_under_load(
    folder: Path, durability: str, kills: int, patience_s: float, pause_s: float
) -> None:
    """No committed transaction is lost, all sums hold, and nobody waits for ever."""
    draw = random.Random(durability)
    with serving(*options(folder, durability)) as server:
        make(server)
        tellers = [Teller(number, server.port, patience_s) for number in range(1, TELLERS + 1)]

        def told() -> int:
            return sum(teller.told for teller in tellers)

        for teller in tellers:
            teller.start()
        try:
            for _ in range(kills):
                done = told() + draw.randrange(50, 400)
                wait_until(lambda: told() >= done, "more work")  # noqa: B023
                time.sleep(pause_s)
                wait_until(lambda: len(server.engines()) == 2, "all engines")
                with contextlib.suppress(ProcessLookupError):
                    os.kill(draw.choice(server.engines()), signal.SIGKILL)
            done = told()
            wait_until(lambda: told() > done, "work after the last kill")
        finally:
            for teller in tellers:
                teller.stopped.set()
            for teller in tellers:
                teller.join(DEADLINE_S)
        assert [teller.wrong for teller in tellers] == [[]] * TELLERS
        assert sum(teller.connections for teller in tellers) > TELLERS, "nobody was thrown out"
    assert server.process.returncode == 0
    # And on the disk, for a server of the other kind.
    threads = ("--service", "records", "--folder", str(folder))
    with serving(*threads) as server, contextlib.closing(Client(server.port)) as client:
        assert client("SUM", "accounts", 12, 12) == 0
        assert client("COUNT", "history") == told()


@pytest.mark.parametrize("durability", ["none", "group"])
def test_kills_of_engines_under_load(tmp_path: Path, durability: str) -> None:
    kill_engines_under_load(tmp_path, durability, kills=2, patience_s=DEADLINE_S, pause_s=0.0)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("durability", ["group", "each"])
def test_twenty_kills_of_engines_under_load(tmp_path: Path, durability: str) -> None:
    # Engines that keep dying within a second of their start would be given up.
    kill_engines_under_load(tmp_path, durability, kills=20, patience_s=5.0, pause_s=1.1)
