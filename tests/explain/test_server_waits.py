"""What the sessions of a database wait for: clients, locks of rows, the log on the disk."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from concurve.definition.purposes import Purposes
from concurve.explain.accounts import account
from concurve.explain.blocked import blocked_clause
from concurve.explain.breakdown import Breakdown, breakdown
from concurve.explain.causes import cause_of
from concurve.explain.stacks import blocked_stacks
from concurve.explain.verdict import Verdict
from concurve.findings.explanation import CPUS, CellExplanation, Explanation, WaitSite
from concurve.readings.operations import Asked
from concurve.report.sections.limits import explanation_document
from concurve.report.terminal import lines
from concurve.wire.record import SiteRecord, SitesRecord, ThreadReadings
from tests.helpers.explaining import Thread, record, role, thread

SERVED = Asked(Purposes("server", "server", ("client",), True))
ROW = ("mutex", "epoll_wait", "LockAcquireExtended", "XactLockTableWait")
LATCH = ("other", "epoll_wait", "WaitLatch", "SyncRepWaitForLSN")
LWLOCK = ("mutex", "futex", "LWLockAcquire", "heap_update")
LOG = ("reader_writer_lock", "futex", "LWLockAcquireOrWait", "XLogFlush")


def site(kind: tuple[str, str, str, str], readings: int = 40, tid: int = 101) -> SiteRecord:
    primitive, call, operation, function = kind
    return SiteRecord(
        primitive=primitive, call=call, module="/usr/lib/postgresql/15/bin/postgres",
        offset="0x45c94f", found="cfi", readings=readings, threads=2, operation=operation,
        function=function, waiters=(ThreadReadings(tid, readings),),
    )  # fmt: skip


def sessions(
    threads: Sequence[Thread],
    operations: float,
    sites: Sequence[SiteRecord] = (),
    calls: dict[str, int] | None = None,
) -> Breakdown:
    """A server of so many sessions, a process each, whose client is hardly busy."""
    own = [{"pid": 101 + n, "tid": 101 + n, **one} for n, one in enumerate(threads)]
    server = role(own, None, "server")
    assert server.waits is not None
    server = msgspec.structs.replace(
        server,
        waits=msgspec.structs.replace(server.waits, calls=calls or {}),
        usage=msgspec.structs.replace(server.usage, block_outputs=9000),
        sites=SitesRecord(readings=sum(it.readings for it in sites), listed=tuple(sites)),
    )
    client = role([thread(0.1, poll=0.9, tid=900, name="pgbench")], operations, "client")
    found = account(record(server, client), SERVED)
    assert found is not None
    made = breakdown([found] * 5)
    assert made is not None
    return made


def session(**waits: float) -> Thread:
    return thread(0.05, name="postgres", switches=2000, **waits)


ONE = sessions([session(poll=0.95)], 1000)


def said_of(cell: Breakdown) -> Verdict:
    return cause_of(cell, ONE, serving=True)


def test_who_waits_for_a_row_does_not_wait_for_the_client() -> None:
    said = said_of(sessions([session(wake_up=0.7, poll=0.25)] * 4, 1100, [site(ROW)]))
    assert (said.cause, said.either) == ("lock", None)
    assert said.words.startswith(
        "70 % of it waiting for a lock on rows or tables that another one has (in "
        "LockAcquireExtended of postgres)"
    )


def test_a_background_process_at_its_latch_is_no_session() -> None:
    """It had nothing to do: its place says nothing of what the sessions wait for."""
    writer = thread(0.0, name="postgres", wake_up=1.0, switches=3)
    places = [site(ROW), site(LATCH, 90, tid=105)]
    said = said_of(sessions([*[session(wake_up=0.7, poll=0.25)] * 4, writer], 1100, places))
    assert said.cause == "lock" and "70 % of it" in said.words


@pytest.mark.parametrize("sites", [(), (site(ROW, 1),), (site(LATCH),)])
def test_who_is_to_be_woken_at_a_place_that_is_no_lock_is_not_accused(
    sites: Sequence[SiteRecord],
) -> None:
    said = said_of(sessions([session(wake_up=0.7, poll=0.25)] * 4, 1100, sites))
    assert (said.cause, said.either_way) == ("none", "waiting for a lock or for work")
    assert "a wake-up by another thread or process (in epoll, without a socket)" in said.words


def test_a_lone_session_waits_for_no_lock_of_another_one() -> None:
    lone = sessions([session(wake_up=0.9)], 1000, [site(ROW)])
    one = lone._replace(accounts=tuple(it._replace(level=1) for it in lone.accounts))
    said = cause_of(one, None, serving=True)
    assert (said.cause, said.either_way) == ("none", "")


def test_sessions_that_watch_their_sockets_wait_for_the_client() -> None:
    """Each is a process, which nobody wakes from inside but where it watches no socket."""
    cell = sessions([session(wake_up=0.05, poll=0.9)] * 4, 1100)
    said = said_of(cell)
    assert (said.cause, said.either) == ("client", None)
    assert said.words.endswith("each session waits at a socket of its own")
    untold = [it._replace(tells_wake_ups=False) for it in cell.accounts]
    together = [it._replace(apart=False) for it in cell.accounts]
    for accounts in (untold, together):
        said = said_of(cell._replace(accounts=tuple(accounts)))
        assert "the client, or inside for a lock (in poll or epoll)" in said.words


def test_a_wait_for_the_log_is_one_for_the_disk() -> None:
    alone = sessions([session(disk=0.8, poll=0.15)], 1000, calls={"fdatasync": 80})
    said = cause_of(alone, None, serving=True)
    words = "80 % of it blocked on the disk, until it has what was written (fdatasync)"
    assert said.cause == "io" and said.words.startswith(words)
    read = cause_of(sessions([session(disk=0.8, poll=0.15)], 1000), None, serving=True)
    assert read.cause == "io" and read.words.startswith("80 % of it blocked on the disk")
    assert "fdatasync" not in read.words


def writers() -> list[Thread]:
    """One of four flushes the log, and the others wait for that."""
    return [session(futex=0.6, disk=0.22, poll=0.13)] * 4


def test_who_waits_for_the_one_that_flushes_the_log_waits_for_the_disk() -> None:
    said = said_of(sessions(writers(), 1300, [site(LOG)], {"fdatasync": 88}))
    assert said.cause == "io"
    assert said.words.startswith(
        "60 % of it blocked on futexes, most of them in XLogFlush, while another one waits 88 % of "
        "the time for the disk to have what was written (fdatasync)"
    )


def test_a_lock_whose_holder_reads_or_runs_is_a_lock() -> None:
    """The disk works for somebody, and makes nothing durable; or nobody is at the disk."""
    reading = said_of(sessions(writers(), 1300, [site(LOG)], {"pwrite64": 88}))
    busy = [thread(0.3, futex=0.65, disk=0.05, name="postgres", switches=2000)] * 4
    running = said_of(sessions(busy, 1300, [site(LOG)], {"fdatasync": 20}))
    for said in (reading, running):
        assert "to have what was written" not in said.words


def test_idle_threads_beside_one_that_flushes_do_not_wait_for_the_disk() -> None:
    idle = ("condition", "futex", "pthread_cond_wait", "take")
    said = said_of(sessions(writers(), 1300, [site(idle)], {"fdatasync": 88}))
    assert "while another one waits" not in said.words


def test_stacks_of_wake_ups_have_the_time_of_these() -> None:
    def place(call: str, name: str) -> WaitSite:
        return WaitSite(
            name=name, function=name, primitive="mutex", module="/bin/postgres", readings=10,
            share=0.5, threads=2, call=call,
        )  # fmt: skip

    places = [place("epoll_wait", "LockTuple"), place("futex", "XLogFlush")]
    stacks = blocked_stacks(places, {"futex": 10.0, "wake_up": 30.0}, 0)
    found = {stack.frames: stack.ns for stack in stacks}
    assert found == {("waiting to be woken", "LockTuple"): 30.0, ("locks", "XLogFlush"): 10.0}


def test_what_sessions_are_blocked_on_is_one_clause_with_the_greatest_first() -> None:
    cell = sessions(writers(), 1300, [site(LOG, 30), site(LWLOCK, 10)], {"fdatasync": 88})
    assert blocked_clause(cell, "R") == (
        "Blocked 95 % of the time: the log's disk 67 %, locks 15 %, its client 13 %."
    )


def test_rows_are_told_from_other_locks() -> None:
    cell = sessions([session(wake_up=0.6, futex=0.25, poll=0.1)] * 4, 1100, [site(ROW)])
    assert blocked_clause(cell, "R") == (
        "Blocked 95 % of the time: locks on rows or tables 60 %, locks or work 25 %, its client "
        "10 %."
    )


def test_a_lock_of_a_server_that_writes_no_log_is_a_lock() -> None:
    cell = sessions(writers(), 1300, [site(LOG)], {"pwrite64": 88})
    assert blocked_clause(cell, "R") == (
        "Blocked 95 % of the time: locks 60 %, the disk 22 %, its client 13 %."
    )


def test_few_samples_are_told_with_what_takes_more() -> None:
    few = sessions([session(readings=2, poll=0.5, disk=0.5)], 1000)
    many = sessions([session(poll=0.5, disk=0.45)], 1000)
    assert blocked_clause(few, "R").endswith(
        "That is by 10 samples alone; concurve run run:R --repeats 25 takes more."
    )
    assert "samples" not in blocked_clause(many, "R")


def test_a_server_that_is_seldom_blocked_is_not_told_to_be() -> None:
    busy = sessions([thread(0.8, name="postgres", poll=0.2)], 1000)
    unsampled = ONE._replace(readings={})
    assert blocked_clause(busy, "R") == blocked_clause(unsampled, "R") == ""


def test_the_kinds_of_a_blocked_server_follow_its_evidence_unless_its_cpus_are_used_up() -> None:
    cell = CellExplanation(
        parameters={"clients": 8}, cause="io", evidence="60 % of it.", blocked="Blocked 95 %."
    )
    used_up = msgspec.structs.replace(cell, cause="cpu", limit=CPUS)
    for one, is_told in ((cell, True), (used_up, False)):
        found = Explanation(
            run="R", study="s", factors=("clients",), work=None, operation="tps", cells=(one,)
        )
        said = " ".join(line.plain.strip() for line in lines(explanation_document(found), 200))
        assert ("60 % of it. Blocked 95 %." in said) is is_told
