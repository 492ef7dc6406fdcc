"""``explain`` over a stored run: reading, sentences, views, JSON against its schema, refusals."""

from __future__ import annotations

import itertools
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest
from rich.cells import cell_len

import concurve
from concurve.analysis.run import findings_of
from concurve.assemble import report_of
from concurve.brief import figures_of
from concurve.cli import main
from concurve.definition.study import Extract, Indicator, Role, Rules, Study
from concurve.errors import RunError
from concurve.estimate import Estimate
from concurve.explain import explanation as explaining
from concurve.explain import sentences
from concurve.explain.experiments import cell_to_confirm
from concurve.explain.sentences import of_start_and_end
from concurve.explain.verdict import Verdict
from concurve.exports import export_run
from concurve.findings.explanation import (
    Cause,
    CellExplanation,
    Explanation,
    Holders,
    RunnerUp,
    WaitSite,
)
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.report.charts.composition import composition
from concurve.report.charts.image import to_svg
from concurve.report.document import Section, Table
from concurve.report.json.explanation import to_json
from concurve.report.losses import LOSSES, SHORT
from concurve.report.sections.limits import bar_of, explanation_document
from concurve.report.sections.overview import limited
from concurve.report.sections.run import run_document
from concurve.report.terminal import bar, lines
from concurve.store import Store
from concurve.wire.record import CpuQuota, Output, SiteRecord, SitesRecord, TrialRecord
from concurve.wire.report import IndicatorLine
from concurve.wire.spec import TrialSpec
from tests.helpers.explaining import WALL, line_of, record, role, thread
from tests.helpers.fakes import FakeClock, FakeEngine, small_study
from tests.helpers.real import TARGETS, Lab, missing

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "schema" / "explain.schema.json").read_text(encoding="utf-8")
)
FIVE = Rules(repeats_min=5, repeats_max=5)
NOT_AGAIN = Rules(repeats_min=5, repeats_max=5, redo_max=0)
"""The same, in which a disturbed trial is not done again."""

Make = Callable[[int], TrialRecord]


class _Engine(FakeEngine):
    """Answers with records by the number of threads."""

    def __init__(self, make: Make, fails: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.make, self.fails = make, fails

    def run(self, spec: TrialSpec) -> bytes:
        threads = spec.roles[0].argv[1]
        made = msgspec.structs.replace(self.make(int(threads)), trial=spec.trial)
        if threads in self.fails:
            outcome = msgspec.structs.replace(made.outcome, kind="program_failed", message="no")
            made = msgspec.structs.replace(made, outcome=outcome)
        return msgspec.json.encode(made)


def run_of(
    store: Store, make: Make, rules: Rules = FIVE, fails: tuple[str, ...] = (), **more: object
) -> str:
    """The id of a stored run over 1, 2 and 4 threads."""
    study: Study = msgspec.structs.replace(small_study(rules), **more)
    head = new_head(study, "normal", 1, "concurve sweep …")
    Runner(head, store, _Engine(make, fails), clock=FakeClock(0.001)).start()
    return head.id


def queueing(threads: int) -> TrialRecord:
    """Two CPUs for them all."""
    cpu = min(1.0, 2 / threads)
    return record(role([thread(cpu, 1 - cpu)] * threads, 1000 * min(threads, 2)))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "concurve.db"))


def explained(store: Store, make: Make = queueing, **more: object) -> Explanation:
    return explaining.explain_run(store, store.find_run(run_of(store, make, **more)))  # type: ignore[arg-type]


# -- what is said -----------------------------------------------------------------------------


def test_each_cell_has_its_cause_and_a_sentence(store: Store) -> None:
    found = explained(store)
    assert [cell.cause for cell in found.cells] == ["none", "none", "cpu"]
    assert [cell.evidence for cell in found.cells] == [
        "With threads=1 an operation takes 1 ms of thread time: 100 % of it on a CPU.",
        "With threads=2 the speed-up over threads=1 is 2.00 of 2: nothing is lost. An "
        "operation spends 100 % of its thread time on a CPU.",
        "With threads=4 the speed-up over threads=1 is 2.00 of 2. An operation spends 50 % of its "
        "thread time waiting for a CPU (4 threads on 2 CPUs), at 1.00 × the CPU time.",
    ]
    assert found.operation == "reported by the program"
    assert found.missing == {"hot": "the record is older than samples of where threads run"}


def test_threads_that_wait_may_gain_more_than_the_cpus_allow(store: Store) -> None:
    """Four threads that sleep are four times as fast on two CPUs: that is no share of two."""

    def sleeping(threads: int) -> TrialRecord:
        return record(role([thread(0.01, sleep=0.98)] * threads, None, wall=WALL // threads))

    last = explained(store, sleeping).cells[-1]
    assert last.evidence.startswith(
        "With threads=4 an operation takes 1.00 × the thread time of threads=1: 99 % of it asleep; "
        "nothing is lost."
    )


def test_an_explanation_ends_with_where_its_words_are_explained(store: Store) -> None:
    page = "docs/limits.md"
    said = "\n".join(line.plain for line in lines(explanation_document(explained(store)), 200))
    assert said.rstrip().endswith(f"{page}.")
    text = (Path(__file__).parents[2] / page).read_text(encoding="utf-8")
    for cause in set(get_args(Cause)) - {"none", "in doubt"}:
        assert f"| `{cause}`" in text, "a row for each cause"
    for column in {SHORT.get(part, name) for part, name in LOSSES.items()} - {"quota", "less help"}:
        assert column in text, "by the names of the table"


def test_the_cpus_are_a_ceiling_only_for_who_computes_as_one_on_fewer(store: Store) -> None:
    """What sleeps with one thread is faster by more threads than there are CPUs."""
    assert [cell.ceiling for cell in explained(store).cells] == [None, 2, 2]

    def sleeping(threads: int) -> TrialRecord:
        half = 0.5 if threads < 4 else 0.45
        return record(role([thread(half, sleep=1 - half)] * threads, 1000.0 * min(threads, 2)))

    assert [cell.ceiling for cell in explained(store, sleeping).cells] == [None] * 3
    wide = tuple(range(4))

    def roomy(threads: int) -> TrialRecord:
        return record(role([thread(1.0)] * threads, 1000.0 * threads, cpus=wide))

    assert [cell.ceiling for cell in explained(store, roomy).cells] == [None, None, 4]


def test_a_wait_in_a_marked_phase_that_costs_no_speed_is_no_limit(store: Store) -> None:
    """A pool whose workers wait a little at the pipe of their tasks: 1.94 times as fast on two
    CPUs. Where they wait for long, that is the cause."""

    def make(threads: int, waits: float) -> TrialRecord:
        pipe = 0.0 if threads == 1 else waits
        at_once = min(threads, 2) / threads
        work = [thread(at_once - pipe, 1 - at_once, pipe=pipe)] * threads
        amount = 1000 * min(threads, 2) * (1 - pipe)
        return record(role(work, amount, phase=True))

    little = explained(store, lambda threads: make(threads, 0.03))
    two = little.cells[1]
    assert (two.cause, two.is_at_ceiling, two.speedup_lost) == ("none", True, {})
    assert two.speedup == pytest.approx(1.94, abs=0.01) and two.speedup_possible == 2
    assert line_of(two).text == (
        "the 2 CPUs. They allow at most 2× the speed of threads=1; threads=2 loses hardly any of "
        "that."
    )
    assert little.cells[2].cause == "cpu"
    much = explained(store, lambda threads: make(threads, 0.4)).cells[1]
    assert (much.cause, much.is_at_ceiling) == ("lock", False)
    assert "An operation takes 67 % more thread time than with threads=1; 100 % of that is" in (
        line_of(much).text
    )


def sleeping_at_a_lock(threads: int, scale: int = 1) -> TrialRecord:
    """Workers that sleep most of the time, and wait for one of them at a lock, which allows no
    more than four at once."""
    at_lock = max(0.0, 1 - 4 / (scale * threads))
    work = [thread(0.02, sleep=0.98 * (1 - at_lock), futex=0.98 * at_lock)] * (scale * threads)
    words = [(60 * scale * threads, scale * threads)] if at_lock else []
    return record(role(work, 1000.0 * min(4, scale * threads), words=words))


def test_cpus_are_no_capacity_of_workers_that_sleep(store: Store) -> None:
    """Four are four times as fast as one on two CPUs: nothing of two was won, and no part of it is
    divided."""
    found = explained(store, sleeping_at_a_lock)
    assert [cell.speedup_lost for cell in found.cells[2:]] == [{}]
    assert "nothing is lost" in found.cells[2].evidence
    assert not found.cells[2].is_at_ceiling


def test_a_lock_that_stops_workers_that_sleep_is_named(store: Store) -> None:
    """From 6 on nothing is gained: by the CPUs alone hardly anything would be lost."""
    found = explained(store, lambda threads: sleeping_at_a_lock(threads, scale=6))
    assert [cell.cause for cell in found.cells] == ["none", "lock", "lock"]
    assert line_of(found.cells[1]).text.startswith("locks. With threads=2 an operation spends")


def test_the_parts_of_extra_thread_time_are_told_where_no_cause_is_named(store: Store) -> None:
    """Woken where another one runs, though CPUs are idle."""

    def made(threads: int) -> TrialRecord:
        queue, more = (0.0, 0.0) if threads == 1 else (0.09, 0.03)
        work = [thread(0.1 + more, queue, sleep=0.9 - queue - more)] * threads
        amount = 1000.0 * threads / (1 + queue + more)
        return record(role(work, amount, cpus=tuple(range(8)), phase=True))

    cell = explained(store, made).cells[2]
    assert cell.cause == "none"
    assert cell.parts.startswith("No single cause: waiting for a CPU is ")
    assert "of the extra time per operation, more CPU time per operation" in cell.parts


def test_a_terminal_says_of_the_setting_to_use_what_the_page_says(store: Store) -> None:
    row = store.find_run(run_of(store, by_wall_time()))
    report = report_of(store, row)
    best = report.best_overall
    assert best is not None and best.recommended == {"threads": 2}
    (limit,) = figures_of(store, row, brief=True).limits
    assert (limit,) == limited(report, report.explanation)
    assert limit.cell.parameters == {"threads": 2} and limit.cell.is_at_ceiling
    assert limit.beyond is not None and limit.beyond.parameters == {"threads": 4}


def by_wall_time() -> Make:
    """Two CPUs for them all, and work that is done; four are a little slower than two."""
    noises = itertools.cycle((0.99, 1.0, 1.01, 0.995, 1.005, 1.002, 0.998))

    def make(threads: int) -> TrialRecord:
        wall = {1: 1.0, 2: 0.5, 4: 0.55}[threads]
        cpu = 1.0 / (wall * threads)
        threads_of = [thread(cpu, 1 - cpu)] * threads
        return record(role(threads_of, None, wall=round(WALL * wall), noise=next(noises)))

    return make


def test_a_parameter_that_does_not_count_what_runs_is_said_first(store: Store) -> None:
    """The thread that asks computes, too, and each of the others less, the more there are."""

    def make(threads: int) -> TrialRecord:
        share = 0.87 / threads
        others = [thread(share, futex=1 - share, name=f"pool-{n}", switches=90)
                  for n in range(threads)]  # fmt: skip
        first = thread(0.0, futex=1.0, name="java", tid=100, switches=2)
        caller = thread(0.87, futex=0.13, name="java", tid=99, switches=90)
        return record(msgspec.structs.replace(role([first, caller, *others], None), pid=100))

    found = explained(store, make)
    assert [cell.cause for cell in found.cells] == ["none", "cpu", "cpu"]
    assert found.cells[1].evidence == (
        "threads=1 already uses 1.74 of 2 CPUs: the parameter threads does not count all that "
        "runs. No more than 1.15 × is possible, and threads=2 gets 1.00 ×. To see how it scales, "
        "vary the CPUs: concurve sweep -P cpus 1,2 --cpus {cpus}."
    )
    assert found.cells[2].speedup_lost.get("stage", 0.0) == 0.0
    assert line_of(found.cells[2]).text.startswith("the CPUs. threads=1 already uses 1.74 of 2")


def test_an_excess_too_small_for_a_cause_is_said_to_be_cpu_time(store: Store) -> None:
    """As of a version that computes for 4 % longer: below what names a cause, and beyond noise."""

    def make(threads: int) -> TrialRecord:
        return record(role([thread(1.0)] * min(threads, 2), 1000 * min(threads, 2) / 1.04))

    def base(threads: int) -> TrialRecord:
        return record(role([thread(1.0)], 1000))

    found = explained(store, lambda n: base(n) if n == 1 else make(n))
    assert found.cells[1].cause == "none"
    assert found.cells[1].evidence == (
        "With threads=2 the speed-up over threads=1 is 1.92 of 2. An operation spends 100 % of its "
        "thread time on a CPU; most of what it takes more is CPU time, 4 % [4, 4 %] of the base's "
        "thread time: why is not known."
    )


def test_the_parts_of_a_loss_are_told_once(store: Store) -> None:
    """A little more CPU time and a little waiting for one: neither is enough for a cause."""

    def make(threads: int) -> TrialRecord:
        if threads == 1:
            return record(role([thread(1.0)], 1000))
        return record(role([thread(0.96, 0.04)] * 2, 2 * 0.96 * 1000 / 1.04))

    found = explained(store, make).cells[1]
    assert found.cause == "none" and found.is_not_found
    assert (
        "is not known" not in found.evidence and "most of what it takes more" not in found.evidence
    )
    assert found.parts.startswith("No single cause: ") and "waiting for a CPU" in found.parts


def test_components_sum_to_the_whole(store: Store) -> None:
    for cell in explained(store).cells:
        parts = cell.per_operation
        together = sum(parts[name].value for name in ("cpu", "run_queue", "blocked"))
        assert together == pytest.approx(parts["total"].value)
        assert sum(cell.shares.values()) == pytest.approx(1)
        assert parts["cpu"].n == cell.trials == 5
        assert (cell.base is None) == (not cell.excess)


def test_a_whole_run_counts_where_no_operations_are_reported(store: Store) -> None:
    found = explained(store, lambda n: record(role([thread(1.0)] * n, None)))
    assert found.operation == "a whole run"
    assert any("reports no operations" in note for note in found.notes)


def test_runs_of_a_fixed_time_that_count_nothing_are_not_compared(store: Store) -> None:
    """Two clients of pgbench use the CPUs up for the same second: nothing of that is a loss."""

    def make(threads: int) -> TrialRecord:
        work = [thread(min(1.0, 1.42 / threads), 1 - min(1.0, 1.42 / threads))] * threads
        return record(role(work, None), foreign=0.26)

    fixed = Role(name="target", command=("pgbench", "{threads}", "-T", "1"))
    rules = msgspec.structs.replace(NOT_AGAIN, repeats_min=3, repeats_max=3)
    found = explained(store, make, rules=rules, roles=(fixed,), work_amount="unknown")
    for cell in found.cells:
        assert (cell.base, cell.excess, cell.share, cell.runner_up) == (None, {}, None, None)
        assert cell.speedup_lost == {} and cell.ceiling is None
        for said in (cell.evidence, line_of(cell).text):
            assert not re.search("of what an operation takes longer|of the lost speed-up", said)
    assert "4 threads on 2 CPUs" in found.cells[-1].evidence
    assert any("wall time does not compare the cells" in note for note in found.notes)
    counted = explained(store, make, rules=rules, work_amount="unknown")
    assert counted.cells[-1].base == {"threads": 1}, "wall time compares who did the same work"


def test_runs_whose_work_seems_to_grow_are_compared(store: Store) -> None:
    """Threads that spin for a lock use CPU time in proportion to their number, too."""
    rules = msgspec.structs.replace(NOT_AGAIN, repeats_min=3, repeats_max=3)
    work = [thread(1.0)]
    run = run_of(store, lambda n: record(role(work * n, None)), rules=rules, work_amount="unknown")
    assert not findings_of(store, store.find_run(run)).throughput, "wall time compares nothing"
    found = explaining.explain_run(store, store.find_run(run))
    assert found.cells[-1].base == {"threads": 1}
    assert any("reports no operations" in note for note in found.notes)


def test_a_worker_s_unit_of_work_counts_where_the_work_scales(store: Store) -> None:
    """As in the table: twice the workers do twice the work, and nothing is lost."""
    found = explained(store, lambda n: record(role([thread(1.0)] * n, None)), work_amount="scales")
    assert found.operation == "a unit of work: each worker brings one"
    totals = [cell.per_operation["total"].value for cell in found.cells]
    assert totals == pytest.approx([totals[0]] * 3)
    assert all(cell.cause == "none" for cell in found.cells)


def failing(*at: int) -> Make:
    """Half of the operations fail with so many threads."""

    def make(threads: int) -> TrialRecord:
        made = queueing(threads)
        failed = IndicatorLine("bad", 500.0 if threads in at else 0.0)
        own = made.roles[0]
        own = msgspec.structs.replace(own, indicators=(*own.indicators, failed))
        return msgspec.structs.replace(made, roles=(own,))

    return make


COUNTED = (
    Indicator(name="wall_seconds", unit="s", better="lower"),
    Indicator(name="bad", better="lower", failures="beside operations"),
)


def test_no_cause_is_named_where_the_load_failed(store: Store) -> None:
    found = explained(store, failing(4), indicators=COUNTED)
    *others, last = found.cells
    assert last.cause == "none" and last.per_operation == {} and last.trials == 0
    assert last.evidence.startswith("Nothing can be said of threads=4: its load failed (bad: 2,500")
    assert not any("failed" in cell.evidence for cell in others)
    line = line_of(last)
    assert "it cannot be said: its load failed" in str(line)


def test_no_cause_is_named_against_a_base_whose_load_failed(store: Store) -> None:
    found = explained(store, failing(1), indicators=COUNTED)
    assert [cell.cause for cell in found.cells] == ["none"] * 3
    assert all("of its base, threads=1, failed (bad: " in c.evidence for c in found.cells[1:])


def test_zero_operations_cannot_be_explained(store: Store) -> None:
    found = explained(store, lambda n: record(role([thread(1.0)] * n, 0.0 if n == 2 else 1.0)))
    assert "no operations" in found.cells[1].evidence and found.cells[1].cause == "none"
    assert found.cells[1].per_operation == {}


def test_a_named_base_that_is_skipped_leaves_the_others_by_themselves(store: Store) -> None:
    found = explained(store, fails=("1",), base={"threads": 1})
    assert "its trials failed" in found.cells[0].evidence
    assert found.cells[2].cause == "cpu" and found.cells[2].base is None
    assert "takes 1 ms" not in found.cells[2].evidence and "2 ms" in found.cells[2].evidence


def test_in_place_of_another_base_that_is_skipped_the_lowest_level_with_trials_is_one(
    store: Store,
) -> None:
    found = explained(store, fails=("1",))
    assert [cell.base for cell in found.cells] == [None, None, {"threads": 2}]
    assert found.cells[2].evidence.startswith("With threads=4 the speed-up over threads=2 is 1.00")


def test_the_role_is_named_and_a_server_that_did_not_answer_is_doubted(store: Store) -> None:
    """As a parent that is attached, while its children answer elsewhere."""

    def made(threads: int) -> TrialRecord:
        server = role([thread(0.5 if threads < 4 else 0.0, poll=0.5)], None, phase=True)
        return record(server, role([thread(0.5, name="load")], 1000, "load", phase=True))

    roles = (
        Role(name="target", command=("true", "{threads}"), end="serve"),
        Role(name="load", command=("true",), purpose="load"),
    )
    found = explaining.explain_run(store, store.find_run(run_of(store, made, roles=roles)))
    assert found.operation == "reported by the program; the threads are those of the role target"
    said = found.cells[2].evidence
    assert said.endswith("while the load was answered: is it the process that answers?")
    assert found.cells[0].trials and "is it the process" not in found.cells[0].evidence


@pytest.mark.parametrize("share", [1.0, 0.93, None])
def test_nothing_limits_a_load_that_keeps_its_rate(store: Store, share: float | None) -> None:
    """A server that waits for the next request of a schedule does not wait for a load that could
    ask for more: the rate was asked for. That it is not kept has a cause, as in a closed loop."""

    def make(threads: int) -> TrialRecord:
        server = role([thread(0.08 * threads, poll=1 - 0.08 * threads)], None, phase=True)
        load = role([thread(0.05 * threads, name="load")], 1000.0 * threads, "load", phase=True)
        if share is not None:
            kept = IndicatorLine("rate_asked_share", share if threads == 4 else 1.0)
            load = msgspec.structs.replace(load, indicators=(*load.indicators, kept))
        return record(server, load)

    roles = (
        Role(name="target", command=("true", "{threads}"), end="serve"),
        Role(name="load", command=("true",), purpose="load"),
    )
    last = explained(store, make, roles=roles).cells[-1]
    said = line_of(last).text
    if share == 1.0:
        assert last.cause == "none" and not last.is_not_found and last.runner_up is None
        assert last.evidence.startswith(
            "With threads=4 nothing limits it at the asked rate, which the load kept. "
        )
        assert "the server used 0.32 CPUs" in last.evidence, last.evidence
        assert said.startswith("nothing at the asked rate, which the load kept. "), said
        assert "the server used 0.32 CPUs" in said
    else:
        assert not last.keeps_rate and "asked rate" not in f"{last.evidence} {said}"
        assert "client" in last.evidence, last.evidence


@pytest.mark.parametrize("marks", [False, True])
def test_a_server_whose_load_marks_no_phase_is_said_to_hold_its_idle_time(
    store: Store, marks: bool
) -> None:
    def made(threads: int) -> TrialRecord:
        server = role([thread(0.5, poll=0.5)], None, phase=marks)
        return record(server, role([thread(0.5, name="load")], 1000, "load", phase=marks))

    roles = (
        Role(name="target", command=("true", "{threads}"), end="serve"),
        Role(name="load", command=("true",), purpose="load"),
    )
    found = explaining.explain_run(store, store.find_run(run_of(store, made, roles=roles)))
    said = [note for note in found.notes if "does not report when it begins" in note]
    assert all("CPUs used are of its whole life" in note for note in said), "the rate is not"
    assert len(said) == (0 if marks else 1)
    assert all(len(note.split()) <= 40 for note in said)


def test_how_much_of_the_thread_time_of_go_has_no_goroutine_to_run_is_told(store: Store) -> None:
    def made(threads: int, absent: dict[str, str]) -> TrialRecord:
        idle = role([thread(0.6, futex=0.3, poll=0.1)] * threads, 1000)
        return record(msgspec.structs.replace(idle, absent=idle.absent | absent))

    go = explained(store, lambda threads: made(threads, {"runtime": "no memory was read"}))
    other = explained(store, lambda threads: made(threads, {}))
    said = (
        "Not counted: up to 40 % of the time of a cell's threads, for which those of Go's runtime"
    )
    assert [note.startswith(said) for note in go.notes].count(True) == 1
    assert not any("Go's runtime" in note for note in other.notes)
    assert [cell.blocked_share for cell in go.cells] == pytest.approx([0.0] * 3)
    assert [cell.blocked_share for cell in other.cells] == pytest.approx([0.4] * 3)


def test_no_phase_is_asked_of_a_program_alone(store: Store) -> None:
    assert not [note for note in explained(store).notes if "does not report when it begins" in note]


def test_one_cell_alone(store: Store) -> None:
    study = msgspec.structs.replace(small_study(FIVE, threads=(4,)))
    found = explained(store, factors=study.factors)
    assert [cell.cause for cell in found.cells] == ["cpu"] and found.factors == ()


def test_single_trials_bear_no_interval(store: Store) -> None:
    found = explained(store, rules=Rules(repeats_min=1, repeats_max=1))
    assert "a single trial has no interval" in found.cells[1].evidence
    assert found.cells[0].per_operation["cpu"].low is None
    jsonschema.validate(json.loads(to_json(found)), SCHEMA)


@pytest.mark.parametrize(
    ("trials", "fails", "few"),
    [(2, (), "2 of threads=4, 2 of threads=1; 3 of each are enough"),
     (3, ("1",), "3 of threads=4, none of threads=1; 3 of each are enough"),
     (3, (), "")],
)  # fmt: skip
def test_a_short_answer_names_no_limit_from_too_few_trials(
    store: Store, trials: int, fails: tuple[str, ...], few: str
) -> None:
    rules = Rules(repeats_min=trials, repeats_max=trials)
    found = explained(store, rules=rules, fails=fails, base={"threads": 1})
    last = found.cells[-1]
    assert (last.cause, last.few) == ("cpu", few), "explain says what the figures show"
    text = line_of(last).text
    shown = "\n".join(line.plain for line in lines(explanation_document(found), 200))
    assert ("cpu ?: With" in shown) == bool(few), "both views have the same doubt"
    assert ("! Too few trials are in to name a cause (" in shown) == bool(few)
    if few:
        assert text == f"it cannot be said: too few trials are in ({few})."
        assert "3 of each are enough). What they point to is marked ?." in shown
    else:
        assert text.startswith("the 2 CPUs.")


def uneven(threads: int) -> TrialRecord:
    """The first worker has 70 % of the work."""
    if threads == 1:
        return record(role([thread(1.0)], None))
    light = 0.43 / (threads - 1)
    workers = [thread(1.0), *[thread(1.0, lived=light)] * (threads - 1)]
    return record(role(workers, None, wall=7 * WALL // 10))


def test_a_lost_speedup_is_divided_and_said(store: Store) -> None:
    found = explained(store, uneven)
    assert [cell.cause for cell in found.cells] == ["none", "imbalance", "imbalance"]
    second = found.cells[1]
    assert second.evidence == (
        "With threads=2 the speed-up over threads=1 is 1.43 of 2; of the 0.57 lost, 0.57 go to "
        "uneven work: the busiest worker ran 1.40 × as long as the mean of the workers; the others "
        "had ended, or waited for the end or for the next round."
    )
    assert second.speedup is not None and second.speedup_possible == 2
    assert second.speedup + sum(second.speedup_lost.values()) == pytest.approx(2)
    written = json.loads(to_json(found))
    jsonschema.validate(written, SCHEMA)
    assert written["cells"][1]["speedup_lost"]["imbalance"] == pytest.approx(0.57, abs=0.01)
    assert "speedup" not in written["cells"][0]


def test_a_greater_loss_without_a_cause_stands_before_the_cause(store: Store) -> None:
    """What the first thread does alone is more CPU time, too: with a little more of that in the
    workers, it is more than what is lost to their waiting."""

    def java(threads: int) -> TrialRecord:
        alone, each = (0.09, 1.04 / threads) if threads > 1 else (0.0, 1.0)
        wall = alone + each
        first = thread(alone / wall, futex=0.98 - alone / wall, name="java", tid=100, switches=3)
        working = thread(1.0, name="worker", lived=each / wall, switches=2)
        made = role([first, *[working] * threads], None, wall=round(wall * WALL))
        return record(msgspec.structs.replace(made, pid=100))

    cell = explained(store, java).cells[1]
    lost = cell.speedup_lost
    assert cell.cause == "serial" and lost["cpu"] > lost["serial"] > 0
    assert (
        f"lost, {lost['cpu']:.2f} go to more CPU time per operation, of no known cause, and "
        f"{lost['serial']:.2f} to serial work: for " in cell.evidence
    )
    text = line_of(cell).text
    assert text.startswith("more CPU time, of no known cause; then serial work, which one thread")
    assert text.index("% is more CPU time, and") < text.index("serial work.")


def test_why_no_speed_up_is_divided_is_said_where_the_program_marks_its_phase(store: Store) -> None:
    def marked(threads: int) -> TrialRecord:
        return record(role([thread(1.0)] * threads, 1000 * threads, phase=True))

    whole, part = explained(store, uneven), explained(store, marked)
    assert not any("marks the phase `measure`" in note for note in whole.notes)
    assert not any(cell.speedup_lost for cell in part.cells)
    assert [cell.speedup for cell in part.cells[1:]] == pytest.approx([2.0, 4.0])
    assert sum("marks the phase `measure`" in note for note in part.notes) == 1
    assert any("times, shares and speed-ups are of the phase." in note for note in part.notes)
    assert part.operation.endswith(", in the phase measure")
    assert "phase" not in whole.operation


def test_a_table_of_whole_runs_beside_cells_with_a_phase_is_told(store: Store) -> None:
    def some(threads: int) -> TrialRecord:
        if threads < 4:
            return uneven(threads)
        return record(role([thread(1.0)] * threads, 1000 * threads, phase=True))

    found = explained(store, some)
    assert [bool(cell.speedup_lost) for cell in found.cells] == [False, True, False]
    assert any("lost speed-up is of the others, whole runs" in note for note in found.notes)
    assert "phase" not in found.operation, "of a part of the cells alone"


def test_the_speed_up_of_a_phase_is_that_of_its_evidence(store: Store) -> None:
    """The first figure may be the time of the whole run, with a start that no phase has."""

    def started(threads: int) -> TrialRecord:
        made = role([thread(1.0)] * threads, 1000, phase=True, wall=WALL // threads)
        return record(msgspec.structs.replace(made, wall_ns=2 * WALL + WALL // threads))

    runs = (Indicator(name="run_seconds", unit="s", better="lower"),)
    found = explained(store, started, indicators=runs)
    assert found.cells[1].speedup == pytest.approx(2.0) and found.cells[1].by_means
    assert any("is that of the phase `measure`" in note for note in found.notes)
    same = explained(store, started)
    assert same.cells[1].speedup == pytest.approx(2.0) and not same.cells[1].by_means


def test_speed_ups_that_are_not_those_of_the_figures_are_told(store: Store) -> None:
    made: list[int] = []

    def skewed(threads: int) -> TrialRecord:
        """Of a few trials with two threads the third takes twice as long."""
        made.append(threads)
        slow = 2 if threads == 2 and made.count(2) == 3 else 1
        return record(role([thread(1.0)] * threads, None, wall=slow * WALL // threads))

    told = "concurve show compares the trials of each block"
    found, same = explained(store, skewed), explained(store, uneven)
    assert any(told in note for note in found.notes)
    assert not any(told in note for note in same.notes)
    assert [cell.by_means for cell in found.cells] == [False, True, False]
    assert f"is {found.cells[1].speedup:.2f} of 2 by mean times" in found.cells[1].evidence
    assert not any(cell.by_means or "by mean" in cell.evidence for cell in same.cells)
    near = msgspec.structs.replace(found.cells[1], speedup=1.83, ceiling=2)
    assert "threads=2 loses 0.17 of that by mean times (1.83×)." in line_of(near).text


def test_the_speed_up_of_a_phase_is_that_of_the_figures(store: Store) -> None:
    """It has no parts that would have to add up to it."""
    made: list[int] = []

    def skewed(threads: int) -> TrialRecord:
        made.append(threads)
        slow = 2 if threads == 2 and made.count(2) == 3 else 1
        wall = slow * WALL // threads
        return record(role([thread(1.0)] * threads, 1000, wall=wall, phase=True))

    found = explained(store, skewed).cells[1]
    assert found.speedup == pytest.approx(2.0) and not found.by_means


def test_the_start_and_the_end_of_a_program_are_told_with_serial_work(store: Store) -> None:
    """Of the two greatest losses: a note on them far below the answer was not seen."""
    said = "The start and the end of the program are serial work, too: "

    def amdahl(threads: int) -> TrialRecord:
        alone, each = 0.3, 0.7 / threads
        wall = alone + each
        first = thread(alone / wall, futex=0.98 - alone / wall, name="main", tid=100, switches=3)
        working = thread(1.0, name="worker", lived=each / wall, switches=2)
        made = role([first, *[working] * threads], None, wall=round(wall * WALL))
        return record(msgspec.structs.replace(made, pid=100))

    found = explained(store, amdahl).cells[1]
    assert found.cause == "serial"
    text = line_of(found).text
    assert text.index(" of the lost speed-up (") < text.index(said), "its share stands before it"
    assert said not in line_of(explained(store, uneven).cells[1]).text
    share = Estimate(value=0.6, low=0.5, high=0.7)
    for second, is_told in (
        (RunnerUp("serial", share), True),
        (RunnerUp("none", share, parts=("serial",)), True),
        (RunnerUp("serial", share, is_indistinct=True), False),
        (RunnerUp("lock", share), False),
    ):
        assert bool(of_start_and_end(Verdict("lock", ""), second)) == is_told


class _Busy(_Engine):
    """Other processes use the machine in some blocks; its own threads then wait for them, unless
    they leave it ``alone``."""

    def __init__(self, blocks: tuple[int, ...], alone: bool = False) -> None:
        super().__init__(queueing)
        self.blocks = blocks
        self.alone = alone

    def run(self, spec: TrialSpec) -> bytes:
        block = int(spec.trial.split("/")[2])
        if block not in self.blocks:
            return super().run(spec)
        threads = int(spec.roles[0].argv[1])
        made = record(role([thread(0.3, 0.7)] * threads, 300.0 * threads))
        if self.alone:
            made = queueing(threads)
        machine = msgspec.structs.replace(made.machine, foreign_cpu_ns=10**9)
        made = msgspec.structs.replace(made, trial=spec.trial, machine=machine)
        return msgspec.json.encode(made)


def busy(
    store: Store, blocks: tuple[int, ...], trials: int = 10, alone: bool = False
) -> Explanation:
    rules = Rules(repeats_min=trials, repeats_max=trials, redo_max=0)
    head = new_head(small_study(rules), "normal", 1, "concurve sweep …")
    Runner(head, store, _Busy(blocks, alone), clock=FakeClock(0.001)).start()
    return explaining.explain_run(store, store.find_run(head.id))


def test_the_trials_of_the_table_are_explained(store: Store) -> None:
    """In four of ten blocks others used the machine: the quiet six are the figures, here too."""
    found, quiet = busy(store, (0, 3, 4, 8)), explained(store)
    assert [cell.cause for cell in found.cells] == ["none", "none", "cpu"]
    assert [cell.trials for cell in found.cells] == [6, 6, 6]
    assert not any(cell.doubt for cell in found.cells)
    for ours, theirs in zip(found.cells, quiet.cells, strict=True):
        assert ours.shares == theirs.shares
    assert (
        "12 of 30 trials are set aside, as in the table: the machine was not quiet." in found.notes
    )
    assert not any("in use with a doubt" in note for note in found.notes)


def test_no_cause_is_named_for_figures_in_doubt(store: Store) -> None:
    found = busy(store, tuple(range(1, 10)))
    named = {cell.cause for cell in found.cells}
    assert named <= {"in doubt", "contamination"}
    assert all(cell.doubt for cell in found.cells)
    withheld = [cell for cell in found.cells if cell.cause == "in doubt"]
    assert withheld
    for cell in withheld:
        assert cell.doubt.startswith("the machine was not quiet during 9 of 10 trials of threads=")
        assert not cell.limit
        assert cell.seeming is not None and cell.seeming[0] not in ("none", "in doubt")
    shown = "\n".join(line.plain for line in lines(explanation_document(found), 100))
    assert shown.count("No cause is named") == 1
    assert shown.count("not quiet") == 1
    report = report_of(store, store.run(found.run))
    assert report.explanation is not None
    page = "\n".join(line.plain for line in lines(run_document(report), 200))
    assert "No cause is named, because the machine was not quiet." in page
    assert "No limit was found" not in page
    written = json.loads(to_json(found))
    jsonschema.validate(written, SCHEMA)
    assert all(cell["doubt"] for cell in written["cells"])


def test_a_cause_that_quiet_trials_show_as_well_is_named(store: Store) -> None:
    """Three of ten trials are too few to be the figures, and enough to confirm what all show."""
    found = busy(store, tuple(range(3, 10)), alone=True)
    assert [cell.cause for cell in found.cells] == ["none", "none", "cpu"]
    assert all(cell.doubt for cell in found.cells)
    assert found.cells[2].evidence.endswith(
        "The quiet trials alone say the same; the machine was not quiet during 7 of 10 trials of "
        "threads=4 and 7 of 10 trials of threads=1."
    )


def test_a_single_quiet_trial_confirms_nothing(store: Store) -> None:
    found = busy(store, tuple(range(1, 10)), alone=True)
    assert {cell.cause for cell in found.cells} <= {"in doubt", "contamination"}


def locked(seen: bool = True, queue: float = 0.05) -> Make:
    """Threads that share a lock for nearly all of an operation, beside others that take a third of
    the machine; where that keeps the holder from a CPU, all others wait, too."""

    def make(threads: int) -> TrialRecord:
        own = [thread(0.95, 0.05)]
        if threads > 1:
            cpu, wait = 0.95 * (1 - queue) / threads, queue / threads
            own = [thread(cpu, wait, futex=1 - cpu - wait)] * threads
        made = role(own, 1000 if threads == 1 else 1000 * (1 - queue))
        site = SiteRecord(
            primitive="mutex", call="futex", module="/app", offset="0x1", found="cfi",
            readings=40, threads=threads, function="put", operation="pthread_mutex_lock",
        )  # fmt: skip
        if seen and threads > 1:
            made = msgspec.structs.replace(made, sites=SitesRecord(readings=40, listed=(site,)))
        return record(made, foreign=0.33)

    return make


def test_a_lock_that_others_cannot_have_made_is_named_with_its_doubt(store: Store) -> None:
    found = explained(store, locked(), rules=NOT_AGAIN)
    assert [cell.cause for cell in found.cells][1:] == ["lock", "lock"]
    four = found.cells[2]
    said = "Other processes cannot have made them wait so long; the machine was not quiet"
    assert said in four.evidence
    assert four.doubt and four.share is not None and "were in put" in four.place


def test_what_a_lock_in_doubt_allows_is_said_as_what_seems(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a Go program whose goroutines wait; where no cause is named, nothing is said of it."""
    monkeypatch.setattr(sentences, "waits_in_go", lambda *_: 7.6)
    named, withheld = (
        explained(store, make, rules=NOT_AGAIN).cells[2] for make in (locked(), locked(queue=0.6))
    )
    assert named.cause == "lock" and named.doubt
    assert named.ideal.endswith("more threads seem to gain next to nothing.")
    assert withheld.cause == "in doubt" and not withheld.ideal


def test_the_cells_of_a_run_say_of_one_another_which_places_are_locks(store: Store) -> None:
    """Of two workers one wait is sampled in each trial but every fifth, of four nine: at the same
    lock."""
    of_two = itertools.cycle([0, 1, 1, 1, 1])

    def make(threads: int, others: int = 9) -> TrialRecord:
        feeder = thread(0.1, pipe=0.9, name="feeder", switches=9000)
        waits = 0.0 if threads == 1 else 0.25 * threads / 2
        work, done = [thread(1 - waits, futex=waits)] * threads, 1000 * threads * (1 - waits)
        made = role([*work, feeder], done, words=[(50, 2)])
        readings = next(of_two) if threads == 2 else {1: 0, 4: others}[threads]
        site = SiteRecord(
            primitive="mutex", call="futex", module="/usr/bin/python3", offset="0x1", found="cfi",
            readings=readings, threads=1, function="work", operation="SemLock.__enter__", line=14,
        )  # fmt: skip
        seen = SitesRecord(readings=readings, listed=(site,) if readings else ())
        return record(msgspec.structs.replace(made, sites=seen), foreign=0.0)

    told = explained(store, make, rules=NOT_AGAIN)
    assert told.cells[1].cause == "lock"
    untold = explained(store, lambda threads: make(threads, 0), rules=NOT_AGAIN)
    assert untold.cells[1].cause != "lock"


@pytest.mark.parametrize(
    "make", [pytest.param(locked(seen=False), id="no place tells"), locked(queue=0.6)]
)
def test_a_lock_that_others_may_have_made_is_in_doubt(store: Store, make: Make) -> None:
    found = explained(store, make, rules=NOT_AGAIN)
    assert {cell.cause for cell in found.cells} <= {"in doubt", "contamination", "none"}


def held_back(share: float, quota: float = 0.5) -> Make:
    """Threads that wait for a CPU for half of their time; for so much of that their quota, that of
    so many CPUs for each, holds them back, and others, which take a third of the machine, for the
    rest."""

    def make(threads: int) -> TrialRecord:
        if threads == 1:
            return record(role([thread(0.95, 0.05)], 1000), foreign=0.33)
        ns = round(0.5 * share * threads * WALL)
        given = CpuQuota(cpus=quota * threads, periods=10, throttled=9, throttled_ns=ns)
        made = role([thread(0.5, 0.5)] * threads, 500 * threads, quota=given)
        return record(made, foreign=0.33)

    return make


def test_a_quota_is_named_with_its_doubt_where_it_is_most_of_the_waits(store: Store) -> None:
    found = explained(store, held_back(0.9), rules=NOT_AGAIN)
    assert [cell.cause for cell in found.cells][1:] == ["quota", "quota"]
    assert "Others do not use up its quota; the machine was not quiet" in found.cells[2].evidence


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(held_back(0.2), id="others had the CPUs"),
        pytest.param(held_back(0.9, quota=1.0), id="others of the group used half of the quota"),
    ],
)
def test_a_quota_that_others_may_have_used_up_is_in_doubt(store: Store, make: Make) -> None:
    found = explained(store, make, rules=NOT_AGAIN)
    assert "quota" not in {cell.cause for cell in found.cells}


def test_nothing_in_use_is_refused(store: Store) -> None:
    with pytest.raises(RunError, match="every cell failed"):
        run_of(store, queueing, fails=("1", "2", "4"))
    with pytest.raises(RunError, match="no trial in use") as refused:
        explaining.explain_run(store, store.find_run("last"))
    id_ = store.find_run("last").id
    assert refused.value.what.endswith(
        f"run {id_} has no trial in use to explain, threads=1: the program failed: no; "
        "so did 2 more cells"
    )
    assert refused.value.remedy == (
        f"concurve show {id_} --rejected says more; correct it, and start a new run"
    )


def test_a_cell_whose_trials_failed_is_named_with_why_and_what_to_do(store: Store) -> None:
    found = explained(store, fails=("2",))
    said = found.cells[1].evidence
    assert said == (
        "Nothing can be said of threads=2: its trials failed: the program failed: no. "
        f"What to do: concurve show {found.run} --rejected says more; correct it, and start a new "
        "run."
    )
    with pytest.raises(RunError) as refused:
        cell_to_confirm(found, {"threads": 2})
    assert refused.value.what == said.removesuffix(".")


def test_the_newest_run_that_can_be_explained_is_named(store: Store) -> None:
    run_of(store, queueing)
    usable = run_of(store, queueing)
    for _ in range(2):
        with pytest.raises(RunError, match="every cell failed"):
            run_of(store, queueing, fails=("1", "2", "4"))
    with pytest.raises(RunError, match="no trial in use") as refused:
        explaining.explain_run(store, store.find_run("last"))
    rows = [row.id for row in store.runs() if store.count(row.id)]
    assert usable in rows
    newest = [it for it in rows if f"concurve explain {it}" in refused.value.remedy]
    assert newest == [usable]


def test_only_so_many_records_of_a_cell_are_read(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(explaining, "TRIALS_READ", 3)
    found = explained(store)
    assert [cell.trials for cell in found.cells] == [3, 3, 3]
    assert any("the first 3 are read" in note for note in found.notes)


# -- what is missing --------------------------------------------------------------------------


def test_what_is_missing_everywhere_is_said_once(store: Store) -> None:
    found = explained(store, lambda n: record(role([thread(0.5)] * n, sampled=False)))
    assert found.missing["waits"] == "kernel says no"
    text = "\n".join(line.plain for line in lines(explanation_document(found), 200))
    assert text.count("Not granted here: what threads wait for: kernel says no.") == 1


def test_a_missing_run_queue_is_null_with_its_reason(store: Store) -> None:
    def blind(n: int) -> TrialRecord:
        return record(role([thread(0.5)] * n, sampled=False, queue_absent="no privilege"))

    written = json.loads(to_json(explained(store, blind)))
    jsonschema.validate(written, SCHEMA)
    assert written["cells"][0]["per_operation_ns"]["run_queue"] is None
    assert written["missing"]["run_queue"] == "no privilege"


def unnamed(made: TrialRecord) -> TrialRecord:
    """The same where the host lets nobody sample stacks, nor where threads run."""
    own = made.roles[0]
    absent = own.absent | {"sites": "the kernel forbids it", "hot": "no right to sample"}
    own = msgspec.structs.replace(own, sites=None, absent=absent)
    return msgspec.structs.replace(made, roles=(own,))


@pytest.mark.parametrize(
    ("make", "cause", "said"),
    [
        (
            locked(seen=False),
            "lock",
            "The function that waits for the lock is not known in 2 cells: the kernel forbids it.",
        ),
        (
            lambda n: record(role([thread(1.0)] * n, 1000)),
            "coherency",
            "The function in which CPU time grew is not known in 2 cells: no right to sample.",
        ),
        (queueing, "cpu", ""),
    ],
)
def test_why_no_function_is_named_is_said_where_a_cause_has_none(
    store: Store, make: Make, cause: str, said: str
) -> None:
    def quiet(threads: int) -> TrialRecord:
        made = unnamed(make(threads))
        machine = msgspec.structs.replace(made.machine, foreign_cpu_ns=0)
        return msgspec.structs.replace(made, machine=machine)

    found = explained(store, quiet)
    assert found.cells[2].cause == cause
    why = {"sites": "the kernel forbids it", "hot": "no right to sample"}
    assert found.missing == why
    text = " ".join(" ".join(it.plain for it in lines(explanation_document(found), 200)).split())
    told = [reason for reason in why.values() if reason in text]
    assert told == ([said.rsplit(": ")[1].rstrip(".")] if said else []) and said in text
    written = json.loads(to_json(found))
    jsonschema.validate(written, SCHEMA)
    assert written["missing"] == why


def test_a_trial_without_places_lacks_nothing_where_others_have_them(store: Store) -> None:
    trials = iter(range(100))

    def make(threads: int) -> TrialRecord:
        made = locked()(threads)
        return unnamed(made) if next(trials) % 3 == 0 else made

    found = explained(store, make)
    assert any(cell.sites for cell in found.cells)
    assert not any("sites" in cell.missing for cell in found.cells if cell.sites)


# -- views ------------------------------------------------------------------------------------


def test_the_json_follows_its_schema(store: Store) -> None:
    written = json.loads(to_json(explained(store)))
    jsonschema.validate(written, SCHEMA)
    last = written["cells"][2]
    assert last["parameters"] == {"threads": 4} and last["cause"] == "cpu"
    assert last["per_operation_ns"]["run_queue"] == pytest.approx(1e6)
    assert last["excess_ns"]["run_queue"]["low"] > 0


def test_reports_have_a_section_with_a_chart(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    row = store.find_run(run_of(store, queueing))
    page = export_run(store, row, "html").decode()
    assert "What limits it" in page and "Where the thread time of an operation goes" in page
    assert "50 % of its thread time waiting for a CPU (4 threads on 2 CPUs)" in page
    text = export_run(store, row, "markdown").decode()
    assert "| 4 | 2 | 50 % | 50 % | 0 % | cpu |" in text and "- **cpu**: With threads=4" in text
    monkeypatch.setattr(explaining, "REPORT_TRIALS", 3)
    assert "What limits it" not in export_run(store, row, "markdown").decode()


def test_the_chart_divides_each_cell_s_time(store: Store) -> None:
    chart = composition(explained(store))
    assert chart is not None
    (rows,) = chart.spec.to_dict()["datasets"].values()
    found = [(row["level"], row["part"], row["time"]) for row in rows]
    assert found[:2] == [("1", "on a CPU", 1.0), ("2", "on a CPU", 1.0)]
    assert found[2:] == [("4", "on a CPU", 1.0), ("4", "waiting for a CPU", 1.0)]


def test_charts_without_a_work_factor_and_of_several(store: Store) -> None:
    factors = msgspec.structs.replace(small_study(FIVE, threads=(1, 2), sync=("none", "cas")))
    for work, drawn in ((None, "threads=1 sync=none"), ("threads", "sync=none")):
        found = msgspec.structs.replace(explained(store, factors=factors.factors), work=work)
        chart = composition(found)
        assert chart is not None and drawn in to_svg(chart)
    nothing = msgspec.structs.replace(found, cells=())
    assert composition(nothing) is None


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal(store: Store, width: int) -> None:
    table = list(lines(explanation_document(explained(store)), width))
    if width >= 40:
        assert max(cell_len(line.plain) for line in table) <= width
    assert any("cpu" in line.plain for line in table)


def test_a_bar_gives_each_part_its_letters() -> None:
    assert bar(bar_of({"cpu": 0.5, "run_queue": 0.25, "futex": 0.25}), 8) == "ccccrrff"
    assert bar(bar_of({"cpu": 1 / 3, "run_queue": 1 / 3, "disk": 1 / 3}), 10).count("c") in (3, 4)
    assert len(bar(bar_of({"cpu": 0.996, "run_queue": 0.002, "disk": 0.002}), 24)) == 24


def test_the_verb_and_the_interface_for_python(
    store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    id_ = run_of(store, queueing)
    db = str(tmp_path / "concurve.db")
    for arguments, sign in (((), "What limits small"), (("last", "--json"), '"cause":"cpu"')):
        monkeypatch.setattr(sys, "argv", ["concurve", "explain", *arguments, "--db", db])
        main()
        assert sign in capsys.readouterr().out
    assert concurve.load(id_, db=db).explain().cells[2].cause == "cpu"


def test_an_unknown_run_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    db = str(tmp_path / "none.db")
    monkeypatch.setattr(sys, "argv", ["concurve", "explain", "--db", db])
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == 4 and "there is no store" in capsys.readouterr().err


@pytest.mark.real
@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_a_real_run_is_explained(tmp_path: Path) -> None:
    """Where the time went, and on what: what is certain on a busy machine, too."""
    lab = Lab(tmp_path)
    command = [TARGETS, "sleep", "--threads", "{threads}", "--ms", "60"]
    done = lab.run("sweep", "-P", "threads", "1,4", "--repeats", "3..3", "--", *command)
    assert done.returncode == 0, done.stderr
    done = lab.run("explain", "--json")
    assert done.returncode == 0, done.stderr
    written = json.loads(done.stdout)
    jsonschema.validate(written, SCHEMA)
    for cell in written["cells"]:
        times = cell["per_operation_ns"]
        parts = [times[name] or 0 for name in ("cpu", "run_queue", "blocked")]
        assert sum(parts) == pytest.approx(times["total"])
        assert cell["cause"] not in ("lock", "io", "client", "coherency"), cell


def test_the_speedup_that_is_divided_is_that_of_the_table(store: Store) -> None:
    """The machine changes from block to block, so the ratio of the mean times is another one."""
    slower = {1: [1.0, 1.0, 1.1, 1.0, 1.6], 2: [1.0, 1.03, 1.0, 1.07, 1.0], 4: [1.0] * 5}
    left = {threads: iter(walls) for threads, walls in slower.items()}

    def drifting(threads: int) -> TrialRecord:
        made = uneven(threads)
        only = made.roles[0]
        longer = round(only.wall_ns * next(left[threads]))
        return msgspec.structs.replace(made, roles=(msgspec.structs.replace(only, wall_ns=longer),))

    run = run_of(store, drifting, NOT_AGAIN)
    found = explaining.explain_run(store, store.find_run(run))
    figures = figures_of(store, store.find_run(run)).findings
    for cell in found.cells[1:]:
        shown = figures.cells[cell.index].indicators["speedup"].value
        assert cell.speedup == shown
        assert f"threads=1 is {shown:.2f} of 2" in cell.evidence
        assert cell.speedup_possible == pytest.approx(shown + sum(cell.speedup_lost.values()))
    assert not any("ratio of the mean times" in note for note in found.notes)


def test_the_parts_of_a_loss_add_up_in_narrow_places_too(store: Store) -> None:
    """What has no column is named, with what it adds up to."""
    found = explained(store, uneven)
    lost = {"serial": 0.1, "imbalance": 0.2, "stage": 0.05, "collector": 0.3, "quota": 0.07,
            "queue": 0.4, "waiting": 1.2, "cpu": 0.5, "helping": 0.18}  # fmt: skip
    cell = msgspec.structs.replace(
        found.cells[1], speedup=1.0, speedup_possible=4.0, speedup_lost=lost
    )
    document = explanation_document(msgspec.structs.replace(found, cells=(cell,)))
    for width in (60, 80, 100, 200):
        text = " ".join(" ".join(line.plain for line in lines(document, width)).split())
        heading = next(line.plain for line in lines(document, width) if "ideal" in line.plain)
        assert "locks, I/O" in heading, "the greatest part has its column"
        missing = [
            part for part, name in LOSSES.items() if (SHORT.get(part) or name) not in heading
        ]
        told = re.search(r"not shown: (.*?), (\d\.\d\d) at most", text)
        assert (told is None) == (not missing)
        if told is not None:
            named = " and ".join(told[1].split(", ")).split(" and ")
            assert sorted(named) == sorted(LOSSES[part] for part in missing)
            assert float(told[2]) == pytest.approx(sum(lost[part] for part in missing), abs=0.006)


def test_each_column_of_the_tables_stands_in_the_page_on_limits() -> None:
    page = (Path(__file__).parents[2] / "docs" / "limits.md").read_text(encoding="utf-8")
    place = WaitSite(
        name="put", primitive="mutex", module="a.out", readings=9, share=1.0, threads=2, held=9,
        holders=(Holders(name="worker", threads=1, readings=9),),
    )  # fmt: skip
    one = Estimate(value=1.0, n=5)
    cell = CellExplanation(
        parameters={"threads": 2}, cause="lock", evidence="", trials=5,
        per_operation={"total": one},
        shares={"cpu": 1.0}, server_cpu=one, sites=(place,), speedup=1.0, speedup_possible=2.0,
        speedup_lost=dict.fromkeys(LOSSES, 0.1),
    )  # fmt: skip
    found = Explanation(
        run="r", study="s", factors=("threads",), work="threads", operation="", cells=(cell,)
    )
    tables = [
        block
        for section in explanation_document(found).blocks
        if isinstance(section, Section)
        for block in section.blocks
        if isinstance(block, Table)
    ]
    assert len(tables) == 3
    titles = [column.short or column.title for table in tables for column in table.columns]
    rows = {row.split(" | ")[0].removeprefix("| ") for row in page.splitlines() if row[:3] == "| `"}
    missing_rows = [title for title in titles if title != "threads" and f"`{title}`" not in rows]
    assert not missing_rows


def test_who_counted_the_operations_is_named_where_their_output_is_read(store: Store) -> None:
    """The measured server reported nothing."""

    def made(threads: int) -> TrialRecord:
        load = role([thread(0.2, name="load")], None, "load")
        text = f"{1000 * threads} requests\n{1000.0 * threads} per second"
        load = msgspec.structs.replace(load, stdout=Output(len(text), text))
        return record(role([thread(0.5, poll=0.5)], None), load)

    roles = (
        Role(name="target", command=("srv", "{threads}"), end="serve"),
        Role(name="load", command=("/opt/bin/wrk",), purpose="load"),
    )
    extracts = (
        Extract("load.requests_per_second", r"([\d.]+) per second", "1/s", role="load"),
        Extract("load.operations", r"(\d+) requests", role="load"),
    )
    labelled = Indicator("load.requests_per_second", "higher", "1/s", "requests per second")
    study = {"roles": roles, "extracts": extracts}
    found = explained(store, made, **study)
    assert found.operation.startswith("operations counted by wrk; ")
    found = explained(store, made, **study, indicators=(labelled,))
    assert found.operation.startswith("requests counted by wrk; ")


@pytest.mark.parametrize(
    ("late", "where"), [((1,), "In threads=1, the"), ((1, 2, 4), "The"), ((), "")]
)
def test_the_cells_of_which_only_the_whole_life_of_a_server_is_known_are_named(
    store: Store, late: tuple[int, ...], where: str
) -> None:
    def made(threads: int) -> TrialRecord:
        server = role([thread(0.5, poll=0.5)] * 2, None)
        load = role([thread(0.2, name="load", poll=0.8)], 1000.0, "load")
        before = 0.4 if threads in late else 0.05
        load = msgspec.structs.replace(
            load,
            released_ns=round(before * server.wall_ns),
            wall_ns=round((0.98 - before) * server.wall_ns),
            ended_by="itself",
        )
        return record(server, load)

    roles = (
        Role(name="target", command=("true", "{threads}"), end="serve"),
        Role(name="load", command=("true",), purpose="load"),
    )
    notes = [it for it in explained(store, made, roles=roles).notes if "of its whole life" in it]
    assert bool(notes) is bool(where)
    assert all(it.startswith(f"{where} server's times and CPUs used are") for it in notes)


def test_it_is_told_in_how_many_trials_only_the_whole_life_is_known(store: Store) -> None:
    first = itertools.chain([True], itertools.repeat(False))

    def made(threads: int) -> TrialRecord:
        server = role([thread(0.5, poll=0.5)] * 2, None)
        load = role([thread(0.2, name="load", poll=0.8)], 1000.0, "load")
        before = 0.4 if next(first) else 0.05
        load = msgspec.structs.replace(
            load,
            released_ns=round(before * server.wall_ns),
            wall_ns=round((0.98 - before) * server.wall_ns),
            ended_by="itself",
        )
        return record(server, load)

    roles = (
        Role(name="target", command=("true", "{threads}"), end="serve"),
        Role(name="load", command=("true",), purpose="load"),
    )
    found = explained(store, made, roles=roles)
    [note] = [it for it in found.notes if "of its whole life" in it]
    assert re.match(r"In threads=\d \(1 of \d+ trials\), the server's times and CPUs used", note)
    assert "CPUs used are told by the other trials" in note and len(note.split()) <= 40
