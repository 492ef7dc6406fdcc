"""The machine's description as pairs of words."""

from __future__ import annotations

from concurve.report.sections.machine import facts


def test_nested_names_are_joined_and_units_shown() -> None:
    machine = {
        "cpu": {"model": "Example\x1b", "smt": False},
        "memory_bytes": 25_769_803_776,
        "governor": None,
        "cpus_allowed": [0, 1],
        "disks": [{"name": "a"}, {"name": "b"}],
        "empty": [],
        "zero": 0,
    }
    assert facts(machine) == [
        ("cpu model", "Example�"),
        ("cpu smt", "no"),
        ("memory", "24 GiB"),
        ("cpus allowed", "0, 1"),
        ("disks 0 name", "a"),
        ("disks 1 name", "b"),
        ("zero", "0"),
    ]


def test_a_long_group_is_one_line() -> None:
    group = {f"bug_{n}": "Not affected" for n in range(9)} | {"retbleed": "Vulnerable"}
    ((name, text),) = facts({"mitigations": group})
    assert name == "mitigations"
    assert text.startswith("bug 0, bug 1,") and text.endswith("Not affected | retbleed: Vulnerable")
