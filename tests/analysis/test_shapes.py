"""Two levels, a tail and a change in time are said in every view, and typed in exports."""

from __future__ import annotations

import json
import math
import random
import re
from collections.abc import Callable

import pytest

from concurve.analysis.run import trial_findings_of
from concurve.definition.study import Rules
from concurve.definition.units import format_quantity
from concurve.findings.run import Report
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.report.json.export import figures_to_json
from concurve.report.markdown import to_markdown
from concurve.report.sections.run import ALL_TOPICS, brief_run_document, run_document
from concurve.report.terminal import lines
from concurve.store import Store
from concurve.wire.spec import TrialSpec
from tests.helpers.fakes import FakeClock, FakeEngine, small_study
from tests.helpers.made import figures_alone

TRIALS = 25


def run_of(factor: Callable[[int, int], float], trials: int = TRIALS) -> Report:
    """A run whose trials take ``factor`` of their threads and their block, with little noise."""
    rules = Rules(repeats_min=trials, repeats_max=trials)

    def seconds(spec: TrialSpec, generator: random.Random) -> float:
        block = int(spec.trial.split("/")[-2])
        return factor(int(spec.roles[0].argv[1]), block) * generator.lognormvariate(0, 0.01)

    store = Store()
    head = new_head(small_study(rules), "normal", 1, "concurve sweep …")
    Runner(head, store, FakeEngine(seconds), clock=FakeClock(0.001)).start()
    return figures_alone(trial_findings_of(store, store.find_run(head.id)))


def views(report: Report) -> list[str]:
    document = brief_run_document(report, topics=ALL_TOPICS)
    brief = "\n".join(line.plain for line in lines(document, 200))
    return [brief, to_markdown(run_document(report))]


def warnings(report: Report) -> str:
    return " ".join(item.sentence for item in report.sentences if item.kind == "warning")


def test_two_levels_are_said_with_their_trials() -> None:
    report = run_of(lambda threads, block: 1.15 if threads == 4 and block * 7 % 25 < 12 else 1.0)
    assert [cell.two_levels is not None for cell in report.cells] == [False, False, True]
    assert "threads=4 (‡) has two levels: 1.00 s in 13 trials, 1.15 s in 12." in (
        warnings(report).replace("1.01 s", "1.00 s").replace("1.14 s", "1.15 s")
    )
    figure = report.cells[2].indicators["wall_seconds"]
    assert figure.low is not None and figure.high is not None
    assert figure.low < 1.02 and figure.high > 1.13, "the interval holds both levels"
    assert all("‡" in view for view in views(report))
    exported = json.loads(figures_to_json(report))["cells"]
    assert exported[2]["two_levels"]["trials_high"] == 12
    assert exported[2]["two_levels"]["clear"]
    assert "two_levels" not in exported[0]
    assert report.level_change is None
    (note,) = (item.sentence for item in report.sentences if "by chance" in item.sentence)
    assert "looked for in 3 cells. Where the noise is normal, about 1 of 40 cells" in note


def test_a_tail_is_said_with_its_trials() -> None:
    slow = {5: 1.5, 17: 2.5}
    report = run_of(lambda threads, block: slow.get(block, 1.0) if threads == 1 else 1.0)
    tail = report.cells[0].slow_tail
    assert tail is not None
    assert tail.trials == 2
    assert "threads=1 (‡) has 2 outliers that are worse: 1.94× the other trials" in warnings(report)
    assert json.loads(figures_to_json(report))["cells"][0]["slow_tail"]["trials"] == 2
    assert all("‡" in view for view in views(report))
    high = report.cells[0].indicators["wall_seconds"].high
    assert high is not None and high < 1.02


def test_cells_with_the_same_shape_share_a_warning() -> None:
    slow = {5: 1.5, 17: 2.5}
    found = run_of(lambda threads, block: slow.get(block, 1.0) * (1 + 0.1 * threads))
    said = [item.sentence for item in found.sentences if "outliers" in item.sentence]
    assert len(said) == 1 and said[0].startswith("3 cells (‡) have outliers that are worse than ")
    assert all(f"threads={n} (2 trials, 1.9" in said[0] for n in (1, 2, 4))


@pytest.mark.parametrize("trials", [8, 25])
def test_a_trial_that_alone_makes_an_interval_wide_is_named(trials: int) -> None:
    """Of 25 trials one moves no interval of a median."""
    found = run_of(
        lambda threads, block: 2.0 if threads == 1 and block == 4 else 1.0, trials=trials
    )
    cell = found.cells[0]
    assert cell.slow_tail is not None and cell.slow_tail.trials == 1
    assert not any(other.odd_trial for other in found.cells[1:])
    exported = json.loads(figures_to_json(found))["cells"][0]
    if trials > 8:
        assert cell.odd_trial is None and "odd_trial" not in exported
        return
    odd, figure = cell.odd_trial, cell.indicators["wall_seconds"]
    assert odd is not None and odd.trial == 5 and odd.value == pytest.approx(2.0, rel=0.05)
    assert figure.half_width is not None, "the figure keeps it"
    assert figure.half_width > odd.high - odd.low
    assert 0.95 < odd.low < odd.without < odd.high < 1.05
    assert exported["odd_trial"]["trial"] == 5
    assert re.search(
        r"Trial 5 of threads=1 \((1\.9|2\.0)\d s\) alone makes its interval wide: without it, it "
        r"would be \S+ m?s \[\S+, \S+\]\. The figure keeps it\.",
        warnings(found),
    ), warnings(found)


def test_trials_that_end_early_are_said() -> None:
    early = {5: 0.5, 17: 0.55}
    report = run_of(lambda threads, block: early.get(block, 1.0) if threads == 1 else 1.0)
    tail = report.cells[0].fast_tail
    assert tail is not None and report.cells[0].slow_tail is None
    assert tail.trials == 2
    assert tail.best == pytest.approx(0.5, rel=0.05)
    assert "threads=1 (‡) has 2 outliers that are better: 0.5" in warnings(report)
    assert "Check that they did all of their work." in warnings(report)
    assert json.loads(figures_to_json(report))["cells"][0]["fast_tail"]["trials"] == 2
    assert all("‡" in view for view in views(report))


def test_a_tail_is_not_called_two_levels_flatly() -> None:
    waits = [-math.log(1 - (place + 0.5) / TRIALS) for place in range(TRIALS)]
    tail = [math.exp(0.08 * wait**1.5) for wait in waits]
    report = run_of(lambda threads, block: tail[block * 7 % TRIALS] if threads == 4 else 1.0)
    levels = report.cells[2].two_levels
    assert levels is not None and not levels.clear
    assert "threads=4 (‡) has two levels, or one that spreads widely: " in warnings(report)


def test_a_speed_up_that_depends_on_the_time_is_said() -> None:
    report = run_of(lambda threads, block: 1.15 if threads == 4 and block // 12 % 2 else 1.0)
    assert [bool(cell.widened) for cell in report.cells] == [False, False, True]
    widened = report.cells[2].widened
    assert widened is not None and widened > 1.5
    assert "The speed-up of threads=4 (‡) drifts from trial to trial" in warnings(report)
    assert f"its interval is {widened:.2g} times as wide for that" in warnings(report)
    assert json.loads(figures_to_json(report))["cells"][2]["widened"] == widened
    assert "widened" not in json.loads(figures_to_json(report))["cells"][1]


def test_a_step_of_the_machine_is_said_and_drops_out_of_speed_ups() -> None:
    report = run_of(lambda threads, block: (1 if block < 14 else 1.08) / threads)
    assert report.level_change is not None
    assert report.level_change.block == 14
    assert report.level_change.factor == pytest.approx(1.08, rel=0.01)
    assert "From block 15 on, wall time was 8" in warnings(report)
    assert json.loads(figures_to_json(report))["level_change"]["block"] == 14
    speedup = report.cells[1].indicators["speedup"]
    assert speedup.low is not None and speedup.high is not None
    assert 1.97 < speedup.low < speedup.high < 2.03


def test_a_drift_without_a_change_is_said() -> None:
    report = run_of(lambda threads, block: (1 + 0.04 * math.sin(block * math.pi / 4)) / threads)
    assert report.level_change is None
    assert report.drift == pytest.approx(0.08, abs=0.03)
    assert "Wall time drifted in all cells alike, by up to" in warnings(report)
    assert json.loads(figures_to_json(report))["drift"] == report.drift
    assert not any(cell.widened for cell in report.cells), "it drops out of ratios"


def test_a_change_of_one_cell_is_none_of_all_cells() -> None:
    """Two of three cells move: so does their median, and ratios do not hold."""
    report = run_of(lambda threads, block: 1.08 if threads > 1 and block >= 14 else 1.0)
    assert report.level_change is None and report.drift is None
    assert "Wall time changed during this run, and not in all cells alike" in warnings(report)
    assert "in all cells:" not in warnings(report) and "Ratios hold" not in warnings(report)
    wandering = run_of(
        lambda threads, block: 1 + 0.06 * (threads > 1) * math.sin(block * math.pi / 4)
    )
    assert wandering.drift is None
    assert "not in all cells alike" in warnings(wandering)


def test_that_ratios_hold_is_said_only_where_it_is_shown() -> None:
    """A drift that all share, under noise that would hide one that they do not."""

    def hit(threads: int, block: int) -> float:
        noise = random.Random(f"{threads}/{block}").lognormvariate(0, 0.12)
        return (1 + 0.25 * math.sin(block * math.pi / 8)) * noise / threads

    report = run_of(hit)
    assert report.drift is None and report.level_change is None
    assert "Ratios hold" not in warnings(report)
    assert (
        "Wall time changed in the course of this run, and was 5.9 % higher in its last third than "
        "in its first. More trials would show whether the ratios changed, too, by 5 % or more."
        in warnings(report)
    )


def test_a_machine_that_becomes_slower_drifts_and_has_no_step() -> None:
    report = run_of(lambda threads, block: (1 - 0.15 * math.exp(-block / 8)) / threads)
    assert report.level_change is None
    assert report.drift is not None and report.drift > 0.1
    assert "Wall time drifted in all cells alike, by up to" in warnings(report)


def test_a_drift_of_more_than_the_whole_is_a_plain_number() -> None:
    report = run_of(lambda threads, block: (2 + 1.2 * math.sin(block * math.pi / 4)) / threads)
    assert report.drift is not None and report.drift > 1
    assert f"by up to {report.drift:.0%}".replace("%", " %") in warnings(report)


def test_a_calm_run_has_neither_marks_nor_notes() -> None:
    report = run_of(lambda threads, block: 1 / threads)
    assert report.level_change is None and report.drift is None
    for cell in report.cells:
        assert not (cell.two_levels or cell.slow_tail or cell.fast_tail or cell.widened)
    assert not any("‡" in view for view in views(report))
    assert not any("by chance" in item.sentence for item in report.sentences)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(1.0, "s", "1.00 s"), (1.153, "s", "1.15 s"), (24.6e-6, "s", "24.6 µs"), (0.15, "s", "150 ms"),
     (12345.6, "1/s", "12,346 1/s"), (0.5, "", "0.500"), (0.0, "B", "0 B")],
)  # fmt: skip
def test_quantities_have_three_digits(value: float, unit: str, text: str) -> None:
    assert format_quantity(value, unit) == text


@pytest.mark.parametrize(("trials", "share"), [(3, "1 of 4"), (4, "1 of 8"), (5, "")])
def test_few_trials_say_what_their_intervals_take_for_granted(trials: int, share: str) -> None:
    store = Store()
    head = new_head(small_study(Rules(repeats_min=trials, repeats_max=trials)), "normal", 1, "…")
    engine = FakeEngine(lambda spec, generator: generator.lognormvariate(0, 0.01))
    Runner(head, store, engine, clock=FakeClock(0.001)).start()
    report = figures_alone(trial_findings_of(store, store.find_run(head.id)))
    notes = [item.sentence for item in report.sentences if item.kind == "note"]
    said = [text for text in notes if "take the noise as normal" in text]
    assert len(said) == bool(share)
    if share:
        assert (
            f"of a program with two speeds, {trials} trials show only one in {share} cells"
            in said[0]
        )
