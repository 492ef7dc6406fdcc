"""A flight recording of a JVM, as ``jfr print --json`` writes it → where its threads waited. Pure.

The text may be long, some 10 KB an event, so it is read in pieces, event by event, and up to a
limit.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

from concurve.errors import RunError
from concurve.wire.record import RecordedOwner, RecordedSite, RecordedWaits

Kind = Literal["monitor", "park", "wait"]
_T = TypeVar("_T", int, str)

#: The events that are read, by their names in a recording.
EVENTS: dict[str, Kind] = {
    "jdk.JavaMonitorEnter": "monitor",
    "jdk.ThreadPark": "park",
    "jdk.JavaMonitorWait": "wait",
}
#: Waits of these are waits for a lock.
LOCKS = ("mutex", "reader_writer_lock", "semaphore")

#: Characters of a recording's text that are read, and the most that one event may have.
TEXT_MAX = 256 << 20
EVENT_MAX = 1 << 20
#: Places that are kept apart, that are listed, and the threads that are listed of each.
_PLACES_MAX, _LISTED_MAX, _OWNERS_MAX = 4096, 16, 4
#: Lines and threads that are counted of each place: damaged recordings may name any number.
_LINES_MAX, _THREADS_MAX = 64, 1024
#: A name that is longer is cut.
_NAME_MAX = 400

#: The runtime's own packages.
_OF_RUNTIME = ("java.", "jdk.", "sun.")
_LOCKS_OF_RUNTIME = "java.util.concurrent.locks."
_SYNCHRONIZER = f"{_LOCKS_OF_RUNTIME}AbstractQueuedSynchronizer"
#: How a synchronizer asks for a lock that one thread has, in the versions of Java.
_ACQUIRES = ("acquire", "acquireQueued", "doAcquireInterruptibly", "doAcquireNanos")

#: As Java writes a duration; waits of years have no more digits.
_DURATION = re.compile(r"PT(?:(\d{1,6})H)?(?:(\d{1,9})M)?(?:(\d{1,9})(?:\.(\d{1,9}))?S)?")
_SPACE_AND_COMMA = re.compile(r"[\s,]*")
_BEGIN = re.compile(r'\s*\{\s*"recording"\s*:\s*\{\s*"events"\s*:\s*\[')

_REMEDY = "a newer JDK: its jfr reads the recordings of older ones"


class _Type(msgspec.Struct, frozen=True):
    name: str = ""
    hidden: bool = False


class _Method(msgspec.Struct, frozen=True):
    type: _Type | None = None
    name: str = ""
    hidden: bool = False


class _Frame(msgspec.Struct, frozen=True):
    method: _Method | None = None
    line: int | None = msgspec.field(default=None, name="lineNumber")
    index: int | None = msgspec.field(default=None, name="bytecodeIndex")
    type: str | None = None

    @property
    def owner(self) -> str:
        """The class."""
        return _class_name(self.method.type) if self.method else ""

    @property
    def is_of_program(self) -> bool:
        """Is it a method that somebody wrote, outside of the runtime's packages?"""
        method = self.method
        if method is None or method.type is None or method.hidden or method.type.hidden:
            return False
        return bool(self.owner) and not self.owner.startswith(_OF_RUNTIME)


class _Stack(msgspec.Struct, frozen=True):
    frames: tuple[_Frame, ...] = ()


class _Thread(msgspec.Struct, frozen=True):
    java_name: str | None = msgspec.field(default=None, name="javaName")
    os_name: str | None = msgspec.field(default=None, name="osName")


class _Values(msgspec.Struct, frozen=True):
    duration: str | None = None
    stack: _Stack | None = msgspec.field(default=None, name="stackTrace")
    monitor: _Type | None = msgspec.field(default=None, name="monitorClass")
    parked: _Type | None = msgspec.field(default=None, name="parkedClass")
    owner: _Thread | None = msgspec.field(default=None, name="previousOwner")


class _Event(msgspec.Struct, frozen=True):
    type: str
    values: _Values


class _Place(NamedTuple):
    """A place by its instruction: the compiler and the interpreter name other lines for one."""

    kind: Kind
    primitive: str
    function: str
    instruction: int | None
    lock: str | None


class _Waits:
    """What happened at one place. ``lines`` are those that compiled code named, ``near`` those of
    the interpreter."""

    def __init__(self) -> None:
        self.events = self.blocked_ns = 0
        self.lines: Counter[int] = Counter()
        self.near: Counter[int] = Counter()
        self.owners: Counter[str] = Counter()

    @property
    def line(self) -> int | None:
        known = self.lines or self.near
        return min(known, key=lambda line: (-known[line], line)) if known else None

    def add(self, other: _Waits) -> None:
        self.events += other.events
        self.blocked_ns += other.blocked_ns
        self.owners += other.owners


def recorded_waits(pieces: Iterable[str], threshold_ns: int) -> RecordedWaits:
    """Where threads waited, and for how long, by the pieces of the text of one recording. Waits
    shorter than the threshold are left out: another recording of the program may have asked for
    them.

    Raises:
        RunError: this is not what ``jfr print --json`` writes, or it breaks off.
    """
    places: dict[_Place, _Waits] = {}
    elsewhere = _Waits()
    events = _Events(pieces)
    for event in events:
        blocked_ns = _nanoseconds(event.values.duration)
        if event.type not in EVENTS or blocked_ns is None or blocked_ns < threshold_ns:
            continue
        _count(event, blocked_ns, places, elsewhere)
    return _listed(places, elsewhere, threshold_ns, events.is_cut)


def combined(found: Sequence[RecordedWaits]) -> RecordedWaits:
    """The waits of several recordings together, of one trial or of several."""
    places: dict[_Line, _Waits] = {}
    for one in found:
        for site in one.listed:
            waits = places.setdefault(
                _Line(site.kind, site.primitive, site.function, site.line, site.lock), _Waits()
            )
            waits.events += site.events
            waits.blocked_ns += site.blocked_ns
            waits.owners.update({owner.name: owner.events for owner in site.owners})
    return RecordedWaits(
        recordings=sum(one.recordings for one in found),
        threshold_ns=max((one.threshold_ns for one in found), default=0),
        lock_events=sum(one.lock_events for one in found),
        lock_blocked_ns=sum(one.lock_blocked_ns for one in found),
        elsewhere_events=sum(one.elsewhere_events for one in found),
        elsewhere_blocked_ns=sum(one.elsewhere_blocked_ns for one in found),
        is_cut=any(one.is_cut for one in found),
        listed=_sites(places),
    )


# -- the text, event by event -----------------------------------------------------------------


#: Half of a surrogate pair, as JSON escapes it; the other half may stand beside it.
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")


class _Events:
    """The events of a text, until it ends or is longer than the limit (``is_cut``)."""

    def __init__(self, pieces: Iterable[str]) -> None:
        self._pieces = iter(pieces)
        self._text = ""
        self._at = 0
        self._read = 0
        self.is_cut = False

    def __iter__(self) -> Iterator[_Event]:
        self._begin()
        decoder = json.JSONDecoder()
        while self._skip():
            found = self._next(decoder)
            if found is None:
                return
            try:
                yield msgspec.convert(found, _Event)
            except msgspec.ValidationError as error:
                raise RunError(f"an event of the recording is none: {error}", _REMEDY) from error

    def _begin(self) -> None:
        while (begun := _BEGIN.match(self._text)) is None:
            if len(self._text) > EVENT_MAX or not self._more():
                raise RunError("the text is no recording as jfr print --json writes it", _REMEDY)
        self._at = begun.end()

    def _skip(self) -> bool:
        """Go to the next event; is there one?"""
        while True:
            matched = _SPACE_AND_COMMA.match(self._text, self._at)
            assert matched is not None
            self._at = matched.end()
            if self._at < len(self._text):
                return self._text[self._at] != "]"
            if self.is_cut or not self._more():
                break
        if self.is_cut:
            return False
        raise RunError("the text of the recording breaks off", _REMEDY)

    def _next(self, decoder: json.JSONDecoder) -> object | None:
        """The next event; ``None`` where the limit of the text cut it."""
        while True:
            try:
                begin = self._at
                found, self._at = decoder.raw_decode(self._text, begin)
                if _SURROGATE.search(self._text, begin, self._at):
                    found = _without_halves(found)
                return found or {}
            except json.JSONDecodeError as error:
                if len(self._text) - self._at > EVENT_MAX:
                    raise RunError("an event of the recording has no end", _REMEDY) from error
                if self._more():
                    continue
                if self.is_cut:
                    return None
                raise RunError("the text of the recording breaks off", _REMEDY) from error
            except (RecursionError, ValueError) as error:
                raise RunError("an event of the recording is none", _REMEDY) from error

    def _more(self) -> bool:
        """Read a piece; ``False`` at the end, and at the limit."""
        if self._read >= TEXT_MAX:
            self.is_cut = True
            return False
        piece = next(self._pieces, None)
        if piece is None:
            return False
        self._read += len(piece)
        self._text = self._text[self._at :] + piece
        self._at = 0
        return True


def _without_halves(found: Any) -> Any:
    """The same with U+FFFD for each half of a surrogate pair that stands alone: a Java string may
    hold one, and UTF-8 cannot."""
    if isinstance(found, str):
        return found.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(found, list):
        return [_without_halves(item) for item in found]
    if isinstance(found, dict):
        return {_without_halves(key): _without_halves(value) for key, value in found.items()}
    return found


# -- events, by place -------------------------------------------------------------------------


def _count(event: _Event, blocked_ns: int, places: dict[_Place, _Waits], elsewhere: _Waits) -> None:
    kind = EVENTS[event.type]
    values = event.values
    frames = values.stack.frames if values.stack else ()
    lock = _class_name(values.parked if kind == "park" else values.monitor) or None
    primitive = _primitive(kind, lock or "", frames)
    depth = next((i for i, frame in enumerate(frames) if frame.is_of_program), None)
    waits = None
    if depth is not None:
        frame = frames[depth]
        place = _Place(kind, primitive, _function(frame), _instruction(kind, depth, frame), lock)
        if place in places or len(places) < _PLACES_MAX:
            waits = places.setdefault(place, _Waits())
            if frame.line is not None and 0 < frame.line < 1 << 31:
                lines = waits.near if _is_next(kind, depth, frame) else waits.lines
                _tally(lines, frame.line, _LINES_MAX)
    if waits is None:
        if primitive not in LOCKS:
            return
        waits = elsewhere
    waits.events += 1
    waits.blocked_ns += blocked_ns
    owner = values.owner
    name = (owner.java_name or owner.os_name or "") if owner else ""
    if name and waits is not elsewhere:
        _tally(waits.owners, name[:_NAME_MAX], _THREADS_MAX)


def _tally(counter: Counter[_T], item: _T, most: int) -> None:
    if item in counter or len(counter) < most:
        counter[item] += 1


def _instruction(kind: Kind, depth: int, frame: _Frame) -> int | None:
    """Where a method waits."""
    if frame.index is None or not -1 <= frame.index <= 1 << 16:
        return None
    return frame.index - 1 if _is_next(kind, depth, frame) else frame.index


def _is_next(kind: Kind, depth: int, frame: _Frame) -> bool:
    """Does a frame name the instruction behind the one that waits? The interpreter has gone one on
    when it enters a monitor, so its line may be the next one; compiled code has not."""
    return kind == "monitor" and depth == 0 and frame.type == "Interpreted"


def _primitive(kind: Kind, lock: str, frames: Sequence[_Frame]) -> str:
    if kind == "monitor":
        return "mutex"
    if kind == "wait" or lock.endswith("$ConditionObject"):
        return "condition"
    if lock.startswith(_LOCKS_OF_RUNTIME):
        is_shared = "ReentrantReadWriteLock" in lock or "StampedLock" in lock
        return "reader_writer_lock" if is_shared else "mutex"
    if lock.startswith("java.util.concurrent.Semaphore"):
        return "semaphore"
    if lock.startswith(_OF_RUNTIME):
        return "other"
    asks = any(
        frame.owner.startswith(_SYNCHRONIZER) and frame.method and frame.method.name in _ACQUIRES
        for frame in frames
    )
    return "mutex" if asks else "other"


def _class_name(found: _Type | None) -> str:
    return found.name.replace("/", ".")[:_NAME_MAX] if found else ""


def _function(frame: _Frame) -> str:
    assert frame.method is not None
    return f"{frame.owner}.{frame.method.name[:_NAME_MAX]}"


def _nanoseconds(text: str | None) -> int | None:
    """A duration of a wait; ``None`` for what is none."""
    found = _DURATION.fullmatch(text or "")
    if found is None:
        return None
    hours, minutes, seconds = (int(part or 0) for part in found.groups()[:3])
    parts = int((found[4] or "").ljust(9, "0"))
    return ((hours * 60 + minutes) * 60 + seconds) * 10**9 + parts


class _Line(NamedTuple):
    """A place by its line, as a reader knows it."""

    kind: str
    primitive: str
    function: str
    line: int | None
    lock: str | None


def _listed(
    places: dict[_Place, _Waits], elsewhere: _Waits, threshold_ns: int, is_cut: bool
) -> RecordedWaits:
    lines: dict[_Line, _Waits] = {}
    for place, waits in places.items():
        line = _Line(place.kind, place.primitive, place.function, waits.line, place.lock)
        lines.setdefault(line, _Waits()).add(waits)
    of_locks = [waits for line, waits in lines.items() if line.primitive in LOCKS]
    counted = list(chain(of_locks, [elsewhere]))
    return RecordedWaits(
        threshold_ns=threshold_ns,
        lock_events=sum(waits.events for waits in counted),
        lock_blocked_ns=sum(waits.blocked_ns for waits in counted),
        elsewhere_events=elsewhere.events,
        elsewhere_blocked_ns=elsewhere.blocked_ns,
        is_cut=is_cut,
        listed=_sites(lines),
    )


def _sites(lines: dict[_Line, _Waits]) -> tuple[RecordedSite, ...]:
    """The places with the longest time, those of locks first."""
    ordered = sorted(
        lines.items(),
        key=lambda it: (
            it[0].primitive not in LOCKS,
            -it[1].blocked_ns,
            it[0].function,
            it[0].line or 0,
        ),
    )
    return tuple(
        RecordedSite(
            kind=line.kind,
            primitive=line.primitive,
            function=line.function,
            line=line.line,
            lock=line.lock,
            events=waits.events,
            blocked_ns=waits.blocked_ns,
            owners=tuple(
                RecordedOwner(name, events)
                for name, events in sorted(waits.owners.items(), key=lambda it: (-it[1], it[0]))
            )[:_OWNERS_MAX],
        )
        for line, waits in ordered[:_LISTED_MAX]
    )
