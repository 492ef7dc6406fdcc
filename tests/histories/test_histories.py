"""Services that are killed, paused and restarted: some order explains what their clients saw.

``CONCURVE_HISTORY_SEEDS`` sets how many seeds ``make soak`` tries for each (default: 10);
``CONCURVE_HISTORY_SEED=7`` tries that one alone. A seed decides what each client asks and what
happens to the server; the machine decides how they interleave. A failed test keeps its history.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.helpers import resp
from tests.helpers.engine_kills import PROCESSES
from tests.helpers.needs import small_file_system
from tests.helpers.resp import DEADLINE_S, Client, ReplyError
from tests.histories import history as histories
from tests.histories.history import History
from tests.histories.running import (
    Running,
    Worker,
    fill,
    stop,
    wait_for_answers,
    work_under_faults,
)
from tests.histories.services import (
    Keys,
    Locks,
    Records,
    RecordTransactions,
    StatementTransactions,
    connected,
)

REASON = resp.missing() or histories.missing()
pytestmark = pytest.mark.skipif(REASON is not None, reason=str(REASON))

#: One after the other, so that each recovers what another setting left.
THREADS = (
    ("--execution", "worker"),
    ("--execution", "inline", "--io-threads", "2", "--latching", "record"),
    ("--engine-count", "2", "--io-threads", "2", "--latching", "record"),
    ("--engine-count", "2", "--replies", "engine", "--latching", "global"),
)
PROCESS_VARIANTS = ((*PROCESSES, "--latching", "record"), PROCESSES)
VARIANTS = tuple(
    variant for pair in zip(THREADS, PROCESS_VARIANTS * 2, strict=True) for variant in pair
)

#: One client waits for ever, as it were, and one does not; some operations are given up in a pause.
PATIENCES_S = (0.4, DEADLINE_S)


@dataclass(frozen=True)
class Scenario:
    """A service with its clients. ``volatile`` is lost with each server, by design."""

    worker: type[Worker]
    service: str
    durabilities: tuple[str, ...]
    volatile: tuple[str, ...] = ()

    def options(self, folder: Path, durability: str) -> Sequence[str]:
        files: tuple[str, ...] = ("--backup", str(folder / "locks"))
        if self.service != "locks":
            files = ("--folder", str(folder / "data"), "--checkpoint-mib", "1")
        return ("--service", self.service, *files, "--durability", durability)


SCENARIOS = {
    "keys": Scenario(Keys, "locks", ("process",), Keys.NAMES),
    "locks": Scenario(Locks, "locks", ("process", "power"), tuple(Locks.registers("V"))),
    "records": Scenario(Records, "records", ("none", "group", "each")),
    "transactions": Scenario(RecordTransactions, "records", ("none", "group", "each")),
    "statements": Scenario(StatementTransactions, "statements", ("none", "group")),
}
ALL = [(name, durability) for name, it in SCENARIOS.items() for durability in it.durabilities]


def seeds() -> list[int]:
    one = os.environ.get("CONCURVE_HISTORY_SEED")
    return [int(one)] if one else list(range(int(os.environ.get("CONCURVE_HISTORY_SEEDS", "10"))))


def clients_of(running: Running, scenario: Scenario, seed: str) -> list[Worker]:
    patience = [PATIENCES_S[number % len(PATIENCES_S)] for number in range(Locks.OWNERS)]
    return [
        scenario.worker(number, running, seed, patience[number]) for number in range(Locks.OWNERS)
    ]


@contextlib.contextmanager
def ended(running: Running) -> Iterator[None]:
    """Whatever happens, no process is left."""
    try:
        yield
    finally:
        running.end(signal.SIGKILL)


def play(folder: Path, name: str, durability: str, seed: int, faults: int, between: int) -> str:
    """Clients work while a server is killed, paused and restarted; what was checked."""
    scenario, what = SCENARIOS[name], f"seed {seed} of {name} {durability}"
    running = Running(History(), scenario.options(folder, durability), VARIANTS, scenario.volatile)
    running.start()
    with ended(running):
        with connected(running) as client:
            scenario.worker.create(client)
        workers = clients_of(running, scenario, what)
        done = work_under_faults(running, workers, what, faults, between)
        look_twice(running, scenario.worker)
    return judge(running, folder / "history", what, done)


def look_twice(running: Running, worker: type[Worker]) -> None:
    """What is there, in memory and on the disk."""
    with connected(running) as client:
        worker.observe(client, running.history)
    running.kill()
    with connected(running) as client:
        worker.observe(client, running.history)


def judge(running: Running, path: Path, what: str, faults: Sequence[str]) -> str:
    history = running.history
    histories.write(history.operations(running.ends_ns), path)
    found = histories.check(path)
    told = f"{what}, {', '.join(faults)}; {history.unanswered} unanswered; {found.text}"
    assert found.outcome == "accepted", f"{told}The history is in {path}"
    return told.strip()


@pytest.mark.parametrize(
    ("name", "durability", "seed"),
    [
        ("keys", "process", 1),
        ("locks", "process", 2),
        ("records", "group", 3),
        ("transactions", "group", 4),
        ("statements", "none", 5),
    ],
)
def test_a_short_history_has_an_order(
    tmp_path: Path, name: str, durability: str, seed: int
) -> None:
    print(play(tmp_path, name, durability, seed, faults=3, between=60))


@pytest.mark.parametrize("name", ["records", "transactions", "statements"])
def test_a_store_of_an_earlier_time_is_found_out(tmp_path: Path, name: str) -> None:
    """A server cannot see that all its files are older than they should be; its clients can."""
    scenario, files, older = SCENARIOS[name], tmp_path / "files", tmp_path / "older"
    running = Running(History(), scenario.options(files, "group"), THREADS)
    files.mkdir()
    running.start()
    with ended(running):
        with connected(running) as client:
            scenario.worker.create(client)
        workers = clients_of(running, scenario, f"an earlier time of {name}")
        for worker in workers:
            worker.start()
        try:
            wait_for_answers(running.history, workers, 30)
            running.end(signal.SIGTERM)
            shutil.copytree(files, older)
            running.start()
            wait_for_answers(running.history, workers, 150)
            running.end(signal.SIGKILL)
            shutil.rmtree(files)
            older.rename(files)
            running.start()
        finally:
            stop(workers)
        with connected(running) as client:
            scenario.worker.observe(client, running.history)
    with pytest.raises(AssertionError, match="rejected: no order explains"):
        judge(running, tmp_path / "history", name, ["an earlier time"])


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("name", "durability"), ALL)
def test_long_histories_have_an_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, durability: str
) -> None:
    for seed in seeds():
        folder = tmp_path / str(seed)
        folder.mkdir()
        told = play(folder, name, durability, seed, faults=8, between=150)
        with capsys.disabled():
            print(f"\n{told}", end="")


# -- full disks ------------------------------------------------------------------------------------

#: Of the small file system: the log of a record service takes some of it at once.
SMALL_MIB = 24


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("name", "durability"), [it for it in ALL if it[0] != "keys"])
def test_histories_with_full_disks_have_an_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, durability: str
) -> None:
    """The disk fills up, the server ends or its engine stops, and the next one has all that was
    acknowledged."""
    scenario = SCENARIOS[name]
    for seed in seeds()[:3]:
        folder = tmp_path / str(seed)
        folder.mkdir()
        what = f"seed {seed} of {name} {durability}"
        with small_file_system(folder / "disk", SMALL_MIB << 20) as disk:
            options = scenario.options(disk, durability)
            running = Running(History(), options, VARIANTS, scenario.volatile)
            running.start()
            with ended(running):
                with connected(running) as client:
                    scenario.worker.create(client)
                    create_filler(client, scenario)
                workers = clients_of(running, scenario, what)
                for worker in workers:
                    worker.start()
                try:
                    for _ in range(3):
                        wait_for_answers(running.history, workers, 100)
                        run_out_of_space(running, scenario, disk)
                    wait_for_answers(running.history, workers, 100)
                finally:
                    stop(workers)
                look_twice(running, scenario.worker)
        told = judge(running, folder / "history", what, ["full disk"] * 3)
        with capsys.disabled():
            print(f"\n{told}", end="")


def run_out_of_space(running: Running, scenario: Scenario, disk: Path) -> None:
    """Fill the disk, wait until the server has noticed, and start another one with space."""
    ballast = fill(disk)
    if scenario.service == "locks":
        # It ends at the first lock that it cannot write down.
        running.server.process.wait(DEADLINE_S)
        stderr = running.end(signal.SIGKILL)
    else:
        with connected(running) as client, contextlib.suppress(OSError):
            exhaust(client, scenario)
        stderr = running.end(signal.SIGTERM)
    assert running.server.process.returncode == 1, stderr
    assert "No space left" in stderr, stderr
    ballast.unlink()
    running.start()
    if scenario.service != "locks":
        with connected(running) as client:
            client("DROP", "filler")
            create_filler(client, scenario)


def create_filler(client: Client, scenario: Scenario) -> None:
    """A file that takes the space: with a full disk it could not be made."""
    if scenario.service == "records":
        client("CREATE", "filler", 100, "KEY", "0:12:text")
    elif scenario.service == "statements":
        client("CREATE", "filler", "id", "value")


def exhaust(client: Client, scenario: Scenario) -> None:
    """Insert records until there is no space left for the log."""
    try:
        rest: str | int = "x" * 88 if scenario.service == "records" else 0
        for first in range(1, 1_000_000, 1000):
            client("FILL", "filler", first, first + 999, rest)
    except ReplyError as error:
        assert error.code in Worker.STOPPED, error
    else:
        raise AssertionError("the disk was never full")
