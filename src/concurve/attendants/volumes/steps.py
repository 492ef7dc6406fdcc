"""The steps that undo a change of the machine. A step may be done twice, because a process that
does it may be killed; one that has to wait says for what."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from concurve.attendants.attendant import AttendantError
from concurve.attendants.volumes import blocks
from concurve.attendants.volumes.blocks import Device
from concurve.host.mounts import mounts

#: Says to people what a step waits for.
Tell = Callable[[str], None]

#: How the names of the files and folders begin that carry a volume.
PREFIX = "concurve-volume-"

#: Seconds for ending processes to close their files on a volume. Only a hang takes as long.
_PATIENCE_SECONDS = 60.0
_LOOK_SECONDS = 0.02
#: What takes longer is told.
_TELL_SECONDS = 1.0


def silent(_: str) -> None:
    """Tell nobody."""


class Write(msgspec.Struct, frozen=True, tag="write"):
    """Write the former value of a setting."""

    path: str
    text: str

    def do(self, _: Tell = silent) -> None:
        """Write it, where it differs."""
        path = Path(self.path)
        try:
            if blocks.chosen(path.read_text(encoding="ascii")) != self.text:
                path.write_text(self.text, encoding="ascii")
        except FileNotFoundError:
            return  # the device is gone, and its setting with it
        except OSError as error:
            # A limit of a device that is gone is gone, too.
            if error.errno != errno.ENODEV:
                raise

    @property
    def says(self) -> str:
        """The step in words."""
        return f"set {self.path} to {self.text!r}"


class Unmount(msgspec.Struct, frozen=True, tag="unmount"):
    """Unmount a mount point, once no process uses it."""

    path: str

    def do(self, tell: Tell = silent) -> None:
        """Unmount it, and what was mounted over it."""
        # The kernel names mount points without symbolic links.
        where = Path(self.path).resolve()
        waiting = _Waiting(tell)
        while any(mount.where == where for mount in mounts()):
            said = call("umount", str(where), check=False)
            if said:
                waiting.wait(f"to unmount {where}", said, lambda: blocks.users_below(where))

    @property
    def says(self) -> str:
        """The step in words."""
        return f"unmount {self.path}"


class Unmap(msgspec.Struct, frozen=True, tag="unmap"):
    """Remove a device that we made over several others. It carries nothing of anybody else: what is
    mounted from it is unmounted."""

    name: str

    def do(self, tell: Tell = silent) -> None:
        """Remove it, once nothing uses it."""
        waiting = _Waiting(tell)
        while (device := blocks.mapped(self.name)) is not None:
            for where in blocks.mounted_from(device):
                Unmount(str(where)).do(tell)
            said = call("dmsetup", "remove", "--noudevsync", self.name, check=False)
            if said and blocks.mapped(self.name) is not None:
                waiting.wait(f"to remove {device.node}", said, device.users)

    @property
    def says(self) -> str:
        """The step in words."""
        return f"remove the device {self.name} over several others"


class Detach(msgspec.Struct, frozen=True, tag="detach"):
    """Detach the loop devices over a file or a device, and wait until they are detached. Those
    over a file of ours carry nothing of anybody else: what is mounted from them is unmounted, and
    loop devices over them are detached."""

    of: str

    def do(self, tell: Tell = silent) -> None:
        """Detach them."""
        of = Path(self.of).resolve()
        waiting = _Waiting(tell)
        while found := blocks.loops_over(of):
            for device in found:
                if _is_ours(device):
                    _clear(device, tell)
                call("losetup", "--detach", str(device.node), check=False)
            if blocks.loops_over(of):
                node = found[0].node
                waiting.wait(f"to detach {node}", f"{node} stays attached to {of}", found[0].users)

    @property
    def says(self) -> str:
        """The step in words."""
        return f"detach the loop devices over {self.of}"


class Remove(msgspec.Struct, frozen=True, tag="remove"):
    """Remove a file or a folder that we made."""

    path: str

    def do(self, _: Tell = silent) -> None:
        """Remove it."""
        path = Path(self.path)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)

    @property
    def says(self) -> str:
        """The step in words."""
        return f"remove {self.path}"


class RemoveEmpty(msgspec.Struct, frozen=True, tag="remove_empty"):
    """Remove a mount point that we made, unless it is not empty."""

    path: str

    def do(self, _: Tell = silent) -> None:
        """Remove it."""
        with contextlib.suppress(OSError):
            Path(self.path).rmdir()

    @property
    def says(self) -> str:
        """The step in words."""
        return f"remove {self.path}, if it is empty"


Step = Write | Unmount | Unmap | Detach | Remove | RemoveEmpty


class _Waiting:
    """Waits with an end, and says once for what."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._began = time.monotonic()
        self._told = False

    def wait(self, what: str, failed: str, users: Callable[[], list[str]]) -> None:
        """Wait a moment.

        Raises:
            AttendantError: it has lasted too long; ``failed`` says what the tool said.
        """
        waited = time.monotonic() - self._began
        if waited > _PATIENCE_SECONDS:
            raise AttendantError("; ".join([failed, *users()]))
        if waited > _TELL_SECONDS and not self._told:
            self._told = True
            by = ", ".join(users()) or failed
            self._tell(f"waiting {what}, at most {_PATIENCE_SECONDS:.0f} s: {by}")
        time.sleep(_LOOK_SECONDS)


def _is_ours(device: Device) -> bool:
    """Is it a loop device over a file that an attendant has made, or over such a device?"""
    backing = device.backing
    if backing is None:
        return False
    if backing.parent == Path("/dev"):
        return _is_ours(Device(backing.name))
    return backing.name.startswith(PREFIX)


def _clear(device: Device, tell: Tell) -> None:
    """Unmount what is mounted from a device, and detach the loop devices over it."""
    for where in blocks.mounted_from(device):
        Unmount(str(where)).do(tell)
    if blocks.loops_over(device.node):
        Detach(str(device.node)).do(tell)


def call(program: str, *arguments: str, check: bool = True, given: str = "") -> str:
    """Run a tool, with a text as its input; return its message if it failed and ``check`` is false.

    Raises:
        AttendantError: it failed.
    """
    done = subprocess.run(
        [program, *arguments],
        input=given,
        capture_output=True,
        text=True,
        errors="replace",
        env={**os.environ, "LC_ALL": "C"},
        close_fds=False,  # the journal's lock for tools is to last as long as they do
        check=False,
    )
    if done.returncode == 0:
        return done.stdout.strip() if check else ""
    said = (done.stderr or done.stdout).strip() or f"{program} failed with {done.returncode}"
    if check:
        raise AttendantError(said)
    return said
