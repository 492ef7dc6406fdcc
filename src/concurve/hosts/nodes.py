"""The nodes of a Ray cluster that others have started, as hosts. Pure."""

from __future__ import annotations

import contextlib
import ipaddress
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from concurve.definition.inventory import (
    ANY,
    EACH,
    PUBLIC_ADDRESS,
    PUBLIC_REMEDY,
    Cluster,
    Host,
    Inventory,
)
from concurve.definition.templates import NAME
from concurve.errors import HostError
from concurve.hosts.commands import RESOURCE

#: The resource that Ray gives to each node by its address, and one that only the head has.
NODE_RESOURCE = "node:{address}"
_HEAD = "node:__internal_head__"

#: Resources that Ray counts by itself: no labels of hosts.
_OF_RAY = ("CPU", "GPU", "memory", "object_store_memory")

_ADDRESS = re.compile(r"(\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+):(\d{1,5})")

#: What a name of a host may not hold.
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]+")


def parse_address(text: str) -> tuple[str, int]:
    """The host and the port of Ray's head.

    Raises:
        HostError: it is no address.
    """
    found = _ADDRESS.fullmatch(text)
    if found is None or not 0 < int(found[2]) <= 65_535:
        raise HostError(
            f"--ray {text!r} is no address of a Ray cluster",
            "HOST:PORT of its head, as `ray start --head` prints it: --ray 10.0.0.11:6379",
        )
    return found[1].strip("[]"), int(found[2])


def inventory_of_nodes(address: str, nodes: Sequence[Mapping[str, Any]]) -> Inventory:
    """The living nodes of the cluster at an address. Each is named by its resource ``host:NAME`` if
    it has one, else by what its machine calls itself, else by its address; its labels are its own
    resources.

    Raises:
        HostError: there is none, or one has a public address.
    """
    alive = [node for node in nodes if node.get("Alive")]
    if not alive:
        raise HostError(f"Ray at {address} has no living node", "ray status there")
    hostnames = Counter(str(node.get("NodeManagerHostname", "")) for node in alive)
    hosts = tuple(_host(node, hostnames) for node in alive)
    if twice := [name for name, count in Counter(host.name for host in hosts).items() if count > 1]:
        raise HostError(
            f"Ray at {address} has several nodes with the resource "
            f"{RESOURCE.format(name=twice[0])}",
            "a resource of its own for each node",
        )
    heads = [
        host for host, node in zip(hosts, alive, strict=True) if _HEAD in node.get("Resources", {})
    ]
    head = (heads or hosts)[0].name
    _, port = parse_address(address)
    return Inventory(hosts=hosts, cluster=Cluster(head=head, port=port, address=address))


def resource_of(inventory: Inventory, host: Host) -> str:
    """The resource of Ray by which something is placed on a host: that of ``concurve hosts up``, or
    in a cluster of others the one that Ray gives to each node."""
    if inventory.cluster.address:
        return NODE_RESOURCE.format(address=host.address)
    return RESOURCE.format(name=host.name)


def _host(node: Mapping[str, Any], hostnames: Mapping[str, int]) -> Host:
    address, hostname = str(node["NodeManagerAddress"]), str(node.get("NodeManagerHostname", ""))
    resources = [str(name) for name in node.get("Resources", {})]
    named = [name.partition(":")[2] for name in resources if name.startswith("host:")]
    name = hostname if hostnames[hostname] == 1 else ""
    if len(named) == 1:
        name = named[0]
    if not NAME.fullmatch(name) or name in (EACH, ANY):
        name = _NO_NAME.sub("-", f"node-{address}")
    refuse_public(name, [address])
    labels = tuple(
        label
        for label in resources
        if NAME.fullmatch(label) and label not in (*_OF_RAY, EACH, ANY, name)
    )
    return Host(name=name, address=address, labels=labels)


def refuse_public(name: str, addresses: Sequence[str]) -> None:
    """Refuse a host one of whose addresses is public.

    Raises:
        HostError: names the host, the address and the remedy.
    """
    for address in addresses:
        with contextlib.suppress(ValueError):
            if ipaddress.ip_address(address).is_global:
                raise HostError(f"host {name}: {address} {PUBLIC_ADDRESS}", PUBLIC_REMEDY)
