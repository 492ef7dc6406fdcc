"""A laboratory over the hosts of a cluster, in a process of its own on the host of Ray's head:
``python -m tests.helpers.laboratory FILE``. It is asked line by line, in JSON, for a trial, or for
what a function says that is given the engine."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from concurve.definition.hosts_file import load_hosts
from concurve.errors import ConcurveError, HostError
from concurve.hosts.engine import HostsEngine
from concurve.hosts.ray_cluster import connected
from concurve.wire import decode_record, decode_spec, encode_spec
from concurve.wire.record import TrialRecord
from concurve.wire.spec import TrialSpec
from tests.helpers.clusters import Cluster

#: For it to end.
END_SECONDS = 60.0

_ROOT = Path(__file__).resolve().parents[2]

_READY = "ready\n"


class Ran(NamedTuple):
    """A trial: its record, and how long the engine took."""

    record: TrialRecord
    seconds: float


class Laboratory:
    """A laboratory that is asked; ``process`` is its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def run(self, spec: TrialSpec) -> Ran:
        """A trial over the hosts, whatever its outcome.

        Raises:
            HostError: it could not be run, and why.
        """
        said = self._ask({"spec": json.loads(encode_spec(spec))})
        return Ran(decode_record(json.dumps(said["record"]).encode()), said["seconds"])

    def call(self, module: str, function: str, *arguments: object) -> Any:
        """What a function of a module gives, as JSON, for the engine and some arguments.

        Raises:
            HostError: it failed, and why.
        """
        return self._ask({"module": module, "function": function, "arguments": arguments})["value"]

    def _ask(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise HostError(
                "the laboratory on the host of Ray's head has ended", "its standard error, above"
            )
        found: dict[str, Any] = json.loads(line)
        if "error" in found:
            raise HostError(f"the laboratory on the host of Ray's head: {found['error']}", "")
        return found


@contextlib.contextmanager
def laboratory(cluster: Cluster, import_from: Sequence[Path] = ()) -> Iterator[Laboratory]:
    """A laboratory that has the hosts for measurements alone; functions are also imported from some
    folders.

    Raises:
        HostError: it did not start; standard error has its reason.
    """
    folders = [*map(str, import_from), str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    words = [sys.executable, "-m", "tests.helpers.laboratory", str(cluster.file)]
    with subprocess.Popen(
        cluster.laboratory(words),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(folders)},
    ) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            if process.stdout.readline() != _READY:
                raise HostError(
                    "the laboratory on the host of Ray's head did not start",
                    "its standard error, above",
                )
            yield Laboratory(process)
            process.stdin.close()
            process.wait(END_SECONDS)
        finally:
            process.kill()


def _answer(engine: HostsEngine, asked: dict[str, Any]) -> dict[str, Any]:
    if "spec" in asked:
        spec = decode_spec(json.dumps(asked["spec"]).encode())
        begin = time.perf_counter()
        packed = engine.run(spec)
        return {"seconds": time.perf_counter() - begin, "record": json.loads(packed)}
    function = getattr(importlib.import_module(asked["module"]), asked["function"])
    return {"value": function(engine, *asked["arguments"])}


def main() -> None:
    """Answer until nothing more is asked."""
    inventory = load_hosts(Path(sys.argv[1]))
    with connected(inventory, inventory.hosts) as engine, engine.lock("the tests of hosts"):
        print(_READY, end="", flush=True)
        for line in sys.stdin:
            try:
                said = _answer(engine, json.loads(line))
            except ConcurveError as error:
                said = {"error": str(error)}
            print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
