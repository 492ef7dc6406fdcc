"""Comparisons: intervals and verdicts of known truth, refusals, and the exit code for CI."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import msgspec
import numpy as np
import pytest

from concurve.analysis.comparison import compare_levels, compare_runs
from concurve.analysis.comparison.options import Options
from concurve.definition.study import Rules
from concurve.errors import ComparisonError
from concurve.findings.comparison import Comparison
from concurve.findings.run import TrialFindings
from concurve.host.same_machine import is_same_machine, machine_differences
from concurve.report.json.comparison import to_json
from concurve.report.sections.comparison import comparison_document
from concurve.report.terminal import lines
from concurve.stats.comparison import (
    benjamini_hochberg,
    compared,
    compared_in_pairs,
    directions,
)
from concurve.store import Store
from concurve.terms import Level
from tests.helpers.made import made_run

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
def test_intervals_of_ratios_cover_the_truth(cv: float) -> None:
    rng = np.random.default_rng(3)
    held = 0
    for _ in range(400):
        top, bottom = 1.05 * rng.lognormal(0, cv, 5), rng.lognormal(0, cv, 5)
        ratio = compared([list(top)], [list(bottom)])
        assert ratio is not None
        low, high = ratio.interval()
        held += low <= math.log(1.05) <= high
    assert 0.915 <= held / 400 <= 0.985


def test_the_bootstrap_agrees_with_welch_where_there_are_many_trials() -> None:
    rng = np.random.default_rng(4)
    top, bottom = [list(rng.lognormal(m, 0.1, 60)) for m in (0.2, 0.0)]
    welch, bootstrap = (compared([top], [bottom], m, seed=5) for m in ("welch", "bootstrap"))
    assert welch is not None and bootstrap is not None
    assert bootstrap.interval() == pytest.approx(welch.interval(), abs=0.005)
    assert compared([top], [bottom], "bootstrap", seed=5).interval() == bootstrap.interval()  # type: ignore[union-attr]


@pytest.mark.parametrize("method", ["welch", "bootstrap"])
def test_sessions_that_differ_widen_the_interval(method: str) -> None:
    """Many trials of few sessions say little of the next session."""
    rng = np.random.default_rng(6)
    sessions = [list(rng.normal(level, 0.001, 20)) for level in (0.9, 1.0, 1.1)]
    pooled = [[value for session in sessions for value in session]]
    wide = compared(sessions, sessions, method)  # type: ignore[arg-type]
    narrow = compared(pooled, pooled, method)  # type: ignore[arg-type]
    assert wide is not None and narrow is not None
    assert wide.interval()[1] > 1.5 * narrow.interval()[1]


def test_pairs_cover_the_truth_and_take_out_what_a_block_shares() -> None:
    rng = np.random.default_rng(7)
    held = narrower = 0
    for _ in range(400):
        weather = rng.lognormal(0, 0.2, 8)
        top, bottom = (mean * weather * rng.lognormal(0, 0.02, 8) for mean in (1.05, 1.0))
        pairs = compared_in_pairs(list(top), list(bottom), pilot=5)
        alone = compared([list(top)], [list(bottom)])
        assert pairs is not None and alone is not None
        low, high = pairs.interval()
        held += low <= math.log(1.05) <= high
        narrower += high - low < 0.5 * (alone.interval()[1] - alone.interval()[0])
    assert held / 400 >= 0.915, "seeded"
    assert narrower > 380


def test_pairs_need_two_blocks_and_values_above_0() -> None:
    assert compared_in_pairs([1.0], [1.0]) is None
    assert compared_in_pairs([1.0, 0.0], [1.0, 1.0]) is None


def said(top: list[float], bottom: list[float], effect: float = 0.02) -> str:
    return directions([compared([top], [bottom])], effect)[0]


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
        found = directions([compared([top], [bottom]) for top, bottom in pairs], 0.0)
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
    assert not found.warnings
    swapped = compare_runs([new], [base])
    assert verdicts(swapped) == {1: "same", 2: "faster", 4: "slower"}


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


def test_two_runs_make_no_pairs(store: Store) -> None:
    base, new = pair(store, lambda _: 1.0)
    with pytest.raises(ComparisonError, match="no blocks in common"):
        compare_runs([base], [new], Options(method="pairs"))


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
    assert set(written["cells"][0]["ratio"]) == {"value", "low", "high", "n"}
