"""How many CPUs the measured role may use in each cell of a stored run."""

from __future__ import annotations

import contextlib

from concurve.analysis.run import StoredRun
from concurve.errors import ConcurveError


def granted_cpus(run: StoredRun) -> dict[int, int]:
    """CPUs by index of the cell: those that the role is bound to, or all that the machine allowed.

    A cell is missing where they are not known: the run has no description of its machine, or
    several roles share its CPUs.
    """
    allowed = run.head.machine.get("cpus_allowed")
    if not isinstance(allowed, list) or not allowed:
        return {}
    if len(run.head.study.roles) != 1:
        return {}
    [role] = run.head.study.roles
    found: dict[int, int] = {}
    for index, cell in enumerate(run.plan.cells):
        with contextlib.suppress(ConcurveError):
            controls = role.controls.resolve(run.plan.values(cell), allowed, role.name)
            found[index] = len(controls.cpus or allowed)
    return found
