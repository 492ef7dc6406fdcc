"""A run as one HTML page that opens offline: no request leaves it, no script is needed.

The charts are static SVG. Their colours change with the reader's light or dark scheme by the
style sheet alone; a few lines of script add tooltips and sort the table where scripts run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from concurve.findings.cells import Reject
from concurve.findings.explanation import Explanation
from concurve.findings.run import Findings
from concurve.report import dependence
from concurve.report import format as fmt
from concurve.report.charts import charts
from concurve.report.charts.chart import Chart
from concurve.report.charts.style import GRID, INK, PALETTE, PALETTE_DARK, SOFT
from concurve.report.claims import claim_rows
from concurve.report.dependence import dependence_rows
from concurve.report.explain.chart import composition
from concurve.report.explain.section import section
from concurve.report.machine import facts
from concurve.report.published import heading, how, judged, not_comparable, published_row
from concurve.report.scaling import expected_heading, scaling_rows, subject
from concurve.report.table import table
from concurve.report.told import told_rows

if TYPE_CHECKING:
    from jinja2 import Environment

# Rejects listed one by one; further ones are counted.
_REJECTS_LISTED_MAX = 200
# The number of the chart on what limits the run: no other chart of the page has it.
_EXPLAINED = 1000

DARK = {
    **dict(zip(PALETTE, PALETTE_DARK, strict=True)),
    INK: "#e8e9ed",
    SOFT: "#a3a8b4",
    GRID: "#33363d",
}


@dataclass(frozen=True)
class Picture:
    """A chart ready for a page."""

    title: str
    remarks: tuple[str, ...]
    wide: bool
    svg: Any


def to_html(findings: Findings) -> str:
    """The page. Everything that comes from outside is escaped by the template."""
    contents = table(findings)
    pictures = [picture(chart, n) for n, chart in enumerate(charts(findings))]
    return (
        environment()
        .get_template("report.html.j2")
        .render(
            findings=findings,
            run=findings.run,
            title=fmt.clean(findings.question or findings.run.study),
            trials=fmt.count(findings.run.trials, "trial"),
            duration=fmt.duration(findings.run.duration_seconds),
            claims=claim_rows(findings),
            dependences=dependence_rows(findings),
            published=findings.published,
            table=contents,
            scaling=scaling_rows(findings),
            scaling_subject=subject(findings),
            expected_heading=expected_heading(findings),
            status=any(cell.status != "ok" for cell in contents.cells),
            pictures=pictures,
            rejects=findings.rejects[:_REJECTS_LISTED_MAX],
            rejects_more=max(0, len(findings.rejects) - _REJECTS_LISTED_MAX),
            causes=causes(findings.rejects),
            with_rejects=list(_with_rejects(findings)),
            machine=facts(findings.machine),
            told=told_rows(findings),
            dark=DARK,
            missing=fmt.MISSING,
            **_explained(findings.explanation),
        )
    )


def _explained(explanation: Explanation | None) -> dict[str, object]:
    """The section on what limits the run, with its chart, where the records were read."""
    chart = composition(explanation) if explanation else None
    return {
        "explained": section(explanation) if explanation else None,
        "explained_picture": picture(chart, _EXPLAINED) if chart else None,
    }


def environment() -> Environment:
    """The templates with the filters that they use."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("concurve.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["hanging"] = dependence
    made.filters |= {
        "clean_lines": fmt.clean_lines,
        "level": fmt.level,
        "clean": fmt.clean,
        "state": fmt.state,
        "setting": fmt.setting,
        "published": published_row,
        "heading": heading,
        "how": how,
        "not_comparable": not_comparable,
        "judged": lambda contents: judged(contents.figures),
    }
    return made


def picture(chart: Chart, number: int) -> Picture:
    """A chart with identifiers that no other of the page has: ``number`` is its own."""
    from markupsafe import Markup

    return Picture(chart.title, chart.remarks, chart.wide, Markup(_inline(chart, number)))


def causes(rejects: tuple[Reject, ...]) -> Mapping[str, int]:
    """How many trials each cause rejected, the most frequent first."""
    from collections import Counter

    return dict(Counter(item.cause for item in rejects if not item.used).most_common())


def _with_rejects(findings: Findings) -> Iterator[tuple[str, str, str]]:
    """Cell, primary figure without rejects, and with them."""
    for cell in findings.cells:
        figure = cell.indicators.get(findings.primary)
        if cell.including_rejects is not None and figure is not None:
            scale = fmt.scale_for([figure.value], figure.unit)
            yield (
                fmt.setting(cell.parameters),
                fmt.estimate(figure, scale).text,
                fmt.estimate(cell.including_rejects, scale).text,
            )


def _inline(chart: Chart, number: int) -> str:
    """The SVG fit for a page of several: scaling, named, and with identifiers of its own."""
    from markupsafe import escape

    svg = chart.to_svg()
    svg = re.sub(r'\bid="', f'id="c{number}-', svg)
    svg = svg.replace("url(#", f"url(#c{number}-").replace('href="#', f'href="#c{number}-')
    opening = re.match(r'<svg[^>]*width="([\d.]+)"[^>]*viewBox="([^"]+)"[^>]*>', svg)
    if opening is None:
        return svg
    root = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="{opening[2]}" '
        f'style="max-width:{float(opening[1]):.0f}px;min-width:{0.7 * float(opening[1]):.0f}px" '
        f'role="img" '
        f'aria-label="{escape(chart.alternative)}">'
    )
    return root + svg[opening.end() :]
