"""How many CPUs the measured role may use in each cell of a stored run."""

from __future__ import annotations

import contextlib

from concurve.analysis.run import StoredRun
from concurve.errors import ConcurveError


def granted_cpus(run: StoredRun) -> dict[int, int]:
    """CPUs by index of the cell: those that the role is bound to, else all that the machine allowed.

    A cell is missing where they are not known, as for a run without a description of its machine,
    or for a role bound to the CPUs that others leave free.
    """
    allowed = run.head.machine.get("cpus_allowed")
    if not isinstance(allowed, list) or not allowed:
        return {}
    study = run.head.study
    role = next(role for role in study.roles if role.name == study.target)
    found: dict[int, int] = {}
    if role.controls.cpus == "spare":
        return found
    for index, cell in enumerate(run.plan.cells):
        with contextlib.suppress(ConcurveError):
            controls = role.controls.resolve(run.plan.values(cell), allowed, role.name)
            found[index] = len(controls.cpus or allowed)
    return found
