"""How busy each CPU was in the course of a trial: from the record to the picture."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest

from concurve.analysis.timelines import timeline_of
from concurve.assemble import report_of
from concurve.definition.study import Rules
from concurve.findings.timelines import CpuTimelines, TrialTimeline
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.report.charts import charts
from concurve.report.charts.image import to_svg
from concurve.report.charts.timelines import timelines
from concurve.store import Store
from concurve.wire.record import CpuTimeline, TrialRecord
from concurve.wire.spec import TrialSpec
from tests.helpers.fakes import FakeClock, FakeEngine, record_of, small_study

TICK = 10_000_000
#: 0.1 s and 0.2 s long: CPU 0 is always busy, CPU 1 in a half of the second one.
ENDS = (100_000_000, 300_000_000)
BUSY: dict[str, tuple[int, ...]] = {"0": (10, 20), "1": (0, 10)}


def with_timeline(record: TrialRecord, timeline: CpuTimeline | None) -> TrialRecord:
    machine = msgspec.structs.replace(record.machine, tick_ns=TICK, cpu_timeline=timeline)
    return msgspec.structs.replace(record, machine=machine)


class Engine(FakeEngine):
    """Each record has a timeline; those of two threads have none."""

    def run(self, spec: TrialSpec) -> bytes:
        record = record_of(spec, self.wall_of(spec, random.Random(spec.trial)))
        is_long = spec.roles[0].argv[1] != "2"
        timeline = CpuTimeline(ends_ns=ENDS, busy_ticks=BUSY) if is_long else None
        return msgspec.json.encode(with_timeline(record, timeline))


def record(busy: dict[str, tuple[int, ...]], ends: tuple[int, ...] = ENDS) -> TrialRecord:
    spec = msgspec.json.decode(
        b'{"format":1,"trial":"t","roles":[{"name":"target","argv":["true"]}]}', type=TrialSpec
    )
    return with_timeline(record_of(spec, 0.3), CpuTimeline(ends_ns=ends, busy_ticks=busy))


def made(store: Store, levels: tuple[int, ...]) -> CpuTimelines | None:
    study = small_study(Rules(repeats_min=2, repeats_max=2), threads=levels)
    head = new_head(study, "normal", 1, "concurve sweep …")
    Runner(head, store, Engine(), clock=FakeClock(0.001)).start()
    report = report_of(store, store.find_run(head.id))
    drawn = [chart.name for chart in charts(report)]
    assert ("cpus-over-time" in drawn) == (report.timelines is not None)
    return report.timelines


def test_busy_ticks_become_shares_of_their_interval() -> None:
    found = timeline_of(record(BUSY), {"threads": 1})
    assert found is not None
    assert found.ends == (0.1, 0.3)
    assert found.cpus == {0: (1.0, 1.0), 1: (0.0, 0.5)}
    assert found.mean(0) == pytest.approx(1.0)
    assert found.mean(1) == pytest.approx(1 / 3)


def test_cpus_stand_in_the_order_of_their_numbers() -> None:
    found = timeline_of(record({"10": (0, 0), "9": (0, 0)}), {})
    assert found is not None and list(found.cpus) == [9, 10]


def test_no_share_is_above_1_and_no_interval_divides_by_nothing() -> None:
    """A tick is counted at its end; a damaged record may have intervals of no length."""
    found = timeline_of(record({"0": (11, 3)}, (100_000_000, 100_000_000)), {})
    assert found is not None and found.cpus[0] == (1.0, 0.0)


def test_a_record_without_a_timeline_has_none() -> None:
    assert timeline_of(with_timeline(record(BUSY), None), {}) is None
    assert timeline_of(record({}), {}) is None


@pytest.mark.parametrize(
    ("busy", "ends"),
    [({"0": (1,)}, ENDS), ({"cpu": (1, 1)}, ENDS), ({"0": ()}, ()), ({"0": (0,)}, (0,))],
)
def test_a_damaged_timeline_is_none(
    busy: dict[str, tuple[int, ...]], ends: tuple[int, ...]
) -> None:
    assert timeline_of(record(busy, ends), {}) is None


def test_a_report_has_the_timelines_that_its_records_have(tmp_path: Path) -> None:
    found = made(Store(str(tmp_path / "s.db")), (1, 2, 4))
    assert found is not None
    assert [cell.parameters for cell in found.cells] == [{"threads": 1}, {"threads": 4}]
    assert found.factors == ("threads",)
    assert found.remark == "2 of 3 cells."
    assert made(Store(str(tmp_path / "t.db")), (2,)) is None


def test_of_many_cells_some_from_the_first_to_the_last_are_shown(tmp_path: Path) -> None:
    found = made(Store(str(tmp_path / "s.db")), tuple(range(3, 43)))
    assert found is not None
    shown = [cell.parameters["threads"] for cell in found.cells]
    assert (shown[0], shown[-1], len(shown)) == (3, 42, 12)
    assert found.remark == "12 of 40 cells."


def test_each_cpu_has_a_lane_in_the_panel_of_its_cell() -> None:
    busy: dict[str, dict[int, tuple[float, ...]]] = {
        "free": {0: (1.0, 1.0), 1: (1.0, 0.5)},
        "bound": {0: (0.0, 0.0), 1: (1.0, 1.0)},
    }
    cells = tuple(
        TrialTimeline(parameters={"setup": setup}, ends=(0.1, 0.3), cpus=cpus)
        for setup, cpus in busy.items()
    )
    chart = timelines(CpuTimelines(factors=("setup",), cells=cells))
    assert "setup=bound: CPU 0 0 %, CPU 1 100 %" in chart.alternative
    (rows,) = chart.spec.to_dict()["datasets"].values()

    def heights(panel: str, cpu: int) -> list[tuple[float, float]]:
        own = [row for row in rows if (row["panel"], row["cpu"]) == (f"setup={panel}", cpu)]
        (full,) = (row["top"] - row["floor"] for row in own if row["kind"] == "lane")
        busy = (row for row in own if row["kind"] == "busy")
        return [(row["seconds"], (row["top"] - row["floor"]) / full) for row in busy]

    assert [seconds for seconds, _ in heights("free", 1)] == [0, 0.1, 0.3]
    assert [share for _, share in heights("free", 1)] == pytest.approx([1, 0.5, 0.5])
    assert heights("bound", 0) == [(0, 0), (0.1, 0), (0.3, 0)]
    picture = to_svg(chart)
    assert "CPU 0" in picture and "time in the trial" in picture
