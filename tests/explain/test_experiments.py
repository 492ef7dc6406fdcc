"""Experiments on a cell: which trials they are, what is refused, and what their trials say."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest

from concurve.cli import main
from concurve.cli.confirming import Confirming
from concurve.definition.controls import ControlsTemplate
from concurve.definition.study import Role, Rules, Study
from concurve.errors import ConcurveError, RunError, StudyError
from concurve.explain.confirmation import confirm_run
from concurve.explain.experiments import (
    AS_IS,
    HELD,
    ONE_CPU,
    PROCESSES,
    Experiments,
    Reach,
    cell_to_confirm,
    experiments,
    reach_of,
    refuse_useless,
)
from concurve.explain.explanation import explain_run
from concurve.exports import export_blocked, export_run
from concurve.findings.confirmation import Confirmation
from concurve.findings.explanation import CellExplanation, WaitSite
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.planning.plan import make_plan, trial_spec
from concurve.report.json.explanation import to_json
from concurve.report.sections.confirmation import confirmation_document
from concurve.report.sections.limits import explanation_document
from concurve.report.terminal import lines
from concurve.store import Store
from concurve.store.rows import RunRow
from concurve.store.run_head import RunHead, decode_head
from concurve.wire.record import GrantedControls, PhaseRecord, SiteRecord, SitesRecord, TrialRecord
from concurve.wire.report import IndicatorLine
from concurve.wire.spec import TrialSpec
from tests.helpers.explaining import record, role, thread
from tests.helpers.fakes import FakeClock, FakeEngine, small_study

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "schema" / "explain.schema.json").read_text(encoding="utf-8")
)
FIVE = Rules(repeats_min=5, repeats_max=5)
CPUS = (0, 1)
PERTURB = "/opt/concurve-perturb"

Answer = Callable[[TrialSpec], TrialRecord]


class _Engine(FakeEngine):
    """Answers with what a function makes of the spec."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.answer = answer

    def run(self, spec: TrialSpec) -> bytes:
        return msgspec.json.encode(msgspec.structs.replace(self.answer(spec), trial=spec.trial))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "concurve.db"))


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand-ins for the compiled programs, which these tests never start."""
    folder = tmp_path / "native"
    folder.mkdir()
    for name in ("concurve-perturb", "concurve-trial"):
        (folder / name).write_text("#!/bin/sh\nexit 1\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("CONCURVE_NATIVE", str(folder))


def threads_of(spec: TrialSpec) -> int:
    return int(spec.roles[-1].argv[-1])


def held_of(spec: TrialSpec) -> float | None:
    """How many times as long the lock is held, if the library is in front of it."""
    argv = spec.roles[-1].argv
    return float(argv[argv.index("--held") + 1]) if "--held" in argv else None


def site(**more: object) -> SiteRecord:
    given: dict[str, object] = {
        "primitive": "mutex",
        "call": "futex",
        "module": "/opt/app",
        "offset": "0x1234",
        "found": "cfi",
        "readings": 40,
        "threads": 2,
        "function": "Table::add(int)",
        "operation": "pthread_mutex_lock",
        "lock": "table_mutex",
    }
    return SiteRecord(**(given | more))  # type: ignore[arg-type]


def locked(spec: TrialSpec, cost: float = 1.0, *sites: SiteRecord) -> TrialRecord:
    """Threads that wait for a lock; with the library an operation takes longer by ``cost`` for each
    time that the lock is held longer."""
    threads, held = threads_of(spec), held_of(spec)
    if threads == 1:
        return record(role([thread(0.99)]))
    wall = round(1e9 * (1 + cost * ((held or 1.0) - 1)))
    waiting = [thread(1 / threads, futex=1 - 1 / threads, switches=9000)] * threads
    made = role(waiting, 1000, words=[(100, threads)], wall=wall)
    listed = sites or (site(),)
    seen = SitesRecord(readings=sum(it.readings for it in listed), listed=tuple(listed))
    reported = made.indicators
    if held is not None:
        reported += (
            IndicatorLine("perturbed_holds", 600.0, worker="1"),
            IndicatorLine("perturbed_holds", 400.0, worker="2"),
            IndicatorLine("perturbed_held_seconds", 0.9, "s", worker="1"),
        )
    return record(msgspec.structs.replace(made, sites=seen, indicators=reported))


def shared(spec: TrialSpec, hurts: float = 1.0) -> TrialRecord:
    """Threads that write to one line of a cache: on one CPU an operation takes half the CPU time.
    A process that copies memory hurts by a factor."""
    threads = threads_of(spec)
    cpus = spec.roles[-1].controls.cpus
    copies = any("memory" in one.argv for one in spec.roles)
    if threads == 1:
        return record(role([thread(1.0)]))
    if cpus is not None and len(cpus) == 1:
        return record(role([thread(0.5, 0.5)] * threads, 1000.0, cpus=(cpus[0],)))
    return record(role([thread(1.0)] * threads, 1000.0 / (hurts if copies else 1.0)))


def measured(store: Store, answer: Answer, study: Study | None = None) -> RunHead:
    """A stored run over 1 and 2 threads."""
    head = new_head(study or small_study(FIVE, threads=(1, 2)), "normal", 1, "concurve sweep …")
    Runner(head, store, _Engine(answer), clock=FakeClock(0.001)).start()
    return head


def explained(store: Store, head: RunHead) -> CellExplanation:
    return cell_to_confirm(explain_run(store, store.find_run(head.id)), {})


def planned(
    store: Store, head: RunHead, why_not: str = "", budget: float = 600.0, seconds: float = 0.1
) -> Experiments:
    cell = explained(store, head)
    reach = reach_of(cell, lambda path: why_not) if cell.cause == "lock" else Reach()
    return experiments(head, cell, reach, PERTURB, CPUS, seconds, budget)


def tried(store: Store, head: RunHead, made: Experiments, answer: Answer) -> Confirmation:
    new = new_head(made.study, head.effort, 2, "concurve explain --confirm")
    new = msgspec.structs.replace(new, confirms=made.confirms)
    Runner(new, store, _Engine(answer), clock=FakeClock(0.001)).start()
    return confirm_run(store, store.find_run(new.id))


def specs(made: Experiments) -> dict[str, TrialSpec]:
    """The first trial of each experiment."""
    plan = make_plan(made.study, "normal", 1)
    find = lambda name, *_: (f"/opt/{name}",)  # noqa: E731
    return {
        str(cell.parameters[made.study.factors[-1].name]): trial_spec(plan, cell, "t", CPUS, find)
        for cell in plan.cells
    }


# -- which trials -----------------------------------------------------------------------------


def test_a_lock_is_held_longer_in_doses(store: Store) -> None:
    made = planned(store, measured(store, locked))
    found = specs(made)
    assert list(found) == [AS_IS, *HELD]
    assert found[AS_IS].roles[-1].argv == ("true", "2")
    assert found["held-1.25"].roles[-1].argv == (
        PERTURB, "hold", "--site", "0x1234@/opt/app", "--held", "1.25", "--", "true", "2",
    )  # fmt: skip
    assert all(len(spec.roles) == 1 for spec in found.values())
    assert made.confirms.lock == "table_mutex" and made.confirms.cause == "lock"


def test_every_place_that_takes_the_lock_is_named(store: Store) -> None:
    places = (site(), site(function="Table::drop()", offset="0x99", readings=9),
              site(function="log()", offset="0x77", readings=9, lock="log_mutex"))  # fmt: skip
    made = planned(store, measured(store, lambda spec: locked(spec, 1.0, *places)))
    argv = specs(made)["held-2"].roles[-1].argv
    named = [argv[at + 1] for at, word in enumerate(argv) if word == "--site"]
    assert named == ["0x1234@/opt/app", "0x99@/opt/app"]


def test_a_file_with_braces_in_its_name_is_taken_as_it_is(store: Store) -> None:
    places = (site(module="/opt/{threads}/{x.y}"),)
    made = planned(store, measured(store, lambda spec: locked(spec, 1.0, *places)))
    assert "0x1234@/opt/{threads}/{x.y}" in specs(made)["held-1"].roles[-1].argv


def test_shared_data_is_taken_apart_by_one_cpu_and_hogs(store: Store) -> None:
    made = planned(store, measured(store, shared))
    found = specs(made)
    assert list(found)[:2] == [AS_IS, ONE_CPU]
    assert found[ONE_CPU].roles[-1].controls.cpus == (0,)
    assert found[AS_IS].roles[-1].controls.cpus is None
    hog = found["memory-hog-half"].roles[0]
    assert hog.argv == ("/opt/perturb", "hog", "--take", "memory", "--share", "0.5")
    assert hog.end == "serve" and len(found[ONE_CPU].roles) == 1


def test_the_cpus_of_a_role_are_kept_and_one_of_them_is_taken(store: Store) -> None:
    study = small_study(FIVE, threads=(1, 2))
    bound = Role(name="target", command=("true", "{threads}"),
                 controls=ControlsTemplate(cpus="0-{threads}"), prefix=("nice",))  # fmt: skip
    head = measured(store, shared)
    head = msgspec.structs.replace(head, study=msgspec.structs.replace(study, roles=(bound,)))
    made = experiments(head, explained(store, head), Reach(), PERTURB, (0, 1, 2, 3), 0.1, 600.0)
    plan = make_plan(made.study, "normal", 1)
    by_level = {
        cell.parameters["experiment"]: trial_spec(
            plan, cell, "t", (0, 1, 2, 3), lambda name, *_: (name,)
        ).roles[-1]
        for cell in plan.cells
    }
    assert by_level[AS_IS].controls.cpus == (0, 1, 2)
    assert by_level[ONE_CPU].controls.cpus == (0,)
    assert by_level[AS_IS].argv == ("nice", "true", "2")


def test_trials_are_as_many_as_the_budget_has_room_for(store: Store) -> None:
    head = measured(store, locked)
    many = planned(store, head, budget=3600.0).study.effort("normal").rules
    few = planned(store, head, budget=60.0, seconds=2.0).study.effort("normal").rules
    assert many.repeats_min == many.repeats_max == 12
    assert few.repeats_min == 4 and few.time_allowed_seconds == 60.0
    with pytest.raises(StudyError, match="too short: 5 experiments, 3 times each"):
        planned(store, head, budget=10.0, seconds=2.0)


def test_the_study_keeps_what_its_texts_need(store: Store) -> None:
    made = planned(store, measured(store, locked))
    assert [factor.name for factor in made.study.factors] == ["threads", "experiment"]
    assert made.study.factors[0].levels == (2,)
    assert made.study.name == "small-confirm" and made.study.claims == ()


# -- what is refused --------------------------------------------------------------------------


def test_a_lock_of_another_library_is_out_of_reach() -> None:
    def reach(**more: object) -> Reach:
        given = WaitSite(name="f", primitive="mutex", module="/opt/app", readings=50, share=1.0,
                         threads=2, operation="pthread_mutex_lock", offsets=("0x1",))  # fmt: skip
        sites = (msgspec.structs.replace(given, **more),)
        cell = CellExplanation(parameters={}, cause="lock", evidence="", sites=sites)
        return reach_of(cell, lambda path: f"{path} is odd" if more.get("module") else "")

    assert reach().sites and not reach().why_not
    assert reach(operation="pthread_rwlock_wrlock", primitive="reader_writer_lock").sites
    assert reach(operation="std::lock_guard<std::mutex>::lock_guard(std::mutex&)").sites
    assert reach(operation=None).sites
    for other in (
        "std::sys::sync::mutex::futex::Mutex::lock_contended",
        "std::sync::poison::mutex::Mutex<T>::lock",
        "parking_lot::raw_mutex::RawMutex::lock_slow",
        "sync.(*Mutex).Lock",
    ):
        assert "which is no mutex" in reach(operation=other).why_not
        assert not reach(operation=other).sites
    assert not reach(primitive="condition", operation="pthread_cond_wait").sites
    assert reach(module="/static").why_not == "/static is odd"
    bare = CellExplanation(parameters={}, cause="lock", evidence="", missing={"sites": "no right"})
    assert reach_of(bare, lambda path: "").why_not == "no right"


def test_why_no_place_is_known_comes_from_the_records_to_the_text(store: Store) -> None:
    def blind(spec: TrialSpec) -> TrialRecord:
        made = locked(spec)
        absent = {"sites": "kernel.yama.ptrace_scope is 3"}
        own = msgspec.structs.replace(made.roles[0], sites=None, absent=absent)
        return msgspec.structs.replace(made, roles=(own,))

    head = measured(store, blind)
    assert explained(store, head).cause == "lock"
    found = tried(store, head, planned(store, head), blind)
    text = " ".join(line.plain for line in lines(confirmation_document(found), 120))
    assert found.result == "out of reach" and "ptrace_scope is 3" in text


def test_where_most_wait_at_a_barrier_the_lock_is_the_next_place() -> None:
    """In rounds of operations with one lock, the slowest is slow for the lock."""
    barrier = WaitSite(name="run", primitive="barrier", module="/opt/app", readings=50, share=0.8,
                       threads=2, operation="pthread_barrier_wait", offsets=("0x1",))  # fmt: skip
    mutex = msgspec.structs.replace(
        barrier, name="add", primitive="mutex", operation="pthread_mutex_lock", offsets=("0x2",)
    )
    cell = CellExplanation(parameters={}, cause="lock", evidence="", sites=(barrier, mutex))
    assert reach_of(cell, lambda path: "").sites == (mutex,)
    alone = msgspec.structs.replace(cell, sites=(barrier,))
    assert "pthread_barrier_wait, which is no mutex" in reach_of(alone, lambda path: "").why_not


def test_what_no_experiment_confirms_is_refused(store: Store) -> None:
    head = measured(store, lambda spec: record(role([thread(1.0)] * threads_of(spec),
                                                    1000.0 * threads_of(spec))))  # fmt: skip
    found = explain_run(store, store.find_run(head.id))
    with pytest.raises(RunError, match="has a cause that an experiment can confirm"):
        cell_to_confirm(found, {})
    with pytest.raises(RunError, match=r"^no cell of run \S+ has a cause that"):
        cell_to_confirm(found, {})
    with pytest.raises(RunError, match=r"^the cell with threads=2 of run \S+ has no cause that"):
        cell_to_confirm(found, {"threads": 2})
    withheld = tuple(
        msgspec.structs.replace(cell, cause="in doubt", doubt="busy") for cell in found.cells
    )
    doubtful = msgspec.structs.replace(found, cells=withheld)
    with pytest.raises(RunError, match=r"\(threads=2: in doubt\)"):
        cell_to_confirm(doubtful, {"threads": 2})
    with pytest.raises(RunError, match="no cell with threads=7"):
        cell_to_confirm(found, {"threads": 7})


def test_experiments_are_not_confirmed_by_experiments(store: Store) -> None:
    head = measured(store, locked)
    cell = explained(store, head)
    made = planned(store, head)
    again = msgspec.structs.replace(head, confirms=made.confirms)
    with pytest.raises(RunError, match="are experiments themselves"):
        experiments(again, cell, Reach(), PERTURB, CPUS, 0.1, 600.0)


def test_one_cpu_leaves_nothing_to_try(store: Store) -> None:
    head = measured(store, locked)
    with pytest.raises(ConcurveError, match="one CPU"):
        experiments(head, explained(store, head), Reach(why_not="x"), PERTURB, (0,), 0.1, 600.0)


# -- what their trials say --------------------------------------------------------------------


def test_a_lock_that_costs_is_confirmed_with_its_gain(store: Store) -> None:
    head = measured(store, locked)
    found = tried(store, head, planned(store, head), locked)
    assert found.result == "confirmed"
    assert found.gain is not None and found.gain.times.value == pytest.approx(2.0, rel=0.02)
    assert found.evidence == (
        "holding it longer takes longer; if it were held half as long, threads=2 would do "
        "2.00 [1.70, 2.00] times as much."
    )
    assert (found.of, found.lock, found.holds) == (head.id, "table_mutex", 1.0)
    assert found.held_ns == pytest.approx(0.9e6)
    assert found.held_share is not None
    assert found.held_share.value == pytest.approx(0.9)


def test_the_time_for_which_experiments_saw_a_lock_held_says_what_it_allows(store: Store) -> None:
    head = measured(store, locked)
    row = store.find_run(head.id)
    before = explain_run(store, row).cells[-1]
    assert "the experiments" not in before.ideal
    tried(store, head, planned(store, head), locked)
    after = explain_run(store, row).cells[-1]
    assert before.speedup == pytest.approx(1.0)
    assert after.ideal == (
        "In the experiments a thread had the lock for 90 % of the time: however many workers there "
        "are, no more than 1.11× the speed of threads=1 is possible."
    )


def in_phase(spec: TrialSpec) -> TrialRecord:
    """Locks are counted outside of the phase, too."""
    made = locked(spec)
    (own,) = made.roles
    phase = PhaseRecord("measure", 0, own.wall_ns // 2, own.usage, waits=own.waits)
    return msgspec.structs.replace(made, roles=(msgspec.structs.replace(own, phases=(phase,)),))


def on_one_cpu(spec: TrialSpec) -> TrialRecord:
    """Who has the lock may wait for the CPU."""
    made = locked(spec)
    (own,) = made.roles
    own = msgspec.structs.replace(own, controls=GrantedControls(cpus=(0,), nice=0))
    return msgspec.structs.replace(made, roles=(own,))


@pytest.mark.parametrize("answer", [in_phase, on_one_cpu])
def test_a_lock_that_is_seen_held_for_longer_than_its_work_bounds_nothing(
    store: Store, answer: Answer
) -> None:
    head = measured(store, locked)
    assert tried(store, head, planned(store, head), answer).held_share is None
    assert "the experiments" not in explain_run(store, store.find_run(head.id)).cells[-1].ideal


def test_experiments_that_cannot_be_read_leave_the_others(store: Store) -> None:
    head = measured(store, locked)
    tried(store, head, planned(store, head), locked)
    name = f"{head.study.name}-confirm"
    for id_, raw in (("of-a-newer-one", b'{"format": 999}'), ("no-head", b"{}")):
        store.add_run(RunRow(id_, name, "2026-11-21T10:10:10", "complete", "", raw))
    found = explain_run(store, store.find_run(head.id))
    assert [it.result for it in found.confirmations] == ["confirmed"]
    left = [note for note in found.notes if "of experiments is left out: " in note]
    assert [note.split()[1] for note in left] == ["no-head", "of-a-newer-one"]
    assert "run of-a-newer-one has format 999" in left[1]


def test_a_lock_that_costs_nothing_is_not_confirmed(store: Store) -> None:
    head = measured(store, locked)
    found = tried(store, head, planned(store, head), lambda spec: locked(spec, 0.0))
    assert found.result == "not confirmed" and "would gain nothing" in found.evidence


def test_a_lock_that_the_library_does_not_see_is_out_of_reach(store: Store) -> None:
    def unseen(spec: TrialSpec) -> TrialRecord:
        made = locked(spec)
        bare = msgspec.structs.replace(made.roles[0], indicators=made.roles[0].indicators[:1])
        return msgspec.structs.replace(made, roles=(bare,))

    head = measured(store, locked)
    found = tried(store, head, planned(store, head), unseen)
    assert found.result == "out of reach" and found.gain is None


def test_a_statically_linked_program_is_out_of_reach_and_says_why(store: Store) -> None:
    head = measured(store, locked)
    made = planned(store, head, why_not="/opt/app is statically linked")
    assert list(specs(made)) == [AS_IS, ONE_CPU]
    found = tried(store, head, made, locked)
    assert found.result == "out of reach"
    assert found.evidence.startswith("/opt/app is statically linked. On one CPU")


def test_a_lock_that_no_experiment_reaches_is_refused_before_its_trials(store: Store) -> None:
    head = measured(store, locked)
    made = planned(store, head, why_not="/opt/app.py cannot be read: no ELF file of 64 bits")
    reach = reach_of(explained(store, head), lambda path: "no ELF file")
    with pytest.raises(RunError, match=r"^threads=2: no experiment reaches its lock") as refused:
        refuse_useless(made, reach)
    assert "of the C library" in str(refused.value) and "no ELF file" in str(refused.value)
    refuse_useless(planned(store, head), reach_of(explained(store, head), lambda path: ""))
    factor = made.study.factors[-1]
    factor = msgspec.structs.replace(factor, levels=(*factor.levels, PROCESSES))
    study = msgspec.structs.replace(made.study, factors=(*made.study.factors[:-1], factor))
    refuse_useless(made._replace(study=study), reach)


def test_shared_bandwidth_is_no_lock(store: Store) -> None:
    refuse_useless(planned(store, measured(store, shared)), Reach())


@pytest.mark.parametrize(("hurts", "result"), [(1.0, "confirmed"), (1.5, "open")])
def test_shared_data_is_confirmed_where_no_bandwidth_is_missed(
    store: Store, hurts: float, result: str
) -> None:
    head = measured(store, shared)
    assert explained(store, head).cause == "coherency"
    found = tried(store, head, planned(store, head), lambda spec: shared(spec, hurts))
    assert found.result == result
    assert "on one CPU an operation takes 0.50 [0.50, 0.50] times the CPU time" in found.evidence


def test_cpu_time_that_stays_is_not_shared_data(store: Store) -> None:
    def stays(spec: TrialSpec) -> TrialRecord:
        cpus = spec.roles[-1].controls.cpus
        half = [thread(0.5, 0.5)] * 2
        return record(role(half, 500.0)) if cpus else shared(spec)

    head = measured(store, shared)
    found = tried(store, head, planned(store, head), stays)
    assert found.result == "not confirmed"


def test_few_blocks_leave_it_open(store: Store) -> None:
    head = measured(store, locked)
    made = planned(store, head)
    rules = msgspec.structs.replace(made.study.effort("normal").rules, repeats_min=2, repeats_max=2)
    effort = msgspec.structs.replace(made.study.effort("normal"), rules=rules)
    made = made._replace(study=msgspec.structs.replace(made.study, efforts={"normal": effort}))
    found = tried(store, head, made, locked)
    assert found.result == "open" and "only 2 blocks" in found.evidence


# -- where it is shown ------------------------------------------------------------------------


def test_the_run_that_was_explained_shows_what_the_experiments_say(store: Store) -> None:
    head = measured(store, locked)
    alone = tried(store, head, planned(store, head), locked)
    found = explain_run(store, store.find_run(head.id))
    assert [it.run for it in found.confirmations] == [alone.run]
    for document in (explanation_document(found), confirmation_document(alone)):
        text = " ".join(line.plain for line in lines(document, 120))
        assert "confirmed" in text and "2.00 [1.70, 2.00] times as much" in " ".join(text.split())
    exported = json.loads(to_json(found))
    jsonschema.validate(exported, SCHEMA)
    assert exported["confirmations"][0]["gain"]["times"]["value"] == pytest.approx(2.0)


def test_the_head_of_experiments_names_what_they_are_on(store: Store) -> None:
    head = measured(store, locked)
    alone = tried(store, head, planned(store, head), locked)
    confirms = decode_head(store.find_run(alone.run)).confirms
    assert confirms is not None and (confirms.run, confirms.cause) == (head.id, "lock")
    with pytest.raises(RunError, match="are no experiments"):
        confirm_run(store, store.find_run(head.id))


def test_processes_take_the_place_of_threads_where_the_study_has_both(store: Store) -> None:
    study = small_study(FIVE, threads=(1, 2), kind=("threads", "processes"))
    command = ("true", "--{kind}", "{kind.flag}", "{{kind}}", "{threads}")
    worker = Role(name="target", command=command)
    parts = {"kind": {"threads": {"flag": "-t"}, "processes": {"flag": "-p"}}}
    study = msgspec.structs.replace(study, roles=(worker,), level_parts=parts, work="threads")
    head = measured(store, locked, study)
    cell = cell_to_confirm(
        explain_run(store, store.find_run(head.id)), {"threads": 2, "kind": "threads"}
    )
    reach = reach_of(cell, lambda path: "")
    made = experiments(head, cell, reach, PERTURB, CPUS, 0.1, 600.0)
    found = specs(made)
    assert list(found) == [AS_IS, *HELD, "processes"]
    assert found[AS_IS].roles[-1].argv == ("true", "--threads", "-t", "{kind}", "2")
    assert found["processes"].roles[-1].argv == ("true", "--processes", "-p", "{kind}", "2")
    said = tried(store, head, made, locked)
    rows = {item.level: item.says for item in said.tried}
    assert rows["processes"] == "processes in place of threads"


# -- by the command line ----------------------------------------------------------------------


def test_a_dry_run_says_what_would_be_run(
    store: Store,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    head = measured(store, shared)
    db = str(tmp_path / "concurve.db")
    runs = len(store.runs())
    line = ["concurve", "explain", head.id, "--confirm", "--dry-run", "--seed", "1", "--db", db]
    # The runner here is a stub, which checks nothing.
    monkeypatch.setattr("concurve.cli.planning.check_plan", lambda *_: None)
    monkeypatch.setattr("sys.argv", line)
    with contextlib.suppress(SystemExit):
        main()
    said = capsys.readouterr().out
    assert said.startswith(f"confirm coherency of run {head.id}\n")
    assert "6 cells × 12 each" in said and "hog --take memory" in said
    assert len(store.runs()) == runs


def test_the_command_of_a_confirmation_names_the_run_that_it_confirms() -> None:
    """``last`` is the confirmation itself when it is repeated."""
    asked = Confirming("threads=4", None, dry_run=False, seed=None, db="my store.db")
    said = asked.again("20261129-1", 7)
    assert said == (
        "concurve explain 20261129-1 --confirm --seed 7 --at threads=4 --db 'my store.db'"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--at", "threads=9"], "--at 'threads=9': not a factor with one of its"),
        (["--budget", "5m"], "--budget says how to confirm a cause"),
        (["--dry-run"], "--dry-run says how to confirm a cause"),
        (["--confirm", "--at", "threads=9"], "--at 'threads=9': not a factor with one of its"),
        (["--confirm", "--budget", "soon"], "--budget"),
        (["--confirm", "--dry-run", "--json"], "--dry-run prints what would be run, and no JSON"),
    ],
)
def test_what_cannot_be_confirmed_as_asked_is_refused(
    store: Store,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    head = measured(store, shared)
    line = ["concurve", "explain", head.id, *arguments, "--db", str(tmp_path / "concurve.db")]
    monkeypatch.setattr("sys.argv", line)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code != 0
    assert message in capsys.readouterr().err


def test_one_cell_is_explained_by_its_levels(
    store: Store,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    head = measured(store, shared)
    line = ["concurve", "explain", head.id, "--at", "threads=2", "--json"]
    monkeypatch.setattr("sys.argv", [*line, "--db", str(tmp_path / "concurve.db")])
    with contextlib.suppress(SystemExit):
        main()
    cells = json.loads(capsys.readouterr().out)["cells"]
    assert [cell["parameters"] for cell in cells] == [{"threads": 2}]


@pytest.mark.parametrize("kind", ["collapsed", "firefox"])
def test_blocked_time_is_exported(store: Store, kind: str) -> None:
    head = measured(store, locked)
    content = export_blocked(store, store.find_run(head.id), kind).decode()
    assert "Table::add" in content and "[table_mutex]" in content
    if kind == "collapsed":
        frames, ns = content.splitlines()[-1].rsplit(" ", 1)
        assert frames == "threads=2;locks;Table::add;pthread_mutex_lock;[table_mutex]"
        assert int(ns) > 0
    else:
        assert [it["name"] for it in json.loads(content)["threads"]] == ["threads=1", "threads=2"]


def test_a_run_that_never_waited_has_nothing_to_export(store: Store) -> None:
    def busy(spec: TrialSpec) -> TrialRecord:
        return record(role([thread(1.0)] * threads_of(spec)))

    head = measured(store, busy)
    with pytest.raises(ConcurveError, match="has no blocked time to export"):
        export_blocked(store, store.find_run(head.id), "collapsed")


def test_reports_show_what_the_experiments_say(store: Store) -> None:
    head = measured(store, locked)
    alone = tried(store, head, planned(store, head), locked)
    text = export_run(store, store.find_run(head.id), "markdown").decode()
    assert "By experiment" in text and alone.run in text
    plain = " ".join(text.replace("\\", "").split())
    assert "threads=2 would do 2.00 [1.70, 2.00] times as much" in plain
