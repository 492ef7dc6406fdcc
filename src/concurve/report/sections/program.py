"""Facts that the measured program reported."""

from __future__ import annotations

from concurve.findings.run import Report
from concurve.findings.workers import ProgramFact
from concurve.report import format as fmt
from concurve.report.document import Column, Role, Section, Table


def section(report: Report) -> Section | None:
    """A row for each fact: its value, and the cells in which it was reported."""
    facts = report.facts
    if not facts:
        return None
    columns = (
        Column("what", [fact.name.replace("_", " ") for fact in facts], Role.KEY),
        Column("value", [fact.value for fact in facts]),
        Column("in", [_where(fact) for fact in facts]),
    )
    table = Table(columns, title="One row a fact.")
    summary = fmt.count(len(facts), "fact")
    return Section(
        "Facts that the program reported", (table,), anchor="program", folded=True, summary=summary
    )


def _where(fact: ProgramFact) -> str:
    of = f"{fact.cells} of {fact.among} cells"
    if not fact.where:
        return "all cells" if fact.cells == fact.among else of
    setting = fmt.setting(fact.where)
    return setting if fact.cells == fact.among else f"{setting} ({of})"
