"""What a chart of an indicator is called, and what it says to those who do not see it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from concurve.report import format as fmt
from concurve.report.charts.series import Series


def alternative(
    title: str, points: Sequence[dict[str, Any]], series: Sequence[Series], scale: fmt.Scale
) -> str:
    """What the chart shows, for those who do not see it."""
    values = [point["value"] for point in points]
    low, high = fmt.plain(min(values)), fmt.plain(max(values))
    curves = f" in {fmt.count(len(series), 'curve')}" if len(series) < len(points) else ""
    return (
        f"{title}: {fmt.count(len(points), 'cell')}{curves}, "
        f"from {fmt.with_unit(low, scale.symbol)} to {fmt.with_unit(high, scale.symbol)}. "
        "The table below has the same figures."
    )


def capital(text: str) -> str:
    """The text as a title begins."""
    text = fmt.clean(text)
    return text[:1].upper() + text[1:]


def file_name(text: str) -> str:
    """The text in letters that every file system takes."""
    return "".join(char if char.isalnum() and char.isascii() else "-" for char in text).strip("-")
