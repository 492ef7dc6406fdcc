"""A campaign on the terminal: what became of its studies, and the summary."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from rich.text import Text

from concurve.findings.campaign import CampaignFindings, StudyFindings
from concurve.report import format as fmt
from concurve.report.console import print_lines
from concurve.report.prose import wrapped
from concurve.report.published import counts

_STATES = {"complete": "", "failed": "red", "not run": "red"}
_MARKS = {"answer": ("", ""), "warning": ("! ", "yellow"), "note": ("", "dim")}


def show(findings: CampaignFindings, file: TextIO | None = None, report: str | None = None) -> None:
    """Print a campaign; ``report`` is the path of the report that was written, if one was."""
    print_lines(lambda width: lines(findings, width, report), file)


def lines(findings: CampaignFindings, width: int, report: str | None = None) -> Iterator[Text]:
    """The lines of a campaign, none wider than ``width`` cells."""
    campaign = findings.campaign
    yield from wrapped(Text(fmt.clean(campaign.question), "bold"), width)
    took = f"{fmt.count(findings.trials, 'trial')} in {fmt.duration(findings.duration_seconds)}"
    facts = [campaign.name, campaign.id, took, campaign.effort, campaign.state]
    yield from wrapped(Text(fmt.clean(" · ".join(facts)), "dim"), width)
    yield Text()
    for study in findings.studies:
        yield from _study(study, width)
    yield Text()
    for item in findings.summary:
        mark, style = _MARKS[item.kind]
        yield from wrapped(Text(f"{mark}{fmt.clean(item.sentence)}", style), width)
    yield Text()
    shown = next((study.run.run.id for study in findings.studies if study.run), None)
    if shown is not None:
        text = f"concurve show {shown} shows the first study's run; concurve report "
        text += f"{campaign.id} --export-html FILE writes the whole"
        yield from wrapped(Text(text, "dim"), width)
    if report:
        yield Text(f"report: {fmt.clean(report)}")


def _study(study: StudyFindings, width: int) -> Iterator[Text]:
    says = study.test_case.objective if study.test_case else study.question
    head = f"{study.name}  {study.state}"
    if study.run is not None:
        head += f"  {study.run.run.id}  {fmt.count(study.run.run.trials, 'trial')}"
    yield from wrapped(Text(fmt.clean(head), _STATES.get(study.state, "yellow")), width)
    yield from wrapped(Text(fmt.clean(says)), width, indent="  ")
    if study.verdicts:
        told = ", ".join(f"{number} {verdict}" for verdict, number in study.verdicts.items())
        yield from wrapped(Text(f"claims: {told}", "dim"), width, indent="  ")
    told = counts(study.agreements)
    if told:
        yield from wrapped(Text(f"published figures: {told}", "dim"), width, indent="  ")
