"""A stored run or campaign on the terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from concurve.cli.kept import place_of
from concurve.cli.streams import say
from concurve.report import terminal
from concurve.report.console import print_lines

if TYPE_CHECKING:
    from collections.abc import Collection

    from concurve.report.console import Line
    from concurve.report.document import Document
    from concurve.report.sections.run import Topic
    from concurve.store import Store
    from concurve.store.rows import RunRow, Trials


def note(text: str) -> None:
    """Print a line for people to standard error, apart from the result on standard output."""
    say(f"concurve: {text}")


def print_document(document: Document, report: Path | None = None) -> None:
    """Print a document; ``report`` is the file of the whole report that was written, if any."""
    terminal.show(document, sys.stdout, str(report) if report else None)


def show_run(
    store: Store,
    run: str,
    report: Path | None = None,
    best_by: str = "",
    topics: Collection[Topic] = (),
) -> None:
    """Print a stored run; ``best_by`` names an indicator by which settings are the best,
    ``topics`` what is printed beside the answer and the table."""
    if topics or report is not None:
        print_document(_run_document(store, store.find_run(run), best_by, topics), report)
    else:
        _show_answer(store, store.find_run(run), best_by)


def _show_answer(store: Store, row: RunRow, best_by: str) -> None:
    """Print the answer of a run and its table; those of very many trials are kept."""

    def made(width: int) -> list[Line]:
        trials = store.trials(row.id)
        place = place_of(store, row, trials, (best_by, str(width)))
        kept = None if place is None else place.read()
        if kept is not None:
            return kept
        found = list(terminal.lines(_run_document(store, row, best_by, (), trials), width))
        if place is not None:
            place.write(found)
        return found

    print_lines(made)


def _run_document(
    store: Store, row: RunRow, best_by: str, topics: Collection[Topic], trials: Trials | None = None
) -> Document:
    from concurve.brief import figures_of
    from concurve.report.sections.run import Topic, brief_run_document

    has_models = Topic.MODELS in topics
    found = figures_of(store, row, best_by, models=has_models, brief=True, trials=trials)
    return brief_run_document(found.findings, found.scaling, topics=topics, limit=found.limit)


def show_campaign(store: Store, campaign: str, report: Path | None = None) -> None:
    """Print a stored campaign."""
    from concurve.analysis.campaign import campaign_findings
    from concurve.analysis.run import trial_findings_of
    from concurve.brief import limit_of_campaign
    from concurve.report.sections.campaign import brief_campaign_document

    row = store.find_campaign(campaign)
    assert row is not None
    findings = campaign_findings(store, row, lambda run: trial_findings_of(store, run))
    limit = limit_of_campaign(store, findings)
    print_document(brief_campaign_document(findings, limit), report)
