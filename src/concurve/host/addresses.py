"""The addresses of this machine's own network interfaces, and which of them are public."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from pathlib import Path

_PROC = Path("/proc")

#: How ``/proc/net/fib_trie`` lists an address, and that it is one of this machine.
_LEAF, _LOCAL = "|-- ", "/32 host LOCAL"


def public_addresses(proc: Path = _PROC) -> tuple[str, ...]:
    """The addresses of this machine, or of this network namespace, that are public.

    Raises:
        OSError: the kernel does not list them.
    """
    found = {*parse_fib_trie(_text(proc / "net" / "fib_trie"))}
    # Without IPv6 there is no such file.
    found |= {*parse_if_inet6(_text(proc / "net" / "if_inet6"))} if _has_ipv6(proc) else set()
    addresses = (ipaddress.ip_address(address) for address in sorted(found))
    return tuple(str(address) for address in addresses if address.is_global)


def parse_fib_trie(text: str) -> Iterator[str]:
    """The IPv4 addresses of this machine in the kernel's table of routes."""
    address = ""
    for line in text.splitlines():
        if _LEAF in line:
            address = line.partition(_LEAF)[2].strip()
        elif line.strip() == _LOCAL:
            yield address


def parse_if_inet6(text: str) -> Iterator[str]:
    """The IPv6 addresses of this machine's interfaces."""
    for line in text.splitlines():
        yield str(ipaddress.IPv6Address(int(line.split()[0], 16)))


def _has_ipv6(proc: Path) -> bool:
    return (proc / "net" / "if_inet6").exists()


def _text(path: Path) -> str:
    return path.read_text(encoding="ascii", errors="replace")
