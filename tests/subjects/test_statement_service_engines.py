"""Engine processes of the statement service, killed under load: no commit is lost."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest

from tests.helpers.engine_kills import PROCESSES, Teller, done, kill_engines_under
from tests.helpers.resp import DEADLINE_S, Client, Server, missing, serving

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

TELLERS, ACCOUNTS = 6, 12
#: Above the number of transactions of any teller; the keys of a teller's begin at its own number.
MANY = 100_000_000


def options(folder: Path, durability: str) -> tuple[str, ...]:
    """A small procedure cache, so that plans are dropped in both of its parts while engines die."""
    service = ("--service", "statements", "--folder", str(folder), "--durability", durability)
    caches = ("--statement-cache", "striped", "--procedure-cache", "64")
    return (*service, *PROCESSES, "--latching", "record", *caches)


def make(server: Server) -> None:
    with contextlib.closing(Client(server.port)) as client:
        client("CREATE", "accounts", "id", "balance")
        client("FILL", "accounts", 1, ACCOUNTS, 0)
        client("CREATE", "history", "id", "amount")


class StatementTeller(Teller):
    """Writes a history record with the number of each transaction."""

    def found(self, client: Client) -> int:
        first = self.number * MANY
        client("PREPARE", "add", "ADD accounts balance ? KEY ?")
        return int(client("RUN", "COUNT history FROM ? TO ?", first, first + MANY - 1))

    def move(self, client: Client, draw: random.Random) -> None:
        amount = draw.randrange(1, 1000)
        one, other = draw.sample(range(1, ACCOUNTS + 1), 2)
        client("EXECUTE", "add", -amount, one)
        # A text that is usually new.
        client("RUN", f"ADD accounts balance {amount} KEY {other}")
        number = self.number * MANY + self.acknowledged + 1
        client("RUN", "INSERT history ? ?", number, amount)


def kill_engines_under_load(
    folder: Path, durability: str, kills: int, patience_s: float, pause_s: float
) -> None:
    """No committed transaction is lost, all sums hold, and no client waits for ever."""
    with serving(*options(folder, durability)) as server:
        make(server)
        tellers = [StatementTeller(it, server.port, patience_s) for it in range(1, TELLERS + 1)]
        kill_engines_under(tellers, server, kills, pause_s)
    assert server.process.returncode == 0
    # Also on the disk, for a server with threads.
    threads = ("--service", "statements", "--folder", str(folder))
    with serving(*threads) as server, contextlib.closing(Client(server.port)) as client:
        assert client("RUN", f"SUM accounts balance FROM 1 TO {ACCOUNTS}") == 0
        assert client("RUN", f"COUNT history FROM 0 TO {MANY * (TELLERS + 1)}") == done(tellers)


@pytest.mark.parametrize("durability", ["none", "group"])
def test_kills_of_engines_under_load(tmp_path: Path, durability: str) -> None:
    kill_engines_under_load(tmp_path, durability, kills=2, patience_s=DEADLINE_S, pause_s=0.0)


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("durability", ["group", "each"])
def test_twenty_kills_of_engines_under_load(tmp_path: Path, durability: str) -> None:
    # Engines that keep dying within a second of their start are not restarted.
    kill_engines_under_load(tmp_path, durability, kills=20, patience_s=5.0, pause_s=1.1)
