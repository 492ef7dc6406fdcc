"""The views of stored runs and campaigns as files: each is written completely or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import Literal

from concurve.analysis.run import findings_of, trial_findings_of
from concurve.assemble import RawRecords, campaign_of, raw_trials, report_of
from concurve.errors import ConcurveError
from concurve.findings.campaign import CampaignReport
from concurve.findings.run import Report
from concurve.permissions import file_mode, folder_mode
from concurve.report.csv import cells
from concurve.report.document import Document, reworded
from concurve.report.sections.campaign import campaign_document
from concurve.report.sections.run import run_document
from concurve.store import Store
from concurve.store.rows import CampaignRow, RunRow, TrialKey
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

#: Why a file cannot be written in any other way, either.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def format_of(path: Path) -> Format:
    """The format of a file's ending.

    Raises:
        ConcurveError: no format has this ending.
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
    if path.exists() and not path.is_file():  # a rename would replace the device or the pipe
        raise ConcurveError(f"{path} is no regular file", "the name of a file")
    if not folder.is_dir():
        raise ConcurveError(f"the folder {folder} does not exist", f"mkdir -p {quote(str(folder))}")
    if not os.access(folder, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise ConcurveError(f"{path} cannot be written", "a place you may write to")


def write(path: Path, content: bytes) -> None:
    """Write a file completely: first under another name in its folder, then renamed. It is for its
    owner alone, unless ``CONCURVE_FILE_MODE`` says otherwise.

    Raises:
        ConcurveError: it could not be written; an older file is unchanged.
    """
    check_writable(path)
    mode = file_mode()
    temporary = path.with_name(f".concurve-{secrets.token_hex(8)}")
    try:
        _write_new(temporary, content, mode)
        temporary.replace(path)
    except OSError as error:
        raise ConcurveError(
            f"{path} could not be written: {error.strerror}", "another place or more space"
        ) from error
    finally:
        with contextlib.suppress(OSError):  # it has the path by now, or was never there
            temporary.unlink()


def _write_new(path: Path, content: bytes, mode: int) -> None:
    """Write a new file. Where the file system knows files without a name, it gets its name when it
    is complete: one who is killed meanwhile leaves nothing."""
    try:
        _write_nameless(path, content, mode)
    except OSError as error:
        if error.errno in _NO_ROOM:
            raise
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, mode)
            file.write(content)
            file.flush()
            os.fsync(descriptor)


def _write_nameless(path: Path, content: bytes, mode: int) -> None:
    descriptor = os.open(path.parent, os.O_WRONLY | os.O_CLOEXEC | os.O_TMPFILE, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)
        file.write(content)
        file.flush()
        # Else it might have its name before its content, and take the place of an older file, when
        # the power fails.
        os.fsync(descriptor)
        # With a folder, though the path needs none: only so does Python follow the link.
        os.link(f"/proc/self/fd/{descriptor}", path, src_dir_fd=descriptor)


# -- runs -------------------------------------------------------------------------------------


#: Other words for the sentences of a report, such as commands that name the store.
Words = Callable[[str], str]


def export_run(store: Store, row: RunRow, kind: Format, words: Words = str) -> bytes:
    """A run in a format; in all but CSV with scaling models and what limits it. ``words`` are those
    of reports for people."""
    if kind == "csv":
        return cells(findings_of(store, row)).encode()
    raw = RawRecords() if kind == "json" else None
    return render(report_of(store, row, raw), kind, raw, words)


def write_run(
    store: Store,
    run: str,
    files: dict[Format, Path],
    charts: Path | None = None,
    words: Words = str,
) -> list[Path]:
    """Write the requested views of a stored run, and each chart of its report as SVG and PNG into
    the folder ``charts``, if there is one; the paths written. Its records are read once."""
    if not files and charts is None:
        return []
    row = store.find_run(run)
    if set(files) == {"csv"} and charts is None:
        write(files["csv"], export_run(store, row, "csv"))
        return [files["csv"]]
    raw = RawRecords() if "json" in files else None
    report = report_of(store, row, raw)
    for kind, path in files.items():
        write(path, render(report, kind, raw, words))
    drawn = [] if charts is None else _write_charts(run_document(report), charts)
    return [*files.values(), *drawn]


def render(
    report: Report, kind: Format, raw: RawRecords | None = None, words: Words = str
) -> bytes:
    """The report of a run in a format; ``raw`` records are for JSON, ``words`` for the others."""
    if kind == "json":
        from concurve.report.json.export import to_json

        return to_json(report, raw.of(report) if raw is not None else ()) + b"\n"
    if kind == "csv":
        return cells(report).encode()
    return _rendered(run_document(report), kind, words)


def export_blocked(store: Store, row: RunRow, kind: str) -> bytes:
    """Where the blocked time of each cell went, for tools that draw flame graphs: as ``collapsed``
    stacks, or as a profile (``firefox``).

    Raises:
        ConcurveError: no record of the run says what its threads waited for.
    """
    from concurve.explain import explain_run
    from concurve.report.flames import to_collapsed, to_firefox

    found = explain_run(store, row)
    if not any(cell.stacks for cell in found.cells):
        why = found.missing.get("waits", "its threads did not wait, or no sample saw them")
        raise ConcurveError(
            f"run {row.id} has no blocked time to export: {why}", "a run with longer trials"
        )
    return to_collapsed(found).encode() if kind == "collapsed" else to_firefox(found)


def export_hdr(store: Store, row: RunRow) -> bytes:
    """The histograms of the trials in use, as an HdrHistogram interval log.

    Raises:
        ConcurveError: the run has none.
    """
    from concurve import hdr_log

    findings = trial_findings_of(store, row, with_warned=False)
    labels = hdr_log.labels((cell.index, cell.parameters) for cell in findings.cells)
    trials = raw_trials(findings, store.records(row.id))
    used = (
        (labels[cell], decode_record(raw, TrialKey(cell, block, attempt).shown(row.id)))
        for cell, block, attempt, ok, _, raw in trials
        if ok
    )
    return hdr_log.log(used).encode()


# -- campaigns --------------------------------------------------------------------------------


def check_campaign_format(kind: Format) -> None:
    """Refuse a format that campaigns do not have.

    Raises:
        ConcurveError: CSV, which is one table.
    """
    if kind == "csv":
        raise ConcurveError(
            "a campaign has no single table for CSV, log of histograms, or picture of blocked time",
            "json, html or markdown; or concurve export RUN for each of its runs",
        )


def export_campaign(store: Store, row: CampaignRow, kind: Format, words: Words = str) -> bytes:
    """A stored campaign in a format, with the whole report of each of its runs."""
    raw: dict[str, RawRecords] | None = {} if kind == "json" else None
    return render_campaign(campaign_of(store, row, raw), kind, raw, words)


def write_campaign(
    store: Store,
    campaign: str,
    files: dict[Format, Path],
    charts: Path | None = None,
    words: Words = str,
) -> list[Path]:
    """Write the requested views of a stored campaign, and its charts under their numbers into the
    folder ``charts``, if there is one; the paths written."""
    if not files and charts is None:
        return []
    row = store.find_campaign(campaign)
    assert row is not None
    raw: dict[str, RawRecords] | None = {} if "json" in files else None
    findings = campaign_of(store, row, raw)
    for kind, path in files.items():
        write(path, render_campaign(findings, kind, raw, words))
    drawn = [] if charts is None else _write_charts(campaign_document(findings), charts)
    return [*files.values(), *drawn]


def render_campaign(
    findings: CampaignReport,
    kind: Format,
    raw: dict[str, RawRecords] | None = None,
    words: Words = str,
) -> bytes:
    """A campaign in a format; ``raw`` trials by run are for JSON, ``words`` for the others."""
    check_campaign_format(kind)
    if kind == "json":
        from concurve.report.json.campaign import to_campaign_json
        from concurve.report.json.export import to_json

        def run_json(run: Report) -> bytes:
            return to_json(run, raw[run.run.id].of(run) if raw else ())

        return to_campaign_json(findings, run_json) + b"\n"
    return _rendered(campaign_document(findings), kind, words)


def _rendered(document: Document, kind: Format, words: Words) -> bytes:
    document = reworded(document, words)
    if kind == "markdown":
        from concurve.report.markdown import to_markdown

        return to_markdown(document).encode()
    from concurve.report.html import to_html

    return to_html(document).encode()


def _write_charts(document: Document, folder: Path) -> list[Path]:
    from concurve.report.charts.image import drawn

    try:
        folder.mkdir(mode=folder_mode(), parents=True, exist_ok=True)
    except OSError as error:
        raise ConcurveError(
            f"the folder {folder} cannot be made: {error.strerror}", "a place you may write to"
        ) from error
    written: list[Path] = []
    for name, content in drawn(document.charts()):
        place = folder / name
        number = 1
        # Two charts may have one name: that of figures which differ in signs that no file name has.
        while place in written:
            number += 1
            place = folder / f"{Path(name).stem}-{number}{Path(name).suffix}"
        write(place, content)
        written.append(place)
    return written
