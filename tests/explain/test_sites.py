"""Where in a program threads waited for locks: over trials, in sentences, in tables, as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import msgspec
import pytest

from concurve.definition.purposes import Purposes
from concurve.definition.study import Rules
from concurve.estimate import Estimate
from concurve.explain.accounts import account
from concurve.explain.explanation import explain_run
from concurve.explain.sites import of_the_program, place_sentence, sites_of, with_place
from concurve.explain.threads import names_of_kinds
from concurve.explain.waiting import waits_for_the_interpreter
from concurve.findings.explanation import CellExplanation, Explanation, Holders, RunnerUp
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.readings.operations import Asked, asked_of
from concurve.report.json.explanation import to_json
from concurve.report.sections.limits import certainty, explanation_document
from concurve.report.terminal import lines
from concurve.store import Store
from concurve.wire.record import SiteRecord, SitesRecord, ThreadReadings, TrialRecord
from concurve.wire.spec import TrialSpec
from tests.helpers.explaining import record, role, thread
from tests.helpers.fakes import FakeClock, FakeEngine, small_study

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "schema" / "explain.schema.json").read_text(encoding="utf-8")
)


def site(function: str | None, readings: int, **more: Any) -> SiteRecord:
    given: dict[str, Any] = {
        "primitive": "mutex",
        "call": "futex",
        "module": "/opt/app",
        "offset": "0x1234",
        "found": "cfi",
        "readings": readings,
        "threads": 2,
        "function": function,
    }
    return SiteRecord(**(given | more))


def sites(*listed: SiteRecord, **more: int) -> SitesRecord:
    return SitesRecord(readings=sum(it.readings for it in listed), listed=listed, **more)


def test_the_same_place_in_several_trials_is_one() -> None:
    add = {"file": "/src/table.cc", "line": 7, "lock": "table_mutex"}
    found = sites_of(
        [
            sites(site("Table::add(int)", 30, **add, held=20), site("Table::drop()", 10)),
            None,
            sites(site("Table::add(int)", 31, **add, held=25, threads=3, offset="0x999")),
        ]
    )
    assert [(it.name, it.readings) for it in found] == [("Table::add", 61), ("Table::drop", 10)]
    assert (found[0].share, found[0].threads, found[0].held) == (61 / 71, 3, 45)
    assert found[1].held is None


def test_who_waits_for_the_end_of_a_thread_waits_for_no_lock() -> None:
    found = sites_of([sites(site("main", 500, primitive="join"), site("work", 20))])
    assert [(it.name, it.share) for it in found] == [("work", 1.0)]


def test_a_function_without_a_name_is_its_address() -> None:
    known = site(None, 8, offset="0x1300", callers=("run(int)", "main"))
    found = sites_of([sites(site(None, 12), known)])
    assert [it.name for it in found] == ["app+0x1234", "app+0x1300, called by run"]
    assert place_sentence("lock", found) == (
        "Of 20 sampled waits, 60 % were in app+0x1234 and 40 % were in app+0x1300, called by run."
    )
    assert place_sentence("lock", found, addresses=False) == "", "as those in a JVM"


def test_a_greater_place_without_a_name_is_the_locks_and_no_idle_pool() -> None:
    """As in MariaDB: the wait for a row, threads of a pool without a task, and others that wait for
    work. Only the first is where the lock is."""
    row = site(
        None, 48, primitive="condition", module="/usr/sbin/mariadbd", offset="0xd5b023",
        callers=("handler::ha_index_read_map(unsigned char*)", "main"),
    )  # fmt: skip
    pool = site("wait_for_tasks()", 38, primitive="condition")
    log = site(None, 14, primitive="semaphore", offset="0x99", callers=("start_thread",))
    found = sites_of([sites(row, pool, log)])
    assert place_sentence("lock", found) == (
        "Of 100 sampled waits, 48 % were in mariadbd+0xd5b023, called by "
        "handler::ha_index_read_map."
    )
    assert place_sentence("lock", found, addresses=False) == ""
    latch = site("take_latch()", 30)
    beside = sites_of([sites(row, pool, latch)])
    assert "and 26 % were in take_latch." in place_sentence("lock", beside)
    smaller = sites_of([sites(site(None, 20), pool)])
    assert "66 % were in wait_for_tasks and" in place_sentence("lock", smaller)


def test_what_a_weak_scan_found_is_not_sure() -> None:
    found = sites_of([sites(site("a", 9, found="scan_exact"), site("b", 8, found="scan_weak"))])
    assert [it.is_sure for it in found] == [True, False]
    assert place_sentence("lock", found) == (
        "Of 17 sampled waits, 53 % were in a and 47 % were in b (not sure: found by a scan of the "
        "stack)."
    )
    twice = [sites(site("a", 9, found=how)) for how in ("cfi", "scan_exact", "cfi")]
    assert [it.found for it in sites_of(twice)] == ["scan_exact"], "the least sure of all trials"


#: Threads 1 to 4 by their names.
NAMES = {1: "worker-1", 2: "worker-2", 3: "flush", 4: ""}


def test_who_had_the_lock_while_others_waited() -> None:
    """The workers add; one more thread drops what is old, and is seen waiting there itself."""
    lock = {"lock": "table_mutex"}
    add = site("add()", 100, **lock, held=80, holders=waiters(t3=60, t1=15, t2=5),
               waiters=waiters(t1=50, t2=50))  # fmt: skip
    drop = site("drop()", 5, **lock, waiters=waiters(t3=5))
    found = sites_of([sites(add, drop), sites(add)], [NAMES, {}])
    first = found[0]
    assert [(it.name, it.takes_in, it.threads, it.readings) for it in first.holders] == [
        ("", "", 1, 60),
        ("flush", "drop", 1, 60),
        ("", "add", 2, 20),
        ("worker", "add", 2, 20),
    ]
    (only,) = sites_of([sites(add)], [NAMES])
    assert place_sentence("lock", (only,)).endswith(
        " Who had the lock is known in 80 of 100 readings in add: the thread flush in 75 % and "
        "threads worker in 25 % of them."
    )
    both = sites_of([sites(add, drop)], [NAMES])
    assert "the thread flush, which takes it in drop, in 75 % and" in place_sentence("lock", both)


def test_who_was_seldom_seen_waiting_takes_the_lock_where_others_of_its_name_do() -> None:
    lock = {"lock": "table_mutex"}
    add = site("add()", 100, **lock, held=40, holders=waiters(t3=40))
    drop = site("drop()", 5, **lock, waiters=waiters(t3=5))
    found = sites_of([sites(add, drop), sites(add)], [NAMES, NAMES])
    assert [(it.takes_in, it.readings) for it in found[0].holders] == [("drop", 80)]
    other = site("list()", 5, **lock, waiters=waiters(t3=5))
    several = sites_of([sites(add, drop), sites(add, other), sites(add)], [NAMES] * 3)
    takes = [it.takes_in for it in several[0].holders]
    assert takes == ["", "drop", "list"], "it may be either"


def test_another_lock_at_another_place_says_nothing_of_a_holder() -> None:
    """Locks on the heap have no name: who waits elsewhere may wait for another one."""
    add = site("add()", 20, held=20, holders=waiters(t3=20))
    other = site("drop()", 15, waiters=waiters(t3=15))
    found = sites_of([sites(add, other)], [NAMES])
    assert [it.takes_in for it in found[0].holders] == [""]


def test_where_it_is_not_known_nobody_had_the_lock() -> None:
    for more in ({}, {"held": 9, "holders": waiters(t1=9)}):
        found = sites_of([sites(site("add()", 100, **more))], [NAMES])
        assert place_sentence("lock", found) == "Of 100 sampled waits, 100 % were in add."


@pytest.mark.parametrize(
    ("function", "name"),
    [
        ("Table::add(int)", "Table::add"),
        ("void put<int, std::less<int> >(int, long)", "void put"),
        ("(anonymous namespace)::take(int)", "(anonymous namespace)::take"),
        ("Guard::operator()(int) const", "Guard::operator()"),
        ("<app::Table<T> as app::Add>::add", "<app::Table as app::Add>::add"),
        ("app::run::{{closure}}", "app::run::{{closure}}"),
        ("add_left", "add_left"),
    ],
)
def test_names_in_sentences_have_no_parameters(function: str, name: str) -> None:
    assert sites_of([sites(site(function, 10))])[0].name == name


def test_a_sentence_names_the_places_with_most_waits() -> None:
    found = sites_of(
        [
            sites(
                site("add", 61, file="/src/table.cc", line=7, lock="table_mutex"),
                site("drop", 34),
                site("list", 5),
            )
        ]
    )
    assert place_sentence("lock", found) == (
        "Of 100 sampled waits, 61 % were for table_mutex, in add (table.cc:7) and 34 % "
        "were in drop."
    )
    few = sites_of([sites(site("add", 10), site("drop", 2))])
    assert place_sentence("lock", few) == "Of 12 sampled waits, 83 % were in add.", "by chance"


def test_few_readings_make_no_sentence() -> None:
    assert place_sentence("lock", sites_of([sites(site("add", 9))])) == ""
    assert place_sentence("lock", ()) == ""


# -- in what a run says -------------------------------------------------------------------------


class _Engine(FakeEngine):
    """Threads that wait for one lock, if there are several."""

    def run(self, spec: TrialSpec) -> bytes:
        made = msgspec.structs.replace(_trial(int(spec.roles[0].argv[1])), trial=spec.trial)
        return msgspec.json.encode(made)


def _trial(threads: int) -> TrialRecord:
    if threads == 1:
        return record(role([thread(0.99)]))
    waiting = [thread(1 / threads, futex=1 - 1 / threads, switches=9000)] * threads
    target = role(waiting, 1000, words=[(100, threads)])
    place = {"file": "/src/table.cc", "line": 7, "lock": "table_mutex"}
    found = sites(
        site("Table::add(int)", 40, **place, held=30, holders=waiters(t101=20, t102=10)),
        site("Table::drop()", 10, found="scan_weak"),
        torn=3,
        skipped=400,
        unknown=1,
    )
    return record(msgspec.structs.replace(target, sites=found))


def explained(tmp_path: Path) -> Explanation:
    store = Store(str(tmp_path / "concurve.db"))
    head = new_head(small_study(Rules(repeats_min=5, repeats_max=5)), "normal", 1, "concurve sweep")
    Runner(head, store, _Engine(), clock=FakeClock(0.001)).start()
    return explain_run(store, store.find_run(head.id))


def test_a_lock_is_said_with_its_line(tmp_path: Path) -> None:
    found = explained(tmp_path)
    one, two = found.cells[0], found.cells[1]
    assert (one.cause, one.sites) == ("none", ())
    assert two.cause == "lock"
    assert two.place == (
        "Of 250 sampled waits, 80 % were for table_mutex, in Table::add (table.cc:7) and 20 % were "
        "in Table::drop (not sure: found by a scan of the stack)."
    )
    assert one.place == ""


def test_who_had_the_lock_is_told_where_it_is_not_any_of_those_that_wait() -> None:
    waiting = site("add", 60, held=40)
    found = sites_of([sites(waiting)])[0]

    def said(*holders: Holders) -> str:
        return place_sentence("lock", (msgspec.structs.replace(found, holders=holders),))

    any_of_them = Holders(name="app", threads=2, readings=40)
    assert "Who had" not in said(any_of_them)
    assert "Who had" in said(msgspec.structs.replace(any_of_them, name="flush", threads=1))
    assert "Who had" in said(msgspec.structs.replace(any_of_them, takes_in="drop"))


def test_places_in_a_jvm_say_nothing_of_the_program() -> None:
    inside = site("os::PlatformMonitor::wait", 14, module="/usr/lib/jvm/lib/server/libjvm.so")
    found = sites_of([sites(inside, site("add", 20))])
    assert [it.name for it in of_the_program(found)] == ["add"]


def test_digits_of_a_name_that_all_have_tell_no_threads_apart() -> None:
    names = {1: "p1", 2: "p1", 3: "io-0", 4: "io-1", 5: "main"}
    assert names_of_kinds(names) == {1: "p1", 2: "p1", 3: "io", 4: "io", 5: "main"}


def test_views_show_the_places(tmp_path: Path) -> None:
    found = explained(tmp_path)
    text = "\n".join(line.plain for line in lines(explanation_document(found), 160))
    assert "of the waits" in text
    assert "table.cc:7" in text and "table_mutex" in text
    assert "worker-1 100 % (of 150)" in text and "Table::drop (not sure)" in text
    assert "unwinding" in text and "a scan, not sure" in text
    # Two cells of five trials each.
    assert (
        "samples of stacks that are not shown: 30 dropped because the thread ran meanwhile" in text
    )
    assert "Of 250 sampled waits" in " ".join(text.split())
    exported = json.loads(to_json(found))
    jsonschema.validate(exported, SCHEMA)
    first = exported["cells"][1]["sites"][0]
    assert (first["function"], first["line"], first["readings"]) == ("Table::add(int)", 7, 200)
    assert first["holders"] == [{"name": "worker-1", "threads": 2, "readings": 150}]
    assert first["found"] == "cfi" and "is_sure" not in first
    second = exported["cells"][1]["sites"][1]
    assert (second["found"], second["is_sure"]) == ("scan_weak", False)
    assert "holders" not in second
    stacks = {"known": 250, "unknown": 5, "torn": 15, "skipped": 2000}
    assert exported["cells"][1]["sampled_stacks"] == stacks
    assert "sampled_stacks" not in exported["cells"][0]
    assert "sites" not in exported["cells"][0]


def test_threads_of_one_name_are_told_apart_by_where_they_take_the_lock(tmp_path: Path) -> None:
    found = explained(tmp_path)
    who = [("Table::add", 100), ("Table::drop", 50)]
    holders = tuple(
        Holders(name="program", threads=1, readings=seen, takes_in=place) for place, seen in who
    )
    cell = found.cells[1]
    first = msgspec.structs.replace(cell.sites[0], holders=holders)
    cell = msgspec.structs.replace(cell, sites=(first,))
    document = explanation_document(msgspec.structs.replace(found, cells=(cell,)))
    text = "\n".join(line.plain for line in lines(document, 160))
    assert "program 67 %, program in Table::drop 33 % (of 150)" in text


def test_the_interpreters_lock_is_named_wherever_it_is_waited_for() -> None:
    place = {"file": "/src/app.py", "lock": "GIL", "runtime": "cpython"}
    one = sites_of([sites(site("work", 30, **place, line=7))])
    assert place_sentence("lock", one) == (
        "Of 30 sampled waits, 100 % were for the GIL, in work (app.py:7)."
    )
    spread = sites_of([sites(*[site(f"f{it}", 5, **place, line=it) for it in range(1, 16)])])
    assert place_sentence("lock", spread) == "Of 75 sampled waits, 100 % were for the GIL."


def test_who_starts_threads_of_python_waits_for_no_lock_of_the_program() -> None:
    """Until the new thread runs, which needs the interpreter: the wait for that is named so."""
    place = {"file": "/src/app.py", "runtime": "cpython", "operation": "Thread.start"}
    of_interpreter = site("main", 30, line=7, lock="GIL", **place)
    until_it_runs = site("main", 20, line=7, **place)
    record = SitesRecord(readings=50, listed=(of_interpreter, until_it_runs))
    found = sites_of([record])
    assert [it.lock for it in found] == ["GIL"]
    assert place_sentence("lock", found) == (
        "Of 30 sampled waits, 100 % were for the GIL, in main (app.py:7), starting threads."
    )
    assert waits_for_the_interpreter([record]) == (0, 0)
    working = site("work", 10, line=3, lock="GIL", file="/src/app.py", runtime="cpython")
    both = SitesRecord(readings=60, listed=(of_interpreter, working))
    assert waits_for_the_interpreter([both]) == (10, 0)
    assert place_sentence("lock", sites_of([sites(site("work", 5, **place, line=7))])) == ""


def test_names_of_other_languages_stay_whole() -> None:
    names = ["main.(*shelf).addRight", "up.<locals>.own", "main.main.func1", "<module>"]
    found = sites_of([sites(*[site(name, 9) for name in names])])
    assert sorted(it.name for it in found) == sorted(names)


def test_uneven_rounds_name_their_barrier_alone() -> None:
    barrier = site("wait_for_all", 60, primitive="barrier", file="/src/app.c", line=12)
    found = sites_of([sites(barrier, site("Table::add()", 20))])
    assert place_sentence("imbalance", found) == (
        "Of 80 sampled waits, 75 % were in wait_for_all (app.c:12)."
    )
    assert place_sentence("serial", found) == ""
    assert place_sentence("imbalance", sites_of([sites(site("Table::add()", 20))])) == ""


def waiters(**readings: int) -> tuple[ThreadReadings, ...]:
    """Readings by the number of the thread: ``t101=20``."""
    return tuple(ThreadReadings(int(tid[1:]), seen) for tid, seen in readings.items())


#: Two workers (threads 101 and 102), a thread that writes seldom, and two that look for work once a
#: second.
OF_A_SERVER = [
    thread(0.5, futex=0.5, switches=2000),
    thread(0.4, futex=0.6, switches=1800),
    thread(0.03, futex=0.97, switches=300, name="log"),
    thread(0.001, futex=0.999, switches=3, name="purge"),
    thread(0.0, futex=1.0, switches=1, name="pool"),
]


def sites_seen(*listed: SiteRecord) -> SitesRecord | None:
    server = msgspec.structs.replace(role(OF_A_SERVER), sites=sites(*listed))
    found = account(record(server), asked_of(small_study()))
    assert found is not None
    return found.sites


def test_threads_that_have_nothing_to_do_wait_for_no_lock() -> None:
    row = site("lock_row()", 60, waiters=waiters(t101=30, t102=30))
    purge = site("purge()", 100, primitive="condition", threads=1, waiters=waiters(t104=100))
    pool = site(
        "next_task()", 130, primitive="semaphore", threads=3,
        waiters=waiters(t105=100, t101=20, t103=10),
    )  # fmt: skip
    found = sites_seen(pool, purge, row)
    assert found is not None
    seen = [(it.function, it.readings, it.threads) for it in found.listed]
    assert seen == [("lock_row()", 60, 2), ("next_task()", 30, 2)]
    assert found.readings == 90
    assert found.listed[1].waiters == waiters(t101=20, t103=10)
    assert place_sentence("lock", sites_of([found])).startswith(
        "Of 90 sampled waits, 67 % were in lock_row and 33 % were in next_task"
    )


def test_threads_of_a_server_that_answer_nobody_wait_for_work() -> None:
    """They have a little to do besides: more than a fiftieth, and less than a tenth, of what those
    do that answer."""
    row = site("lock_row()", 60, primitive="condition", waiters=waiters(t101=30, t102=30))
    log = site("next_entry()", 90, primitive="condition", threads=1, waiters=waiters(t103=90))
    commit = site("commit()", 20, primitive="mutex", threads=1, waiters=waiters(t103=20))
    server = msgspec.structs.replace(role(OF_A_SERVER), sites=sites(row, log, commit))
    load = role([thread(0.5, poll=0.5, name="load")], 1000, "load")
    served = Asked(Purposes("target", "target", ("load",), True))
    for asked, places in (
        (served, ["lock_row()", "commit()"]),
        (asked_of(small_study()), ["next_entry()", "lock_row()", "commit()"]),
    ):
        found = account(record(server, load), asked)
        assert found is not None and found.sites is not None
        assert [it.function for it in found.sites.listed] == places


@pytest.mark.parametrize("primitive", ["mutex", "reader_writer_lock", "barrier", "once", "join"])
def test_who_waits_for_another_thread_is_no_idle_one(primitive: str) -> None:
    # It got the lock once in the whole trial.
    waiting = site("Table::add()", 100, primitive=primitive, waiters=waiters(t105=100))
    found = sites_seen(waiting)
    assert found is not None
    assert found.listed == (waiting,)


def test_what_wakes_all_at_its_condition_may_be_an_idle_thread() -> None:
    """A function that waits for work, and wakes all when it ends, looks like a barrier."""
    handler = {"primitive": "barrier", "operation": "pthread_cond_timedwait"}
    found = sites_seen(site("handler()", 100, **handler, waiters=waiters(t105=100)))
    assert found is not None
    assert found.listed == ()


def test_older_records_do_not_say_which_threads_waited() -> None:
    old = site("purge()", 100, primitive="condition")
    found = sites_seen(old)
    assert found is not None
    assert found.listed == (old,)


def test_who_only_serves_the_workers_waits_for_no_lock() -> None:
    """The parent of a pool waits for its children, and its handlers for work, however often."""
    workers = [thread(0.5, futex=0.5, name="python3", tid=n, pid=n) for n in (200, 201)]
    parent = thread(0.06, futex=0.94, name="python3", tid=100, pid=100, switches=9)
    handler = thread(0.004, futex=0.99, name="python3", tid=101, pid=100, switches=900)
    listed = (
        site("<module>", 40, primitive="condition", waiters=waiters(t100=40)),
        site("_handle_tasks", 30, primitive="semaphore", waiters=waiters(t101=30)),
        site("work", 20, primitive="semaphore", waiters=waiters(t200=20)),
    )
    made = role([*workers, parent, handler])
    found = account(
        record(msgspec.structs.replace(made, sites=sites(*listed))), asked_of(small_study())
    )
    assert found is not None and found.sites is not None
    assert [it.function for it in found.sites.listed] == ["work"]


def test_who_waits_alone_for_those_at_a_lock_is_not_named() -> None:
    def said(threads: int) -> str:
        waiting = site("main", 60, primitive="condition", threads=threads)
        return place_sentence("lock", sites_of([sites(waiting, site("book", 40, offset="0x9"))]))

    assert said(1) == "Of 100 sampled waits, 40 % were in book."
    assert said(2) == "Of 100 sampled waits, 60 % were in main and 40 % were in book."


def test_the_place_of_a_lock_that_comes_next_is_told_too() -> None:
    found = sites_of([sites(site("XLogFlush", 20), site("take", 4))])
    second = RunnerUp("lock", Estimate(value=0.2, n=5))
    placed = with_place(second, found, addresses=True)
    assert placed is not None and placed.place.startswith("Of 24 sampled waits, 83 % were in XLog")
    made = CellExplanation(
        parameters={"n": 2}, cause="cpu", limit="CPUs", evidence="Evidence.", trials=5,
        share=Estimate(value=0.5, n=5), runner_up=placed, sites=found,
    )  # fmt: skip
    assert certainty(made).endswith(f"; next: waiting for locks, 20 %. {placed.place}")
    assert certainty(made, is_next_told=False).count("XLogFlush") == 0
    every = Explanation(run="r", study="s", factors=("n",), work="n", operation="o", cells=(made,))
    text = "\n".join(line.plain for line in lines(explanation_document(every), 120))
    assert "of the waits" in text, "the table of places has it"
    alike = with_place(RunnerUp("lock", is_indistinct=True), found, addresses=True)
    assert alike is not None and not alike.place
    assert with_place(None, found, addresses=True) is None
    assert with_place(RunnerUp("serial"), found, addresses=True) == RunnerUp("serial")
