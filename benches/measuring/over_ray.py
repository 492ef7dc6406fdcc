"""Trials over the hosts that Ray connects, by a laboratory on the host of its head: network
namespaces, or the hosts of a file (:mod:`tests.helpers.clusters`)."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from tests.helpers import clusters
from tests.helpers.clusters import Cluster
from tests.helpers.laboratory import Laboratory, Ran, laboratory

from concurve.engine import Engine
from concurve.estimate import Estimate
from concurve.wire import decode_record
from concurve.wire.spec import TrialSpec
from measuring.figures import MissingToolError
from measuring.running import scratch

PORT = 7500
"""Of Ray's head, where hosts are namespaces."""

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
        return checked(Ran(decode_record(packed), time.perf_counter() - begin))

    return run


def checked(ran: Ran) -> Ran:
    """A trial that succeeded.

    Raises:
        SystemExit: it failed.
    """
    record = ran.record
    if record.outcome.kind != "ok":
        said = "; ".join(f"{role.name}: {role.stderr.tail[-300:]}" for role in record.roles)
        raise SystemExit(f"trial {record.trial} failed: {record.outcome.message}. {said}")
    return ran


class There:
    """What is measured by a laboratory on the host of Ray's head."""

    def __init__(self, asked: Laboratory) -> None:
        self._asked = asked

    def run(self, spec: TrialSpec) -> Ran:
        """A trial over the hosts of Ray.

        Raises:
            SystemExit: it failed.
        """
        return checked(self._asked.run(spec))

    def estimate(self, function: str, rounds: int) -> Estimate:
        """What a function of the bench of hosts finds for the engine there."""
        return msgspec.convert(self._asked.call("hosts", function, rounds), Estimate)


@contextlib.contextmanager
def measuring(cluster: Cluster) -> Iterator[There]:
    """A laboratory on hosts whose Ray runs."""
    with laboratory(cluster, [Path(__file__).resolve().parents[1]]) as asked:
        yield There(asked)


@contextlib.contextmanager
def three_hosts(is_pinned: bool = True) -> Iterator[Cluster]:
    """Three hosts without their Ray; what is started there is ended. Daemons of hosts that are
    namespaces have a CPU of their own, if they are to be pinned.

    Raises:
        MissingToolError: Ray or namespaces are not there.
    """
    if (lacking := clusters.missing()) is not None:
        raise MissingToolError(lacking)
    with scratch() as folder, clusters.cluster(folder, PORT, is_pinned) as cluster:
        yield cluster


@contextlib.contextmanager
def running(is_pinned: bool = True) -> Iterator[Cluster]:
    """The same, with Ray on all of them.

    Raises:
        MissingToolError: Ray or namespaces are not there.
    """
    with three_hosts(is_pinned) as cluster:
        cluster.restart()
        yield cluster
