"""A run's views as files: each is whole or not there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from concurve.analysis.campaign import campaign_findings, with_causes, with_each_run
from concurve.analysis.run import findings_of
from concurve.analysis.told import with_facts
from concurve.analysis.workers import with_shares
from concurve.errors import ConcurveError
from concurve.findings.campaign import CampaignFindings
from concurve.findings.run import Findings
from concurve.report.json import RawTrial
from concurve.store import Store
from concurve.wire import decode_record

Format = Literal["json", "csv", "markdown", "html"]

FORMATS: dict[str, Format] = {
    ".json": "json",
    ".csv": "csv",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
}


def format_of(path: Path) -> Format:
    """The format that a file's ending asks for.

    Raises:
        ConcurveError: an ending that stands for none.
    """
    if path.suffix.lower() not in FORMATS:
        raise ConcurveError(
            f"{path}: no format for the ending {path.suffix!r}",
            f"an ending of {', '.join(FORMATS)}",
        )
    return FORMATS[path.suffix.lower()]


def check_writable(path: Path) -> None:
    """Refuse a file that could not be written, before anything is measured.

    Raises:
        ConcurveError: the folder is missing or not writable, or the path is a folder.
    """
    folder = path.parent
    if path.is_dir():
        raise ConcurveError(f"{path} is a folder", "the name of a file")
    if not folder.is_dir():
        raise ConcurveError(f"the folder {folder} does not exist", f"mkdir -p {folder}")
    if not os.access(folder, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise ConcurveError(f"{path} cannot be written", "a place you may write to")


def complete(findings: Findings, store: Store) -> Findings:
    """A run with all that a report shows of it: the scaling models fitted to it, what limits each
    cell, what single workers did, and what the measured program said of itself."""
    if not findings.scaling:
        from concurve.analysis.scaling import with_models

        findings = with_models(findings)
    if findings.explanation is None:
        from concurve.explain import with_explanation

        findings = with_explanation(findings, store)
    if findings.shares is None:
        findings = with_shares(findings, store)
    return findings if findings.facts else with_facts(findings, store)


def complete_campaign(findings: CampaignFindings, store: Store) -> CampaignFindings:
    """A campaign with all that its report shows of its runs."""
    return with_causes(with_each_run(findings, lambda run: complete(run, store)))


def render(findings: Findings, store: Store, kind: Format) -> bytes:
    """A run in a format; in all but CSV with scaling models and what limits it."""
    if kind != "csv":
        findings = complete(findings, store)
    if kind == "json":
        from concurve.report.json import to_json

        return to_json(findings, raw_trials(findings, store)) + b"\n"
    if kind == "csv":
        from concurve.report import csv

        return csv.cells(findings).encode()
    if kind == "markdown":
        from concurve.report.markdown import to_markdown

        return to_markdown(findings).encode()
    from concurve.report.html import to_html

    return to_html(findings).encode()


def render_hdr(findings: Findings, store: Store) -> bytes:
    """The histograms of the trials in use, as an HdrHistogram interval log.

    Raises:
        ConcurveError: the run has none.
    """
    from concurve import hdr_log

    labels = hdr_log.labels((cell.index, cell.parameters) for cell in findings.cells)
    trials = raw_trials(findings, store)
    used = ((labels[cell], decode_record(raw)) for cell, _, _, ok, _, raw in trials if ok)
    return hdr_log.log(used).encode()


def check_campaign_format(kind: Format) -> None:
    """Refuse a format that a campaign has not.

    Raises:
        ConcurveError: CSV, which is one table.
    """
    if kind == "csv":
        raise ConcurveError(
            "a campaign has no one table for CSV, and no one log of histograms",
            "json, html or markdown; or concurve export RUN for each of its runs",
        )


def render_campaign(findings: CampaignFindings, kind: Format, store: Store | None = None) -> bytes:
    """A campaign in a format; where a store has its runs, with their scaling models and what
    limits them, and in JSON with their raw trials."""
    check_campaign_format(kind)
    if store is not None:
        findings = complete_campaign(findings, store)
    if kind == "json":
        from concurve.report.campaign.json import to_campaign_json

        runs = [study.run for study in findings.studies if study.run is not None]
        raw = {run.run.id: raw_trials(run, store) for run in runs} if store is not None else {}
        return to_campaign_json(findings, raw) + b"\n"
    if kind == "markdown":
        from concurve.report.campaign.markdown import to_campaign_markdown

        return to_campaign_markdown(findings).encode()
    from concurve.report.campaign.html import to_campaign_html

    return to_campaign_html(findings).encode()


def write(path: Path, content: bytes) -> None:
    """Write a file whole: beside its place first, then moved there.

    Raises:
        ConcurveError: it could not be written; an older file is as it was.
    """
    check_writable(path)
    temporary = None
    try:
        with tempfile.NamedTemporaryFile(
            dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as f:
            temporary = Path(f.name)
            f.write(content)
        mask = os.umask(0)
        os.umask(mask)
        temporary.chmod(0o666 & ~mask)
        temporary.replace(path)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise ConcurveError(
            f"{path} could not be written: {error.strerror}", "another place or more space"
        ) from error


def write_run(store: Store, run: str, files: dict[Format, Path]) -> None:
    """Write the asked-for views of a stored run."""
    if not files:
        return
    findings = findings_of(store, store.find_run(run))
    if set(files) != {"csv"}:
        findings = complete(findings, store)
    for kind, path in files.items():
        write(path, render(findings, store, kind))


def write_campaign(store: Store, campaign: str, files: dict[Format, Path]) -> None:
    """Write the asked-for views of a stored campaign."""
    if not files:
        return
    row = store.find_campaign(campaign)
    assert row is not None
    findings = complete_campaign(campaign_findings(store, row), store)
    for kind, path in files.items():
        write(path, render_campaign(findings, kind, store))


def raw_trials(findings: Findings, store: Store) -> Iterator[RawTrial]:
    """Every raw trial of a run in the form that the JSON export takes."""
    used = {(dot.cell, dot.block, dot.attempt) for dot in findings.dots if dot.used}
    causes = {
        (reject.cell, reject.block, reject.attempt): f"{reject.cause}: {reject.detail}"
        for reject in findings.rejects
    }
    for key, record in store.records(findings.run.id):
        yield (key.cell, key.block, key.attempt, tuple(key) in used, causes.get(key), record)
