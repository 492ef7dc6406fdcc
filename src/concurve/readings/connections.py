"""Whether the programs of a trial may be connected to others, by what their threads waited for."""

from __future__ import annotations

from concurve.wire.record import TrialRecord, Waits

#: Fewer readings than this show nobody's sockets.
_READINGS_MIN = 50


def may_be_connected(record: TrialRecord, *, names_a_server: bool = False) -> bool:
    """May some role send requests over sockets? Who does so waits at them for the answers, or in a
    poll: but so does a pool of processes, at its pipes. Where the command ``names_a_server``, yes
    unless enough readings of what threads did show no such wait."""
    waits = [role.waits or Waits() for role in record.roles]
    network, poll, pipe = (
        sum(getattr(it, kind) for it in waits) for kind in ("network", "poll", "pipe")
    )
    if not names_a_server:
        return network > 0 or (poll > 0 and not pipe)
    return network + poll > 0 or sum(it.readings for it in waits) < _READINGS_MIN
