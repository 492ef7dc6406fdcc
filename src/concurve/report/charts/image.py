"""Charts as SVG and PNG."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from concurve.report.document import Chart


def to_svg(chart: Chart, *, other_axes: bool = False) -> str:
    """Static SVG, on its own or inline; ``other_axes``: with the axes not shown at first."""
    import vl_convert

    spec = chart.other_spec if other_axes else chart.spec
    return str(vl_convert.vegalite_to_svg(spec.to_dict()))


def to_png(chart: Chart, scale: float = 2.0) -> bytes:
    """PNG on white at ``scale`` pixels per point."""
    import vl_convert

    spec = chart.spec.properties(background="white").to_dict()
    return bytes(vl_convert.vegalite_to_png(spec, scale=scale))


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
                path.write_text(to_svg(chart), encoding="utf-8")
            elif kind == "png":
                path.write_bytes(to_png(chart))
            else:
                raise ValueError(f"charts are written as svg or png, not {kind!r}")
            written.append(path)
    return written
