"""The server keeps off the CPUs that are measured, and comes back before it starts anything."""

from __future__ import annotations

import asyncio
import fcntl
import os
from pathlib import Path

import msgspec
import pytest

from concurve.definition.controls import ControlsTemplate
from concurve.host.lock import lock_path, measurement_lock, measurement_under_way
from concurve.measuring.heads import new_head
from concurve.store.run_head import RunHead
from concurve.web.quiet import (
    LOOKS_IN_VAIN_MAX,
    Quiet,
    free_cpus,
    move_all_threads,
    run_named_in,
)
from concurve.wire.spec import Controls, RoleSpec, TrialSpec
from tests.helpers.fakes import small_study

HOLDER = "pid 7, concurve run 20261123-091200-abcd (small)"


def spec(*cpus: tuple[int, ...] | None) -> TrialSpec:
    roles = tuple(
        RoleSpec(name=f"r{place}", argv=("true",), controls=Controls(cpus=given))
        for place, given in enumerate(cpus)
    )
    return TrialSpec(trial="t", roles=roles)


@pytest.mark.parametrize(
    ("specs", "free"),
    [
        ([spec((0,)), spec((1,))], (2, 3)),
        ([spec((0,), (3,))], (1, 2)),
        ([spec((0,), None)], ()),
        ([spec((0, 1, 2, 3))], ()),
        ([], (0, 1, 2, 3)),
    ],
)
def test_the_cpus_that_no_role_uses(specs: list[TrialSpec], free: tuple[int, ...]) -> None:
    assert free_cpus(specs, (0, 1, 2, 3)) == free


def head(cpus: str | None) -> RunHead:
    study = small_study()
    role = msgspec.structs.replace(study.roles[0], controls=ControlsTemplate(cpus=cpus))
    return new_head(msgspec.structs.replace(study, roles=(role,)), "quick", 1, "concurve sweep")


class Machine:
    """A machine of four CPUs on which a run is or is not measured."""

    def __init__(self, cpus: str | None) -> None:
        self.holder = ""
        self.moves: list[tuple[int, ...]] = []
        self.asked: list[str] = []
        self.head: RunHead | None = head(cpus)
        allowed = tuple(sorted(os.sched_getaffinity(0)))
        self.all = allowed
        self.quiet = Quiet(self.find, lambda: self.holder, self.moves.append, allowed)

    def find(self, run: str) -> RunHead | None:
        self.asked.append(run)
        return self.head if run == "20261123-091200-abcd" else None


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one CPU")
def test_it_moves_once_for_a_measurement_and_comes_back() -> None:
    first = min(os.sched_getaffinity(0))
    machine = Machine(f"{first}-{first}")
    machine.quiet.look()
    assert machine.moves == []
    machine.holder = HOLDER
    for _ in range(3):
        assert machine.quiet.look() == HOLDER
    rest = tuple(cpu for cpu in machine.all if cpu != first)
    assert machine.moves == [rest] and machine.asked == ["20261123-091200-abcd"]
    machine.holder = ""
    machine.quiet.look()
    assert machine.moves == [rest, machine.all]


def test_a_run_that_is_not_stored_yet_is_looked_for_again() -> None:
    """It holds the lock before its head is stored."""
    first = min(os.sched_getaffinity(0))
    machine = Machine(f"{first}-{first}")
    head, machine.head = machine.head, None
    for run in ("ffff", "abcd"):
        machine.holder = HOLDER.replace("abcd", run)
        for _ in range(LOOKS_IN_VAIN_MAX):
            machine.quiet.look()
    assert machine.moves == []
    machine.head = head
    machine.quiet.look()
    rest = tuple(cpu for cpu in machine.all if cpu != first)
    assert machine.moves == ([rest] if rest else [])


def test_a_run_of_another_store_is_not_looked_for_for_ever() -> None:
    machine = Machine(None)
    machine.holder = HOLDER.replace("abcd", "ffff")
    for _ in range(3 * LOOKS_IN_VAIN_MAX):
        machine.quiet.look()
    assert len(machine.asked) == LOOKS_IN_VAIN_MAX + 1
    machine.holder, machine.asked = HOLDER.replace("abcd", "eeee"), []
    for _ in range(3 * LOOKS_IN_VAIN_MAX):
        machine.quiet.look()
    assert len(machine.asked) == LOOKS_IN_VAIN_MAX + 1, "the next one is looked for as often"


def test_it_stays_where_all_cpus_are_measured() -> None:
    machine = Machine(None)
    machine.holder = HOLDER
    machine.quiet.look()
    assert machine.moves == []


def test_of_a_run_of_another_store_nothing_is_known() -> None:
    machine = Machine(None)
    machine.holder = HOLDER.replace("abcd", "ffff")
    machine.quiet.look()
    assert machine.moves == []


def test_what_is_started_gets_all_cpus() -> None:
    machine = Machine(None)
    machine.holder = HOLDER
    machine.quiet.look()
    machine.quiet.come_back()
    assert machine.moves == [machine.all]


def test_looking_goes_on_until_it_is_cancelled() -> None:
    machine = Machine(None)

    async def some_time() -> None:
        task = asyncio.create_task(machine.quiet.watch())
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    machine.holder = HOLDER
    asyncio.run(some_time())
    assert machine.quiet.holder == HOLDER


def test_each_look_that_finds_a_measurement_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("concurve.web.quiet.LOOK_SECONDS", 0.0)
    machine = Machine(None)
    told: list[str] = []

    async def watched() -> None:
        twice = asyncio.Event()

        def measured() -> None:
            told.append(machine.holder)
            machine.holder = HOLDER if len(told) < 2 else ""
            if len(told) == 2:
                twice.set()

        machine.holder = HOLDER
        task = asyncio.create_task(machine.quiet.watch(measured))
        async with asyncio.timeout(120):
            await twice.wait()
        task.cancel()

    asyncio.run(watched())
    assert told == [HOLDER, HOLDER]


def test_each_thread_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[int] = []
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, cpus: moved.append(pid))
    move_all_threads((0,))
    assert os.getpid() in moved


@pytest.mark.parametrize(
    ("said", "run"),
    [(HOLDER, "20261123-091200-abcd"), ("holder unknown", None), ("", None)],
)
def test_the_run_that_a_holder_names(said: str, run: str | None) -> None:
    assert run_named_in(said) == run


# -- the lock is only looked at -------------------------------------------------------------------


def test_who_measures_is_read_from_the_lock() -> None:
    assert measurement_under_way() == ""
    with measurement_lock("concurve run x (small)"):
        assert measurement_under_way() == f"pid {os.getpid()}, concurve run x (small)"
    assert lock_path().exists()
    assert measurement_under_way() == ""


def test_looking_keeps_no_measurement_from_beginning() -> None:
    lock_path().touch()
    measurement_under_way()
    with lock_path().open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_a_lock_of_another_kind_or_file_is_none(tmp_path: Path) -> None:
    with measurement_lock("x"):
        status = lock_path().stat()
    (tmp_path / "proc").mkdir()
    lines = (
        f"1: POSIX  ADVISORY  WRITE 1 00:01:{status.st_ino} 0 EOF\n"
        f"2: FLOCK  ADVISORY  WRITE 1 ff:ff:{status.st_ino} 0 EOF\n"
        f"2: -> FLOCK  ADVISORY  WRITE 1 00:01:{status.st_ino} 0 EOF\n"
        "3: FLOCK\n\n"
    )
    (tmp_path / "proc/locks").write_text(lines)
    assert measurement_under_way(tmp_path) == ""
    (tmp_path / "proc/locks").write_text(
        f"1: FLOCK  ADVISORY  WRITE {os.getpid()} ff:ff:{status.st_ino} 0 EOF\n"
    )
    assert measurement_under_way(tmp_path).startswith(f"pid {os.getpid()}")


def test_a_look_that_fails_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("concurve.web.quiet.LOOK_SECONDS", 0.0)
    answers: list[str | Exception] = [OSError("no"), ValueError("no"), RuntimeError("no"), HOLDER]
    seen = asyncio.Event()

    async def until_seen() -> None:
        loop = asyncio.get_running_loop()

        def look() -> str:
            if not answers:
                loop.call_soon_threadsafe(seen.set)
                return HOLDER
            answer = answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        quiet = Quiet(lambda run: None, look, lambda cpus: None)
        task = asyncio.create_task(quiet.watch())
        async with asyncio.timeout(120):
            await seen.wait()
        assert quiet.holder == HOLDER
        task.cancel()

    asyncio.run(until_seen())
