"""A stored run or campaign on the terminal."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from concurve.cli.kept import place_of
from concurve.cli.streams import say, with_store
from concurve.report import terminal
from concurve.report.console import has_height, print_lines

if TYPE_CHECKING:
    from collections.abc import Collection

    from concurve.findings.run import Findings
    from concurve.report.console import Line
    from concurve.report.document import Document
    from concurve.report.sections.run import Topic
    from concurve.store import Store
    from concurve.store.rows import RunRow, Trials

#: How many threads numpy's linear algebra has; read when it is imported.
_BLAS_THREADS = "OPENBLAS_NUM_THREADS"
#: A command as reports have it.
_COMMAND = "concurve show last"


def note(text: str) -> None:
    """Print a line for people to standard error, apart from the result on standard output."""
    say(f"concurve: {text}")


def note_measured() -> None:
    """Say that a measurement runs on this machine, which a command that reads stored runs
    disturbs."""
    from concurve.host.lock import measurement_under_way

    if who := measurement_under_way():
        note(f"note: a measurement is running ({who}): this command takes CPU time from it")


def note_fallen(option: str, levels: str) -> None:
    """Say which of the levels of an option are the same on the CPUs that are granted here."""
    from concurve.definition.levels import fallen_together
    from concurve.host.granted import granted_cpus
    from concurve.words import count

    cpus = granted_cpus()
    if same := fallen_together(levels, cpus):
        note(f"note: {option}: on {count(cpus, 'CPU')}, {same}; each level is measured once")


def print_document(document: Document, report: Path | None = None) -> None:
    """Print a document; ``report`` is the file of the whole report that was written, if any."""
    terminal.show(_named(document), sys.stdout, str(report) if report else None)


def _named(document: Document) -> Document:
    """The document with the store that was given in its commands."""
    from concurve.report.document import reworded

    return reworded(document, with_store)


def show_run(
    store: Store,
    run: str,
    report: Path | None = None,
    best_by: str = "",
    topics: Collection[Topic] = (),
    figures: str = "",
) -> None:
    """Print a stored run; ``best_by`` names an indicator by which settings are the best,
    ``topics`` what is printed beside the answer and the table, and ``figures`` is a pattern of the
    figures that are listed where they are a topic.

    Raises:
        ConcurveError: no such run, or no figure has such a name.
    """
    row = store.find_run(run)
    if topics:
        print_document(_run_document(store, row, best_by, topics, figures=figures), report)
    else:
        _show_answer(store, row, report, best_by)


def _show_answer(store: Store, row: RunRow, report: Path | None, best_by: str) -> None:
    """Print the answer of a run and its table; those of very many trials are kept."""

    def answer(width: int) -> list[Line]:
        trials = store.trials(row.id)
        # The commands in it name the store.
        height = "screen" if has_height() else "file"
        asked = (best_by, str(width), height, with_store(_COMMAND))
        place = place_of(store, row, trials, asked)
        kept = None if place is None else place.read()
        if kept is not None:
            return kept
        document = _named(_run_document(store, row, best_by, (), trials))
        if not has_height():
            document = msgspec.structs.replace(document, shorter=None)
        found = list(terminal.lines(document, width))
        if place is not None:
            place.write(found)
        return found

    named = terminal.report_line(str(report) if report else None)
    print_lines(lambda width: [*answer(width), *named])


def _run_document(
    store: Store,
    row: RunRow,
    best_by: str,
    topics: Collection[Topic],
    trials: Trials | None = None,
    figures: str = "",
) -> Document:
    _import_numpy()
    from concurve.brief import figures_of
    from concurve.report.sections.run import Topic, brief_run_document

    has_models = Topic.MODELS in topics
    found = figures_of(
        store,
        row,
        best_by,
        models=has_models,
        brief=True,
        rejected=Topic.REJECTED in topics,
        trials=trials,
    )
    return brief_run_document(
        found.findings,
        found.scaling,
        topics=topics,
        limits=found.limits,
        outputs=found.outputs,
        named=_named_figures(found.findings, figures) if figures else (),
    )


def _named_figures(findings: Findings, pattern: str) -> list[str]:
    """The figures of a run that a pattern names; none of a run without any figures.

    Raises:
        ConcurveError: none, with those that may be meant.
    """
    known = findings.names_like("*")
    found = findings.names_like(pattern)
    if found or not known:
        return found
    from concurve.errors import ConcurveError
    from concurve.words import meant, one_of

    run = findings.run.id
    listing = f"{one_of(known)}; concurve show {run} --figures lists all"
    raise ConcurveError(f"run {run} has no figure {pattern!r}", meant(pattern, known, listing))


def _import_numpy() -> None:
    """Import numpy with one thread for linear algebra, of which a view has hardly any: the others
    would look for work in a loop, for a twentieth of the CPU time of a view of many trials."""
    if "numpy" in sys.modules or _BLAS_THREADS in os.environ:
        return
    os.environ[_BLAS_THREADS] = "1"
    try:
        import numpy  # noqa: F401
    finally:
        del os.environ[_BLAS_THREADS]  # nothing that this process starts is to have it


def show_campaign(store: Store, campaign: str, report: Path | None = None) -> None:
    """Print a stored campaign."""
    from concurve.analysis.campaign import campaign_findings
    from concurve.analysis.run import trial_findings_of
    from concurve.brief import limits_of_campaign
    from concurve.report.sections.campaign import brief_campaign_document

    row = store.find_campaign(campaign)
    assert row is not None
    findings = campaign_findings(
        store, row, lambda run: trial_findings_of(store, run, with_warned=False)
    )
    limits = limits_of_campaign(store, findings)
    print_document(brief_campaign_document(findings, limits), report)
