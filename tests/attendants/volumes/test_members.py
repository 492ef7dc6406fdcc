"""Volumes over several devices: each member has the scheduler, and all of it is undone."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from concurve.attendants import volumes
from concurve.attendants.attendant import AttendantError
from concurve.attendants.volumes import blocks, journal, making, mapping, steps
from concurve.attendants.volumes.blocks import Device
from concurve.attendants.volumes.checks import check
from concurve.attendants.volumes.journal import new_journal, repair
from concurve.attendants.volumes.mapping import LAYOUTS, Layout, Member, table
from concurve.attendants.volumes.options import parse
from concurve.attendants.volumes.places import VARIABLE
from concurve.attendants.volumes.steps import Detach, Remove, Unmap
from concurve.errors import HostError
from tests.attendants.volumes.test_volumes import (  # noqa: F401
    all_settings,
    assert_nothing_is_left,
    attend,
    journal_files,
    journals,
    needs_loops,
    settings_of,
)
from tests.helpers.needs import needs_root

# Fixtures of the other file, by their names.
# ruff: noqa: F811

OPTIONS = ["bfq", "--mount", "/m"]


# -- without touching any device -----------------------------------------------------------------


def test_linear_members_follow_each_other() -> None:
    members = [Member("7:1", 2048), Member("7:3", 4096), Member("8:16", 1000)]
    assert table("linear", members).splitlines() == [
        "0 2048 linear 7:1 0",
        "2048 4096 linear 7:3 0",
        "6144 1000 linear 8:16 0",
    ]


def test_striped_members_take_turns_and_give_alike() -> None:
    """Whole stripes of 64 KiB, as many as the smallest member has."""
    members = [Member("7:1", 1000), Member("7:3", 4096)]
    assert table("striped", members) == "0 1792 striped 2 128 7:1 0 7:3 0\n"


def test_a_layout_has_three_loop_devices_unless_others_are_asked_for() -> None:
    options = parse([*OPTIONS, "--size-mib", "100"])
    assert (options.layout, options.members, options.bytes_of_member) == (None, 1, 100 << 20)
    options = parse([*OPTIONS, "--layout", "linear", "--size-mib", "100"])
    assert (options.layout, options.members, options.bytes_of_member) == ("linear", 3, 33 << 20)
    assert parse([*OPTIONS, "--layout", "striped", "--members", "2"]).members == 2
    options = parse([*OPTIONS, "--layout", "striped", "--on", "/dev/a", "--on", "/dev/b"])
    assert (options.on, options.others) == (Path("/dev/a"), (Path("/dev/b"),))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (["--layout", "mirror"], "invalid choice: 'mirror'"),
        (["--layout", "linear", "--members", "1"], "give a number from 2 to 16"),
        (["--members", "2"], "--members goes with --layout"),
        (["--on", "/dev/a", "--on", "/dev/b"], "one volume with --layout linear"),
        (["--layout", "linear", "--on", "/dev/a", "--on", "/dev/a"], "names a device twice"),
        (["--layout", "linear", "--in-place"], "--in-place makes no device"),
        (["--layout", "linear", "--on", "/a", "--on", "/b", "--members", "2"], "counts loop"),
    ],
)  # fmt: skip
def test_wrong_members_are_refused(
    wrong: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        parse([*OPTIONS, *wrong])
    assert refused.value.code == 2
    assert said in capsys.readouterr().err


def test_the_environment_may_name_several_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "/dev/one,/dev/other")
    alone = parse(OPTIONS)
    assert (alone.on, alone.others) == (Path("/dev/one"), ()), "the first, for a volume on one"
    several = parse([*OPTIONS, "--layout", "linear"])
    assert (several.on, several.others) == (Path("/dev/one"), (Path("/dev/other"),))
    monkeypatch.setenv(VARIABLE, "/a,folder")
    assert parse([*OPTIONS, "--layout", "linear"]).on == Path("/a,folder")


def kernel(folder: Path, monkeypatch: pytest.MonkeyPatch, has_mapper: bool = True) -> None:
    """A kernel with or without the device mapper, with every tool and scheduler."""
    known = folder / "devices"
    known.write_text(f"Block devices:\n  7 loop\n{'253 device-mapper' * has_mapper}\n")
    monkeypatch.setattr(mapping, "_DEVICES", known)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(
        shutil, "which", lambda tool: None if tool == "modprobe" else f"/sbin/{tool}"
    )
    monkeypatch.setattr(blocks, "known_schedulers", lambda: ("bfq", "none"))


def test_a_layout_is_in_the_name_of_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel(tmp_path, monkeypatch)
    line = volumes.command("volume-bfq-ext4-striped", "here")
    assert line[-5:] == ("bfq", "--file-system", "ext4", "--layout", "striped")


def test_a_kernel_without_device_mapper_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel(tmp_path, monkeypatch, has_mapper=False)
    assert volumes.command("volume-bfq-ext4", "here")
    with pytest.raises(HostError, match=r"here: volume-bfq-ext4-linear: .* no device mapper"):
        volumes.command("volume-bfq-ext4-linear", "here")
    monkeypatch.setattr(
        shutil, "which", lambda tool: None if tool == "dmsetup" else f"/sbin/{tool}"
    )
    with pytest.raises(HostError, match="dmsetup is not installed") as refused:
        volumes.command("volume-bfq-ext4-linear", "here")
    assert refused.value.remedy == "apt-get install dmsetup"


def test_one_device_in_the_environment_makes_no_volume_over_several(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel(tmp_path, monkeypatch)
    monkeypatch.setattr(Path, "is_block_device", lambda path: path.name == "only")
    monkeypatch.setenv(VARIABLE, "/dev/only")
    assert volumes.command("volume-bfq-ext4", "here")
    with pytest.raises(HostError, match="names one device, /dev/only"):
        volumes.command("volume-bfq-ext4-linear", "here")


@needs_root
def test_what_is_no_set_of_devices_is_refused_before_anything_is_touched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, journals: Path
) -> None:
    monkeypatch.setattr(mapping, "check", lambda where: None)
    root = Device.beneath(Path("/")).node
    mount = ["none", "--mount", str(tmp_path / "mount"), "--layout", "linear"]
    for places, said in [
        ([str(root)], f"joins several devices, and {root} is one"),
        ([str(root), str(tmp_path)], f"--on {tmp_path} is a folder"),
        ([str(root), "/dev/null"], "neither a folder nor a block device"),
    ]:
        named = [word for place in places for word in ("--on", place)]
        with pytest.raises(AttendantError, match=said):
            check(parse([*mount, *named]))
    assert not journals.exists()


class Mapper:
    """Devices over several others, as the device mapper keeps them, and the tool for them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *names: str, busy: int = 0) -> None:
        self.devices = {name: Device(f"dm-{place}") for place, name in enumerate(names)}
        self.busy = busy
        self.calls: list[tuple[str, ...]] = []
        monkeypatch.setattr(blocks, "mapped_devices", lambda: dict(self.devices))
        monkeypatch.setattr(blocks, "mounted_from", lambda device: [])
        monkeypatch.setattr(Device, "users", lambda device: ["it is looked at"])
        monkeypatch.setattr(steps, "call", self._call)

    def _call(self, *words: str, check: bool = True) -> str:
        self.calls.append(words)
        if self.busy:
            self.busy -= 1
            return "Device or resource busy"
        self.devices.pop(words[-1], None)
        return ""


def test_a_device_over_others_is_removed_once_nothing_uses_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mapper = Mapper(monkeypatch, "concurve-volume-1", "mine", busy=2)
    step = Unmap("concurve-volume-1")
    step.do()
    assert list(mapper.devices) == ["mine"]
    assert mapper.calls == [("dmsetup", "remove", "--noudevsync", "concurve-volume-1")] * 3
    step.do()
    assert len(mapper.calls) == 3, "what is gone is not removed again"


def test_a_device_that_stays_in_use_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    mapper = Mapper(monkeypatch, "concurve-volume-1", busy=1000)
    monkeypatch.setattr(steps, "_PATIENCE_SECONDS", 0.0)
    with pytest.raises(AttendantError, match="resource busy; it is looked at"):
        Unmap("concurve-volume-1").do()
    assert list(mapper.devices) == ["concurve-volume-1"]


@needs_root
def test_a_volume_over_several_of_a_lost_journal_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, journals: Path
) -> None:
    """First the device over the others, then these; not that of somebody else, nor of a process
    that is alive."""
    dead, alive = "concurve-volume-99999999", f"concurve-volume-{os.getpid()}"
    Mapper(monkeypatch, alive, dead, "vg0-root")
    files = [tmp_path / name for name in (dead, f"{dead}-1", "disk", f"{alive}-1")]
    monkeypatch.setattr(blocks, "loops", lambda: [Backed(file) for file in files])
    (left,) = journal.without_journal()
    assert left.steps == [
        Unmap(dead),
        *(step for file in files[:2] for step in (Detach(str(file)), Remove(str(file)))),
    ]
    journals.mkdir()
    undone = [Unmap(dead), *(Detach(str(file)) for file in files[:2])]
    lines = [msgspec.json.encode(step).decode() + "\n" for step in undone]
    (journals / "its.journal").write_text("".join(lines))
    assert journal.without_journal() == [], "a journal mentions it"
    (journals / "its.journal").unlink()


class Backed:
    """A loop device over a file."""

    def __init__(self, backing: Path) -> None:
        self.backing = backing


# -- with loop devices ---------------------------------------------------------------------------


@needs_loops
def test_each_member_has_the_scheduler_and_gets_its_own_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, journals: Path, loop_devices: None
) -> None:
    """On kernels without device mapper too: the first member stands for the device over all."""
    scheduler = next((name for name in blocks.known_schedulers() if name != "none"), "none")
    joined: list[str] = []

    def join(layout: Layout, devices: Sequence[Device], journal: object) -> Device:
        joined.extend([layout, *(device.name for device in devices)])
        return devices[0]

    monkeypatch.setattr(making, "join", join)
    options = parse(
        [scheduler, "--mount", str(tmp_path / "mount"), "--on", str(tmp_path),
         "--layout", "striped", "--size-mib", "72", "--write-mib", "20"]
    )  # fmt: skip
    before = all_settings()
    with new_journal() as changes:
        volume = making.make(options, changes)
        names = [member.name for member in volume.members]
        assert joined == ["striped", *names]
        assert len(set(names)) == 3
        for member in volume.members:
            text = (member.queue / "scheduler").read_text()
            assert blocks.chosen(text) == scheduler
            assert member.bytes == 24 << 20
        assert len(list(tmp_path.glob("concurve-volume-*"))) == 3
    assert_nothing_is_left(tmp_path, journals)
    for member in volume.members:
        after = settings_of(member)
        assert after == before.get(member.name, after)


def lacking() -> str | None:
    """Why no device over several others can be made here, or ``None``."""
    try:
        mapping.check("here")
    except HostError as error:
        return error.what
    return None


@needs_loops
@pytest.mark.skipif(lacking() is not None, reason=str(lacking()))
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_a_volume_over_several_is_written_to_and_undone(
    layout: Layout, end: signal.Signals, attend: Any, tmp_path: Path, journals: Path
) -> None:
    attended = attend("none", "--on", str(tmp_path), "--size-mib", "72", "--layout", layout)
    attended.wait_until_ready()
    assert attended.device.name.startswith("dm-")
    members = attended.facts["members"]
    assert attended.device.beneath_it() == {attended.device.name, *members}
    assert len(members) == 3
    sizes = [Device(name).bytes for name in members]
    assert attended.device.bytes <= sum(sizes)
    (attended.mount / "file").write_bytes(os.urandom(30 << 20))
    os.sync()
    assert Device.beneath(attended.mount).name == attended.device.name
    attended.end(end)
    repair()
    assert_nothing_is_left(tmp_path, journals)
    assert not [name for name in blocks.mapped_devices() if name.startswith("concurve-volume-")]
