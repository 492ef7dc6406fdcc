"""How much of a trial with one worker nobody disturbed, at least. Pure.

While no process outside the trial runs and the hypervisor takes no CPU, a trial with one worker
goes on as it would alone: no lock, convoy or barrier among workers carries a delay on. So what
others did cost it no more than the CPU time that they took, and what it takes to get going again.
"""

from __future__ import annotations

from concurve.readings.contamination import foreign
from concurve.readings.measures import MEASURE_PHASE
from concurve.wire.record import REMOTE_FACT, RoleRecord, TrialRecord

#: One worker uses one CPU at most; what serves it, such as a collector of garbage, takes this more.
_ONE_CPU = 1.1


def undisturbed_share(record: TrialRecord, target: str) -> float | None:
    """The share of a trial's time for which nobody else used a CPU, at least; 0 where others took
    as much as it lasted. ``None`` where that is not known: of several hosts, of a short trial, of
    a role elsewhere, and where the ``target`` used more than one CPU, so that several threads of
    it worked."""
    machine, measured = record.machine, record.role(target)
    if record.hosts or machine.foreign_cpu_ns is None or measured is None:
        return None
    if any(REMOTE_FACT in role.facts for role in record.roles):
        return None
    used_ns, lasted_ns = measured.usage.cpu_ns, min(map(_lasted_ns, record.roles))
    if used_ns is None or lasted_ns <= 0 or used_ns > _ONE_CPU * measured.wall_ns:
        return None
    taken_ns = foreign(record).taken_ns + (machine.steal_ns or 0)
    return max(0.0, 1 - taken_ns / lasted_ns)


def _lasted_ns(role: RoleRecord) -> int:
    """How long a role ran, or its measured phases took: the figures are of these."""
    phases = [phase.wall_ns for phase in role.phases if phase.name == MEASURE_PHASE]
    return sum(phases) if phases else role.wall_ns
