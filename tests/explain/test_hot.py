"""CPU time for which threads spin, and the function in which CPU time grew, from samples that are
made up."""

from __future__ import annotations

import random
import re
from typing import Any

import msgspec
import pytest

from concurve.definition.purposes import Purposes
from concurve.estimate import Estimate
from concurve.explain.accounts import account
from concurve.explain.breakdown import Breakdown, breakdown
from concurve.explain.causes import cause_of, further_verdicts
from concurve.explain.hot import (
    Hot,
    alone_in,
    grew_in,
    hot_of,
    is_locking,
    is_new,
    is_waiting,
    most_spent,
    place_of,
    spun,
)
from concurve.explain.losses import loss_of
from concurve.explain.sentences import spent, spins_most
from concurve.explain.stations import Serving, Station
from concurve.explain.verdict import Case, Verdict
from concurve.explain.weights import weigh
from concurve.findings.explanation import CellExplanation, Explanation
from concurve.readings.operations import Asked
from concurve.report.sections.limits import explanation_document
from concurve.report.terminal import lines
from concurve.wire.record import HotFile, HotFunction, HotRecord, HotThread, RoleRecord
from tests.explain.test_losses import ASKED, program
from tests.helpers.explaining import WALL, Thread, line_of, record, role, thread

GOMP = "libgomp.so.1"
LIBC = "libc.so.6"
FIRST = 100

Places = dict[tuple[str | None, str], tuple[float, float]]
"""By function and file: the share of the samples, and how much of that the first thread has."""


def hot(places: Places, samples: int = 100) -> HotRecord:
    listed = [
        HotFunction(file, round(share * samples), round(first * share * samples), function)
        for (function, file), (share, first) in places.items()
    ]
    files: dict[str, int] = {}
    for it in listed:
        files[it.file] = files.get(it.file, 0) + it.samples
    return HotRecord(
        samples=samples,
        files=tuple(HotFile(name, count) for name, count in files.items()),
        listed=tuple(listed),
    )


def made(threads: list[Thread], wall: float, found: HotRecord | None, noise: float) -> RoleRecord:
    whole = program(threads, wall, noise=noise)
    usage = msgspec.structs.replace(whole.usage, user_ns=whole.usage.cpu_ns)
    return msgspec.structs.replace(whole, usage=usage, hot=found)


def cell(
    level: int | None,
    places: Places | None,
    wall: float = 1.0,
    samples: int = 100,
    queue: float = 0.0,
    threads: int | None = None,
    **machine: Any,
) -> Breakdown:
    """Threads that are busy throughout, the first thread among them, as those of OpenMP are."""
    rng = random.Random(1)
    busy = thread(1.0 - queue, queue, "program", switches=3)
    workers = [busy | {"tid": FIRST + n} for n in range(threads or level or 2)]
    found = None if places is None else hot(places, samples)
    accounts = [
        account(record(made(workers, wall, found, noise), **machine), ASKED, level)
        for noise in (1 + 0.002 * rng.random() for _ in range(5))
    ]
    cells = breakdown([each for each in accounts if each is not None])
    assert cells is not None
    return cells


LOOP = ("main._omp_fn.0", "rows")
BASE = cell(1, {LOOP: (1, 1)})


def uneven(part: float = 0.25) -> Places:
    return {LOOP: (1 - part, 0.3), (None, GOMP): (part, 0.9)}


def test_threads_of_openmp_that_spin_at_the_end_of_a_loop_are_uneven_work() -> None:
    own = cell(2, uneven(), wall=0.67)
    said = cause_of(own, BASE)
    assert said.cause == "imbalance"
    assert "spin while they wait for the end of a loop" in said.words
    assert f"25 % of the CPU time is in {GOMP}" in said.words
    loss = loss_of(own, BASE)
    assert loss is not None and loss.speedup + sum(loss.parts.values()) == pytest.approx(2)
    assert loss.parts["imbalance"] == pytest.approx(0.5, abs=0.02)
    weight = weigh(Case(own, BASE, False), said)
    assert weight.share is not None and weight.share.value > 0.9


def test_the_same_where_no_factor_counts_the_workers() -> None:
    said = cause_of(cell(None, uneven(), wall=0.67), BASE)
    assert said.cause == "imbalance" and GOMP in said.words


def test_threads_that_spin_while_the_first_one_works_alone_are_serial_work() -> None:
    places: Places = {LOOP: (0.5, 0.5), ("main", "rows"): (0.25, 1.0), (None, GOMP): (0.25, 0.0)}
    own = cell(2, places, wall=0.67)
    said = cause_of(own, BASE)
    assert said.cause == "serial" and "for 50 % of the time no worker worked" in said.words
    assert GOMP in said.words
    assert "while another thread ran; the first thread alone ran in main (program); " in said.words
    apart = tuple(it._replace(apart=True) for it in own.accounts)
    processes = cause_of(own._replace(accounts=apart), BASE)
    assert "for 50 % of the time" in processes.words and "alone ran in" not in processes.words


def test_a_function_is_told_in_which_the_first_thread_alone_ran_most() -> None:
    def told(merge: float, write: float) -> str:
        places: Places = {
            LOOP: (1 - merge - write, 0.5),
            ("merge", "rows"): (merge, 1.0),
            ("write", "rows"): (write, 1.0),
        }
        return alone_in(cell(2, places).hot)

    assert told(0.2, 0.1) == "merge (program)"
    assert told(0.0, 0.0) == "" == alone_in([None])
    even: Places = {(name, "rows"): (0.1, 1.0) for name in "abc"}
    even[LOOP] = (0.7, 0.5)
    assert alone_in(cell(2, even).hot) == "", "none of them is most"
    for file in ("libpython3.11.so.1.0", "libjvm.so"):
        interpreted: Places = {LOOP: (0.7, 0.5), ("eval", file): (0.3, 1.0)}
        assert alone_in(cell(2, interpreted).hot) == "", "it says nothing of the program"


def test_even_loops_are_accused_of_nothing() -> None:
    own = cell(2, {LOOP: (0.98, 0.5), (None, GOMP): (0.02, 0.5)}, wall=0.502)
    assert cause_of(own, BASE).cause == "none"


def test_even_loops_that_share_data_are_no_uneven_work() -> None:
    own = cell(2, {LOOP: (0.98, 0.5), (None, GOMP): (0.02, 0.5)}, wall=0.9)
    said = cause_of(own, BASE)
    assert said.cause == "coherency"
    assert said.words.endswith("; most of the increase is in main._omp_fn.0 (program)")


def test_spinning_for_a_thread_that_was_kept_from_a_cpu_is_no_uneven_work() -> None:
    own = cell(2, uneven(0.3), wall=0.75, queue=0.2, foreign=0.2)
    assert cause_of(own, BASE).cause in ("contamination", "cpu")
    crowded = cell(4, uneven(0.3), wall=0.8, queue=0.5)
    assert cause_of(crowded, BASE).cause == "cpu"


def test_a_lock_that_only_spins_is_a_lock() -> None:
    base = cell(1, {("body", "program"): (0.98, 0), ("pthread_spin_lock", LIBC): (0.02, 0)})
    spins: Places = {("body", "program"): (0.6, 0), ("pthread_spin_lock", LIBC): (0.4, 0)}
    said = cause_of(cell(2, spins, wall=0.83), base)
    assert said.cause == "lock"
    assert "40 % of it goes to spinning for a lock, in pthread_spin_lock (libc.so.6)" in said.words


def checked_reads(level: int, waiting: float, wall: float) -> Breakdown:
    """Threads that read in a loop in which this part of their samples seem to wait."""
    rng = random.Random(1)
    workers = [thread(1.0, 0.0, "program", switches=3) | {"tid": FIRST + n} for n in range(level)]
    found = hot({("read_one", "program"): (1.0, 0)})
    listed = tuple(msgspec.structs.replace(it, waiting=round(100 * waiting)) for it in found.listed)
    found = msgspec.structs.replace(found, listed=listed)
    accounts = [
        account(record(made(workers, wall, found, noise)), ASKED, level)
        for noise in (1 + 0.002 * rng.random() for _ in range(5))
    ]
    cells = breakdown([each for each in accounts if each is not None])
    assert cells is not None
    return cells


@pytest.mark.parametrize(("alone", "cause"), [(0.97, "coherency"), (0.0, "lock")])
def test_what_a_lone_worker_does_is_work_though_it_looks_like_waiting(
    alone: float, cause: str
) -> None:
    """A read that is checked behind jumps back only where somebody wrote."""
    said = cause_of(checked_reads(2, 0.97, wall=0.9), checked_reads(1, alone, wall=1.0))
    assert said.cause == cause, said.words


def test_a_critical_section_of_openmp_is_a_lock() -> None:
    own = cell(2, {LOOP: (0.6, 0.5), ("GOMP_critical_start", GOMP): (0.4, 0.5)}, wall=0.83)
    assert cause_of(own, BASE).cause == "lock"


@pytest.mark.parametrize(
    ("samples", "base", "said"),
    [(100, 100, "increment (program)"), (100, 5, ""), (5, 100, "")],
)
def test_the_function_in_which_cpu_time_grew_is_named_where_samples_suffice(
    samples: int, base: int, said: str
) -> None:
    def side(time: float, share: float, samples: int) -> list[Hot | None]:
        places: Places = {("increment", "program"): (share, 0), ("main", "program"): (1 - share, 0)}
        return [Hot(time, hot(places, samples))] * 5

    assert grew_in(side(2000, 0.7, samples), side(1000, 0.4, base), 500) == said


def test_what_grew_in_many_functions_of_a_file_is_named_by_the_file() -> None:
    many: Places = {(f"f{n}", "libmany.so"): (0.1, 0) for n in range(10)}
    own, base = Hot(2000, hot(many)), Hot(1000, hot({("main", "program"): (1, 0)}))
    assert grew_in([own], [base], 1000) == "libmany.so"
    assert grew_in([own], [None], 1000) == grew_in([], [], 1000) == ""


def test_few_samples_say_nothing_of_spinning() -> None:
    few = Hot(1000, hot(uneven(), 20))
    assert spun([few])[0].waiting == 0
    assert spun([few, few])[0].waiting == pytest.approx(250)
    assert spun([few, few, None])[0].waiting == 0


@pytest.mark.parametrize(
    ("function", "file", "kind"),
    [
        (None, "libgomp.so.1", "waits"),
        ("GOMP_parallel", "libgomp.so.1.0.0", "waits"),
        (None, "libomp.so.5", "waits"),
        ("__kmpc_barrier", "libiomp5.so", "waits"),
        ("gomp_team_barrier_wait_end", "program", "waits"),
        ("GOMP_critical_name_start", "libgomp.so.1", "locks"),
        ("omp_set_lock", "libgomp.so.1", "locks"),
        ("__kmpc_critical_with_hint", "libomp.so.5", "locks"),
        ("pthread_spin_lock", "libc.so.6", "locks"),
        ("tbb::spin_mutex::lock()", "program", "locks"),
        ("absl::base_internal::SpinLock::SlowLock()", "program", "locks"),
        ("s_lock", "postgres", "locks"),
        ("ObjectMonitor::TrySpin(JavaThread*)", "libjvm.so", "locks"),
        ("SafeFetchN_impl", "libjvm.so", "locks"),
        ("ObjectMonitor::exit(JavaThread*, bool)", "libjvm.so", ""),
        ("ut_delay", "mariadbd", "locks"),
        ("pthread_spin_unlock", "libc.so.6", ""),
        ("spin_the_wheel", "program", ""),
        ("compute", "libgompertz.so", ""),
        ("compute", "libomptarget_user.so", ""),
        (None, "program", ""),
    ],
)
def test_what_spins_is_known_by_its_name(function: str | None, file: str, kind: str) -> None:
    place = HotFunction(file, 1, 0, function)
    assert (is_waiting(place), is_locking(place)) == (kind == "waits", kind == "locks")


def test_the_samples_divide_the_time_in_user_mode() -> None:
    assert BASE.accounts[0].hot is not None
    assert BASE.accounts[0].hot.part(50) == pytest.approx(WALL / 2, rel=0.01)
    assert cell(1, None).accounts[0].hot is None


# -- loops of the program's own that wait ------------------------------------------------------


def looping(waiting: tuple[int, ...], samples: int = 100) -> HotRecord:
    """Threads with so many samples each, and of these so many in a loop that waits: all of them in
    one function of the program, where all its work is, too."""
    every = samples * len(waiting)
    spun_there = HotFunction("program", every, 0, "body", sum(waiting))
    threads = tuple(HotThread(200 + n, samples, each) for n, each in enumerate(waiting))
    is_spun = any(waiting)
    return HotRecord(
        samples=every,
        files=(HotFile("program", every),),
        listed=(spun_there,),
        threads=threads if is_spun else (),
    )


def spinning_cell(waiting: tuple[int, ...], wall: float, samples: int = 100) -> Breakdown:
    """Workers of their own that are busy throughout."""
    rng = random.Random(1)
    workers = [thread(1.0, name="program", tid=200 + n, switches=3) for n in range(len(waiting))]
    found = looping(waiting, samples)
    accounts = [
        account(record(made(workers, wall, found, noise)), ASKED, len(waiting))
        for noise in (1 + 0.002 * rng.random() for _ in range(5))
    ]
    cells = breakdown([each for each in accounts if each is not None])
    assert cells is not None
    return cells


SPINNING_BASE = spinning_cell((0,), 1.0)


def test_a_lock_that_spins_in_the_programs_own_function_is_a_lock() -> None:
    """Both threads spin for 40 % of the time: an operation takes 1.67 × the CPU time."""
    own = spinning_cell((40, 41), wall=0.83)
    said = cause_of(own, SPINNING_BASE)
    assert said.cause == "lock"
    assert "40 % of it goes to spinning for a lock, in body (program)" in said.words


def test_threads_that_spin_for_one_with_more_work_are_uneven_work() -> None:
    """One works throughout, the other spins for half of the time until it is done."""
    own = spinning_cell((0, 50), wall=0.67)
    said = cause_of(own, SPINNING_BASE)
    assert said.cause == "imbalance"
    assert "threads spin until one with more work is done" in said.words
    assert "in body (program)" in said.words


def test_uneven_work_that_spins_has_its_share_of_the_loss_by_thread_time_too() -> None:
    """Its CPU time stands apart from that of the work in the division of the capacity."""
    own = spinning_cell((0, 50), wall=0.67)
    by_time = next(it for it in further_verdicts(Case(own, SPINNING_BASE, False)) if not it.is_loss)
    assert by_time.cause == "imbalance"
    share = weigh(Case(own, SPINNING_BASE, False), by_time).share
    assert share is not None and share.value > 0.8


def test_spinning_that_explains_little_of_the_loss_accuses_no_lock() -> None:
    own = spinning_cell((4, 4), wall=0.83)
    assert cause_of(own, SPINNING_BASE).cause == "coherency"


def test_a_lock_that_spins_without_a_loss_is_no_cause() -> None:
    own = spinning_cell((2, 2), wall=0.505)
    assert cause_of(own, SPINNING_BASE).cause == "none"


def test_few_samples_do_not_make_an_even_lock_uneven_work() -> None:
    """Of 20 samples of a thread by chance 3 or 10 are in the loop."""
    own = spinning_cell((3, 10), wall=0.83, samples=20)
    assert cause_of(own, SPINNING_BASE).cause == "lock"
    # What is known by its name counts as before: a function of a library, or of OpenMP.
    named = Hot(
        1.0, HotRecord(samples=100, listed=(HotFunction(LIBC, 90, 0, "pthread_spin_lock", 80),))
    )
    assert spun([named])[0].locking == pytest.approx(0.9)
    openmp = Hot(1.0, HotRecord(samples=100, listed=(HotFunction(GOMP, 90, 0, None, 80),)))
    assert spun([openmp])[0].waiting == pytest.approx(0.9) and not spun([openmp])[0].locking


# -- threads of a server -----------------------------------------------------------------------

SERVED = Asked(Purposes("target", "target", ("load",), True))


def served(
    io: int, waiting: float, busy: float = 0.8, part: float = 1.0, loop: str = "IOThreadMain",
    seen: bool = True, work: float = 0.8,
) -> Breakdown:  # fmt: skip
    """A server whose first thread does the ``work``, with threads beside it that are ``busy``, and
    seem to wait in a loop for a part of that; and a load that asks them. Of its CPU time, ``part``
    is in the measured phase."""
    rng = random.Random(1)
    first = thread(work, poll=1 - work, name="server", tid=FIRST)
    first_samples = round(100 * work)
    beside = [thread(busy, poll=1 - busy, name=f"io_{n}", tid=FIRST + n) for n in range(1, io + 1)]
    each = round(100 * busy)
    spun_there = round(waiting * each)
    listed = [HotFunction("server", first_samples, first_samples, "answer")]
    if io:
        listed.append(HotFunction("server", io * each, 0, loop, io * spun_there if seen else 0))
    threads = [
        HotThread(FIRST, first_samples),
        *(HotThread(it["tid"], each, spun_there) for it in beside),
    ]
    found = HotRecord(
        samples=first_samples + io * each,
        files=(HotFile("server", first_samples + io * each),),
        listed=tuple(listed),
        threads=tuple(threads) if io and seen else (),
    )

    def server(noise: float) -> RoleRecord:
        made = role([first, *beside], None, phase=True, noise=noise)
        usage = msgspec.structs.replace(made.usage, user_ns=made.usage.cpu_ns)
        cpu = round(part * (usage.cpu_ns or 0))
        phase = msgspec.structs.replace(
            made.phases[0], usage=msgspec.structs.replace(usage, cpu_ns=cpu)
        )
        return msgspec.structs.replace(made, usage=usage, phases=(phase,), hot=found)

    def load(noise: float) -> RoleRecord:
        asking = [thread(0.1, name="load", poll=0.9)]
        return role(asking, 1000.0, "load", phase=True, noise=noise)

    accounts = [
        account(record(server(noise), load(noise)), SERVED)
        for noise in (1 + 0.002 * rng.random() for _ in range(5))
    ]
    cells = breakdown([each for each in accounts if each is not None])
    assert cells is not None
    return cells


SERVED_BASE = served(0, 0.0)


def test_threads_of_a_server_that_spin_for_requests_are_cpu_time() -> None:
    """An I/O thread that never sleeps: it has time left, and the same requests cost more."""
    said = cause_of(served(1, 0.8), SERVED_BASE, True)
    assert (said.cause, said.limit, said.either) == ("cpu", "", None)
    assert said.words == (
        "2.0 × the CPU time: threads spin while they wait for others: 40 % of the CPU time, in "
        "IOThreadMain (server)"
    )


@pytest.mark.parametrize(("waiting", "is_told"), [(0.8, True), (0.35, True), (0.2, False)])
def test_spinning_that_is_seen_in_part_explains_what_a_request_costs_more(
    waiting: float, is_told: bool
) -> None:
    """Who waits for the I/O thread spins as well, in a loop that is not known to wait."""
    said = cause_of(served(1, waiting), SERVED_BASE, True)
    assert ("threads spin while they wait for others" in said.words) is is_told
    assert (said.cause == "coherency") is not is_told
    is_most = spins_most(served(1, waiting), SERVED_BASE, said) != ""
    assert is_most is (waiting == 0.8)
    full = cause_of(served(2, waiting, busy=0.55), SERVED_BASE, True)
    assert (full.cause, full.limit) == ("cpu", "CPUs")
    assert ("threads spin while they wait for others" in full.words) is is_told


def test_threads_of_a_server_that_work_throughout_are_its_limit() -> None:
    said = cause_of(served(1, 0.0, busy=0.9), SERVED_BASE, True)
    assert (said.cause, said.limit) == ("cpu", "io") and "spin" not in said.words


def test_cpus_that_a_server_has_used_up_by_spinning_are_told_so() -> None:
    said = cause_of(served(2, 0.8, busy=0.55), SERVED_BASE, True)
    assert (said.cause, said.limit) == ("cpu", "CPUs")
    assert "threads spin while they wait for others: 46 % of the CPU time" in said.words
    assert "spin" not in cause_of(served(2, 0.2, busy=0.55), SERVED_BASE, True).words
    alone = cause_of(served(2, 0.95, busy=0.55), None, True)
    assert "threads spin while they wait for others" in alone.words


def test_threads_of_a_server_that_spin_more_than_others_work_may_do_so_for_a_lock() -> None:
    said = cause_of(served(1, 0.9, work=0.2), served(0, 0.0, work=0.2), True)
    assert (said.cause, said.either) == ("cpu", "lock")
    assert said.words.endswith("in IOThreadMain (server), for a lock or for requests")


def test_the_samples_of_a_server_count_where_most_of_its_time_is_measured() -> None:
    assert served(1, 0.8, part=0.4).accounts[0].hot is None
    counted = served(1, 0.8, part=0.6).accounts[0].hot
    assert counted is not None
    assert counted.user_ns == pytest.approx(0.6 * 1.6 * WALL / 1000, rel=0.01)


def test_a_spin_lock_of_a_server_is_a_lock_and_other_code_that_costs_more_has_its_name() -> None:
    locked = cause_of(served(1, 0.8, loop="s_lock", seen=False), SERVED_BASE, True)
    assert locked.cause == "lock" and "in s_lock (server)" in locked.words
    other = cause_of(served(1, 0.8, loop="encrypt", seen=False), SERVED_BASE, True)
    assert other.cause == "coherency" and "increase is in encrypt (server)" in other.words


@pytest.mark.parametrize(("loading", "is_told"), [(0.35, True), (0.1, False)])
def test_functions_that_hardly_ran_in_the_base_are_more_work_of_processes(
    loading: float, is_told: bool
) -> None:
    """Each process does what the only one of the base left out, such as merging with others."""
    place: Places = {LOOP: (1 - loading, 0), ("merge", "rows"): (loading, 0)}
    own = cell(2, place, wall=0.75)
    apart = own._replace(accounts=tuple(it._replace(apart=True) for it in own.accounts))
    said = cause_of(apart, BASE)
    assert (said.cause == "none") == is_told
    assert ("functions that hardly ran in the base" in said.words) == is_told
    assert ("or work that each worker does anew" in said.words) != is_told
    # Threads have such functions, too, where they retry what others have changed meanwhile.
    assert "hardly ran in the base" not in cause_of(own, BASE).words


@pytest.mark.parametrize(
    ("file", "name", "second", "named"),
    [
        ("redis-check-rdb", "redis-server", FIRST, "redis-server"),  # Debian's link
        ("memtier_benchmark", "memtier_benchma", FIRST, "memtier_benchmark"),  # the kernel cuts it
        ("python3.11", "serve.py", FIRST, "python3.11"),  # the code is the interpreter's
        ("redis-check-rdb", "redis-server", 7, "redis-check-rdb"),  # whose file it is, is not known
    ],
)
def test_a_program_is_named_as_it_was_started(
    file: str, name: str, second: int, named: str
) -> None:
    threads = [
        thread(1.0, 0.0, name, switches=3) | {"tid": FIRST, "pid": FIRST},
        thread(1.0, 0.0, "io_thd_1", switches=3) | {"tid": FIRST + 1, "pid": second},
    ]
    found = hot({("IOThreadMain", file): (0.9, 0.1), (None, LIBC): (0.1, 0.0)})
    server = msgspec.structs.replace(made(threads, 1.0, found, 1.0), pid=FIRST)
    seen = hot_of(server, 10.0)
    assert seen is not None
    assert [it.file for it in seen.record.listed] == [file, LIBC], "as the base has it"
    assert place_of([seen], lambda it: bool(it.function)) == f"IOThreadMain ({named})"


# -- samples of a part of the time -------------------------------------------------------------

LOCKED = HotFunction("program", 60, 0, "spin_lock", 0)


def in_part(samples: int, held: float = 0.0, share: float = 0.6) -> Hot:
    """A trial that was sampled in a half of the time, with this share of its samples at a lock."""
    at = msgspec.structs.replace(LOCKED, samples=round(share * samples))
    return Hot(1.0, HotRecord(samples=samples, halved=1, listed=(at,)), held=held)


def test_a_trial_without_samples_by_chance_spun_as_the_others() -> None:
    found = spun([in_part(50), None, in_part(50)])
    assert [it.locking for it in found] == pytest.approx([0.6, 0.6, 0.6])
    apart = [it.locking for it in spun([in_part(50), None, in_part(50, share=0.4), None])]
    assert apart == pytest.approx([0.6, 0.6, 0.4, 0.4]), "they spread as the others do"
    always = Hot(1.0, HotRecord(samples=100, listed=(LOCKED,)))
    assert spun([always, None])[0].locking == 0, "who is always sampled has some"
    assert spun([in_part(50), None, None])[0].locking == 0, "most have none"


def test_who_ran_too_little_in_that_part_to_be_seen_is_not_judged() -> None:
    assert spun([in_part(50, held=60.0)] * 2)[0].locking == pytest.approx(0.6)
    assert spun([in_part(50, held=250.0)] * 2)[0].locking == 0


def test_samples_of_one_window_belong_together() -> None:
    """Two thirds of one trial, and nothing of the next, is no growth that is known."""

    def trial(share: float, halved: int) -> Hot:
        places = (
            HotFunction("program", round(100 * share), 0, "burst", 0),
            HotFunction("program", round(100 * (1 - share)), 0, "rest", 0),
        )
        return Hot(1.0, HotRecord(samples=100, halved=halved, listed=places))

    shares = (0.66, 0.0, 0.66, 0.0)
    base = [trial(0.0, 0)] * 4
    assert "burst" in grew_in([trial(share, 0) for share in shares], base, 0.1)
    assert grew_in([trial(share, 1) for share in shares], base, 0.1) == ""
    assert "burst" in grew_in([trial(share, 1) for share in (0.3, 0.35, 0.3, 0.36)], base, 0.1)


def test_new_functions_of_one_phase_are_new_together() -> None:
    """Ten of them, which run in every other trial: no growth that is known."""

    def trial(share: float, halved: int) -> Hot:
        new = [HotFunction("program", round(10 * share), 0, f"new_{n}", 0) for n in range(10)]
        rest = HotFunction("program", round(100 * (1 - share)), 0, "rest", 0)
        return Hot(1.0, HotRecord(samples=100, halved=halved, listed=(*new, rest)))

    base = [trial(0.0, 0)] * 4
    assert is_new([trial(share, 0) for share in (0.8, 0.0, 0.8, 0.0)], base, 0.1)
    assert not is_new([trial(share, 1) for share in (0.8, 0.0, 0.8, 0.0)], base, 0.1)
    assert is_new([trial(share, 1) for share in (0.4, 0.5, 0.4, 0.5)], base, 0.1)


def sampled(user_share: float, samples: int = 100, **parts: float) -> list[Hot | None]:
    """Four trials that ran in so many parts of their time in user mode in each place."""
    names = {"libz": (None, "libz.so.1"), "inflate": ("inflate", "libz.so.1"),
             "loop": ("loop", "server"), "own": (None, "server"),
             "python": (None, "libpython3.11.so.1.0")}  # fmt: skip
    places: Places = {names[name]: (part, 0.0) for name, part in parts.items()}
    return [Hot(1e6, hot(places, samples), user_share=user_share)] * 4


@pytest.mark.parametrize(
    ("trials", "place", "share"),
    [
        (sampled(0.9, libz=0.9, own=0.1), "libz.so.1", 0.81),
        (sampled(0.9, inflate=0.9, own=0.1), "inflate (libz.so.1)", 0.81),
        (sampled(0.9, inflate=0.4, libz=0.4, own=0.2), "libz.so.1", 0.72),
        (sampled(1.0, loop=0.8, own=0.2), "loop (server)", 0.8),
        (sampled(0.2, loop=0.8, own=0.2), "the kernel", 0.8),
    ],
)
def test_the_place_of_most_cpu_time_is_named(
    trials: list[Hot | None], place: str, share: float
) -> None:
    found = most_spent(trials)
    assert found is not None and found.place == place
    assert found.share.value == pytest.approx(share)
    low, high = found.share.low, found.share.high
    assert low is not None and high is not None
    assert low <= found.share.value <= high
    if place != "the kernel":
        assert high - low > 0.03, "so many samples are as many by chance"


@pytest.mark.parametrize(
    "trials",
    [
        sampled(0.9, own=1.0),  # the program itself
        sampled(1.0, python=1.0),  # its language
        sampled(0.6, libz=0.8, own=0.2),  # less than half
        sampled(1.0, 20, libz=0.55, own=0.45),  # not for sure
        sampled(1.0, 5, libz=1.0),  # too few samples
        [None] * 4,
    ],
)
def test_no_place_is_named_that_says_nothing_or_has_no_clear_share(
    trials: list[Hot | None],
) -> None:
    assert most_spent(trials) is None


def test_what_an_operation_costs_is_said_where_cpu_time_is_used_up() -> None:
    bare = cell(2, None)
    station = Station("server", 2, 1.6, 0.8)
    serving = Serving((station,), server=1.6, client=0.2, granted=2, client_granted=2, together=2)
    hots = sampled(1.0, libz=1.0)
    accounts = tuple(
        it._replace(serving=serving, hot=one, counted="reported", operations=1e4, wall_ns=wall)
        for it, one, wall in zip(bare.accounts, hots, (1e9, 1.1e9, 0.9e9, 1e9), strict=False)
    )
    served = bare._replace(accounts=accounts)
    full = Verdict("cpu", "", limit="CPUs")
    assert re.fullmatch(
        r"An operation takes 160 µs \[1\d\d µs, 1\d\d µs\] of the server's CPU time, 100 % of it "
        r"in libz\.so\.1\.",
        spent(served, full),
    )
    places = bare._replace(accounts=tuple(it._replace(serving=None) for it in accounts))
    assert spent(places, full) == "100 % of the CPU time is in libz.so.1."
    whole = tuple(it._replace(counted="run") for it in accounts)
    assert "An operation" not in spent(bare._replace(accounts=whole), full)
    unknown = bare._replace(accounts=tuple(it._replace(hot=None) for it in accounts))
    assert spent(unknown, full).endswith("of the server's CPU time.")
    spins = served._replace(columns=served.columns | {"spin_locks": [1.0] * len(accounts)})
    assert spent(spins, full) == "", "that is told by itself"


def test_the_cost_of_an_operation_stands_in_the_table_and_where_cpus_limit() -> None:
    cost = Estimate(value=160e3, low=150e3, high=170e3, n=5, unit="ns")
    total = Estimate(value=400e3, n=5, unit="ns")
    made = CellExplanation(
        parameters={"n": 2}, cause="cpu", limit="CPUs", evidence="Evidence.", trials=5,
        per_operation={"total": total}, shares={"cpu": 1.0}, server_cpu=cost, spent="It costs.",
    )  # fmt: skip

    def text(found: CellExplanation) -> str:
        every = Explanation(
            run="r", study="s", factors=("n",), work="n", operation="o", cells=(found,)
        )
        return "\n".join(it.plain for it in lines(explanation_document(every), 120))

    assert "CPU/op (µs)" in text(made) and " 160 " in text(made)
    assert "cpu: Evidence. It costs." in text(made)
    assert line_of(made).text.endswith(" It costs.")
    lock = msgspec.structs.replace(made, cause="lock", limit="")
    assert "CPU/op" in text(lock) and "It costs." not in text(lock)
    alone = msgspec.structs.replace(made, server_cpu=None)
    assert "CPU/op" not in text(alone)
