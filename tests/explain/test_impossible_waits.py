"""Waits for a CPU that samples contradict are not believed."""

from __future__ import annotations

import msgspec
import pytest

from concurve.explain.impossible_waits import without_impossible_waits
from concurve.wire.record import PhaseRecord, RoleRecord, ThreadRecord, ThreadsRecord, Usage, Waits

SECOND = 1_000_000_000


def thread(running: int, readings: int, queued: float, cpu: float = 0.006) -> ThreadRecord:
    return ThreadRecord(
        tid=7,
        pid=7,
        name="nginx",
        source="sample",
        usage=Usage(cpu_ns=int(cpu * SECOND), run_queue_ns=int(queued * SECOND)),
        lived_ns=2 * SECOND,
        waits=Waits(readings=readings, running=running, other=readings - running),
    )


def role(*threads: ThreadRecord) -> RoleRecord:
    queued = sum(each.usage.run_queue_ns or 0 for each in threads)
    return RoleRecord(
        name="server",
        wall_ns=2 * SECOND,
        usage=Usage(cpu_ns=SECOND, run_queue_ns=queued),
        threads=ThreadsRecord(listed=threads),
    )


def test_a_thread_that_slept_in_nearly_all_samples_was_not_ready_all_the_time() -> None:
    worker = thread(40, 43, queued=0.02, cpu=1.9)
    found = without_impossible_waits(role(thread(1, 43, queued=2.06), worker))
    first, second = found.threads.listed
    assert (first.usage.run_queue_ns or 0) < 0.05 * SECOND
    assert second == worker
    assert (found.usage.run_queue_ns or 0) < 0.07 * SECOND


def test_a_phase_keeps_its_own_wait_and_one_that_was_not_read_is_none() -> None:
    """The impossible wait was outside of the phase, as a server starts."""
    own = role(thread(1, 43, queued=2.06), thread(40, 43, queued=0.3, cpu=1.6))
    phases = (
        PhaseRecord("measure", 0, SECOND, Usage(run_queue_ns=int(0.25 * SECOND))),
        PhaseRecord("other", 0, SECOND, Usage(run_queue_ns=2 * SECOND)),
        PhaseRecord("unread", 0, SECOND, Usage()),
    )
    found = without_impossible_waits(msgspec.structs.replace(own, phases=phases))
    measured, other, unread = (phase.usage.run_queue_ns for phase in found.phases)
    assert measured == int(0.25 * SECOND)
    assert other == found.usage.run_queue_ns
    assert unread is None


@pytest.mark.parametrize(
    ("running", "readings", "queued"),
    [(20, 43, 0.9), (1, 43, 0.2), (0, 10, 1.9), (43, 43, 1.9)],
    ids=["seen ready", "within chance", "few samples", "always ready"],
)
def test_what_samples_allow_is_believed(running: int, readings: int, queued: float) -> None:
    own = role(thread(running, readings, queued))
    assert without_impossible_waits(own) is own
