"""What the measured program said of itself, as rows of text: one form for every view."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from concurve.findings.run import Findings
from concurve.findings.workers import ToldFact
from concurve.report import format as fmt


class ToldRow(NamedTuple):
    """A fact, its value, and in which cells it was said; ``where`` is empty for all of them."""

    name: str
    value: str
    where: str


def told_rows(findings: Findings) -> list[ToldRow]:
    """The facts by name, in the order in which they were said."""
    return [
        ToldRow(fmt.clean(fact.name.replace("_", " ")), fmt.clean(fact.value), _where(fact))
        for fact in findings.facts
    ]


def to_markdown(findings: Findings) -> Iterator[str]:
    """The facts as a table; nothing if there are none."""
    from concurve.report.markdown import grid, text

    rows = [
        (text(r.name), text(r.value), text(r.where) or "all cells") for r in told_rows(findings)
    ]
    if rows:
        yield from grid(("what", "value", "in"), rows)
        yield ""


def _where(fact: ToldFact) -> str:
    if not fact.where:
        return "" if fact.cells == fact.among else f"{fact.cells} of {fact.among} cells"
    some = "" if fact.cells == fact.among else f" ({fact.cells} of {fact.among} cells)"
    return f"{fmt.setting(fact.where)}{some}"
