"""Engine processes of the record service, killed under load: no committed transaction is lost."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest

from tests.helpers.engine_kills import PROCESSES, Teller, done, kill_engines_under
from tests.helpers.resp import DEADLINE_S, Client, ReplyError, Server, missing, serving

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

TELLERS, ACCOUNTS = 6, 12


def options(folder: Path, durability: str) -> tuple[str, ...]:
    service = ("--service", "records", "--folder", str(folder), "--durability", durability)
    return (*service, *PROCESSES, "--latching", "record")


def make(server: Server) -> None:
    with contextlib.closing(Client(server.port)) as client:
        client("CREATE", "accounts", 24, "KEY", "0:12:text")
        client("FILL", "accounts", 1, ACCOUNTS, "0" * 12)
        client("CREATE", "history", 24, "KEY", "0:12:text")


class RecordTeller(Teller):
    """Writes a history record with the number of each transaction."""

    def found(self, client: Client) -> int:
        try:
            last = client("GET", "ATMOST", "history", 0, self.key(99_999_999))
        except ReplyError as error:
            if error.code != "ENDOFFILE":
                raise
            return 0
        return int(last[4:12]) if int(last[:4]) == self.number else 0

    def key(self, transaction: int) -> str:
        return f"{self.number:04}{transaction:08}"

    def move(self, client: Client, draw: random.Random) -> None:
        amount = draw.randrange(1, 1000)
        one, other = draw.sample(range(1, ACCOUNTS + 1), 2)
        for account, by in ((one, -amount), (other, amount)):
            equal = ("GET", "EQUAL", "accounts", 0, f"{account:012}")
            record, balance = client(*equal, "MULTIPLE", "FIELD", 12, 12)
            client("UPDATE", "accounts", f"{record[:12]}{balance + by:012}")
        client("INSERT", "history", self.key(self.acknowledged + 1) + f"{amount:012}")


def kill_engines_under_load(
    folder: Path, durability: str, kills: int, patience_s: float, pause_s: float
) -> None:
    """No committed transaction is lost, all sums hold, and no client waits for ever."""
    with serving(*options(folder, durability)) as server:
        make(server)
        tellers = [RecordTeller(it, server.port, patience_s) for it in range(1, TELLERS + 1)]
        kill_engines_under(tellers, server, kills, pause_s)
    assert server.process.returncode == 0
    # Also on the disk, for a server with threads.
    threads = ("--service", "records", "--folder", str(folder))
    with serving(*threads) as server, contextlib.closing(Client(server.port)) as client:
        assert client("SUM", "accounts", 12, 12) == 0
        assert client("COUNT", "history") == done(tellers)


@pytest.mark.parametrize("durability", ["none", "group"])
def test_kills_of_engines_under_load(tmp_path: Path, durability: str) -> None:
    kill_engines_under_load(tmp_path, durability, kills=2, patience_s=DEADLINE_S, pause_s=0.0)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("durability", ["group", "each"])
def test_twenty_kills_of_engines_under_load(tmp_path: Path, durability: str) -> None:
    # Engines that keep dying within a second of their start are not restarted.
    kill_engines_under_load(tmp_path, durability, kills=20, patience_s=5.0, pause_s=1.1)
