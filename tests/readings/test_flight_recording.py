"""Texts of ``jfr print --json``: each wait is counted at the line that waits, or the text is
refused."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from concurve.errors import RunError
from concurve.readings import flight_recording
from concurve.readings.flight_recording import combined, recorded_waits
from concurve.wire.record import RecordedOwner, RecordedSite, RecordedWaits

RECORDINGS = Path(__file__).parent / "recordings"
US = 1000


def real(version: int) -> str:
    """What the jfr of a JDK wrote of a program with a monitor and a ReentrantLock, cut to one event
    of each kind."""
    return (RECORDINGS / f"jdk-{version}.json").read_text(encoding="utf-8")


def frame(method: str, line: int = 7, index: int = 3, **more: Any) -> dict[str, Any]:
    owner, name = method.rsplit(".", 1)
    kind = {"name": owner.replace(".", "/"), "hidden": more.pop("hidden", False)}
    return {"method": {"type": kind, "name": name}, "lineNumber": line, "bytecodeIndex": index,
            "type": "JIT compiled", **more}  # fmt: skip


def park(*frames: dict[str, Any], lock: str | None = None, **more: Any) -> dict[str, Any]:
    values = {
        "duration": "PT0.001S",
        "stackTrace": {"truncated": False, "frames": list(frames)},
        "parkedClass": None if lock is None else {"name": lock.replace(".", "/")},
    }
    return {"type": "jdk.ThreadPark", "values": {**values, **more}}


def enter(*frames: dict[str, Any], lock: str = "a.Table", **more: Any) -> dict[str, Any]:
    values = {**park(*frames, **more)["values"], "monitorClass": {"name": lock.replace(".", "/")}}
    return {"type": "jdk.JavaMonitorEnter", "values": values}


def text(events: Sequence[object]) -> str:
    return json.dumps({"recording": {"events": list(events)}})


def waits(*events: object, threshold_ns: int = 0) -> RecordedWaits:
    return recorded_waits([text(events)], threshold_ns)


def only(*events: object) -> RecordedSite:
    (site,) = waits(*events).listed
    return site


# -- real texts -------------------------------------------------------------------------------


def test_a_recording_of_java_17() -> None:
    found = recorded_waits([real(17)], 10 * US)
    monitor, lock, join = found.listed
    # One of its two waits was seen by the interpreter, which names the next line.
    assert (monitor.function, monitor.line, monitor.lock) == ("Waits$Table.block", 9, "Waits$Table")
    assert (monitor.kind, monitor.primitive, monitor.events) == ("monitor", "mutex", 2)
    assert monitor.blocked_ns == 189_585_763 + 32_999
    assert sum(owner.events for owner in monitor.owners) == 2
    assert {owner.name for owner in monitor.owners} <= {f"worker-{n}" for n in range(4)}
    assert (lock.function, lock.line, lock.events) == ("Waits.locked", 17, 1)
    assert lock.lock == "java.util.concurrent.locks.ReentrantLock$NonfairSync"
    assert (lock.kind, lock.primitive, lock.owners) == ("park", "mutex", ())
    assert (join.kind, join.primitive, join.line) == ("wait", "condition", 28)
    assert found.lock_events == 3
    assert found.lock_blocked_ns == monitor.blocked_ns + lock.blocked_ns


def test_a_recording_of_java_25() -> None:
    monitor, lock = sorted(recorded_waits([real(25)], 0).listed[:2], key=lambda it: it.kind)
    # Of a synchronized method it is the first line of its body.
    assert (monitor.function, monitor.line) == ("Waits$Table.add", 6)
    assert (lock.function, lock.line) == ("Waits.locked", 17)


@pytest.mark.parametrize("version", [17, 25])
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_text_is_read_alike_in_any_pieces(version: int, size: int) -> None:
    whole = real(version)
    pieces = [whole[at : at + size] for at in range(0, len(whole), size)]
    if size == 1:  # such pieces are tried again and again
        pieces = [*pieces[:3000], whole[3000:]]
    assert recorded_waits(pieces, 0) == recorded_waits([whole], 0)


@pytest.mark.parametrize("version", [17, 25])
def test_a_text_that_breaks_off_is_refused(version: int) -> None:
    whole = real(version)
    last = whole.rindex("]")
    for end in range(0, last, 501):
        with pytest.raises(RunError):
            recorded_waits([whole[:end]], 0)


def test_a_recording_without_a_wait() -> None:
    found = recorded_waits(['{\n  "recording": {\n    "events": []\n  }\n}'], 0)
    assert (found.lock_events, found.listed) == (0, ())


# -- which line, which lock -------------------------------------------------------------------


def test_the_innermost_function_outside_of_the_runtime_waits() -> None:
    inner = [frame("java.util.concurrent.locks.ReentrantLock.lock"), frame("jdk.internal.X.y"),
             frame("sun.misc.Unsafe.park")]  # fmt: skip
    # The frame of a method reference has no line, and nobody wrote it.
    made = frame("acme.Main$$Lambda$83+0x7/715", line=-1, hidden=True)
    site = only(
        park(*inner, made, frame("acme.io.Main.run", 40), frame("acme.Main.main", 2),
             lock="java.util.concurrent.locks.ReentrantLock$FairSync")
    )  # fmt: skip
    assert (site.function, site.line) == ("acme.io.Main.run", 40)
    # A package of another name only begins alike.
    assert only(enter(frame("javassist.Pool.get", 5))).function == "javassist.Pool.get"


def test_one_line_is_one_place_whatever_compiled_it() -> None:
    interpreted = enter(frame("a.T.block", 10, 4, type="Interpreted"))
    compiled = enter(frame("a.T.block", 9, 3))
    for events in ([interpreted, compiled], [compiled, interpreted, interpreted]):
        site = only(*events)
        assert (site.line, site.events) == (9, len(events))
    # As far as it is known; and the caller of a method that waits is no instruction on.
    assert only(interpreted).line == 10
    called = frame("a.T.put", 10, 4, type="Interpreted")
    outer = waits(enter(frame("java.util.Hashtable.put"), called),
                  enter(frame("java.util.Hashtable.put"), frame("a.T.put", 9, 3)))  # fmt: skip
    assert sorted(site.line or 0 for site in outer.listed) == [9, 10]


def test_two_locks_of_a_line_are_kept_apart() -> None:
    found = waits(enter(frame("a.T.x")), enter(frame("a.T.x"), lock="a.Other"))
    assert {site.lock for site in found.listed} == {"a.Table", "a.Other"}


@pytest.mark.parametrize(
    ("lock", "frames", "primitive"),
    [
        ("java.util.concurrent.locks.ReentrantLock$NonfairSync", (), "mutex"),
        ("java.util.concurrent.locks.ReentrantReadWriteLock$FairSync", (), "reader_writer_lock"),
        ("java.util.concurrent.locks.StampedLock", (), "reader_writer_lock"),
        ("java.util.concurrent.Semaphore$NonfairSync", (), "semaphore"),
        (
            "java.util.concurrent.locks.AbstractQueuedSynchronizer$ConditionObject",
            ("acquire",),
            "condition",
        ),
        ("java.util.concurrent.CountDownLatch$Sync", ("acquire",), "other"),
        ("java.util.concurrent.FutureTask", (), "other"),
        (None, (), "other"),
        ("acme.Queue", (), "other"),
        ("acme.Mutex$Sync", ("acquireQueued",), "mutex"),
        ("acme.Latch$Sync", ("acquireSharedInterruptibly",), "other"),
    ],
)
def test_what_is_parked_on_says_whether_it_is_a_lock(
    lock: str | None, frames: tuple[str, ...], primitive: str
) -> None:
    owner = "java.util.concurrent.locks.AbstractQueuedSynchronizer"
    inner = [frame(f"{owner}.{name}") for name in frames]
    found = waits(park(*inner, frame("acme.Main.run"), lock=lock))
    assert found.listed[0].primitive == primitive
    is_lock = primitive in flight_recording.LOCKS
    assert (found.lock_events, found.lock_blocked_ns) == ((1, 10**6) if is_lock else (0, 0))


def test_waits_without_a_function_of_the_program_are_counted_apart() -> None:
    lock = "java.util.concurrent.locks.ReentrantLock$NonfairSync"
    found = waits(park(frame("java.lang.Thread.run"), lock=lock), park(lock="java.lang.Object"),
                  enter(stackTrace=None), enter(frame("a.T.x")))  # fmt: skip
    assert (found.lock_events, found.elsewhere_events) == (3, 2)
    assert found.elsewhere_blocked_ns == 2 * 10**6 and len(found.listed) == 1


def test_waits_below_the_threshold_are_left_out() -> None:
    below, at = (enter(frame("a.T.x"), duration=f"PT0.{n:09}S") for n in (9_999, 10_000))
    assert waits(below, at, threshold_ns=10 * US).lock_events == 1


@pytest.mark.parametrize(
    ("written", "ns"),
    [("PT0S", 0), ("PT1.5S", 15 * 10**8), ("PT2M", 120 * 10**9), ("PT1H2M3.000000004S",
     3723 * 10**9 + 4), ("PT-1S", None), ("soon", None), (None, None)],
)  # fmt: skip
def test_durations_are_read(written: str | None, ns: int | None) -> None:
    found = waits(enter(frame("a.T.x"), duration=written))
    assert found.lock_blocked_ns == (ns or 0) and found.lock_events == (ns is not None)


def test_owners_are_the_threads_that_gave_the_lock_back() -> None:
    names = ["w-1", "w-2", "w-2", None]
    site = only(*(enter(frame("a.T.x"), previousOwner=name and {"javaName": name})
                  for name in names))  # fmt: skip
    assert site.owners == (RecordedOwner("w-2", 2), RecordedOwner("w-1", 1))


def test_places_are_ordered_by_time_and_no_locks_come_last() -> None:
    events = [enter(frame(f"a.T.m{n}"), duration=f"PT0.{n:03}S") for n in range(1, 40)]
    queue = park(frame("a.T.take"), lock="a.Queue", duration="PT9S")
    found = waits(queue, *events)
    assert [site.function for site in found.listed[:2]] == ["a.T.m39", "a.T.m38"]
    assert len(found.listed) == 16 and found.lock_events == 39
    assert waits(queue, *events[:3]).listed[-1].function == "a.T.take"


# -- several recordings -----------------------------------------------------------------------


def test_recordings_are_added_up_by_line() -> None:
    one = waits(enter(frame("a.T.x"), previousOwner={"javaName": "w"}), enter(frame("a.T.y")))
    both = combined([one, one])
    assert both.recordings == 2 and both.lock_events == 4 and both.lock_blocked_ns == 4 * 10**6
    assert [(site.function, site.events) for site in both.listed] == [("a.T.x", 2), ("a.T.y", 2)]
    assert both.listed[0].owners == (RecordedOwner("w", 2),)
    assert combined([one]) == one


# -- hostile texts ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given_text",
    [
        "",
        "jfr print: could not read",
        '{"recording": {"events": {}}}',
        '{"recording": {"events": [1]}}',
        '{"recording": {"events": [{}]}}',
        '{"recording": {"events": [{"type": "jdk.ThreadPark"}]}}',
        '{"recording": {"events": [{"type": 1, "values": {}}]}}',
        '{"recording": {"events": [' + "[" * 100_000,
        '{"recording": {"events": [{"type": "x", "values": {"n": ' + "9" * 5000 + "}}]}}",
    ],
)
def test_what_is_no_recording_is_refused(given_text: str) -> None:
    with pytest.raises(RunError):
        recorded_waits([given_text], 0)


def test_an_event_without_an_end_is_refused_before_memory_ends() -> None:
    def endless() -> Iterator[str]:
        yield '{"recording": {"events": [{"type": "'
        taken = 0
        while True:
            taken += 1
            assert taken < 40, "it reads on and on"
            yield "x" * (1 << 16)

    with pytest.raises(RunError, match="has no end"):
        recorded_waits(endless(), 0)


def test_a_long_text_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    event = json.dumps(enter(frame("a.T.x")))
    monkeypatch.setattr(flight_recording, "TEXT_MAX", 50 * len(event))

    def endless() -> Iterator[str]:
        yield '{"recording": {"events": ['
        while True:
            yield f"{event}, "

    found = recorded_waits(endless(), 0)
    assert found.is_cut and 45 <= found.lock_events <= 51
    assert combined([found, waits()]).is_cut


@pytest.mark.parametrize("place", ["key", "lock", "method"])
def test_half_of_a_surrogate_pair_is_replaced(place: str) -> None:
    """A string of Java may hold one; what is stored is UTF-8."""
    more: dict[str, Any] = {"\ud800": 1} if place == "key" else {}
    lock = "a.\ud800" if place == "lock" else "a.Table"
    method = "a.T.\udfff\U0001f600" if place == "method" else "a.T.m"
    found = waits(enter(frame(method), lock=lock, **more))
    assert found.lock_events == 1
    stored = msgspec.json.decode(msgspec.json.encode(found), type=RecordedWaits)
    assert stored == found
    assert place != "method" or found.listed[0].function == "a.T.\ufffd\U0001f600"


@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(1, 5), st.integers(0, 10**7), st.booleans()),
        max_size=60,
    ),
    st.integers(1, 200),
)
def test_no_wait_is_lost(drawn: list[tuple[int, int, int, bool]], size: int) -> None:
    """However the text is cut into pieces, each wait is counted once, at its line."""
    events = [
        (enter if is_monitor else park)(
            frame(f"a.T.m{method}", line, line), duration=f"PT0.{ns:09}S",
            lock="a.Table" if is_monitor else "java.util.concurrent.locks.ReentrantLock$Sync",
        )
        for method, line, ns, is_monitor in drawn
    ]  # fmt: skip
    whole = text(events)
    pieces = [whole[at : at + size * 100] for at in range(0, len(whole), size * 100)]
    found = recorded_waits(pieces, 0)
    assert found.lock_events == len(drawn)
    assert found.lock_blocked_ns == sum(ns for _, _, ns, _ in drawn)
    places = {(method, line, is_monitor) for method, line, _, is_monitor in drawn}
    assert len(found.listed) == min(16, len(places))
    for site in found.listed:
        same = [
            ns for method, line, ns, is_monitor in drawn
            if (f"a.T.m{method}", line, "monitor" if is_monitor else "park")
            == (site.function, site.line, site.kind)
        ]  # fmt: skip
        assert (site.events, site.blocked_ns) == (len(same), sum(same))
