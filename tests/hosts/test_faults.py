"""Faults at random moments of runs over hosts. Long: marked for the soak.

Each fault strikes a run of three hosts, or the joining before it, at a moment that is drawn from a
seed (CONCURVE_FAULTS_SEED); CONCURVE_FAULTS says how many there are (default 50). Where Ray is
installed it connects network namespaces, or with CONCURVE_TEST_HOSTS=FILE the hosts of a file
(:mod:`tests.helpers.clusters`), and half of the faults strike while it measures, a quarter while it
simulates, a quarter while a laboratory joins; elsewhere the hosts are processes of this machine,
connected by sockets. After each fault: the laboratory says within 7 s
which host is lost, or goes on; the trial that ran is marked with that host; nothing of ours is left
on a host that is cut off 5 s after its renewals stop, whatever the laboratory does meanwhile, and
anywhere 5 s after that has ended; and the resumed run has exactly the planned trials, those of
simulations with the results of one machine.

``python -m tests.hosts.test_faults --seed N`` strikes them in one pass, goes on where one is not as
it must be, and prints the table of docs/method/many-hosts.md and a last line; it exits with 1 if
one was not, or none was struck. ``--first N --count 1`` strikes one again.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import functools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pytest

from concurve.analysis.run import trial_findings_of
from concurve.hosts.commands import MARK_VARIABLE
from concurve.planning.protocol import LOST
from concurve.store import Store
from tests.helpers import clusters, real
from tests.helpers.agents import Agents, inventory_of
from tests.helpers.fault_driver import TRIALS

pytestmark = [
    pytest.mark.soak,
    pytest.mark.real,
    pytest.mark.timeout(7200),
    pytest.mark.skipif(real.missing() is not None, reason=str(real.missing())),
]

FAULTS = int(os.environ.get("CONCURVE_FAULTS", "50"))
SEED = int(os.environ.get("CONCURVE_FAULTS_SEED", "1"))

#: Seconds for the laboratory to say what was lost, and for the hosts to end what it began: a lease
#: of 3 s from its last renewal, at most 1 s to end, and 1 s for a busy machine.
TOLD_SECONDS = 7.0
GONE_SECONDS = 5.0

#: A run takes about so long from its first trial to its last one, and a laboratory until it has
#: joined its hosts.
RUN_SECONDS = 5.0
JOIN_SECONDS = 4.0

#: A link that comes back does so after at most so long: sooner than a host is lost, or later.
BACK_SECONDS = 6.0

#: A laboratory that does not end by itself is ended after so long: its simulations share a busy
#: machine with what else runs there.
HANGS_SECONDS = 300.0

#: So many series may run at once; each Ray has 150 ports.
PORTS = 100

RUN = "20261123-1200-fa17"

#: Seconds between two looks at a host that was struck.
LOOK_SECONDS = 0.2

#: What command lines of agents, their keepers, runners and roles have.
OURS = (
    "concurve.hosts.agent", "concurve.hosts.keeper", "concurve-trial", "sleep ", "concurve-disk",
)  # fmt: skip


@functools.cache
def port() -> int:
    """Of Ray's head, by which its processes and folder are known: one that no series beside this
    one has while this process runs."""
    for number in range(PORTS):
        path = Path(tempfile.gettempdir(), f"concurve-tests-{os.geteuid()}-ray-{number}.lock")
        held = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(held)
            continue
        return 10_000 + number * 150
    pytest.skip(f"{PORTS} series run beside this one")


class Rig:
    """Three hosts, and what can be done to them. ``hosts``: their names, the laboratory's first.
    ``study``: what is run on them; ``begins_at``: the line of the laboratory after which it is
    struck, within ``seconds``; ``outlived``: the faults that leave what connects the hosts as it
    was; ``loses``: the hosts, by their places, of which one is lost by each kind of fault, where it
    is not the one that was struck; ``cuts_off``: the faults after which no request reaches the
    agent of the host that was struck, or finds it; ``marks``: does a trial that was lost stand in
    the store? Simulations are computed elsewhere."""

    folder: Path
    hosts: Sequence[str]
    kinds: ClassVar[Sequence[str]]
    name = "measuring"
    study = "measured"
    begins_at = "ready"
    seconds = RUN_SECONDS
    outlived: ClassVar[Sequence[str]] = ()
    cuts_off: ClassVar[Sequence[str]] = ()
    marks = True
    loses: ClassVar[Mapping[str, tuple[int, ...]]] = {}

    def start(self) -> None:
        """Have all hosts ready."""
        raise NotImplementedError

    def is_watched(self, kind: str) -> bool:
        """Is the host looked at that such a fault cuts off?"""
        return kind in self.cuts_off

    def driver(self) -> list[str]:
        """The command of a laboratory."""
        raise NotImplementedError

    def strike(self, kind: str, host: str, driver: subprocess.Popen[str]) -> Callable[[], None]:
        """Do it to a host; what undoes it."""
        raise NotImplementedError

    def ours(self, hosts: Sequence[str] = ()) -> list[str]:
        """The processes that are left of agents and trials, on some hosts or on all."""
        raise NotImplementedError

    def end(self) -> None:
        """Leave nothing."""
        raise NotImplementedError


class Sockets(Rig):
    """Agents of this machine."""

    name = "measuring, sockets"
    kinds: ClassVar[Sequence[str]] = (
        "agent killed", "agent stopped", "runner killed", "load killed", "server killed",
        "link down", "link back", "driver killed", "driver stopped", "keeper killed",
    )  # fmt: skip
    cuts_off: ClassVar[Sequence[str]] = ("link down", "agent killed")
    loses: ClassVar[Mapping[str, tuple[int, ...]]] = {
        "server killed": (0,),
        "load killed": (1,),
        "runner killed": (0, 1, 2),
    }

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hosts = ("a", "b", "c")
        addresses = {name: f"127.0.0.{number}" for number, name in enumerate(self.hosts, 1)}
        self.agents = Agents(folder, inventory_of(addresses))

    def start(self) -> None:
        self.agents.start()

    def driver(self) -> list[str]:
        sockets = [f"{name}={path}" for name, path in self.agents.paths.items()]
        database = str(self.folder / "runs.db")
        return [sys.executable, "-m", "tests.helpers.fault_driver", database, RUN, self.study,
                "sockets", *sockets]  # fmt: skip

    def strike(self, kind: str, host: str, driver: subprocess.Popen[str]) -> Callable[[], None]:
        what, how = kind.split()
        number = signal.SIGSTOP if how == "stopped" else signal.SIGKILL
        if what == "link":
            down = self.folder / f"down-{host}"
            down.touch()
            return lambda: down.unlink(missing_ok=True)
        if what == "driver":
            return _signalled(driver.pid, number)
        pids = self._pids(what, host)
        return _signalled(pids[0], number) if pids else _nothing

    def _pids(self, what: str, host: str) -> list[int]:
        if what == "agent":
            with contextlib.suppress(ValueError):  # it has ended
                return [self.agents.pid(host)]
            return []
        wanted = {
            "runner": "concurve-trial", "load": "sh -c setsid", "server": "sleep 300",
            "keeper": "concurve.hosts.keeper",
        }[what]  # fmt: skip
        return [pid for pid, line in self.agents.lab.alive().items() if wanted in line]

    def ours(self, hosts: Sequence[str] = ()) -> list[str]:
        return [
            f"{host}: {line}"
            for host in hosts or self.hosts
            for line in self.agents.alive(host).values()
        ]

    def end(self) -> None:
        self.agents.end()


class OverRay(Rig):
    """Hosts that Ray connects."""

    kinds: ClassVar[Sequence[str]] = (
        "worker killed", "raylet killed", "head killed", "driver killed", "agent killed",
        "worker stopped", "raylet stopped", "link down", "link back", "runner killed",
        "head stopped", "own-raylet killed", "own-raylet stopped", "driver stopped",
        "keeper killed",
    )  # fmt: skip
    outlived = (
        "worker killed", "driver killed", "agent killed", "runner killed", "simulation killed",
        "keeper killed",
    )  # fmt: skip
    cuts_off: ClassVar[Sequence[str]] = (
        "worker killed", "worker stopped", "raylet killed", "raylet stopped", "link down",
        "agent killed",
    )  # fmt: skip
    loses: ClassVar[Mapping[str, tuple[int, ...]]] = dict.fromkeys(
        ("head killed", "head stopped", "own-raylet killed", "own-raylet stopped"), (0,)
    )

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._stack = contextlib.ExitStack()
        # One CPU for the daemons of three hosts would be late for its own reasons.
        self.cluster = self._stack.enter_context(clusters.cluster(folder, port, is_pinned=False))
        self.hosts = self.cluster.hosts

    def start(self) -> None:
        self.cluster.restart(is_checked=False)

    def driver(self) -> list[str]:
        return self.cluster.laboratory([
            sys.executable, "-m", "tests.helpers.fault_driver", str(self.folder / "runs.db"), RUN,
            self.study, "ray", str(self.cluster.file), *self.hosts,
        ])  # fmt: skip

    def is_watched(self, kind: str) -> bool:
        # Of another machine nothing is seen while its network is down.
        is_seen = self.cluster.is_one_machine or not kind.startswith("link")
        return is_seen and super().is_watched(kind)

    def strike(self, kind: str, host: str, driver: subprocess.Popen[str]) -> Callable[[], None]:
        what, how = kind.split()
        number = signal.SIGSTOP if how == "stopped" else signal.SIGKILL
        if what == "link":
            self.cluster.link(host, "down")
            return lambda: self.cluster.link(host, "up")
        if what == "driver":
            return _signalled(driver.pid, number)
        wanted, at = {
            "agent": ("concurve.hosts.agent", host),
            "runner": ("concurve-trial", host),
            "keeper": ("concurve.hosts.keeper", host),
            "worker": ("ray::HostActor", host),
            "raylet": ("raylet/raylet", host),
            "head": ("gcs_server", self.hosts[0]),
            "own-raylet": ("raylet/raylet", self.hosts[0]),
            "simulation": ("concurve-disk", host),
        }[what]
        return self.cluster.strike(at, wanted, number)

    def ours(self, hosts: Sequence[str] = ()) -> list[str]:
        return [
            f"{host}: {line}"
            for host, found in self.cluster.processes(hosts).items()
            for line in found.values()
            if any(it in line for it in OURS)
        ]

    def end(self) -> None:
        self._stack.close()


class Simulations(OverRay):
    """The same, which compute simulations: tasks of Ray, which end with no lease of ours."""

    name = "simulating"
    cuts_off: ClassVar[Sequence[str]] = ()
    marks = False
    kinds: ClassVar[Sequence[str]] = (
        "head killed", "link down", "raylet killed", "own-raylet stopped", "simulation killed",
        "head stopped", "raylet stopped", "own-raylet killed", "driver killed", "link back",
    )  # fmt: skip
    study = "simulated"


class Joining(OverRay):
    """The same, which a laboratory joins: it renews the first leases through Ray alone."""

    name = "joining"
    cuts_off: ClassVar[Sequence[str]] = ()
    kinds: ClassVar[Sequence[str]] = (
        "head stopped", "own-raylet killed", "head killed", "own-raylet stopped", "raylet killed",
        "link down", "raylet stopped", "driver killed", "worker killed",
    )  # fmt: skip
    begins_at = "joins"
    seconds = JOIN_SECONDS


def _nothing() -> None: ...


def _signalled(pid: int, number: signal.Signals) -> Callable[[], None]:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)

    def go_on() -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)

    return go_on if number is signal.SIGSTOP else _nothing


@contextlib.contextmanager
def started(rig: Rig) -> Iterator[subprocess.Popen[str]]:
    """A laboratory that has come as far as the faults of a rig begin."""
    plain = {name: value for name, value in os.environ.items() if name != MARK_VARIABLE}
    process = subprocess.Popen(
        rig.driver(), env=plain, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if line == f"{rig.begins_at}\n":
                break
        else:
            raise AssertionError(f"not connected: {process.communicate()[1]}")
        yield process
    finally:
        process.kill()
        process.communicate()


def seconds_until_none_is_left(rig: Rig, since: float) -> float:
    """How long after a moment nothing is left of agents and trials; no longer than may be."""
    while True:
        looks = time.monotonic()
        if not (left := rig.ours()):
            return time.monotonic() - since
        assert looks < since + GONE_SECONDS, (
            f"left {GONE_SECONDS} s after the laboratory was gone: {left}"
        )
        time.sleep(0.05)


class Watched:
    """What of ours is on a host, from now on until nothing is left there; looked at in a thread,
    while the laboratory does whatever it does."""

    def __init__(self, rig: Rig, host: str) -> None:
        self._rig = rig
        self._host = host
        self._left: list[str] = []
        self._seen = self._gone = time.monotonic()
        self._failed: Exception | None = None
        self._gives_up = threading.Event()
        self._thread = threading.Thread(target=self._watch, name=f"watches-{host}", daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        try:
            while not self._gives_up.wait(LOOK_SECONDS):
                looks = time.monotonic()
                left = self._rig.ours([self._host])
                self._gone = time.monotonic()
                if not left:
                    return
                self._seen, self._left = looks, left
        except Exception as error:  # told where it is asked for
            self._failed = error

    def give_up(self) -> None:
        """Look no more."""
        self._gives_up.set()
        self._thread.join()

    def seconds_after(self, since: float) -> float:
        """How long after the last renewal of the host's lease nothing was left there; no longer
        than may be."""
        while self._thread.is_alive() and self._seen < since + GONE_SECONDS:
            self._thread.join(LOOK_SECONDS)
        if self._failed is not None:
            raise self._failed
        assert self._seen < since + GONE_SECONDS, (
            f"left on {self._host} {self._seen - since:.1f} s after its renewals stopped: "
            f"{self._left}"
        )
        return self._gone - since


class Outcome(NamedTuple):
    """How a fault went: seconds until it was told, ``None`` where the run went on or nobody was
    there to tell; seconds until nothing of ours was left; what was told; and seconds until nothing
    was left on a host that was cut off, or anywhere if the laboratory was stopped, since renewals
    stopped."""

    told_seconds: float | None
    gone_seconds: float
    said: str
    cut_off_seconds: float | None = None


def endured(rig: Rig, kind: str, draw: random.Random) -> Outcome:
    """A run with one fault, at a moment that is drawn."""
    host, after, back = draw.choice(rig.hosts[1:]), draw.uniform(0.0, rig.seconds), BACK_SECONDS
    back *= draw.random()
    rig.start()
    with started(rig) as driver:
        time.sleep(after)
        if (code := driver.poll()) is not None:
            assert code == 0, driver.communicate()[1]
            return Outcome(None, 0.0, "the run was over")
        undo = rig.strike(kind, host, driver)
        struck = time.monotonic()
        watched, cut_off = Watched(rig, host) if rig.is_watched(kind) else None, None
        try:
            if kind == "driver stopped":
                # Its leases end meanwhile, as if it were gone.
                cut_off = seconds_until_none_is_left(rig, struck)
                undo()
            if kind == "link back":
                threading.Timer(back, undo).start()
            said, told = driver.communicate(timeout=HANGS_SECONDS)
            ended = time.monotonic()
            if watched is not None:  # what is stopped or cut off stays so until nothing is left
                goes_on = kind.startswith("raylet")  # Ray's worker still passes requests on
                since = max(struck, last_asked(said, host)) if goes_on else struck
                cut_off = watched.seconds_after(since)
        finally:
            undo()
            if watched is not None:
                watched.give_up()
        code = driver.returncode
    gone = seconds_until_none_is_left(rig, ended)
    if code == 0:
        return Outcome(None, gone, "the run went on", cut_off)
    if kind == "driver killed":
        return Outcome(None, gone, "the laboratory was gone")
    # Ray's own lines come first; one that Ray keeps from saying anything is ended by its guard.
    told = "\n".join(line for line in told.splitlines() if not line.startswith("["))
    assert code in ((1, -signal.SIGKILL) if rig.begins_at == "joins" else (1,)), told
    seconds = ended - struck
    assert "host " in told, told
    assert "another measurement" not in told, told
    if kind != "driver stopped":
        places = rig.loses.get(kind, (rig.hosts.index(host),))
        lost = tuple(f"host {rig.hosts[place]}{end}" for place in places for end in ": ")
        assert told.startswith(lost), told
        assert seconds <= TOLD_SECONDS, f"{seconds:.1f} s: {told}"
    return Outcome(seconds, gone, told.splitlines()[0], cut_off)


def last_asked(said: str, host: str) -> float:
    """When the laboratory asked a host for something the last time, as it says in the end."""
    (line,) = (line for line in said.splitlines() if line.startswith("{"))
    return float(json.loads(line)[host])


def resumed(rig: Rig, kind: str, outcome: Outcome) -> None:
    """The trial that was lost is marked, and the run has exactly the planned trials once it is
    resumed."""
    store = Store(str(rig.folder / "runs.db"))
    stored = list(store.trials(RUN).outcomes) if store.runs() else []
    if rig.marks and store.runs() and " was lost: " in outcome.said:
        assert (stored[-1].cause, stored[-1].value) == (LOST, None), stored[-1]
        assert stored[-1].detail == outcome.said
    before = [one.key for one in stored]
    if kind not in rig.outlived:
        rig.start()
    done = subprocess.run(
        rig.driver(), capture_output=True, text=True, timeout=real.PATIENCE, check=False
    )
    assert done.returncode == 0, f"exit code {done.returncode}: {done.stderr}"
    state = store.find_run(RUN).state
    assert state == "complete", f"the resumed run is {state}"
    keys = [outcome.key for outcome in store.trials(RUN).outcomes]
    assert len(keys) == len(set(keys)), "none is doubled"
    assert keys[: len(before)] == before, "none is lost"
    verdicts = store.trials(RUN).outcomes.verdicts
    judged = zip(keys, verdicts, strict=True)
    used = {(key.cell, key.block) for key, verdict in judged if verdict in ("ok", "contaminated")}
    assert len(used) == TRIALS, f"{len(used)} of {TRIALS}: {verdicts}"
    if rig.study == "simulated":
        assert said_of(store, RUN) == of_one_machine(), "simulations say the same on any hosts"


def said_of(store: Store, run: str) -> list[tuple[object, ...]]:
    """What the simulations of a run say; one that was killed says nothing, and was run again."""
    dots = trial_findings_of(store, store.find_run(run)).dots
    names = ("simulated_seconds", "read_mean_ms")
    said = [(dot.cell, dot.block, *map(dot.values.get, names)) for dot in dots]
    return [one for one in said if None not in one]


@functools.cache
def of_one_machine() -> list[tuple[object, ...]]:
    """What they say without hosts."""
    with tempfile.TemporaryDirectory() as folder:
        database, lock = f"{folder}/runs.db", f"{folder}/lock"
        words = [sys.executable, "-m", "tests.helpers.fault_driver"]
        subprocess.run(
            [*words, database, RUN, "simulated", "here"],
            env={**os.environ, "CONCURVE_LOCK": lock},
            check=True,
        )
        return said_of(Store(database), RUN)


def rigs() -> list[type[Rig]]:
    """Of the faults in turn: a file of hosts is of use with Ray alone."""
    has_ray = clusters.missing() is None or clusters.named_file() is not None
    return [OverRay, Simulations, OverRay, Joining] if has_ray else [Sockets]


def fault_of(number: int) -> tuple[type[Rig], str]:
    """The rig and the kind of a fault: all kinds of a rig in turn."""
    turns = rigs()
    rig = turns[number % len(turns)]
    before = sum(turns[it % len(turns)] is rig for it in range(number))
    return rig, rig.kinds[before % len(rig.kinds)]


def left_out(number: int) -> str | None:
    """Why a fault cannot be struck on the hosts of a file, or ``None``."""
    rig, kind = fault_of(number)
    return clusters.no_link() if issubclass(rig, OverRay) and kind.startswith("link") else None


def faulted(number: int, seed: int, folder: Path, row: dict[str, Any]) -> None:
    """Strike a fault, and fill the row of the table: ``is_resumed`` is there in the end.

    Raises:
        AssertionError: something is not as it must be.
    """
    rig_of, kind = fault_of(number)
    row |= {"number": number, "rig": rig_of.name, "kind": kind}
    rig = rig_of(folder)  # type: ignore[call-arg]
    try:
        outcome = endured(rig, kind, random.Random(f"{seed}/{number}"))
        row |= outcome._asdict()
        resumed(rig, kind, outcome)
        seconds_until_none_is_left(rig, time.monotonic())
        row["is_resumed"] = True
    finally:
        rig.end()


@pytest.mark.parametrize("number", range(FAULTS))
def test_a_fault_at_a_random_moment(tmp_path: Path, number: int) -> None:
    if (reason := left_out(number)) is not None:
        pytest.skip(reason)
    faulted(number, SEED, tmp_path, {})


def table_of(rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Faults as a table: a line for each kind."""
    kinds = defaultdict[tuple[str, str], list[Mapping[str, Any]]](list)
    for row in rows:
        kinds[row["rig"], row["kind"]].append(row)
    heads = (
        "while", "fault", "count", "told by name", "after, worst (s)", "went on",
        "nothing left after, worst (s)", "after renewals stopped, worst (s)", "resumed",
    )  # fmt: skip
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for (rig, kind), found in kinds.items():
        told = [row["told_seconds"] for row in found if row.get("told_seconds") is not None]
        gone = [row["gone_seconds"] for row in found if "gone_seconds" in row]
        went_on = sum(row.get("said") in ("the run went on", "the run was over") for row in found)
        cut = [row["cut_off_seconds"] for row in found if row.get("cut_off_seconds") is not None]
        done = sum(row.get("is_resumed", False) for row in found)
        worst = (_worst(gone), _worst(cut))
        cells = (rig, kind, len(found), len(told), _worst(told), went_on, *worst, done)
        yield "| " + " | ".join(map(str, cells)) + " |"


def _worst(seconds: Sequence[float]) -> str:
    return f"{max(seconds):.1f}" if seconds else ""


def pass_of(numbers: Iterable[int], seed: int) -> Iterator[dict[str, Any]]:
    """The rows of faults, one after the other, whatever came of those before: one that is not as it
    must be has ``failed``."""
    for number in numbers:
        row: dict[str, Any] = {}
        begin = time.monotonic()
        try:
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
                faulted(number, seed, Path(folder), row)
        except (Exception, pytest.skip.Exception) as error:  # the next fault does not depend on it
            row["failed"] = f"{type(error).__name__}: {error}"
        row["seconds"] = round(time.monotonic() - begin, 1)
        yield row


def main() -> int:
    """Strike faults in one pass; 1 if one was not as it must be."""
    parser = argparse.ArgumentParser(description="Faults at random moments of runs over hosts.")
    parser.add_argument("--count", type=int, default=FAULTS, metavar="N")
    parser.add_argument("--seed", type=int, default=SEED, metavar="N")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="the number of the first")
    parser.add_argument("--log", type=Path, metavar="FILE", help="a line of JSON for each fault")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    begin, rows = time.monotonic(), list[dict[str, Any]]()
    numbers = range(asked.first, asked.first + asked.count)
    reasons = [reason for number in numbers if (reason := left_out(number)) is not None]
    for row in pass_of((it for it in numbers if left_out(it) is None), asked.seed):
        rows.append(row)
        print(json.dumps(row), file=sys.stderr, flush=True)
        if asked.log is not None:
            with asked.log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
    print("\n".join(table_of(rows)))
    for reason in dict.fromkeys(reasons):
        print(f"\n{reasons.count(reason)} faults were left out: {reason}")
    failed = [row["number"] for row in rows if "failed" in row]
    minutes = (time.monotonic() - begin) / 60
    said = "all as they must be" if rows else "FAILED: none was struck"
    if failed:
        said = f"FAILED: {', '.join(map(str, failed))}"
    print(f"\n{len(rows)} faults in one pass of {minutes:.0f} min, seed {asked.seed}: {said}")
    return int(bool(failed) or not rows)


if __name__ == "__main__":
    sys.exit(main())
