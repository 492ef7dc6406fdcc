"""What is refused before the first trial of a run over hosts, each with a remedy. Elsewhere: an
unknown host, too few hosts and a public address (``definition/test_hosts_file.py``), no OpenSSH and
unequal versions at the start of Ray (``test_commands.py``), a Ray that cannot be joined
(``test_ray_cluster.py``), nodes that are no hosts (``test_ray_tasks.py``), CPUs and programs that a
host lacks (``test_engine.py``), hosts that are not alike (``analysis/test_hosts.py``)."""

from __future__ import annotations

import time

import msgspec
import pytest

from concurve.definition.inventory import Inventory
from concurve.errors import HostError
from concurve.host.own_files import PACKAGE
from concurve.hosts import host as host_module
from concurve.hosts import messages as m
from concurve.hosts.engine import HostsEngine
from tests.helpers.agents import inventory_of
from tests.helpers.described import DESCRIPTION, FILES

#: A second in ns: a jump.
JUMP = 1_000_000_000


@pytest.fixture(autouse=True)
def own_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_module, "own_files", lambda: FILES)


class Host:
    """A connection to an agent of a test; its clock jumps at an exchange, or never."""

    def __init__(self, jumps_at: int = -1, **described: object) -> None:
        self.description = msgspec.structs.replace(DESCRIPTION, **described)
        self.locked = 0
        self._jumps_at = jumps_at
        self._asked = 0

    def exchange(self, body: bytes, seconds: float) -> bytes:
        request = m.request_of(body[4:])
        value: object = None
        match request:
            case m.Describe():
                value = self.description
            case m.Watch():
                time.sleep(0.01)
                value = []
            case m.Lock():
                self.locked += 1
        return m.packed(m.Done(value))[4:]

    def clock(self) -> int:
        self._asked += 1
        has_jumped = 0 <= self._jumps_at < self._asked
        return time.monotonic_ns() + JUMP * has_jumped

    def another(self) -> Host:
        return self

    def interrupt(self) -> None: ...

    def close(self) -> None: ...


def inventory() -> Inventory:
    return inventory_of({"a": "10.0.0.1", "b": "10.0.0.2"})


@pytest.mark.parametrize(
    ("other", "what", "remedy"),
    [
        ({"version": "0.0.1"}, "host b has concurve 0.0.1, this machine has", "one version"),
        ({"runner": "0.2"}, "host b has the trial runner 0.2, another host has 0.1", "one version"),
        ({"nice": 19}, "nice value 19 there", "RAY_worker_niceness=0"),
    ],
)
def test_hosts_of_unequal_versions_or_priorities(
    other: dict[str, object], what: str, remedy: str
) -> None:
    with pytest.raises(HostError) as refused:
        HostsEngine(inventory(), {"a": Host(), "b": Host(**other)})  # type: ignore[arg-type]
    assert what in refused.value.what and remedy in refused.value.remedy


def test_a_host_on_which_no_cpu_is_left() -> None:
    hosts = inventory()
    all_kept = msgspec.structs.replace(hosts.hosts[1], housekeeping=(0, 1))
    hosts = msgspec.structs.replace(hosts, hosts=(hosts.hosts[0], all_kept))
    with pytest.raises(HostError) as refused:
        HostsEngine(hosts, {"a": Host(), "b": Host()})
    assert "host b: no CPU is left to measure on" in refused.value.what
    assert "housekeeping" in refused.value.remedy


@pytest.mark.parametrize("jumps_at", [1, 64, 129])
def test_a_clock_that_jumps(jumps_at: int) -> None:
    hosts = {"a": Host(), "b": Host(jumps_at)}
    with HostsEngine(inventory(), hosts) as engine:
        with pytest.raises(HostError) as refused, engine.lock("a run"):
            raise AssertionError("a trial would begin")
        assert "host b" in refused.value.what and "clock moved by" in refused.value.what
        assert refused.value.remedy


def test_clocks_that_differ_and_do_not_jump_are_no_reason() -> None:
    steady = Host(jumps_at=0)
    with HostsEngine(inventory(), {"a": Host(), "b": steady}) as engine:
        with engine.lock("a run"):
            pass
        offset = engine.hosts["b"].offset()
        assert abs(offset.ns - JUMP) <= offset.error_ns
    assert steady.locked == 1


def test_a_host_whose_checkout_differs_is_refused_though_its_version_is_the_same() -> None:
    other = {**FILES, PACKAGE: "another"}
    for files in (other, {}):
        with pytest.raises(HostError, match=f"host b: {PACKAGE} is not the same") as refused:
            HostsEngine(inventory(), {"a": Host(), "b": Host(files=files)})
        assert "same wheels" in refused.value.remedy
