"""How much of a loss a cause is, and what comes next."""

from __future__ import annotations

import re

import msgspec
import pytest

from concurve.estimate import Estimate
from concurve.explain import explanation, sentences, weights
from concurve.explain.accounts import Account, OtherRole
from concurve.explain.breakdown import Breakdown, breakdown
from concurve.explain.causes import cause_of
from concurve.explain.losses import known_parts, seeming_part, whole_excess
from concurve.explain.sentences import (
    above_ideal,
    less_possible,
    parts_without_cause,
    sentence,
)
from concurve.explain.verdict import Case, Verdict
from concurve.explain.weights import Weight, outweighed, weigh
from concurve.findings.cells import CellFindings
from concurve.findings.explanation import NO_LOSS, CellExplanation, RunnerUp
from concurve.report.losses import next_lost
from concurve.report.sections.limits import certainty, share_of_loss
from concurve.store import Store
from tests.explain.test_losses import BASE, cell, joining, worker
from tests.helpers.explaining import thread
from tests.helpers.made import made_run


def weight(own: Breakdown, base: Breakdown | None = BASE) -> Weight:
    return weigh(Case(own, base, False), cause_of(own, base))


def test_a_cause_has_its_share_of_the_loss_and_an_interval() -> None:
    found = weight(cell(2, [worker(), worker(lived=0.43), joining()], wall=0.7))
    assert found.share is not None and found.runner_up is None
    assert found.share.value == pytest.approx(1, abs=0.03)
    low, high = found.share.low, found.share.high
    assert low is not None and high is not None and low <= found.share.value <= high <= 1


def test_the_next_cause_is_another_part_of_the_loss() -> None:
    """Uneven work for most of it, and more CPU time for the rest."""
    own = cell(2, [worker(), worker(lived=0.5), joining()], wall=0.8)
    found = weight(own)
    assert cause_of(own, BASE).cause == "imbalance"
    assert found.share is not None and found.share.value == pytest.approx(0.67, abs=0.03)
    assert found.runner_up is not None and found.runner_up.share is not None
    assert (found.runner_up.cause, found.runner_up.parts) == ("none", ("cpu",)), "or memory"
    assert found.runner_up.share.value == pytest.approx(0.33, abs=0.03)


def test_more_cpu_time_has_a_cause_as_what_comes_next_only_where_it_is_told_apart() -> None:
    """Data that moves between CPUs looks like a core that CPUs of a virtual machine share."""
    own = cell(2, [worker(), worker(lived=0.5), joining()], wall=0.8, rss=1 << 20)
    base = cell(1, [worker(), joining()], rss=1 << 20)
    told_apart = weight(own, base).runner_up
    assert told_apart is not None and told_apart.cause == "coherency"
    virtual = own._replace(accounts=tuple(it._replace(may_share_cores=True) for it in own.accounts))
    either = weight(virtual, base).runner_up
    assert either is not None and (either.cause, either.parts) == ("none", ("cpu",))


def test_beside_others_that_had_the_cpus_nothing_comes_next_that_no_place_shows() -> None:
    """Who is kept from a CPU ends later, and others wait for it: that is the others' doing."""
    own = Case(cell(2, [worker(), worker(lived=0.5), joining()], wall=0.8), BASE, False)
    assert weigh(own, Verdict("contamination", "", parts=("run_queue",))).runner_up is None
    assert weigh(own, Verdict("cpu", "", parts=("run_queue",))).runner_up is not None


def test_waits_that_a_barrier_explains_are_no_lock_besides() -> None:
    late = [worker(0.66, futex=0.33, switches=60)] * 2
    found = weight(cell(2, [*late, joining()], wall=0.75, words=[(66, 2, 31)]))
    assert found.runner_up is None or found.runner_up.cause != "imbalance"
    assert found.share is not None and found.share.value > 0.9


def test_causes_that_cannot_be_told_apart_are_both_said() -> None:
    large = 200 << 20
    own = cell(2, [worker(), worker(), joining()], wall=0.8, rss=large)
    found = weight(own, cell(1, [worker(), joining()], rss=large))
    assert cause_of(own, BASE).cause == "memory"
    assert found.runner_up is not None and found.runner_up.is_indistinct
    assert found.runner_up.cause == "coherency"


def test_nothing_comes_next_of_a_loss_that_the_first_cause_is_all_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A third part has won some: the first two lost more than all."""
    own = Case(cell(2, [worker(), worker(lived=0.43), joining()], wall=0.7), BASE, False)
    first, other = Verdict("cpu", "", parts=("run_queue",)), Verdict("io", "", parts=("disk",))
    shares = {"cpu": 1.0, "io": 0.3}

    def share(*given: object) -> Estimate:
        verdict = given[-1]
        assert isinstance(verdict, Verdict)
        value = shares[verdict.cause]
        return Estimate(value=value, low=value, high=value, n=5)

    monkeypatch.setattr(weights, "_share", share)
    monkeypatch.setattr(weights, "_told", share)
    monkeypatch.setattr(weights, "further_verdicts", lambda _: [other])
    monkeypatch.setattr(weights, "sure_parts", lambda *_: {})
    assert weigh(own, first).runner_up is None
    shares["cpu"] = 0.8
    second = weigh(own, first).runner_up
    assert second is not None and second.share is not None
    assert second.share.value == pytest.approx(0.3), "as the table has it: the third won the rest"


def test_a_cause_that_may_be_small_gives_way_to_a_greater_one_that_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = Case(cell(2, [worker(), worker(lived=0.43), joining()], wall=0.7), BASE, False)
    first, other = Verdict("coherency", "", parts=("cpu",)), Verdict("serial", "", parts=("x",))
    third = Verdict("imbalance", "", parts=("y",))
    shares = {
        "coherency": (0.26, 0.08, 0.45),
        "imbalance": (0.28, 0.26, 0.3),
        "serial": (0.4, 0.3, 0.5),
    }

    def share(*given: object) -> Estimate:
        verdict = given[-1]
        assert isinstance(verdict, Verdict)
        value, low, high = shares[verdict.cause]
        return Estimate(value=value, low=low, high=high, n=5)

    monkeypatch.setattr(weights, "_share", share)
    monkeypatch.setattr(weights, "further_verdicts", lambda _: [first, third, other])
    assert outweighed(own, first).cause == "serial"
    shares["coherency"] = (0.35, 0.26, 0.45)
    assert outweighed(own, first).cause == "coherency"


def test_nothing_lost_has_no_share() -> None:
    assert weight(cell(2, [worker(), worker(), joining()], wall=0.5)) == Weight()
    assert weight(BASE, None) == Weight()


@pytest.mark.parametrize(("low", "is_said"), [(-1.0, False), (1.0, True)])
def test_nothing_has_a_share_of_a_loss_that_may_be_none(
    low: float, is_said: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = cell(2, [worker(), worker(lived=0.43), joining()], wall=0.7)
    whole = msgspec.structs.replace(whole_excess(own, BASE), low=low)
    monkeypatch.setattr(weights, "whole_excess", lambda *_: whole)
    assert (weight(own).share is not None) == is_said


def test_a_cause_that_cost_little_gives_way_to_the_one_that_cost_most() -> None:
    """Waiting for a CPU may grow in thread time, and cost the wall time nothing."""
    own = Case(cell(2, [worker(), worker(lived=0.43), joining()], wall=0.7), BASE, False)
    cpu = Verdict("cpu", "8 % of it waiting for a CPU", parts=("run_queue",))
    assert outweighed(own, cpu).cause == "imbalance"
    same = cause_of(own.cell, own.base)
    assert outweighed(own, same) == same
    used_up = cpu._replace(limit="CPUs")
    assert outweighed(own._replace(serving=True), used_up) == used_up


def test_more_cpu_time_is_the_cause_of_a_great_loss_of_more_threads_than_cpus() -> None:
    """Four threads wait for two CPUs, and need twice the CPU time: fewer would be no faster."""
    crowded = Verdict("cpu", "50 % of it waiting for a CPU", parts=("run_queue",))
    dear, cheap = (
        Case(cell(4, [worker(0.5, queue=0.5)] * 4, wall=wall), BASE, False) for wall in (1.0, 0.55)
    )
    assert outweighed(dear, crowded).cause == "coherency"
    assert outweighed(cheap, crowded) == crowded, "little is lost: the CPUs are used up"
    others = crowded._replace(cause="contamination")
    assert outweighed(dear, others) == others, "what others do to it may cost CPU time, too"


def test_more_cpu_time_that_varies_is_the_cause_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Threads that spin for a lock need more CPU time in one trial than in another, and the tables
    show that part as the greatest; whatever it is, the CPUs are not what limits."""
    crowded = Verdict("cpu", "50 % of it waiting for a CPU", parts=("run_queue",))
    walls = (0.8, 1.3, 1.05, 0.9, 1.2)
    trials = [cell(4, [worker(0.5, queue=0.5)] * 4, wall=wall) for wall in walls]
    dear = breakdown([side.accounts[0] for side in trials])
    assert dear is not None
    case = Case(dear, BASE, False)
    assert outweighed(case, crowded).cause == "coherency"
    monkeypatch.setattr(weights, "further_verdicts", lambda _: [])
    unknown = outweighed(case, crowded)
    assert unknown.cause == "none" and "for a reason that is not known" in unknown.words
    for cause in ("kernel", "lock"):
        named = crowded._replace(cause=cause)
        assert outweighed(case, named) == named, "a cause that is known stays"


def test_little_more_cpu_time_of_many_threads_is_not_what_others_took() -> None:
    """Eight threads wait for CPUs that others have, and need a tenth more CPU time."""
    waiting = worker(0.1, queue=0.6, other=0.3, switches=50)
    own = Case(cell(8, [waiting] * 8, wall=1.375, foreign=0.55), BASE, False)
    more = Verdict("coherency", "1.10 × the CPU time", parts=("cpu",))
    assert outweighed(own, more).cause != "coherency"
    shared = Case(cell(8, [worker(0.25, queue=0.75)] * 8), BASE, False)
    assert outweighed(shared, more).cause == "coherency"


def test_a_part_that_explains_little_of_a_loss_is_not_its_cause() -> None:
    """As the waits of xz's first thread for its workers, beside 7 % more CPU time."""
    waits = [worker(0.985, futex=0.014)] * 2
    own = Case(cell(2, [*waits, joining()], wall=0.54, rss=100 << 20), BASE, False)
    lock = Verdict("lock", "1 % of it blocked on futexes", parts=("futex",))
    said = outweighed(own, lock)
    assert said.cause == "none" and "of the loss, too little to be its cause" in said.words


def test_the_thread_time_of_a_server_that_serves_more_is_no_loss() -> None:
    """As of Go's runtime: threads that take turns wait without work, the more of them the more."""
    waits = [worker(0.985, futex=0.014)] * 2
    lock = Verdict("lock", "1 % of it blocked on futexes", parts=("futex",))
    more = Case(cell(2, [*waits, joining()], wall=0.54, rss=100 << 20), BASE, True)
    accounts = [trial._replace(is_go=True) for trial in more.cell.accounts]
    in_go = more._replace(cell=more.cell._replace(accounts=tuple(accounts)))
    said = outweighed(in_go, lock)
    assert said.cause == "none" and "of the loss" not in said.words
    assert "it serves 1.85 × as many operations a second all the same" in said.words
    assert said.words.endswith(NO_LOSS), "so it is not said that a cause was not found"
    assert weigh(in_go, lock) == Weight()
    either = weigh(in_go, lock._replace(either="imbalance")).runner_up
    assert either is not None and either.is_indistinct and either.share is None
    assert weigh(more, lock) != Weight() and "it serves" not in outweighed(more, lock).words
    as_many = Case(cell(2, [*waits, joining()], wall=1.0, rss=100 << 20), BASE, True)
    assert "it serves" not in outweighed(as_many, lock).words


def test_a_lost_part_that_explains_little_makes_a_sentence_too() -> None:
    """Its cause is taken back, and the words stay about the speed-up."""
    own = cell(2, [worker(), worker(lived=0.43), joining()], wall=0.7)
    little = cause_of(own, BASE)._replace(cause="none", words="9 % of it", parts=())
    assert little.is_loss
    one, two = made_cells()
    said = sentence(two, one, own, BASE, little, ("threads",))
    assert said.startswith("With threads=2 the speed-up over threads=1 is ")
    assert said.endswith(": 9 % of it.")


@pytest.mark.parametrize(("wall", "is_short"), [(0.1, True), (0.3, False)])
def test_short_trials_are_told_so_where_little_can_be_said(wall: float, is_short: bool) -> None:
    one, two = made_cells()
    base = cell(1, [worker(), joining()], wall=wall)
    own = cell(2, [worker(0.6, other=0.4)] * 2 + [joining()], wall=0.85 * wall)
    nothing = cause_of(own, base)
    assert nothing.cause == "none"
    said = sentence(two, one, own, base, nothing, ("threads",))
    short = "are short: with more work in each, more can be said."
    assert (". Trials of 85" in said and said.endswith(short)) == is_short
    # What one thread does alone may be the start of the program.
    base = cell(1, [worker(lived=0.7), joining(0.3)], wall=wall)
    own = cell(2, [worker(lived=0.55)] * 2 + [joining(0.45)], wall=0.65 * wall)
    alone = cause_of(own, base)
    assert alone.cause == "serial"
    said = sentence(two, one, own, base, alone, ("threads",))
    assert ("the start of the program is a part of that" in said) == is_short


def test_of_a_loss_without_a_cause_its_known_parts_are_said() -> None:
    nothing = Verdict("none", "")
    several = cell(2, [worker(0.6, queue=0.2, other=0.2)] * 2 + [joining()], wall=0.85)
    said = parts_without_cause(several, BASE, nothing)
    assert re.fullmatch(
        r"No single cause: .* is \d+ % of the lost speed-up, .* \d+ %( and .* \d+ %)?\.", said
    )
    assert "waiting for a CPU" in said and "waiting (locks, I/O)" in said
    only = cell(2, [worker(0.6, other=0.4)] * 2 + [joining()], wall=0.85)
    assert parts_without_cause(only, BASE, nothing) == (
        "Waiting (locks, I/O) is 97 % of the lost speed-up, and its cause is not known."
    )
    either = Verdict("none", "", either_way="waiting for the client or for locks")
    assert parts_without_cause(only, BASE, either).endswith(
        "its cause is not known. Not told apart: waiting for the client or for locks."
    )
    assert parts_without_cause(several, BASE, Verdict("lock", "")) == "", "a cause is named"
    assert parts_without_cause(several, None, nothing) == "", "it is compared with nothing"
    no_loss = cell(2, [worker()] * 2 + [joining()], wall=0.5)
    assert parts_without_cause(no_loss, BASE, nothing) == ""
    alone = several._replace(accounts=several.accounts[:1])
    assert parts_without_cause(alone, BASE, nothing) == "", "one trial tells no noise"


def test_of_a_loss_without_a_cause_the_greatest_part_goes_first_though_it_is_not_sure() -> None:
    """Who reads the table sees that more CPU time is most of it: the sentence may not leave it out
    because trials differ in it."""
    own = of_costs(0.43, 0.91, queue=0.15)
    part = seeming_part(own, BASE)
    assert part is not None and part[0] == "cpu"
    assert [name for name, _ in known_parts(own, BASE)] == ["queue"]
    said = parts_without_cause(own, BASE, Verdict("none", ""))
    assert re.fullmatch(
        r"No single cause: more CPU time per operation is \d+ % \(not sure\) of the lost speed-up, "
        r"waiting for a CPU \d+ %\.",
        said,
    )
    several = cell(2, [worker(0.6, queue=0.2, other=0.2)] * 2 + [joining()], wall=0.85)
    assert seeming_part(several, BASE) is None, "all are sure"


def of_costs(*costs: float, queue: float) -> Breakdown:
    """Trials of two workers that take so many seconds of CPU time each, four of each cost."""
    accounts: list[Account] = []
    for cpu in costs:
        wall = cpu + queue
        working = [worker(cpu / wall, queue=queue / wall)] * 2
        accounts += cell(2, [*working, joining()], wall=wall).accounts[:4]
    found = breakdown(accounts)
    assert found is not None
    return found


def test_a_part_that_could_be_a_cause_has_its_interval_where_it_may_be_too_small_for_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shares = [
        ("waiting", Estimate(value=0.28, low=0.1, high=0.45, n=5)),
        ("cpu", Estimate(value=0.27, low=0.26, high=0.28, n=5)),
        ("queue", Estimate(value=0.2, low=0.1, high=0.3, n=5)),
    ]
    monkeypatch.setattr(sentences, "known_parts", lambda *_: shares)
    own = cell(2, [worker(0.6, other=0.4)] * 2 + [joining()], wall=0.85)
    assert parts_without_cause(own, BASE, Verdict("none", "")) == (
        "No single cause: waiting (locks, I/O) is 28 % [10 %, 45 %] (not sure) of the lost "
        "speed-up, more CPU time per operation 27 % and waiting for a CPU 20 %."
    )


@pytest.mark.parametrize(
    ("is_jvm", "said"),
    [
        (True, "less help from the JVM's compilers and collector, 21 %"),
        (False, "less help from other threads, 21 %"),
    ],
)
def test_less_help_says_whose_it_was(is_jvm: bool, said: str) -> None:
    second = RunnerUp("none", Estimate(value=0.21, low=0.2, high=0.22, n=5), parts=("helping",))
    own = CellExplanation(parameters={}, cause="serial", evidence="", is_jvm=is_jvm)
    assert next_lost(own, second) == said


@pytest.mark.parametrize(
    ("level", "queue", "is_told"), [(4, 0.5, True), (4, 0.1, False), (2, 0.5, False)]
)
def test_waits_by_turns_of_more_workers_than_cpus_are_told_to_be_in_the_ideal(
    level: int, queue: float, is_told: bool
) -> None:
    """Half of their time is in run queues, and the table has hardly anything lost to that."""
    own = cell(level, [worker(1 - queue, queue=queue)] * level + [joining()])
    shares = {"cpu": 1 - queue, "run_queue": queue}
    found = CellExplanation(parameters={}, cause="cpu", evidence="", shares=shares)
    assert explanation._wait_by_turns(found, {0: own}) is is_told


def test_an_interval_that_shows_one_number_is_that_number() -> None:
    assert share_of_loss(Estimate(value=1.0, low=1.0, high=1.0, n=5)) == "100 %"
    wide = Estimate(value=0.53, low=0.34, high=1.0, n=5)
    assert share_of_loss(wide) == "at least 34 %", "of 53 % little is known"
    assert share_of_loss(Estimate(value=0.98, low=0.9, high=1.0, n=5)) == "98 % [90 %, 100 %]"


def test_a_speedup_above_the_ideal_is_explained_by_what_the_base_waited_and_used() -> None:
    one, two = made_cells()

    def told(
        own: Breakdown, base: Breakdown | None, low: float = 1.8, in_doubt: bool = False
    ) -> str:
        efficiency = Estimate(value=2.0, low=low, high=2.2, n=5, in_doubt=in_doubt)
        speedup = Estimate(value=4.0, low=2 * low, high=4.4, n=5)
        figures = {"speedup": speedup, "efficiency": efficiency}
        return above_ideal(msgspec.structs.replace(two, indicators=figures), one, own, base)

    waits = cell(1, [worker(0.6, other=0.4), joining()])
    full = cell(2, [worker(0.98)] * 2 + [joining()], wall=0.2)
    ideal = "The speed-up of 4.00 is more than the ideal 2"
    assert re.fullmatch(
        rf"{ideal}: with threads=1 threads are blocked for 40 % of an operation, here for \d.\d %; "
        r"an operation takes 3\d % less CPU time\.",
        told(full, waits),
    )
    as_much = cell(2, [worker(0.98)] * 2 + [joining()], wall=0.31)
    assert "CPU time" not in told(as_much, waits) and "are blocked for 40 %" in told(as_much, waits)
    busy = cell(1, [worker(), joining()])
    assert "are blocked" not in told(full, busy) and "less CPU time" in told(full, busy)
    more = cell(2, [worker()] * 2 + [joining()], wall=0.6)
    assert told(more, busy) == f"{ideal}; nothing that was measured says why."
    assert told(full, waits, low=1.0) == "", "it may be the ideal"
    assert told(full, waits, in_doubt=True) == "" and told(full, None) == ""


def test_less_is_possible_where_the_base_keeps_more_cpus_busy_than_it_has_workers() -> None:
    """A JVM with its compilers."""
    one, two = made_cells()
    helped = cell(1, [worker(), thread(0.3, name="compiler"), joining()], wall=1.0)
    both = cell(2, [worker(0.9)] * 2 + [joining()], wall=0.7)
    said = less_possible(two, one, both, helped)
    assert re.fullmatch(
        r"No more than 1\.5\d× is possible, and not 2×: "
        r"threads=1 already uses 1\.3\d? of the 2 CPUs\.",
        said,
    ), said
    alone = cell(1, [worker(), joining()])
    assert less_possible(two, one, both, alone) == "" == less_possible(two, one, both, None)


def made_cells() -> tuple[CellFindings, CellFindings]:
    run = made_run(Store(), lambda n: 1.0 / float(n), threads=(1, 2))
    one, two = run.cells
    return one, two


def used_up(limit: str, share: float, second: RunnerUp | None, half: float = 0.02) -> str:
    estimate = Estimate(value=share, low=share - half, high=share + half, n=5)
    made = CellExplanation(
        parameters={}, cause="cpu", evidence="", limit=limit, share=estimate, runner_up=second
    )
    return certainty(made)


def test_how_much_waits_for_what_is_used_up_is_told_however_little_it_is() -> None:
    more = RunnerUp("coherency", Estimate(value=0.9, n=5))
    assert used_up("CPUs", 0.1, more) == (
        " Waiting for a CPU is 10 % [8 %, 12 %] of the extra time per operation; a greater part: "
        "more CPU time (perhaps data that moves between CPUs), 90 %."
    )
    less = RunnerUp("client", Estimate(value=0.3, n=5))
    assert used_up("main", 0.7, less) == (
        " That is 70 % [68 %, 72 %] of the extra time per operation; next: waiting for the load, "
        "30 %."
    )
    assert used_up("", 0.1, more) == (
        " Of the extra time per operation, 90 % is more CPU time (perhaps data that moves between "
        "CPUs), and 10 % [8 %, 12 %] waiting for a CPU."
    ), "in the order of the table"
    assert used_up("", 0.1, RunnerUp("coherency", Estimate(value=0.2, n=5))) == "", (
        "both are little"
    )


def test_a_share_that_may_be_nothing_and_all_has_no_number() -> None:
    said = " How much of the extra time per operation that is, these trials do not say"
    second = RunnerUp("client", Estimate(value=0.9, n=5))
    assert used_up("", 0.5, None, half=0.48) == f"{said}."
    assert used_up("CPUs", 0.5, second, half=0.48) == f"{said}; next: waiting for the load, 90 %."
    assert used_up("", 0.5, None, half=0.44) == f"{said}.", "nor one that is anything"
    known = " That is 50 % [14 %, 86 %] of the extra time per operation."
    assert used_up("", 0.5, None, half=0.36) == known


def test_waits_of_the_woken_for_a_cpu_are_a_part_of_what_a_lock_costs() -> None:
    """Who is woken waits where the other one still runs, though there is a CPU for each."""
    base = cell(1, [worker(), joining()])
    woken = worker(0.5, queue=0.25, futex=0.25, switches=600)
    own = cell(2, [woken, woken, joining()])
    said = cause_of(own, base)
    found = weight(own, base)
    assert said.cause == "lock" and found.share is not None
    assert found.share.value == pytest.approx(1, abs=0.03)
    # Where others take CPUs they may be what it waits for.
    beside = weight(cell(2, [woken, woken, joining()], foreign=0.1), base)
    assert beside.share is None or beside.share.value < 0.6


def test_waits_for_a_cpu_that_are_longer_than_those_for_a_lock_are_not_its_cost() -> None:
    """Threads that hardly wait for one another, and long for CPUs that they have."""
    base = cell(1, [worker(), joining()])
    woken = worker(0.6, queue=0.3, futex=0.1, switches=600)
    found = weigh(Case(cell(2, [woken, woken, joining()]), base, False), LOCK)
    assert found.share is not None and found.share.value == pytest.approx(0.2, abs=0.03)


def test_a_lock_has_no_part_of_the_waits_that_another_role_explains() -> None:
    """A background role takes a CPU, and the workers wait for it as well as for one another."""
    alone = weigh(Case(*_locked(beside=0.0), False), LOCK)
    rivals = weigh(Case(*_locked(beside=0.5), False), LOCK)
    assert alone.share is not None and rivals.share is not None
    assert alone.share.value > 1.5 * rivals.share.value


LOCK = Verdict("lock", "", parts=("futex",))


def _locked(beside: float) -> tuple[Breakdown, Breakdown]:
    """A cell at a lock and its base, beside a role that uses so many CPUs."""
    woken = worker(0.5, queue=0.25, futex=0.25, switches=600)
    sides = cell(2, [woken, woken, joining()]), cell(1, [worker(), joining()])
    rival = OtherRole("background", beside, 0, beside)
    own, base = (
        side._replace(accounts=tuple(it._replace(others=(rival,)) for it in side.accounts))
        for side in sides
    )
    return own, base
