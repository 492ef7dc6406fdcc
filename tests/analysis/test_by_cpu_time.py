"""Versions of a program on a machine that others use: CPU time says which is faster, where the wall
time is in doubt and one thread computes."""

from __future__ import annotations

import random
import re
from typing import Any

import msgspec
import pytest

from concurve.analysis.comparison import compare_levels
from concurve.analysis.comparison.compare import _drafted_levels, _errors
from concurve.analysis.comparison.options import Options
from concurve.analysis.run import trial_findings_of
from concurve.definition.study import Rules
from concurve.findings.cells import Dot
from concurve.findings.comparison import CellComparison
from concurve.findings.counts import count_trials
from concurve.findings.run import TrialFindings
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.report.sections.comparison import comparison_document
from concurve.report.terminal import lines
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
    least. The stranger sleeps in the first ``quiet`` blocks, where a trial is late by chance."""

    def __init__(
        self,
        seed: int,
        slower: float,
        threads: int = 1,
        sleeps: float = 0.0,
        taken: float = 0.2,
        quiet: int = 0,
    ) -> None:
        super().__init__()
        self.seed, self.slower, self.threads, self.sleeps = seed, slower, threads, sleeps
        self.taken, self.quiet = taken, quiet

    def run(self, spec: TrialSpec) -> bytes:
        rng = random.Random(f"{self.seed}/{spec.trial.partition('/')[2]}")
        own = self.slower if spec.roles[0].argv[1] == "new" else 1.0
        cpu = own * rng.lognormvariate(0, 0.005)
        taken = cpu * rng.uniform(self.taken, self.taken + 0.7)
        late = 0.0
        if int(spec.trial.split("/")[-2]) < self.quiet:
            late, taken = cpu * rng.expovariate(20), 0.0
        seconds = cpu * (1 + self.sleeps) + taken + late
        record = record_of(spec, seconds, foreign_ns=round(taken * 1e9))
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
    shown = [line.plain for line in lines(comparison_document(compared), 120)]
    assert any(line.rstrip().endswith(f"{word} (CPU)") for line in shown), "in the table"
    options = Options(indicators=("cpu_seconds",), in_doubt=True)
    (by_cpu,) = compare_levels(found, "version", (), options).cells
    assert by_cpu.verdict == word, (
        "compare --indicator cpu_seconds --in-doubt has it as its verdict"
    )


def test_versions_that_are_the_same_by_cpu_time_are_said_to_be() -> None:
    first, *others = answers(versions(3, 1.0))
    assert re.fullmatch(
        r"By CPU time version=new is as fast as version=old, within 2 %: \d\.\d+ % (slower|faster) "
        r"\[\d\.\d+ % faster to \d\.\d+ % slower\]; the wall time is in doubt\.",
        first,
    )
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


def test_a_difference_within_the_effect_has_its_size() -> None:
    first = compare_levels(versions(1, 1.03), "version", (), Options(effect=0.05)).advice[0]
    assert re.fullmatch(
        r"By CPU time version=new is as fast as version=old, within 5 %: "
        r"[23]\.\d % slower \[2\.\d, 3\.\d %\]; the wall time is in doubt\.",
        first,
    )


def wall_time_of(found: TrialFindings, **options: Any) -> CellComparison:
    (cell,) = compare_levels(found, "version", (), Options(**options)).cells
    return cell


@pytest.mark.parametrize(("slower", "word"), [(1.0, "same"), (1.04, "slower")])
def test_of_few_quiet_pairs_the_cpu_time_of_all_pairs_tells(slower: float, word: str) -> None:
    found = versions(1, slower, quiet=6)
    cell = wall_time_of(found)
    assert not cell.is_doubted and cell.verdict == "undecided" and cell.ratio is not None
    assert cell.ratio.n == 6, "the quiet pairs"
    assert cell.decided == word
    assert cell.by_cpu_time is not None and cell.by_cpu_time.ratio.n == 15, "all pairs"
    first, *others = answers(found)
    assert first.startswith("By CPU time version=new is ")
    assert first.endswith("; too few pairs were quiet to decide by wall time.")
    compared = compare_levels(found, "version", (), Options())
    told = " ".join((*compared.warnings, *compared.advice))
    assert told.count("6 of 15") == 1, "once, in the warning"
    assert not any("wall time" in text or "--repeats" in text for text in others)


def test_with_in_doubt_the_trials_that_were_set_aside_count() -> None:
    found = versions(1, 1.0, quiet=6)
    assert count_trials(found.run.trials, found.rejects, found.cells).set_aside == 18
    cell = wall_time_of(found, in_doubt=True)
    assert cell.is_doubted, "it rests on them"
    for figure in (cell.ratio, cell.base, cell.new):
        assert figure is not None and figure.n == 15
    by_cpu = wall_time_of(found, in_doubt=True, indicators=("cpu_seconds",))
    assert by_cpu.ratio is not None and by_cpu.ratio.n == 15 and by_cpu.verdict == "same"
    (warning,) = compare_levels(found, "version", (), Options(in_doubt=True)).warnings
    assert warning.endswith("18 of 30 trials are in doubt; --in-doubt judges them, too")


def test_a_reading_that_came_late_stays_set_aside() -> None:
    values = {"wall_seconds": 1.0, "cpu_seconds": 1.0}
    late, disturbed = (
        Dot(cell=0, block=0, attempt=0, used=True, values=values, set_aside=frozenset(names))
        for names in (("cpu_seconds",), ("cpu_seconds", "wall_seconds"))
    )
    assert not late.counts_in("cpu_seconds", disturbed=True)
    assert disturbed.counts_in("cpu_seconds", disturbed=True)
    assert not disturbed.counts_in("cpu_seconds")


def test_two_tries_share_the_error() -> None:
    """Where the wall time is judged and CPU time may decide what it leaves open, they have 4 % and
    1 %."""
    partly, quiet, busy = (
        _drafted_levels(versions(1, 1.0, quiet=blocks), "version", (), Options())
        for blocks in (6, 15, 0)
    )
    assert _errors([partly], Options()) == pytest.approx((0.04, 0.01))
    assert _errors([quiet], Options()) == pytest.approx((0.05, 0.05)), "CPU time decides nothing"
    assert _errors([busy], Options()) == pytest.approx((0.05, 0.05)), "the wall time is not judged"
    asked = Options(in_doubt=True)
    assert _errors([busy], asked) == pytest.approx((0.04, 0.01)), "it is"


@pytest.mark.parametrize("machine", [{"threads": 4}, {"sleeps": 2.0}])
def test_other_programs_are_judged_by_the_quiet_pairs_alone(machine: dict[str, Any]) -> None:
    found = versions(1, 1.04, quiet=6, **machine)
    assert "6 of 15 pairs were quiet; --in-doubt judges all" in (
        compare_levels(found, "version").warnings
    )
    cell = wall_time_of(found)
    assert cell.ratio is not None and cell.ratio.n == 6
    assert cell.by_cpu_time is None and cell.decided == cell.verdict


@pytest.mark.simulation
@pytest.mark.parametrize("runs", few_or_many(12, RUNS))
@pytest.mark.parametrize(("slower", "right"), [(1.0, "same"), (1.04, "slower")])
def test_partly_quiet_runs_are_not_told_wrongly(runs: int, slower: float, right: str) -> None:
    said = [wall_time_of(versions(seed, slower, quiet=6)).decided for seed in range(runs)]
    told = [verdict for verdict in said if verdict != "undecided"]
    wrong = sum(verdict != right for verdict in told)
    assert wrong <= at_most(0.05, runs, 0.0 if runs == RUNS else 2.0)
    assert len(told) >= 0.9 * runs, "CPU time tells most"


@pytest.mark.simulation
@pytest.mark.parametrize("runs", few_or_many(12, RUNS))
def test_equal_versions_are_told_apart_in_5_percent_of_runs_at_most(runs: int) -> None:
    told = sum(" than " in answers(versions(seed, 1.0))[0] for seed in range(runs))
    assert told <= at_most(0.05, runs, 0.0 if runs == RUNS else 2.0)
