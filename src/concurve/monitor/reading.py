"""The answer of the reference server to ``INFO`` as values. Pure.

``docs/programs/monitor.md`` says what the server counts.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from concurve.errors import ConcurveError

#: What an engine does with its time, by its own clock.
STATES = ("busy", "spinning", "disk", "asleep")

#: No number is larger: they have 64 bits.
_NUMBER_MOST = 2**64

_LATCH_COUNTS = ("acquisitions", "waits", "spins", "sleeps")


class NotOurServerError(ConcurveError):
    """The program that answers is no reference server with counters."""


class Times(msgspec.Struct, frozen=True, kw_only=True):
    """What one engine or I/O thread did until a reading, in µs.

    ``spent_us`` is by its own clock, for each of :data:`STATES`; ``cpu_us`` by the kernel's, and
    ``None`` if the engine has ended. ``clock`` distinguishes an engine from its successor.
    """

    spent_us: Mapping[str, int]
    cpu_us: int | None
    clock: int


class LatchCounts(msgspec.Struct, frozen=True):
    """What happened to the latches of one class."""

    acquisitions: int
    waits: int
    spins: int
    sleeps: int


class Use(msgspec.Struct, frozen=True):
    """How much is in use of something that has a limit, and how much there is: pages, or locks."""

    used: int
    size: int


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """All counters of a server since its start, read at one time.

    ``at_us`` is its own monotonic clock. ``work`` counts requests, transactions …; ``statements``
    is empty where none are served. ``uses`` is what is in use at that time of caches or the lock
    table. ``facts`` has the lines of its section ``Server``.
    """

    at_us: int
    cpu_us: int
    work: Mapping[str, int]
    engines: Mapping[str, Times]
    latches: Mapping[str, LatchCounts]
    statements: Mapping[str, int]
    uses: Mapping[str, Use]
    facts: Mapping[str, str]


def parse(text: str, place: str) -> Reading:
    """The reading that an answer to ``INFO`` holds; ``place`` names the server.

    Raises:
        NotOurServerError: it is not the answer of a reference server that counts.
    """
    sections = _sections(text)
    facts = sections.get("Server", {})
    version = facts.get("concurve_version")
    if version is None:
        raise NotOurServerError(
            f"{place} is no concurve-server",
            "the port that concurve-server printed at its start; other servers have monitors "
            "of their own",
        )
    try:
        activity = {name: _number(value) for name, value in sections["Activity"].items()}
        return Reading(
            at_us=activity.pop("read_at_us"),
            cpu_us=activity.pop("cpu_us"),
            work=activity,
            engines={name: _times(value) for name, value in sections["Engines"].items()},
            latches={name: _latch(value) for name, value in sections["Latches"].items()},
            statements={
                name: _number(value) for name, value in sections.get("Statements", {}).items()
            },
            uses={name: _use(value) for name, value in sections["Utilisation"].items()},
            facts=facts,
        )
    except (KeyError, ValueError) as error:
        raise NotOurServerError(
            f"{place}: concurve-server {version} has other counters than this version ({error})",
            "a server and a concurve of one version",
        ) from None


def _sections(text: str) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    lines: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("# "):
            lines = found.setdefault(line[2:], {})
        elif ":" in line:
            name, _, value = line.partition(":")
            lines[name] = value
    return found


def _number(text: str) -> int:
    """A number.

    Raises:
        ValueError: it is none.
    """
    count = int(text)
    if abs(count) >= _NUMBER_MOST:
        raise ValueError("a number of more than 64 bits")
    return count


def _numbers(text: str) -> dict[str, int]:
    pairs = (part.partition("=") for part in text.split(","))
    return {name: _number(value) for name, _, value in pairs}


def _times(text: str) -> Times:
    numbers = _numbers(text)
    spent = {state: numbers[f"{state}_us"] for state in STATES}
    return Times(spent_us=spent, cpu_us=numbers.get("cpu_us"), clock=numbers["clock"])


def _latch(text: str) -> LatchCounts:
    numbers = _numbers(text)
    return LatchCounts(*(numbers[name] for name in _LATCH_COUNTS))


def _use(text: str) -> Use:
    numbers = _numbers(text)
    return Use(numbers["used"], numbers["size"])
