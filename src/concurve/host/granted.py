"""How many CPUs this process is granted: by its affinity, and by the quotas of its cgroups."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator
from pathlib import Path

from concurve.host.machine import allowed_cpus

_Reader = Callable[[Path], float | None]


def granted_cpus(root: Path = Path("/")) -> int:
    """The CPUs that this process may use at once, at least 1: those of its affinity, or fewer
    where a quota of its cgroup, or of one above, allows less."""
    quotas = [math.ceil(quota - 0.01) for quota in _quotas(root)]
    return max(1, min([len(allowed_cpus()), *quotas]))


def cpu_quota(root: Path = Path("/")) -> float | None:
    """The least quota of CPUs of our cgroup and of those above it; ``None`` without one."""
    return min(_quotas(root), default=None)


def _quotas(root: Path) -> Iterator[float]:
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
