"""``hosts.toml``: the machines that measurements may use, and how Ray runs on them."""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path

import msgspec

from concurve.definition.inventory import ANY, EACH, PUBLIC_ADDRESS, Cluster, Host, Inventory
from concurve.definition.templates import NAME
from concurve.definition.toml_file import read_tables, read_text
from concurve.errors import StudyError
from concurve.words import meant

_PAGE = "docs/many-hosts.md"

_EXAMPLE = '[hosts.server1]\naddress = "10.0.0.11"'

#: A name of DNS, or a part of one.
_HOSTNAME = re.compile(r"(?!-)[A-Za-z0-9_-]{1,63}(?<!-)(\.(?!-)[A-Za-z0-9_-]{1,63}(?<!-))*\.?")

_CPUS = re.compile(r"\d{1,5}(-\d{1,5})?(,\d{1,5}(-\d{1,5})?)*")

#: Ray's other ports follow that of its head.
_PORT_LEAST, _PORT_MOST = 1024, 65_400

#: What can be no name of a host and no label.
_STANDS_FOR = {EACH: "all hosts", ANY: "one of several hosts"}

#: CPUs of a host beyond this number are taken as a typing error.
_CPU_MOST = 65_535


class HostTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``[hosts.NAME]``."""

    address: str
    ssh: str = ""
    labels: list[str] = []
    cpus: str = ""
    housekeeping: str = ""
    public: bool = False


class RayTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``[ray]``."""

    head: str = ""
    port: int = 6379
    python: str = "python3"
    token: str = "~/.ray/auth_token"


class HostsFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The whole file."""

    hosts: dict[str, HostTable]
    ray: RayTable = RayTable()


_KEYS: dict[str, type[msgspec.Struct]] = {"": HostsFile, "hosts": HostTable, "ray": RayTable}


def load_hosts(path: Path) -> Inventory:
    """The hosts of a file.

    Raises:
        StudyError: it cannot be read, or says what no hosts can be.
    """
    return parse_hosts(read_text(path, "a file of hosts"), str(path))


def parse_hosts(text: str, where: str) -> Inventory:
    """The hosts of a text; ``where`` names the file.

    Raises:
        StudyError: names the file, the host, the key and the remedy.
    """
    file = read_tables(text, where, HostsFile, _KEYS, _PAGE)
    if not file.hosts:
        raise StudyError(f"{where}: no hosts", _EXAMPLE)
    hosts = tuple(_host(name, table, where) for name, table in file.hosts.items())
    _check_together(hosts, where)
    return Inventory(hosts=hosts, cluster=_cluster(file.ray, hosts, where))


def _host(name: str, table: HostTable, where: str) -> Host:
    place = f"{where}: hosts, {name}"
    if not NAME.fullmatch(name):
        raise StudyError(f"{place}: not a name", "letters, digits, _ and -, no blanks")
    if name in _STANDS_FOR:
        raise StudyError(
            f"{place}: {name!r} stands for {_STANDS_FOR[name]}",
            "another name, such as the machine's own",
        )
    for label in table.labels:
        if not NAME.fullmatch(label) or label in _STANDS_FOR:
            raise StudyError(f"{place}, labels: {label!r} is no label", 'labels = ["load"]')
    _check_address(table, place)
    if table.ssh.startswith("-") or any(letter.isspace() for letter in table.ssh):
        raise StudyError(f"{place}, ssh: {table.ssh!r} is no host of OpenSSH", 'ssh = "me@server1"')
    cpus = _cpus(table.cpus, f"{place}, cpus")
    housekeeping = _cpus(table.housekeeping, f"{place}, housekeeping")
    if both := sorted(set(cpus) & set(housekeeping)):
        raise StudyError(
            f"{place}: CPU {both[0]} is both in cpus and in housekeeping",
            "Ray's daemons on CPUs of their own: they would disturb what is measured",
        )
    return Host(
        name=name,
        address=table.address,
        ssh=table.ssh,
        labels=tuple(dict.fromkeys(table.labels)),
        cpus=cpus,
        housekeeping=housekeeping,
        public=table.public,
    )


def _check_address(table: HostTable, place: str) -> None:
    """Refuse what is no address, one that other hosts cannot reach, and a public one."""
    if ":" in table.address:
        raise StudyError(
            f"{place}, address: {table.address!r} is no IPv4 address",
            "the IPv4 address by which the other hosts reach it: hosts are connected by IPv4",
        )
    try:
        address = ipaddress.ip_address(table.address)
    except ValueError:
        is_number = re.fullmatch(r"[\d.]+", table.address)
        if is_number or not _HOSTNAME.fullmatch(table.address):
            raise StudyError(
                f"{place}, address: {table.address!r} is neither an IP address nor a host's name",
                'address = "10.0.0.11"',
            ) from None
        return
    if address.is_unspecified or address.is_multicast:
        raise StudyError(
            f"{place}, address: {table.address} is no address of one host",
            "the address by which the other hosts reach it",
        )
    if address.is_global and not table.public:
        raise StudyError(
            f"{place}, address: {table.address} {PUBLIC_ADDRESS}",
            f"an address of a private network; or, behind a firewall ({_PAGE}), public = true",
        )


def _cpus(text: str, where: str) -> tuple[int, ...]:
    """The CPUs of ``0-3,6``; none for an empty text."""
    text = text.replace(" ", "")
    if not text:
        return ()
    if not _CPUS.fullmatch(text):
        raise StudyError(f"{where}: {text!r} is no list of CPUs", '"0-3", or "0,2,4"')
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        low, high = int(first), int(last or first)
        if high < low or high > _CPU_MOST:
            raise StudyError(f"{where}: {part!r} is no range of CPUs", '"0-3", or "0,2,4"')
        found.update(range(low, high + 1))
    return tuple(sorted(found))


def _check_together(hosts: tuple[Host, ...], where: str) -> None:
    """Refuse two hosts of one address, one that others cannot reach, and a label that is a host's
    name."""
    names = [host.name for host in hosts]
    seen: dict[str, str] = {}
    loops = [host for host in hosts if _is_loopback(host.address)]
    if loops and len(loops) < len(hosts):
        raise StudyError(
            f"{where}: hosts, {loops[0].name}: {loops[0].address} is each machine's own address",
            "the address by which the other hosts reach it",
        )
    for host in hosts:
        if other := seen.get(same_address(host.address)):
            raise StudyError(
                f"{where}: hosts, {host.name}: {host.address} is the address of {other}, too",
                "an address of its own for each host",
            )
        seen[same_address(host.address)] = host.name
        for label in host.labels:
            if label in names:
                raise StudyError(
                    f"{where}: hosts, {host.name}, labels: {label!r} is the name of a host",
                    "another label: a role's host would mean two things",
                )


def is_name(address: str) -> bool:
    """Is an address of the file a name, which each machine resolves by itself?"""
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return True
    return False


def same_address(address: str) -> str:
    """Equal for two ways to write an address."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address.lower().rstrip(".")
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return str(mapped or found)


def _is_loopback(address: str) -> bool:
    same = same_address(address)
    try:
        return ipaddress.ip_address(same).is_loopback
    except ValueError:
        return same == "localhost" or same.endswith(".localhost")


def _cluster(table: RayTable, hosts: tuple[Host, ...], where: str) -> Cluster:
    names = [host.name for host in hosts]
    if table.head and table.head not in names:
        raise StudyError(f"{where}: ray, head: no host {table.head!r}", meant(table.head, names))
    if not _PORT_LEAST <= table.port <= _PORT_MOST:
        remedy = (
            f"a port from {_PORT_LEAST} to {_PORT_MOST}: Ray uses more than a hundred from it on"
        )
        raise StudyError(f"{where}: ray, port: {table.port}", remedy)
    for key in ("python", "token"):
        if not getattr(table, key).strip():
            raise StudyError(f"{where}: ray, {key}: empty", f"the path of it, or no {key}")
    return Cluster(
        head=table.head or names[0], port=table.port, python=table.python, token=table.token
    )
