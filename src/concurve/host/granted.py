"""How many CPUs this process is granted: by its affinity, and by the quotas of its cgroups."""

from __future__ import annotations

import math
from pathlib import Path

from concurve.host.machine import allowed_cpus
from concurve.host.quotas import cpu_quotas


def granted_cpus(root: Path = Path("/")) -> int:
    """The CPUs that this process may use at once, at least 1: those of its affinity, or fewer
    where a quota of its cgroup, or of one above, allows less."""
    quotas = [math.ceil(quota - 0.01) for quota in cpu_quotas(root)]
    return max(1, min([len(allowed_cpus()), *quotas]))
