"""``concurve studies``: what is packaged."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import click

HELP = """List the packaged studies and campaigns, or copy one for editing.

\b
Examples:
  concurve studies
  concurve studies --copy enqueue-io-threads my-study
  concurve studies --copy java-threads/tc09 locks
"""


@click.command("studies", help=HELP, short_help="List the packaged studies, or copy one.")
@click.option(
    "--copy",
    "copied",
    nargs=2,
    metavar="NAME FOLDER",
    help="Write a packaged study or campaign into a new folder, complete and with its comments.",
)
def verb(copied: tuple[str, str] | None) -> None:
    """Print each packaged study with its question, and each campaign with its studies."""
    if copied is not None:
        _copy(*copied)
        return
    from concurve.report.console import Line, print_lines, wrapped

    def shown(width: int) -> Iterator[Line]:
        for line in _lines():
            indent = line[: len(line) - len(line.lstrip())]
            # In a file or a pipe no line is cut.
            yield from wrapped(Line(line), width, indent) if sys.stdout.isatty() else [Line(line)]

    print_lines(shown)


def _copy(name: str, folder: str) -> None:
    from concurve.definition.copying import copy_packaged

    file = copy_packaged(name, Path(folder))
    print(f"{name} is in {folder}; edit it, then: concurve run {shlex.quote(str(file))}")


def _lines() -> Iterator[str]:
    from concurve.definition.catalogue import campaigns, entries
    from concurve.definition.headings import campaign_heading, study_heading
    from concurve.definition.study_files import STUDY_NAME

    for entry in entries():
        study = study_heading(entry.folder / STUDY_NAME)
        yield entry.name
        yield f"  {study.question}"
        yield f"  factors: {', '.join(study.factors)}"
        if study.source:
            yield f"  source:  {study.source}"
    for entry in campaigns():
        campaign = campaign_heading(entry.folder)
        yield entry.name
        yield f"  {campaign.question}"
        for name, member in campaign.studies.items():
            yield f"  {name}: {member.objective or member.question}"
        if campaign.source:
            yield f"  source:  {campaign.source}"
