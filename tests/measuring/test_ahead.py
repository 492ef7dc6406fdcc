"""Trials of a simulation that run at once: what is stored is what one after the other gives."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from concurve.analysis.run import trial_findings_of
from concurve.definition.study import FREE_PORT, Hooks, Rules, Study
from concurve.definition.study_file import parse_study
from concurve.engine.local import LocalEngine
from concurve.engine.tasks import Processes, Tasks
from concurve.measuring.ahead import can_run_at_once
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.measuring.site import ThisMachine
from concurve.store import Store
from concurve.store.rows import TrialRow
from concurve.wire import decode_spec
from concurve.wire.spec import TrialSpec
from tests.helpers import real
from tests.helpers.fakes import FakeClock, FakeEngine, small_study


class Shuffled:
    """Computes the items of a call in another order than theirs, with an engine of the test."""

    def __init__(self, engine: FakeEngine) -> None:
        self.engine = engine
        self.calls: list[int] = []

    def map(
        self, function: Callable[[Any], Any], items: Iterable[Any], seconds: float | None = None
    ) -> Iterator[Any]:
        listed = list(items)
        self.calls.append(len(listed))
        found = {}
        for number in random.Random(1).sample(range(len(listed)), len(listed)):
            found[number] = self.engine.run(decode_spec(listed[number]))
        for number in range(len(listed)):
            yield found[number]


def with_tasks(tasks: Tasks | None) -> ThisMachine:
    return ThisMachine(tasks)


def simulation() -> Study:
    study = small_study(Rules(repeats_min=4, repeats_max=9, precision=0.001), threads=(1, 2, 3, 4))
    return msgspec.structs.replace(study, simulation=True)


def trials(
    path: Path, engine: FakeEngine, tasks: Tasks | None, study: Study | None = None
) -> list[TrialRow]:
    store = Store(str(path))
    head = new_head(study or simulation(), "normal", 3, "again")
    site = with_tasks(tasks)
    Runner(head, store, engine, clock=FakeClock(0.001), site=site).start()
    return [trial._replace(outcome=trial.outcome._replace(seconds=0.0))
            for trial in store.trials(head.id)]  # fmt: skip


def fails(spec: TrialSpec) -> str:
    """The third cell fails twice and is skipped; the second one fails once, in the second block."""
    place = spec.trial.partition("/")[2]
    return "program_failed" if place.startswith("2/") or place == "1/1/0" else "ok"


@pytest.mark.parametrize("kind_of", [lambda spec: "ok", fails])
def test_what_is_stored_does_not_depend_on_what_ran_at_once(
    tmp_path: Path, kind_of: Callable[[TrialSpec], str]
) -> None:
    alone = trials(tmp_path / "alone.db", FakeEngine(kind_of=kind_of), None)
    ahead = Shuffled(FakeEngine(kind_of=kind_of))
    unused = FakeEngine()
    together = trials(tmp_path / "together.db", unused, ahead)
    assert together == alone and len(alone) > 16
    assert not unused.specs and max(ahead.calls) == 4, "a block is begun at once"


def test_only_trials_that_leave_each_other_alone_run_at_once(tmp_path: Path) -> None:
    study = simulation()
    assert can_run_at_once(study)
    assert not can_run_at_once(small_study())
    assert not can_run_at_once(msgspec.structs.replace(study, hooks=Hooks(prepare="true")))
    role = msgspec.structs.replace(study.roles[0], command=("true", "{" + FREE_PORT + "}"))
    assert not can_run_at_once(msgspec.structs.replace(study, roles=(role,)))
    tasks, engine = Shuffled(FakeEngine()), FakeEngine()
    trials(tmp_path / "measured.db", engine, tasks, small_study(Rules(repeats_max=5)))
    assert engine.specs and not tasks.calls, "what is measured runs alone"


DISK = """
[study]
name = "disk"
question = "Which scheduler loads fastest?"

[factors]
scheduler = ["noop", "deadline", "cfq"]

[[roles]]
name = "target"
program = "disk"
arguments = ["load", "--scheduler", "{scheduler}", "--scale", "0.002", "--seed", "{block_seed}"]

[protocol]
simulation = true

[effort.quick]
repeats = 2

[[indicators]]
use = ["simulated_seconds", "read_mean_ms"]
"""


@pytest.mark.real
@pytest.mark.skipif(real.missing() is not None, reason=str(real.missing()))
def test_a_simulation_says_the_same_on_one_worker_and_on_two(tmp_path: Path) -> None:
    study = parse_study(DISK, 2, "disk.toml")
    found = []
    for count in (0, 1, 2):
        store = Store(str(tmp_path / f"{count}.db"))
        head = new_head(study, "quick", 5, "again")
        site = with_tasks(Processes(count) if count else None)
        Runner(head, store, LocalEngine(), clock=FakeClock(0.001), site=site).start()
        dots = trial_findings_of(store, store.find_run(head.id)).dots
        names = ("simulated_seconds", "read_mean_ms")
        found.append([(dot.cell, dot.block, *(dot.values[name] for name in names))
                      for dot in dots])  # fmt: skip
    assert found[0] == found[1] == found[2] and len(found[0]) == 6
    assert len({dot[2] for dot in found[0]}) == 6, "every cell and every draw differs"


def test_processes_give_the_results_in_order_whatever_the_function_holds() -> None:
    amount = 3
    for count in (1, 2):
        found = list(Processes(count).map(lambda item: item * amount, range(20)))
        assert found == [3 * number for number in range(20)]
