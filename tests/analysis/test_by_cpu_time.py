"""Versions of a program on a machine that others use: CPU time says which is faster, where the wall
time is in doubt and one thread computes."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest

from concurve.analysis.comparison import compare_levels
from concurve.analysis.comparison.options import Options
from concurve.analysis.run import trial_findings_of
from concurve.definition.study import Rules
from concurve.findings.run import TrialFindings
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.store import Store
from concurve.wire.record import ThreadsRecord
from concurve.wire.spec import TrialSpec
from tests.helpers.counts import at_most, few_or_many
from tests.helpers.fakes import FakeClock, FakeEngine, record_of, small_study

RUNS = 40
RULES = Rules(repeats_min=15, repeats_max=15, redo_max=0, redo_share=0.0)


class Busy(FakeEngine):
    """A machine on which a stranger makes each trial wait for its CPU, for up to as long again.
    The second version computes ``slower`` times as long; ``sleeps`` is for how many times as long
    as it computes each of them blocks, and ``taken`` for how many times it waits for its CPU at
    least."""

    def __init__(
        self, seed: int, slower: float, threads: int = 1, sleeps: float = 0.0, taken: float = 0.2
    ) -> None:
        super().__init__()
        self.seed, self.slower, self.threads, self.sleeps = seed, slower, threads, sleeps
        self.taken = taken

    def run(self, spec: TrialSpec) -> bytes:
        rng = random.Random(f"{self.seed}/{spec.trial.partition('/')[2]}")
        own = self.slower if spec.roles[0].argv[1] == "new" else 1.0
        cpu = own * rng.lognormvariate(0, 0.005)
        taken = cpu * rng.uniform(self.taken, self.taken + 0.7)
        record = record_of(spec, cpu * (1 + self.sleeps) + taken, foreign_ns=round(taken * 1e9))
        (role,) = record.roles
        role = msgspec.structs.replace(
            role,
            usage=msgspec.structs.replace(
                role.usage, cpu_ns=round(cpu * 1e9), run_queue_ns=round(taken * 1e9)
            ),
            threads=ThreadsRecord(total=self.threads, peak=self.threads, processes=1),
        )
        return msgspec.json.encode(msgspec.structs.replace(record, roles=(role,)))


def versions(seed: int, slower: float, store: Store | None = None, **machine: Any) -> TrialFindings:
    store = store or Store()
    head = new_head(small_study(RULES, version=("old", "new")), "normal", seed, "concurve sweep …")
    Runner(head, store, Busy(seed, slower, **machine), clock=FakeClock(0.001)).start()
    return trial_findings_of(store, store.find_run(head.id))


def answers(found: TrialFindings) -> list[str]:
    return [item.sentence for item in found.sentences if item.kind == "answer"]


@pytest.mark.parametrize(("slower", "word"), [(1.05, "slower"), (1 / 1.05, "faster")])
def test_the_first_sentence_is_the_verdict_by_cpu_time(slower: float, word: str) -> None:
    found = versions(1, slower)
    assert found.cells[1].indicators["wall_seconds"].in_doubt
    first, *others = answers(found)
    assert first.startswith("By CPU time version=new is ")
    assert f" % {word} than version=old [" in first
    assert first.endswith(" %]; the wall time is in doubt.")
    assert not any("by wall time" in text for text in others), "which says nothing here"
    assert not any("a hint, and no verdict" in text for text in answers(found))
    compared = compare_levels(found, "version")
    assert compared.cells[0].verdict == "undecided", "by wall time"
    assert compared.advice[0] == first
    assert compared.cells[0].decided == word, "by CPU time"
    options = Options(indicators=("cpu_seconds",), in_doubt=True)
    (by_cpu,) = compare_levels(found, "version", (), options).cells
    assert by_cpu.verdict == word, (
        "compare --indicator cpu_seconds --in-doubt has it as its verdict"
    )


def test_versions_that_are_the_same_by_cpu_time_are_said_to_be() -> None:
    first, *others = answers(versions(3, 1.0))
    assert first.startswith("By CPU time version=new is as fast as version=old [")
    assert first.endswith("]; the wall time is in doubt.")
    assert not any("by wall time" in text for text in others)


def test_a_program_that_waits_for_its_cpu_most_of_the_time_computes() -> None:
    """The busier the machine, the smaller the share of its time that it runs."""
    first, *_ = answers(versions(1, 1.05, taken=2.0))
    assert first.startswith("By CPU time version=new is ")


@pytest.mark.parametrize("machine", [{"threads": 4}, {"sleeps": 2.0}])
def test_of_threads_and_of_programs_that_block_it_is_a_hint(machine: dict[str, Any]) -> None:
    said = answers(versions(1, 1.05, **machine))
    assert not any(text.startswith("By CPU time") for text in said)
    assert any(text.startswith("CPU time differs where wall time is undecided") for text in said)


@pytest.mark.simulation
@pytest.mark.parametrize("runs", few_or_many(12, RUNS))
def test_equal_versions_are_told_apart_in_5_percent_of_runs_at_most(runs: int) -> None:
    told = sum(" % " in answers(versions(seed, 1.0))[0].partition(" [")[0] for seed in range(runs))
    assert told <= at_most(0.05, runs, 0.0 if runs == RUNS else 2.0)
