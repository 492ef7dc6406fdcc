"""The axes of charts: the work factor across, the values up."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from concurve.findings.cells import CellFindings
from concurve.findings.run import Findings
from concurve.report import format as fmt
from concurve.terms import Factor

# Values whose greatest and least differ by more than this ratio get a logarithmic axis.
LOG_SPAN = 30.0
LOG2_SPAN = 8.0
# A logarithmic axis begins at this share of the least figure, and ends as far above the greatest.
LOG_MARGIN = 0.8


@dataclass(frozen=True)
class WorkAxis:
    """The axis of the work factor: binary logarithm for powers of two and wide spans."""

    levels: tuple[float, ...]
    log2: bool
    end: float

    @classmethod
    def of(cls, work: Factor, ahead: float | None = None) -> WorkAxis:
        """The axis of the levels, on to ``ahead`` if that lies further."""
        levels = tuple(sorted(float(level) for level in work.levels))
        powers = len(levels) > 2 and all(
            level > 0 and math.log2(level).is_integer() for level in levels
        )
        wide = levels[0] > 0 and levels[-1] / levels[0] > LOG2_SPAN
        return cls(levels, powers or wide, max(levels[-1], ahead or levels[-1]))

    def can_be_log(self) -> bool:
        """Are all levels above 0?"""
        return self.levels[0] > 0

    def at(self, level: float, offset: float, jitter: float | None = None) -> float:
        """The position of a mark: each curve has an offset of its own, so that no bar hides
        another.

        Dots, which have a jitter, stand a little right of their curve's bar.
        """
        shift = 0.006 * offset + (0.0 if jitter is None else 0.018 + 0.005 * jitter)
        shift *= min(1.0, 10 / len(self.levels))
        if self.log2:
            return level * float((self.levels[-1] / self.levels[0]) ** shift)
        return level + (self.levels[-1] - self.levels[0]) * shift

    def scale(self, alt: Any) -> Any:
        """The scale, with margins on both sides for the dots."""
        low, high = self.levels[0], self.end
        if self.log2:
            margin = (high / low) ** 0.02
            return alt.Scale(
                type="log", base=2, domain=[low / margin, high * margin**2], nice=False
            )
        margin = (high - low) * 0.02
        return alt.Scale(domain=[low - margin, high + 2 * margin], nice=False)

    def axis(self, alt: Any) -> Any:
        """Ticks at the levels themselves, as far as they fit."""
        return alt.Axis(
            values=[*self.levels, *([self.end] if self.end > self.levels[-1] else [])],
            labelOverlap="greedy",
            labelExpr="format(datum.value, datum.value >= 10000 ? '~s' : '~r')",
        )


def scale_of(findings: Findings, name: str, cells: Iterable[CellFindings]) -> fmt.Scale:
    """The unit that an axis of these cells is drawn in."""
    figures = [cell.indicators[name] for cell in cells]
    unit = next((figure.unit for figure in figures if figure.unit), findings.indicator(name).unit)
    return fmt.scale_for([figure.value for figure in figures], unit)


def value_scale(alt: Any, bottom: float, top: float, log: bool) -> Any:
    """The scale of the values; prediction bands do not extend it."""
    if log:
        domain = [bottom * LOG_MARGIN, top / LOG_MARGIN]
        return alt.Scale(type="log", domain=domain, nice=False)
    return alt.Scale(domain=[min(0.0, bottom), top], nice=False)


def axis_title(label: str, scale: fmt.Scale, log: bool) -> str:
    """The title of the axis of values, with its unit."""
    unit = "" if scale.symbol == "×" else scale.symbol
    notes = [note for note in (unit, "logarithmic" if log else "") if note]
    return f"{fmt.clean(label)} ({', '.join(notes)})" if notes else fmt.clean(label)
