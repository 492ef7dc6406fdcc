"""The hosts that measurements may use, and which of them a role's ``host`` means.

A role names a host, a label that hosts have, ``each`` (``each:LABEL``) for a copy on every one, or
``any`` (``any:LABEL``) for one of several that are alike: another one in each block of trials.
A study does not say which machines these are: that is in the file of hosts, or, without one, all of
them are this machine.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from concurve.definition.study import Role, Study
from concurve.errors import HostError
from concurve.words import meant, one_of

#: What a role's ``host`` says for a copy on every host; ``each:LABEL``: on those with the label.
EACH = "each"

#: What it says for one of several hosts that are alike; ``any:LABEL``: one of those with the label.
ANY = "any"

#: The address of every host where all of them are this machine.
LOOPBACK = "127.0.0.1"

#: Why a public address is refused, and what to do.
PUBLIC_ADDRESS = "is a public address, and some ports of Ray listen on all addresses"
PUBLIC_REMEDY = (
    "a host of a private network; or, behind a firewall, public = true for it in a file of hosts "
    "(docs/many-hosts.md)"
)

#: The placeholder for the address of a host is ``{host.NAME}``.
HOST_PREFIX = "host."


class Host(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A machine that measurements may use.

    ``address``: where other hosts reach it. ``ssh``: what OpenSSH calls it. ``cpus`` are those that
    may be measured, if empty all that the host grants but ``housekeeping``: those of Ray's daemons
    and of our own processes. ``public``: its owner knows that Ray listens on all of its addresses.
    """

    name: str
    address: str
    ssh: str = ""
    labels: tuple[str, ...] = ()
    cpus: tuple[int, ...] = ()
    housekeeping: tuple[int, ...] = ()
    public: bool = False

    @property
    def login(self) -> str:
        """What OpenSSH calls it."""
        return self.ssh or self.address


class Cluster(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How Ray runs on the hosts: which host has its head, the port of that, the Python with
    ``concurve[ray]`` on every host, and the file of the token on every host. ``address`` is that of
    a Ray that others have started; empty: ``concurve hosts up`` did."""

    head: str
    port: int = 6379
    python: str = "python3"
    token: str = "~/.ray/auth_token"
    address: str = ""


class Inventory(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The hosts in the order of their file. A role that names no host runs on the first one."""

    hosts: tuple[Host, ...]
    cluster: Cluster

    def host(self, name: str) -> Host:
        """The host of that name, which there is."""
        return next(host for host in self.hosts if host.name == name)

    @property
    def labels(self) -> list[str]:
        """All labels, each once."""
        return list(dict.fromkeys(label for host in self.hosts for label in host.labels))

    def meant_by(self, text: str, where: str) -> tuple[Host, ...]:
        """The hosts that a role's ``host`` means: one by its name, all with a label, each of them,
        all of which it is any.

        Raises:
            HostError: no host has that name or label.
        """
        if text == "":
            return self.hosts[:1]
        group, colon, label = text.partition(":")
        if group in (EACH, ANY):
            found = [host for host in self.hosts if not colon or label in host.labels]
        else:
            named = [host for host in self.hosts if host.name == text]
            found = named or [host for host in self.hosts if text in host.labels]
        if not found:
            raise HostError(f"{where}: no host {(label or text)!r}", self._near(label or text))
        return tuple(found)

    def _near(self, text: str) -> str:
        known = [*(host.name for host in self.hosts), *self.labels]
        names = one_of([host.name for host in self.hosts])
        if self.cluster.address:
            labels = "; hosts have labels in a file of hosts, as --hosts FILE takes it"
        else:
            labels = f', or labels = ["{text}"] for one of them in the file of hosts'
        return meant(text, known, names + labels)


def is_each(text: str) -> bool:
    """Does a role's ``host`` ask for a copy on every host?"""
    return text.partition(":")[0] == EACH


def is_any(text: str) -> bool:
    """Does a role's ``host`` ask for one of several hosts that are alike?"""
    return text.partition(":")[0] == ANY


def _is_name(text: str) -> bool:
    """Is it the name of a host, or a label?"""
    return bool(text) and not is_each(text) and not is_any(text)


def host_names(study: Study) -> list[str]:
    """The names that ``{host.NAME}`` may have: the hosts and labels that roles of the study name,
    and the roles themselves, each once."""
    named = (role.host for role in study.roles if _is_name(role.host))
    return list(dict.fromkeys([*named, *(role.name for role in study.roles)]))


def addresses(study: Study, inventory: Inventory | None, alike: str = "") -> dict[str, str]:
    """The values of ``{host.NAME}``: the address of a host; of a label or of a role on several
    hosts, that of the first; of a role on any of several, that of the host ``alike``, which a block
    has.

    Raises:
        HostError: no host has a name or label that the study uses.
    """
    if inventory is None:
        return {f"{HOST_PREFIX}{name}": LOOPBACK for name in host_names(study)}
    found: dict[str, str] = {}
    for role in study.roles:
        host = inventory.meant_by(role.host, f"role {role.name}")[0]
        if alike and is_any(role.host):
            host = inventory.host(alike)
        found.setdefault(f"{HOST_PREFIX}{role.name}", host.address)
        if _is_name(role.host):
            found[f"{HOST_PREFIX}{role.host}"] = host.address
    return found


def used_hosts(study: Study, inventory: Inventory) -> tuple[Host, ...]:
    """The hosts that a study uses, in the order of their file.

    Raises:
        HostError: no host has a name or label that the study uses, or too few have it.
    """
    alike_hosts(study, inventory)
    used: set[str] = set()
    for role in study.roles:
        meant: Sequence[Host] = inventory.meant_by(role.host, f"role {role.name}")
        # Of a label, only as many hosts as there are copies: a placeholder may be any number.
        if _is_name(role.host) and role.copies.isdecimal():
            meant = meant[: max(1, int(role.copies))]
        used.update(host.name for host in meant)
    return tuple(host for host in inventory.hosts if host.name in used)


def alike_hosts(study: Study, inventory: Inventory | None) -> tuple[str, ...]:
    """The names of the hosts over which the blocks of a study are dealt out; none where no role
    asks for any of several.

    Raises:
        HostError: there is only one such host; roles ask for any of different hosts; or another
            role runs on one of them, which would make that one unlike the others.
    """
    asking = [role for role in study.roles if is_any(role.host)]
    if inventory is None or not asking:
        return ()
    first = asking[0]
    for role in asking:
        if role.host != first.host:
            raise HostError(
                f"role {role.name}: host {role.host!r}, and role {first.name}: host {first.host!r}",
                f"the same hosts for both: a block of trials has one host, {first.host!r}",
            )
    found = inventory.meant_by(first.host, f"role {first.name}")
    if len(found) < 2:
        raise HostError(
            f"role {first.name}: host {first.host!r}: too few hosts: {found[0].name} alone",
            f"two or more hosts that are alike, or host = {found[0].name!r}",
        )
    _check_apart(study, inventory, first, found)
    return tuple(host.name for host in found)


def _check_apart(study: Study, inventory: Inventory, asking: Role, alike: Sequence[Host]) -> None:
    """Refuse a role that runs on one of the alike hosts in every block."""
    for role in study.roles:
        if is_any(role.host) or is_each(role.host):
            continue
        for host in inventory.meant_by(role.host, f"role {role.name}"):
            if host in alike:
                raise HostError(
                    f"role {role.name} runs on {host.name}, which is among the hosts "
                    f"{asking.host!r} of role {asking.name}: it would be unlike the others",
                    f"host = {asking.host!r} for both roles, or a label that {host.name} lacks",
                )
