"""Readings of a coarse clock never give an interval without width; counts stay exact."""

from __future__ import annotations

import random

import msgspec
import numpy as np
import pytest

from concurve.analysis.run import trial_findings_of
from concurve.analysis.run.resolutions import with_resolutions
from concurve.analysis.run.tables import Table
from concurve.analysis.scaling import scaling_of
from concurve.definition.study import Claim, Rules
from concurve.definition.units import is_rate, is_time
from concurve.findings.run import Report
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.store import Store
from concurve.terms import IndicatorInfo
from concurve.wire.spec import TrialSpec
from tests.helpers.fakes import FakeClock, FakeEngine, small_study
from tests.helpers.made import figures_alone, looking_run

TICK = 0.01


def coarse_run(one: float, two: float, cv: float = 0.001) -> Report:
    """Two cells whose true times a clock of 10 ms rounds."""
    claim = Claim(
        id="c",
        says="Two are faster.",
        kind="speedup",
        test={"of": {"threads": 2}, "over": {"threads": 1}, "at_least": 1.05},
    )
    rules = Rules(repeats_min=8, repeats_max=8)
    study = msgspec.structs.replace(small_study(rules, threads=(1, 2)), claims=(claim,))

    def seconds(spec: TrialSpec, generator: random.Random) -> float:
        true = one if spec.roles[0].argv[1] == "1" else two
        return round(true * generator.lognormvariate(0, cv) / TICK) * TICK

    store = Store()
    head = new_head(study, "normal", 1, "concurve run …")
    Runner(head, store, FakeEngine(seconds), clock=FakeClock(0.001)).start()
    return figures_alone(trial_findings_of(store, store.find_run(head.id)))


def test_times_of_a_coarse_clock_are_no_more_certain_than_its_tick() -> None:
    report = coarse_run(0.05, 0.042)
    for cell, reading in zip(report.cells, (0.05, 0.04), strict=True):
        for name in ("wall_seconds", "cpu_seconds"):
            figure = cell.indicators[name]
            assert figure.value == pytest.approx(reading)
            assert figure.low is not None and figure.high is not None
            assert figure.low <= reading - TICK + 1e-9
            assert figure.high >= reading + TICK - 1e-9
        rate = cell.indicators["rate_per_second"]
        assert rate.precision is not None
        assert rate.precision >= 0.99 * TICK / reading
        for count in ("voluntary_switches", "threads_peak"):
            exact = cell.indicators[count]
            assert exact.low == exact.value == exact.high
    speedup = report.cells[1].indicators["speedup"]
    assert speedup.low is not None
    assert speedup.low < 1 < speedup.value, "50 ms against 40 may be 45 against 45"
    assert report.claims[0].verdict == "undecided"


def test_a_difference_of_many_ticks_is_told() -> None:
    report = coarse_run(2.0, 1.0, cv=0.01)
    assert report.claims[0].verdict == "supported"
    speedup = report.cells[1].indicators["speedup"]
    assert speedup.low is not None and speedup.high is not None
    assert 1.9 < speedup.low < 2.02 and 1.98 < speedup.high < 2.1


def of_two(seconds: list[float], rates: list[float]) -> tuple[float, float]:
    """The resolutions of the time and of the rate of a run of two cells."""
    halves = [(seconds[:3], rates[:3]), (seconds[3:], rates[3:])]
    figures = [{"wall_seconds": times, "rate_per_second": found} for times, found in halves]
    tables = [Table(used, used, lambda name: np.array([]), lambda name: {}) for used in figures]
    first = with_resolutions(tables, [])[0]
    return first.resolution("wall_seconds"), first.resolution("rate_per_second")


def test_a_time_that_a_load_was_told_to_last_is_exact() -> None:
    """Taken for a clock of whole seconds, it made each rate uncertain by a half."""
    assert of_two([2.0] * 6, [7613.0, 7798.0, 7640.0, 9012.0, 8955.0, 9101.0]) == (0.0, 0.0)


def test_it_is_exact_beside_cells_that_do_a_fixed_amount_of_work() -> None:
    """As in a study that has both ways of measuring, one of which was taken for a coarse clock."""
    seconds, rates = [0.5] * 3 + [1.734, 1.812, 1.695], [7613.0, 7798.0, 9012.0, 50.1, 48.0, 51.3]
    assert of_two(seconds, rates) == (0.0, 0.0)


def test_several_times_that_loads_were_told_to_last_are_no_steps_of_a_clock() -> None:
    """A factor of 2 s and 5 s, of a program that prints how long it was told to run."""
    seconds, rates = [2.0] * 3 + [5.0] * 3, [7613.0, 7798.0, 7640.0, 9012.0, 8955.0, 9101.0]
    assert of_two(seconds, rates) == (0.0, 0.0)


def test_a_cell_whose_readings_are_equal_by_a_coarse_clock_is_not_told_its_time() -> None:
    """A finer clock made its rates, and the times of another cell show the steps of this one."""
    seconds, rates = [1.25] * 3 + [2.51, 2.5, 2.52], [800.3, 799.1, 801.7, 398.9, 400.1, 397.2]
    time, rate = of_two(seconds, rates)
    assert time == pytest.approx(0.01) and rate == pytest.approx(800.3 * 0.01 / 1.25)


def test_a_cell_of_one_trial_says_nothing_of_how_rates_are_made() -> None:
    figures = [{"wall_seconds": [2.0] * 3, "rate_per_second": [7613.0, 7798.0, 7640.0]},
               {"wall_seconds": [5.0], "rate_per_second": [9012.0]}]  # fmt: skip
    tables = [Table(used, used, lambda name: np.array([]), lambda name: {}) for used in figures]
    assert with_resolutions(tables, [])[0].resolution("wall_seconds") == 0.0


def test_the_same_reading_of_a_coarse_clock_is_not() -> None:
    """The same work in about the same time, and in half of it."""
    time, rate = of_two([2.0] * 6, [500.0] * 6)
    assert time == 1.0 and rate == pytest.approx(250.0)
    time, _ = of_two([2.0, 2.0, 2.0, 1.0, 1.0, 1.0], [500.0, 510.0, 500.0, 1000.0, 1000.0, 1000.0])
    assert time == 1.0


@pytest.mark.parametrize(
    ("name", "unit", "better", "values", "off"),
    [
        ("elapsed", "s", "lower", [1.25] * 3, 0.01),
        ("elapsed", "s", "lower", [40.0] * 3, 1.0),
        ("load.latency_p99", "ms", "lower", [3.5, 4.0, 3.5], 0.5),
        ("answer", "", "lower", [1.5, 1.7, 1.6], 0.1),
        ("requests", "1/s", "higher", [100.5, 100.6, 100.5], 0.1),
        ("kernel_threads", "", "neither", [14.0] * 3, 0.0),
        ("items", "", "higher", [14.0, 15.0], 0.0),
        ("worker_operations_jain", "", "neither", [0.95, 0.95], 0.0),
        ("memory", "MiB", "lower", [12.0, 12.0], 0.0),
    ],
)
def test_what_is_measured_has_a_resolution(
    name: str, unit: str, better: str, values: list[float], off: float
) -> None:
    info = IndicatorInfo(name=name, label=name, unit=unit, better=better)  # type: ignore[arg-type]
    table = Table(
        {name: values},
        {name: values},
        lambda _: np.array(values),
        lambda _: dict(enumerate(values)),
    )
    (found,) = with_resolutions([table], [info])
    assert found.resolution(name) == pytest.approx(off)


@pytest.mark.parametrize(
    ("name", "unit", "time", "rate"),
    [("x", "s", True, False), ("x", "us", True, False), ("x", "1/s", False, True),
     ("x", "MB/s", False, True), ("x", "runs per second", False, True), ("x", "B", False, False),
     ("rate_per_second", "", False, True), ("load.wall_seconds", "", True, False),
     ("timeouts", "", False, False), ("x", "%", False, False),
     *((("x", unit, False, True)) for unit in (
         "RPS", "QPS", "ops/us", "ops/ns", "req/hour", "fps", "pps", "Mops", "Mpps", "kIOPS")),
     *((("x", unit, False, False)) for unit in ("ops", "steps", "ms/op", "caps"))],
)  # fmt: skip
def test_times_and_rates_are_known_by_unit_or_name(
    name: str, unit: str, time: bool, rate: bool
) -> None:
    assert (is_time(name, unit), is_rate(name, unit)) == (time, rate)


def test_the_chart_of_a_model_has_the_intervals_of_the_table() -> None:
    """A level whose readings are equal has a band of a tick there, as it has in the table."""
    rules = Rules(repeats_min=8, repeats_max=8)

    def seconds(spec: TrialSpec, generator: random.Random) -> float:
        true = 0.5 / int(spec.roles[0].argv[1]) + 0.02
        return round(true * generator.lognormvariate(0, 0.001) / TICK) * TICK

    store = Store()
    head = new_head(small_study(rules, threads=(1, 2, 4)), "normal", 1, "concurve run …")
    Runner(head, store, FakeEngine(seconds), clock=FakeClock(0.001)).start()
    findings = trial_findings_of(store, store.find_run(head.id))
    (scaling,) = scaling_of(findings)
    assert scaling.fit is not None
    for cell, centre in zip(findings.cells, scaling.fit.centres, strict=True):
        figure = cell.indicators[scaling.indicator]
        assert (centre.low, centre.high) == (figure.low, figure.high)
        assert (centre.precision or 0.0) > 0.9 * TICK / 0.52


@pytest.mark.parametrize(
    ("cells", "off"),
    [
        # Two readings have a common divisor by chance.
        (([100.5] * 3, [200.5] * 3), 0.1),
        (([100.0] * 3, [200.0] * 3), 1.0),
        # Trials that differ show their steps.
        (([100.5, 101.0, 100.5], [200.5, 200.0, 201.5]), 0.5),
    ],
)
def test_the_step_of_figures_that_never_differ_is_their_last_digit(
    cells: tuple[list[float], ...], off: float
) -> None:
    info = IndicatorInfo(name="thr", label="thr", unit="MB/s", better="higher")
    tables = [Table({"thr": v}, {"thr": v}, lambda _: np.array([]), lambda _: {}) for v in cells]
    found = with_resolutions(tables, [info])[0]
    assert found.resolution("thr") == pytest.approx(off)


def test_a_program_that_looks_whether_it_is_done_is_known_by_no_more_than_its_step() -> None:
    """As redis-benchmark with threads does every 250 ms, unlike the same work without looks."""
    report = looking_run(0.25)
    for cell in report.cells:
        wall, rate = cell.indicators["wall_seconds"], cell.indicators["rate_per_second"]
        assert wall.low is not None and wall.high is not None
        assert wall.low <= wall.value - 0.25 and wall.high >= wall.value + 0.25
        assert rate.precision is not None and rate.precision >= 0.99 * 0.25 / wall.value
    assert report.best[0].recommended is None
    assert any("looks only every 250 ms" in it.sentence.replace("seems to look", "looks")
               for it in report.sentences)  # fmt: skip
    fine = looking_run(0.001)
    assert not any("whether it is done" in it.sentence for it in fine.sentences)
    assert (fine.cells[2].indicators["wall_seconds"].precision or 1.0) < 0.15


def test_a_printed_rate_has_the_step_of_the_time_that_made_it() -> None:
    times = [0.51, 0.76, 1.01, 0.76, 0.51, 0.52, 1.26, 0.77, 1.02, 0.76]
    rates = [60_000 / (time - 0.01) for time in times]
    others = [7613.0, 7798.0, 7640.0, 9012.0, 8955.0, 9101.0, 8123.0, 7017.0, 8888.0, 7777.0]
    for found, least in ((rates, 0.25), (others, 0.0)):
        used = {"wall_seconds": times, "rps": found}
        table = Table(used, used, lambda name: np.array([]), lambda name: {})
        info = IndicatorInfo(name="rps", label="rps", unit="1/s")
        off = with_resolutions([table], [info])[0].resolution("rps")
        assert off >= least * 60_000 and (off > 1000) is (least > 0)


def test_the_steps_of_a_time_that_a_load_was_told_to_last_are_none_of_its_rates() -> None:
    """As of wrk, which ends every 100 ms: it does more in a longer time, at the same rate."""
    times = [1.006, 1.107, 1.005, 1.106, 1.006, 1.108, 1.007, 1.207, 1.006, 1.307, 1.208, 1.005]
    noise = [0.99, 1.0, 1.01, 1.02, 0.98, 1.0, 1.01, 0.99, 1.0, 1.01, 0.98, 1.0]
    info = IndicatorInfo(name="rps", label="rps", unit="1/s")

    def table(of: list[float], is_by_time: bool) -> Table:
        told = [2240.17 * share for share in noise]
        rates = [4000 / (time - 0.005) for time in of] if is_by_time else told
        used = {"wall_seconds": of, "rps": rates, "rate_per_second": rates}
        return Table(used, used, lambda name: np.array([]), lambda name: {})

    for is_by_time in (False, True):
        # All trials of the second cell end on one step: the first one tells of both.
        cells = [table(times, is_by_time), table([1.006, 1.007, 1.005] * 4, is_by_time)]
        for found in with_resolutions(cells, [info]):
            for name in ("rps", "rate_per_second"):
                off = found.resolution(name) / found.used[name][0]
                assert (off > 0.05) == is_by_time, (name, is_by_time, off)
