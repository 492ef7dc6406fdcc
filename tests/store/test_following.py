"""What who follows a run asks of the store: little, and what is new alone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from concurve.errors import StoreError
from concurve.store import Store
from concurve.store.holder import own_holder, process_of
from tests.helpers.made import made_run


def run_of(store: Store, seed: int = 1) -> str:
    return made_run(store, lambda n: 1.0 / int(n), seed=seed, threads=(1, 2)).run.id


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "a.db"))


def test_outcomes_are_read_once(store: Store) -> None:
    first, second = run_of(store, 1), run_of(store, 2)
    last, outcomes = store.outcomes_after(first, 0)
    assert list(outcomes) == list(store.trials(first).outcomes)
    assert store.outcomes_after(first, last)[0] == last
    assert len(store.outcomes_after(first, last)[1]) == 0
    middle = last - 3
    newest, rest = store.outcomes_after(first, middle)
    assert newest == last and list(rest) == list(outcomes)[-3:]
    assert len(store.outcomes_after(second, 0)[1]) == 10
    assert store.outcomes_after("none", 0)[0] == 0


def test_one_run_is_read_without_the_others(store: Store) -> None:
    run = run_of(store)
    assert store.run(run) == store.find_run(run)
    with pytest.raises(StoreError, match="no run"):
        store.run(run[:-1])


def test_the_trials_of_all_runs_are_counted_at_once(store: Store) -> None:
    first, second = run_of(store, 1), run_of(store, 2)
    assert store.counts() == {first: 10, second: 10}


def test_who_runs_a_run_is_a_process(store: Store) -> None:
    run = run_of(store)
    assert store.holder(run) == ""
    store.set_state(run, "running", "")
    assert process_of(store.holder(run)) == os.getpid()


def test_a_holder_that_is_not_seen_here_is_no_process() -> None:
    machine, boot, namespace, pid, started = own_holder().split(" ")
    assert process_of(" ".join((machine, boot, namespace, pid, started))) == os.getpid()
    for other in (
        f"x {boot} {namespace} {pid} {started}",
        f"{machine} x {namespace} {pid} {started}",
        f"{machine} {boot} x {pid} {started}",
        f"{machine} {boot} {namespace} x {started}",
        f"{machine} {boot} {namespace} {pid} 1",
        f"{machine} {boot} {namespace} {pid} ",
        f"{machine} {boot} {namespace} 999999999 {started}",
        "",
        "a b",
    ):
        assert process_of(other) is None, other


def test_a_store_that_was_written_is_told_without_a_query(store: Store, tmp_path: Path) -> None:
    run = run_of(store)
    before = store.written()
    assert before is not None and store.written() == before
    Store(str(tmp_path / "a.db")).set_state(run, "interrupted", "x")
    assert store.written() != before
