"""Reports that a process of their own makes, as the pages ask for them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from concurve.errors import BusyError, ComparisonError
from concurve.store import Store
from concurve.web import drawing
from concurve.web.drawing import Drawings, Job

FIRST, SECOND = (Job(kind="run", names=(name,)) for name in ("first", "second"))


class Machine:
    """Reports take until ``is_made`` is set; none may begin while ``is_measured``."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun: list[Job] = []
        self.begins, self.is_made = asyncio.Event(), asyncio.Event()
        self.is_measured = False
        monkeypatch.setattr(drawing, "_made", self._made)

    async def _made(self, job: Job) -> bytes:
        self.begun.append(job)
        self.begins.set()
        await self.is_made.wait()
        return b"made"

    async def check(self) -> None:
        if self.is_measured:
            raise BusyError("a measurement runs", "wait")


def test_a_report_that_has_waited_begins_beside_no_measurement(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def asked() -> None:
        machine, drawings = Machine(monkeypatch), Drawings()
        first, second = (
            asyncio.create_task(drawings.make(job, machine.check)) for job in (FIRST, SECOND)
        )
        await machine.begins.wait()
        machine.is_measured = True
        machine.is_made.set()
        assert await first == b"made"
        with pytest.raises(BusyError):
            await second
        assert machine.begun == [FIRST]
        assert await drawings.make(FIRST, machine.check) == b"made", "it is kept"

    asyncio.run(asked())


def test_a_report_ends_when_a_measurement_begins_unless_its_reader_insists(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def asked() -> None:
        machine, drawings = Machine(monkeypatch), Drawings()
        drawings.give_way()
        made = asyncio.create_task(drawings.make(FIRST, machine.check))
        await machine.begins.wait()
        for _ in range(2):
            drawings.give_way()
        with pytest.raises(BusyError, match="a measurement begins"):
            await made
        machine.begins.clear()
        insisted = asyncio.create_task(drawings.make(FIRST))
        await machine.begins.wait()
        drawings.give_way()
        machine.is_made.set()
        assert await insisted == b"made"
        assert machine.begun == [FIRST, FIRST]

    asyncio.run(asked())


@pytest.mark.real
def test_a_report_that_is_refused_is_refused_as_what_it_is(tmp_path: Path) -> None:
    """The page answers with the status of the error: what is asked wrongly is no fault of ours."""
    db = str(tmp_path / "runs.db")
    Store(db).close()
    job = Job(kind="history", names=("nothing",), db=db)
    with pytest.raises(ComparisonError, match="no run of 'nothing' in "):
        asyncio.run(Drawings().make(job))
