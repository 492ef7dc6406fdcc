"""There is one speed-up: the same number in tables, claims, sentences, charts and exports."""

from __future__ import annotations

import csv
import io
import json
import random
import re
from typing import Any

import msgspec
import pytest

from concurve.analysis.run import trial_findings_of
from concurve.analysis.sentences.answers import answers_of
from concurve.analysis.sentences.gains import Greatest
from concurve.definition.study import Claim, Indicator, Rules
from concurve.estimate import Estimate
from concurve.findings.run import Report
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.planning.plan import make_plan
from concurve.report import csv as csv_view
from concurve.report.charts import charts
from concurve.report.json.export import figures_to_json
from concurve.report.sections.run import brief_run_document
from concurve.report.terminal import lines
from concurve.store import Store
from concurve.wire.record import TrialRecord
from concurve.wire.report import IndicatorLine
from concurve.wire.spec import TrialSpec
from tests.helpers.fakes import FakeClock, FakeEngine, small_study
from tests.helpers.made import figures_alone, made_run

OPERATIONS = 1000


class OperationsEngine(FakeEngine):
    """Programs that do a fixed number of operations."""

    def run(self, spec: TrialSpec) -> bytes:
        record = msgspec.json.decode(super().run(spec), type=TrialRecord)
        done = IndicatorLine(indicator="operations", value=OPERATIONS)
        roles = tuple(msgspec.structs.replace(role, indicators=(done,)) for role in record.roles)
        return msgspec.json.encode(msgspec.structs.replace(record, roles=roles))


def seconds(spec: TrialSpec, generator: random.Random) -> float:
    """Two threads take a fifth; a trial in five is severalfold as slow."""
    level = {"1": 1.0, "2": 0.2, "4": 0.15}[spec.roles[0].argv[1]]
    slow = 1 + generator.expovariate(0.3) if generator.random() < 0.2 else 1.0
    return level * slow * generator.lognormvariate(0, 0.03)


@pytest.fixture(scope="module", params=[True, False], ids=["with operations", "wall time"])
def report(request: pytest.FixtureRequest) -> Report:
    indicators = ["rate_per_second", "wall_seconds"]
    if request.param:
        indicators.append("seconds_per_operation")
    claims = tuple(
        Claim(
            id=name,
            says="Two are faster.",
            kind="speedup",
            test={"of": {"threads": 2}, "over": {"threads": 1}, "at_least": 1.0, "indicator": name},
        )
        for name in indicators
    )
    rates = Claim(
        id="rates",
        says="The rate grows.",
        kind="ratio",
        test={
            "of": {"threads": 2}, "over": {"threads": 1}, "at_least": 1.0,
            "indicator": "rate_per_second",
        },
    )  # fmt: skip
    study = msgspec.structs.replace(
        small_study(Rules(repeats_min=12, repeats_max=12, redo_max=0)), claims=(*claims, rates)
    )
    engine = (OperationsEngine if request.param else FakeEngine)(seconds)
    store = Store()
    head = new_head(study, "normal", 1, "concurve run …")
    Runner(head, store, engine, clock=FakeClock(0.001)).start()
    return figures_alone(trial_findings_of(store, store.find_run(head.id)))


def speedup(report: Report) -> Estimate:
    (found,) = (cell for cell in report.cells if cell.parameters["threads"] == 2)
    return found.indicators["speedup"]


def bounds(figure: Any) -> tuple[float, float, float]:
    return figure.value, figure.low, figure.high


def test_the_claims_have_the_number_of_the_table(report: Report) -> None:
    expected = bounds(speedup(report))
    assert expected[1] < expected[0] < expected[2]
    for claim in report.claims:
        assert claim.estimate is not None
        value, low, high = bounds(claim.estimate)
        assert value == pytest.approx(expected[0], rel=1e-12), claim.id
        # Several claims are corrected for their number: their intervals are no narrower.
        assert low <= expected[1] * (1 + 1e-12)
        assert high >= expected[2] * (1 - 1e-12)


def test_it_is_the_ratio_of_the_trials_of_a_block(report: Report) -> None:
    """Not of means over all trials, which slow trials spoil: the truth is 5."""
    blocks = report.blocks("rate_per_second")
    ratios = sorted(blocks[1][block] / blocks[0][block] for block in blocks[0])
    assert ratios[0] < speedup(report).value < ratios[-1]
    assert 4 < speedup(report).value < 6.2


def test_sentences_and_tables_show_it(report: Report) -> None:
    found = report.best_overall
    assert found is not None
    (best,) = (cell for cell in report.cells if cell.parameters.items() >= found.named.items())
    (sentence,) = (f.sentence for f in report.sentences if "× as fast" in f.sentence)
    value, low, high = bounds(best.indicators["speedup"])
    assert f"{value:.2f}×" in sentence
    decided = re.search(r"\[([\d.]+), ([\d.]+)\]", sentence)
    assert decided, sentence
    assert float(decided[1]) < low and high < float(decided[2]), "the interval that decided"
    assert any("hold for both speed-ups" in f.sentence for f in report.sentences)
    (level,) = found.named.values()
    rows = [line.plain.split() for line in lines(brief_run_document(report), 200)]
    (row,) = (row for row in rows if row[:1] == [str(level)] and row[1][0].isdigit())
    figures = [float(word) for word in row if re.fullmatch(r"\d+\.?\d*", word)]
    assert any(abs(figure - value) < 0.06 * value for figure in figures), row


def test_exports_have_it(report: Report) -> None:
    expected = bounds(speedup(report))
    exported = json.loads(figures_to_json(report))
    (cell,) = (cell for cell in exported["cells"] if cell["parameters"]["threads"] == 2)
    found = cell["indicators"]["speedup"]
    assert (found["value"], found["low"], found["high"]) == expected
    rows = csv.DictReader(io.StringIO(csv_view.cells(report)))
    (row,) = (row for row in rows if row["threads"] == "2")
    assert tuple(float(row[f"speedup{end}"]) for end in ("", "_low", "_high")) == expected


def test_charts_draw_it(report: Report) -> None:
    (chart,) = (chart for chart in charts(report) if chart.name.startswith("speedup"))
    (rows,) = chart.spec.to_dict()["datasets"].values()
    (point,) = (row for row in rows if row.get("text", "").startswith("threads=2") and "low" in row)
    assert point["value"] == pytest.approx(speedup(report).value, rel=1e-12)


@pytest.mark.parametrize(
    ("interval", "said"),
    [((4.96, 255.77), "2 threads are at least 4.96× as fast as 1."),
     ((4.96, 25.0), "2 threads are 10.20× as fast as 1 [4.96, 25.00]."),
     ((0.2, 255.77), "2 threads are 10.20× as fast as 1 (too few trials for a useful interval).")],
)  # fmt: skip
def test_an_upper_end_that_tells_nothing_is_not_said(
    interval: tuple[float, float], said: str
) -> None:
    plan = make_plan(small_study(threads=(1, 2)), "normal", 1)
    one, two = made_run(Store(), lambda threads: 1 / int(threads), threads=(1, 2)).cells
    speedup = Estimate(value=10.2, low=interval[0], high=interval[1], n=3)
    gain = Greatest("", two, one, is_gain=True, by="", speedup=speedup)
    assert answers_of(plan, [gain], ()) == ([said], [], {})


@pytest.mark.parametrize(
    ("interval", "is_wide"),
    [((0.91, 2.13), True), ((0.74, 2.26), True), ((0.91, 1.5), False), ((1.23, 4.0), False)],
)
def test_a_speed_up_that_may_be_none_and_twice_as_much_is_no_figure(
    interval: tuple[float, float], is_wide: bool
) -> None:
    plan = make_plan(small_study(threads=(1, 2)), "normal", 1)
    one, two = made_run(Store(), lambda threads: 1 / int(threads), threads=(1, 2)).cells
    low, high = interval
    speedup = Estimate(value=1.4, low=low, high=high, n=4)
    gain = Greatest("", two, one, is_gain=True, by="", speedup=speedup)
    said = f"{low:.2f}× to {high:.2f}× as fast as 1 (too wide to tell)"
    known = f"1.40× as fast as 1 [{low:.2f}, {high:.2f}]"
    assert answers_of(plan, [gain], ())[0] == [f"2 threads are {said if is_wide else known}."]


def test_versions_are_compared_by_the_time_that_was_asked_for() -> None:
    """The new one takes less wall time and more CPU time, and CPU time is primary."""
    store = Store()
    study = small_study(Rules(repeats_min=9, repeats_max=9), build=("old", "new"))
    study = msgspec.structs.replace(study, indicators=(Indicator(name="cpu_seconds"),))
    head = new_head(study, "normal", 1, "concurve sweep …")

    class Parallel(FakeEngine):
        def run(self, spec: TrialSpec) -> bytes:
            record = json.loads(super().run(spec))
            noise = random.Random(spec.trial).lognormvariate(0, 0.002)
            times = 1.04 if spec.roles[0].argv[1] == "new" else 1.0
            record["roles"][0]["usage"]["cpu_ns"] = round(1e9 * times * noise)
            return json.dumps(record).encode()

    engine = Parallel(lambda spec, _: 0.9 if spec.roles[0].argv[1] == "new" else 1.0)
    Runner(head, store, engine, clock=FakeClock(0.001)).start()
    report = trial_findings_of(store, store.find_run(head.id))
    assert report.cells[1].indicators["speedup"].value == pytest.approx(1 / 1.04, rel=0.01)
    first, second, *_ = (item.sentence for item in report.sentences)
    assert re.match(r"build=new is [34]\.\d % slower than build=old by CPU time \[", first)
    assert second == "Use build=old (by CPU time)."
