"""The charts of a run."""

from __future__ import annotations

from concurve.findings.run import Report
from concurve.report.charts import charts
from concurve.report.document import Paragraph, Section, Tone
from concurve.report.sections.figures import confidence


def section(report: Report) -> Section | None:
    """The charts side by side, and how to read them."""
    drawn = charts(report)
    if not drawn:
        return None
    known = confidence(report)
    bars = f"Bars are {known} intervals. " if known else ""
    how = f"{bars}Each small dot is one trial; rejected trials are hollow."
    return Section("Charts", (*drawn, Paragraph(how, Tone.SOFT)), anchor="charts")
