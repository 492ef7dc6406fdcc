"""Whether two runs are of one machine, and what differs between the descriptions. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

#: Facts that identify the hardware. All others can change on one machine.
HARDWARE = ("cpu_model", "topology", "memory_bytes", "virtualisation")

#: Facts of newer descriptions: nothing is known of them where one lacks them.
_SINCE = ("cpus",)

#: The memory that the kernel counts varies a little from boot to boot.
_MEMORY_SHARE = 0.02

#: Facts that always differ, or do not affect speed.
_IGNORED = ("programs", "absent", "user")


def is_same_machine(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Do the descriptions have the same hardware?"""
    return all(_alike(name, one.get(name), other.get(name)) for name in HARDWARE)


def machine_differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """What differs, in words: ``kernel: 6.1 and 6.18``."""
    names = [name for name in dict.fromkeys([*one, *other]) if name not in _IGNORED]
    return [
        f"{path.replace('_', ' ')}: {_words(first)} and {_words(second)}"
        for name in names
        if not _alike(name, one.get(name), other.get(name))
        for path, first, second in _leaves(name, one.get(name), other.get(name))
    ]


def _alike(name: str, first: Any, second: Any) -> bool:
    numbers = isinstance(first, int | float) and isinstance(second, int | float)
    if name == "memory_bytes" and numbers:
        return bool(abs(first - second) <= _MEMORY_SHARE * max(first, second))
    return bool(first == second)


def _leaves(path: str, first: Any, second: Any) -> Iterator[tuple[str, Any, Any]]:
    """The differing values inside two that differ."""
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        for name in dict.fromkeys([*first, *second]):
            if name in _SINCE and not (name in first and name in second):
                continue
            if first.get(name) != second.get(name):
                yield from _leaves(f"{path} {name}", first.get(name), second.get(name))
    else:
        yield path, first, second


def _words(value: Any) -> str:
    if value in (None, "", []):
        return "not known"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value)
