"""Agents of hosts that are processes of this machine, connected without Ray: the engine is the
same, and the agents are, and only what carries their messages is another."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from concurve.definition.inventory import Cluster, Host, Inventory
from concurve.host.temporary import remove_abandoned
from concurve.hosts.connection import SocketConnection
from concurve.hosts.engine import HostsEngine
from concurve.hosts.lease import LEASE_SECONDS
from concurve.hosts.starting import start_agent
from tests.helpers.real import MARK, PATIENCE, Lab


def inventory_of(addresses: Mapping[str, str], **labels: tuple[str, ...]) -> Inventory:
    """Hosts of these names at these addresses."""
    return Inventory(
        hosts=tuple(
            Host(name=name, address=address, labels=labels.get(name, ()))
            for name, address in addresses.items()
        ),
        cluster=Cluster(head=next(iter(addresses))),
    )


#: So long an agent waits for a test to connect: nobody renews its lease before.
FIRST_SECONDS = 60.0


class Agents:
    """Agents that carry a mark, one for each host, each with a measurement lock of its own: hosts
    are different machines."""

    def __init__(self, folder: Path, inventory: Inventory) -> None:
        self.lab = Lab(folder)
        self.folder = folder
        self.inventory = inventory
        self.paths: dict[str, Path] = {}

    def start(
        self,
        seconds: float = LEASE_SECONDS,
        before: Mapping[str, Sequence[str]] | None = None,
        first_seconds: float = FIRST_SECONDS,
        **environment: str,
    ) -> None:
        """Start them, each by the command that ``before`` gives for its host."""
        for host in self.inventory.hosts:
            given = {
                **os.environ,
                MARK: self.lab.mark,
                "CONCURVE_LOCK": str(self.folder / f"lock-{host.name}"),
                **environment,
            }
            words = tuple((before or {}).get(host.name, ()))
            self.paths[host.name] = start_agent(seconds, given, words, first_seconds)

    def connections(self) -> dict[str, SocketConnection]:
        return {name: SocketConnection(path) for name, path in self.paths.items()}

    def pid(self, name: str) -> int:
        """The process of an agent."""
        path = str(self.paths[name])
        (pid,) = (
            pid
            for pid, line in self.lab.alive().items()
            if "concurve.hosts.agent" in line and path in line
        )
        return pid

    @contextlib.contextmanager
    def connected(self) -> Iterator[HostsEngine]:
        with HostsEngine(self.inventory, self.connections()) as engine:
            yield engine

    def end(self) -> None:
        """End what is left, and remove the folders of those that were killed."""
        self.lab.end()
        assert self.lab.wait_until_alone(PATIENCE) == {}
        remove_abandoned()


class Namespaces:
    """Network namespaces of this machine as hosts, joined by a bridge in a further one, so that the
    machine's own network is left alone."""

    def __init__(self, names: Sequence[str]) -> None:
        self._id = uuid.uuid4().hex[:6]
        self.addresses = {name: f"10.77.0.{number}" for number, name in enumerate(names, 1)}
        self._made: list[str] = []

    def name(self, host: str) -> str:
        return f"cv{self._id}-{host}"

    def enter(self, host: str) -> tuple[str, ...]:
        """The command that starts the rest in a host."""
        return ("ip", "netns", "exec", self.name(host))

    def __enter__(self) -> Namespaces:
        try:
            self._make()
        except subprocess.CalledProcessError as error:
            self.__exit__()
            pytest.skip(f"no network namespaces here: {error.stderr.strip()}")
        return self

    def __exit__(self, *_: object) -> None:
        for name in reversed(self._made):
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)

    def _make(self) -> None:
        hub = self.name("hub")
        self._namespace(hub)
        _ip("-n", hub, "link", "add", "br0", "type", "bridge")
        _ip("-n", hub, "link", "set", "br0", "up")
        for number, (host, address) in enumerate(self.addresses.items()):
            name, end = self.name(host), f"p{number}"
            self._namespace(name)
            _ip("-n", name, "link", "add", "eth0", "type", "veth", "peer", "name", end,
                "netns", hub)  # fmt: skip
            _ip("-n", hub, "link", "set", end, "master", "br0", "up")
            _ip("-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
            _ip("-n", name, "link", "set", "eth0", "up")

    def _namespace(self, name: str) -> None:
        _ip("netns", "add", name)
        self._made.append(name)
        _ip("-n", name, "link", "set", "lo", "up")


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, text=True)


def no_namespaces() -> str | None:
    """Why there are no network namespaces here, or ``None``."""
    if os.geteuid() != 0:
        return "needs root, for network namespaces"
    return None if shutil.which("ip") else "ip is not installed: apt-get install iproute2"
