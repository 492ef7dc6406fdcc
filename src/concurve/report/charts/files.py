"""Charts as files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from concurve.report.document import Chart


def write_charts(
    drawn: Iterable[Chart], folder: Path, formats: Sequence[str] = ("svg", "png")
) -> list[Path]:
    """Write charts into the folder in each format; the paths written."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for chart in drawn:
        for kind in formats:
            path = folder / f"{chart.name}.{kind}"
            if kind == "svg":
                path.write_text(chart.to_svg(), encoding="utf-8")
            elif kind == "png":
                path.write_bytes(chart.to_png())
            else:
                raise ValueError(f"charts are written as svg or png, not {kind!r}")
            written.append(path)
    return written
