"""Who disturbed the trials of a run and may be the server that its command loads: a server that no
role is counts as a stranger, and puts each trial in doubt."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from concurve.definition.purposes import may_load_a_stranger, names_a_server
from concurve.definition.study import Study
from concurve.findings.again import LOWEST_NICE, with_pids
from concurve.findings.cells import Reject
from concurve.readings.connections import may_be_connected
from concurve.readings.contamination import (
    BY_PROCESSES,
    STEAL,
    Named,
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
    so in nearly all that processes disturbed, where those are the most; so did several in bursts
    that did so together. Those of most trials are first. Who runs all the time does not end while a
    run waits for that. A program has the PIDs of its processes that did so in most disturbed
    trials; those of the lowest priority stand apart."""
    if trials < _CONSTANT_TRIALS_MIN:
        return ()
    details = [reject.detail for reject in rejects if reject.cause in BY_PROCESSES]
    each = [processes_named(detail) for detail in details]
    times: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    pids: dict[str, set[int]] = {}
    nice: dict[tuple[str, int], int] = {}  # the latest: it may be lowered in the course of a run
    for processes in each:
        times.update({item.program for item in processes})
        for item in processes:
            taken[item.program] += item.percent
            pids.setdefault(item.program, set()).add(item.pid)
            nice[item.program, item.pid] = item.nice
    least = _SHARE_LEAST * max(taken.values(), default=0)
    lasting = _lasting([[it for it in some if taken[it.program] >= least] for some in each])
    are_most = len(details) >= max(_CONSTANT_TRIALS_MIN, _OF_TRIALS_LEAST * trials)
    found = [
        program
        for program, seen in times.most_common()
        if taken[program] >= least
        and (
            seen >= _OF_TRIALS_CONSTANT * trials
            or (are_most and program != OURS and program in lasting)
            or (are_most and seen >= _OF_TRIALS_CONSTANT * len(details) and len(pids[program]) == 1)
        )
    ]
    named: list[str] = []
    for program in found[:_NAMED_MAX]:
        named += _constant(program, lasting.get(program, ()), nice)
    return tuple(named)


def _lasting(each: Sequence[Sequence[Named]]) -> dict[str, list[int]]:
    """The PIDs, by their programs, of those that took CPU time in most disturbed trials, where
    nearly all of these trials have one of them; ``each`` has the processes of a trial. Several that
    run in bursts disturb together what none of them disturbs alone."""
    of_trials = [{(item.program, item.pid) for item in processes} for processes in each]
    seen = Counter(process for processes in of_trials for process in processes)
    often = {process for process, trials in seen.items() if trials > len(each) / 2}
    if sum(bool(often & processes) for processes in of_trials) < _OF_TRIALS_CONSTANT * len(each):
        return {}
    found: defaultdict[str, list[int]] = defaultdict(list)
    for program, pid in sorted(often):
        found[program].append(pid)
    return found


def _constant(program: str, pids: Sequence[int], nice: Mapping[tuple[str, int], int]) -> list[str]:
    """A program with those of its processes that ran all the time; ``nice`` has the nice values of
    processes."""
    if program == OURS:
        return [ANOTHER_RUN]
    lowest = [pid for pid in pids if nice[program, pid] >= LOWEST_NICE]
    usual = [pid for pid in pids if nice[program, pid] < LOWEST_NICE]
    found = [with_pids(program, usual)] if usual or not lowest else []
    return [*found, with_pids(program, lowest, is_lowest=True)] if lowest else found


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
