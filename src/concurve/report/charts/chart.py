"""A chart as views take it, and charts as files."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Chart:
    """A chart with its file name, title, alternative text and remarks on what it leaves out.

    ``wide`` charts hold several panels, or rows with long names, and want a line to themselves.
    """

    name: str
    title: str
    alternative: str
    remarks: tuple[str, ...]
    wide: bool
    spec: Any

    def to_svg(self) -> str:
        """Static SVG, on its own or inline."""
        import vl_convert

        return str(vl_convert.vegalite_to_svg(self.spec.to_dict()))

    def to_png(self, scale: float = 2.0) -> bytes:
        """PNG on white at ``scale`` pixels per point."""
        import vl_convert

        spec = self.spec.properties(background="white").to_dict()
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
                path.write_text(chart.to_svg(), encoding="utf-8")
            elif kind == "png":
                path.write_bytes(chart.to_png())
            else:
                raise ValueError(f"charts are written as svg or png, not {kind!r}")
            written.append(path)
    return written
