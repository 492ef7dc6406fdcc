"""A record → how long a server was under load, where nobody marks the measured phase. Pure.

A server runs before its load starts and after that has ended. It has no work then, so its threads
wait, and that time says nothing of what limits it.
"""

from __future__ import annotations

from collections.abc import Sequence

from concurve.wire.record import RoleRecord, TrialRecord, Usage

#: A server that ran for a greater share of its life without load may have worked in it: one that
#: compiles or reads its data at its start does, and its accounts do not say when.
IDLE_SHARE_MAX = 0.1


def under_load_ns(record: TrialRecord, server: RoleRecord, clients: Sequence[str]) -> int | None:
    """From the release of the first client to the end of the last one, as far as the server ran, in
    nanoseconds. ``None`` where that is not known, or the server may have worked outside of it: a
    client that did not end by itself may have had no work for long before it was ended."""
    loads = [role for name in clients if (role := record.role(name)) is not None]
    if not loads or any(load.ended_by != "itself" for load in loads):
        return None
    begin = max(server.released_ns, min(load.released_ns for load in loads))
    last = max(load.released_ns + load.wall_ns for load in loads)
    loaded = min(server.released_ns + server.wall_ns, last) - begin
    busiest = max((_ready_ns(thread.usage) for thread in server.threads.listed), default=0)
    is_idle_else = loaded >= (1 - IDLE_SHARE_MAX) * server.wall_ns and loaded >= busiest
    return loaded if is_idle_else and loaded > 0 else None


def _ready_ns(usage: Usage) -> int:
    """For how long a thread ran, or waited for a CPU."""
    return (usage.cpu_ns or 0) + (usage.run_queue_ns or 0)
