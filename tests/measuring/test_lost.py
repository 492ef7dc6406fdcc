"""A trial of which a host was lost: it is marked and counts for nothing, and is run again."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import msgspec
import pytest

from concurve.analysis.run import findings_of
from concurve.definition.study import Rules
from concurve.engine import TrialLostError
from concurve.exports import export_run
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.planning.protocol import LOST
from concurve.store import Store
from concurve.store.rows import TrialKey
from concurve.wire import decode_record
from concurve.wire.spec import TrialSpec
from tests.helpers.fakes import FakeClock, FakeEngine, small_study

SAYS = "host b was lost: its agent is gone: no answer within 4 s"

ABSENT = {"rss_bytes_max": "this kernel does not say"}

#: Three blocks of two cells; of the allowance each trial takes half a second.
RULES = Rules(repeats_min=3, repeats_max=3, time_allowed_seconds=3.4)


class Losing(FakeEngine):
    """Loses a host in the trials with these numbers, counted from 1. A figure is absent in all."""

    def __init__(self, *at: int) -> None:
        super().__init__()
        self._at: Collection[int] = at

    def run(self, spec: TrialSpec) -> bytes:
        record = decode_record(super().run(spec))
        if len(self.specs) in self._at:
            raise TrialLostError(SAYS, "concurve resume last")
        (role,) = record.roles
        usage = msgspec.structs.replace(role.usage, rss_bytes_max=None, absent=ABSENT)
        role = msgspec.structs.replace(role, usage=usage)
        return msgspec.json.encode(msgspec.structs.replace(record, roles=(role,)))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "s.db"))


def lost_at(store: Store, at: int) -> Runner:
    """A run that has lost a host in its trial of this number."""
    head = new_head(small_study(RULES, threads=(1, 2)), "normal", 5, "concurve sweep …")
    runner = Runner(head, store, Losing(at), clock=FakeClock())
    with pytest.raises(TrialLostError, match="host b was lost"):
        runner.start()
    return runner


def resumed(store: Store, runner: Runner, *at: int) -> None:
    Runner(runner.head, store, Losing(*at), clock=FakeClock()).resume()


def used(store: Store, run: str) -> list[tuple[int, int]]:
    """The cell and the block of the trials that count."""
    outcomes = store.trials(run).outcomes
    return [(it.key.cell, it.key.block) for it in outcomes if it.verdict == "ok"]


@pytest.mark.parametrize("at", [1, 4, 6])
def test_a_lost_trial_is_stored_with_what_was_lost_and_no_figure(store: Store, at: int) -> None:
    run = lost_at(store, at).head.id
    *_, (key, record) = store.records(run)
    *others, last = store.trials(run)
    assert len(others) == at - 1
    assert last.outcome == (key, "program_error", None, 0.0, LOST, SAYS)
    stored = decode_record(record)
    assert stored.roles == (), "no smaller load: the hosts that are left have no part in it"
    assert (stored.trial, stored.outcome.message) == (
        f"{run}/{key.cell}/{key.block}/{key.attempt}",
        SAYS,
    )
    row = store.find_run(run)
    assert (row.state, row.reason) == ("failed", SAYS)
    findings = findings_of(store, row)
    assert (findings.run.trials, findings.run.rejected) == (at, 1)
    assert [(it.cause, it.detail, it.used) for it in findings.rejects] == [(LOST, SAYS, False)]


@pytest.mark.parametrize("at", [1, 4, 6])
def test_a_resumed_run_has_exactly_the_planned_trials(store: Store, at: int) -> None:
    """Within its time allowance, of which the lost one takes nothing."""
    runner = lost_at(store, at)
    lost = store.trials(runner.head.id).outcomes.key(at - 1)
    resumed(store, runner)
    run = runner.head.id
    assert store.find_run(run).state == "complete"
    assert sorted(used(store, run)) == [(cell, block) for cell in (0, 1) for block in range(3)]
    keys = store.trials(run).outcomes.keys()
    assert len(keys) == len(set(keys)) == 7
    assert TrialKey(lost.cell, lost.block, lost.attempt + 1) in keys
    findings = findings_of(store, store.find_run(run))
    assert [cell.trials for cell in findings.cells] == [3, 3]
    assert [cell.status for cell in findings.cells] == ["ok", "ok"]


def test_losses_are_no_errors_of_a_program(store: Store) -> None:
    """However often a host is lost in the trials of one cell, it is not skipped."""
    runner = lost_at(store, 1)
    for _ in range(5):
        with pytest.raises(TrialLostError):
            resumed(store, runner, 1)
    resumed(store, runner)
    assert store.find_run(runner.head.id).state == "complete"
    assert len(used(store, runner.head.id)) == 6


def test_a_run_that_begins_with_a_loss_is_shown_and_exported(store: Store) -> None:
    """What is asked of the first record is asked of the first that has something to say."""
    runner = lost_at(store, 1)
    resumed(store, runner)
    row = store.find_run(runner.head.id)
    findings = findings_of(store, row)
    assert [cell.absent for cell in findings.cells] == [ABSENT, ABSENT]
    for kind in ("markdown", "json"):
        assert SAYS.encode() in export_run(store, row, kind)
