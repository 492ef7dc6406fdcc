"""The quotas of CPU time of our cgroup and of those above it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

_Reader = Callable[[Path], float | None]


def cpu_quota(root: Path = Path("/")) -> float | None:
    """The least of the quotas, in CPUs; ``None`` without one."""
    return min(cpu_quotas(root), default=None)


def cpu_quotas(root: Path) -> Iterator[float]:
    """The quotas, in CPUs."""
    with contextlib.suppress(OSError, ValueError):
        for line in (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == "":
                yield from _upwards(root / "sys/fs/cgroup", path, _of_version_2)
            elif "cpu" in controllers.split(","):
                yield from _upwards(root / "sys/fs/cgroup/cpu", path, _of_version_1)


def _upwards(top: Path, path: str, read: _Reader) -> Iterator[float]:
    """The quotas of a cgroup and of those above it. In a container its path may not be visible."""
    folder = top / path.lstrip("/")
    for each in (folder, *folder.parents):
        with contextlib.suppress(OSError, ValueError):
            quota = read(each)
            if quota is not None and quota > 0:
                yield quota
        if each == top:
            return


def _of_version_2(folder: Path) -> float | None:
    quota, period = (folder / "cpu.max").read_text(encoding="utf-8").split()
    return None if quota == "max" else int(quota) / int(period)


def _of_version_1(folder: Path) -> float | None:
    quota = int((folder / "cpu.cfs_quota_us").read_text(encoding="utf-8"))
    period = int((folder / "cpu.cfs_period_us").read_text(encoding="utf-8"))
    return quota / period if quota > 0 else None
