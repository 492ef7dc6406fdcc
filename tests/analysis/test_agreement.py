"""Published figures against ours: each way of comparing, each verdict, each reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import pytest

from concurve.analysis.agreement import published_tables
from concurve.analysis.samples import MissingError
from concurve.definition.published import Compare, PublishedFigure
from concurve.findings.published import PublishedComparison, PublishedTable
from concurve.planning.plan import describe
from concurve.report.charts.published import comparison_chart
from concurve.report.charts.style import CUT
from concurve.report.sections.published import how, not_comparable, published_row
from concurve.terms import Level
from tests.helpers.columns import column_samples
from tests.helpers.fakes import small_study

FIVE = (-0.01, -0.005, 0.0, 0.005, 0.01)


def around(centre: float, spread: float = 1.0) -> list[float]:
    return [centre * (1 + spread * share) for share in FIVE]


def figure(
    value: float,
    n: int,
    base_value: float | None = 100.0,
    compare: Compare = "ratio",
    indicator: str = "wall_seconds",
    rounding: float = 0.005,
    row: str = "time",
) -> PublishedFigure:
    return PublishedFigure(
        table="7", row=row, column=str(n), value=value, printed=f"{value:g}", rounding=rounding,
        indicator=indicator, parameters={"n": n}, base={"n": 1}, base_value=base_value,
        compare=compare, title="A table",
    )  # fmt: skip


def compared(
    figures: Sequence[PublishedFigure],
    ours: Mapping[int, Sequence[float]],
    better: str = "lower",
    first: Mapping[str, Level] | None = None,
) -> PublishedTable:
    """The figures held against values by ``n``, in the cells of kernel ``jvm``."""

    def values(parameters: Mapping[str, Level], indicator: str) -> Sequence[float]:
        assert parameters["kernel"] == "jvm"
        if parameters["n"] not in ours:
            raise MissingError("was not run at effort quick", describe(dict(parameters)))
        return ours[int(parameters["n"])]

    study = msgspec.structs.replace(small_study(), published=tuple(figures))
    samples = column_samples(values, better=better)
    return published_tables(study, samples, first or {"kernel": "jvm", "n": 1})[0]


def only(table: PublishedTable) -> PublishedComparison:
    (found,) = table.figures
    return found


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        (around(5.0), "agrees"),
        (around(5.3), "agrees"),
        (around(6.0), "differs"),
        (around(4.0), "differs"),
        (around(5.5), "undecided"),
        (around(5.0, spread=30), "undecided"),
        ([5.0], "undecided"),
    ],
)
def test_a_ratio_agrees_within_the_tolerance(ours: list[float], verdict: str) -> None:
    found = only(compared([figure(50.0, 2)], {1: around(10.0), 2: ours}))
    assert found.published == pytest.approx(0.5)
    assert found.ours is not None and found.ours.value == pytest.approx(
        sum(ours) / len(ours) / 10, rel=0.02
    )
    assert found.verdict == verdict


def test_a_figure_may_have_a_tolerance_of_its_own() -> None:
    ours = {1: around(10.0), 2: around(5.3)}
    narrow = msgspec.structs.replace(figure(50.0, 2), tolerance=0.01)
    assert only(compared([narrow], ours)).verdict == "differs"


def test_the_sources_rounding_is_allowed_for() -> None:
    ours = {1: around(10.0), 2: around(5.85)}
    assert only(compared([figure(50.0, 2)], ours)).verdict == "differs"
    assert only(compared([figure(50.0, 2, rounding=5.0)], ours)).verdict == "agrees"


@pytest.mark.parametrize(("better", "seconds"), [("lower", 5.0), ("higher", 20.0)])
def test_a_factor_says_how_many_times_as_good(better: str, seconds: float) -> None:
    ours = {1: around(10.0), 2: around(seconds)}
    found = only(compared([figure(1.95, 2, None, "factor")], ours, better))
    assert found.ours is not None and found.ours.value == pytest.approx(2.0, rel=1e-3)
    assert (found.published, found.verdict) == (1.95, "agrees")


def test_an_improvement_in_percent_is_a_factor_less_one() -> None:
    ours = {1: around(10.0), 2: around(40.0)}
    found = only(compared([figure(297, 2, None, "improvement", rounding=0.5)], ours, "higher"))
    assert found.ours is not None and found.ours.value == pytest.approx(4.0, rel=1e-3)
    assert found.published == pytest.approx(3.97)
    assert found.verdict == "agrees"
    alike = only(compared([figure(10, 2, None, "improvement")], {1: [5.0] * 5, 2: [5.0] * 5}))
    assert alike.published == pytest.approx(1.1)


@pytest.mark.parametrize(("kernel", "verdict"), [(35, "agrees"), (34, "differs"), (36, "differs")])
def test_counts_agree_in_their_difference_where_they_are_equal(kernel: int, verdict: str) -> None:
    thirteen_and_one = figure(14, 2, 13.0, "difference", "kernel_threads", rounding=0.5)
    found = only(compared([thirteen_and_one], {1: [34.0] * 5, 2: [float(kernel)] * 5}))
    assert (found.published, found.verdict) == (1.0, verdict)


@pytest.mark.parametrize(
    ("ours", "verdict", "side"),
    [
        ([15.0] * 3, "agrees", "below its base in the source, below it here"),
        ([19.0] * 3, "differs", "below its base in the source, at it here"),
        ([24.0] * 3, "differs", "below its base in the source, above it here"),
        ([19.0, 18.0], "undecided", "trials lie on both sides of the base"),
    ],
)
def test_figures_of_two_scales_agree_in_their_order(
    ours: list[float], verdict: str, side: str
) -> None:
    priority = figure(6, 2, 8.0, "order", "priority", rounding=0.5)
    found = only(compared([priority], {1: [19.0] * 3, 2: ours}))
    assert (found.verdict, found.reason, found.published) == (verdict, side, 6.0)
    assert found.ours is not None and found.ours.low is None, "each on its own scale"


def test_the_base_itself_is_no_comparison() -> None:
    found = only(compared([figure(100.0, 1)], {1: around(10.0)}))
    assert (found.verdict, found.published) == ("base", 1.0)


def test_side_by_side_there_is_no_verdict() -> None:
    apart = figure(7146, 2, None, "none")
    found = only(compared([apart], {2: [281.0, 283.0]}))
    assert (found.verdict, found.published) == ("not comparable", None)
    row = published_row(found)
    assert (row.printed, row.published, row.ours) == ("7146", "", "281 to 283 s")
    unmeasured = PublishedFigure(
        table="7", row="PID", column="1", value=2572, printed="2572", rounding=0.5
    )
    found = only(compared([unmeasured], {}))
    assert (found.verdict, found.ours) == ("not comparable", None)


def test_one_reason_of_many_figures_is_told_once() -> None:
    table = compared([figure(50.0, 2), figure(25.0, 4), figure(12.0, 8)], {1: around(10.0)})
    assert not_comparable(table) == "Not comparable: 3 × the cell was not run at effort quick."
    table = compared([figure(50.0, 2)], {2: around(10.0)})
    assert not_comparable(table) == "Not comparable: 1 × the base was not run at effort quick."


def test_a_zero_has_no_ratio() -> None:
    found = only(compared([figure(50.0, 2)], {1: [0.0] * 5, 2: around(5.0)}))
    assert found.verdict == "not comparable"
    assert "is 0 in one of the cells" in found.reason


def test_what_the_figures_are_is_told() -> None:
    figures = [figure(100.0, 1), figure(50.0, 2), figure(1.95, 2, None, "factor", row="factor")]
    text = how(compared(figures, {1: around(10.0), 2: around(5.0)}))
    assert text.startswith("figure over that of its base; factor as printed")
    assert text.endswith("Base: n=1.")


def panels(table: PublishedTable) -> dict[str, list[str]]:
    """What the chart of a table draws: places along the curve, by panel."""
    chart = comparison_chart(table)
    if chart is None:
        return {}
    rows = next(iter(chart.spec.to_dict()["datasets"].values()))
    drawn: dict[str, list[str]] = {}
    for row in rows:
        if row["series"] == "ours":
            drawn.setdefault(row["panel"], []).append(row["column"])
    return drawn


def test_intervals_that_say_anything_do_not_flatten_a_chart() -> None:
    wild = compared([figure(100.0, 1), figure(50.0, 2)], {1: [1.0, 30.0], 2: [0.2, 5.0]})
    chart = comparison_chart(wild)
    assert chart is not None and chart.remarks == (CUT,)
    rows = next(iter(chart.spec.to_dict()["datasets"].values()))
    assert all(-1 <= row["low"] <= row["high"] <= 2 for row in rows if "low" in row)
    tame = comparison_chart(compared([figure(50.0, 2)], {1: around(10.0), 2: around(5.0)}))
    assert tame is None or tame.remarks == ()


def test_curves_run_along_what_they_are_of() -> None:
    ours = {1: around(10.0), 2: around(5.0)}
    assert panels(compared([figure(100.0, 1), figure(50.0, 2)], ours)) == {"time": ["1", "2"]}
    # A row mixes two indicators, a column holds one: table 13 of document 002.
    rows = [
        PublishedFigure(
            table="13", row=str(n), column=column, value=n, printed=str(n), rounding=0.5,
            indicator=column, parameters={"n": n}, base={"n": 1}, base_value=1.0,
            compare="difference",
        )
        for n in (1, 2) for column in ("kernel", "daemon")
    ]  # fmt: skip
    assert panels(compared(rows, ours)) == {"kernel": ["1", "2"], "daemon": ["1", "2"]}
    assert panels(compared([figure(50.0, 2)], {})) == {}, "nothing of ours, no chart"
