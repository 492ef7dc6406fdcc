"""The HTML page: offline, escaped, whole; and the charts in it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest

from concurve.definition.study import Rules
from concurve.findings.run import Report
from concurve.report.charts import charts
from concurve.report.charts.image import drawn, to_svg
from concurve.report.charts.style import CUT
from concurve.report.document import Chart
from concurve.report.html import to_html
from concurve.report.sections.run import run_document
from concurve.store import Store
from concurve.terms import Level
from tests.helpers.made import made_run
from tests.report import samples

VOID = {"meta", "br", "img", "link", "input", "hr"}


class Page(HTMLParser):
    """Tags, attributes and text of a page; fails on tags that do not close."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    return {name: to_html(run_document(make())) for name, make in samples.ALL.items()}


@pytest.mark.parametrize("name", samples.ALL)
def test_the_page_fetches_nothing(name: str, pages: dict[str, str]) -> None:
    page = Page(pages[name])
    for tag, attributes in page.tags:
        assert tag not in {"link", "iframe", "object", "embed", "base"}
        for attribute, value in attributes.items():
            if attribute.startswith("xmlns"):
                continue
            assert not re.search(r"(https?:)?//", value or ""), (tag, attribute, value)
            if attribute in {"src", "href", "xlink:href"}:
                assert (value or "").startswith("#")
    style = re.search(r"<style>(.*?)</style>", pages[name], re.S)
    assert style and not re.search(r"url\(|@import", style[1])


@pytest.mark.parametrize("name", samples.ALL)
def test_only_its_own_script_runs(name: str, pages: dict[str, str]) -> None:
    page = Page(pages[name])
    assert sum(tag == "script" for tag, _ in page.tags) == 1
    assert not [a for _, attributes in page.tags for a in attributes if a.startswith("on")]
    assert "\x1b" not in pages[name]


def test_hostile_text_is_shown_not_run(pages: dict[str, str]) -> None:
    assert '<script>alert("x")</script>' in "".join(Page(pages["text_factor"]).text)
    assert '<script>alert("x")' not in pages["text_factor"]


@pytest.mark.parametrize("name", samples.ALL)
def test_identifiers_are_unique_and_sizes_reasonable(name: str, pages: dict[str, str]) -> None:
    found = [a["id"] for _, a in Page(pages[name]).tags if "id" in a]
    assert len(found) == len(set(found))
    assert len(pages[name]) < 1_500_000


def test_charts_have_alternative_text_and_the_table_its_scopes(pages: dict[str, str]) -> None:
    tags = Page(pages["thread_scaling"]).tags
    pictures = [a for tag, a in tags if tag == "svg"]
    assert len(pictures) == 2 * 4, "each with linear and with logarithmic axes"
    named = [len(a["aria-label"] or "") > 40 for a in pictures]
    assert all(a["role"] == "graphics-document" for a in pictures) and all(named)
    assert all("scope" in a for tag, a in tags if tag == "th")


def test_the_page_tells_everything(pages: dict[str, str]) -> None:
    text = " ".join("".join(Page(pages["troubled"]).text).split())
    for part in (
        "This run was interrupted: stopped by",
        "2 threads are fastest",
        "exit code 1 twice: cannot create thread",
        "others used 0.31 s of CPU",
        "Example 3000 @ 2.40GHz",
        "--seed 20261121 -- ./renderer --threads {threads}",
        "seed 20261121",
        "1.490",
    ):
        assert part in text, part


def rows_of(chart: Chart) -> list[dict[str, Any]]:
    """The data of a chart."""
    (rows,) = chart.spec.to_dict()["datasets"].values()
    return list(rows)


def test_every_trial_is_a_dot_and_rejected_ones_are_hollow() -> None:
    findings = samples.troubled()
    rows = rows_of(charts(findings)[0])
    dots = [row for row in rows if row["kind"] == "dot"]
    assert len(dots) == len(findings.dots)
    assert [row["value"] for row in dots if not row["used"]] == [1.95]


def test_intervals_are_drawn_in_the_unit_of_the_axis() -> None:
    findings = samples.text_factor()
    (chart,) = charts(findings)
    rows = [row for row in rows_of(chart) if row["kind"] == "point"]
    figure = findings.cells[0].indicators["wall_seconds"]
    assert figure.low is not None
    assert rows[0]["value"] == pytest.approx(figure.value * 1000)
    assert rows[0]["low"] == pytest.approx(figure.low * 1000)
    assert "ms" in to_svg(chart)


def test_a_missing_cell_breaks_its_curve() -> None:
    rows = rows_of(charts(samples.troubled())[0])
    gaps = {(row["series"], row["x"]) for row in rows if row["value"] is None}
    assert gaps == {("cpus 1", 32.0), ("cpus 2", 512.0)}


def without_figures(findings: Report) -> Report:
    cells = tuple(msgspec.structs.replace(cell, indicators={}) for cell in findings.cells)
    return msgspec.structs.replace(findings, cells=cells, dots=())


@pytest.mark.parametrize("factors", [{"threads": (1, 2, 4)}, {"sync": ("none", "cas")}])
def test_an_interval_that_says_anything_does_not_flatten_a_chart(
    factors: dict[str, tuple[Level, ...]],
) -> None:
    """Two trials that differ tenfold bear intervals of thousands."""
    twice = Rules(repeats_min=2, repeats_max=2)
    findings = made_run(Store(), lambda n: 1.0, cv=1.5, rules=twice, **factors)  # type: ignore[arg-type]
    chart = charts(findings)[0]
    rows = rows_of(chart)
    reach = max(row["value"] for row in rows if row["value"] is not None)
    assert max(row["high"] for row in rows if "high" in row) <= 2 * reach
    assert CUT in chart.remarks


def test_a_run_without_figures_is_a_page_without_charts() -> None:
    page = to_html(run_document(without_figures(samples.thread_scaling())))
    assert "<svg" not in page and "Figures" in page


def test_a_level_of_zero_and_negative_figures_are_drawn() -> None:
    findings = samples.thread_scaling()
    cells = tuple(
        msgspec.structs.replace(
            cell,
            parameters={**cell.parameters, "threads": 0} if cell.index == 0 else cell.parameters,
            indicators={
                name: msgspec.structs.replace(figure, value=-figure.value, low=None, high=None)
                for name, figure in cell.indicators.items()
            },
            base=cell.index,
        )
        for cell in findings.cells
    )
    factors = (
        findings.factors[0],
        msgspec.structs.replace(findings.factors[1], levels=(0, 1, 2, 8, 32, 128, 512)),
    )
    odd = msgspec.structs.replace(findings, cells=cells, factors=factors)
    assert all("<svg" in to_svg(chart) for chart in charts(odd))


def test_charts_are_drawn_as_svg_and_png() -> None:
    files = dict(drawn(charts(samples.single_cell())))
    assert sorted(name.rpartition(".")[2] for name in files) == ["png", "svg"]
    for name, content in files.items():
        assert content.startswith(b"\x89PNG" if name.endswith(".png") else b"<svg")
    with pytest.raises(ValueError, match="pdf"):
        list(drawn(charts(samples.single_cell()), formats=("pdf",)))
