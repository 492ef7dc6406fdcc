"""Ray over network namespaces as hosts, with a laboratory in the namespace of its head."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from tests.helpers.agents import Namespaces, no_namespaces

from concurve.definition.hosts_file import load_hosts
from concurve.definition.inventory import Inventory
from concurve.engine import Engine
from concurve.estimate import Estimate
from concurve.hosts import commands, daemons
from concurve.wire import decode_record, encode_spec
from concurve.wire.record import TrialRecord
from concurve.wire.spec import TrialSpec
from measuring.figures import MissingToolError
from measuring.running import scratch

HOSTS = ("a", "b", "c")
"""The laboratory is on the first one, beside Ray's head."""

LOAD = "load"
"""The label of the others."""

PORT = 7500
"""Of Ray's head."""

END_SECONDS = 60.0
"""For a laboratory to end."""


class Ran(NamedTuple):
    """A trial: its record, and how long the engine took."""

    record: TrialRecord
    seconds: float


Run = Callable[[TrialSpec], Ran]
"""Runs a trial.

Raises:
    SystemExit: it failed.
"""


def by(engine: Engine) -> Run:
    """Trials by an engine of this process."""

    def run(spec: TrialSpec) -> Ran:
        begin = time.perf_counter()
        packed = engine.run(spec)
        return checked(packed, time.perf_counter() - begin)

    return run


def checked(packed: bytes, seconds: float) -> Ran:
    """A trial that succeeded.

    Raises:
        SystemExit: it failed.
    """
    record = decode_record(packed)
    if record.outcome.kind != "ok":
        said = "; ".join(f"{role.name}: {role.stderr.tail[-300:]}" for role in record.roles)
        raise SystemExit(f"trial {record.trial} failed: {record.outcome.message}. {said}")
    return Ran(record, seconds)


#: Runs in the namespace of the head: a trial for each line that it is given.
_DRIVER = """
import json, sys, time
from pathlib import Path
import msgspec
from hosts import Some, overhead, simulations
from concurve.definition.hosts_file import load_hosts
from concurve.errors import ConcurveError
from concurve.hosts.ray_cluster import connected
from concurve.wire import decode_spec

inventory = load_hosts(Path(sys.argv[1]))
with connected(inventory, inventory.hosts) as engine:
    print("ready", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            if "simulations" in asked:
                tasks_of = lambda workers: Some(engine.tasks, workers)
                figure = simulations("Ray", tasks_of, asked["simulations"])
                said = json.loads(msgspec.json.encode(figure.estimate))
            elif "overhead" in asked:
                figure = overhead("Ray", Some(engine.tasks, 1), asked["overhead"])
                said = json.loads(msgspec.json.encode(figure.estimate))
            else:
                begin = time.perf_counter()
                record = engine.run(decode_spec(json.dumps(asked["spec"]).encode()))
                seconds = time.perf_counter() - begin
                said = {"seconds": seconds, "record": json.loads(record)}
        except ConcurveError as error:
            said = {"error": str(error)}
        print(json.dumps(said), flush=True)
"""


class Laboratory:
    """One in the namespace of the head, which is asked line by line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(self, spec: TrialSpec) -> Ran:
        """A trial over the hosts of Ray.

        Raises:
            SystemExit: it failed.
        """
        said = self._ask({"spec": json.loads(encode_spec(spec))})
        return checked(json.dumps(said["record"]).encode(), said["seconds"])

    def simulations(self, rounds: int) -> Estimate:
        """Two workers over one, with the tasks of Ray."""
        return msgspec.convert(self._ask({"simulations": rounds}), Estimate)

    def overhead(self, rounds: int) -> Estimate:
        """What a trial takes longer as a task of Ray."""
        return msgspec.convert(self._ask({"overhead": rounds}), Estimate)

    def _ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("the laboratory in the namespace of the head has ended")
        found: dict[str, Any] = json.loads(line)
        if "error" in found:
            raise SystemExit(f"the laboratory in the namespace of the head: {found['error']}")
        return found


class Cluster:
    """Ray over namespaces; each host has a measurement lock of its own."""

    def __init__(self, namespaces: Namespaces, folder: Path) -> None:
        self.namespaces = namespaces
        self.folder = folder
        token = folder / "token"
        token.write_text(uuid.uuid4().hex)
        token.chmod(0o600)
        self.file = folder / "lab.toml"
        hosts = "".join(
            f'[hosts.{name}]\naddress = "{address}"\n'
            + ("" if name == HOSTS[0] else f'labels = ["{LOAD}"]\n')
            for name, address in namespaces.addresses.items()
        )
        self.file.write_text(
            f'[ray]\nhead = "{HOSTS[0]}"\nport = {PORT}\npython = "{sys.executable}"\n'
            f'token = "{token}"\n{hosts}'
        )
        self.inventory: Inventory = load_hosts(self.file)
        self.mark = commands.mark_of(self.inventory)

    def up(self) -> float:
        """Start it; how many seconds that took.

        Raises:
            HostError: it did not start.
        """
        begin = time.perf_counter()
        self.namespaces.start_ray(self.inventory, self.folder)
        return time.perf_counter() - begin

    def address(self, host: str) -> str:
        """By which the others reach it."""
        return self.namespaces.addresses[host]

    def pids(self, host: str) -> list[int]:
        """The processes in a host."""
        words = ["ip", "netns", "pids", self.namespaces.name(host)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        return [int(word) for word in done.stdout.split()]

    def words(self, words: Sequence[str]) -> list[str]:
        """A command of the laboratory's host."""
        return [*self.namespaces.enter(HOSTS[0]), *words]

    @contextlib.contextmanager
    def laboratory(self) -> Iterator[Laboratory]:
        """One in the namespace of the head."""
        words = self.words([sys.executable, "-c", _DRIVER, str(self.file)])
        folders = [
            str(Path(__file__).resolve().parents[1]),
            *filter(None, [os.environ.get("PYTHONPATH")]),
        ]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
        with subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        ) as process:
            assert process.stdin is not None and process.stdout is not None
            try:
                if process.stdout.readline() != "ready\n":
                    raise SystemExit("the laboratory in the namespace of the head did not start")
                yield Laboratory(process)
                process.stdin.close()
                process.wait(END_SECONDS)
            finally:
                process.kill()


@contextlib.contextmanager
def namespaces() -> Iterator[Cluster]:
    """Three namespaces and the files of a cluster; what was started there is ended.

    Raises:
        MissingToolError: Ray or namespaces are not there.
    """
    if importlib.util.find_spec("ray") is None:
        raise MissingToolError("Ray: pip install 'concurve[ray]'")
    if (lacking := no_namespaces()) is not None:
        raise MissingToolError(lacking)
    with scratch() as folder, Namespaces(HOSTS) as made:
        cluster = Cluster(made, folder)
        try:
            yield cluster
        finally:
            daemons.stop(cluster.mark)


@contextlib.contextmanager
def running() -> Iterator[Cluster]:
    """The same, with Ray on all hosts.

    Raises:
        MissingToolError: Ray or namespaces are not there.
    """
    with namespaces() as cluster:
        cluster.up()
        yield cluster
