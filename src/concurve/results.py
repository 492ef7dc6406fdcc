"""What :mod:`concurve.api` returns: findings that print as a short report, that a notebook shows
with tables and charts, and that are data frames.

Each is a class of :mod:`concurve.findings` with these three; its fields are documented there.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from concurve import exports
from concurve.errors import ConcurveError
from concurve.estimate import Estimate
from concurve.findings import best, comparison, explanation, fit, history, run, scaling
from concurve.findings.again import run_again
from concurve.report import console, csv, document, terminal
from concurve.report.document import Detail, Document
from concurve.report.format import clean
from concurve.report.python_words import python_words
from concurve.report.store_words import function_words
from concurve.terms import Level

if TYPE_CHECKING:
    import pandas as pd


class Shown:
    """Something with a document: ``print`` gives it for a terminal, a notebook shows it."""

    __slots__ = ()

    @classmethod
    def showing(cls, found: Any) -> Self:
        """The finding of this name in :mod:`concurve.findings`, shown."""
        return cls(**_fields(found))

    def _document(self, detail: Detail) -> Document:
        """The report: brief for a terminal, full for a notebook."""
        raise NotImplementedError

    def _rows(self) -> csv.Rows:
        raise NotImplementedError

    def frame(self) -> pd.DataFrame:
        """Its table as a data frame, with the bounds of each interval as ``NAME_low`` and
        ``NAME_high``; what is not known is ``NaN``."""
        return frame_of(self._rows())

    def __str__(self) -> str:
        return text_of(self._document(Detail.BRIEF))

    def __repr__(self) -> str:
        return f"<concurve.{type(self).__name__}: {clean(self._document(Detail.BRIEF).title)}>"

    def _repr_html_(self) -> str:
        return html_of(self._document(Detail.FULL))


def frame_of(table: csv.Rows) -> pd.DataFrame:
    """Rows as a data frame; a figure that is missing is ``NaN``, also where all of a column are."""
    import pandas as pd

    frame = pd.DataFrame(table.rows, columns=pd.Index(table.heading))
    missing = [name for name in frame.columns if frame[name].isna().all()]
    return frame.astype(dict.fromkeys(missing, float))


def text_of(shown: Document, place: str | None = None) -> str:
    """A document as a terminal shows it, at its width, with advice in the words of Python that
    names the ``place`` of the store, if that is not the default one."""
    said = _in_python(shown, place)
    return console.as_text(lambda width: terminal.lines(said, width))


def html_of(shown: Document, picture_max: float | None = None, *, place: str | None = None) -> str:
    """A document as the output of a notebook's cell, with the same advice."""
    from concurve.report.html import to_output  # takes long to load

    said = _in_python(shown, place)
    return to_output(said) if picture_max is None else to_output(said, picture_max)


def _in_python(shown: Document, place: str | None) -> Document:
    return document.reworded(shown, lambda text: function_words(python_words(text), place))


def _fields(found: Any) -> dict[str, Any]:
    return {name: getattr(found, name) for name in found.__struct_fields__}


class Comparison(Shown, comparison.Comparison, frozen=True, kw_only=True):
    """A comparison of two runs, or of two levels of a factor; ``frame()`` has one row a cell and
    indicator, with its verdict, its ratio, and both sides."""

    def _document(self, detail: Detail) -> Document:
        from concurve.report.sections.comparison import comparison_document

        return comparison_document(self, detail)

    def _rows(self) -> csv.Rows:
        return csv.comparison_rows(self)


class BestFinding(Shown, best.BestFinding, frozen=True, kw_only=True):
    """The settings that cannot be told apart from the best. ``figures`` are those of ``settings``.
    ``doubt`` says why none is recommended, what the figures point to all the same, and what to do.
    ``frame()`` has one row a setting."""

    figures: tuple[Estimate | None, ...] = ()

    @classmethod
    def of(cls, found: best.BestFinding, findings: run.Findings) -> BestFinding:
        """The finding of a run with the figures of its settings."""
        from concurve.report.sections.best import doubt_sentences

        def figure_of(setting: dict[str, Level]) -> Estimate | None:
            levels = {**found.group, **setting}.items()
            cells = (cell for cell in findings.cells if levels <= cell.parameters.items())
            cell = next(cells, None)
            return None if cell is None else cell.indicators.get(found.indicator)

        figures = tuple(map(figure_of, found.settings))
        ran = findings.run
        again = run_again(
            ran.over_hosts,
            ran.waiting,
            ran.strangers,
            is_stolen=ran.is_stolen,
            constant=ran.constant,
            autogroups=ran.autogroups,
        )
        doubt = doubt_sentences(found, figure_of(found.leader), again)
        said = {**_fields(found), "doubt": python_words(doubt)}
        return cls(**said, figures=figures)

    def _document(self, detail: Detail) -> Document:
        from concurve.report.sections.best import best_document

        return best_document(self, self.figures)

    def _rows(self) -> csv.Rows:
        return csv.best_rows(self, self.figures)


class Explanation(Shown, explanation.Explanation, frozen=True, kw_only=True):
    """What limits each cell of a run; ``frame()`` has one row a cell."""

    def _document(self, detail: Detail) -> Document:
        from concurve.report.sections.limits import explanation_document

        return explanation_document(self, detail)

    def _rows(self) -> csv.Rows:
        return csv.explanation_rows(self)


class History(Shown, history.History, frozen=True, kw_only=True):
    """An indicator over the runs of a study; ``frame()`` has one row a cell and run."""

    def _document(self, detail: Detail) -> Document:
        from concurve.report.sections.history import history_document

        return history_document(self, detail)

    def _rows(self) -> csv.Rows:
        return csv.history_rows(self)


class Fit(Shown, fit.Fit, frozen=True, kw_only=True):
    """Scaling models of measured numbers; ``frame()`` has one row a parameter of a model."""

    def predictions(self) -> pd.DataFrame:
        """One row for each number of workers to predict at: ``n``, the throughput ``value`` with
        the bounds of its interval, and a ``warning``, empty where there is none."""
        return frame_of(csv.prediction_rows(self.expectations))

    def _document(self, detail: Detail) -> Document:
        from concurve.report.sections.fit import fit_document

        return fit_document(self, detail)

    def _rows(self) -> csv.Rows:
        return csv.fit_rows(self.result)


class ScalingFinding(Shown, scaling.ScalingFinding, frozen=True, kw_only=True):
    """Scaling models of a group of cells; ``frame()`` has one row a parameter of a model."""

    def _document(self, detail: Detail) -> Document:
        from concurve.report.sections.scaling import scaling_document

        return scaling_document(self, detail)

    def _rows(self) -> csv.Rows:
        return csv.fit_rows(self.fit)


class RunFindings(Shown, run.TrialFindings, frozen=True, kw_only=True):
    """What the figures of a run say, with those of each trial; ``frame()`` has one row a cell."""

    best: tuple[BestFinding, ...] = ()

    @classmethod
    def of_run(cls, found: run.TrialFindings) -> RunFindings:
        """The same findings."""
        named = tuple(BestFinding.of(item, found) for item in found.best)
        return cls(**{**_fields(found), "best": named})

    def _document(self, detail: Detail) -> Document:
        from concurve.report.sections.run import brief_run_document, glance_document

        if detail is Detail.BRIEF:
            return brief_run_document(self)
        return glance_document(run.Report.of_figures(self), ())

    def _rows(self) -> csv.Rows:
        return csv.cell_rows(self)


class Chart:
    """A chart of a run: a notebook shows it, ``save`` writes it, and ``altair`` is the Altair chart
    that it is, for changes."""

    def __init__(self, chart: document.Chart) -> None:
        self._chart = chart

    @property
    def altair(self) -> Any:
        """The chart as Altair has it: ``chart.altair.properties(width=700)``."""
        return self._chart.spec

    def save(self, file: str | Path) -> Path:
        """Write it to a file: ``.svg`` or ``.png`` by its ending.

        Raises:
            ConcurveError: another ending, or a place that cannot be written.
        """
        from concurve.report.charts.image import drawn

        path = Path(file)
        kind = path.suffix.lower().removeprefix(".")
        if kind not in ("svg", "png"):
            raise ConcurveError(
                f"{path}: a chart has no format for the ending {path.suffix!r}",
                "an ending of .svg or .png; run.write has the whole report",
            )
        exports.check_writable(path)
        for _, content in drawn([self._chart], [kind]):
            exports.write(path, content)
        return path

    def __repr__(self) -> str:
        return f"<concurve.Chart: {clean(self._chart.title)}>"

    def _repr_html_(self) -> str:
        return html_of(Document(title="", blocks=(self._chart,)), math.inf)

    def _repr_svg_(self) -> str:
        from concurve.report.charts.image import to_svg

        return to_svg(self._chart, alone=True)
