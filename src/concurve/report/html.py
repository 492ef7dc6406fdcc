"""A document as one HTML page that opens offline: no request leaves it, no script is needed.

The charts are static SVG, with linear and with logarithmic axes. Their colours change with the
reader's light or dark scheme by the style sheet alone. Where scripts run, a small one tells the
figure of a mark under the pointer or the keyboard's focus, hides curves, changes the axes, and
sorts tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import count, cycle, groupby
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from concurve.report import format as fmt
from concurve.report.charts.compact import compact
from concurve.report.charts.image import to_svg
from concurve.report.charts.style import GRID, INK, PALETTE, PALETTE_DARK, SOFT
from concurve.report.document import Block, Cell, Chart, Document, Missing, Role, Table, Tone

if TYPE_CHECKING:
    from jinja2 import Environment

DARK = {
    **dict(zip(PALETTE, PALETTE_DARK, strict=True)),
    INK: "#e8e9ed",
    SOFT: "#a3a8b4",
    GRID: "#33363d",
}
# Charts are drawn for a narrow screen, and scaled up to this on a wide one.
_SCALE_MAX = 1.45
# A larger picture, in bytes, makes a notebook slow.
_OUTPUT_MAX = 100_000
_PARAGRAPHS = {Tone.STRONG: "answer", Tone.SOFT: "remark", Tone.WARNING: "warning"}


class _Matrix(NamedTuple):
    """A table as a matrix: its two headings, and the tone and the entries of each element."""

    rows: list[Cell]
    columns: list[Cell]
    places: dict[tuple[Cell, Cell], tuple[Tone, tuple[Cell, ...]]]


def to_html(document: Document) -> str:
    """The page. Everything that comes from outside is escaped by the template."""
    return _environment().get_template("document.html.j2").render(document=document, dark=DARK)


def to_fragment(document: Document) -> str:
    """The document as a part of another page, which links :func:`style_sheet` and runs
    :func:`script` once the part is there."""
    return _environment().get_template("fragment.html.j2").render(document=document)


def to_output(document: Document, picture_max: float = _OUTPUT_MAX) -> str:
    """The document as the output of a notebook's cell: with a style of its own for light and for
    dark notebooks, and without a script. Words stand there for a chart of more than
    ``picture_max`` bytes."""
    made = _environment()
    made.globals["is_output"] = True
    made.filters["picture"] = lambda chart: _picture_of_output(chart, picture_max)
    return made.get_template("output.html.j2").render(document=document, dark=DARK)


def style_sheet() -> str:
    """The style sheet of reports, with the colours of charts in the dark scheme."""
    return _environment().get_template("style.css.j2").render(dark=DARK)


def script() -> str:
    """The script of reports: it makes the charts and tables live that are on the page."""
    return _environment().get_template("report.js").render()


def _environment() -> Environment:
    """The templates with the filters that they use."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("concurve.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    numbers = count()
    made.filters |= {
        "clean": fmt.clean,
        "clean_lines": fmt.clean_lines,
        "percent": fmt.percent,
        "kind": lambda block: type(block).__name__,
        "picture": lambda chart: _picture(chart, f"c{next(numbers)}"),
        "other_picture": lambda chart: _picture(chart, f"c{next(numbers)}", other_axes=True),
        "colours": lambda labels: zip(labels, cycle(PALETTE)),
        "charts_together": _charts_together,
        "crossed": _crossed,
        "paragraph_class": lambda tone: _PARAGRAPHS.get(tone, "plain"),
        "is_shown": lambda cell: cell != "" and not isinstance(cell, Missing),
    }
    made.globals |= {"missing": fmt.MISSING, "Role": Role, "Tone": Tone, "is_output": False}
    return made


def _charts_together(blocks: Iterable[Block]) -> Iterator[tuple[bool, list[Block]]]:
    """Blocks in groups, and for each group whether it holds charts, which stand side by side."""
    for is_chart, group in groupby(blocks, lambda block: isinstance(block, Chart)):
        yield is_chart, list(group)


def _crossed(table: Table) -> _Matrix:
    places = {(row[0], row[1]): (tone, row[2:]) for tone, row in table.rows()}
    return _Matrix(
        list(dict.fromkeys(row for row, _ in places)),
        list(dict.fromkeys(column for _, column in places)),
        places,
    )


def _picture_of_output(chart: Chart, most: float) -> Any:
    """The picture, or words in its place where it is too large."""
    picture = _picture(chart)
    return picture if len(picture) <= most else f"{chart.alternative} The chart is too large here."


def _picture(chart: Chart, prefix: str = "", *, other_axes: bool = False) -> Any:
    """The SVG for a page with several charts: scalable, named, and with unique identifiers. Who
    does not know the other charts of the page gives no ``prefix`` for them."""
    from markupsafe import Markup, escape

    svg = compact(to_svg(chart, other_axes=other_axes))
    prefix = prefix or f"c{crc32(svg.encode()):x}"
    svg = re.sub(r'\bid="', f'id="{prefix}-', svg)
    svg = svg.replace("url(#", f"url(#{prefix}-").replace('href="#', f'href="#{prefix}-')
    # An empty layer is no symbol, so it has no name.
    svg = re.sub(r'<g class="mark-symbol[^>]*/>', "", svg)
    opening = re.match(r'<svg[^>]*width="([\d.]+)"[^>]*viewBox="([^"]+)"[^>]*>', svg)
    if opening is None:
        return Markup(svg)
    width = float(opening[1])
    # Panels stay readable on a narrow screen, where they are scrolled.
    least = f";min-width:{0.7 * width:.0f}px" if chart.wide else ""
    root = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="{opening[2]}" '
        f'style="max-width:{_SCALE_MAX * width:.0f}px{least}" '
        f'role="graphics-document" aria-roledescription="chart" '
        f'aria-label="{escape(chart.alternative)}">'
    )
    return Markup(root + svg[opening.end() :])
