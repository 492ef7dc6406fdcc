"""The machine on which a run was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from concurve.findings.run import Findings
from concurve.report import format as fmt
from concurve.report.document import Block, Facts, Paragraph, Section

# A group with more entries than this takes one line, which joins entries of equal value.
_GROUP_MAX = 8
_UNITS = {"bytes": "bytes", "seconds": "s", "ns": "ns"}


def section(findings: Findings) -> Section:
    """Everything known of the machine."""
    summary = str(findings.machine.get("cpu_model", ""))
    return Section(
        "The machine",
        (described(findings.machine),),
        anchor="machine",
        folded=True,
        summary=summary,
    )


def described(machine: Mapping[str, Any]) -> Block:
    """The machine as a list of names and values."""
    known = facts(machine)
    return Facts(tuple(known)) if known else Paragraph("Nothing is known of it.")


def facts(machine: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Name and value of everything known, nested names joined: ``cpu model``, ``Example 3000``."""
    return list(_facts("", machine))


def _facts(prefix: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and prefix and _is_long(value):
        yield _name(prefix), fmt.clean(_together(value))
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _facts(f"{prefix} {name}".strip(), inner)
    elif isinstance(value, (list, tuple)) and any(isinstance(v, (Mapping, list)) for v in value):
        for number, inner in enumerate(value):
            yield from _facts(f"{prefix} {number}".strip(), inner)
    elif value not in (None, "", []):
        yield _name(prefix), fmt.clean(_text(prefix, value))


def _is_long(group: Mapping[str, Any]) -> bool:
    return len(group) > _GROUP_MAX and all(isinstance(item, str) for item in group.values())


def _together(group: Mapping[str, str]) -> str:
    """``l1tf, mds: Not affected | retbleed: Vulnerable``: entries by value, the commonest first."""
    by_value: dict[str, list[str]] = {}
    for name, value in group.items():
        by_value.setdefault(value, []).append(_name(name))
    common_first = sorted(by_value.items(), key=lambda item: -len(item[1]))
    return " | ".join(f"{', '.join(names)}: {value}" for value, names in common_first)


def _name(key: str) -> str:
    """The words of a key; a unit at its end moves to the value."""
    words = key.replace("_", " ").split()
    if len(words) > 1 and words[-1] in _UNITS:
        words = words[:-1]
    return fmt.clean(" ".join(words))


def _text(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(_text("", item) for item in value)
    unit = _UNITS.get(key.replace("_", " ").split(" ")[-1]) if key else None
    if unit and isinstance(value, (int, float)):
        scale = fmt.scale_for([value], unit)
        return fmt.with_unit(fmt.plain(value, scale), scale.symbol)
    return str(value)
