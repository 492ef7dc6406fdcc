"""The labels of figures that have only a name, and the place of a latency among them."""

from __future__ import annotations

import msgspec
import pytest

from concurve.analysis.run import findings_of
from concurve.definition.beside_line import Beside
from concurve.definition.study_line import sweep_study
from concurve.findings.run import Findings
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.store import Store
from concurve.terms import label_of
from tests.helpers.fakes import FakeClock, FakeEngine
from tests.helpers.made import made_run


@pytest.mark.parametrize(
    ("name", "unit", "label"),
    [
        ("latency_seconds", "s", "latency"),
        ("latency_seconds_p99", "s", "latency p99"),
        ("latency_ns_p50", "ns", "latency p50"),
        ("requests_per_second", "1/s", "requests per second"),
        ("nanoseconds_per_operation", "ns", "nanoseconds per operation"),
        ("cost_ns_per_key", "ns", "cost ns per key"),
        ("seconds", "s", "seconds"),
        ("latency_seconds", "", "latency seconds"),
    ],
)
def test_a_label_leaves_out_the_unit_that_stands_beside_it(
    name: str, unit: str, label: str
) -> None:
    assert label_of(name, unit) == label


@pytest.mark.parametrize("latency", ["latency_seconds", "latency_ns_p50", "load.latency_seconds"])
def test_a_latency_stands_beside_the_rate_of_a_load(latency: str) -> None:
    run = made_run(Store(":memory:"), lambda n: 1.0, n=(1, 2, 4))
    cells = [
        msgspec.structs.replace(
            cell,
            indicators={**cell.indicators, latency: cell.indicators["wall_seconds"]},
        )
        for cell in run.cells
    ]
    names = msgspec.structs.replace(run, cells=tuple(cells)).names_in_order()
    assert names[:3] == ["wall_seconds", latency, "speedup"]


def test_figures_of_a_client_say_whose_they_are() -> None:
    beside = Beside(server="./serve --port 7000", ready="tcp:7000")
    study = sweep_study(("./load", "{n}"), (("n", "1,2"),), 2, beside=beside)
    store = Store(":memory:")
    head = new_head(study, "quick", 1, "concurve sweep …")
    Runner(head, store, FakeEngine(), clock=FakeClock(0.001)).start()
    found = findings_of(store, store.find_run(head.id))
    assert found.indicator("cpu_seconds").label == "client: CPU time"
    assert found.indicator("wall_seconds").label == "wall time", "it is that of the work"
    alone = made_run(Store(":memory:"), lambda n: 1.0, n=(1, 2))
    assert alone.indicator("cpu_seconds").label == "CPU time"


def test_a_rate_is_of_runs_where_no_operations_are_reported() -> None:
    plain = made_run(Store(":memory:"), lambda n: 1.0, n=(1, 2))
    assert plain.indicator("rate_per_second").label == "runs per second"
    assert plain.indicator("rate_per_second").note.startswith("one over the wall time")
    assert plain.indicator("rate_per_worker").label == "runs per second and worker"
    counting = _counting_operations()
    assert counting.indicator("rate_per_second").label == "operations per second"
    assert counting.indicator("rate_per_worker").label == "rate per worker"


def _counting_operations() -> Findings:
    """A program that prints how many operations it did."""
    study = sweep_study(("./mine", "{n}"), (("n", "1,2"),), 2, extracts=(r"operations=did (\d+)",))
    store = Store(":memory:")
    head = new_head(study, "quick", 1, "concurve sweep …")
    Runner(head, store, FakeEngine(stdout="did 500"), clock=FakeClock(0.001)).start()
    return findings_of(store, store.find_run(head.id))
