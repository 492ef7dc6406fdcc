"""Whether the programs of a trial may be connected to others, by what their threads waited for."""

from __future__ import annotations

from concurve.wire.record import TrialRecord, Waits

#: Fewer readings than this show nobody's sockets.
_READINGS_MIN = 50


def may_be_connected(record: TrialRecord) -> bool:
    """May some role exchange data over sockets or pipes? Who sends requests waits for the answers
    again and again. No where enough readings of what threads did have none at a network, in a poll
    or at a pipe; yes where they are too few, or none."""
    waits = [role.waits or Waits() for role in record.roles]
    outside = sum(it.network + it.poll + it.pipe for it in waits)
    return outside > 0 or sum(it.readings for it in waits) < _READINGS_MIN
