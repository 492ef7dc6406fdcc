"""An interval as tables for a terminal of 80 columns. Formats, never computes."""

from __future__ import annotations

from collections.abc import Sequence

from concurve.monitor.interval import EngineShares, Interval, Latch, Utilisation, Work
from concurve.monitor.reading import STATES
from concurve.report.console import cut

_MISSING = "–"

_NAME = 23


def lines(interval: Interval, place: str) -> list[str]:
    """All of it, with a blank line between tables."""
    blocks = [_head(interval, place), _engines(interval), _work("Work", interval.work)]
    if interval.statements:
        blocks.append(_statements(interval))
    if interval.utilisation:
        blocks.append(_utilisation(interval.utilisation))
    if interval.latches:
        blocks.append(_latches(interval.latches))
    return [line for block in blocks for line in ("", *block)][1:]


def _head(interval: Interval, place: str) -> list[str]:
    server = interval.server
    about = [f"service {server.get('service', '?')}"]
    known = (("engines", "engines"), ("execution", "execution"), ("idle", "idle"))
    about += [f"{label} {server[name]}" for name, label in known if name in server]
    if "connected_clients" in server:
        clients = server["connected_clients"]
        about.append(f"{clients} client{'' if clients == '1' else 's'}")
    return [f"{place} over {interval.seconds:.3g} s", ", ".join(about)]


def _engines(interval: Interval) -> list[str]:
    head = _row("Engines", (*STATES, "CPU"), 10)
    rows = [_engine(engine) for engine in interval.engines]
    total = _row("whole server", ("",) * len(STATES) + (_percent(interval.cpus),), 10)
    notes = ["  busy … asleep: by the engine's own clock; CPU: by the kernel's account"]
    if any(engine.died for engine in interval.engines):
        notes.append("  *: died in the interval: its times are not known")
    return [head, *rows, total, *notes]


def _engine(engine: EngineShares) -> str:
    shares = [_percent(engine.own.get(state)) for state in STATES]
    name = f"{engine.name}{'*' if engine.died else ''}"
    return _row(name, (*shares, _percent(engine.cpu)), 10)


def _work(title: str, work: Sequence[Work]) -> list[str]:
    head = _row(title, ("count", "a second", "a CPU second"), 14)
    rows = [
        _row(item.name, (f"{item.count:,}", _rate(item.per_second), _rate(item.per_cpu_second)), 14)
        for item in work
    ]
    return [head, *rows]


def _statements(interval: Interval) -> list[str]:
    share = _row("found, of all lookups", (_percent(interval.found_share),), 14)
    return [*_work("Statements", interval.statements), share]


def _utilisation(found: Sequence[Utilisation]) -> list[str]:
    head = _row("Utilisation", ("in use", "size", "share"), 14)
    rows = [
        _row(item.name, (f"{item.used:,}", f"{item.size:,}", _percent(item.share)), 14)
        for item in found
    ]
    return [head, *rows, "  pages or locks, at the end of the interval"]


def _latches(latches: Sequence[Latch]) -> list[str]:
    head = _row("Latches", ("acquisitions", "contention", "spins a wait", "sleeps"), 14)
    rows = []
    for latch in latches:
        figures = (
            f"{latch.acquisitions:,}",
            _percent(latch.contention, 2),
            _rate(latch.spins_per_wait),
            f"{latch.sleeps:,}",
        )
        rows.append(_row(latch.name, figures, 14))
    return [head, *rows]


def _row(name: str, cells: Sequence[str], width: int) -> str:
    figures = "".join(f"{cell:>{width}}" for cell in cells)
    return f"{cut(name, _NAME):<{_NAME}} {figures}".rstrip()


def _percent(share: float | None, digits: int = 1) -> str:
    return _MISSING if share is None else f"{100 * share:.{digits}f} %"


def _rate(rate: float | None) -> str:
    if rate is None:
        return _MISSING
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"
