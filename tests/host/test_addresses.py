"""The addresses of a machine's own interfaces, by what the kernel lists."""

from __future__ import annotations

from pathlib import Path

import pytest

from concurve.host.addresses import parse_fib_trie, parse_if_inet6, public_addresses

#: Of a machine with a private and a public address; a route to 8.8.8.8 is none of its own.
FIB_TRIE = """\
Main:
  +-- 0.0.0.0/0 3 0 5
     |-- 0.0.0.0
        /0 universe UNICAST
     |-- 8.8.8.8
        /32 universe UNICAST
     +-- 10.0.0.0/24 2 0 2
           |-- 10.0.0.0
              /24 link UNICAST
           |-- 10.0.0.11
              /32 host LOCAL
        |-- 10.0.0.255
           /32 link BROADCAST
     +-- 127.0.0.0/8 2 0 2
           |-- 127.0.0.0
              /8 host LOCAL
           |-- 127.0.0.1
              /32 host LOCAL
Local:
     |-- 9.9.9.9
        /32 link UNICAST
        /32 host LOCAL
     |-- 10.0.0.11
        /32 host LOCAL
"""

IF_INET6 = """\
00000000000000000000000000000001 01 80 10 80       lo
fe80000000000000505400fffe123456 02 40 20 80     eth0
fd000000000000000000000000000002 02 40 00 82     eth0
2a00145040010809000000000000200e 02 40 00 00     eth0
"""


def machine(folder: Path, fib_trie: str | None, if_inet6: str | None) -> Path:
    """A ``/proc`` with these files."""
    (folder / "net").mkdir()
    for name, text in (("fib_trie", fib_trie), ("if_inet6", if_inet6)):
        if text is not None:
            (folder / "net" / name).write_text(text)
    return folder


def test_own_addresses_are_told_from_routes_and_broadcasts() -> None:
    assert list(parse_fib_trie(FIB_TRIE)) == ["10.0.0.11", "127.0.0.1", "9.9.9.9", "10.0.0.11"]
    assert list(parse_if_inet6(IF_INET6)) == [
        "::1", "fe80::5054:ff:fe12:3456", "fd00::2", "2a00:1450:4001:809::200e"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("fib_trie", "if_inet6", "public"),
    [
        (FIB_TRIE, IF_INET6, ("2a00:1450:4001:809::200e", "9.9.9.9")),
        (FIB_TRIE.replace("9.9.9.9", "10.9.9.9"), None, ()),
        ("", IF_INET6.rpartition("2a00")[0], ()),
    ],
)
def test_public_addresses_are_those_that_anybody_may_reach(
    tmp_path: Path, fib_trie: str, if_inet6: str | None, public: tuple[str, ...]
) -> None:
    assert public_addresses(machine(tmp_path, fib_trie, if_inet6)) == public


def test_addresses_that_the_kernel_does_not_list_are_not_taken_for_none(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="fib_trie"):
        public_addresses(machine(tmp_path, None, IF_INET6))


def test_this_machine_lists_its_own() -> None:
    if not Path("/proc/net/fib_trie").exists():
        pytest.skip("no /proc/net/fib_trie here")
    if not int(Path("/sys/class/net/lo/flags").read_text(), 16) & 1:  # IFF_UP
        pytest.skip("lo is down here")
    assert "127.0.0.1" in parse_fib_trie(Path("/proc/net/fib_trie").read_text(encoding="ascii"))
    assert isinstance(public_addresses(), tuple)
