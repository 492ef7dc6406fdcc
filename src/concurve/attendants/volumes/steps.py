"""The steps that undo a change of the machine. A step may be done twice, because a process that
does it may be killed."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
import time
from pathlib import Path

import msgspec

from concurve.attendants.attendant import AttendantError
from concurve.attendants.volumes import blocks

#: Seconds for ending processes to close their files on a volume. Only a hang takes as long.
_PATIENCE_SECONDS = 60.0
_LOOK_SECONDS = 0.02


class Write(msgspec.Struct, frozen=True, tag="write"):
    """Write the former value of a setting."""

    path: str
    text: str

    def do(self) -> None:
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


class Unmount(msgspec.Struct, frozen=True, tag="unmount"):
    """Unmount a mount point, once no process uses it."""

    path: str

    def do(self) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while any(mount.where == Path(self.path) for mount in blocks.mounts()):
            said = call("umount", self.path, check=False)
            if said and time.monotonic() > deadline:
                raise AttendantError(said)
            if said:
                time.sleep(_LOOK_SECONDS)


class Detach(msgspec.Struct, frozen=True, tag="detach"):
    """Detach the loop devices over a file or a device, and wait until they are detached."""

    of: str

    def do(self) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while found := blocks.loops_over(Path(self.of)):
            for device in found:
                call("losetup", "--detach", str(device.node), check=False)
            if time.monotonic() > deadline:
                raise AttendantError(f"{found[0].node} stays attached to {self.of}")
            time.sleep(_LOOK_SECONDS)


class Remove(msgspec.Struct, frozen=True, tag="remove"):
    """Remove a file or a folder that we made."""

    path: str

    def do(self) -> None:
        path = Path(self.path)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


class RemoveEmpty(msgspec.Struct, frozen=True, tag="remove_empty"):
    """Remove a mount point that we made, unless it is not empty."""

    path: str

    def do(self) -> None:
        with contextlib.suppress(OSError):
            Path(self.path).rmdir()


Step = Write | Unmount | Detach | Remove | RemoveEmpty


def call(program: str, *arguments: str, check: bool = True) -> str:
    """Run a tool; return its message if it failed and ``check`` is false.

    Raises:
        AttendantError: it failed.
    """
    done = subprocess.run(
        [program, *arguments],
        stdin=subprocess.DEVNULL,
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
