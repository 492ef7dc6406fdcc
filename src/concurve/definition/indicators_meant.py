"""Which indicators a user means who writes a name that none has: ``cpu``, ``p99``, ``wall``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import PurePath

from concurve.definition.indicator_names import split_name
from concurve.definition.measured import INDICATORS, MEASURED
from concurve.definition.programs import program
from concurve.words import NAMES_MEANT, did_you_mean, meant, nearest

#: Words that other tools have for what is measured of any program, beside those of its label.
_ALSO = {
    "wall_seconds": "elapsed real duration",
    "rate_per_second": "throughput ops tps rps qps",
    "rss_bytes_max": "mem ram",
    "user_seconds": "utime",
    "system_seconds": "sys stime",
    "context_switches": "csw",
}

_ORDER = {info.name: place for place, info in enumerate(INDICATORS)}


def names_meant(wanted: str, names: Iterable[str]) -> list[str]:
    """The indicators among these names that have each word of what was written, as a word of their
    own name, or else of their label; the shortest names first. Else the one that is spelt most
    alike. Empty where none is."""
    known = list(dict.fromkeys(names))
    asked = _words(wanted)
    if asked:
        for has in (_words, _all_words):
            if found := [name for name in known if asked <= has(name)]:
                return sorted(found, key=_rank)[:NAMES_MEANT]
    near = nearest(wanted, known)
    return [] if near is None else [near]


def indicator_meant(wanted: str, names: Iterable[str], otherwise: str | None = None) -> str:
    """A remedy for a name that no indicator has: ``did you mean 'cpu_seconds'?``, or ``otherwise``,
    or ``one of`` the names."""
    known = list(names)
    found = names_meant(wanted, known)
    return did_you_mean(*found) if found else meant(wanted, known, otherwise)


def known_before(command: Sequence[str]) -> list[str]:
    """The indicators that a program will have for certain, before it ran: what is measured of any,
    and what the load generator reports."""
    table = program("load") if is_load(command) else None
    return [*MEASURED, *(table.indicators if table else ())]


def is_load(command: Sequence[str]) -> bool:
    """Do the words call the load generator? Those of a program that starts it: not here
    (:func:`~concurve.definition.starters.started`)."""
    name = PurePath(command[0]).name if command else ""
    return name == "concurve-load" or [name, *command[1:2]] == ["concurve", "load"]


def rate_of_load(command: Sequence[str]) -> str | None:
    """The figure of a load generator that compares settings: the rate, or that which a search for
    ``--slo`` finds. A load runs for a fixed time, so its wall time compares nothing. ``None`` of
    other commands, and of a load that has no rate: it checks one, or only makes or reads data."""
    options = {word.partition("=")[0] for word in command}
    if not is_load(command) or options & {"--init-only", "--verify-only"}:
        return None
    if "--slo" not in options:
        return "rate_per_second"
    return None if "--rate" in options else "slo_rate_per_second"


def _rank(name: str) -> tuple[int, bool, int, int]:
    """Shortest in words first, then latencies, which a percentile alone nearly always is of, then
    as views show them."""
    own = _words(name)
    return len(own), "latency" not in own, _ORDER.get(name, len(_ORDER)), len(name)


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", text.lower()))


def _all_words(name: str) -> set[str]:
    own = split_name(name).own
    info = MEASURED.get(own)
    return _words(name) | _words(info.label if info else "") | _words(_ALSO.get(own, ""))
