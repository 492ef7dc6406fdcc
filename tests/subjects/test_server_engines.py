"""Engines of the reference server that are processes, and what their deaths mean for clients."""

from __future__ import annotations

import contextlib
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers.engine_kills import PROCESSES, Returning, kill_engines_under
from tests.helpers.real import wait_until
from tests.helpers.resp import DEADLINE_S, Client, ReplyError, Server, missing, serving

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


@contextlib.contextmanager
def clients(server: Server, count: int) -> Iterator[list[Client]]:
    """Connections that are closed at the end."""
    connected = [Client(server.port) for _ in range(count)]
    yield connected
    for client in connected:
        client.close()


def info(client: Client) -> dict[str, str]:
    lines = [line for line in client("INFO").splitlines() if ":" in line]
    return dict(line.split(":", maxsplit=1) for line in lines)


def is_generation(server: Server, number: int) -> bool:
    """Whether engines of this generation answer; earlier ones may live a little longer."""
    try:
        with clients(server, 1) as (client,):
            return info(client)["generation"] == str(number)
    except OSError:
        return False


def held_of_all(client: Client) -> set[object]:
    """The arguments that are locked."""
    return {row["argument"] for row in client.locks()}


def lives(client: Client) -> bool:
    """Whether the server still has this connection."""
    try:
        return bool(client("PING") == "PONG")
    except OSError:
        return False


def test_engines_share_clients_evenly_and_locks_wholly() -> None:
    with serving(*PROCESSES) as server, clients(server, 4) as four:
        for client in four:
            assert client("LOCK", "T", "a", "S") == 1
        assert all(len(client.locks()) == 4 for client in four)
        assert len(server.engines()) == 2
        figures = info(four[0])
        assert (figures["engines"], figures["engine_count"]) == ("processes", "2")
        assert (figures["generation"], figures["engine_deaths"]) == ("1", "0")
        assert figures["connected_clients"] == "4"
    assert server.process.returncode == 0
    indicators = server.indicators()
    given = [indicators["worker_connections", f"io-{number}"] for number in (1, 2)]
    assert given == [2, 2], "each to the engine with the fewest"
    assert server.facts()["engine_deaths"] == 0


def test_a_killed_engine_takes_its_own_sessions_and_no_others(tmp_path: Path) -> None:
    with serving(*PROCESSES, "--backup", str(tmp_path / "locks")) as server:
        with clients(server, 4) as four:
            for number, client in enumerate(four):
                client("OWNER", f"owner-{number}")
                assert client("LOCK", "T", f"dialog {number}", "E") == 1
                assert client("LOCK", "T", f"update {number}", "E", "SCOPE", 2, "BACKUP") == 1
            # It sleeps: every client has its answer.
            os.kill(server.engines()[0], signal.SIGKILL)
            living = [number for number, client in enumerate(four) if lives(client)]
            assert len(living) == 2
            watcher = four[living[0]]
            expected = {f"update {number}" for number in range(4)}
            expected |= {f"dialog {number}" for number in living}
            wait_until(lambda: held_of_all(watcher) == expected, "the end of the lost sessions")
            wait_until(lambda: info(watcher)["connected_clients"] == "2", "their clients' end")
            with clients(server, 2) as new:
                assert all(client("PING") == "PONG" for client in new)
                (lost,) = [n for n in range(4) if n not in living][:1]
                assert new[0]("LOCK", "T", f"dialog {lost}", "E") == 1
            assert info(watcher)["engine_deaths"] == "1"
        stderr = server.end()
    assert "engine" in stderr and "was ended by SIGKILL; there is a new engine" in stderr
    assert server.process.returncode == 0


def test_engines_whose_parent_is_killed_begin_anew_from_the_backup(tmp_path: Path) -> None:
    with serving(*PROCESSES, "--backup", str(tmp_path / "locks")) as server:
        with clients(server, 2) as two:
            for number, client in enumerate(two):
                client("LOCK", "T", f"dialog {number}", "E")
                client("LOCK", "T", f"update {number}", "E", "SCOPE", 2, "BACKUP")
            os.kill(server.processes()[1], signal.SIGKILL)
            wait_until(lambda: not any([lives(client) for client in two]), "the clients' end")
        wait_until(lambda: is_generation(server, 2), "new engines", of=server)
        with clients(server, 1) as (client,):
            assert held_of_all(client) == {"update 0", "update 1"}
        stderr = server.end()
    assert "all engines are ended" in stderr and "generation 2" in stderr
    assert server.process.returncode == 0


def test_a_full_memory_ends_no_engine_and_loses_no_lock(tmp_path: Path) -> None:
    small = ("--shared-memory", "16", "--backup", str(tmp_path / "locks"))
    with serving(*PROCESSES, *small) as server:
        with clients(server, 1) as (client,):
            client("LOCK", "T", "kept", "E", "SCOPE", 2, "BACKUP")
            with pytest.raises(ReplyError, match="raise --shared-memory"):
                for number in range(1_000_000):
                    client("LOCK", "T", f"{number:0250}", "S")
        assert is_generation(server, 1)
        with clients(server, 1) as (client,):
            wait_until(lambda: held_of_all(client) == {"kept"}, "the end of the other locks")
        stderr = server.end()
    assert "exhausted" not in stderr
    assert server.process.returncode == 0


# -- kills under load ---------------------------------------------------------------------------

OWNERS, KEYS = 6, 12


class Owner(Returning):
    """Locks and unlocks at random, and knows what it holds."""

    def __init__(self, number: int, port: int, ledger: dict[str, str], patience_s: float) -> None:
        super().__init__(f"owner-{number}", port, patience_s)
        self.ledger = ledger
        self.held: set[str] = set()
        self.in_doubt: str | None = None

    def look(self, client: Client) -> None:
        """What was under way may have gone either way, and nothing else has."""
        client("OWNER", self.name, "UPDATE")
        found = {str(row["argument"]) for row in client.locks("OWNER", self.name)}
        doubt = {self.in_doubt}
        if found - doubt != self.held - doubt:
            self.wrong.append(f"holds {found}, not {self.held}, in doubt {self.in_doubt}")
        for key in found & doubt:
            self.ledger[str(key)] = self.name
        self.held, self.in_doubt = found, None

    def step(self, client: Client, draw: random.Random) -> None:
        key = self.in_doubt = str(draw.randrange(KEYS))
        if key in self.held:
            self.ledger.pop(key, None)
            if client("UNLOCK", "K", key, "E") != 0:
                self.wrong.append(f"{key} is still held")
            self.held.discard(key)
        else:
            try:
                client("LOCK", "K", key, "E", "BACKUP")
            except ReplyError as error:
                if error.code != "COLLISION":
                    raise
            else:
                if key in self.ledger:
                    self.wrong.append(f"{key} granted while {self.ledger[key]} holds it")
                self.ledger[key] = self.name
                self.held.add(key)
        self.in_doubt = None
        self.acknowledged += 1


def kill_engines_under_load(folder: Path, kills: int, patience_s: float, pause_s: float) -> None:
    """No backed-up lock is lost, none is granted twice, and no client waits for ever."""
    ledger: dict[str, str] = {}
    with serving(*PROCESSES, "--backup", str(folder / "locks")) as server:
        owners = [Owner(number, server.port, ledger, patience_s) for number in range(OWNERS)]
        kill_engines_under(owners, server, kills, pause_s)
        with clients(server, 1) as (client,):
            held = {row["argument"]: row["owner"] for row in client.locks()}
            assert held == {key: owner.name for owner in owners for key in owner.held}
    assert server.process.returncode == 0


def test_kills_of_engines_under_load(tmp_path: Path) -> None:
    kill_engines_under_load(tmp_path, kills=2, patience_s=DEADLINE_S, pause_s=0.0)


@pytest.mark.soak
def test_twenty_kills_of_engines_under_load(tmp_path: Path) -> None:
    # Engines that keep dying within a second of their start would be given up.
    kill_engines_under_load(tmp_path, kills=20, patience_s=5.0, pause_s=1.1)
