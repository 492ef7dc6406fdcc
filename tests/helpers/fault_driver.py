"""A laboratory for the tests of faults: ``python -m tests.helpers.fault_driver STORE RUN STUDY HOW
…``.

It runs or resumes the run ``RUN`` of a small study over three hosts; STUDY is a name in
:data:`STUDIES`. HOW is ``sockets NAME=PATH …``, with the sockets of agents of this machine, ``ray
FILE NAME NAME NAME``, with a file of hosts and the three that are used, or ``here``, without hosts.
A host whose name stands as a file ``down-NAME`` beside the store is cut off. It prints ``joins``
before it connects the hosts and ``ready`` when they are connected; in the end as JSON when each
host was asked for something the last time, by the monotonic clock: no lease begins again later;
and on standard error why it ended early.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from string import Template
from typing import Any
from unittest import mock

import msgspec

from concurve.definition.hosts_file import load_hosts
from concurve.definition.study_file import parse_study
from concurve.engine.local import LocalEngine
from concurve.errors import ConcurveError
from concurve.hosts import host as connected_host
from concurve.hosts import ray_cluster
from concurve.hosts.connection import (
    ANSWER_SECONDS,
    Connection,
    HostLostError,
    SocketConnection,
    ask,
)
from concurve.hosts.engine import HostsEngine
from concurve.hosts.leaving import end_if_waited_for
from concurve.hosts.messages import Request
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.store import Store
from concurve.store.run_head import decode_head
from tests.helpers.agents import inventory_of

#: A server on one host, loads on the others, whose names are filled in; 12 trials.
MEASURED = """
[study]
name = "faults"
question = "Is anything lost?"

[factors]
amount = [1, 2, 3]

[[roles]]
name = "server"
command = ["sleep", "300"]
end = "serve"
host = "$server"

[[roles]]
name = "target"
command = ["sh", "-c", "setsid sleep 0.1{amount} & sleep 0.2; wait"]
host = "$load"

[[roles]]
name = "other"
command = ["sleep", "0.25"]
host = "$other"

[effort.quick]
repeats = 4
time_allowed = "1h"
"""

#: Simulations that take some seconds each; 12 trials.
SIMULATED = """
[study]
name = "simulations"
question = "Are results the same on whichever hosts?"

[factors]
scheduler = ["noop", "deadline", "cfq"]

[[roles]]
name = "target"
program = "disk"
arguments = ["load", "--scheduler", "{scheduler}", "--scale", "1.0", "--seed", "{block_seed}"]

[protocol]
simulation = true

[effort.quick]
repeats = 4
time_allowed = "1h"

[[indicators]]
use = ["simulated_seconds", "read_mean_ms"]
"""
STUDIES = {"measured": MEASURED, "simulated": SIMULATED}
TRIALS = 12

SEED = 7

_LOOK_SECONDS = 0.02


class Link:
    """A connection that carries nothing while a file is there."""

    def __init__(self, connection: Connection, down: Path) -> None:
        self._connection = connection
        self._down = down
        self._is_interrupted = False

    def exchange(self, body: bytes, seconds: float) -> bytes:
        self._wait(seconds)
        return self._connection.exchange(body, seconds)

    def clock(self) -> int:
        self._wait(5.0)
        return self._connection.clock()

    def another(self) -> Link:
        return Link(self._connection.another(), self._down)

    def interrupt(self) -> None:
        self._is_interrupted = True
        self._connection.interrupt()

    def close(self) -> None:
        self._connection.close()

    def _wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while self._down.exists():
            if time.monotonic() > until or self._is_interrupted:
                raise HostLostError(f"no answer within {seconds:g} s")
            time.sleep(_LOOK_SECONDS)


@contextlib.contextmanager
def engine_of(how: str, words: Sequence[str], folder: Path) -> Iterator[HostsEngine]:
    """The connected hosts."""
    if how == "ray":
        inventory = load_hosts(Path(words[0]))
        with ray_cluster.connected(inventory, inventory.hosts) as engine:
            yield engine
        return
    paths = {name: Path(path) for name, _, path in (word.partition("=") for word in words)}
    inventory = inventory_of({name: f"127.0.0.{n}" for n, name in enumerate(paths, 1)})
    connections = {
        name: Link(SocketConnection(path), folder / f"down-{name}") for name, path in paths.items()
    }
    with HostsEngine(inventory, connections) as engine:
        yield engine


def names_of(how: str, words: Sequence[str]) -> list[str]:
    """The names of the hosts that are used."""
    return list(words[1:]) if how == "ray" else [word.partition("=")[0] for word in words]


@contextlib.contextmanager
def noted(asked: dict[str, float]) -> Iterator[None]:
    """Have it noted when each host was asked for something the last time."""

    def noting(
        connection: Connection, host: str, request: Request, seconds: float = ANSWER_SECONDS
    ) -> Any:
        asked[host] = time.monotonic()
        return ask(connection, host, request, seconds)

    with mock.patch.object(connected_host, "ask", noting):
        yield


def main() -> int:
    """Run or resume; 1 if that ended early."""
    database, run, name, how, *words = sys.argv[1:]
    store = Store(database)
    named = dict(zip(("server", "load", "other"), names_of(how, words), strict=False))
    text = Template(STUDIES[name]).substitute(named)
    study = parse_study(text, 2, f"{name}.toml")
    asked: dict[str, float] = {}
    try:
        if how == "here":
            head = msgspec.structs.replace(new_head(study, "quick", SEED, "again"), id=run)
            Runner(head, store, LocalEngine()).start()
            return 0
        if how == "ray":  # to import it takes long on a busy machine, and joins nothing yet
            ray_cluster._ray(load_hosts(Path(words[0])).cluster)
        print("joins", flush=True)
        with noted(asked), engine_of(how, words, Path(database).parent) as engine:
            print("ready", flush=True)
            if any(row.id == run for row in store.runs()):
                head = decode_head(store.find_run(run))
                Runner(head, store, engine, site=engine).resume()
                return 0
            head = new_head(study, "quick", SEED, "again", engine.inventory, engine)
            head = msgspec.structs.replace(head, id=run)
            Runner(head, store, engine, site=engine).start()
    except ConcurveError as error:
        print(error, file=sys.stderr)
        return 1
    finally:
        if asked:
            print(json.dumps(asked), flush=True)
    return 0


if __name__ == "__main__":
    exit_code = main()
    end_if_waited_for(exit_code)
    sys.exit(exit_code)
