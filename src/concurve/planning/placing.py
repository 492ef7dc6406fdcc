"""On which host each copy of a role runs. Pure: the same study and hosts give the same places."""

from __future__ import annotations

from concurve.definition.inventory import Inventory, is_any, is_each
from concurve.definition.study import Role
from concurve.errors import HostError


def placed(
    role: Role, copies: int, inventory: Inventory | None, where: str, alike: str = ""
) -> tuple[str, ...]:
    """The host of each copy, by its name; empty where there are no hosts but this machine.

    Copies of a role with a label are dealt out over the hosts that have it, in the order of the
    file; with ``each``, every host has that many copies; with ``any``, all of them are on the host
    ``alike`` of their block, which is the first one if none is named.

    Raises:
        HostError: no host has the name or label, or the processes of the role run on this machine.
    """
    if inventory is None:
        return ("",) * copies
    if role.attach is not None:
        raise HostError(
            f"{where}: the attached processes are those of this machine, not of a host",
            "concurve on that host, without a file of hosts",
        )
    hosts = inventory.meant_by(role.host, where)
    if is_each(role.host):
        return tuple(host.name for host in hosts for _ in range(copies))
    if is_any(role.host):
        return (alike or hosts[0].name,) * copies
    return tuple(hosts[copy % len(hosts)].name for copy in range(copies))
