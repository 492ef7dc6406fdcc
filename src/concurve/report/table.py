"""The table of a run: one row a cell, one column a factor or an indicator, all as text.

Every view draws this table in its own way; which columns a narrow view drops is decided by
their order here, the most wanted first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from concurve.estimate import Estimate
from concurve.findings.cells import CellFindings
from concurve.findings.run import Findings
from concurve.report import format as fmt
from concurve.terms import Level

# What comes after the primary indicator, its speed-up and what was asked for; others in the order
# of the findings. Where a load lasts a fixed time, its wall time tells nothing.
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


@dataclass(frozen=True)
class Column:
    """An indicator down the table: its entries in the order of the cells."""

    name: str
    label: str
    note: str
    known_unit: str
    cells: tuple[CellFindings, ...]

    @cached_property
    def figures(self) -> tuple[Estimate | None, ...]:
        """The indicator in each cell; read when first asked for, as all that follows from it."""
        return tuple(cell.indicators.get(self.name) for cell in self.cells)

    @cached_property
    def scale(self) -> fmt.Scale:
        """The unit that suits all entries."""
        figures = [figure for figure in self.figures if figure]
        unit = next((figure.unit for figure in figures if figure.unit), self.known_unit)
        return fmt.scale_for([figure.value for figure in figures], unit)

    @property
    def confidences(self) -> set[float]:
        """The confidence of the intervals."""
        return {
            figure.confidence
            for figure in self.figures
            if figure and figure.low is not None and figure.high is not None
        }

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """Written out when they are first asked for: a narrow view drops most columns."""
        return tuple(_entry(cell, self.name, self.scale) for cell in self.cells)

    @property
    def has_figures(self) -> bool:
        """Does any cell have the indicator?"""
        return any(self.name in cell.indicators for cell in self.cells)

    @property
    def heading(self) -> str:
        """Label with the unit that all entries share."""
        return f"{self.label} ({self.unit})" if self.unit else self.label

    @property
    def unit(self) -> str:
        """The unit as a heading wants it: a factor like 2× speaks for itself."""
        return "" if self.scale.symbol == "×" else self.scale.symbol


@dataclass(frozen=True)
class Entry:
    """A figure of one cell, or the reason why there is none."""

    shown: fmt.Shown | None
    estimate: Estimate | None = None
    absent: str = ""


@dataclass(frozen=True)
class Table:
    """Factors that vary, factors that stay, and the indicators, most wanted first."""

    factors: tuple[str, ...]
    constant: dict[str, Level]
    columns: tuple[Column, ...]
    cells: tuple[CellFindings, ...]

    @property
    def confidence(self) -> str:
        """The confidence of the intervals, ``95 %``; several, if they differ."""
        return confidence_of(self.columns)


def confidence_of(columns: Iterable[Column]) -> str:
    """The confidence of the intervals of some columns, in words."""
    found = set().union(*(column.confidences for column in columns))
    return " or ".join(f"{value:.4g} %" for value in sorted(100 * value for value in found))


def legend(columns: Iterable[Column]) -> str:
    """What stands behind the figures of some columns; empty where none has an interval."""
    columns = list(columns)
    confidence = confidence_of(columns)
    if not confidence:
        return ""
    entries = [entry.shown for column in columns for entry in column.entries if entry.shown]
    skewed = any(shown.is_skewed and shown.half for shown in entries)
    also = "; (low to high) is that interval where it is lopsided" if skewed else ""
    return f"± is half the width of the {confidence} interval{also}"


def table(findings: Findings) -> Table:
    """The findings' table."""
    varying = tuple(f.name for f in findings.factors if len(f.levels) > 1)
    constant = {f.name: f.levels[0] for f in findings.factors if len(f.levels) == 1}
    names = order(findings)
    return Table(
        varying, constant, tuple(_column(findings, name) for name in names), findings.cells
    )


def order(findings: Findings) -> list[str]:
    """The indicators that any cell has, the most wanted first."""
    present: dict[str, None] = {}
    for cell in findings.cells:
        present.update(dict.fromkeys(cell.indicators))
    for cell in findings.cells:
        present.update(dict.fromkeys(cell.absent))
    asked = (name for name in findings.asked if name not in _WANTED)
    # What the machine did while it simulated is not what was asked.
    machine = () if findings.run.simulation else _WANTED
    others = (info.name for info in findings.indicators)
    wanted = (findings.primary, "speedup", *asked, *machine, *others)
    return [name for name in dict.fromkeys((*wanted, *present)) if name in present]


def _column(findings: Findings, name: str) -> Column:
    info = findings.indicator(name)
    return Column(
        name,
        fmt.clean(info.label or name),
        info.note,
        info.unit,
        findings.cells,
    )


def _entry(cell: CellFindings, name: str, scale: fmt.Scale) -> Entry:
    figure = cell.indicators.get(name)
    if figure is None:
        return Entry(None, absent=cell.absent.get(name, ""))
    return Entry(fmt.estimate(figure, scale), figure)
