"""Charts as SVG and PNG."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from concurve.report.charts.style import SOFT
from concurve.report.document import Chart


def to_svg(chart: Chart, *, other_axes: bool = False, alone: bool = False) -> str:
    """Static SVG; ``other_axes``: with the axes not shown at first. ``alone``: with the remarks
    that stand below it on a page."""
    import vl_convert

    written = _written(chart.other_spec if other_axes else chart.spec)
    return str(vl_convert.vegalite_to_svg(_remarked(written, chart) if alone else written))


def to_png(chart: Chart, scale: float = 2.0) -> bytes:
    """PNG on white at ``scale`` pixels per point, with the remarks on the chart."""
    import vl_convert

    spec = chart.spec.properties(background="white")
    return bytes(vl_convert.vegalite_to_png(_remarked(_written(spec), chart), scale=scale))


def _written(spec: Any) -> dict[str, Any]:
    """A specification as Vega-Lite has it. Altair's check takes a third of the time of a picture,
    and is made by the tests."""
    return dict(spec.to_dict(validate=False))


def _remarked(written: dict[str, Any], chart: Chart) -> dict[str, Any]:
    """A specification with the remarks on its chart above it: nothing else says them in a file."""
    if not chart.remarks:
        return written
    given = written.get("title") or {}
    title = given if isinstance(given, dict) else {"text": given}
    text = title.get("text") or []
    look = {"anchor": "start", "color": SOFT, "fontSize": 12, "fontWeight": "normal", "offset": 6}
    lines = [*([text] if isinstance(text, str) else text), *chart.remarks]
    return {**written, "title": {**look, **title, "text": lines}}


def drawn(
    charts: Iterable[Chart], formats: Sequence[str] = ("svg", "png")
) -> Iterator[tuple[str, bytes]]:
    """Each chart in each format, with the name of its file."""
    for chart in charts:
        for kind in formats:
            if kind == "svg":
                yield f"{chart.name}.svg", to_svg(chart, alone=True).encode()
            elif kind == "png":
                yield f"{chart.name}.png", to_png(chart)
            else:
                raise ValueError(f"charts are written as svg or png, not {kind!r}")
