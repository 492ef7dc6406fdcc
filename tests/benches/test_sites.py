"""How the bench of sites judges what the judge, and the records of trials, say."""

from __future__ import annotations

from typing import Any

import pytest
from measuring.figures import Figure
from sites import COPIES_MIN, PLANTS, PROGRAMS, Plant, changes, copies, of_plant

from concurve.wire.record import (
    InstrumentRecord,
    MachineRecord,
    Outcome,
    RoleRecord,
    SitesRecord,
    TrialRecord,
    Waits,
)

MUTEX = next(plant for plant in PLANTS if plant.holder)
OTHER = next(plant for plant in PLANTS if plant.name == "semaphore")


def said(**more: Any) -> dict[str, Any]:
    """The verdict on a program, of which all is right unless ``more`` says otherwise."""
    found: dict[str, Any] = dict.fromkeys(
        ("judged", "function", "line", "taken", "held", "holder"), 200
    )
    found |= dict.fromkeys(("wrong", "unknown", "torn", "misread"), 0)
    return found | {"capture_cpu_ns": 2e6, "resolve_cpu_ns": 2e6, "shown": []} | more


def missed(plant: Plant, **more: Any) -> list[str]:
    figures = of_plant(plant, said(**more))
    return [figure.name.split(": ")[1] for figure in figures if figure.held is False]


def test_what_is_right_misses_nothing() -> None:
    assert missed(MUTEX) == [] and missed(OTHER) == []


@pytest.mark.parametrize(
    ("more", "name"),
    [
        ({"wrong": 2}, "wrong site"),
        ({"held": 0, "holder": 0}, "holder"),
        ({"holder": 190}, "holder"),
        ({"misread": 1}, "misread holder"),
        ({"capture_cpu_ns": 11e6}, "CPU time"),
        ({"taken": 20}, "CPU time"),
        ({"judged": 100}, "judged"),
    ],
)
def test_each_promise_can_be_missed(more: dict[str, Any], name: str) -> None:
    assert name in missed(MUTEX, **more)


def test_a_lock_that_does_not_say_who_has_it_needs_no_holder() -> None:
    assert missed(OTHER, held=0, holder=0) == []
    assert missed(OTHER, misread=1) == ["misread holder"]


def test_a_holder_is_asked_for_where_the_program_says_it() -> None:
    for plant in PLANTS:
        says = "hold(thread)" in (PROGRAMS / plant.source).read_text(encoding="utf-8")
        assert plant.holder == (says and "-static" not in plant.build), plant.name


def trial(sites: SitesRecord | None, memory: int = 0, why: str = "") -> TrialRecord:
    role = RoleRecord(
        name="target",
        sites=sites,
        waits=Waits(readings=100, memory=memory),
        absent={"sites": why} if why else {},
    )
    return TrialRecord(
        format=1,
        trial="bench",
        outcome=Outcome(kind="ok"),
        wall_ns=2_000_000_000,
        machine=MachineRecord(),
        instrument=InstrumentRecord(sites_cpu_ns=1_000_000),
        roles=(role,),
    )


def test_a_lock_whose_sites_were_not_read_says_nothing_of_their_cost() -> None:
    def held(readings: int) -> Figure:
        return copies("sites read", [trial(SitesRecord(readings=readings, torn=4))] * 3)

    figure = held(2 * COPIES_MIN)
    assert figure.held is True and "2.0 torn" in figure.how and "0.05 % of a CPU" in figure.how
    assert held(2 * COPIES_MIN - 1).held is False
    assert copies("sites read", [trial(None)]).held is False
    refused = copies("sites read", [trial(None, why="the host forbids it")])
    assert refused.held is None and refused.missing == "the host forbids it"


def test_a_program_that_was_not_seen_changing_its_memory_says_nothing() -> None:
    assert changes("changes", [trial(SitesRecord(skipped=7))]).held is False
    figure = changes("changes", [trial(SitesRecord(skipped=7, readings=1), memory=5)])
    assert figure.held is True and "7 were left alone and 1 " in figure.how
