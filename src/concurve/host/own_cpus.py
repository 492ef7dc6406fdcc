"""The CPUs that this process may run on."""

from __future__ import annotations

import contextlib
import os

#: No kernel has CPUs of greater numbers.
_CPUS_MOST = 8192


def take_all_cpus() -> None:
    """Run on every CPU that the kernel grants. Who is started by a daemon of Ray is bound to the
    CPUs of daemons, and what it starts inherits that."""
    with contextlib.suppress(OSError):
        os.sched_setaffinity(0, range(_CPUS_MOST))
