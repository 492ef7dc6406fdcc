"""The window: the setting is the kernel's command line, and the picture is the kernel's picture."""

from __future__ import annotations

import asyncio
import os
import shlex
import struct
import subprocess
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from concurve.definition.templates import expand
from concurve.errors import HostError, StudyError
from concurve.host.native import binary
from concurve.store import Store
from concurve.web.bookmarks import parse, to_toml, to_xml
from concurve.web.window.picture import Window, WindowState, look_seconds
from concurve.web.window.setting import (
    PIXELS_MAX,
    Jvm,
    Setting,
    built_in,
    kernel_of,
    words,
)
from concurve.web.window.sweep import as_sweep
from tests.helpers.real import missing, wait_until
from tests.web.places import OWN, Visited, visited

JSON = {"accept": "application/json", **OWN}
ROOT = Path(__file__).parents[2]

SMALL = Setting(
    bookmark=msgspec.structs.replace(built_in(), width=40, height=30), iterations=200, threads=2
)


def changed(**more: Any) -> Setting:
    return msgspec.structs.replace(SMALL, **more)


def no_jvm() -> str | None:
    """Why the JVM kernel cannot be run here, or ``None``."""
    try:
        kernel_of(changed(kernel="jvm"))
    except HostError as error:
        return error.what
    return None


async def computed(setting: Setting) -> tuple[list[int], dict[int, int], WindowState]:
    """A whole picture: the counts of its pixels, how many pixels each thread computed, and its
    state in the end."""
    window = Window()
    picture = window.start(setting, kernel_of(setting))
    width = setting.bookmark.width
    lines: dict[int, list[int]] = {}
    async for several in picture.lines():
        for number, *rest in struct.iter_unpack(f"<{1 + width}I{width}H", several):
            # Only what is computed several times may be computed by others in the end.
            assert number not in lines or (setting.repeat > 1 and lines[number] != rest)
            lines[number] = rest
    while picture.state().pixel_sum is None:
        assert not picture.state().said, picture.state().said
        await asyncio.sleep(0.02)
    state = picture.state()
    window.close()
    assert sorted(lines) == list(range(setting.bookmark.height))
    owners = Counter(owner for line in lines.values() for owner in line[width:])
    return [count for line in lines.values() for count in line[:width]], dict(owners), state


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Visited]:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data {x}"))
    Store(str(tmp_path / "web.db")).close()
    with visited(tmp_path / "web.db") as found:
        yield found


@pytest.mark.skipif(not (ROOT / "subjects").exists(), reason="not a checkout")
def test_the_first_part_is_that_of_every_measurement() -> None:
    file = ROOT / "subjects/mandelbrot/data/benchmark-location.toml"
    assert parse(file.read_text(encoding="utf-8")) == built_in()


def test_a_picture_on_all_cpus_is_looked_at_seldom() -> None:
    """And more seldom the longer it takes."""
    assert look_seconds(1, 2, elapsed=100) < 1  # one CPU is idle
    assert look_seconds(2, 2, elapsed=1) >= 2
    assert look_seconds(3, 2, elapsed=100) == pytest.approx(10)


def test_the_setting_is_the_command_line() -> None:
    line = words(changed(sync="cas", grain="tile", simd=True), "l.toml", "p", ("kernel",))
    assert line == [
        "kernel", "--threads=2", "--sync=cas", "--grain=tile", "--tile-size=32", "--simd",
        "--iterations=200", "--repeat=1", "--location=l.toml", "--live=p",
    ]  # fmt: skip
    cpu = min(os.sched_getaffinity(0))
    line = words(changed(cpus=(cpu,), nice=5), "l", "p", ("kernel",))
    assert [Path(line[0]).name, *line[1:3]] == ["taskset", "-c", str(cpu)]
    assert [Path(line[3]).name, *line[4:7]] == ["nice", "-n", "5", "kernel"]


def test_the_setting_of_a_jvm_is_its_command_line() -> None:
    jvm = Jvm(kind="forkjoin", priority=7, after_loop="spin")
    line = words(changed(kernel="jvm", jvm=jvm, policy="rr:1"), "l", "p", ("java", "-jar", "j"))
    assert [Path(line[0]).name, *line[1:3]] == ["chrt", "--rr", "1"]
    assert line[3:] == [
        "java", "-jar", "j", "--threads=2", "--sync=none", "--grain=line", "--kind=forkjoin",
        "--priority=7", "--after-loop=spin", "--iterations=200", "--repeat=1", "--location=l",
        "--live=p",
    ]  # fmt: skip


def test_the_virtual_machine_has_its_options(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[object, ...]] = []
    monkeypatch.setattr("concurve.web.window.setting.command", lambda *what: asked.append(what))
    kernel_of(changed(kernel="jvm", jvm=Jvm(java="25", collector="Z", maps_priority=True)))
    kernel_of(changed(kernel="jvm"))
    kernel_of(changed())
    (program, _, java, options), (_, _, by_default, none), (native, *_) = asked
    assert (program, java) == ("mandelbrot-java", "25")
    assert options == ["-XX:+UseZGC", "-XX:ThreadPriorityPolicy=1"]
    assert (by_default, none, native) == (None, [], "mandelbrot")


def test_a_priority_that_the_system_refuses_computes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``nice`` warns where it may not lower its value, and starts the program nevertheless."""
    nice = tmp_path / "nice"
    nice.write_text("#!/bin/sh\necho 'nice: cannot set niceness: Permission denied' >&2\nexit 0\n")
    nice.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr("concurve.web.window.setting.command", lambda *what: ("kernel",))
    with pytest.raises(HostError, match="Permission denied") as refused:
        kernel_of(changed(nice=-5))
    assert "nice value" in refused.value.remedy
    assert kernel_of(changed()) == ("kernel",)


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        (changed(threads=0), "threads"),
        (changed(threads=100_000), "threads"),
        (changed(iterations=0), "iterations"),
        (changed(iterations=2**32), "iterations"),
        (changed(repeat=0), "repeat"),
        (changed(nice=20), "nice"),
        (changed(tile_size=0), "tile size"),
        (changed(policy="fifo"), "policy"),
        (changed(policy="rr:1; reboot"), "policy"),
        (changed(kernel="jvm", simd=True), "pixel by pixel"),
        (changed(kernel="jvm", jvm=Jvm(java="/bin/sh")), "version of Java"),
        (changed(kernel="jvm", jvm=Jvm(priority=11)), "Java priority"),
        (changed(kernel="jvm", jvm=Jvm(kind="virtual", priority=6)), "virtual"),
        (changed(cpus=(100_000,)), "CPU 100000"),
        (changed(bookmark=msgspec.structs.replace(built_in(), width=PIXELS_MAX)), "width"),
        (changed(bookmark=msgspec.structs.replace(built_in(), width=9000)), "too large"),
    ],
)
def test_a_setting_that_cannot_be_computed(setting: Setting, says: str) -> None:
    with pytest.raises(StudyError, match=says) as raised:
        words(setting, "l", "p", ("kernel",))
    assert raised.value.remedy


def test_bookmarks_are_read_and_written(site: Visited) -> None:
    for ending, write in (("toml", to_toml), ("xml", to_xml)):
        bookmark = msgspec.to_builtins(built_in())
        written = site.client.post(f"/bookmark/{ending}", json=bookmark, headers=JSON)
        assert written.text == write(built_in())
        read = site.client.post("/bookmark/read", json=written.text, headers=JSON)
        assert read.json() == bookmark
    assert site.client.post("/bookmark/exe", json={}, headers=JSON).status_code == 404
    wrong = site.client.post("/bookmark/read", json="<x/>", headers=JSON)
    assert wrong.status_code == 400 and "bookmark" in wrong.json()["what"]


def test_no_picture_beside_a_measurement(tmp_path: Path) -> None:
    Store(str(tmp_path / "web.db")).close()
    with visited(tmp_path / "web.db", holder="pid 1, x") as site:
        setting = msgspec.to_builtins(SMALL)
        answer = site.client.post("/window/start", json=setting, headers=JSON)
        assert answer.status_code == 409


class Computing:
    """A picture that is computed until it is stopped."""

    is_computing = True
    because = ""

    def stop(self, because: str = "") -> None:
        """Note why."""
        self.is_computing, self.because = False, because

    def close(self) -> None:
        """Nothing."""


def test_a_start_that_fails_leaves_the_picture(
    site: Visited, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = Computing()
    site.site.window.picture = picture  # type: ignore[assignment]

    async def start(words: list[str]) -> None:
        raise StudyError("no such program", "another")

    monkeypatch.setattr(site.site.measurements, "start", start)
    answer = site.client.post("/new/start/sweep", json={"command": "true"}, headers=JSON)
    assert answer.json()["what"] == "no such program"
    assert picture.is_computing and not picture.because


def test_a_measurement_that_is_started_elsewhere_ends_the_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("concurve.web.quiet.LOOK_SECONDS", 0.01)
    Store(str(tmp_path / "web.db")).close()
    with visited(tmp_path / "web.db", holder="pid 1, x") as site:
        picture = Computing()
        site.site.window.picture = picture  # type: ignore[assignment]
        wait_until(lambda: not picture.is_computing, "the end of the picture")


def test_the_page_has_its_settings(site: Visited) -> None:
    text = site.client.get("/window").text
    assert "canvas" in text and "iterations" in text
    answer = site.client.get("/window/7", headers=JSON)
    assert answer.status_code == 400 and "another picture" in answer.json()["what"]


@pytest.mark.real
@pytest.mark.skipif(missing() is not None, reason=missing() or "")
class TestKernel:
    """With the real kernel."""

    def test_the_picture_is_complete_and_its_sum_the_kernels(self) -> None:
        counts, owners, state = asyncio.run(computed(SMALL))
        assert sum(counts) == state.pixel_sum
        threads = [thread for thread in state.threads if thread.number]
        assert [thread.name for thread in threads] == ["Thread-1", "Thread-2"]
        # Each region is coloured by the thread that the kernel says did it.
        assert {thread.number: thread.pixels for thread in threads} == owners
        assert state.computations == 1 and not state.is_computing

    @pytest.mark.skipif(no_jvm() is not None, reason=no_jvm() or "")
    def test_the_jvm_computes_the_same_picture(self) -> None:
        for repeat in (1, 2):
            of_jvm = changed(kernel="jvm", threads=3, grain="pixel", sync="cas", repeat=repeat)
            counts, owners, state = asyncio.run(computed(of_jvm))
            assert sum(counts) == state.pixel_sum == sum(asyncio.run(computed(SMALL))[0])
            assert state.computations == repeat and state.compute_seconds is not None
            threads = [thread for thread in state.threads if thread.number]
            assert {item.number: item.pixels for item in threads if item.pixels} == owners
            assert state.collector

    @pytest.mark.skipif(no_jvm() is not None, reason=no_jvm() or "")
    def test_a_jvm_that_refuses_its_options_says_why(self) -> None:
        async def said() -> str:
            window = Window()
            picture = window.start(SMALL, (*kernel_of(changed(kernel="jvm")), "--no-such-option"))
            while picture.is_computing or not picture.state().said:
                await asyncio.sleep(0.02)
            window.close()
            return picture.state().said

        assert "--no-such-option" in asyncio.run(said())

    def test_what_is_refused_ends_no_picture(self) -> None:
        async def tried() -> None:
            window = Window()
            first = window.start(SMALL, kernel_of(SMALL))
            with pytest.raises(StudyError):
                window.start(changed(threads=0), ("kernel",))
            assert window.picture is first
            window.start(SMALL, kernel_of(SMALL))
            with pytest.raises(StudyError):
                window.find(first.number)
            window.close()

        asyncio.run(tried())

    def test_a_picture_is_stopped_and_confined(self) -> None:
        async def stopped() -> None:
            window = Window()
            long = changed(iterations=2**32 - 1)
            picture = window.start(long, kernel_of(long))
            cpu = min(os.sched_getaffinity(0))
            picture.confine((cpu,))
            for task in Path(f"/proc/{picture._process.pid}/task").iterdir():
                assert os.sched_getaffinity(int(task.name)) == {cpu}
            with pytest.raises(StudyError):
                picture.confine((100_000,))
            window.give_way()
            picture._process.wait()
            assert "a measurement has begun" in picture.state().said
            with pytest.raises(StudyError):
                picture.confine((cpu,))
            window.close()

        asyncio.run(stopped())

    def test_a_picture_can_be_measured(self, site: Visited) -> None:
        asked = site.client.post(
            "/window/measure", json=msgspec.to_builtins(SMALL), headers=JSON
        ).json()
        line = expand(shlex.split(asked["command"]), {"threads": 2})
        assert line[0] == str(binary("concurve-mandelbrot"))
        assert line[1:3] == ["--threads", "2"]
        location = Path(line[line.index("--location") + 1])
        assert tomllib.loads(location.read_text()) == msgspec.to_builtins(SMALL.bookmark)
        assert asked["levels"] == "1..2*2"

    @pytest.mark.skipif(no_jvm() is not None, reason=no_jvm() or "")
    def test_the_measured_command_computes_the_picture(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """With either kernel, as the form hands it on."""
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
        sums = set()
        for setting in (SMALL, changed(kernel="jvm", jvm=Jvm(collector="Serial", priority=7))):
            fields = as_sweep(setting)
            assert fields["name"] == "threads" and fields["policy"] == ""
            line = expand(shlex.split(fields["command"]), {"threads": 2})
            printed = subprocess.run(line, capture_output=True, text=True, check=True).stdout
            sums |= {text for text in printed.splitlines() if text.startswith("pixel_sum")}
        assert len(sums) == 1


def test_without_a_home_nothing_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("concurve.web.window.sweep.data_folder", lambda: None)
    monkeypatch.setattr("concurve.web.window.sweep.kernel_of", lambda *_: ("kernel",))
    with pytest.raises(HostError, match="bookmark"):
        as_sweep(SMALL)
