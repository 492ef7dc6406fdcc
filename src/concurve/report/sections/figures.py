"""The table of a run: one row a cell, one column a factor or an indicator.

A narrow view leaves out the last columns of the order given here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from concurve.findings.cells import CellFindings
from concurve.findings.run import Findings, Report
from concurve.report import format as fmt
from concurve.report.document import (
    Cell,
    Column,
    LateColumn,
    Missing,
    Number,
    Paragraph,
    Role,
    Section,
    Table,
    Text,
    Tone,
)

# What comes after the primary indicator, its speed-up and what was asked for; others in the order
# of the findings. If a load lasts a fixed time, its wall time is no result.
_WANTED = (
    "wall_seconds",
    "efficiency",
    "cpu_seconds",
    "involuntary_switches",
    "voluntary_switches",
    "migrations",
    "threads_peak",
    "rss_bytes_max",
)
_TONES = {"ok": Tone.PLAIN, "partial": Tone.WARNING, "skipped": Tone.SOFT, "pending": Tone.SOFT}
# A remark names at most this many cells.
_NAMED_MAX = 3


def brief(report: Report) -> Section:
    """The table, and remarks on cells that were skipped or are imprecise."""
    return Section("", (*_throughout(report), _table(report, []), *_remarks(report)))


def full(report: Report) -> Section:
    """The whole table."""
    trials = [Number(f"{cell.trials:,}", order=cell.trials) for cell in report.cells]
    table = _table(report, [Column("trials", trials, Role.NUMBER)])
    missing = Paragraph(f"{fmt.MISSING} is a figure that could not be measured.", Tone.SOFT)
    return Section("Figures", (*_throughout(report), table, missing), anchor="figures")


def order(findings: Findings) -> list[str]:
    """The indicators that any cell has, the most important first."""
    present: dict[str, None] = {}
    for cell in findings.cells:
        present.update(dict.fromkeys(cell.indicators))
    for cell in findings.cells:
        present.update(dict.fromkeys(cell.absent))
    asked = (name for name in findings.asked if name not in _WANTED)
    # In a simulation, figures of the machine itself do not answer the question.
    machine = () if findings.run.simulation else _WANTED
    others = (info.name for info in findings.indicators)
    wanted = (findings.primary, "speedup", *asked, *machine, *others)
    return [name for name in dict.fromkeys((*wanted, *present)) if name in present]


def confidence(findings: Findings, names: Iterable[str] | None = None) -> str:
    """The confidence of the intervals of some indicators, or of all, in words: ``95 %``."""
    names = order(findings) if names is None else list(names)
    figures = (cell.indicators.get(name) for cell in findings.cells for name in names)
    known = {
        figure.confidence
        for figure in figures
        if figure and figure.low is not None and figure.high is not None
    }
    return " or ".join(f"{value:.4g} %" for value in sorted(100 * value for value in known))


def _legend(findings: Findings, columns: Sequence[Column]) -> str:
    """How to read the intervals of some columns; empty if none has an interval."""
    known = confidence(findings, [column.name for column in columns])
    if not known:
        return ""
    numbers = (cell for column in columns for cell in column.cells if isinstance(cell, Number))
    is_skewed = any(cell.spread.startswith("(") for cell in numbers)
    also = "; (low to high) is that interval where it is asymmetric" if is_skewed else ""
    return f"± is half the width of the {known} interval{also}"


def _throughout(report: Report) -> Iterator[Paragraph]:
    constant = {f.name: f.levels[0] for f in report.factors if len(f.levels) == 1}
    if constant:
        yield Paragraph(f"throughout: {fmt.setting(constant)}", Tone.SOFT)


def _table(report: Report, last: Sequence[Column]) -> Table:
    cells = report.cells
    varying = [factor.name for factor in report.factors if len(factor.levels) > 1]
    keys = [Column(name, [_level(cell, name) for cell in cells], Role.KEY) for name in varying]
    status: list[Column] = []
    if any(cell.status != "ok" for cell in cells):
        status = [Column("status", [_status(cell, bool(last)) for cell in cells])]
    return Table(
        (*keys, *status, *_indicators(report), *last),
        tuple(_TONES[cell.status] for cell in cells),
        title="One row a cell: its levels, then each indicator with its interval.",
        sortable=True,
        legend=partial(_legend, report),
    )


def _level(cell: CellFindings, name: str) -> str:
    return fmt.level(cell.parameters[name]) if name in cell.parameters else ""


def _status(cell: CellFindings, with_reason: bool) -> Cell:
    reason = cell.note or cell.stop_reason if with_reason and cell.status != "ok" else ""
    return (Text(cell.status), Text(reason, Tone.SOFT)) if reason else cell.status


def _indicators(report: Report) -> list[Column]:
    columns: list[Column] = []
    for wanted, name in enumerate(order(report), 1):
        info = report.indicator(name)
        label = info.label or name
        short = label.replace("involuntary", "invol.").replace("voluntary", "vol.")
        make = partial(_entries, report.cells, name, info.unit)
        columns.append(
            LateColumn(label, make, short=short, name=name, note=info.note, wanted=wanted)
        )
    return columns


def _entries(cells: Sequence[CellFindings], name: str, unit: str) -> tuple[str, list[Cell]]:
    """The unit that suits all entries, and these."""
    found = [cell.indicators.get(name) for cell in cells]
    figures = [figure for figure in found if figure]
    unit = next((figure.unit for figure in figures if figure.unit), unit)
    scale = fmt.scale_for([figure.value for figure in figures], unit)
    entries: list[Cell] = []
    for cell, figure in zip(cells, found, strict=True):
        if figure is None:
            entries.append(Missing(cell.absent.get(name, "")))
        else:
            shown = fmt.estimate(figure, scale)
            entries.append(Number(shown.value, shown.spread, shown.span, figure.value))
    # A factor like 2× speaks for itself.
    return "" if scale.symbol == "×" else scale.symbol, entries


def _remarks(report: Report) -> Iterator[Paragraph]:
    """Remarks on cells that were skipped or are imprecise, each remark once."""
    settings: dict[str, list[str]] = {}
    for cell in report.cells:
        if cell.status != "ok" and (cell.note or cell.stop_reason):
            remark = f"{cell.status}: {cell.note or cell.stop_reason}"
            settings.setdefault(remark, []).append(fmt.setting(cell.parameters))
    for remark, where in settings.items():
        more = f" and {len(where) - _NAMED_MAX} more" if len(where) > _NAMED_MAX else ""
        text = f"{remark} ({'; '.join(where[:_NAMED_MAX])}{more})"
        yield Paragraph(text, Tone.WARNING)
