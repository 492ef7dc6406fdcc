"""Addresses that the file of hosts gives as names: what they stand for decides, as for numbers."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Sequence

from concurve.definition.hosts_file import is_name, same_address
from concurve.definition.inventory import PUBLIC_ADDRESS, PUBLIC_REMEDY, Inventory
from concurve.errors import HostError

Resolve = Callable[[str], Sequence[str]]


def resolved(name: str) -> list[str]:
    """The IPv4 addresses of a name here, each once.

    Raises:
        HostError: it has none.
    """
    try:
        found = socket.getaddrinfo(name, None, socket.AF_INET, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise HostError(
            f"the name {name} has no IPv4 address on this machine: "
            f"{getattr(error, 'strerror', None) or error}",
            "/etc/hosts or DNS of this machine; or the address itself in the file of hosts",
        ) from error
    return list(dict.fromkeys(str(it[4][0]) for it in found))


def check_private_names(names: Sequence[str], resolve: Resolve = resolved) -> None:
    """Refuse a name one of whose addresses here is public.

    Raises:
        HostError: names it and the address; or it has none.
    """
    for name in names:
        for address in resolve(name):
            if ipaddress.ip_address(address).is_global:
                raise HostError(f"{name} is {address}, which {PUBLIC_ADDRESS}", PUBLIC_REMEDY)


def check_names(inventory: Inventory, resolve: Resolve = resolved) -> None:
    """Refuse a name in a file of hosts that stands for a public address, and two hosts of one
    address.

    Raises:
        HostError: names the hosts and the address; or a name has none.
    """
    seen: dict[str, str] = {}
    for host in inventory.hosts:
        addresses = [same_address(host.address)]
        if is_name(host.address):
            addresses = list(resolve(host.address))
            if not host.public:
                _check_private(host.name, host.address, resolve)
        for address in addresses:
            if (other := seen.setdefault(address, host.name)) != host.name:
                raise HostError(
                    f"host {host.name}: {host.address} is {address}, the address of {other}, too",
                    "an address of its own for each host",
                )


def _check_private(host: str, name: str, resolve: Resolve) -> None:
    try:
        check_private_names([name], resolve)
    except HostError as error:
        raise HostError(f"host {host}: {error.what}", error.remedy) from error
