"""Comparisons: intervals and verdicts of known truth, refusals, and the exit code for CI."""

from __future__ import annotations

import itertools
import json
import math
import random
import re
from collections.abc import Callable
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import msgspec
import numpy as np
import pytest

from concurve import words
from concurve.analysis.comparison import compare_levels, compare_runs
from concurve.analysis.comparison.advice import together
from concurve.analysis.comparison.options import Options
from concurve.analysis.run import trial_findings_of
from concurve.definition.study import Rules
from concurve.errors import ComparisonError
from concurve.estimate import Estimate
from concurve.findings.cells import Reject
from concurve.findings.claims import ClaimFinding, VerdictName
from concurve.findings.comparison import CellComparison, Comparison
from concurve.findings.run import Report, TrialFindings
from concurve.host.same_machine import is_same_machine, machine_differences
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.report.document import Detail
from concurve.report.json.comparison import to_json
from concurve.report.sections.comparison import comparison_document
from concurve.report.terminal import lines
from concurve.stats.comparison import (
    LogRatio,
    benjamini_hochberg,
    deciding_intervals,
    directions,
    log_shift,
)
from concurve.stats.power import trials_to_tell
from concurve.store import Store
from concurve.terms import Level
from concurve.wire.spec import TrialSpec
from tests.helpers.fakes import FakeClock, FakeEngine, small_study
from tests.helpers.made import made_run
from tests.helpers.meant import CASES, Case, run_of
from tests.helpers.noises import by_name
from tests.helpers.simulated import copies, simulated

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "schema" / "compare.schema.json").read_text(encoding="utf-8")
)
THREADS: tuple[Level, ...] = (1, 2, 4)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "s.db"))


# -- statistics -------------------------------------------------------------------------------


def test_the_procedure_of_benjamini_and_hochberg() -> None:
    """Their example of 1995, §3: 15 p-values, of which 4 hold at 5 %."""
    p = [0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459,
         0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0000]  # fmt: skip
    adjusted = benjamini_hochberg(p)
    assert [q <= 0.05 for q in adjusted] == [True] * 4 + [False] * 11
    assert adjusted[3] == pytest.approx(0.0095 * 15 / 4)
    assert benjamini_hochberg(p[::-1]) == adjusted[::-1]
    assert benjamini_hochberg([]) == []


@pytest.mark.parametrize("cv", [0.03, 0.3])
def test_intervals_of_ratios_of_two_runs_cover_the_truth(cv: float) -> None:
    rng = np.random.default_rng(3)
    held = 0
    for _ in range(400):
        top, bottom = 1.05 * rng.lognormal(0, cv, 5), rng.lognormal(0, cv, 6)
        ratio = log_shift([list(top)], [list(bottom)])
        assert ratio is not None
        low, high = ratio.interval()
        held += low <= math.log(1.05) <= high
    assert 0.93 <= held / 400 <= 0.985


def test_sessions_that_differ_widen_the_interval() -> None:
    """Many trials of few sessions say little of the next session."""
    rng = np.random.default_rng(6)
    sessions = [list(rng.normal(level, 0.001, 20)) for level in (0.9, 1.0, 1.1)]
    pooled = [[value for session in sessions for value in session]]
    wide, narrow = log_shift(sessions, sessions), log_shift(pooled, pooled)
    assert wide is not None and narrow is not None
    assert wide.interval()[1] > 1.5 * narrow.interval()[1]


def test_two_runs_need_two_values_each_above_0() -> None:
    assert log_shift([[1.0]], [[1.0, 2.0]]) is None
    assert log_shift([[1.0, 0.0]], [[1.0, 1.0]]) is None
    assert log_shift([[1.0, 1.0], []], [[1.0], [1.0]]) is None, "a session without a value"


def shift(top: list[float], bottom: list[float]) -> LogRatio | None:
    return log_shift([top], [bottom])


def said(top: list[float], bottom: list[float], effect: float = 0.02) -> str:
    return directions([shift(top, bottom)], effect)[0]


def test_what_may_be_said_of_a_ratio() -> None:
    noise = [-0.002, -0.001, 0.0, 0.001, 0.002]
    base = [1 + e for e in noise]
    assert said([1.1 * b for b in base], base) == "higher"
    assert said([0.9 * b for b in base], base) == "lower"
    assert said([1.005 * b for b in base], base) == "same"
    assert said([1.005 * b for b in base], base, effect=0.001) == "higher"
    assert said([1.0195 * b for b in base], base) == "undecided", "on the edge of the effect"
    assert said([1 + 50 * e for e in noise], base) == "undecided", "too wide"
    assert said([1.0], base) == "undecided", "one trial"


def test_equal_pairs_are_seldom_told_apart_however_many_are_looked_at() -> None:
    rng = np.random.default_rng(5)
    alarms = 0
    for _ in range(100):
        pairs = [[list(rng.lognormal(0, 0.03, 5)) for _ in "ab"] for _ in range(20)]
        found = directions([shift(top, bottom) for top, bottom in pairs], 0.0)
        alarms += any(verdict in ("higher", "lower") for verdict in found)
    assert alarms <= 11, "5 % of comparisons, three standard errors of chance"


# -- runs -------------------------------------------------------------------------------------


def pair(
    store: Store,
    slower: Callable[[int], float],
    rules: Rules | None = None,
    **more: object,
) -> tuple[TrialFindings, TrialFindings]:
    base, new = (
        made_run(
            store,
            lambda threads, f=factor: f(int(threads)) / min(int(threads), 2),
            seed=seed,
            cv=0.004,
            threads=THREADS,
            **({"rules": rules} if rules else {}),  # type: ignore[arg-type]
            **more,  # type: ignore[arg-type]
        )
        for seed, factor in enumerate((lambda _: 1.0, slower), start=1)
    )
    return base, new


def verdicts(found: Comparison) -> dict[Level, str]:
    return {cell.parameters["threads"]: cell.verdict for cell in found.cells}


def test_two_runs_cell_by_cell(store: Store) -> None:
    base, new = pair(store, lambda threads: {1: 1.0, 2: 1.06, 4: 0.9}[threads])
    found = compare_runs([base], [new])
    assert verdicts(found) == {1: "same", 2: "slower", 4: "faster"}
    ratio = found.cells[1].ratio
    assert ratio is not None and ratio.low is not None and ratio.high is not None
    assert ratio.low < 1.06 < ratio.high
    assert [text.partition(":")[0] for text in found.warnings] == ["one run on each side"]
    swapped = compare_runs([new], [base])
    assert verdicts(swapped) == {1: "same", 2: "faster", 4: "slower"}


def test_of_several_runs_a_side_the_number_is_theirs(store: Store) -> None:
    """The interval rests on the runs, and their trials make it no surer."""
    base, new = (
        [made_run(store, lambda _: 1.0, seed=2 * run + side) for run in range(3)] for side in (0, 1)
    )
    (cell, *_) = compare_runs(base, new).cells
    assert cell.ratio is not None and cell.ratio.n == 3
    (alone, *_) = compare_runs(base[:1], new[:1]).cells
    assert alone.ratio is not None and alone.ratio.n > 3
    (mixed, *_) = compare_runs(base, new[:1]).cells
    assert mixed.ratio is not None and mixed.ratio.n == 3


def test_a_higher_rate_is_faster(store: Store) -> None:
    base, new = pair(store, lambda _: 1.1)
    found = compare_runs([base], [new], Options(indicators=("rate_per_second", "wall_seconds")))
    assert {cell.verdict for cell in found.cells} == {"slower"}
    assert len(found.cells) == 2 * len(THREADS)


def test_two_levels_inside_one_run(store: Store) -> None:
    run = made_run(
        store,
        lambda sync, n: float(n) * (1.2 if sync == "cas" else 1.0),
        sync=("none", "method", "cas"),
        n=(1, 2),
    )
    found = compare_levels(run, "sync", ("none", "cas"))
    assert [cell.verdict for cell in found.cells] == ["slower", "slower"]
    assert [cell.parameters for cell in found.cells] == [
        {"sync": "cas", "n": 1}, {"sync": "cas", "n": 2},
    ]  # fmt: skip
    assert len(compare_levels(run, "sync").cells) == 4, "all others over the first"
    assert len(compare_levels(run, "n", ("2", "1")).cells) == 3, "levels as text"


def test_what_slows_a_block_slows_both_sides(store: Store) -> None:
    """The machine varies by a factor of e from block to block, the sides by 4 %."""

    def seconds(spec: TrialSpec, rng: random.Random) -> float:
        block = int(spec.trial.split("/")[2])
        weather = random.Random(block).lognormvariate(0, 1)
        return weather * (1.04 if spec.roles[0].argv[1] == "b" else 1.0) * rng.gauss(1, 0.003)

    study = small_study(Rules(repeats_min=8, repeats_max=8), side=("a", "b"))
    head = new_head(study, "normal", 1, "concurve sweep …")
    engine = FakeEngine(seconds)
    Runner(head, store, engine, clock=FakeClock(0.001)).start()
    blocks = {spec.trial.split("/")[2] for spec in engine.specs}
    assert len(blocks) == 8
    found = compare_levels(trial_findings_of(store, store.find_run(head.id)), "side")
    (cell,) = found.cells
    assert (cell.verdict, found.method) == ("slower", "pairs")
    assert cell.ratio is not None and cell.ratio.n == 8
    assert cell.ratio.low is not None and cell.ratio.high is not None
    assert 1.03 < cell.ratio.low < 1.04 < cell.ratio.high < 1.05
    assert not found.advice


def test_what_is_undecided_says_what_would_decide_it(store: Store) -> None:
    run = made_run(store, lambda side: 1.0, cv=0.05, side=("a", "b"))
    found = compare_levels(run, "side")
    (cell,) = found.cells
    assert cell.verdict == "undecided"
    assert cell.trials is not None
    assert cell.trials > 5
    (said,) = (text for text in found.advice if "trials of each" in text)
    assert said.startswith(f"About {cell.trials} trials of each would tell a difference of ")
    assert "a difference of 2 % from none with a power of 80 %" in said
    assert f"--repeats {cell.trials} in a new run" in said
    shown = " ".join(line.plain for line in lines(comparison_document(found), 200))
    assert said in shown
    assert "The rule, fixed beforehand" not in shown and "--all: the rule" in shown
    whole = comparison_document(found, Detail.FULL)
    assert "The rule, fixed beforehand" in " ".join(line.plain for line in lines(whole, 200))
    wider = compare_levels(run, "side", (), Options(effect=0.5))
    assert wider.cells[0].verdict == "same"
    assert not wider.advice
    jsonschema.validate(json.loads(to_json(found)), SCHEMA)
    narrow = compare_levels(run, "side", (), Options(effect=1e-4))
    assert "would not show a difference of 0.01 %" in narrow.advice[0]


def test_a_difference_that_lies_across_the_effect_is_told_with_its_interval(store: Store) -> None:
    """Trials enough for the effect do not decide of a difference that is as large: that another
    number of them would is not said."""
    run = made_run(
        store,
        lambda side: 1.05 if side == "b" else 1.0,
        cv=0.01,
        side=("a", "b"),
        rules=Rules(repeats_min=20, repeats_max=20),
    )
    found = compare_levels(run, "side", (), Options(effect=0.05))
    (cell,) = found.cells
    assert cell.verdict == "undecided" and cell.trials is not None and cell.trials < 20
    (said,) = found.advice
    assert re.match(
        r"[45](\.\d)? % \[[34]\.\d, 5\.\d %\] at side=b lies across the effect of 5 %", said
    )
    assert "trials" not in said


def test_no_number_of_trials_is_advised_against_a_coarse_clock(store: Store) -> None:
    """Steps of 10 ms at about 25 ms: each figure may be off by 40 %, however many trials there
    are."""
    reads = itertools.cycle((0.02, 0.03, 0.03, 0.02, 0.02, 0.03, 0.02))
    coarse = made_run(store, lambda side: next(reads), cv=0, side=("a", "b"))
    found = compare_levels(coarse, "side")
    assert [cell.verdict for cell in found.cells] == ["undecided"]
    assert found.cells[0].trials is None
    assert found.advice == (
        "The step of the clock is as large as a difference of 2 %, so the clock is too "
        "coarse: longer trials, or a finer clock.",
    )


def test_the_resolution_adds_to_the_trials_that_are_advised() -> None:
    fine, coarse = (trials_to_tell(0.02, 0.05, resolution=off) for off in (0.0, 0.01))
    assert fine is not None and coarse is not None
    assert 3.5 < coarse / fine < 4.2, "half the distance is left: four times the trials"
    assert trials_to_tell(0.02, 0.05, resolution=0.02) is None
    assert trials_to_tell(0.02, 0.0) == 2, "without a spread two trials show it"


def test_a_cell_without_an_interval_has_a_note_and_no_plan(store: Store) -> None:
    once = Rules(repeats_min=1, repeats_max=1)
    found = compare_levels(made_run(store, lambda side: 1.0, rules=once, side=("a", "b")), "side")
    assert found.cells[0].note == "a single trial has no interval"
    assert found.advice == ()


def test_the_advice_does_not_depend_on_the_difference_that_was_seen(store: Store) -> None:
    """The same spread and another ratio: a plan that followed the ratio would look for one."""
    trials = []
    for seed, factor in enumerate((1.0, 1.01), start=1):
        run = made_run(
            store,
            lambda side, factor=factor: factor if side == "b" else 1.0,
            seed=1,
            cv=0.05,
            name=f"run-{seed}",
            side=("a", "b"),
        )
        trials.append(compare_levels(run, "side").cells[0].trials)
    assert trials[0] == trials[1]


def test_cpu_time_that_spreads_less_is_advice_for_the_next_run_and_no_verdict() -> None:
    """4 % slower, where the wall time is disturbed and the CPU time is not."""
    runs = (
        copies("quick", seed, "1 in 10 slow, +Exp(.5)", (1.0, 1.04), cpu_cv=0.002)
        for seed in range(20)
    )
    run, found = next(
        (run, found)
        for run in runs
        for found in [compare_levels(run, "copy")]
        # Where trials spread even more, no number of trials is said.
        if found.cells[0].verdict == "undecided" and found.cells[0].trials is not None
    )
    (cell,) = found.cells
    assert cell.trials is not None and cell.cpu_trials is not None
    assert cell.cpu_trials < cell.trials
    assert found.advice[-1] == (
        f"CPU time spreads less and would need {cell.cpu_trials} trials of each: to judge by it, "
        "plan the next run with --primary cpu_seconds."
    )
    by_cpu = compare_levels(run, "copy", (), Options(indicators=("cpu_seconds",)))
    assert by_cpu.cells[0].verdict == "slower"
    assert by_cpu.cells[0].cpu_trials is None


@pytest.mark.parametrize(
    ("factor", "levels", "message"),
    [
        ("threads", (), "did you mean"),
        ("n", (1,), "nothing to compare"),
        ("n", (1, 1), "nothing to compare"),
        ("n", (1, 9), "n=9 is not among the levels"),
    ],
)
def test_levels_that_are_not_there(
    store: Store, factor: str, levels: tuple[Level, ...], message: str
) -> None:
    run = made_run(store, lambda n: 1.0, n=(1, 2))
    with pytest.raises(ComparisonError, match=message if factor == "n" else "no factor"):
        compare_levels(run, factor, levels)


def test_single_trials_have_a_ratio_and_no_verdict(store: Store) -> None:
    base, new = pair(store, lambda _: 3.0, Rules(repeats_min=1, repeats_max=1))
    found = compare_runs([base], [new])
    assert {cell.verdict for cell in found.cells} == {"undecided"}
    assert {cell.note for cell in found.cells} == {"a single trial has no interval"}
    assert found.cells[0].ratio is not None and found.cells[0].ratio.low is None
    jsonschema.validate(json.loads(to_json(found)), SCHEMA)


def test_a_level_is_the_same_as_a_number_and_as_a_text(store: Store) -> None:
    """3.9 is a text beside 3.10 and a number beside 3.11; the program gets the same."""
    base = made_run(store, lambda *_: 1.0, version=("3.9", "3.10"), n=(1, 2))
    new = made_run(store, lambda *_: 1.0, seed=2, version=(3.9, 3.11), n=(1, 2))
    found = compare_runs([base], [new])
    assert [cell.parameters for cell in found.cells] == [
        {"version": 3.9, "n": 1},
        {"version": 3.9, "n": 2},
    ]
    alone = [
        made_run(store, lambda *_: 1.0, seed=seed, version=(version,), n=(1, 2))
        for seed, version in ((3, "3.9"), (4, 3.9))
    ]
    assert "version" not in compare_runs(alone[:1], alone[1:]).base, "nothing tells them apart"


def test_sides_without_a_common_cell_are_refused(store: Store) -> None:
    one = made_run(store, lambda n: 1.0, n=(1, 2))
    other = made_run(store, lambda n: 1.0, seed=2, n=(3, 4))
    with pytest.raises(ComparisonError, match=r"no cell in common: n=1,2 against n=3,4"):
        compare_runs([one], [other])
    with pytest.raises(ComparisonError, match="on both sides"):
        compare_runs([one], [one])


def test_what_only_one_side_has_is_named(store: Store) -> None:
    one = made_run(store, lambda n: 1.0, n=(1, 2))
    other = made_run(store, lambda n: 1.0, seed=2, n=(2, 3), name="another")
    found = compare_runs([one], [other])
    assert len(found.cells) == 1
    assert "different studies: small and another" in found.warnings
    assert "left out, as not every run has it: n=1; n=3" in found.warnings


def test_another_machine_is_refused_unless_asked_for(store: Store) -> None:
    mine: dict[str, object] = {"cpu_model": "A", "kernel": "6.1", "topology": {"cpus": 2}}
    one = made_run(store, lambda n: 1.0, n=(1, 2), machine=mine)
    other = made_run(store, lambda n: 1.0, seed=2, n=(1, 2), machine={**mine, "cpu_model": "B"})
    with pytest.raises(ComparisonError, match=r"different machines: cpu model: A and B"):
        compare_runs([one], [other])
    found = compare_runs([one], [other], Options(across_machines=True))
    assert any("different machines: cpu model: A and B" in text for text in found.warnings)
    newer = made_run(store, lambda n: 1.0, seed=3, n=(1, 2), machine={**mine, "kernel": "6.2"})
    warnings = compare_runs([one], [newer]).warnings
    assert any("kernel: 6.1 and 6.2" in text for text in warnings), "warned of, not refused"


def judged(run: Report, **verdicts: VerdictName) -> Report:
    claims = tuple(
        ClaimFinding(id=id_, says="It is so.", source="", kind="ratio",
                     verdict=verdict, reason="")
        for id_, verdict in verdicts.items()
    )  # fmt: skip
    return msgspec.structs.replace(run, claims=claims)


def test_claims_are_held_against_each_other_across_machines(store: Store) -> None:
    mine: dict[str, object] = {"cpu_model": "A"}
    other: dict[str, object] = {"cpu_model": "B"}

    def run(seed: int, machine: dict[str, object], **verdicts: VerdictName) -> Report:
        return judged(made_run(store, lambda n: 1.0, seed=seed, n=(1, 2), machine=machine),
                      **verdicts)  # fmt: skip

    one = run(1, mine, holds="supported", fails="refuted", turns="supported", open="undecided",
              never="not testable here", gone="supported")  # fmt: skip
    two = run(2, other, holds="supported", fails="refuted", turns="refuted", open="supported",
              never="not testable here")  # fmt: skip
    across = Options(across_machines=True)
    found = compare_runs([one], [two], across)
    assert {claim.id: claim.alike for claim in found.claims} == {
        "holds": "alike", "fails": "alike", "turns": "not alike", "open": "undecided",
    }  # fmt: skip
    shown = "\n".join(line.plain for line in lines(comparison_document(found), 100))
    assert "claims on both machines" in shown and "4 claims: 2 alike" in shown
    exported = json.loads(to_json(found))
    jsonschema.validate(exported, SCHEMA)
    assert [claim["alike"] for claim in exported["claims"]].count("not alike") == 1
    # Sessions that do not agree decide nothing; one machine has nothing to hold against.
    three = run(3, other, holds="refuted")
    (claim,) = compare_runs([one], [two, three], across).claims
    assert (claim.id, claim.new, claim.alike) == ("holds", "undecided", "undecided")
    assert compare_runs([one], [run(4, mine, holds="refuted")]).claims == ()
    assert "claims" not in json.loads(to_json(compare_runs([one], [run(5, mine, holds="refuted")])))


def test_memory_moves_by_a_little_from_boot_to_boot() -> None:
    assert is_same_machine({"memory_bytes": 1_000_000}, {"memory_bytes": 1_001_000})
    assert not is_same_machine({"memory_bytes": 1_000_000}, {"memory_bytes": 2_000_000})
    assert machine_differences({"cgroup": {"a": 1, "b": 2}}, {"cgroup": {"a": 1}}) == [
        "cgroup b: 2 and not known"
    ]


def test_units_that_differ_are_refused(store: Store) -> None:
    base, new = pair(store, lambda _: 1.0)
    infos = tuple(
        msgspec.structs.replace(info, unit="ms") if info.name == "wall_seconds" else info
        for info in new.indicators
    )
    with pytest.raises(ComparisonError, match="wall_seconds has different units: s and ms"):
        compare_runs([base], [msgspec.structs.replace(new, indicators=infos)])


@pytest.mark.parametrize(
    ("indicator", "message"),
    [
        ("speedup", "derived"),
        ("wall_second", "did you mean 'wall_seconds'"),
        ("threads_peak", "no better direction"),
    ],
)
def test_indicators_that_cannot_be_compared(store: Store, indicator: str, message: str) -> None:
    base, new = pair(store, lambda _: 1.0)
    with pytest.raises(ComparisonError, match=message):
        compare_runs([base], [new], Options(indicators=(indicator,)))


def test_an_indicator_without_direction_may_be_given_one(store: Store) -> None:
    base, new = pair(store, lambda _: 1.0)
    found = compare_runs([base], [new], Options(indicators=("threads_peak",), better="lower"))
    assert {cell.verdict for cell in found.cells} == {"same"}


def test_an_incomplete_run_is_warned_of(store: Store) -> None:
    base, new = pair(store, lambda _: 1.0)
    broken = msgspec.structs.replace(new, run=msgspec.structs.replace(new.run, state="interrupted"))
    assert any(
        "is interrupted, with 15 trials" in w for w in compare_runs([base], [broken]).warnings
    )


def test_the_table_fits_and_the_json_is_as_described(store: Store) -> None:
    long = "a-rather-long-level-of-a-factor-that-does-not-fit-a-terminal"
    sides = [
        made_run(store, lambda n, s, k=k: 1.0 + k, seed=k, n=(1, 2), s=(long, "b")) for k in (1, 2)
    ]
    found = compare_runs([sides[0]], [sides[1]])
    for width in (80, 60):
        assert max(len(line.plain) for line in lines(comparison_document(found), width)) <= width
    written = json.loads(to_json(found))
    jsonschema.validate(written, SCHEMA)
    assert written["cells"][0]["verdict"] == "slower"
    assert written["method"] == "ranks"
    assert set(written["cells"][0]["ratio"]) == {"value", "low", "high", "n"}


def test_runs_that_differ_in_one_setting_are_compared_by_it(store: Store) -> None:
    """A server that runs already has one setting a run: its levels are what is compared."""

    def run(seed: int, threads: int) -> TrialFindings:
        return made_run(
            store, lambda clients, io: 1.0 / int(io), seed=seed, clients=(1, 2), io=(threads,)
        )

    found = compare_runs([run(1, 1)], [run(2, 2)])
    assert [cell.parameters for cell in found.cells] == [{"clients": 1}, {"clients": 2}]
    assert {cell.verdict for cell in found.cells} == {"faster"}
    assert found.base.endswith("(io=1)") and found.new.endswith("(io=2)")
    alike = compare_runs([run(3, 2)], [run(4, 2)])
    assert [cell.parameters for cell in alike.cells] == [
        {"clients": 1, "io": 2},
        {"clients": 2, "io": 2},
    ]


def swept(run: TrialFindings, again: str) -> TrialFindings:
    return msgspec.structs.replace(run, run=msgspec.structs.replace(run.run, again=again))


def test_sweeps_of_one_command_under_two_names_are_one_study(store: Store) -> None:
    runs = [
        swept(
            made_run(store, lambda n: 1.0, seed=seed, n=(1, 2), name=name),
            f"concurve sweep --name {name} -P n 1,2 --seed {seed} -- ./program {{n}}",
        )
        for seed, name in enumerate(("io4", "io8"), start=1)
    ]
    found = compare_runs([runs[0]], [runs[1]])
    assert not [text for text in found.warnings if "different" in text]
    assert (found.base, found.new) == (f"io4 ({runs[0].run.id})", f"io8 ({runs[1].run.id})")
    other = swept(runs[1], "concurve sweep --name io8 -P n 1,2 -- ./another {n}")
    assert (
        "different commands: ./program {n} and ./another {n}"
        in compare_runs([runs[0]], [other]).warnings
    )
    exported = "concurve sweep --export-html io8.html -P n 1,2 --repeats=3 -- ./program {n}"
    assert not [
        text
        for text in compare_runs([runs[0]], [swept(runs[1], exported)]).warnings
        if "different" in text
    ]
    slow = "concurve sweep --name io8 -P n 1,2 --server './srv slow' -- ./program {n}"
    warnings = compare_runs([runs[0]], [swept(runs[1], slow)]).warnings
    assert "different commands: ./program {n} and --server ./srv slow ./program {n}" in warnings
    server = f"'./srv {'--log /dev/null ' * 8}--size {{}}'"
    long = [
        swept(run, f"concurve sweep --server {server.format(size)} -P n 1,2 -- ./program {{n}}")
        for run, size in zip(runs, (10, 20), strict=True)
    ]
    warnings = compare_runs([long[0]], [long[1]]).warnings
    assert "different commands: … --size 10 … and … --size 20 …" in warnings
    alike = made_run(store, lambda n: 1.0, seed=3, n=(1, 2), name="io4")
    assert compare_runs([runs[0]], [alike]).base == runs[0].run.id


def test_an_interval_that_leaves_everything_open_is_none(store: Store) -> None:
    base, new = pair(store, lambda _: 1.0)
    found = compare_runs([base], [new])
    ratio = Estimate(value=0.1, low=1e-4, high=1820, n=2, unit="×")
    cells = (msgspec.structs.replace(found.cells[0], ratio=ratio, verdict="undecided"),)
    document = comparison_document(msgspec.structs.replace(found, cells=cells))
    shown = "\n".join(line.plain for line in lines(document, 100))
    assert "none: too wide" in shown and "1,820" not in shown and "0.100" in shown


def test_cpu_time_that_differs_is_told_where_wall_time_is_undecided() -> None:
    runs = (
        copies("quick", seed, "1 in 10 slow, +Exp(.5)", (1.0, 1.06), cpu_cv=0.002)
        for seed in range(20)
    )
    found = next(
        found
        for run in runs
        for found in [compare_levels(run, "copy")]
        if found.cells[0].verdict == "undecided"
    )
    said = found.advice[0]
    assert said.startswith("CPU time differs where ") and "% higher [" in said
    assert said.endswith("a hint, and no verdict.")


def test_the_cpu_time_of_a_client_is_called_that() -> None:
    """It says nothing of the server that is asked about."""
    runs = (
        copies("quick", seed, "1 in 10 slow, +Exp(.5)", (1.0, 1.06), cpu_cv=0.002)
        for seed in range(20)
    )
    label = "client: CPU time"
    of_client = (
        msgspec.structs.replace(
            run,
            indicators=tuple(
                msgspec.structs.replace(info, label=label) if info.name == "cpu_seconds" else info
                for info in run.indicators
            ),
        )
        for run in runs
    )
    said = next(
        text
        for run in of_client
        for text in compare_levels(run, "copy").advice
        if "CPU time" in text and "differs" in text
    )
    assert said.startswith("CPU time of the role client differs where ")


def versions(seed: int, noise: str, slower: float) -> TrialFindings:
    """A run of two versions, of which the second takes so many times as long."""
    times = {"v1": 1.0, "v2": slower}
    return simulated(
        small_study(None, version=("v1", "v2")), "quick", seed, by_name(noise),
        lambda levels: times[str(levels["version"])], cpu_cv=0.002,
    )  # fmt: skip


def answers(run: TrialFindings) -> list[str]:
    return [item.sentence for item in run.sentences if item.kind == "answer"]


def test_a_run_itself_tells_cpu_time_that_differs_where_its_answer_is_open() -> None:
    runs = (versions(seed, "1 in 10 slow, +Exp(.5)", 1.06) for seed in range(20))
    said = [(answers(run), compare_levels(run, "version")) for run in runs]
    told = [found for found in said if any("CPU time differs" in text for text in found[0])]
    assert told
    for texts, compared in told:
        assert texts[-1] == compared.advice[0], "the words of compare, after the answer"
        assert len(texts) > 1 and compared.cells[0].verdict == "undecided"


def test_cpu_time_is_no_hint_where_the_answer_says_which_level_is_faster() -> None:
    for seed in range(3):
        texts = answers(versions(seed, "log-normal 2 %", 1.3))
        assert texts[0].endswith(" as fast as version=v1 by wall time.")
        assert texts[1] == "Use version=v1."
        assert not any("CPU time differs" in text for text in texts)


def with_others(run: TrialFindings, seed: int, memory: float = 1.0) -> TrialFindings:
    """A run whose trials have figures beside the times; ``memory`` is that of side b over a's."""
    rng = random.Random(seed)

    def others(cell: int) -> dict[str, float]:
        is_b = run.cells[cell].parameters["side"] == "b"
        return {
            "rss_bytes_max": (memory if is_b else 1.0) * 1e6 * rng.lognormvariate(0, 0.01),
            "minor_faults": 1e4 * rng.lognormvariate(0, 0.05),
            "major_faults": 0.0,
            "context_switches": 1e3 * rng.lognormvariate(0, 0.2),
        }

    dots = tuple(
        msgspec.structs.replace(dot, values={**dot.values, **others(dot.cell)}) for dot in run.dots
    )
    return msgspec.structs.replace(run, dots=dots)


FOUR = Rules(repeats_min=4, repeats_max=4)
TEN = Rules(repeats_min=10, repeats_max=10)


def test_other_figures_that_differ_are_told_where_wall_time_is_undecided(store: Store) -> None:
    run = made_run(store, lambda side: 1.0, cv=0.05, rules=TEN, side=("a", "b"))
    found = compare_levels(with_others(run, 1, memory=1.2), "side")
    assert found.cells[0].verdict == "undecided"
    (said,) = (text for text in found.advice if "there differs" in text)
    assert said.startswith("Where wall time is undecided, there differs: peak memory ")
    assert "% higher [" in said and "4 figures of the same trials, judged together" in said
    assert "faults" not in said and "switches" not in said
    quiet = made_run(store, lambda side: 1.0, seed=2, cv=0.001, rules=TEN, side=("a", "b"))
    found = compare_levels(with_others(quiet, 1, memory=1.2), "side")
    assert found.cells[0].verdict == "same"
    assert not any("there differs" in text for text in found.advice), "all is decided"


def test_other_figures_raise_no_more_false_alarms_than_one(store: Store) -> None:
    run = made_run(store, lambda side: 1.0, cv=0.05, rules=TEN, side=("a", "b"))
    told = [
        any("there differs" in text for text in compare_levels(other, "side").advice)
        for seed in range(60)
        for other in [with_others(run, seed)]
    ]
    assert sum(told) <= 7, "5 % of 60, and two standard deviations"


def doubted(
    run: TrialFindings, threads: dict[str, int] | None = None, cpus: dict[str, float] | None = None
) -> TrialFindings:
    """The run on a machine that was not quiet; ``threads`` and ``cpus`` are those of each side."""
    cells = []
    for cell in run.cells:
        figures = {name: figure.doubted() for name, figure in cell.indicators.items()}
        if threads is not None:
            most = float(threads[str(cell.parameters["side"])])
            figures["threads_peak"] = Estimate(value=most, low=most, high=most, n=5)
        if cpus is not None:
            used = cpus[str(cell.parameters["side"])]
            figures["cpus_used"] = Estimate(value=used, low=used, high=used, n=5)
        cells.append(msgspec.structs.replace(cell, indicators=figures))
    return msgspec.structs.replace(run, cells=tuple(cells))


def test_few_trials_advise_no_few_trials(store: Store) -> None:
    """The spread of five may be small by chance: so is the number that follows from it."""
    run = made_run(store, lambda side: 1.0, cv=0.009, side=("a", "b"))
    found = compare_levels(run, "side")
    (cell,) = found.cells
    assert cell.verdict == "undecided" and cell.trials is not None and 5 < cell.trials < 10
    (said,) = (text for text in found.advice if "trials of each" in text)
    assert said.startswith("About 10 trials of each would tell a difference of 2 %")
    assert "--repeats 10 in a new run" in said, "and CPU time needs no fewer"


def test_what_is_in_doubt_wants_a_quiet_machine_and_no_number_of_trials(store: Store) -> None:
    run = made_run(store, lambda side: 1.0, cv=0.05, side=("a", "b"))
    found = compare_levels(doubted(run), "side")
    assert found.cells[0].note.startswith("in doubt")
    (said,) = found.advice
    assert "--wait-quiet 5m" in said and "--in-doubt" in said


def test_how_many_trials_would_decide_is_said_where_those_in_doubt_are_to_count(
    store: Store,
) -> None:
    run = made_run(store, lambda side: 1.0, cv=0.05, side=("a", "b"))
    found = compare_levels(doubted(run), "side", (), Options(in_doubt=True))
    (cell,) = found.cells
    assert cell.verdict == "undecided" and cell.trials is not None
    (text,) = (text for text in found.advice if "trials of each" in text)
    assert text.startswith(f"About {cell.trials} trials of each would tell a difference of ")
    assert "if they spread as these do: --repeats" in text


def test_cpu_time_is_advised_where_no_number_of_trials_decides_by_wall_time() -> None:
    run = copies("quick", 1, "1 in 10 slow, +Exp(.5)", (1.0, 1.0), cpu_cv=0.002)
    found = compare_levels(run, "copy", (), Options(effect=0.005))
    (cell,) = found.cells
    assert (cell.trials, cell.cpu_trials is None) == (None, False)
    assert "would not show" in found.advice[0] and "--primary cpu_seconds" in found.advice[1]
    # A study from a file has no such option.
    filed = msgspec.structs.replace(run, run=msgspec.structs.replace(run.run, is_sweep=False))
    found = compare_levels(filed, "copy", (), Options(effect=0.005))
    assert "--primary" not in found.advice[1] and "[[indicators]]" in found.advice[1]


ALIKE = {"a": 2, "b": 2}


def test_a_large_difference_of_levels_in_turns_is_told_on_a_busy_machine(store: Store) -> None:
    run = made_run(store, lambda side: {"a": 1.0, "b": 2.0}[side], cv=0.05, side=("a", "b"))
    (cell,) = compare_levels(doubted(run, ALIKE), "side").cells
    assert cell.verdict == "slower" and cell.is_doubted
    assert "not quiet" in cell.note and "in turns" in cell.note


def test_a_difference_that_undisturbed_trials_turn_round_is_not_told(store: Store) -> None:
    """Most trials of the one side were disturbed; the others are faster than those of the other."""
    twenty = Rules(repeats_min=20, repeats_max=20)
    run = made_run(
        store, lambda side: {"a": 1.0, "b": 2.0}[side], cv=0.05, rules=twenty, side=("a", "b")
    )
    (slow,) = (cell for cell in run.cells if cell.parameters["side"] == "b")
    dots = tuple(
        msgspec.structs.replace(dot, values={**dot.values, "wall_seconds": 0.5})
        if (dot.cell, dot.block) == (slow.index, 0)
        else dot
        for dot in run.dots
    )
    rejects = tuple(
        Reject(cell=slow.index, parameters=slow.parameters, block=block, attempt=0,
               cause="steal", detail="", used=True)
        for block in range(1, 20)
    )  # fmt: skip
    mixed = msgspec.structs.replace(run, dots=dots)
    assert compare_levels(doubted(mixed, ALIKE), "side").cells[0].verdict == "slower"
    turned = msgspec.structs.replace(mixed, rejects=rejects)
    assert compare_levels(doubted(turned, ALIKE), "side").cells[0].verdict == "undecided"


def test_what_neighbours_may_make_is_not_told_on_a_busy_machine(store: Store) -> None:
    """A small difference, and one of levels that ask for other numbers of CPUs."""
    small = made_run(store, lambda side: {"a": 1.0, "b": 1.1}[side], cv=0.01, side=("a", "b"))
    assert compare_levels(small, "side").cells[0].verdict == "slower"
    assert compare_levels(doubted(small, ALIKE), "side").cells[0].verdict == "undecided"
    large = made_run(
        store, lambda side: {"a": 1.0, "b": 2.0}[side], seed=2, cv=0.05, side=("a", "b")
    )
    unlike = doubted(large, {"a": 2, "b": 4})
    assert compare_levels(unlike, "side").cells[0].verdict == "undecided"
    numbers = made_run(store, float, seed=3, cv=0.05, side=(1, 2))
    for cpus in (None, {"1": 0.9, "2": 1.4}):
        same = doubted(without_cpus(numbers), {"1": 2, "2": 2}, cpus)
        assert compare_levels(same, "side").cells[0].verdict == "undecided"
    with_server = msgspec.structs.replace(doubted(large, ALIKE), roles=("server", "load"))
    assert compare_levels(with_server, "side").cells[0].verdict == "undecided"


def without_cpus(run: TrialFindings) -> TrialFindings:
    """A run of which it is not known how many CPUs it used."""
    cells = tuple(
        msgspec.structs.replace(
            cell, indicators={k: v for k, v in cell.indicators.items() if k != "cpus_used"}
        )
        for cell in run.cells
    )
    return msgspec.structs.replace(run, cells=cells)


def test_levels_that_are_numbers_are_told_apart_where_one_thread_does_all(store: Store) -> None:
    """A size, say: what counts workers, or limits them, would have other CPUs to use."""
    run = made_run(store, float, cv=0.05, side=(1, 18))
    alike = doubted(run, {"1": 1, "18": 1}, {"1": 0.71, "18": 0.74})
    (cell,) = compare_levels(alike, "side").cells
    assert cell.verdict == "slower" and "not quiet" in cell.note
    for threads in ({"1": 1, "18": 18}, {"1": 2, "18": 2}):
        workers = doubted(run, threads, {"1": 0.71, "18": 0.74})
        assert compare_levels(workers, "side").cells[0].verdict == "undecided"


def test_two_runs_in_doubt_are_judged_where_that_is_asked_for(store: Store) -> None:
    base = doubted(made_run(store, lambda n: 1.0, seed=1, cv=0.02, n=(1,)))
    new = doubted(made_run(store, lambda n: 2.0, seed=2, cv=0.02, n=(1,)))
    assert compare_runs([base], [new]).cells[0].verdict == "undecided"
    (cell,) = compare_runs([base], [new], Options(in_doubt=True)).cells
    assert cell.verdict == "slower" and cell.note.startswith("in doubt")


def test_what_is_told_in_doubt_does_not_hang_on_the_option(store: Store) -> None:
    """All cells are judged together, whichever of them may be told."""
    told = wider = 0
    for seed in range(16):
        rng = np.random.default_rng(seed)
        run = made_run(
            store,
            lambda side, n, rng=rng: rng.lognormal(0.74 * ((side, n) == ("b", "4")), 0.2),
            seed=seed, cv=0.02, rules=FOUR, side=("a", "b"), n=(1, 2, 4, 8),
        )  # fmt: skip
        plain = compare_levels(doubted(run, ALIKE), "side")
        asked = compare_levels(doubted(run, ALIKE), "side", options=Options(in_doubt=True))
        for one, other in zip(plain.cells, asked.cells, strict=True):
            assert one.ratio == other.ratio
            if one.verdict != "undecided":
                assert one.verdict == other.verdict
                told += 1
            elif "larger than neighbours" in one.note:
                raise AssertionError("an undecided cell is not told of as a decided one")
        said = " ".join(asked.advice)
        assert "--in-doubt" not in said, "the option that was given is no advice"
        wider += "The interval that decides is wider, as 4 ratios are judged together" in said
    assert told and wider


def test_the_interval_that_decides_leaves_out_1_where_a_ratio_is_told() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        pairs = [[list(rng.lognormal(shift, 0.1, 5)) for shift in (0, 0.08)] for _ in range(6)]
        ratios = [shift(top, bottom) for top, bottom in pairs]
        told = directions(ratios, 0.0)
        for direction, interval in zip(told, deciding_intervals(ratios), strict=True):
            assert interval is not None
            assert (direction in ("higher", "lower")) == (not interval[0] <= 0 <= interval[1])
    first = ratios[0]
    assert first is not None
    assert deciding_intervals([first]) == [first.interval(0.95)]


def test_percentages_are_plain_numbers() -> None:
    assert [words.in_percent(part) for part in (1.5, 0.77, 2.8, 0.02, 0.0034, 120.0)] == [
        "150", "77", "280", "2", "0.34", "12,000",
    ]  # fmt: skip


def test_equal_programs_on_a_busy_machine_are_not_told_apart(store: Store) -> None:
    """Neighbours slow trials to up to twice the time, whoever is measured: 100 runs."""
    draw = np.random.default_rng(7)
    wrong = 0
    for seed in range(100):
        run = made_run(
            store,
            lambda side: float(1 + draw.random() ** 2),
            seed=seed, cv=0.02, rules=TEN, side=("a", "b"),
        )  # fmt: skip
        (cell,) = compare_levels(doubted(run, ALIKE), "side").cells
        wrong += cell.verdict in ("faster", "slower")
    assert wrong <= 2


def test_a_cell_whose_load_failed_is_not_compared(store: Store) -> None:
    run = made_run(store, lambda side: {"a": 1.0, "b": 0.3}[side], side=("a", "b"))
    failed = "failed responses: all 12,107"
    cells = tuple(
        msgspec.structs.replace(cell, load_failed=failed if cell.parameters["side"] == "b" else "")
        for cell in run.cells
    )
    (cell,) = compare_levels(msgspec.structs.replace(run, cells=cells), "side").cells
    assert cell.verdict == "undecided" and cell.ratio is None
    assert cell.note == f"its load failed in run {run.run.id}: {failed}"


def test_a_cell_that_was_skipped_is_not_compared(store: Store) -> None:
    base, new = pair(store, lambda _: 1.0)
    for sides in ((skipped(base), new), (base, skipped(new))):
        first, *others = compare_runs([sides[0]], [sides[1]]).cells
        of = next(run for run in sides if run.cells[0].status == "skipped")
        assert first.verdict == "undecided" and first.ratio is None and first.base is not None
        assert first.note == f"it was skipped in run {of.run.id}: timed out"
        assert all(cell.ratio is not None for cell in others)


def skipped(run: TrialFindings) -> TrialFindings:
    """The run with its first cell skipped after all of its trials."""
    first, *others = run.cells
    first = msgspec.structs.replace(first, status="skipped", note="timed out")
    return msgspec.structs.replace(run, cells=(first, *others))


def test_an_interval_beyond_all_numbers_is_too_wide_to_print() -> None:
    """Of two trials each, judged with very many others."""
    cell = CellComparison(
        parameters={"n": 1},
        indicator="wall_seconds",
        verdict="undecided",
        ratio=Estimate(value=1.5, low=1.1, high=2.0, n=2, unit="×"),
    )

    def said(low: float, high: float) -> str:
        (text,) = together([cell], [(low, high)], 9000)
        return text

    for low, high in [(-800.0, 801.0), (-4.0, 4.0), (-math.inf, math.inf)]:
        assert ": none: too wide at n=1. It holds 1." in said(low, high)
    assert ": 0.90 to 2.46 at n=1. It holds 1." in said(-0.1, 0.9)


def test_a_figure_that_a_run_goes_by_is_compared() -> None:
    """The wall time is one that the program was given."""
    store = Store()
    case = next(case for case in CASES if "a rate that is known to move" in case.name)
    base, new = run_of(case, store), run_of(case._replace(prints=_half(case)), store)
    assert (base.primary, base.ranked) == ("wall_seconds", "tps")
    found = compare_runs([base], [new])
    assert [info.name for info in found.indicators] == [base.ranked]
    assert {cell.verdict for cell in found.cells} == {"slower"}
    by_wall = compare_runs([base], [new], Options(indicators=("wall_seconds",)))
    assert {cell.verdict for cell in by_wall.cells} <= {"same", "undecided"}


def _half(case: Case) -> Callable[[int, float, float], str]:
    return lambda n, wall, noise: case.prints(n, wall, noise / 2)


def test_figures_that_compare_nothing_are_warned_of() -> None:
    store = Store()
    case = next(case for case in CASES if "--best-by tps:higher" in case.says)
    base, new = run_of(case, store), run_of(case, store)
    found = compare_runs([base], [new])
    said = [text for text in found.warnings if "may compare nothing in run" in text]
    assert len(said) == 2 and "fixed time" in said[0]
