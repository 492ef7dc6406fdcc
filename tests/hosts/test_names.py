"""Names of hosts in the place of addresses: what they stand for is judged."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import NoReturn

import msgspec
import pytest

from concurve.definition.inventory import Inventory
from concurve.errors import HostError
from concurve.hosts import names
from concurve.hosts.names import check_names, check_private_names
from tests.helpers.agents import inventory_of

KNOWN = {
    "here.lab": ["10.0.0.1"],
    "there.lab": ["10.0.0.2"],
    "also-there": ["10.0.0.9", "10.0.0.2"],
    "public.lab": ["10.0.0.3", "8.8.8.8"],
}


def resolve(name: str) -> Sequence[str]:
    return KNOWN[name]


def named(**hosts: str) -> Inventory:
    return inventory_of(hosts)


def test_names_of_private_addresses_are_taken() -> None:
    check_names(named(a="here.lab", b="there.lab", c="10.0.0.3"), resolve)


def test_a_name_with_a_public_address_among_its_addresses_is_refused() -> None:
    inventory = named(a="here.lab", b="public.lab")
    with pytest.raises(HostError, match=r"host b: public\.lab is 8\.8\.8\.8, which is a public"):
        check_names(inventory, resolve)
    owned = msgspec.structs.replace(inventory.hosts[1], public=True)
    check_names(msgspec.structs.replace(inventory, hosts=(inventory.hosts[0], owned)), resolve)


@pytest.mark.parametrize("other", ["also-there", "10.0.0.2"])
def test_two_hosts_of_one_address_are_refused_whichever_way_it_is_written(other: str) -> None:
    with pytest.raises(HostError, match=r"is 10\.0\.0\.2, the address of a, too"):
        check_names(named(a="there.lab", b=other), resolve)


def test_each_host_judges_the_names_as_it_knows_them() -> None:
    check_private_names(["here.lab", "there.lab"], resolve)
    with pytest.raises(HostError, match=r"^public\.lab is 8\.8\.8\.8"):
        check_private_names(["here.lab", "public.lab"], resolve)


def test_a_name_that_nobody_knows_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> NoReturn:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    assert names.resolved("localhost") == ["127.0.0.1"]
    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(HostError, match=r"the name nobody\.invalid has no IPv4 address") as refused:
        check_names(named(a="nobody.invalid"))
    assert "/etc/hosts" in refused.value.remedy
