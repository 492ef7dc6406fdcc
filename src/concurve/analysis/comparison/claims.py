"""The claims of a study on two machines: does what holds on one hold on the other?"""

from __future__ import annotations

from collections.abc import Sequence

from concurve.analysis.comparison.sides import Side
from concurve.findings.claims import ClaimFinding, VerdictName
from concurve.findings.comparison import Alike, ClaimOnBoth
from concurve.host.same_machine import is_same_machine

_DECIDED = ("supported", "refuted")
_UNTESTABLE = "not testable here"


def claims_on_both(sides: tuple[Side, Side]) -> tuple[ClaimOnBoth, ...]:
    """The claims that every session of both sides judged; none where both sides are of one machine,
    or of different studies. The verdict of a side is that of all its sessions, and undecided where
    they do not agree. Claims that neither machine can test are left out."""
    base, new = sides
    if is_same_machine(base.sessions[0].machine, new.sessions[0].machine):
        return ()
    if len({run.run.study for side in sides for run in side.sessions}) > 1:
        return ()
    judged = [[_by_id(run.claims) for run in side.sessions] for side in sides]
    everywhere = [claims for side in judged for claims in side]
    found = []
    for id_, claim in judged[1][0].items():
        if not all(id_ in claims for claims in everywhere):
            continue
        of_base, of_new = (_verdict([claims[id_] for claims in side]) for side in judged)
        if (of_base, of_new) != (_UNTESTABLE, _UNTESTABLE):
            alike = _alike(of_base, of_new)
            found.append(
                ClaimOnBoth(id=id_, says=claim.says, base=of_base, new=of_new, alike=alike)
            )
    return tuple(found)


def _by_id(claims: Sequence[ClaimFinding]) -> dict[str, ClaimFinding]:
    return {claim.id: claim for claim in claims}


def _verdict(claims: Sequence[ClaimFinding]) -> VerdictName:
    verdicts = {claim.verdict for claim in claims}
    return verdicts.pop() if len(verdicts) == 1 else "undecided"


def _alike(base: VerdictName, new: VerdictName) -> Alike:
    if base not in _DECIDED or new not in _DECIDED:
        return "undecided"
    return "alike" if base == new else "not alike"
