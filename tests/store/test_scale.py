"""A run of 100,000 trials: shown and exported whole and right. ``make bench`` holds the time."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from concurve.analysis.run import trial_findings_of
from concurve.assemble import raw_trials
from concurve.estimate import Estimate
from concurve.findings.run import TrialFindings
from concurve.planning.plan import plan_of
from concurve.report import csv
from concurve.store import Store
from concurve.store.run_head import RunHead
from tests.helpers import generate
from tests.helpers.real import Lab, missing

THREADS, REPEATS = 50, 2000


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> tuple[Lab, RunHead]:
    lab = Lab(tmp_path_factory.mktemp("large"))
    return lab, generate.fill(lab.db, THREADS, REPEATS)


@pytest.fixture(scope="module")
def findings(large: tuple[Lab, RunHead]) -> TrialFindings:
    store = Store(str(large[0].db))
    return trial_findings_of(store, store.find_run("last"))


def test_every_figure_is_right(large: tuple[Lab, RunHead], findings: TrialFindings) -> None:
    assert findings.run.trials == THREADS * REPEATS
    assert findings.rejects == ()
    base = generate.mean_seconds(plan_of(large[1]).cells[0])
    for cell, planned in zip(findings.cells, plan_of(large[1]).cells, strict=True):
        truth = generate.mean_seconds(planned)
        wall, speedup = cell.indicators["wall_seconds"], cell.indicators["speedup"]
        assert (cell.status, wall.n) == ("ok", REPEATS)
        assert wall.value == pytest.approx(truth, rel=1e-8)
        assert wall.stdev == pytest.approx(truth * 0.0002**0.5, rel=1e-3)
        assert speedup.value == pytest.approx(base / truth, rel=1e-8)
        assert is_narrow(wall, 1) and is_narrow(speedup, 2)


def is_narrow(estimate: Estimate, clocks: int) -> bool:
    """The made-up times come in steps of 1 %: an interval reaches no less far, and hardly further,
    for each of the times that a figure is made of."""
    return estimate.precision is not None and estimate.precision < 0.0102 * clocks


def test_every_trial_is_exported(large: tuple[Lab, RunHead], findings: TrialFindings) -> None:
    store = Store(str(large[0].db))
    used = sum(trial[3] for trial in raw_trials(findings, store.records(findings.run.id)))
    assert used == THREADS * REPEATS, "each counts in the figures, and the export says so"
    assert csv.trials(findings).count("\n") == THREADS * REPEATS + 1


@pytest.mark.real
def test_show_prints_all_cells(large: tuple[Lab, RunHead]) -> None:
    if reason := missing():
        pytest.skip(reason)
    begin = time.perf_counter()
    done = large[0].run("show", "last")
    print(f"\nshow of {THREADS * REPEATS} trials took {time.perf_counter() - begin:.2f} s")
    assert done.returncode == 0, done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    shown = {line[0] for line in lines if line and line[0].isdigit()}
    assert shown == {str(level) for level in range(1, THREADS + 1)}
    assert max(map(len, done.stdout.splitlines())) <= 80
    as_json = json.loads(large[0].run("show", "last", "--json").stdout)
    assert as_json["run"]["trials"] == THREADS * REPEATS


def test_a_generated_run_is_one_that_the_protocol_would_make(tmp_path: Path) -> None:
    """Else the analysis would refuse it; and a small one is as right as the large one."""
    head = generate.fill(tmp_path / "s.db", 3, 10)
    store = Store(str(tmp_path / "s.db"))
    small = trial_findings_of(store, store.find_run(head.id))
    assert [cell.trials for cell in small.cells] == [10, 10, 10]
