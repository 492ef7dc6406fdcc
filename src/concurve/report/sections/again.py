"""How to run it again."""

from __future__ import annotations

from concurve.findings.run import Report
from concurve.report.document import Code, Section


def section(report: Report) -> Section:
    """The command line."""
    return Section("Run it again", (Code(report.run.again),), anchor="again")
