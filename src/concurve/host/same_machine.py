"""Are two runs of one machine? And what differs between the machines' descriptions? Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

#: What makes another machine of it. Everything else can be changed on one and the same.
HARDWARE = ("cpu_model", "topology", "memory_bytes", "virtualisation")

#: Memory as the kernel counts it moves by a little from boot to boot.
_MEMORY_SHARE = 0.02

#: What is expected to differ, or says nothing of speed.
_IGNORED = ("programs", "absent", "user")


def is_same_machine(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Do the descriptions tell of the same hardware?"""
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
