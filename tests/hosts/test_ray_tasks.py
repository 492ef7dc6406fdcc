"""Tasks of Ray, against a stand-in of its interface; and the nodes of a cluster as hosts."""

from __future__ import annotations

import threading
import types
from collections.abc import Callable
from typing import Any

import pytest

from concurve.definition.inventory import Cluster, Host
from concurve.errors import HostError, RunError
from concurve.hosts import ray_tasks
from concurve.hosts.connection import HostLostError
from concurve.hosts.nodes import inventory_of_nodes, parse_address, resource_of
from concurve.hosts.ray_tasks import LOOK_SECONDS, RETRIES, RayTasks
from tests.definition.test_hosts_file import lab
from tests.hosts.test_ray_cluster import CLOCK, GetTimeoutError, RayError, RayTaskError


class Ray:
    """Computes a task when its result is asked for; says how many were under way."""

    def __init__(self, cpus: float = 2.0, error: Exception | None = None) -> None:
        self.exceptions = types.SimpleNamespace(
            RayError=RayError, GetTimeoutError=GetTimeoutError, RayTaskError=RayTaskError
        )
        self.under_way = self.most = 0
        self.options: dict[str, Any] = {}
        self.timeouts: list[float] = []
        self._cpus, self._error = cpus, error

    def remote(self, function: Callable[..., Any]) -> Any:
        def options(**given: Any) -> Any:
            self.options = given
            return types.SimpleNamespace(remote=begin)

        def begin(*arguments: Any) -> Callable[[], Any]:
            self.under_way += 1
            self.most = max(self.most, self.under_way)
            return lambda: function(*arguments)

        return types.SimpleNamespace(options=options)

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": self._cpus, "memory": 1e9}

    def get(self, reference: Callable[[], Any], timeout: float) -> Any:
        self.timeouts.append(timeout)
        if isinstance(self._error, GetTimeoutError):
            CLOCK.seconds += timeout
        if self._error is not None:
            raise self._error
        self.under_way -= 1
        return reference()


@pytest.fixture(autouse=True)
def cpus_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in computes in the process of the tests."""
    monkeypatch.setattr(ray_tasks, "take_all_cpus", lambda: None)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setattr(ray_tasks, "time", CLOCK)
    monkeypatch.setattr(CLOCK, "seconds", 0.0)


def test_results_come_in_order_and_no_more_tasks_are_sent_than_are_of_use() -> None:
    ray = Ray(cpus=3)
    assert list(RayTasks(ray).map(lambda item: item * item, range(50), 2.0)) == [
        number * number for number in range(50)
    ]
    assert ray.most == 6 and ray.under_way == 0
    assert ray.options == {"num_cpus": 1, "max_retries": RETRIES}
    assert all(0 <= timeout <= LOOK_SECONDS for timeout in ray.timeouts)


def test_the_items_are_made_as_they_are_sent() -> None:
    made = []

    def items() -> Any:
        for number in range(10):
            made.append(number)
            yield number

    results = RayTasks(Ray(cpus=1)).map(lambda item: item, items())
    assert next(results) == 0 and made == [0, 1]


@pytest.mark.parametrize(
    ("error", "what"),
    [
        (GetTimeoutError("late"), "gave no result within"),
        (RayError("The node died\nmore"), "was lost 4 times: The node died"),
        (RayTaskError(RunError("the trial runner failed", "resume")), "the trial runner failed"),
        (RayTaskError(HostError("no program", "install it")), "no program"),
    ],
)
def test_a_result_that_is_not_computed_is_an_error_with_a_remedy(
    error: Exception, what: str
) -> None:
    with pytest.raises((RunError, HostError), match=what) as raised:
        list(RayTasks(Ray(error=error)).map(lambda item: item, [1], 1.0))
    assert raised.value.remedy
    assert CLOCK.seconds < 120


LOST = HostLostError("host a was lost: Ray's head is gone", "hosts up; then concurve resume last")


class Lost:
    """Nothing is lost until so many looks were taken."""

    def __init__(self, looks: int) -> None:
        self.looks = looks

    def __call__(self) -> None:
        self.looks -= 1
        if self.looks < 0:
            raise LOST


def test_a_head_that_is_lost_ends_the_wait_for_a_result() -> None:
    """Ray would wait on, and end the process without a word. A result without a limit, too."""
    for seconds in (1000.0, None):
        before = CLOCK.seconds
        tasks = RayTasks(Ray(error=GetTimeoutError("late")), Lost(2))
        with pytest.raises(HostLostError, match="host a was lost: Ray's head"):
            list(tasks.map(lambda item: item, [1], seconds))
        assert CLOCK.seconds - before < 5


def test_a_head_that_is_lost_is_named_and_not_the_task_that_ended_with_it() -> None:
    tasks = RayTasks(Ray(error=RayError("The node died")), Lost(0))
    with pytest.raises(HostLostError, match="host a was lost: Ray's head"):
        list(tasks.map(lambda item: item, [1], 1.0))


@pytest.mark.parametrize("where", ["cluster_resources", "remote"])
def test_a_head_that_is_stopped_is_not_waited_for_where_it_is_asked(
    monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    ray, goes_on = Ray(), threading.Event()
    monkeypatch.setattr(ray, where, lambda *_: goes_on.wait(60.0))
    try:
        with pytest.raises(HostLostError, match="host a was lost: Ray's head"):
            list(RayTasks(ray, Lost(0)).map(lambda item: item, [1], 1.0))
    finally:
        goes_on.set()


class CutOff(Ray):
    """A Ray that gives no result until tasks begin again with other needs, as one whose host is
    lost does: it waits for the answer of that host."""

    def __init__(self) -> None:
        super().__init__(cpus=1)
        self.cancelled: list[Any] = []
        self.asked_for_nodes = 0

    def get(self, reference: Callable[[], Any], timeout: float) -> Any:
        if "memory" not in self.options:
            CLOCK.seconds += timeout
            raise GetTimeoutError("late")
        assert reference not in self.cancelled
        return super().get(reference, timeout)

    def cancel(self, reference: Any, force: bool) -> None:
        assert force
        self.cancelled.append(reference)

    def nodes(self) -> list[Any]:
        self.asked_for_nodes += 1
        return [node("10.0.0.1"), node("10.0.0.2", alive=self.asked_for_nodes < 3)]


def test_what_was_under_way_as_a_host_was_lost_begins_again_elsewhere() -> None:
    """Ray begins again what was on a host that is gone, and not what was on one that is cut off."""
    ray = CutOff()
    tasks = RayTasks(ray, lost=lambda: int(CLOCK.seconds > 3))
    assert list(tasks.map(lambda item: item * item, range(5), 1000.0)) == [0, 1, 4, 9, 16]
    assert len(ray.cancelled) == 2, "both that were under way, once"
    assert ray.asked_for_nodes == 3, "Ray would place them there until it has missed the host"
    assert ray.options == {"num_cpus": 1, "max_retries": RETRIES, "memory": 1}
    assert CLOCK.seconds < 60


def test_an_agent_that_is_lost_without_its_host_is_not_waited_for() -> None:
    ray = CutOff()
    ray.asked_for_nodes = -1_000
    tasks = RayTasks(ray, lost=lambda: int(CLOCK.seconds > 3))
    assert list(tasks.map(lambda item: item, range(3), 1000.0)) == [0, 1, 2]
    assert CLOCK.seconds < 60


def test_what_a_call_raises_is_raised_where_it_is_waited_for() -> None:
    def fail() -> None:
        raise TimeoutError("its own")

    with pytest.raises(TimeoutError, match="its own"):
        ray_tasks.asked(fail, lambda: None)


def node(address: str, hostname: str = "", alive: bool = True, **resources: float) -> Any:
    own = {"CPU": 2.0, "memory": 1.0, f"node:{address}": 1.0}
    named = {name.replace("__", ":"): amount for name, amount in resources.items()}
    return {
        "Alive": alive,
        "NodeManagerAddress": address,
        "NodeManagerHostname": hostname,
        "Resources": {**own, **named},
    }


def test_the_nodes_of_a_cluster_are_hosts() -> None:
    head = node("10.0.0.1", "alpha")
    head["Resources"]["node:__internal_head__"] = 1.0
    nodes = [
        node("10.0.0.2", "beta", load=1.0),
        head,
        node("10.0.0.3", "same"),
        node("10.0.0.4", "same", rack=2.0),
        node("10.0.0.5", "no name", host__server1=1.0),
        node("10.0.0.6", "dead", alive=False),
    ]
    found = inventory_of_nodes("10.0.0.1:6379", nodes)
    assert found.hosts == (
        Host(name="beta", address="10.0.0.2", labels=("load",)),
        Host(name="alpha", address="10.0.0.1"),
        Host(name="node-10-0-0-3", address="10.0.0.3"),
        Host(name="node-10-0-0-4", address="10.0.0.4", labels=("rack",)),
        Host(name="server1", address="10.0.0.5"),
    )
    assert found.cluster == Cluster(head="alpha", port=6379, address="10.0.0.1:6379")
    assert resource_of(found, found.hosts[0]) == "node:10.0.0.2"
    assert resource_of(lab(), lab().hosts[0]) == "host:server1"


@pytest.mark.parametrize(
    ("nodes", "what"),
    [
        ([], "no living node"),
        ([node("10.0.0.2", alive=False)], "no living node"),
        ([node("8.8.8.8", "out")], "host out: 8.8.8.8 is a public address"),
        (
            [node("10.0.0.2", "a", host__x=1.0), node("10.0.0.3", "b", host__x=1.0)],
            "several nodes with the resource host:x",
        ),
    ],
)
def test_nodes_that_are_no_hosts_are_refused(nodes: list[Any], what: str) -> None:
    with pytest.raises(HostError, match=what) as refused:
        inventory_of_nodes("10.0.0.1:6379", nodes)
    assert refused.value.remedy


@pytest.mark.parametrize(
    "text", ["", "10.0.0.1", "ray://10.0.0.1:10001", "a:0", "a:99999", "a b:1"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(HostError, match="no address of a Ray cluster"):
        parse_address(text)


def test_addresses_of_clusters() -> None:
    assert parse_address("10.0.0.1:6379") == ("10.0.0.1", 6379)
    assert parse_address("[fd00::1]:6379") == ("fd00::1", 6379)
    assert parse_address("head.lab:7000") == ("head.lab", 7000)
