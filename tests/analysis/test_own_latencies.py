"""The mean latency that wrk prints is held against its rate and its connections."""

from __future__ import annotations

import pytest

from concurve.findings.run import TrialFindings
from concurve.report.sections.run import brief_run_document
from concurve.report.terminal import lines
from concurve.store import Store
from tests.helpers.meant import Case, run_of


def run_of_wrk(factor: float, more: int = 0, head: str = "Thread Stats") -> TrialFindings:
    """Runs of wrk whose mean latency is this factor of what its rate and connections give."""

    def prints(n: int, wall: float, noise: float) -> str:
        return (
            f"  1 threads and {n + more} connections\n  {head}   Avg      Stdev\n"
            f"    Latency   {factor * n:.3f}ms    1.00ms   2.00ms   90.00%\n"
            f"  2000 requests in 2.00s, 1.00MB read\nRequests/sec:  {1000 * noise:.2f}\n"
        )

    case = Case("wrk", lambda n: 2.0, prints, {"extracts": ("wrk",)})
    return run_of(case, Store())


def contradicted(*, factor: float, more: int = 0, head: str = "Thread Stats") -> list[str]:
    every = [item.sentence for item in run_of_wrk(factor, more, head).sentences]
    return [text for text in every if "Little's law" in text]


@pytest.mark.parametrize("factor", [0.85, 1.0, 1.15])
def test_a_latency_that_fits_is_not_told(factor: float) -> None:
    assert not contradicted(factor=factor)


@pytest.mark.parametrize(("factor", "why"), [(0.5, "connect anew"), (1.5, "did not send")])
def test_one_that_does_not_is_told_once(factor: float, why: str) -> None:
    (said,) = contradicted(factor=factor)
    assert why in said and "in 5 of 5 cells" in said


@pytest.mark.parametrize("factor", [0.5, 1.5])
def test_the_table_marks_the_figure_and_says_what_to_trust(factor: float) -> None:
    text = [line.plain.strip() for line in lines(brief_run_document(run_of_wrk(factor)), 160)]
    assert sum(line.count(" †") for line in text if "Little" not in line) == 5
    assert "† the rate contradicts it (Little's law): trust the rate" in " ".join(text)


def test_only_the_cells_that_are_contradicted_have_the_mark() -> None:
    found = run_of_wrk(1.0, more=3)
    assert [cell.contradicted for cell in found.cells] == 4 * [("latency_seconds",)] + [()]
    text = "\n".join(line.plain for line in lines(brief_run_document(run_of_wrk(1.0)), 100))
    assert "†" not in text


def test_cells_that_fit_are_counted_among_those_that_do_not() -> None:
    """Three more connections idle: many beside one or two, and few beside sixteen."""
    (said,) = contradicted(factor=1.0, more=3)
    assert "in 4 of 5 cells: with n=1 rate × latency gives " in said
    assert " under way on 4 connections. " in said


def test_nothing_follows_for_wrk2_whose_latency_holds_waits() -> None:
    assert not contradicted(factor=5.0, head="Thread calibration")


def test_the_label_says_whose_latency_it_is() -> None:
    found = run_of_wrk(1.0)
    assert found.indicator("latency_seconds").label == "latency by wrk"
    assert found.indicator("latency_seconds").better == "lower"
