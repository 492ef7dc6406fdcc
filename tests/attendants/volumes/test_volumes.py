"""Volumes: every change of the machine is undone, whatever happens."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from concurve.attendants import volumes
from concurve.attendants.attendant import AttendantError
from concurve.attendants.volumes import blocks, file_systems, journal, limits, making
from concurve.attendants.volumes.attend import main
from concurve.attendants.volumes.blocks import Device
from concurve.attendants.volumes.file_systems import FILE_SYSTEMS, FileSystem
from concurve.attendants.volumes.journal import VARIABLE, new_journal, repair
from concurve.attendants.volumes.limits import own_groups
from concurve.attendants.volumes.options import parse
from concurve.attendants.volumes.steps import Detach, Remove, Unmount, Write, call
from concurve.errors import HostError
from concurve.host import mounts
from tests.helpers.needs import needs_root
from tests.helpers.turns import turn

PATIENCE = 300.0

#: Of the volumes here: a file system and little else.
SMALL = ("--size-mib", "24")


@pytest.fixture(autouse=True)
def journals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of journals for the test; its remaining steps are done at the end.

    Volumes of a killed process that no journal here mentions are found on the whole machine, those
    of other tests too: tests with volumes take turns.
    """
    folder = tmp_path / "journals"
    monkeypatch.setenv(VARIABLE, str(folder))
    with turn("volumes"):
        yield folder
        repair()


def journal_files(folder: Path) -> list[Path]:
    return list(folder.glob("*.journal"))


# -- without touching any device -----------------------------------------------------------------


def test_mounts_are_read_with_blanks_in_their_names() -> None:
    text = (
        "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
        "40 22 7:1 /a /mnt/my\\040disk rw - ext4 /dev/loop1 rw\n"
    )
    found = mounts.parse_mounts(text)
    assert found[0] == ("22", "254:0", Path("/"), "ext4", "/dev/vda")
    assert found[1] == ("40", "7:1", Path("/mnt/my disk"), "ext4", "/dev/loop1")


def test_a_folder_is_in_the_mount_that_is_nearest() -> None:
    found = mounts.mount_of(Path("/proc/self"))
    assert found is not None
    assert (found.kind, found.where) == ("proc", Path("/proc"))


def test_the_chosen_setting_stands_in_brackets_or_alone() -> None:
    assert blocks.chosen("none [mq-deadline] kyber \n") == "mq-deadline"
    assert blocks.chosen("128\n") == "128"


def test_options_have_defaults_and_tunables_may_stay() -> None:
    given = ["bfq", "--mount", "/m", "--on", "/v", "--tunable", "a_b=1", "--tunable", "c=default"]
    settings = parse(given)
    assert settings.tunables == (("a_b", "1"),)
    assert (settings.bytes, settings.write_bytes_per_second) == (1 << 30, 0)


def test_the_environment_may_name_what_volumes_are_on(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parse(["none", "--mount", "/m"]).on == Path("/var/tmp")
    monkeypatch.setenv("CONCURVE_VOLUME_ON", "/dev/other")
    assert parse(["none", "--mount", "/m"]).on == Path("/dev/other")


def test_a_file_system_is_an_option_that_in_place_has_no_use_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = ["none", "--mount", "/m"]
    assert parse(given).file_system.name == "ext4"
    assert parse([*given, "--file-system", "xfs"]).file_system.name == "xfs"
    with pytest.raises(SystemExit):
        parse([*given, "--file-system", "xfs", "--in-place"])
    assert "--in-place formats nothing" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wrong", [["--size-mib", "0"], ["--write-mib", "-1"], ["--tunable", "x"], ["--tunable", "/=1"]]
)
def test_wrong_options_are_refused(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        parse(["none", "--mount", "/m", *wrong])
    assert refused.value.code == 2
    assert "give" in capsys.readouterr().err


def test_changes_are_taken_back_the_last_one_first(tmp_path: Path, journals: Path) -> None:
    setting = tmp_path / "setting"
    setting.write_text("before")
    with new_journal() as journal:
        (path,) = journal_files(journals)
        journal.intend(Write(str(setting), "before"))
        setting.write_text("once")
        journal.intend(Write(str(setting), "once"))
        setting.write_text("twice")
        assert len(path.read_text().splitlines()) == 2
    assert setting.read_text() == "before"
    assert journal_files(journals) == []


def test_the_file_of_a_volume_is_for_its_owner_alone(tmp_path: Path) -> None:
    """It has the bytes of the databases in the volume, in a folder of all users."""
    options = parse(["none", "--mount", "/m", "--on", str(tmp_path), "--size-mib", "1"])
    mask = os.umask(0)
    try:
        with new_journal() as own:
            file = making._file(options, 0, own)
            assert file.stat().st_mode & 0o777 == 0o600
            assert file.stat().st_size == 1 << 20
            with pytest.raises(AttendantError, match="File exists"):
                making._file(options, 0, own)
    finally:
        os.umask(mask)
    assert not file.exists()


def abandoned(journals: Path, *lines: str) -> Path:
    """A journal that a killed process has left."""
    journals.mkdir(exist_ok=True)
    path = journals / "abandoned.journal"
    path.write_text("".join(lines))
    return path


@needs_root
def test_what_a_killed_process_left_is_taken_back_as_far_as_it_came(
    tmp_path: Path, journals: Path
) -> None:
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    for file in (first, second, third):
        file.write_text("changed")
    abandoned(
        journals,
        *(json.dumps({"type": "write", "path": str(f), "text": "before"}) + "\n"
          for f in (first, second)),
        '{"type":"done","step":1}\n',
        f'{{"type":"write","path":"{third}","te',
    )  # fmt: skip
    assert repair() == 1
    assert [file.read_text() for file in (first, second, third)] == [
        "before",
        "changed",
        "changed",
    ]
    assert journal_files(journals) == []
    assert repair() == 0


@needs_root
def test_a_step_that_fails_is_told_and_stays_and_the_others_are_done(
    tmp_path: Path, journals: Path
) -> None:
    setting, folder = tmp_path / "setting", tmp_path / "a-folder"
    setting.write_text("changed")
    folder.mkdir()  # cannot be written as a file can
    path = abandoned(
        journals,
        *(json.dumps({"type": "write", "path": str(f), "text": "before"}) + "\n"
          for f in (setting, folder)),
    )  # fmt: skip
    with pytest.raises(AttendantError, match="the next start tries again"):
        repair()
    assert setting.read_text() == "before"
    with pytest.raises(HostError, match="a killed run has left a volume"):
        volumes.repair()
    folder.rmdir()
    assert repair() == 1
    assert not path.exists()


@needs_root
def test_a_living_process_keeps_its_journal(tmp_path: Path) -> None:
    setting = tmp_path / "setting"
    setting.write_text("before")
    with new_journal() as journal:
        journal.intend(Write(str(setting), "before"))
        setting.write_text("changed")
        assert repair() == 0
        assert setting.read_text() == "changed"


@needs_root
def test_tools_that_outlive_their_process_are_waited_for(
    tmp_path: Path, journals: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = tmp_path / "setting"
    setting.write_text("changed")
    path = abandoned(
        journals, json.dumps({"type": "write", "path": str(setting), "text": "before"}) + "\n"
    )
    tool = os.open(path.with_suffix(".tools"), os.O_CREAT | os.O_RDWR)
    fcntl.flock(tool, fcntl.LOCK_EX)
    monkeypatch.setattr(journal, "_TOOLS_SECONDS", 0.0)
    with pytest.raises(
        AttendantError, match="a tool that a killed run has started is still running"
    ):
        repair()
    assert setting.read_text() == "changed"
    os.close(tool)
    assert repair() == 1
    assert setting.read_text() == "before"
    assert list(journals.iterdir()) == []


def test_a_tool_holds_the_lock_of_its_journal(journals: Path) -> None:
    with new_journal():
        (path,) = journals.glob("*.tools")
        held = call("sh", "-c", "for it in /proc/$$/fd/*; do readlink $it; done; true")
    assert str(path) in held.splitlines()


def test_steps_may_be_done_twice(tmp_path: Path) -> None:
    gone = str(tmp_path / "gone")
    for step in (Write(gone, "x"), Unmount(gone), Detach(gone), Remove(gone)):
        step.do()
    assert not Path(gone).exists()


def test_without_privilege_a_volume_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(HostError, match="only root may") as refused:
        volumes.command("volume-bfq", "here")
    assert refused.value.remedy == "run as root"


def test_a_scheduler_that_the_kernel_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda tool: f"/sbin/{tool}")
    monkeypatch.setattr(blocks, "known_schedulers", lambda: ("mq-deadline", "none"))
    assert volumes.command("volume-none", "here")[-1] == "none"
    with pytest.raises(HostError, match=r"no I/O scheduler 'kyber' \(it has mq-deadline, none\)"):
        volumes.command("volume-kyber", "here")


@pytest.mark.parametrize(
    ("tool", "package", "name"),
    [
        ("mkfs.ext4", "e2fsprogs", "volume-none"),
        ("mkfs.xfs", "xfsprogs", "volume-none-xfs"),
        ("losetup", "mount", "volume-bfq-btrfs"),
    ],
)
def test_a_missing_tool_is_named_with_its_package(
    tool: str, package: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(shutil, "which", lambda asked: None if asked == tool else asked)
    with pytest.raises(HostError, match=f"{tool} is not installed") as refused:
        volumes.command(name, "here")
    assert refused.value.remedy == f"apt-get install {package}"


def test_a_file_system_that_the_kernel_lacks_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = tmp_path / "filesystems"
    known.write_text("nodev\tproc\n\text4\n")
    monkeypatch.setattr(file_systems, "_KNOWN", known)
    monkeypatch.setattr(shutil, "which", lambda tool: None if tool == "modprobe" else tool)
    file_systems.check(FILE_SYSTEMS["ext4"], "here")
    with pytest.raises(HostError, match="here: the kernel has no file system xfs"):
        file_systems.check(FILE_SYSTEMS["xfs"], "here")


# -- limits --------------------------------------------------------------------------------------


def test_groups_are_looked_at_from_the_outermost_on(tmp_path: Path) -> None:
    text = "4:memory:/else\n0::/user.slice/session-1.scope\n"
    assert list(own_groups(text, tmp_path)) == [
        tmp_path,
        tmp_path / "user.slice",
        tmp_path / "user.slice" / "session-1.scope",
    ]
    assert list(own_groups("0::/\n", tmp_path)) == [tmp_path]


class Cgroups:
    """Folders that look like those of the kernel, and the limits of a device in them."""

    def __init__(self, folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
        own = folder / "own"
        own.write_text("0::/mine/inner\n")
        (folder / "mine").mkdir()
        monkeypatch.setattr(limits, "_OWN_GROUPS", own)
        mount = mounts.Mount("1", "0:30", folder, kind, "cgroup")
        monkeypatch.setattr(limits, "mounts", lambda: [mount])
        monkeypatch.setattr(Device, "number", "7:9")

    def limit(self) -> bool:
        settings = parse(["none", "--mount", "/m", "--write-mib", "2", "--read-mib", "1"])
        self.journal = contextlib.ExitStack()
        return limits.limit(Device("loop9"), settings, self.journal.enter_context(new_journal()))


def test_limits_of_version_2_are_those_of_the_outermost_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cgroups = Cgroups(tmp_path, "cgroup2", monkeypatch)
    (tmp_path / "mine" / "io.max").write_text("")
    assert cgroups.limit()
    text = (tmp_path / "mine" / "io.max").read_text()
    assert text == "7:9 wbps=2097152 rbps=1048576"
    cgroups.journal.close()
    assert (tmp_path / "mine" / "io.max").read_text() == "7:9 wbps=max rbps=max"


def test_the_controller_of_version_2_is_had_where_it_is_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cgroups = Cgroups(tmp_path, "cgroup2", monkeypatch)
    (tmp_path / "cgroup.controllers").write_text("cpu io memory\n")
    (tmp_path / "cgroup.subtree_control").write_text("cpu memory\n")
    # The kernel would make io.max now; here nothing does.
    assert not cgroups.limit()
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+io"
    cgroups.journal.close()
    assert (tmp_path / "cgroup.subtree_control").read_text() == "-io"


def test_limits_of_version_1_are_those_of_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cgroups = Cgroups(tmp_path, "cgroup", monkeypatch)
    assert not cgroups.limit(), "that of another controller"
    files = [tmp_path / f"blkio.throttle.{it}_bps_device" for it in ("write", "read")]
    for file in files:
        file.write_text("")
    cgroups.journal.close()
    assert cgroups.limit()
    assert [file.read_text() for file in files] == ["7:9 2097152", "7:9 1048576"]
    cgroups.journal.close()
    assert [file.read_text() for file in files] == ["7:9 0", "7:9 0"]


# -- with loop devices ---------------------------------------------------------------------------


def lacking() -> str | None:
    """Why no loop device can be made here, or ``None``."""
    if os.geteuid() != 0:
        return "not root"
    tools = (*volumes.TOOLS, "mkfs.ext4")
    if missing := [tool for tool in tools if shutil.which(tool) is None]:
        return f"not installed: {', '.join(missing)}"
    try:
        call("losetup", "--find")
    except AttendantError as error:
        return f"no loop devices: {error}"
    return None


needs_loops = pytest.mark.skipif(lacking() is not None, reason=str(lacking()))


class Attended:
    """An attendant with its report channel."""

    def __init__(self, scheduler: str, mount: Path, *arguments: str) -> None:
        reads, writes = os.pipe()
        self.mount = mount
        self.process = subprocess.Popen(
            [sys.executable, "-m", "concurve.attendants.volumes.attend", scheduler, "--mount",
             str(mount), *arguments],
            env={**os.environ, "CONCURVE_REPORT": str(writes)},
            pass_fds=[writes],
            stderr=subprocess.PIPE,
            text=True,
        )  # fmt: skip
        os.close(writes)
        self.reports = os.fdopen(reads)
        self.facts: dict[str, Any] = {}

    def wait_until_ready(self) -> None:
        for text in self.reports:
            line = json.loads(text)
            if line.get("ready"):
                return
            self.facts[line["fact"]] = line["value"]
        raise AssertionError(f"it was never ready: {self.end()}")

    def end(self, number: signal.Signals | None = None) -> str:
        """What it said when it had ended."""
        if number is not None:
            self.process.send_signal(number)
        _, said = self.process.communicate(timeout=PATIENCE)
        self.reports.close()
        return said

    @property
    def device(self) -> Device:
        return Device(self.facts["device"])


@pytest.fixture
def attend(tmp_path: Path, loop_devices: None) -> Iterator[Any]:
    started: list[Attended] = []

    def start(scheduler: str, *arguments: str, mount: str = "mount") -> Attended:
        started.append(Attended(scheduler, tmp_path / mount, *arguments))
        return started[-1]

    yield start
    for attended in started:
        attended.process.kill()
        attended.process.communicate(timeout=PATIENCE)


def settings_of(device: Device) -> dict[str, str]:
    """What schedulers and their changes set of a queue: the rest comes and goes with the file that
    a loop device is attached to."""
    names = [device.queue / name for name in ("scheduler", "nr_requests", "wbt_lat_usec")]
    found = {}
    for path in (*names, *sorted((device.queue / "iosched").glob("*"))):
        with contextlib.suppress(OSError):
            found[path.name] = path.read_text()
    return found


def all_settings() -> dict[str, dict[str, str]]:
    names = [path.name for path in Path("/sys/class/block").glob("*") if (path / "queue").exists()]
    return {name: settings_of(Device(name)) for name in names}


def mounted(path: Path) -> bool:
    return any(mount.where == path for mount in mounts.mounts())


def assert_nothing_is_left(folder: Path, journals: Path) -> None:
    assert not (folder / "mount").exists()
    assert list(folder.glob("concurve-volume-*")) == []
    assert [d.name for file in folder.glob("*") for d in blocks.loops_over(file)] == []
    assert journal_files(journals) == []


@needs_loops
@pytest.mark.parametrize("scheduler", volumes.SCHEDULERS)
def test_each_scheduler_is_set_read_back_and_restored(
    scheduler: str, attend: Any, tmp_path: Path, journals: Path
) -> None:
    if scheduler not in blocks.known_schedulers():
        pytest.skip(f"the kernel has no {scheduler}")
    before = all_settings()
    attended = attend(scheduler, "--on", str(tmp_path), *SMALL, "--write-mib", "20")
    attended.wait_until_ready()
    text = (attended.device.queue / "scheduler").read_text()
    assert blocks.chosen(text) == scheduler
    (attended.mount / "file").write_text("data")
    assert mounted(attended.mount)
    assert attended.end(signal.SIGTERM) == ""
    assert attended.process.returncode == 0
    assert_nothing_is_left(tmp_path, journals)
    after = all_settings()
    assert after[attended.device.name] == before.get(
        attended.device.name, after[attended.device.name]
    )


@needs_loops
@pytest.mark.parametrize("kind", FILE_SYSTEMS.values(), ids=FILE_SYSTEMS)
def test_each_file_system_is_made_and_mounted(
    kind: FileSystem, attend: Any, tmp_path: Path, journals: Path
) -> None:
    try:
        file_systems.check(kind, "here")
    except HostError as error:
        pytest.skip(str(error))
    size = ("--size-mib", str(kind.bytes_min >> 20))
    attended = attend("none", "--on", str(tmp_path), *size, "--file-system", kind.name)
    attended.wait_until_ready()
    own = next(mount for mount in mounts.mounts() if mount.where == attended.mount)
    assert own.kind == kind.name
    assert attended.facts["file_system"] == f"{kind.name}, new"
    # Btrfs has a device number of its own.
    assert Device.beneath(attended.mount).name == attended.device.name
    assert attended.device.users()[0].endswith(f"is mounted on {attended.mount}")
    assert attended.end(signal.SIGTERM) == ""
    assert_nothing_is_left(tmp_path, journals)


@needs_loops
def test_a_killed_attendant_is_repaired_by_the_next_start(
    attend: Any, tmp_path: Path, journals: Path
) -> None:
    scheduler = next(name for name in blocks.known_schedulers() if name != "none")
    first = attend(scheduler, "--on", str(tmp_path), *SMALL, "--write-mib", "20")
    first.wait_until_ready()
    first.end(signal.SIGKILL)
    assert mounted(first.mount)
    # The same mount point again: the second one finds it free, since it repairs first.
    second = attend("none", "--on", str(tmp_path), *SMALL)
    second.wait_until_ready()
    assert len(list(tmp_path.glob("concurve-volume-*"))) == 1
    assert second.end(signal.SIGINT) == ""
    assert_nothing_is_left(tmp_path, journals)


@needs_loops
def test_a_kill_at_any_moment_leaves_nothing_for_good(
    attend: Any, tmp_path: Path, journals: Path
) -> None:
    """As soon as the journal has so many lines, and once more while it takes back."""
    before = all_settings()
    for lines in range(1, 8):
        attended = attend("none", "--on", str(tmp_path), *SMALL)
        wait_for_journal(journals, attended, b"\n", lines)
        attended.end(signal.SIGKILL)
        repair()
        assert_nothing_is_left(tmp_path, journals)
    attended = attend("none", "--on", str(tmp_path), *SMALL)
    attended.wait_until_ready()
    attended.process.send_signal(signal.SIGTERM)
    wait_for_journal(journals, attended, b'"done"', 1)
    attended.end(signal.SIGKILL)
    repair()
    assert_nothing_is_left(tmp_path, journals)
    # It is the one that all of them had, since no other test attaches loop devices now.
    assert settings_of(attended.device) == before.get(attended.device.name)


def wait_for_journal(journals: Path, attended: Attended, what: bytes, count: int) -> None:
    """Until it says something so often; without a pause, since that lasts a moment."""
    deadline = time.monotonic() + PATIENCE
    while attended.process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(FileNotFoundError):
            if any(path.read_bytes().count(what) >= count for path in journal_files(journals)):
                return


@pytest.fixture
def disk(tmp_path: Path, loop_devices: None) -> Iterator[Device]:
    """A device of the user's own."""
    file = tmp_path / "users-disk"
    with file.open("wb") as opened:
        opened.truncate(64 << 20)
    node = call("losetup", "--find", "--show", str(file))
    device = Device(Path(node).name)
    scheduler = blocks.chosen((device.queue / "scheduler").read_text())
    yield device
    with contextlib.suppress(OSError):  # another scheduler has no such tunable
        (device.queue / "iosched" / "fifo_batch").write_text("16")
    (device.queue / "scheduler").write_text(scheduler)
    Unmount(str(tmp_path / "users-mount")).do()
    Detach(str(file)).do()


@needs_loops
def test_a_device_that_was_named_is_formatted_and_its_settings_restored(
    attend: Any, disk: Device, tmp_path: Path, journals: Path
) -> None:
    if "mq-deadline" not in blocks.known_schedulers():
        pytest.skip("the kernel has no mq-deadline")
    (disk.queue / "scheduler").write_text("mq-deadline")
    (disk.queue / "iosched" / "fifo_batch").write_text("5")
    before = settings_of(disk)
    attended = attend("none", "--on", str(disk.node))
    attended.wait_until_ready()
    assert attended.device.name == disk.name
    assert blocks.chosen((disk.queue / "scheduler").read_text()) == "none"
    attended.end(signal.SIGTERM)
    assert settings_of(disk) == before, "what was set of the scheduler before, too"
    # What an earlier trial left on it may go, and nothing else.
    second = attend("mq-deadline", "--on", str(disk.node), "--tunable", "fifo_batch=2")
    second.wait_until_ready()
    assert (disk.queue / "iosched" / "fifo_batch").read_text() == "2\n"
    second.end(signal.SIGTERM)
    assert settings_of(disk) == before
    call("mkfs.ext4", "-q", "-F", str(disk.node))
    refused = attend("none", "--on", str(disk.node))
    assert "TYPE=ext4" in (said := refused.end()) and "--erase formats it" in said
    erased = attend("none", "--on", str(disk.node), "--erase")
    erased.wait_until_ready()
    erased.end(signal.SIGTERM)
    assert journal_files(journals) == []


@needs_loops
def test_a_folder_may_be_used_in_place(attend: Any, disk: Device, tmp_path: Path) -> None:
    own = tmp_path / "users-mount"
    own.mkdir()
    call("mkfs.ext4", "-q", "-F", str(disk.node))
    call("mount", str(disk.node), str(own))
    (own / "mine").write_text("data")
    before = settings_of(disk)
    scheduler = blocks.known_schedulers()[0]
    attended = attend(scheduler, "--on", str(own), "--in-place")
    attended.wait_until_ready()
    assert attended.device.name == disk.name
    assert blocks.chosen((disk.queue / "scheduler").read_text()) == scheduler
    (attended.mount / "of-the-trial").write_text("data")
    assert attended.end(signal.SIGTERM) == ""
    assert settings_of(disk) == before
    assert {path.name for path in own.iterdir()} == {"mine", "lost+found"}


@needs_loops
def test_a_device_in_use_is_refused(
    disk: Device, tmp_path: Path, journals: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "users-mount"
    own.mkdir()
    call("mkfs.ext4", "-q", "-F", str(disk.node))
    call("mount", str(disk.node), str(own))
    assert attend_here("none", tmp_path, "--on", str(disk.node), "--erase") == 1
    assert f"{disk.node} is in use: {disk.name} is mounted on {own}" in capsys.readouterr().err
    call("umount", str(own))
    held = os.open(disk.node, os.O_RDONLY | os.O_EXCL)
    assert attend_here("none", tmp_path, "--on", str(disk.node), "--erase") == 1
    os.close(held)
    assert "cannot be opened exclusively" in capsys.readouterr().err
    assert not journals.exists(), "it was refused before anything was done"


@needs_loops
def test_a_device_that_is_too_small_is_refused(
    disk: Device, tmp_path: Path, journals: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("--on", str(disk.node), "--file-system", "btrfs")
    if shutil.which("mkfs.btrfs") is None:
        pytest.skip("mkfs.btrfs is not installed")
    assert attend_here("none", tmp_path, *arguments) == 1
    assert f"{disk.node} has 64 MiB: too small for btrfs" in capsys.readouterr().err
    assert not journals.exists()


@needs_loops
def test_a_scheduler_that_a_device_lacks_is_refused(
    disk: Device,
    tmp_path: Path,
    journals: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    queue = tmp_path / "queue"
    queue.mkdir()
    (queue / "scheduler").write_text("[none] mq-deadline\n")
    monkeypatch.setattr(Device, "queue", queue)
    assert attend_here("bfq", tmp_path, "--on", str(disk.node)) == 1
    said = f"{disk.name} has no I/O scheduler 'bfq', but none, mq-deadline"
    assert said in capsys.readouterr().err
    assert not journals.exists()


def test_without_privilege_an_attendant_touches_nothing(
    tmp_path: Path,
    journals: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert attend_here("none", tmp_path, "--on", str(tmp_path)) == 1
    assert "only root may mount a volume" in capsys.readouterr().err
    assert not journals.exists()
    assert list(tmp_path.iterdir()) == []


def attend_here(scheduler: str, folder: Path, *arguments: str) -> int:
    """An attendant that is refused at once, in this process."""
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    name = Path("/proc/self/comm").read_text()
    try:
        return main([scheduler, "--mount", str(folder / "mount"), *arguments])
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        Path("/proc/self/comm").write_text(name)


@needs_root
def test_what_cannot_be_had_is_refused_before_anything_is_touched(
    tmp_path: Path, journals: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = blocks.Device.beneath(Path("/"))
    for arguments, said in [
        (["--on", str(root.node), "--erase"], "carries the root file system"),
        (["--on", str(root.disk.node), "--erase"], "carries the root file system"),
        (["--on", "/", "--in-place"], "carries the root file system"),
        (
            ["--on", str(tmp_path), "--size-mib", "99999999"],
            "MiB left, and 99999999 MiB are wanted",
        ),
        (["--on", str(tmp_path), "--size-mib", "1"], "gives 1 MiB: too small for ext4"),
        (["--on", str(tmp_path / "nowhere")], "No such file or directory"),
        (["--on", "/dev/null"], "neither a folder nor a block device"),
    ]:
        assert attend_here("none", tmp_path, *arguments) == 1
        assert said in capsys.readouterr().err
    (tmp_path / "mount").mkdir()
    (tmp_path / "mount" / "mine").write_text("data")
    assert attend_here("none", tmp_path, "--on", str(tmp_path)) == 1
    assert "is no empty folder" in capsys.readouterr().err
    assert not journals.exists()


@needs_loops
def test_a_tunable_that_is_not_there_is_told_and_all_is_taken_back(
    attend: Any, tmp_path: Path, journals: Path
) -> None:
    attended = attend("none", "--on", str(tmp_path), *SMALL, "--tunable", "fifo_batch=1")
    assert "neither none nor the queue of loop" in attended.end()
    assert attended.process.returncode == 1
    assert_nothing_is_left(tmp_path, journals)
