"""What charts draw, from made up runs."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from concurve.analysis.scaling import scaling_of
from concurve.definition.study import Rules
from concurve.findings.run import Report
from concurve.report.charts import charts, hero, of_indicator
from concurve.report.charts.image import to_svg
from concurve.report.charts.marks import end_above_0
from concurve.report.charts.series import unique_labels
from concurve.report.charts.style import CUT, DOUBTS, RINGS
from concurve.report.document import Chart
from concurve.store import Store
from concurve.terms import Factor, Level
from tests.helpers.made import figures_alone, made_run
from tests.helpers.meant import CASES, run_of
from tests.report import samples


@pytest.mark.parametrize("name", samples.ALL)
def test_specifications_hold_the_schema_of_vega_lite(name: str) -> None:
    """Pictures are drawn without this check."""
    report = samples.ALL[name]()
    for chart in (*charts(report), hero(report)):
        assert chart is not None
        chart.spec.to_dict(validate=True)


def test_an_interval_down_to_nothing_has_its_place_on_a_logarithmic_axis() -> None:
    """Two trials that differ severalfold: the interval of a time begins close to 0."""
    twice = Rules(repeats_min=2, repeats_max=2)
    findings = made_run(Store(), lambda n: 100.0 ** int(n), cv=3.0, rules=twice, threads=(1, 2, 3))
    figures = [cell.indicators["wall_seconds"] for cell in findings.cells]
    assert any(figure.low is not None and figure.low < 1e-3 * figure.value for figure in figures)
    chart = charts(findings)[0]
    (rows,) = chart.draw().to_dict()["datasets"].values()
    least = min(row["value"] for row in rows if row["value"])
    lows = [row["low"] for row in rows if row.get("low") is not None]
    assert min(lows) >= 0.8 * least > 0
    assert "logarithmic" in to_svg(chart)


def test_nothing_grows_from_a_base_that_has_as_much_concurrency() -> None:
    def run(**base: Level) -> tuple[Report, str]:
        findings = made_run(
            Store(), lambda mode, n: float(mode) / int(n), mode=(1, 2), threads=(1, 2, 4), base=base
        )
        (speedup,) = (chart for chart in charts(findings) if chart.name.startswith("speedup"))
        (rows,) = speedup.spec.to_dict()["datasets"].values()
        return findings, "ideal" if any(row["kind"] == "ideal" for row in rows) else "none"

    findings, line = run(mode=1)
    assert line == "none"
    assert not any("efficiency" in cell.indicators for cell in findings.cells)
    assert all("speedup" in cell.indicators for cell in findings.cells)
    sentences = [finding.sentence for finding in findings.sentences]
    begins = "Speed-up is by wall time, against mode=1 at the same threads, block by block"
    assert any(sentence.startswith(begins) for sentence in sentences)
    bases: tuple[dict[str, Level], ...] = ({}, {"threads": 2}, {"mode": 1, "threads": 1})
    for base in bases:
        findings, line = run(**base)
        assert line == "ideal"
        assert all("efficiency" in cell.indicators for cell in findings.cells)


def test_where_the_time_of_an_operation_counts_its_cpu_time_and_the_slow_ones_are_drawn() -> None:
    findings = made_run(Store(), lambda n: 1.0 / int(n), threads=(1, 2))
    figures = ("seconds_per_operation", "cpu_seconds_per_operation", "load.latency_ns_p99")
    cells = tuple(
        msgspec.structs.replace(
            cell,
            indicators={
                **cell.indicators,
                **dict.fromkeys(figures, cell.indicators["wall_seconds"]),
            },
        )
        for cell in findings.cells
    )
    per_operation = msgspec.structs.replace(
        findings, cells=cells, primary=figures[0], asked=figures, best=()
    )
    drawn = [chart.name for chart in charts(per_operation)]
    assert drawn[0] == "seconds-per-operation-by-threads"
    assert "cpu-seconds-per-operation-by-threads" in drawn
    assert any("latency" in name for name in drawn)
    assert "cpu-seconds-by-threads" not in drawn


def test_names_of_factors_that_leave_no_room_for_levels_stand_above_them() -> None:
    def drawn(*names: str) -> tuple[list[str], str]:
        factors = tuple(Factor(name=name, levels=("on", "off"), work=False) for name in names)
        chart = charts(samples.study(factors, lambda _: 1.0))[0]
        (rows,) = chart.draw().to_dict()["datasets"].values()
        assert to_svg(chart)
        labels = dict.fromkeys(row["series"] for row in rows if row["kind"] == "point")
        return list(labels), json.dumps(chart.draw().to_dict())

    labels, spec = drawn("cache", "seeks")
    assert labels[:2] == ["cache on, seeks on", "cache on, seeks off"]
    assert "cache, seeks" not in spec
    long = ("scheduler-of-the-disk", "write-cache-kib", "seek-curve")
    labels, spec = drawn(*long)
    assert labels[:2] == ["on, on, on", "on, on, off"]
    assert len(labels) == 8
    assert ", ".join(long) in spec


def test_each_figure_that_is_extracted_has_its_chart() -> None:
    case = next(case for case in CASES if case.name == "fixed time")
    latency = r"latency=average = ([0-9.]+) ms:ms:lower"
    options = {"extracts": (*case.options["extracts"], latency)}
    drawn = charts(figures_alone(run_of(case._replace(options=options), Store())))
    names = [chart.name for chart in drawn]
    assert names[0].startswith("tps")
    assert sum(name.startswith("latency") for name in names) == 1
    assert len(set(names)) == len(names)


def test_several_recommended_settings_have_rings_and_no_words() -> None:
    """Words beside several would cover each other and the curves."""

    def drawn(made: Report) -> tuple[Chart, str]:
        chart = hero(made)
        assert chart is not None
        return chart, to_svg(chart)

    chart, picture = drawn(made_run(Store(), lambda n: 1.0 / int(n), threads=(1, 2)))
    assert "recommended" in picture
    assert RINGS not in chart.remarks
    several = made_run(
        Store(), lambda load, n: 1.0 / int(n), conditions=("load",), load=(1, 2, 3), threads=(1, 2)
    )
    chart, picture = drawn(several)
    assert "recommended" not in picture
    assert RINGS in chart.remarks


def test_rings_of_a_chart_of_cells_are_explained() -> None:
    chart = hero(made_run(Store(), lambda kind: float(len(kind)), kind=("a", "bb", "ccc")))
    assert chart is not None and RINGS in chart.remarks
    unchosen = hero(made_run(Store(), lambda kind: 1.0, conditions=("kind",), kind=("a", "b")))
    assert unchosen is not None and RINGS not in unchosen.remarks


def test_the_ideal_line_is_straight() -> None:
    """Levels on a logarithmic axis have speed-ups on one, and even levels both on a linear one."""
    for levels, is_log in (((1, 2, 4, 8), True), ((1, 2, 3), False)):
        chart = hero(made_run(Store(), lambda n: 1.0 / int(n), threads=levels))
        assert chart is not None and chart.name.startswith("speedup")
        layers = chart.draw().to_dict()["layer"]
        types = {
            tuple(layer["encoding"][axis]["scale"].get("type") for axis in ("x", "y"))
            for layer in layers
        }
        assert types == {("log", "log") if is_log else (None, None)}


@pytest.mark.parametrize("in_doubt", [False, True])
def test_the_first_chart_has_no_models_of_levels_that_are_all_in_doubt(in_doubt: bool) -> None:
    steal = (lambda spec: 10**9) if in_doubt else None
    made = made_run(Store(), lambda n: 1.0 / int(n), threads=(1, 2, 4, 8), steal=steal)
    made = msgspec.structs.replace(made, scaling=scaling_of(made))
    assert any(item.fit is not None for item in made.scaling)
    chart = hero(made)
    assert chart is not None
    (rows,) = chart.draw().to_dict()["datasets"].values()
    assert any(row["kind"] == "curve" for row in rows) is not in_doubt


def rows_of(chart: Chart) -> list[dict[str, Any]]:
    (rows,) = chart.draw().to_dict()["datasets"].values()
    return list(rows)


@pytest.mark.parametrize("levels", [{"threads": (1, 2, 4)}, {"mode": ("a", "b", "c")}])
def test_points_in_doubt_are_hollow_and_said_to_be(levels: dict[str, Any]) -> None:
    """Of the second cell alone."""
    ((_, second, _),) = levels.values()
    made = made_run(
        Store(), lambda n: 1.0, steal=lambda spec: 10**9 * (spec.roles[0].argv[1] == str(second)),
        **levels,
    )  # fmt: skip
    chart = of_indicator(made, "wall_seconds")
    assert chart is not None
    points = [row for row in rows_of(chart) if row["kind"] == "point" and "text" in row]
    assert [row["doubt"] for row in points] == [False, True, False]
    drawn = json.dumps(chart.draw().to_dict()["layer"])
    assert "!datum.doubt" in drawn and drawn.count("datum.doubt") == 2
    assert DOUBTS in chart.remarks and "1 of them in doubt" in chart.alternative
    # A file has no page around it that would say so.
    assert DOUBTS in to_svg(chart, alone=True) and DOUBTS not in to_svg(chart)
    quiet = of_indicator(made_run(Store(), lambda n: 1.0, **levels), "wall_seconds")
    assert quiet is not None and DOUBTS not in quiet.remarks and "doubt" not in quiet.alternative


@pytest.mark.parametrize("levels", [{"threads": (1, 2, 4)}, {"mode": ("a", "b", "c")}])
def test_an_interval_that_is_cut_ends_in_an_arrow(levels: dict[str, Any]) -> None:
    made = made_run(Store(), lambda n: 1.0, **levels)
    cells = list(made.cells)
    wide = msgspec.structs.replace(cells[1].indicators["wall_seconds"], high=50.0)
    cells[1] = msgspec.structs.replace(
        cells[1], indicators={**cells[1].indicators, "wall_seconds": wide}
    )
    chart = of_indicator(msgspec.structs.replace(made, cells=tuple(cells)), "wall_seconds")
    assert chart is not None and CUT in chart.remarks
    assert [bool(row.get("cut_high")) for row in rows_of(chart) if "high" in row] == [
        False, True, False,
    ]  # fmt: skip
    assert "datum.cut_high" in json.dumps(chart.draw().to_dict()["layer"])
    whole = of_indicator(made, "wall_seconds")
    assert whole is not None and CUT not in whole.remarks
    assert "cut_high" not in json.dumps(whole.draw().to_dict())


def test_levels_that_begin_alike_have_curves_of_their_own() -> None:
    """Labels are cut, and would be the same."""
    folder = "/home/ann/projects/renderer/build-2024-"
    programs = (f"{folder}old/render", f"{folder}new/render")

    def seconds(program: str, n: str) -> float:
        return (2.0 if "old" in program else 1.0) / int(n)

    made = made_run(Store(), seconds, conditions=("program",), program=programs, threads=(1, 2, 4))
    for chart in charts(made):
        points = [row for row in rows_of(chart) if row.get("kind") == "point"]
        places = [(row["panel"], row["series"], row["level"]) for row in points if "level" in row]
        assert len(places) == len(set(places))
    first = charts(made)[0]
    labels = {row["series"] for row in rows_of(first) if row.get("kind") == "point"}
    assert len(labels) == 2, labels


def test_labels_that_were_cut_alike_are_told_apart() -> None:
    found = unique_labels([(1, "a…"), (2, "a…"), (1, "a…"), (3, "b")])
    assert found == {1: "a…", 2: "a… (2)", 3: "b"}


def test_a_trial_of_nothing_has_no_place_on_a_logarithmic_axis() -> None:
    points, dots = [{"value": 5.0, "low": 0.0}], [{"value": 0.0}, {"value": 2.0}]
    assert end_above_0(points, dots) == 2.0
    assert dots == [{"value": 2.0}] and points[0]["cut_low"]
