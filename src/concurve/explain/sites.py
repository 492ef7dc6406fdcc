"""Where in a program its threads were seen waiting for locks, over the trials of a cell. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePath

from concurve import words
from concurve.findings.explanation import Cause, WaitSite
from concurve.wire.record import SiteRecord, SitesRecord
from concurve.words import percent

#: Fewer readings than this name no place in a sentence.
READINGS_MIN = 10
#: A sentence names no more places, and none with a smaller share.
_NAMED_MAX = 2
_NAMED_SHARE_MIN = 0.1
#: Who waits for the end of a thread waits for no lock.
_NO_LOCK = "join"
#: The causes of which places say something, and what is waited at there; any lock, if empty.
_WAITED_AT: dict[Cause, str] = {"lock": "", "imbalance": "barrier", "serial": "once"}
#: As records name the global interpreter lock of Python.
_INTERPRETER_LOCK = "GIL"


def sites_of(records: Iterable[SitesRecord | None]) -> tuple[WaitSite, ...]:
    """The places of all trials together, most readings first, each with its share of the readings
    whose place is known. Waits for the end of a thread are left out."""
    found: dict[tuple[object, ...], list[SiteRecord]] = {}
    for record in records:
        for site in record.listed if record is not None else ():
            if site.primitive != _NO_LOCK:
                found.setdefault(_place(site), []).append(site)
    total = sum(site.readings for same in found.values() for site in same)
    sites = [_together(same, total) for same in found.values()]
    return tuple(sorted(sites, key=lambda site: (-site.readings, site.name)))


def place_sentence(cause: Cause, sites: tuple[WaitSite, ...]) -> str:
    """Where threads waited, in a sentence, if that belongs to the cause: for a lock, at the
    barriers of uneven rounds, or for what one thread does once for all. Empty where too few
    readings say it."""
    total = sum(site.readings for site in sites)
    if cause not in _WAITED_AT:
        return ""
    if wanted := _WAITED_AT[cause]:
        sites = tuple(site for site in sites if site.primitive == wanted)
    # An address in a runtime without symbols tells nobody anything.
    known = [site for site in sites if site.function and site.share >= _NAMED_SHARE_MIN]
    parts = [f"{percent(site.share)} {_where(site)}" for site in known[:_NAMED_MAX]]
    if not parts:
        # The interpreter's lock is waited for wherever a program computes.
        parts = [f"{percent(share)} were for {_named(lock)}" for lock, share in _spread(sites)]
    if total < READINGS_MIN or not parts:
        return ""
    return f"Of {words.count(total, 'sampled wait')}, {words.listed(parts)}."


def _spread(sites: tuple[WaitSite, ...]) -> list[tuple[str, float]]:
    """The lock with most of the waits, with its share of them all, where that is worth a word."""
    shares: dict[str, float] = {}
    for site in sites:
        if site.lock:
            shares[site.lock] = shares.get(site.lock, 0.0) + site.share
    most = sorted(shares.items(), key=lambda it: (-it[1], it[0]))[:1]
    return [it for it in most if it[1] >= _NAMED_SHARE_MIN]


def _named(lock: str) -> str:
    return "the GIL" if lock == _INTERPRETER_LOCK else lock


def _where(site: WaitSite) -> str:
    of_lock = f"were for {_named(site.lock)}, " if site.lock else "were "
    return f"{of_lock}in {site.name}{_line(site)}"


def _line(site: WaitSite) -> str:
    return f" ({PurePath(site.file).name}:{site.line})" if site.file and site.line else ""


def _place(site: SiteRecord) -> tuple[object, ...]:
    """What makes two sites of trials the same. Programs may stand at other addresses of a file that
    was built again, so an address counts for functions without a name alone."""
    where = (site.function, site.file, site.line) if site.function else (site.module, site.offset)
    return (site.primitive, site.lock, *where)


def _together(same: list[SiteRecord], total: int) -> WaitSite:
    first = same[0]
    readings = sum(site.readings for site in same)
    held = [site.held for site in same if site.held is not None]
    exact = all(site.found != "scan_weak" for site in same)
    return WaitSite(
        name=short_name(first.function) or _address(first),
        primitive=first.primitive,
        function=first.function,
        file=first.file,
        line=first.line,
        module=first.module,
        operation=first.operation,
        lock=first.lock,
        readings=readings,
        share=readings / total if total else 0.0,
        threads=max(site.threads for site in same),
        held=sum(held) if held else None,
        is_sure=exact,
        callers=first.callers,
        offsets=tuple(sorted({site.offset for site in same if site.module == first.module})),
    )


def _address(site: SiteRecord) -> str:
    address = f"{PurePath(site.module).name}+{site.offset}"
    return f"{address}, called by {short_name(site.callers[0])}" if site.callers else address


def short_name(function: str | None) -> str:
    """The name without its parameters and their types, which may be long."""
    if not function:
        return ""
    bare = function
    while (shorter := re.sub(r"(?<=\w)(::)?<[^<>]*>", "", bare)) != bare:
        bare = shorter
    # Parameters begin at the first parenthesis that is no part of a name (a receiver in Go is).
    bare = re.sub(r"(?<!operator)(?<!\.)\((?!anonymous|lambda).*", "", bare).strip()
    return bare or function
