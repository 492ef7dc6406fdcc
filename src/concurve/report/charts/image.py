"""Charts as SVG and PNG."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from concurve.report.document import Chart


def to_svg(chart: Chart, *, other_axes: bool = False) -> str:
    """Static SVG, on its own or inline; ``other_axes``: with the axes not shown at first."""
    import vl_convert

    spec = chart.other_spec if other_axes else chart.spec
    return str(vl_convert.vegalite_to_svg(_written(spec)))


def to_png(chart: Chart, scale: float = 2.0) -> bytes:
    """PNG on white at ``scale`` pixels per point."""
    import vl_convert

    spec = chart.spec.properties(background="white")
    return bytes(vl_convert.vegalite_to_png(_written(spec), scale=scale))


def _written(spec: Any) -> dict[str, Any]:
    """A specification as Vega-Lite has it. Altair's check takes a third of the time of a picture,
    and is made by the tests."""
    return dict(spec.to_dict(validate=False))


def drawn(
    charts: Iterable[Chart], formats: Sequence[str] = ("svg", "png")
) -> Iterator[tuple[str, bytes]]:
    """Each chart in each format, with the name of its file."""
    for chart in charts:
        for kind in formats:
            if kind == "svg":
                yield f"{chart.name}.svg", to_svg(chart).encode()
            elif kind == "png":
                yield f"{chart.name}.png", to_png(chart)
            else:
                raise ValueError(f"charts are written as svg or png, not {kind!r}")
