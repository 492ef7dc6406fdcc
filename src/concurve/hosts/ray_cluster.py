"""Connections to hosts through Ray: it places an actor on each and says when one is lost; the actor
starts the agent of its host and carries messages to it. Ray is imported only here, and only when a
run asks for hosts."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from concurve.definition.hosts_file import same_address
from concurve.definition.inventory import Cluster, Host, Inventory
from concurve.errors import HostError
from concurve.hosts.commands import mark_of
from concurve.hosts.connection import (
    QUICK_SECONDS,
    Connection,
    HostLostError,
    SocketConnection,
    lost,
)
from concurve.hosts.engine import HostsEngine
from concurve.hosts.host import HostEvent, HostEvents
from concurve.hosts.lease import LEASE_SECONDS
from concurve.hosts.nodes import inventory_of_nodes, parse_address, resource_of
from concurve.hosts.ray_tasks import RayTasks
from concurve.hosts.starting import start_agent

#: Seconds for the actor of a host to be there. For a host that is absent Ray would wait for ever.
PLACE_SECONDS = 30.0

#: Seconds for the port of Ray's head to accept a connection: Ray itself would try for minutes.
REACH_SECONDS = 5.0

#: Seconds that Ray may need beyond the time that an agent has. A host that is stopped or cut off is
#: named after these and :data:`QUICK_SECONDS`, before Ray itself has missed it.
MARGIN_SECONDS = 0.5

#: Seconds between two looks at whether an answer is still of use.
LOOK_SECONDS = 0.2

#: Seconds between two looks at whether Ray's head still listens, and seconds after which Ray ends
#: a process that has lost it: by then we have ended the trial and said so.
HEAD_SECONDS = 1.0
WITHOUT_HEAD_SECONDS = 15

#: Requests to an actor that may be under way at once: one asks for news all the time.
CALLS_AT_ONCE = 4

#: So many late answers of Ray's head, one after the other, are its loss: one is a busy network's.
LATE_MAX = 2

_INSTALL = "pip install 'concurve[ray]'"

#: What Ray says of a token that is missing or not its own.
_WRONG_TOKEN = "InvalidAuthToken"

#: So much of what Ray says of an error is told.
_SAID_MOST = 500


class HostActor:
    """What Ray runs on a host: it needs no CPU of Ray's, and only passes messages on. The agent
    that it starts is not of its process group, and outlives it."""

    def __init__(self, lease_seconds: float) -> None:
        self._path = start_agent(lease_seconds)
        self._local = threading.local()

    def exchange(self, body: bytes, seconds: float) -> bytes:
        """Pass a request on to the agent; the body of its answer."""
        return self._connection().exchange(body, seconds)

    def clock(self) -> int:
        """The monotonic clock of the host in ns."""
        return time.monotonic_ns()

    def _connection(self) -> SocketConnection:
        """A connection for the thread that Ray calls this in."""
        if not hasattr(self._local, "connection"):
            self._local.connection = SocketConnection(Path(self._path))
        connection: SocketConnection = self._local.connection
        return connection


class RayConnection:
    """A connection through the actor of a host."""

    def __init__(self, ray: Any, actor: Any) -> None:
        self._ray = ray
        self._actor = actor
        self._is_interrupted = False

    def exchange(self, body: bytes, seconds: float) -> bytes:
        """See :meth:`~concurve.hosts.connection.Connection.exchange`."""
        answer: bytes = self._get(self._actor.exchange.remote(body, seconds), seconds)
        return answer

    def clock(self) -> int:
        """See :meth:`~concurve.hosts.connection.Connection.clock`."""
        return int(self._get(self._actor.clock.remote(), QUICK_SECONDS))

    def another(self) -> Connection:
        """See :meth:`~concurve.hosts.connection.Connection.another`."""
        return RayConnection(self._ray, self._actor)

    def interrupt(self) -> None:
        """See :meth:`~concurve.hosts.connection.Connection.interrupt`."""
        self._is_interrupted = True

    def close(self) -> None:
        """See :meth:`~concurve.hosts.connection.Connection.close`."""

    def _get(self, reference: Any, seconds: float) -> Any:
        """The result of a call, within a time."""
        failures = self._ray.exceptions
        limit = seconds + MARGIN_SECONDS
        until = time.monotonic() + limit
        try:
            while (left := until - time.monotonic()) > 0 and not self._is_interrupted:
                with contextlib.suppress(failures.GetTimeoutError):
                    return self._ray.get(reference, timeout=min(LOOK_SECONDS, left))
            raise HostLostError(f"no answer within {limit:g} s")
        except failures.RayTaskError as error:
            cause = getattr(error, "cause", None)
            raise HostLostError(str(cause or error).splitlines()[0]) from error
        except failures.RayError as error:
            raise HostLostError(_first_line(error)) from error


@contextlib.contextmanager
def connected(inventory: Inventory, used: Sequence[Host]) -> Iterator[HostsEngine]:
    """An engine on the hosts that are used, through the Ray that runs on them.

    Raises:
        HostError: Ray is not installed or does not run, or a host is not there.
    """
    with _joined(inventory) as ray:
        check_nodes(ray.nodes(), inventory, used)
        connections = _place(ray, inventory, used)
        with (
            HostsEngine(inventory, connections, RayTasks(ray)) as engine,
            head_watched(inventory, engine.events),
        ):
            yield engine


def nodes_at(address: str) -> Inventory:
    """The nodes of a Ray cluster that others have started, as hosts.

    Raises:
        HostError: there is no such cluster, or nodes that are no hosts for measurements.
    """
    with _joined(_unknown(address)) as ray:
        return inventory_of_nodes(address, ray.nodes())


@contextlib.contextmanager
def tasks_at(address: str, import_from: Sequence[str]) -> Iterator[RayTasks]:
    """The tasks of a Ray cluster, whose workers import from these folders too.

    Raises:
        HostError: there is no such cluster.
    """
    variables = {"PYTHONPATH": os.pathsep.join(import_from)}
    with _joined(_unknown(address), {"env_vars": variables}) as ray:
        yield RayTasks(ray)


def _unknown(address: str) -> Inventory:
    """A cluster of which nothing but its address is known."""
    host, port = parse_address(address)
    head = Host(name="head", address=host)
    return Inventory(hosts=(head,), cluster=Cluster(head="head", port=port, address=address))


@contextlib.contextmanager
def _joined(inventory: Inventory, runtime: dict[str, Any] | None = None) -> Iterator[Any]:
    """Ray, joined by this process."""
    ray = _ray(inventory.cluster)
    _join(ray, inventory, runtime)
    try:
        yield ray
    finally:
        ray.shutdown()


def _address(inventory: Inventory) -> str:
    """Where Ray's head listens."""
    return inventory.cluster.address or mark_of(inventory)


@contextlib.contextmanager
def head_watched(
    inventory: Inventory, events: HostEvents, seconds: float = HEAD_SECONDS
) -> Iterator[None]:
    """Have it happen that the host of Ray's head is lost, once the head does not listen any more.
    Without it the hosts still answer; Ray would end this process later, and not say why."""
    ends = threading.Event()
    address, name = _address(inventory), inventory.cluster.head

    def watch() -> None:
        late = 0
        while not ends.wait(seconds):
            reason, is_sure = _gone(address)
            late = late + 1 if reason else 0
            if reason and (is_sure or late >= LATE_MAX):
                error = HostLostError(f"Ray's head at {address} is gone: {reason}")
                events.add(HostEvent(name, None, lost(name, error)))
                return

    thread = threading.Thread(target=watch, name="concurve-head", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()


def _gone(address: str) -> tuple[str, bool]:
    """Why nothing listens at an address, and whether that is sure; empty if something does, or if
    we cannot tell."""
    try:
        _own_address(address, QUICK_SECONDS)
    except TimeoutError as error:
        return error.strerror or str(error), False
    except ConnectionError as error:
        return error.strerror or str(error), True
    except OSError:
        return "", False
    return "", False


def _ray(cluster: Cluster) -> Any:
    """The module, with the settings that must be there before it is imported."""
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    if "RAY_AUTH_TOKEN" not in os.environ:
        os.environ.setdefault("RAY_AUTH_TOKEN_PATH", str(Path(cluster.token).expanduser()))
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_gcs_rpc_server_reconnect_timeout_s", str(WITHOUT_HEAD_SECONDS))
    # Without its head Ray would try for 5 s to report to it, before it lets this process end.
    os.environ.setdefault("RAY_task_events_shutdown_flush_timeout_ms", "300")
    try:
        import ray
    except ImportError as error:
        raise HostError("Ray is not installed here", _INSTALL) from error
    return ray


def _join(ray: Any, inventory: Inventory, runtime: dict[str, Any] | None = None) -> None:
    address = _address(inventory)
    head = inventory.host(inventory.cluster.head)
    own = bool(inventory.cluster.address)
    remedy = (
        f"ray status there; concurve on a machine of that cluster, in the network of {address}; "
        "Ray and Python of one version on all of them"
        if own
        else f"concurve hosts up FILE, and concurve on {head.name}, which has its head; Ray and "
        "Python of one version on all hosts"
    )
    here = check_reachable(address, remedy)
    options = {} if runtime is None else {"runtime_env": runtime}
    try:
        ray.init(
            address=address,
            _node_ip_address=here if own else head.address,
            namespace="concurve",
            log_to_driver=False,
            configure_logging=False,
            **options,
        )
    except Exception as error:  # Ray raises what it likes: of networks, of tokens, of versions
        if _is_of_token(error):
            raise HostError(
                f"Ray at {address} refuses the token of this machine",
                f"the same token on all hosts, in {inventory.cluster.token}, or in the file or the "
                "variable that RAY_AUTH_TOKEN_PATH and RAY_AUTH_TOKEN are here; after a change "
                "concurve hosts down FILE, then up",
            ) from error
        raise HostError(
            f"Ray at {address} cannot be joined from here: {_in_one_line(error)}", remedy
        ) from error


def check_reachable(address: str, remedy: str) -> str:
    """Refuse an address where nothing listens; our own address on the way there.

    Raises:
        HostError: names the address, and why.
    """
    try:
        return _own_address(address, REACH_SECONDS)
    except OSError as error:
        reason = error.strerror or str(error)
        raise HostError(f"Ray at {address} cannot be reached: {reason}", remedy) from error


def _own_address(address: str, seconds: float) -> str:
    """Our own address on the way to one where something listens."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port)), seconds) as stream:
        return str(stream.getsockname()[0])


def check_nodes(
    nodes: Sequence[dict[str, Any]], inventory: Inventory, used: Sequence[Host]
) -> None:
    """Refuse hosts that are not among the living nodes of Ray, or there twice.

    Raises:
        HostError: names the host.
    """
    for host in used:
        resource = resource_of(inventory, host)
        found = [
            node for node in nodes if node.get("Alive") and resource in node.get("Resources", {})
        ]
        if len(found) != 1:
            there = "is not there" if not found else f"is there {len(found)} times"
            raise HostError(
                f"host {host.name} {there}: {len(found)} nodes of Ray have the resource {resource}",
                "its ray start, and ray status"
                if inventory.cluster.address
                else "concurve hosts down FILE, then up: is the host reached by SSH?",
            )
        _check_address(host, str(found[0].get("NodeManagerAddress", "")))


def _check_address(host: Host, known: str) -> None:
    """Refuse a host that Ray knows by another address than the file, by which roles would look for
    it. A name is left to who resolves it; of a host alone, Ray puts its own address in the place of
    loopback."""
    with contextlib.suppress(ValueError):
        here = ipaddress.ip_address(same_address(host.address))
        if here != ipaddress.ip_address(known) and not here.is_loopback:
            raise HostError(
                f"host {host.name} has the address {host.address} here, and {known} in Ray",
                "the file with which Ray was started; or concurve hosts down FILE, then up",
            )


def _place(ray: Any, inventory: Inventory, used: Sequence[Host]) -> dict[str, Connection]:
    """An actor on each host, all of them placed at once."""
    remote = ray.remote(HostActor)
    actors = {
        host.name: remote.options(
            num_cpus=0,
            resources={resource_of(inventory, host): 0.001},
            max_concurrency=CALLS_AT_ONCE,
            max_restarts=0,
        ).remote(LEASE_SECONDS)
        for host in used
    }
    connections: dict[str, Connection] = {}
    for name, actor in actors.items():
        try:
            ray.get(actor.clock.remote(), timeout=PLACE_SECONDS)
        except ray.exceptions.RayError as error:
            raise HostError(
                f"host {name}: nothing can be started there: {_first_line(error)}",
                "concurve doctor on that host; its concurve and concurve-native",
            ) from error
        connections[name] = RayConnection(ray, actor)
    return connections


def _is_of_token(error: BaseException | None) -> bool:
    """Was it raised because of a token? Ray says so in what caused its error only."""
    while error is not None:
        if _WRONG_TOKEN in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _in_one_line(error: BaseException) -> str:
    """What an error says, and not its beginning alone: Ray says versions in lines of their own."""
    said = " ".join(str(error).split()) or type(error).__name__
    return said if len(said) <= _SAID_MOST else f"{said[: _SAID_MOST - 1]}…"


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
