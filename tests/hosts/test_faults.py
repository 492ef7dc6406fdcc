"""Faults at random moments of runs over hosts. Long: marked for the soak.

Each fault strikes a run or its preparation, at a moment that is drawn from a seed
(CONCURVE_FAULTS_SEED); CONCURVE_FAULTS says how many there are (default 50). The hosts are
processes of this machine, connected by sockets; where Ray is installed, two of three faults are of
a Ray over network namespaces, half of them while it simulates. After each fault: the laboratory
says within 7 s which host is lost, or goes on; nothing of ours is left 5 s after it has ended; and
the resumed run has exactly the planned trials, those of simulations with the results of one
machine.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from concurve.analysis.run import trial_findings_of
from concurve.definition.hosts_file import load_hosts
from concurve.hosts import commands, daemons
from concurve.hosts.commands import MARK_VARIABLE
from concurve.store import Store
from tests.helpers import real
from tests.helpers.agents import Agents, Namespaces, inventory_of, no_namespaces
from tests.helpers.fault_driver import TRIALS

pytestmark = [
    pytest.mark.soak,
    pytest.mark.real,
    pytest.mark.timeout(7200),
    pytest.mark.skipif(real.missing() is not None, reason=str(real.missing())),
]

FAULTS = int(os.environ.get("CONCURVE_FAULTS", "50"))
SEED = int(os.environ.get("CONCURVE_FAULTS_SEED", "1"))

#: Seconds for the laboratory to say what was lost, and for the hosts to end what it began.
TOLD_SECONDS = 7.0
GONE_SECONDS = 5.0

#: A run takes about so long from its first trial to its last one.
RUN_SECONDS = 5.0

#: After these the laboratory is not there to say anything.
_OF_THE_DRIVER = ("driver killed", "driver stopped")

RUN = "20261123-1200-fa17"

#: Of Ray's head, by which its processes and its folder are known: a series beside this one has
#: another.
PORT = 10_000 + os.getpid() % 150 * 150

#: What command lines of agents, runners and roles have.
OURS = ("concurve.hosts.agent", "concurve-trial", "sleep ", "concurve-disk")


class Rig:
    """Two hosts, and what can be done to them. ``study``: what is run on them; ``loses``: the hosts
    of which one is lost by each kind of fault, where it is not ``b``."""

    folder: Path
    kinds: ClassVar[Sequence[str]]
    study = "measured"
    loses: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    def start(self) -> None:
        """Have both hosts ready."""
        raise NotImplementedError

    def driver(self) -> list[str]:
        """The command of a laboratory."""
        raise NotImplementedError

    def strike(self, kind: str, driver: subprocess.Popen[str]) -> Callable[[], None]:
        """Do it to the host ``b``; what undoes it."""
        raise NotImplementedError

    def ours(self) -> dict[int, str]:
        """The processes that are left of agents and trials."""
        raise NotImplementedError

    def end(self) -> None:
        """Leave nothing."""
        raise NotImplementedError


class Sockets(Rig):
    """Agents of this machine."""

    kinds: ClassVar[Sequence[str]] = (
        "agent killed", "agent stopped", "runner killed", "load killed", "server killed",
        "link down", "driver killed", "driver stopped",
    )  # fmt: skip

    loses: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "server killed": ("a",),
        "runner killed": ("a", "b"),
    }

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.agents = Agents(folder, inventory_of({"a": "127.0.0.1", "b": "127.0.0.2"}))

    def start(self) -> None:
        self.agents.start()

    def driver(self) -> list[str]:
        sockets = [f"{name}={path}" for name, path in self.agents.paths.items()]
        database = str(self.folder / "runs.db")
        return [sys.executable, "-m", "tests.helpers.fault_driver", database, RUN, self.study,
                "sockets", *sockets]  # fmt: skip

    def strike(self, kind: str, driver: subprocess.Popen[str]) -> Callable[[], None]:
        what, how = kind.split()
        number = signal.SIGSTOP if how == "stopped" else signal.SIGKILL
        if what == "link":
            (self.folder / "down-b").touch()
            return (self.folder / "down-b").unlink
        if what == "driver":
            return _signalled(driver.pid, number)
        pids = self._pids(what)
        return _signalled(pids[0], number) if pids else _nothing

    def _pids(self, what: str) -> list[int]:
        if what == "agent":
            with contextlib.suppress(ValueError):  # it has ended
                return [self.agents.pid("b")]
            return []
        wanted = {"runner": "concurve-trial", "load": "sh -c setsid", "server": "sleep 300"}[what]
        return [pid for pid, line in self.agents.lab.alive().items() if wanted in line]

    def ours(self) -> dict[int, str]:
        return self.agents.lab.alive()

    def end(self) -> None:
        with contextlib.suppress(FileNotFoundError):
            (self.folder / "down-b").unlink()
        self.agents.end()


class OverRay(Rig):
    """A Ray over network namespaces."""

    kinds: ClassVar[Sequence[str]] = (
        "agent killed", "worker killed", "worker stopped", "raylet killed", "raylet stopped",
        "head killed", "head stopped", "own-raylet killed", "own-raylet stopped", "link down",
        "driver killed",
    )  # fmt: skip
    loses: ClassVar[Mapping[str, tuple[str, ...]]] = dict.fromkeys(
        ("head killed", "head stopped", "own-raylet killed", "own-raylet stopped"), ("a",)
    )

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._stack = contextlib.ExitStack()
        self.namespaces = self._stack.enter_context(Namespaces(["a", "b"]))
        token = folder / "token"
        token.write_text(uuid.uuid4().hex)
        token.chmod(0o600)
        self.file = folder / "lab.toml"
        hosts = "".join(
            f'[hosts.{name}]\naddress = "{address}"\n'
            for name, address in self.namespaces.addresses.items()
        )
        self.file.write_text(
            f'[ray]\nhead = "a"\nport = {PORT}\npython = "{sys.executable}"\n'
            f'token = "{token}"\n{hosts}'
        )
        self.inventory = load_hosts(self.file)
        self.mark = commands.mark_of(self.inventory)

    def start(self) -> None:
        daemons.stop(self.mark)
        self.namespaces.start_ray(self.inventory, self.folder)

    def driver(self) -> list[str]:
        return [*self.namespaces.enter("a"), sys.executable, "-m", "tests.helpers.fault_driver",
                str(self.folder / "runs.db"), RUN, self.study, "ray", str(self.file)]  # fmt: skip

    def strike(self, kind: str, driver: subprocess.Popen[str]) -> Callable[[], None]:
        what, how = kind.split()
        number = signal.SIGSTOP if how == "stopped" else signal.SIGKILL
        if what == "link":
            self._link("down")
            return lambda: self._link("up")
        if what == "driver":
            return _signalled(driver.pid, number)
        wanted, host = {
            "agent": ("concurve.hosts.agent", "b"),
            "worker": ("ray::HostActor", "b"),
            "raylet": ("raylet/raylet", "b"),
            "head": ("gcs_server", "a"),
            "own-raylet": ("raylet/raylet", "a"),
            "simulation": ("concurve-disk", "b"),
        }[what]
        pids = [pid for pid in self._pids(host) if wanted in _line(pid)]
        return _signalled(pids[0], number) if pids else _nothing

    def _pids(self, host: str) -> list[int]:
        done = subprocess.run(
            ["ip", "netns", "pids", self.namespaces.name(host)],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return [int(word) for word in done.stdout.split()]

    def _link(self, state: str) -> None:
        words = ["ip", "-n", self.namespaces.name("b"), "link", "set", "eth0", state]
        subprocess.run(words, check=True)

    def ours(self) -> dict[int, str]:
        """Agents have the mark; what they start has a variable of its trial, and no mark."""
        found = {}
        for host in ("a", "b"):
            for pid in self._pids(host):
                line = _line(pid)
                if any(it in line for it in OURS):
                    found[pid] = line
        return found

    def end(self) -> None:
        daemons.stop(self.mark)
        self._stack.close()


class Simulations(OverRay):
    """A Ray over network namespaces, which computes simulations."""

    kinds: ClassVar[Sequence[str]] = (
        "head stopped", "link down", "raylet killed", "own-raylet stopped", "simulation killed",
        "head killed", "raylet stopped", "own-raylet killed", "driver killed",
    )  # fmt: skip
    study = "simulated"


def _line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


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
    """A laboratory whose hosts are connected."""
    plain = {name: value for name, value in os.environ.items() if name != MARK_VARIABLE}
    process = subprocess.Popen(
        rig.driver(), env=plain, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise AssertionError(f"not connected: {process.communicate()[1]}")
        yield process
    finally:
        process.kill()
        process.communicate()


def left_after(rig: Rig, seconds: float) -> dict[int, str]:
    """What is left of agents and trials so long after the laboratory has ended."""
    until = time.monotonic() + seconds
    while (left := rig.ours()) and time.monotonic() < until:
        time.sleep(0.05)
    return left


def endured(rig: Rig, kind: str, after: float) -> str:
    """A run with one fault so many seconds after it began, and its resumption; how it went."""
    rig.start()
    with started(rig) as driver:
        time.sleep(after)
        if (code := driver.poll()) is not None:
            assert code == 0, driver.communicate()[1]
            return "the run was over"
        undo = rig.strike(kind, driver)
        struck = time.monotonic()
        if kind == "driver stopped":
            # Its lease ends meanwhile, as if it were gone.
            left = left_after(rig, GONE_SECONDS)
            assert left == {}, f"left {GONE_SECONDS} s after the last renewal: {left}"
            undo()
        try:
            _, told = driver.communicate(timeout=TOLD_SECONDS + RUN_SECONDS * 12)
        finally:
            seconds = time.monotonic() - struck
            if kind != "driver stopped":
                undo()
        code = driver.returncode
    left = left_after(rig, GONE_SECONDS)
    assert left == {}, f"left {GONE_SECONDS} s after the end: {left}"
    if code not in (0, 1) and kind in _OF_THE_DRIVER:
        how = "the laboratory was gone"
    elif code == 0:
        how = "the run went on"
    else:
        assert code == 1, told
        assert "host " in told, told
        assert "another measurement" not in told, told
        lost = tuple(f"host {host}" for host in rig.loses.get(kind, ("b",)))
        assert kind in _OF_THE_DRIVER or told.startswith(lost), told
        assert kind == "driver stopped" or seconds <= TOLD_SECONDS, f"{seconds:.1f} s: {told}"
        how = f"told after {seconds:.1f} s: {told.splitlines()[0]}"
    return how


def resumed(rig: Rig) -> None:
    """The run has exactly the planned trials once it is resumed."""
    store = Store(str(rig.folder / "runs.db"))
    before = [outcome.key for outcome in store.trials(RUN).outcomes] if store.runs() else []
    rig.start()
    done = subprocess.run(
        rig.driver(), capture_output=True, text=True, timeout=real.PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    assert store.find_run(RUN).state == "complete"
    keys = [outcome.key for outcome in store.trials(RUN).outcomes]
    assert len(keys) == len(set(keys)), "none is doubled"
    assert keys[: len(before)] == before, "none is lost"
    verdicts = store.trials(RUN).outcomes.verdicts
    judged = zip(keys, verdicts, strict=True)
    used = {(key.cell, key.block) for key, verdict in judged if verdict in ("ok", "contaminated")}
    assert len(used) == TRIALS
    if rig.study == "simulated":
        assert said_of(store) == of_one_machine(), "simulations say the same on any hosts"


def said_of(store: Store) -> list[tuple[object, ...]]:
    """What the simulations of a run say."""
    dots = trial_findings_of(store, store.find_run(RUN)).dots
    names = ("simulated_seconds", "read_mean_ms")
    return [(dot.cell, dot.block, *(dot.values[name] for name in names)) for dot in dots]


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
        return said_of(Store(database))


def rigs() -> list[type[Rig]]:
    has_ray = importlib.util.find_spec("ray") is not None and no_namespaces() is None
    return [Sockets, OverRay, Simulations] if has_ray else [Sockets]


@pytest.mark.parametrize("number", range(FAULTS))
def test_a_fault_at_a_random_moment(tmp_path: Path, number: int) -> None:
    draw = random.Random(f"{SEED}/{number}")
    kinds = rigs()
    rig = kinds[number % len(kinds)](tmp_path)  # type: ignore[call-arg]
    kind = rig.kinds[(number // len(kinds)) % len(rig.kinds)]
    try:
        how = endured(rig, kind, draw.uniform(0.0, RUN_SECONDS))
        print(f"{kind}: {how}")
        resumed(rig)
        assert left_after(rig, GONE_SECONDS) == {}
    finally:
        rig.end()
