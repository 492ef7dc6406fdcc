"""The order and the numbering of the document: one form for HTML and Markdown.

Tables and figures of the source keep the source's numbers; new ones are numbered N1, N2, …
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from concurve.findings.campaign import CampaignFindings, StudyFindings
from concurve.findings.published import PublishedTable
from concurve.findings.run import Findings
from concurve.report import format as fmt
from concurve.report.campaign.charts import comparison_chart
from concurve.report.charts import charts as charts_of
from concurve.report.charts.chart import Chart
from concurve.report.claims import ClaimRow, claim_rows
from concurve.report.dependence import DependenceRow, dependence_rows
from concurve.report.explain.chart import composition
from concurve.report.explain.section import Curves, Section, curves, section
from concurve.report.scaling import ScalingRow, expected_heading, scaling_rows, subject
from concurve.report.table import Table, table
from concurve.report.told import ToldRow, told_rows

PROTOCOL = (
    "Each trial is a fresh process. A block runs every cell once, in an order drawn from the seed. "
    "After a pilot of a few blocks each cell gets as many trials as the precision asked for needs "
    "(Stein's two stages), up to a cap and within a time allowance; the mean counts, with its 95 % "
    "interval. A trial is redone for a cause: a program error, a wrong result, a machine that was "
    "not ours, an outlier of more than 10 σ; at most as often as the table says, contamination and "
    "outliers together in no more than that share of the pilot's trials. A second program error "
    "skips the cell. Nothing rejected is thrown away."
)

COMPARED = (
    "Times of another machine say nothing about ours. So a published figure is held against ours, "
    "relative to a base cell, each on its own machine. It agrees where the whole 95 % interval "
    "of ours lies within ±10 % of it (less where the source found less) and what its rounding "
    "leaves open, differs where none of the interval does, and is undecided otherwise. Figures of "
    "two scales that have nothing in common, such as the priorities of two systems, agree where "
    "both lie on the same side of their base. "
    "Where trials are in use with a doubt, a verdict stands only if the quiet ones alone give it."
)


@dataclass(frozen=True)
class Numbered:
    """A table or a figure as the index lists it; ``anchor`` is its place in the page."""

    label: str
    title: str
    anchor: str


@dataclass(frozen=True)
class Comparison:
    """A table of the source, and the chart of it if it bears one."""

    table: Numbered
    contents: PublishedTable
    figure: Numbered | None
    chart: Chart | None


@dataclass(frozen=True)
class Models:
    """The scaling models of a study."""

    table: Numbered
    rows: list[ScalingRow]
    heading: str
    subject: str


@dataclass(frozen=True)
class Limits:
    """What limits the cells of a study; by curve, too, where it has several."""

    table: Numbered
    curves: Curves | None
    cells: Section
    figure: Numbered | None
    chart: Chart | None


@dataclass(frozen=True)
class Chapter:
    """The results of a study."""

    study: StudyFindings
    title: str
    anchor: str
    comparisons: tuple[Comparison, ...] = ()
    claims: tuple[ClaimRow, ...] = ()
    claims_number: Numbered | None = None
    dependences: tuple[DependenceRow, ...] = ()
    dependences_number: Numbered | None = None
    cells: Table | None = None
    cells_number: Numbered | None = None
    charts: tuple[tuple[Numbered, Chart], ...] = ()
    models: Models | None = None
    limits: Limits | None = None
    told: list[ToldRow] = field(default_factory=list)
    told_number: Numbered | None = None


@dataclass(frozen=True)
class Document:
    """The chapters, and the index of their tables and figures."""

    chapters: tuple[Chapter, ...]
    tables: tuple[Numbered, ...]
    figures: tuple[Numbered, ...]


@dataclass
class _Numbers:
    """Gives labels and remembers them for the index."""

    tables: list[Numbered] = field(default_factory=list)
    figures: list[Numbered] = field(default_factory=list)
    new_tables: int = 0
    new_figures: int = 0

    def table(self, title: str, number: str = "") -> Numbered:
        if not number:
            self.new_tables += 1
            number = f"N{self.new_tables}"
        return self._entered(self.tables, "Table", number, title)

    def figure(self, title: str, number: str = "") -> Numbered:
        if not number:
            self.new_figures += 1
            number = f"N{self.new_figures}"
        return self._entered(self.figures, "Figure", number, title)

    @staticmethod
    def _entered(index: list[Numbered], kind: str, number: str, title: str) -> Numbered:
        anchor = "".join(char if char.isalnum() else "-" for char in f"{kind}-{number}").lower()
        taken = sum(entry.anchor.startswith(anchor) for entry in index)
        entry = Numbered(
            fmt.clean(f"{kind} {number}"),
            fmt.clean(title),
            f"{anchor}-{taken}" if taken else anchor,
        )
        index.append(entry)
        return entry


def document(findings: CampaignFindings, charts: bool = True) -> Document:
    """The document of a campaign; without ``charts`` no figures are made or numbered."""
    numbers = _Numbers()
    chapters = tuple(_chapter(study, numbers, charts) for study in findings.studies)
    return Document(chapters, tuple(numbers.tables), tuple(numbers.figures))


def numbered_charts(contents: Document) -> Iterator[Chart]:
    """Every chart of the document, its file named by its number: ``figure-5``."""
    for chapter in contents.chapters:
        for item in chapter.comparisons:
            if item.chart is not None and item.figure is not None:
                yield replace(item.chart, name=item.figure.anchor)
        for number, chart in chapter.charts:
            yield replace(chart, name=number.anchor)
        if chapter.limits and chapter.limits.chart and chapter.limits.figure:
            yield replace(chapter.limits.chart, name=chapter.limits.figure.anchor)


def title_of(study: StudyFindings) -> str:
    """``Test case 1: Degree of scaling``."""
    case = study.test_case
    return fmt.clean(
        f"{case.name}: {case.objective}" if case else f"{study.name}: {study.question}"
    )


def share(value: float) -> str:
    """``5 %``."""
    return f"{100 * value:.3g} %"


def _chapter(study: StudyFindings, numbers: _Numbers, charts: bool) -> Chapter:
    title, anchor = title_of(study), f"result-{study.name}"
    run = study.run
    if run is None:
        return Chapter(study, title, anchor)
    name = study.test_case.name if study.test_case else study.name
    comparisons = tuple(_comparisons(study, numbers, charts))
    claims = tuple(claim_rows(run))
    return Chapter(
        study=study,
        title=title,
        anchor=anchor,
        comparisons=comparisons,
        claims=claims,
        claims_number=numbers.table(f"{name}: claims of the source") if claims else None,
        dependences=tuple(dependence_rows(run)),
        dependences_number=numbers.table(f"{name}: on what the ratios hang")
        if run.dependences
        else None,
        cells=table(run),
        cells_number=numbers.table(f"{name}: figures of this campaign"),
        charts=tuple((numbers.figure(f"{name}: {chart.title}"), chart) for chart in charts_of(run))
        if charts
        else (),
        models=_models(run, name, numbers),
        limits=_limits(run, name, numbers, charts),
        told=told_rows(run),
        told_number=numbers.table(f"{name}: what the program said") if run.facts else None,
    )


def _models(run: Findings, name: str, numbers: _Numbers) -> Models | None:
    if not run.scaling:
        return None
    number = numbers.table(f"{name}: scaling models")
    return Models(number, scaling_rows(run), expected_heading(run), subject(run))


def _limits(run: Findings, name: str, numbers: _Numbers, charts: bool) -> Limits | None:
    if run.explanation is None:
        return None
    chart = composition(run.explanation) if charts else None
    return Limits(
        numbers.table(f"{name}: what limits it"),
        curves(run.explanation),
        section(run.explanation),
        numbers.figure(f"{name}: {chart.title}") if chart else None,
        chart,
    )


def _comparisons(study: StudyFindings, numbers: _Numbers, charts: bool) -> Iterator[Comparison]:
    assert study.run is not None
    for contents in study.run.published:
        number = numbers.table(contents.title, contents.number)
        chart = comparison_chart(contents) if charts else None
        figure = None
        if chart is not None:
            title = contents.figure_title or contents.title
            figure = numbers.figure(f"{title}: published and new", contents.figure)
        yield Comparison(number, contents, figure, chart)
