"""What each thread did in the course of a trial: from the record to the picture."""

from __future__ import annotations

import random
from pathlib import Path

import msgspec
import pytest

from concurve.assemble import report_of
from concurve.definition.study import Rules
from concurve.explain.timelines import threads_of
from concurve.findings.timelines import (
    ThreadLane,
    ThreadState,
    ThreadTimelines,
    TrialThreads,
)
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.report.charts.image import to_svg
from concurve.report.charts.threads import threads
from concurve.report.document import Chart
from concurve.report.html import to_html
from concurve.report.sections.run import run_document
from concurve.store import Store
from concurve.wire.record import (
    SiteRecord,
    SitesRecord,
    ThreadRecord,
    ThreadsRecord,
    ThreadTimeline,
    TrialRecord,
)
from concurve.wire.record import ThreadTimelines as Recorded
from concurve.wire.spec import TrialSpec
from tests.helpers.fakes import FakeClock, FakeEngine, record_of, small_study

SITE = SiteRecord(
    primitive="mutex", call="futex", module="/bin/p", offset="0x1", found="cfi", readings=4,
    threads=1, function="add(int)", file="/src/table.cc", line=7,
)  # fmt: skip
#: Two intervals of 0.1 s: the first thread runs, then waits at a lock; the other has the second.
FOLLOWED = Recorded(
    ends_ns=(100_000_000, 200_000_000),
    threads=3,
    listed=(
        ThreadTimeline(
            tid=7, first=0, running=(90, 20), runnable=(10, 30), waits="-f", sites=(-1, 0)
        ),
        ThreadTimeline(tid=8, first=1, running=(100,), runnable=(0,), waits="-"),
    ),
)


def followed(record: TrialRecord, timelines: Recorded | None = FOLLOWED) -> TrialRecord:
    (role, *others) = record.roles
    role = msgspec.structs.replace(
        role,
        thread_timelines=timelines,
        sites=SitesRecord(readings=4, listed=(SITE,)),
        threads=ThreadsRecord(listed=(ThreadRecord(tid=7, pid=7, source="sample", name="worker"),)),
    )
    return msgspec.structs.replace(record, roles=(role, *others))


def record(timelines: Recorded | None = FOLLOWED) -> TrialRecord:
    spec = msgspec.json.decode(
        b'{"format":1,"trial":"t","roles":[{"name":"target","argv":["true"]}]}', type=TrialSpec
    )
    return followed(record_of(spec, 0.3), timelines)


class Engine(FakeEngine):
    """Records follow threads where the trial asks for it."""

    def run(self, spec: TrialSpec) -> bytes:
        made = record_of(spec, self.wall_of(spec, random.Random(spec.trial)))
        asked = spec.sampling.thread_timelines is True
        return msgspec.json.encode(followed(made, FOLLOWED if asked else None))


def test_a_thread_has_its_name_its_states_and_where_it_waited() -> None:
    found = threads_of(record(), {"threads": 2})
    assert found is not None and found.threads == 3
    first, second = found.lanes
    assert (first.name, first.tid, second.name) == ("worker", 7, "")
    ran, waited = first.states
    assert (ran.begin, ran.end, ran.running, ran.wait) == (0, 0.1, 0.9, "")
    assert (waited.wait, waited.place) == ("futex", "add (table.cc:7)")
    assert waited.blocked == pytest.approx(0.5)
    assert [(state.begin, state.end) for state in second.states] == [(0.1, 0.2)]
    assert first.running == pytest.approx(0.55)


@pytest.mark.parametrize(
    "damaged",
    [
        None,
        Recorded(),
        Recorded(ends_ns=(5,), threads=1, listed=(ThreadTimeline(tid=1, first=9),)),
        Recorded(
            ends_ns=(0,), threads=1,
            listed=(ThreadTimeline(tid=1, running=(9,), runnable=(9,), waits="f"),),
        ),
    ],
)  # fmt: skip
def test_a_record_that_says_nothing_has_no_threads(damaged: Recorded | None) -> None:
    assert threads_of(record(damaged), {}) is None


def test_shares_and_places_of_a_damaged_record_stay_in_their_bounds() -> None:
    odd = ThreadTimeline(tid=1, running=(300,), runnable=(200,), waits="?", sites=(99,))
    found = threads_of(record(Recorded(ends_ns=(10,), threads=1, listed=(odd,))), {})
    assert found is not None
    (state,) = found.lanes[0].states
    assert (state.running, state.runnable, state.blocked) == (1, 1, 0)
    assert (state.wait, state.place) == ("", "")


def test_the_first_trials_of_a_cell_are_followed_and_a_report_shows_one(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "s.db"))
    study = small_study(Rules(repeats_min=5, repeats_max=5), threads=(1, 2))
    head = new_head(study, "normal", 1, "concurve sweep …")
    Runner(head, store, Engine(), clock=FakeClock(0.001)).start()
    has = [b"thread_timelines" in row.record for row in store.records(head.id)]
    assert has.count(True) == 2 * 3 and len(has) == 2 * 5
    report = report_of(store, store.find_run(head.id))
    assert report.threads is not None
    assert [cell.parameters for cell in report.threads.cells] == [{"threads": 1}, {"threads": 2}]
    page = to_html(run_document(report))
    assert "What each thread did in the course of a trial" in page
    assert "Zoom in" in page


def lane(tid: int, *states: tuple[float, float, str]) -> ThreadLane:
    """States of 0.1 s: running, waiting for a CPU, and what for if blocked."""
    return ThreadLane(
        role="target",
        tid=tid,
        name="worker",
        states=tuple(
            ThreadState(number / 10, (number + 1) / 10, *state)
            for number, state in enumerate(states)
        ),
    )


def chart_of(*lanes: ThreadLane, threads_seen: int = 0) -> Chart:
    cell = TrialThreads(parameters={"threads": 2}, lanes=lanes, threads=threads_seen or len(lanes))
    return threads(ThreadTimelines(factors=("threads",), cells=(cell,)))


def test_a_lane_is_as_full_as_its_thread_was_busy() -> None:
    chart = chart_of(lane(7, (0.5, 0.25, "futex"), (1.0, 0.0, "")), lane(8, (0.0, 0.0, "poll")))
    assert "threads=2: worker 7 75 % running, 12 % waiting for a CPU" in chart.alternative
    datasets = chart.spec.to_dict()["datasets"].values()
    areas = [row for rows in datasets for row in rows if "part" in row]

    def heights(part: str, floor: int) -> list[tuple[float, float]]:
        own = (row for row in areas if (row["part"], row["floor"]) == (part, floor))
        return [(row["seconds"], round((row["top"] - row["low"]) / 0.84, 2)) for row in own]

    assert heights("on a CPU", 1) == [(0, 0.5), (0.1, 1), (0.2, 1)]
    assert heights("futex", 1) == [(0, 0.25), (0.1, 0), (0.2, 0)]
    assert heights("events", 0) == [(0, 1), (0.1, 1)]
    picture = to_svg(chart)
    assert "worker 7, 0.00 to 0.10 s: 50 % running, 25 % waiting for a CPU, 25 % blocked" in picture


def test_the_panel_of_the_only_cell_needs_no_title() -> None:
    cell = TrialThreads(
        parameters={"threads": 2}, lanes=(lane(7, (0.5, 0.25, "futex")),), threads=1
    )
    chart = threads(ThreadTimelines(factors=(), cells=(cell,)))
    assert "title" not in chart.spec.to_dict()
    assert "worker 7" in to_svg(chart)


def test_a_run_of_one_setting_has_a_page(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "s.db"))
    study = small_study(Rules(repeats_min=5, repeats_max=5), threads=(2,))
    head = new_head(study, "normal", 1, "concurve sweep …")
    Runner(head, store, Engine(), clock=FakeClock(0.001)).start()
    page = to_html(run_document(report_of(store, store.find_run(head.id))))
    assert "What each thread did in the course of a trial" in page


def test_a_long_trial_with_many_threads_stays_a_small_picture() -> None:
    draw = random.Random(1)
    busy = [
        lane(tid, *((draw.random() / 2, draw.random() / 2, "futex") for _ in range(127)))
        for tid in range(16)
    ]
    chart = chart_of(*busy, threads_seen=300)
    assert "the 10 busiest of 300 threads" in " ".join(chart.remarks)
    assert len(to_svg(chart)) < 400_000


def test_what_hardly_changes_is_said_once() -> None:
    steady = [(0.95 + 0.001 * number, 0.0, "") for number in range(30)]
    said = to_svg(chart_of(lane(7, *steady))).count('aria-label="worker 7')
    assert said == 1
