"""What a host of a test says of itself: the same as this laboratory."""

from __future__ import annotations

import os

from concurve.host.own_files import PACKAGE
from concurve.hosts import messages as m
from concurve.version import __version__

#: In the place of digests of what is installed here.
FILES = {PACKAGE: "one", "concurve-native": "one"}

DESCRIPTION = m.Description(
    version=__version__,
    python="3.11",
    runner="0.1",
    cpus=(0, 1),
    machine={},
    probes={},
    nice=os.getpriority(os.PRIO_PROCESS, 0),
    files=FILES,
)
