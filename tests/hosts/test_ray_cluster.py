"""What is asked of Ray, against a stand-in of its interface: no Ray is needed, and none is tested.
``test_ray.py`` has the tests with a real one."""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import socket
import sys
import threading
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from concurve.definition.inventory import Host, Inventory
from concurve.errors import HostError
from concurve.hosts import commands, leaving, ray_cluster
from concurve.hosts.connection import QUICK_SECONDS, HostLostError, ask
from concurve.hosts.host import HostEvents
from concurve.hosts.lease import RENEWAL_SECONDS
from concurve.hosts.messages import Renew
from concurve.hosts.ray_cluster import RayConnection, Vital, check_nodes
from concurve.hosts.starting import agent_environment
from tests.definition.test_hosts_file import lab
from tests.helpers.agents import inventory_of


@pytest.fixture(autouse=True)
def _without_dns(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hosts of a test have names that nobody knows."""
    monkeypatch.setattr(ray_cluster, "check_names", lambda inventory: None)


class RayError(Exception): ...


class GetTimeoutError(RayError): ...


class RayTaskError(RayError):
    def __init__(self, cause: Exception) -> None:
        super().__init__(f"traceback\n{cause}")
        self.cause = cause


class Reference:
    """The result of a call, or what it raises."""

    def __init__(self, value: Any) -> None:
        self.value = value


class Waited:
    """A clock that moves only where a question waits in vain, so that no test does."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


CLOCK = Waited()


class Ray(types.ModuleType):
    """As much of Ray's interface as is used."""

    def __init__(self, nodes: list[dict[str, Any]] | None = None) -> None:
        super().__init__("ray")
        self.__version__ = "2.60.0"
        self.exceptions = types.SimpleNamespace(
            RayError=RayError, GetTimeoutError=GetTimeoutError, RayTaskError=RayTaskError
        )
        self.given: dict[str, Any] = {}
        self.timeouts: list[float] = []
        self.ends = 0
        self.own = "own"
        self._nodes = nodes or []

    def init(self, **given: Any) -> None:
        self.given = given

    def nodes(self) -> list[dict[str, Any]]:
        return self._nodes

    def get_runtime_context(self) -> Any:
        return types.SimpleNamespace(get_node_id=lambda: self.own)

    def get(self, reference: Reference, timeout: float) -> Any:
        self.timeouts.append(timeout)
        if isinstance(reference.value, GetTimeoutError):
            CLOCK.seconds += timeout
        if isinstance(reference.value, BaseException):
            raise reference.value
        return reference.value

    def shutdown(self) -> None:
        self.ends += 1


class Method:
    def __init__(self, value: Any) -> None:
        self._value = value

    def remote(self, *_: Any) -> Reference:
        return Reference(self._value)


def connection(value: Any) -> tuple[RayConnection, Ray]:
    ray = Ray()
    actor = types.SimpleNamespace(exchange=Method(value), clock=Method(value))
    return RayConnection(ray, actor), ray


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Waited:
    monkeypatch.setattr(ray_cluster, "time", CLOCK)
    monkeypatch.setattr(CLOCK, "seconds", 0.0)
    return CLOCK


@pytest.fixture
def fake_ray(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ray]:
    ray = Ray(nodes=[node("server1")])
    monkeypatch.setattr(ray_cluster, "check_reachable", lambda address, remedy: "10.77.0.9")
    monkeypatch.setattr(ray_cluster, "is_answered", lambda address, remedy: False)
    monkeypatch.setattr(ray_cluster, "guarded", contextlib.nullcontext)
    monkeypatch.setitem(sys.modules, "ray", ray)
    for name in ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH", "RAY_USAGE_STATS_ENABLED",
                 "RAY_gcs_rpc_server_reconnect_timeout_s",
                 "RAY_task_events_shutdown_flush_timeout_ms", "RAY_NUM_REDIS_GET_RETRIES",
                 "RAY_gcs_server_request_timeout_seconds"):  # fmt: skip
        monkeypatch.setenv(name, "of the test")
        monkeypatch.delenv(name)
    yield ray


def node(host: str, alive: bool = True) -> dict[str, Any]:
    return {"Alive": alive, "Resources": {f"host:{host}": 1.0, "CPU": 2.0}}


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (GetTimeoutError("late"), "host a was lost: no answer within"),
        (RayTaskError(HostLostError("the agent at x is gone", "")), "the agent at x is gone"),
        (
            RayError("The actor died unexpectedly\nmore"),
            "host a was lost: The actor died unexpectedly",
        ),
        (
            RayError(
                "The actor died unexpectedly before finishing this task.\n\tip: 10.77.0.2\n"
                "The actor is dead because its node has died. Node Id: 5"
            ),
            "host a was lost: Ray's actor there died because its node has died\n",
        ),
        (RayError(""), "host a was lost: RayError"),
    ],
)
def test_every_loss_names_the_host_and_what_to_try(error: Exception, says: str) -> None:
    lost, _ = connection(error)
    with pytest.raises(HostLostError, match=says) as raised:
        ask(lost, "a", Renew())
    assert "concurve resume last" in raised.value.remedy
    assert "down FILE, then up" in raised.value.remedy, "the other hosts still have their Ray"


def test_no_call_waits_for_ever() -> None:
    found, ray = connection(5)
    assert found.clock() == 5
    assert all(0 < timeout < 60 for timeout in ray.timeouts)


def test_a_silent_host_is_named_within_seven_seconds(clock: Waited) -> None:
    """The question for news waits; then the laboratory still has to end what runs elsewhere."""
    silent, _ = connection(GetTimeoutError("late"))
    with pytest.raises(HostLostError, match="no answer within"):
        silent.exchange(b"", RENEWAL_SECONDS + QUICK_SECONDS)
    assert RENEWAL_SECONDS < clock.seconds < 5.5


def test_hosts_must_be_living_nodes_of_ray() -> None:
    used = [Host(name="a", address="h")]
    inventory = inventory_of({"a": "h"})
    check_nodes([node("b"), node("a")], inventory, used)
    for nodes, says in (
        ([], "is not there"),
        ([node("a", alive=False)], "is not there"),
        ([node("a"), node("a")], "is there 2 times"),
    ):
        with pytest.raises(HostError, match=f"host a {says}"):
            check_nodes(nodes, inventory, used)


def test_a_host_of_another_address_than_the_file_says_is_refused() -> None:
    """The roles of a study would look for it there."""
    used = [Host(name="a", address="10.0.0.1")]
    inventory = inventory_of({"a": "10.0.0.1"})
    there = {**node("a"), "NodeManagerAddress": "10.0.0.1"}
    check_nodes([there], inventory, used)
    with pytest.raises(HostError, match=r"address 10\.0\.0\.1 here, and 10\.0\.0\.2 in Ray"):
        check_nodes([{**there, "NodeManagerAddress": "10.0.0.2"}], inventory, used)


def test_ray_is_joined_with_its_token_and_without_its_dashboard(fake_ray: Ray) -> None:
    inventory = lab()
    with (
        pytest.raises(HostError, match="host load1 is not there"),
        ray_cluster.connected(inventory, inventory.hosts),
    ):
        pass
    assert fake_ray.given["address"] == "10.77.0.1:7000"
    assert fake_ray.given["_node_ip_address"] == "10.77.0.1"
    assert fake_ray.ends == 1, "left again"
    assert os.environ["RAY_AUTH_MODE"] == "token"
    assert os.environ["RAY_AUTH_TOKEN_PATH"] == str(Path("~/.ray/auth_token").expanduser())


def test_each_host_is_listed_though_one_is_not_there(
    fake_ray: Ray, monkeypatch: pytest.MonkeyPatch
) -> None:
    def placed(*_: object) -> None:
        raise HostLostError("host server1 was lost")

    monkeypatch.setattr(ray_cluster, "_placed", placed)
    inventory = lab()
    found = dict(ray_cluster.each_connected(inventory))
    assert [*found] == ["server1", "load1", "load2"]
    assert "host server1 was lost" in str(found["server1"])
    assert "host load1 is not there" in str(found["load1"])
    assert "host load2 is not there" in str(found["load2"])
    assert fake_ray.ends == 1, "left again"


def test_a_cluster_that_cannot_be_joined_is_an_error_of_the_host(
    fake_ray: Ray, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: Any) -> None:
        raise RuntimeError("Version mismatch: the cluster was started with:\n  Ray: 2.52")

    monkeypatch.setattr(fake_ray, "init", refuse)
    with (
        pytest.raises(HostError, match="cannot be joined from here: Version mismatch") as refused,
        ray_cluster.connected(lab(), lab().hosts),
    ):
        pass
    assert "started with: Ray: 2.52" in refused.value.what, "the version is in another line"
    assert "one version on all hosts" in refused.value.remedy


def test_a_wrong_token_is_named(fake_ray: Ray, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray itself says it in what caused its error alone."""

    def refuse(**_: Any) -> None:
        try:
            raise RuntimeError("RPC error: InvalidAuthToken: missing or incorrect")
        except RuntimeError as error:
            raise ConnectionError("Failed to connect to Ray cluster at 10.77.0.1:7000") from error

    monkeypatch.setattr(fake_ray, "init", refuse)
    with (
        pytest.raises(HostError, match="refuses the token") as refused,
        ray_cluster.connected(lab(), lab().hosts),
    ):
        pass
    assert "~/.ray/auth_token" in refused.value.remedy


def test_a_token_that_is_missing_is_named(fake_ray: Ray, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray's own words are long, and end before the remedy."""
    monkeypatch.setenv("RAY_AUTH_TOKEN_PATH", "/nowhere/token")

    def refuse(**_: Any) -> None:
        said = "RAY_AUTH_TOKEN_PATH is set but file cannot be opened or is empty: /nowhere/token."
        raise RuntimeError(f"{said} Ensure that the token for the cluster is available. " * 9)

    monkeypatch.setattr(fake_ray, "init", refuse)
    with (
        pytest.raises(HostError, match="this machine has no token for Ray at") as refused,
        ray_cluster.connected(lab(), lab().hosts),
    ):
        pass
    assert "/nowhere/token is missing or empty" in refused.value.what
    assert len(refused.value.what) < 200 and "RAY_AUTH_TOKEN_PATH=FILE" in refused.value.remedy


def test_a_raylet_of_this_machine_that_does_not_answer_is_refused(
    fake_ray: Ray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To join Ray there would end this process, without a word of ours."""

    def refuse(address: str, remedy: str) -> None:
        raise HostError(f"Ray at {address} does not answer", remedy)

    monkeypatch.setattr(ray_cluster, "is_answered", refuse)
    with (
        pytest.raises(HostError, match=r"host server1: Ray at 10\.77\.0\.1:7001 does") as refused,
        ray_cluster.connected(lab(), lab().hosts),
    ):
        pass
    assert "concurve hosts down FILE, then up" in refused.value.remedy
    assert not fake_ray.given, "not joined"


def test_without_ray_the_remedy_is_its_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    with (
        pytest.raises(HostError, match="Ray is not installed") as refused,
        ray_cluster.connected(lab(), lab().hosts),
    ):
        pass
    assert refused.value.remedy == "pip install 'concurve[ray]'"


def test_a_ray_that_knows_no_tokens_is_not_joined(fake_ray: Ray) -> None:
    fake_ray.__version__ = "2.51.2"
    with (
        pytest.raises(HostError, match=r"Ray 2\.51\.2 here lets in whoever reaches it") as refused,
        ray_cluster.connected(lab(), lab().hosts),
    ):
        pass
    assert "Ray 2.52 or newer on all hosts" in refused.value.remedy
    assert not fake_ray.given, "not joined"


def test_a_host_with_a_public_address_of_which_its_owner_has_not_told(
    fake_ray: Ray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As seen on the host itself: the address by which it is reached is a private one."""

    class Engine(contextlib.nullcontext[None]):
        def __init__(self, inventory: Inventory, *_: object) -> None:
            super().__init__()
            described = types.SimpleNamespace(public=("9.9.9.9",))
            self.inventory = inventory
            self.hosts = {"a": types.SimpleNamespace(description=described)}

        def __enter__(self) -> Any:
            return self

    monkeypatch.setattr(ray_cluster, "HostsEngine", Engine)
    monkeypatch.setattr(ray_cluster, "_placed", lambda *_: {})
    fake_ray._nodes = [node("a")]
    inventory = inventory_of({"a": "10.0.0.1"})
    monkeypatch.setattr(ray_cluster, "check_nodes", lambda *_: None)
    with (
        pytest.raises(HostError, match=r"host a: 9\.9\.9\.9 is a public address") as refused,
        ray_cluster.connected(inventory, inventory.hosts),
    ):
        raise AssertionError("a run would begin")
    assert "public = true" in refused.value.remedy
    told = msgspec.structs.replace(inventory.hosts[0], public=True)
    inventory = msgspec.structs.replace(inventory, hosts=(told,))
    with ray_cluster.connected(inventory, inventory.hosts) as engine:
        assert engine.inventory == inventory


def test_measured_programs_get_nothing_that_ray_set() -> None:
    given = {"RAY_JOB_ID": "1", "OMP_NUM_THREADS": "1", "PATH": "/bin", "MY_RAY": "x"}
    assert agent_environment(given) == {"PATH": "/bin", "MY_RAY": "x"}


def test_the_nodes_of_a_cluster_that_runs_are_asked_for(fake_ray: Ray) -> None:
    fake_ray._nodes = [
        {"Alive": True, "NodeManagerAddress": "10.0.0.7", "NodeManagerHostname": "seven",
         "Resources": {"CPU": 2.0, "node:10.0.0.7": 1.0}}
    ]  # fmt: skip
    found = ray_cluster.nodes_at("10.0.0.7:6379")
    assert [host.name for host in found.hosts] == ["seven"]
    assert found.cluster.address == fake_ray.given["address"] == "10.0.0.7:6379"
    assert fake_ray.given["_node_ip_address"] == "10.77.0.9", "our own address on the way there"
    assert fake_ray.ends == 1
    check_nodes(fake_ray.nodes(), found, found.hosts)


def test_a_cluster_that_does_not_listen_is_refused_at_once() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(HostError, match=f"Ray at {address} cannot be reached") as refused:
            ray_cluster.check_reachable(address, "start it")
    assert refused.value.remedy == "start it"


def vital(address: str, events: HostEvents) -> Vital:
    """The head of Ray at an address, on the laboratory's own host."""
    return Vital({address: ("server1", "Ray's head")}, "server1", events)


def test_a_head_that_is_gone_is_the_loss_of_its_host() -> None:
    """Ray would end the process some seconds later, without a word of ours."""
    events = HostEvents()
    with socket.create_server(("127.0.0.1", 0)) as head:
        address = f"127.0.0.1:{head.getsockname()[1]}"
    with (
        ray_cluster.vital_watched(vital(address, events), seconds=0.01) as watched,
        pytest.raises(HostLostError, match="host server1 was lost: Ray's head") as told,
    ):
        events.next(60.0)
    assert "concurve resume last" in told.value.remedy
    with pytest.raises(HostLostError, match="host server1 was lost"):
        watched.check()


def test_a_head_that_is_stopped_is_the_loss_of_its_host() -> None:
    """The kernel accepts connections for it."""
    events = HostEvents()
    with socket.create_server(("127.0.0.1", 0)) as head:
        address = f"127.0.0.1:{head.getsockname()[1]}"
        with (
            ray_cluster.vital_watched(vital(address, events), 0.01, 0.05),
            pytest.raises(HostLostError, match=r"host server1 was lost: .* says nothing"),
        ):
            events.next(60.0)


@pytest.mark.parametrize(
    ("is_gone", "said", "what"),
    [
        (True, "The actor died", "host server1 was lost: Ray's head at"),
        (
            False,
            "The actor died\nThe actor is dead because its owner has died.",
            "host server1 was lost: Ray takes it for dead",
        ),
        (
            False,
            "The actor died\nThe actor died because its node has died",
            "host b was lost: Ray's actor there died because its node has died",
        ),
    ],
)
def test_a_host_that_ray_ends_for_the_loss_of_another_is_not_named_in_its_place(
    is_gone: bool, said: str, what: str
) -> None:
    """Ray ends what it runs on all hosts: the first to be missed may be any of them."""
    actor = types.SimpleNamespace(exchange=Method(RayError(said)))
    with socket.create_server(("127.0.0.1", 0)) as head:
        address = f"127.0.0.1:{head.getsockname()[1]}"
        if is_gone:
            head.close()
        look = vital(address, HostEvents()).look
        with pytest.raises(HostLostError) as told:
            ask(RayConnection(Ray(), actor, look), "b", Renew())
    assert told.value.what.startswith(what)


def test_what_is_vital_is_the_head_and_the_raylet_of_this_machine(fake_ray: Ray) -> None:
    there = {"NodeManagerAddress": "10.77.0.1", "NodeManagerPort": 7001}
    fake_ray._nodes = [
        {**node("load1"), "NodeID": "other"},
        {**node("server1"), **there, "NodeID": fake_ray.own},
    ]
    found = ray_cluster._vital(lab(), fake_ray, HostEvents())
    assert found.own == "server1"
    assert found.places == {
        "10.77.0.1:7000": ("server1", "Ray's head"),
        "10.77.0.1:7001": ("server1", "the raylet of this machine"),
    }


def test_a_ray_that_cannot_be_left_is_waited_for_no_longer(
    fake_ray: Ray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One whose head is stopped: the user waits for the name of the host. Nor is it asked for again
    when the process ends, or joined again in it."""
    stopped = threading.Event()
    monkeypatch.setattr(fake_ray, "shutdown", lambda: stopped.wait(60.0))
    never_again: list[object] = []
    monkeypatch.setattr(atexit, "unregister", never_again.append)
    try:
        with (
            pytest.raises(HostLostError, match="lost"),
            ray_cluster.tasks_at("10.0.0.7:6379", []),
        ):
            raise HostLostError("lost")
        assert never_again == [fake_ray.shutdown]
        with (
            pytest.raises(HostError, match="still waits for Ray") as refused,
            ray_cluster.tasks_at("10.0.0.7:6379", []),
        ):
            pass
        assert "new process" in refused.value.remedy
    finally:
        stopped.set()
        for thread in threading.enumerate():
            if thread.name == leaving.THREAD:
                thread.join()


def test_ray_reports_to_a_head_that_is_gone_for_a_moment_only(fake_ray: Ray) -> None:
    """It would try for 5 s, while the user waits for the name of the host."""
    name = "RAY_task_events_shutdown_flush_timeout_ms"
    with ray_cluster.tasks_at("10.0.0.7:6379", []):
        assert int(os.environ[name]) < 1000


def test_ray_does_not_try_for_a_minute_to_join(fake_ray: Ray) -> None:
    """It would try a wrong token for 20 s, and look for a raylet that is gone for 60."""
    with ray_cluster.tasks_at("10.0.0.7:6379", []):
        for name in ("RAY_NUM_REDIS_GET_RETRIES", "RAY_gcs_server_request_timeout_seconds"):
            assert int(os.environ[name]) < 7


def test_a_raylet_of_this_machine_that_is_gone_is_told_for_what_it_is(
    fake_ray: Ray, monkeypatch: pytest.MonkeyPatch
) -> None:
    def init(**_: Any) -> None:
        cause = RuntimeError("No node info found matching attributes: '10.77.0.1'")
        raise ConnectionError("Failed to connect to Ray cluster at 10.77.0.1:7000") from cause

    monkeypatch.setattr(fake_ray, "init", init)
    with (
        pytest.raises(HostError, match=r"host server1: Ray at .* has no raylet on this machine"),
        ray_cluster.connected(lab(), lab().hosts),
    ):
        pass


def test_a_head_that_is_gone_while_it_is_joined_is_told(
    fake_ray: Ray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ray would wait on for a head that is stopped."""
    joined, never_again = threading.Event(), list[object]()
    monkeypatch.setattr(fake_ray, "init", lambda **given: joined.wait(60.0))
    monkeypatch.setattr(atexit, "unregister", never_again.append)
    with socket.create_server(("127.0.0.1", 0)) as head:
        address = f"127.0.0.1:{head.getsockname()[1]}"
    places = vital(address, HostEvents()).places
    monkeypatch.setattr(ray_cluster, "_looked_at", lambda _: ("10.77.0.9", places))
    try:
        with (
            pytest.raises(HostLostError, match="host server1 was lost: Ray's head") as told,
            ray_cluster.connected(lab(), lab().hosts),
        ):
            pass
        assert "the same command again" in told.value.remedy, "there is no run to resume"
        assert leaving.is_waited_for() and never_again == [fake_ray.shutdown]
        assert fake_ray.ends == 0, "what was not joined is not left"
    finally:
        joined.set()
        for thread in threading.enumerate():
            if thread.name == leaving.THREAD:
                thread.join()


def test_a_host_that_ray_misses_is_not_waited_for(fake_ray: Ray) -> None:
    """An actor on it would never be there."""
    actors = {"load1": types.SimpleNamespace(clock=Method(GetTimeoutError()))}
    fake_ray._nodes = [node("server1"), node("load1", alive=False)]
    used = [host for host in lab().hosts if host.name in ("server1", "load1")]
    with pytest.raises(HostError, match="host load1 is not there"):
        ray_cluster._there(fake_ray, actors, lab(), used, vital("127.0.0.1:1", HostEvents()))


def test_an_agent_is_renewed_while_those_of_slower_hosts_start(
    fake_ray: Ray, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, one that nobody had asked waited for a minute, where its laboratory was gone."""
    monkeypatch.setattr(ray_cluster, "RENEWAL_SECONDS", 0.01)
    asked = {"quick": 0, "slow": 0}
    often = threading.Event()

    def actor(name: str) -> Any:
        def remote(body: bytes, seconds: float) -> str:
            asked[name] += 1
            if asked["quick"] == 5:
                often.set()
            return name

        return types.SimpleNamespace(exchange=types.SimpleNamespace(remote=remote))

    def wait(names: list[str], timeout: float) -> tuple[list[str], list[str]]:
        return [it for it in names if it == "quick"], []

    fake_ray.wait = wait  # type: ignore[attr-defined]
    with ray_cluster._renewed(fake_ray, [actor("quick"), actor("slow")]):
        assert often.wait(60.0)
    assert asked["slow"] == 1, "what is not there yet is asked once"
    left = [it for it in threading.enumerate() if it.name == "concurve-renews"]
    assert left == [], "Ray is asked for nothing more"


def test_tasks_are_given_the_folders_from_which_their_functions_come(fake_ray: Ray) -> None:
    with ray_cluster.tasks_at("10.0.0.7:6379", ["/a", "/b"]):
        assert fake_ray.given["runtime_env"] == {"env_vars": {"PYTHONPATH": "/a:/b"}}
    assert fake_ray.ends == 1


def test_ray_prints_nothing_of_its_own(
    fake_ray: Ray, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Of a raylet that was killed its log, of a wrong token a line for each try."""
    worker = types.SimpleNamespace(print_to_stdstream=lambda *_, **__: print("45 lines of a log"))
    monkeypatch.setattr(fake_ray, "_private", types.SimpleNamespace(worker=worker), raising=False)

    def init(**_: Any) -> None:
        os.write(2, b"gcs_client.cc: Failed to get cluster ID\n")
        raise RuntimeError("RPC error: InvalidAuthToken: missing or incorrect")

    monkeypatch.setattr(fake_ray, "init", init)
    with (
        pytest.raises(HostError, match="refuses the token"),
        ray_cluster.connected(lab(), lab().hosts),
    ):
        pass
    worker.print_to_stdstream({"lines": ["x"]}, ignore_prefix=False)
    logging.getLogger("ray._private.worker").warning("SIGTERM handler is not set")
    assert os.environ["RAY_BACKEND_LOG_LEVEL"] == "fatal"
    os.write(2, b"ours\n")
    said = capfd.readouterr()
    assert (said.out, said.err) == ("", "ours\n")


def test_a_host_that_ray_does_not_reach_is_told_in_our_words() -> None:
    class ActorUnavailableError(RayError): ...

    error = ActorUnavailableError("The actor 79de6cd2 is unavailable: RpcError: unix:/tmp/x")
    assert ray_cluster._reason(error) == "Ray does not reach what runs there"


def test_a_disk_that_is_full_is_the_reason_why_nothing_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Ray takes it for a lack of memory."""
    full = HostError("host a: the file system of /tmp is full: 0 MiB are free", "free some")
    for found, is_told in ((full, True), (HostError("host a: OpenSSH cannot log in"), False)):
        monkeypatch.setattr(commands, "run_each", lambda steps, found=found: [found])
        assert (ray_cluster._disk_is_full(inventory_of({"a": "10.0.0.1"}), "a") is found) == is_told
