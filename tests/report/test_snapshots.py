"""What each renderer makes of the samples, as it was looked at: text beside this file.

After a change that is meant: ``CONCURVE_WRITE_SNAPSHOTS=1 pytest tests/report/test_snapshots.py``,
and read the difference.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from concurve.findings.run import Report
from concurve.report.html import to_html
from concurve.report.markdown import to_markdown
from concurve.report.sections.run import brief_run_document, run_document
from concurve.report.terminal import lines
from tests.report import samples

FOLDER = Path(__file__).parent / "snapshots"
NAMES = ("thread_scaling", "text_factor", "single_cell", "troubled", "judged")


def terminal(report: Report) -> str:
    document = brief_run_document(report, report.scaling, report.explanation)
    return "".join(f"{line.plain}\n" for line in lines(document, 100))


def whole_terminal(report: Report) -> str:
    return "".join(f"{line.plain}\n" for line in lines(run_document(report), 100))


def markdown(report: Report) -> str:
    return to_markdown(run_document(report))


def html(report: Report) -> str:
    """The page without style, script and the insides of its charts; a line an element."""
    page = to_html(run_document(report))
    page = re.sub(r"<(style|script|head)>.*?</\1>", "", page, flags=re.S)
    stripped = (line.strip() for line in page.splitlines())
    return "".join(f"{line}\n" for line in stripped if line)


VIEWS: dict[str, Callable[[Report], str]] = {
    "brief.txt": terminal, "full.txt": whole_terminal, "md": markdown, "html": html
}  # fmt: skip


pytestmark = pytest.mark.usefixtures("empty_charts")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_as_it_was(name: str, view: str) -> None:
    shown = VIEWS[view](samples.ALL[name]())
    file = FOLDER / f"{name}.{view}"
    if os.environ.get("CONCURVE_WRITE_SNAPSHOTS"):
        file.parent.mkdir(exist_ok=True)
        file.write_text(shown, encoding="utf-8")
    assert shown == file.read_text(encoding="utf-8")


def figures(text: str) -> set[str]:
    """The numbers in a view, with those in the words for charts."""
    plain = re.sub(r'<svg[^>]*aria-label="([^"]*)"', r"\1<", text)
    return set(re.findall(r"\d[\d.,]*\d|\d", re.sub(r"<[^>]*>", " ", plain)))


@pytest.mark.parametrize("name", NAMES)
def test_the_views_of_a_whole_report_have_the_same_figures(name: str) -> None:
    report = samples.ALL[name]()
    # A page has intervals from end to end, where others have ±.
    # Figures that do not fit are counted in a terminal alone.
    shown = figures(re.sub(r"± [\d.,]+|and \d+ more\b", "", whole_terminal(report)))
    for view in (markdown(report), html(report)):
        assert shown <= figures(view)
