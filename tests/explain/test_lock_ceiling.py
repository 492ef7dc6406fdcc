"""How much speed-up a lock allows at most, by how long threads wait for it."""

from __future__ import annotations

import heapq
import random
from typing import Any

import pytest

from concurve.explain.breakdown import Breakdown
from concurve.explain.causes import cause_of
from concurve.explain.lock_ceiling import lock_held
from concurve.explain.sentences import lock_allows
from concurve.explain.verdict import Case, Verdict
from concurve.store import Store
from tests.explain.test_losses import cell, joining, waits_at, worker
from tests.helpers.made import made_run

LOCK = Verdict("lock", "", parts=("futex",))
OPERATIONS = 4000


def run(threads: int, held: float, steady: bool, seed: int = 1) -> tuple[float, float]:
    """The wall time of the same operations by so many threads, each of which takes 1, ``held`` of
    it under one lock; and how long they waited for the lock in all. In units of an operation."""
    rng = random.Random(seed)

    def takes(mean: float) -> float:
        return mean if steady else rng.expovariate(1 / mean)

    ready = [(rng.random() + takes(1 - held), number) for number in range(threads)]
    heapq.heapify(ready)
    free = waited = end = 0.0
    for _ in range(OPERATIONS):
        at, number = heapq.heappop(ready)
        begun = max(at, free)
        waited += begun - at
        free = begun + takes(held)
        end = max(end, free)
        heapq.heappush(ready, (free + takes(1 - held), number))
    return end / OPERATIONS, waited / OPERATIONS


def of_lock(threads: int, wall: float, waited: float, **more: Any) -> Breakdown:
    """The cell of such a run, on a CPU for each thread."""
    futex = min(0.98, waited / (threads * wall))
    found = waits_at(("join", 300), ("mutex", 60))
    given: dict[str, Any] = {"sites": found, "words": [(2000, threads)]} | more
    own = worker(1 - futex - 0.01, futex=futex, switches=given.pop("switches", 100))
    cpus = given.pop("cpus", tuple(range(threads)))
    return cell(threads, [*[own] * threads, joining()], wall=wall, cpus=cpus, **given)


@pytest.mark.parametrize("steady", [True, False])
@pytest.mark.parametrize("held", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("threads", [2, 4, 16])
def test_no_lock_allows_more_than_its_bound(threads: int, held: float, steady: bool) -> None:
    """It is a bound whatever the times vary by, and near the truth where many threads wait."""
    base = cell(1, [worker(), joining()], wall=1.0)
    wall, waited = run(threads, held, steady)
    found = lock_held(Case(of_lock(threads, wall, waited), base, False), LOCK)
    if found is None:
        return
    assert found.low is not None and found.low <= held * 1.05
    if threads == 16:
        assert found.low >= 0.8 * held, "it says something"


def test_the_bound_is_told_where_it_is_below_the_workers() -> None:
    base = cell(1, [worker(), joining()], wall=1.0)
    one, two = made_run(Store(), lambda n: 1.0 / float(n), threads=(1, 2)).cells

    def said(own: Breakdown, verdict: Verdict = LOCK) -> str:
        return lock_allows(one, two, Case(own, base, False), verdict)

    wall, waited = run(4, 0.6, steady=True)
    own = of_lock(4, wall, waited)
    assert cause_of(own, base).cause == "lock"
    text = said(own)
    assert text.startswith("The lock is held for at least 4")
    assert " of an operation's time with threads=1: however many workers there are, " in text
    bound = float(text.partition("no more than ")[2].partition("×")[0])
    assert 1 / 0.6 <= bound <= 1.35 / 0.6
    assert said(of_lock(2, *run(2, 0.6, steady=True))) == "", "5× says nothing of two threads"


def test_no_bound_is_told_where_the_evidence_does_not_tell() -> None:
    base = cell(1, [worker(), joining()], wall=1.0)
    both = run(4, 0.6, steady=True)

    def held(verdict: Verdict = LOCK, **more: Any) -> object:
        return lock_held(Case(of_lock(4, *both, **more), base, False), verdict)

    assert held() is not None
    assert held(sites=waits_at(("semaphore", 60))) is None, "which may let in several"
    assert held(sites=waits_at(("mutex", 60), ("rwlock", 30))) is None, "so do readers"
    assert held(sites=waits_at(("mutex", 1))) is None, "few places"
    assert held(cpus=(0, 1)) is None, "who holds it may wait for a CPU"
    assert held(switches=2000) is None, "it may be free while they are woken"
    assert held(words=[]) is None, "it may be several locks"
    assert held(LOCK._replace(either="imbalance")) is None
    assert held(Verdict("serial", "")) is None
    assert lock_held(Case(of_lock(4, *both), None, False), LOCK) is None
