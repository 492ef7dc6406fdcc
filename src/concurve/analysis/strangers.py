"""Who disturbed the trials of a run and may be the server that its command loads: a server that no
role is counts as a stranger, and puts each trial in doubt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from concurve.definition.purposes import may_load_a_stranger, names_a_server
from concurve.definition.study import Study
from concurve.findings.cells import Reject
from concurve.readings.connections import may_be_connected
from concurve.readings.contamination import BY_PROCESSES, STEAL, programs_named
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
    """The programs that took CPU time in nearly all of so many trials, those that did so in most
    first: who runs all the time does not end while a run waits for that."""
    if trials < _CONSTANT_TRIALS_MIN:
        return ()
    details = [reject.detail for reject in rejects if reject.cause in BY_PROCESSES]
    seen = Counter(name for it in details for name in {name for name, _ in programs_named(it)})
    found = [name for name, times in seen.most_common() if times >= _OF_TRIALS_CONSTANT * trials]
    return tuple(ANOTHER_RUN if name == OURS else name for name in found[:_NAMED_MAX])


def is_stolen(rejects: Iterable[Reject]) -> bool:
    """Are most trials in doubt so for CPU time that the hypervisor took?"""
    causes = Counter(reject.cause for reject in rejects if reject.used)
    return bool(causes) and causes.most_common(1)[0][0] == STEAL
