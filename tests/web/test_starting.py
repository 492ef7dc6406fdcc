"""What a start does to what runs beside it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from concurve.errors import BusyError
from concurve.host.load import Load
from concurve.host.own_python import PYTHON
from concurve.measuring.quiet import Asked, quiet_machine
from concurve.web import measurements
from concurve.web.addresses import starting
from concurve.web.measurements import Measurement
from concurve.web.quiet import Quiet
from concurve.web.security import new_access
from concurve.web.site import Site
from tests.helpers.real import PATIENCE

HOLDER = "pid 7, concurve run 20261123-091200-abcd (small)"

#: What is started: it reads its words, and then it ends, or waits for a line that never comes.
REFUSED = "import sys; sys.stdin.read(); sys.exit(2)"
WAITS = "import os, sys; sys.stdin.read(); os.read(os.pipe()[0], 1)"


class _Site(Site):
    """A site that counts how often it gives way; ``held``: who measures once one has started."""

    def __init__(self, folder: Path, held: str = "") -> None:
        self.held = held
        self.given_way = 0
        quiet = Quiet(lambda run: None, look=self._measured, move=lambda cpus: None)
        super().__init__(str(folder / "w.db"), new_access(("127.0.0.1",), 8377), quiet)

    def give_way(self) -> None:
        self.given_way += 1

    def _measured(self) -> str:
        return self.held if self.measurements.under_way() else ""


def given_way(monkeypatch: pytest.MonkeyPatch, site: _Site, code: str) -> int:
    """How often the site gives way to a start of this program."""
    monkeypatch.setattr(measurements, "_COMMAND", (*PYTHON, "-c", code))

    async def started() -> None:
        try:
            await starting.started(site, ["sweep"])
        finally:
            for item in site.measurements.under_way():
                _end(item)

    asyncio.run(started())
    return site.given_way


def _end(item: Measurement) -> None:
    item._process.kill()
    item._process.wait()


def test_a_command_line_that_is_refused_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(starting, "BEGUN_SECONDS", 60.0)
    assert given_way(monkeypatch, _Site(tmp_path), REFUSED) == 0


def test_one_that_cannot_be_started_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    site = _Site(tmp_path)

    async def refuse(words: list[str]) -> Measurement:
        raise BusyError("a measurement is under way", "wait")

    monkeypatch.setattr(site.measurements, "start", refuse)
    with pytest.raises(BusyError):
        given_way(monkeypatch, site, REFUSED)
    assert site.given_way == 0


@pytest.mark.parametrize("held", [HOLDER, ""], ids=["has the machine", "waits for a quiet one"])
def test_what_measures_or_waits_to_measure_has_the_machine_alone(
    held: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(starting, "BEGUN_SECONDS", 0.3)
    assert given_way(monkeypatch, _Site(tmp_path, held), WAITS) == 1


class _Ending(_Site):
    """A site that ends what was started once it gives way, so that its start is answered."""

    def give_way(self) -> None:
        super().give_way()
        for item in self.measurements.under_way():
            _end(item)


def test_one_that_waits_for_a_quiet_machine_is_given_way_before_its_first_look(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It takes the machine only after looks that the site's own work would disturb."""
    said: list[str] = []
    seconds = iter(range(10))
    with quiet_machine(
        Asked(300),
        said.append,
        lambda *_: None,
        lambda _: Load(0.0, 0.0),
        lambda: next(seconds),
    ):
        pass
    says = f"import os, sys; sys.stdin.read(); print('concurve: {said[0]}', file=sys.stderr)"
    waits = f"{says}; sys.stderr.flush(); os.read(os.pipe()[0], 1)"
    monkeypatch.setattr(measurements, "_COMMAND", (*PYTHON, "-c", waits))
    monkeypatch.setattr(starting, "BEGUN_SECONDS", 2 * PATIENCE)
    site = _Ending(tmp_path)

    async def start() -> None:
        try:
            await asyncio.wait_for(starting.started(site, ["sweep"]), PATIENCE)
        finally:
            for item in site.measurements.under_way():
                _end(item)

    asyncio.run(start())
    assert site.given_way == 1
