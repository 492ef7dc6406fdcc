"""Who disturbed the trials of a run and may be the server that its command loads: a server that no
role is counts as a stranger, and puts each trial in doubt."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from concurve.definition.purposes import may_load_a_stranger, names_a_server
from concurve.definition.study import Study
from concurve.findings.again import with_pids
from concurve.findings.cells import Reject
from concurve.readings.connections import may_be_connected
from concurve.readings.contamination import (
    BY_PROCESSES,
    STEAL,
    processes_named,
    programs_named,
    took_most,
)
from concurve.terms import ANOTHER_RUN, OTHERS, OURS
from concurve.wire.record import TrialRecord

#: So many are named, and none that took less than this share of what the first one did.
_NAMED_MAX = 3
_SHARE_LEAST = 0.1
#: A server is loaded in every trial. Who disturbs fewer than this share of them is none of it.
_OF_TRIALS_LEAST = 0.5
#: Who disturbs this share of the trials, or more, runs all the time. Of fewer trials than the least
#: nobody can tell.
_OF_TRIALS_CONSTANT = 0.9
_CONSTANT_TRIALS_MIN = 5


def strangers_of(
    study: Study, rejects: Iterable[Reject], trials: int, first: TrialRecord | None = None
) -> tuple[str, ...]:
    """The programs that took CPU time in the disturbed ones of so many trials of a run whose
    command may load a server that is no role, those that took most first;
    :data:`~concurve.terms.OTHERS` alone where none has a name. Empty where nothing in the study or
    in its ``first`` record speaks for a client, or processes disturbed few trials; another run of
    the laboratory is no server."""
    details = [reject.detail for reject in rejects if reject.cause in BY_PROCESSES]
    if not details or len(details) < _OF_TRIALS_LEAST * trials or not may_load_a_stranger(study):
        return ()
    if first is not None and not may_be_connected(first, names_a_server=names_a_server(study)):
        return ()
    taken: Counter[str] = Counter()
    for detail in details:
        for name, percent in programs_named(detail):
            taken[name] += percent
    is_ours = bool(taken.pop(OURS, 0))
    if is_ours and not taken:
        return ()
    least = _SHARE_LEAST * max(taken.values(), default=0)
    named = [name for name, percent in taken.most_common(_NAMED_MAX) if percent >= least]
    return tuple(named) or (OTHERS,)


def constant_of(rejects: Iterable[Reject], trials: int) -> tuple[str, ...]:
    """The programs that took CPU time in nearly all of so many trials, or single processes that did
    so in nearly all that processes disturbed, where those are the most; those that did so in most
    first. Who runs all the time does not end while a run waits for that. A program that was a
    single process has its PID, and one of several the PIDs of those that ran all the time."""
    if trials < _CONSTANT_TRIALS_MIN:
        return ()
    details = [reject.detail for reject in rejects if reject.cause in BY_PROCESSES]
    each = [processes_named(detail) for detail in details]
    times: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    pids: dict[str, Counter[int]] = {}
    for processes in each:
        times.update({item.program for item in processes})
        for item in processes:
            taken[item.program] += item.percent
            pids.setdefault(item.program, Counter())[item.pid] += 1
    least = _SHARE_LEAST * max(taken.values(), default=0)
    are_most = len(details) >= max(_CONSTANT_TRIALS_MIN, _OF_TRIALS_LEAST * trials)
    found = [
        program
        for program, seen in times.most_common()
        if taken[program] >= least
        and (
            seen >= _OF_TRIALS_CONSTANT * trials
            or (are_most and len(pids[program]) == 1 and seen >= _OF_TRIALS_CONSTANT * len(details))
        )
    ]
    least = _OF_TRIALS_CONSTANT * len(details)
    return tuple(_constant(program, pids[program], least) for program in found[:_NAMED_MAX])


def _constant(program: str, pids: Mapping[int, int], least: float) -> str:
    """A program with the processes that took CPU time in so many trials; ``pids`` says in how many
    each did."""
    if program == OURS:
        return ANOTHER_RUN
    return with_pids(program, sorted(pid for pid, trials in pids.items() if trials >= least))


def has_autogroups(machine: Mapping[str, Any]) -> bool:
    """Did the kernel share the CPUs among sessions first, by the facts of the machine?"""
    return machine.get("autogroup") == "1"


def is_stolen(rejects: Iterable[Reject]) -> bool:
    """Are most trials in doubt so for CPU time that the hypervisor took?"""
    causes = causes_of(reject for reject in rejects if reject.used)
    return causes[:1] == [STEAL]


def causes_of(rejects: Iterable[Reject]) -> list[str]:
    """The causes of disturbed trials, that of most trials first; of as many, the one that took most
    of the CPU time of its trials."""
    trials: Counter[str] = Counter()
    taken: defaultdict[str, float] = defaultdict(float)
    for reject in rejects:
        trials[reject.cause] += 1
        taken[reject.cause] += took_most(reject.cause, reject.detail).percent
    return sorted(trials, key=lambda cause: (-trials[cause], -taken[cause]))
