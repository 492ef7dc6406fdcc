"""Connections to hosts through Ray: it places an actor on each and says when one is lost; the actor
starts the agent of its host and carries messages to it. Ray is imported only here, and only when a
run asks for hosts."""

from __future__ import annotations

import atexit
import contextlib
import functools
import ipaddress
import logging
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from concurve.definition.hosts_file import same_address
from concurve.definition.inventory import Cluster, Host, Inventory
from concurve.errors import ConcurveError, HostError, RunError
from concurve.hosts import commands, leaving, listening
from concurve.hosts.commands import RAY_LEAST_SAID, RAYLET_PORT, is_too_old, mark_of
from concurve.hosts.connection import (
    QUICK_SECONDS,
    Connection,
    HostLostError,
    NamedHostLostError,
    SocketConnection,
    lost,
)
from concurve.hosts.daemons import IS_FULL
from concurve.hosts.engine import HostsEngine
from concurve.hosts.guard import REMEDY, guarded
from concurve.hosts.host import ConnectedHost, HostEvent, HostEvents
from concurve.hosts.lease import LEASE_SECONDS, RENEWAL_SECONDS
from concurve.hosts.messages import Renew, packed
from concurve.hosts.names import check_names
from concurve.hosts.nodes import inventory_of_nodes, parse_address, refuse_public, resource_of
from concurve.hosts.ray_tasks import RayTasks, asked, result_of
from concurve.hosts.starting import start_agent

#: Seconds for the actor of a host to be there. For a host that is absent Ray would wait for ever.
PLACE_SECONDS = 30.0

#: Seconds for Ray's head to answer: Ray itself would try for minutes, or for ever if it is stopped.
REACH_SECONDS = 3.0

#: So often Ray tries to join its head, a second after the other, and so many seconds it looks for
#: the raylet of this machine: by itself it tries a wrong token 20 times, and looks for a minute.
JOIN_TRIES = 3
FIND_SECONDS = 3

#: Seconds that Ray may need beyond the time that an agent has. A host that is stopped or cut off is
#: named after these and :data:`QUICK_SECONDS`, before Ray itself has missed it.
MARGIN_SECONDS = 0.5

#: Seconds between two looks at whether an answer is still of use.
LOOK_SECONDS = 0.2

#: Seconds after which Ray ends a process that has lost its head: by then we have ended the trial
#: and said so.
WITHOUT_HEAD_SECONDS = 15

#: Seconds for Ray to let this process leave it, and where a host was lost. Ray itself would wait
#: for ever for a head or a raylet that is stopped, and the user for the name of the host.
LEAVE_SECONDS = 10.0
LEAVE_BROKEN_SECONDS = 0.5

#: Requests to an actor that may be under way at once: one asks for news all the time.
CALLS_AT_ONCE = 4

_INSTALL = "pip install 'concurve[ray]'"

#: What Ray says of a token that is missing or not its own.
_WRONG_TOKEN = "InvalidAuthToken"

#: What it says where this machine has none.
_NO_TOKEN = "cannot be opened or is empty"

#: What Ray says where no living raylet has the address of this machine.
_NO_RAYLET = "No node info found matching"

#: What Ray says of an actor that it has ended because it takes this machine for dead.
_WE_ARE_LOST = "its owner has died"

#: Why an actor died, as Ray says it after a line that is the same for all.
_DIED = re.compile(r"The actor (?:is dead|died) because ([^.\n]+)")

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

    def __init__(
        self, ray: Any, actor: Any, look: Callable[[str], None] = lambda said: None
    ) -> None:
        """``look`` is given what Ray says, and raises where it is not this host that was lost."""
        self._ray = ray
        self._actor = actor
        self._look = look
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
        return RayConnection(self._ray, self._actor, self._look)

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
            if self._is_interrupted:
                raise HostLostError("its connection was given up")
            raise HostLostError(f"no answer within {limit:g} s")
        except failures.RayTaskError as error:
            cause = getattr(error, "cause", None)
            raise HostLostError(str(cause or error).splitlines()[0]) from error
        except failures.RayError as error:
            self._look(str(error))
            raise HostLostError(_reason(error)) from error


@contextlib.contextmanager
def connected(inventory: Inventory, used: Sequence[Host]) -> Iterator[HostsEngine]:
    """An engine on the hosts that are used, through the Ray that runs on them.

    Raises:
        HostError: Ray is not installed or does not run, or a host is not there.
    """
    events = HostEvents()
    with contextlib.ExitStack() as stack:
        with _before_the_run():
            ray, vital = stack.enter_context(_joined(inventory, events))
            engine = stack.enter_context(_engine(ray, vital, inventory, used, events))
        yield engine


def each_connected(inventory: Inventory) -> Iterator[tuple[str, ConnectedHost | ConcurveError]]:
    """Each host of an inventory, connected by itself, or why it is not: one that is lost is none of
    the others' business.

    Raises:
        HostError: Ray is not installed or does not run.
    """
    with contextlib.ExitStack() as stack:
        with _before_the_run():
            ray, vital = stack.enter_context(_joined(inventory, HostEvents()))
        for host in inventory.hosts:
            with contextlib.ExitStack() as own:
                try:
                    with _before_the_run():
                        engine = _engine(ray, vital, inventory, [host], HostEvents())
                        found = own.enter_context(engine).hosts[host.name]
                except (HostError, RunError) as error:
                    yield host.name, error
                else:
                    yield host.name, found


@contextlib.contextmanager
def _engine(
    ray: Any, vital: Vital, inventory: Inventory, used: Sequence[Host], events: HostEvents
) -> Iterator[HostsEngine]:
    """An engine on hosts of a Ray that was joined."""
    check_names(msgspec.structs.replace(inventory, hosts=tuple(used)))
    check_nodes(asked(ray.nodes, vital.check), inventory, used)
    tasks = RayTasks(ray, vital.check, lambda: len(events.lost))
    actors = _placed(ray, inventory, used, vital)
    with _renewed(ray, actors.values()):
        connections = _there(ray, actors, inventory, used, vital)
        engine = HostsEngine(inventory, connections, tasks, events)
    with engine:
        check_private(engine)
        yield engine


def nodes_at(address: str) -> Inventory:
    """The nodes of a Ray cluster that others have started, as hosts.

    Raises:
        HostError: there is no such cluster, or nodes that are no hosts for measurements.
    """
    with _before_the_run(), _joined(_unknown(address), HostEvents()) as (ray, vital):
        return inventory_of_nodes(address, asked(ray.nodes, vital.check))


@contextlib.contextmanager
def tasks_at(address: str, import_from: Sequence[str]) -> Iterator[RayTasks]:
    """The tasks of a Ray cluster, whose workers import from these folders too.

    Raises:
        HostError: there is no such cluster.
    """
    variables = {"PYTHONPATH": os.pathsep.join(import_from)}
    with contextlib.ExitStack() as stack:
        with _before_the_run():
            joined = _joined(_unknown(address), HostEvents(), {"env_vars": variables})
            ray, vital = stack.enter_context(joined)
        yield RayTasks(ray, vital.check)


def _unknown(address: str) -> Inventory:
    """A cluster of which nothing but its address is known."""
    host, port = parse_address(address)
    head = Host(name="head", address=host)
    return Inventory(hosts=(head,), cluster=Cluster(head="head", port=port, address=address))


@contextlib.contextmanager
def _before_the_run() -> Iterator[None]:
    """Have a loss told without a run to resume: nothing is measured yet."""
    try:
        yield
    except HostLostError as error:
        raise NamedHostLostError(error.what, REMEDY) from error


@contextlib.contextmanager
def _joined(
    inventory: Inventory, events: HostEvents, runtime: dict[str, Any] | None = None
) -> Iterator[tuple[Any, Vital]]:
    """Ray, joined by this process, and what is vital in it, which is watched."""
    ray = _ray(inventory.cluster)
    _refuse_if_leaving()
    is_joined, seconds = False, LEAVE_SECONDS
    try:
        here, places = _looked_at(inventory)
        first = Vital(places, inventory.cluster.head, HostEvents())
        with vital_watched(first):
            _join(ray, inventory, here, first, runtime)
            is_joined = True
            vital = asked(functools.partial(_vital, inventory, ray, events), first.check)
        with vital_watched(vital):
            yield ray, vital
    except HostLostError:
        seconds = LEAVE_BROKEN_SECONDS
        raise
    finally:
        if is_joined:
            _leave(ray, seconds)


def _leave(ray: Any, seconds: float) -> None:
    """Leave Ray, within a time. Where it cannot be left it is not asked again when this process
    ends."""
    thread = threading.Thread(target=ray.shutdown, name=leaving.THREAD, daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        atexit.unregister(ray.shutdown)


def _refuse_if_leaving() -> None:
    """Refuse to join Ray where this process still waits for it: it would wait for ever.

    Raises:
        HostError: it does.
    """
    if leaving.is_waited_for():
        raise HostError(
            "this process still waits for Ray, whose head or whose raylet here does not answer",
            "concurve hosts down FILE, then up; then a new process",
        )


def _address(inventory: Inventory) -> str:
    """Where Ray's head listens."""
    return inventory.cluster.address or mark_of(inventory)


class Vital:
    """What no run can go on without, on whichever hosts it computes: Ray's head, and the raylet of
    the laboratory's own host. Without them the hosts may still answer; Ray would end this process
    later, or wait for ever, and not say why. ``places`` has the host and what it is, by the
    address; ``own`` is the laboratory's host."""

    def __init__(self, places: Mapping[str, tuple[str, str]], own: str, events: HostEvents) -> None:
        self.places = places
        self.own = own
        self._events = events
        self._lost: HostLostError | None = None

    def check(self) -> None:
        """Go on if nothing is known to be lost.

        Raises:
            HostLostError: it is; the error names the host.
        """
        if self._lost is not None:
            raise self._lost

    def look(self, said: str) -> None:
        """Go on after an error of Ray's about some host, unless that follows from the loss of what
        is vital: with it Ray ends what runs on hosts that are there.

        Raises:
            HostLostError: it does; the error names the host.
        """
        for address, (host, what) in self.places.items():
            reason, is_sure = listening.gone(address, LOOK_SECONDS)
            if is_sure:
                self.lose(host, f"{what} at {address} is gone: {reason}")
        if _WE_ARE_LOST in said:
            self.lose(self.own, "Ray takes it for dead, and has ended what ran for this laboratory")
        self.check()

    def lose(self, host: str, what: str) -> None:
        """Have it happen that a host is lost; the first is the cause of others."""
        if self._lost is None:
            self._lost = lost(host, HostLostError(what))
            self._events.add(HostEvent(host, None, self._lost))


@contextlib.contextmanager
def vital_watched(
    vital: Vital,
    seconds: float = listening.LOOK_SECONDS,
    answer_seconds: float = listening.ANSWER_SECONDS,
) -> Iterator[Vital]:
    """Have it happen that a host is lost, once what is vital there does not answer any more."""

    def tell(address: str, reason: str) -> None:
        host, what = vital.places[address]
        vital.lose(host, f"{what} at {address} is gone: {reason}")

    with contextlib.ExitStack() as stack:
        for address in vital.places:
            told = functools.partial(tell, address)
            stack.enter_context(listening.watched(address, told, seconds, answer_seconds))
        yield vital


def _vital(inventory: Inventory, ray: Any, events: HostEvents) -> Vital:
    """What is vital in the Ray that was joined."""
    places = {_address(inventory): (inventory.cluster.head, "Ray's head")}
    own, node_id = inventory.cluster.head, ray.get_runtime_context().get_node_id()
    for node in ray.nodes():
        if node.get("NodeID") == node_id and node.get("NodeManagerPort"):
            ip = str(node["NodeManagerAddress"])
            names = [host.name for host in inventory.hosts if same_address(host.address) == ip]
            own = names[0] if names else ip
            places[f"{ip}:{node['NodeManagerPort']}"] = (own, "the raylet of this machine")
    return Vital(places, own, events)


def _ray(cluster: Cluster) -> Any:
    """The module, with the settings that must be there before it is imported."""
    os.environ.setdefault("RAY_AUTH_MODE", "token")
    if "RAY_AUTH_TOKEN" not in os.environ:
        os.environ.setdefault("RAY_AUTH_TOKEN_PATH", str(Path(cluster.token).expanduser()))
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    os.environ.setdefault("RAY_gcs_rpc_server_reconnect_timeout_s", str(WITHOUT_HEAD_SECONDS))
    # Without its head Ray would try for 5 s to report to it, before it lets this process end.
    os.environ.setdefault("RAY_task_events_shutdown_flush_timeout_ms", "300")
    os.environ.setdefault("RAY_NUM_REDIS_GET_RETRIES", str(JOIN_TRIES))
    os.environ.setdefault("RAY_gcs_server_request_timeout_seconds", str(FIND_SECONDS))
    try:
        import ray
    except ImportError as error:
        raise HostError("Ray is not installed here", _INSTALL) from error
    if is_too_old(ray.__version__):
        raise HostError(
            f"Ray {ray.__version__} here lets in whoever reaches it: it knows no tokens",
            f"Ray {RAY_LEAST_SAID} or newer on all hosts, of one version: {_INSTALL}",
        )
    _silence(ray)
    return ray


def _silence(ray: Any) -> None:
    """Have Ray print nothing: what failed is said in our words, and its own logs are in its folder.
    Of a raylet that was killed it would print the log, of a wrong token a line for each try."""
    logging.getLogger("ray").setLevel(logging.CRITICAL + 1)
    worker: Any = getattr(getattr(ray, "_private", None), "worker", None)
    if hasattr(worker, "print_to_stdstream"):  # it takes no other setting
        worker.print_to_stdstream = lambda *_, **__: None


def _looked_at(inventory: Inventory) -> tuple[str, dict[str, tuple[str, str]]]:
    """Look whether Ray answers where it is to be joined: our own address on the way to its head,
    and what is vital there, by its address. Where the raylet of this machine listens is known
    before only if ``concurve hosts up`` has started it.

    Raises:
        HostError: it does not answer; the error names the host.
    """
    address, cluster, remedy = _address(inventory), inventory.cluster, _remedy(inventory)
    places = {address: (cluster.head, "Ray's head")}
    with _naming(inventory):
        here = check_reachable(address, remedy)
        raylet = f"{inventory.host(cluster.head).address}:{cluster.port + RAYLET_PORT}"
        if not cluster.address and is_answered(raylet, remedy):
            places[raylet] = (cluster.head, "the raylet of this machine")
    return here, places


def _join(
    ray: Any,
    inventory: Inventory,
    here: str,
    vital: Vital,
    runtime: dict[str, Any] | None = None,
) -> None:
    """Join Ray; ``here``: our own address on the way to its head."""
    own = bool(inventory.cluster.address)
    options = {} if runtime is None else {"runtime_env": runtime}
    join = functools.partial(
        ray.init,
        address=_address(inventory),
        _node_ip_address=here if own else inventory.host(inventory.cluster.head).address,
        namespace="concurve",
        log_to_driver=False,
        configure_logging=False,
        **options,
    )
    with _naming(inventory), guarded(vital.places), _unheard():
        try:
            asked(join, vital.check, leaving.THREAD)
        except (HostLostError, KeyboardInterrupt, SystemExit):
            atexit.unregister(ray.shutdown)
            raise
        except Exception as error:  # Ray raises what it likes: of networks, of tokens, of versions
            raise _refusal(error, inventory) from error


@contextlib.contextmanager
def _unheard() -> Iterator[None]:
    """Have nothing written to standard error: before Ray has joined it obeys no setting of its log,
    and writes a line for each try. What ends this process meanwhile is told by the guard."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError, ValueError):  # there is none
            sys.stderr.flush()
            own = os.dup(2)
            stack.callback(os.close, own)
            stack.callback(os.dup2, own, 2)
            null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
            stack.callback(os.close, null)
            os.dup2(null, 2)
        yield


def _remedy(inventory: Inventory) -> str:
    """What to try where Ray cannot be joined."""
    if inventory.cluster.address:
        return (
            "ray status there; concurve on a machine of that cluster, in the network of "
            f"{inventory.cluster.address}; Ray and Python of one version on all of them"
        )
    return (
        f"concurve hosts down FILE, then up, and concurve on {inventory.cluster.head}, which has "
        "its head; Ray and Python of one version on all hosts"
    )


@contextlib.contextmanager
def _naming(inventory: Inventory) -> Iterator[None]:
    """Have refusals begin with the name of the head's host, if its name is known."""
    try:
        yield
    except HostError as error:
        if inventory.cluster.address:
            raise
        raise HostError(f"host {inventory.cluster.head}: {error.what}", error.remedy) from error


def _refusal(error: Exception, inventory: Inventory) -> HostError:
    """Why Ray could not be joined."""
    address, remedy = _address(inventory), _remedy(inventory)
    if _says(error, _WRONG_TOKEN):
        return HostError(
            f"Ray at {address} refuses the token of this machine",
            f"the same token on all hosts, in {inventory.cluster.token}, or in the file or the "
            "variable that RAY_AUTH_TOKEN_PATH and RAY_AUTH_TOKEN are here; after a change "
            "concurve hosts down FILE, then up",
        )
    if _says(error, _NO_TOKEN):
        return HostError(
            f"this machine has no token for Ray at {address}: "
            f"{_token_place(inventory)} is missing or empty",
            "the token of that cluster there, for your user alone; RAY_AUTH_TOKEN_PATH=FILE; or "
            "RAY_AUTH_MODE as that cluster has it",
        )
    if _says(error, _NO_RAYLET):
        return HostError(f"Ray at {address} has no raylet on this machine, or that is gone", remedy)
    return HostError(f"Ray at {address} cannot be joined from here: {_in_one_line(error)}", remedy)


def _token_place(inventory: Inventory) -> str:
    """The file in which Ray looks for its token."""
    return os.environ.get("RAY_AUTH_TOKEN_PATH", inventory.cluster.token)


def check_reachable(address: str, remedy: str) -> str:
    """Refuse an address where no Ray answers; our own address on the way there.

    Raises:
        HostError: names the address, and why.
    """
    try:
        answer = listening.answer_at(address, REACH_SECONDS)
    except listening.SilentError as error:
        raise _silent(address, error, remedy) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise HostError(f"Ray at {address} cannot be reached: {reason}", remedy) from error
    if not answer.is_of_ray:
        said = answer.said.decode("ascii", errors="replace").split("\n")[0].strip()
        raise HostError(
            f"what listens at {address} is no Ray: it says {said!r}",
            f"the port of Ray's head, as `ray start --head` prints it; {remedy}",
        )
    return answer.own_address


def is_answered(address: str, remedy: str) -> bool:
    """Does something answer at an address? One where connections are accepted and nothing is said
    is refused: Ray ends a process whose raylet is such, without a word of ours.

    Raises:
        HostError: names the address.
    """
    try:
        listening.answer_at(address, REACH_SECONDS)
    except listening.SilentError as error:
        raise _silent(address, error, remedy) from error
    except OSError:  # the port is another one where Ray was started in another way
        return False
    return True


def _silent(address: str, error: listening.SilentError, remedy: str) -> HostError:
    return HostError(
        f"Ray at {address} does not answer: {error}",
        f"is its process stopped, or its machine? {remedy}",
    )


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


def check_private(engine: HostsEngine) -> None:
    """Refuse a host that has a public address beside that by which others reach it.

    Raises:
        HostError: names the host and the address.
    """
    for name, host in engine.hosts.items():
        if not engine.inventory.host(name).public:
            refuse_public(name, host.description.public)


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


def _placed(ray: Any, inventory: Inventory, used: Sequence[Host], vital: Vital) -> dict[str, Any]:
    """An actor on each host, all of them begun at once."""
    remote = ray.remote(HostActor)
    options = {"num_cpus": 0, "max_concurrency": CALLS_AT_ONCE, "max_restarts": 0}

    def place(host: Host) -> Any:
        resources = {resource_of(inventory, host): 0.001}
        return remote.options(**options, resources=resources).remote(LEASE_SECONDS)

    return {host.name: asked(functools.partial(place, host), vital.check) for host in used}


@contextlib.contextmanager
def _renewed(ray: Any, actors: Iterable[Any]) -> Iterator[None]:
    """Have the lease of each agent renewed from its start on, while those of slower hosts start.
    What an actor is asked for before it is there, it does when it is."""
    ends, body = threading.Event(), packed(Renew())

    def ask(actor: Any) -> Any:
        return actor.exchange.remote(body, QUICK_SECONDS)

    def renew() -> None:
        begun = [(actor, ask(actor)) for actor in actors]
        while not ends.wait(RENEWAL_SECONDS):
            for number, (actor, reference) in enumerate(begun):
                if ray.wait([reference], timeout=0)[0]:
                    begun[number] = (actor, ask(actor))

    thread = threading.Thread(target=renew, name="concurve-renews", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join(RENEWAL_SECONDS * 10)


def _there(
    ray: Any,
    actors: Mapping[str, Any],
    inventory: Inventory,
    used: Sequence[Host],
    vital: Vital,
) -> dict[str, Connection]:
    """The connections to actors, once all are there."""

    def check() -> None:
        """Ray would wait on for an actor on a host that is gone."""
        vital.check()
        check_nodes(asked(ray.nodes, vital.check), inventory, used)

    connections: dict[str, Connection] = {}
    for name, actor in actors.items():
        try:
            result_of(ray, actor.clock.remote(), PLACE_SECONDS, check)
        except ray.exceptions.RayError as error:
            vital.look(str(error))
            if full := _disk_is_full(inventory, name):
                raise full from error
            raise HostError(
                f"host {name}: nothing can be started there: {_reason(error)}",
                "concurve doctor on that host; its concurve and concurve-native; or "
                "concurve hosts down FILE, then up",
            ) from error
        connections[name] = RayConnection(ray, actor, vital.look)
    return connections


def _disk_is_full(inventory: Inventory, name: str) -> HostError | None:
    """Is that why nothing can be started on a host? Ray takes it for a lack of memory. A cluster of
    others says nothing of how to log in."""
    if inventory.cluster.address:
        return None
    (found,) = commands.run_each([commands.make_folder(inventory, inventory.host(name))])
    return found if isinstance(found, HostError) and IS_FULL in found.what else None


def _says(error: BaseException | None, what: str) -> bool:
    """Does an error say this? Ray says much in what caused its error only."""
    while error is not None:
        if what in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _in_one_line(error: BaseException) -> str:
    """What an error says, and not its beginning alone: Ray says versions in lines of their own."""
    said = " ".join(str(error).split()) or type(error).__name__
    return said if len(said) <= _SAID_MOST else f"{said[: _SAID_MOST - 1]}…"


def _reason(error: BaseException) -> str:
    """Why an actor gives no answer: what Ray says of its death, else the first line."""
    said = str(error)
    if isinstance(error.__cause__, HostError):
        return error.__cause__.what
    if type(error).__name__ == "ActorUnavailableError":
        return "Ray does not reach what runs there"
    if found := _DIED.search(said):
        return f"Ray's actor there died because {found[1]}"
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
