"""The settings that cannot be distinguished from the best: coverage, the smallest of them, the
words."""

from __future__ import annotations

import itertools
import json
import math
import random
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema  # type: ignore[import-untyped]
import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from concurve import words
from concurve.analysis.comparison import compare_levels
from concurve.analysis.comparison.options import Options
from concurve.analysis.granted import Pool
from concurve.analysis.run import findings_of
from concurve.analysis.run.best import best_settings
from concurve.analysis.run.used_up import with_used_up
from concurve.analysis.sentences.answers import answers_of
from concurve.analysis.sentences.gains import Greatest
from concurve.definition.study import Rules
from concurve.errors import RunError
from concurve.estimate import Estimate
from concurve.findings.best import BestFinding
from concurve.findings.run import Findings, Report
from concurve.planning.plan import make_plan
from concurve.report.json.export import to_json
from concurve.report.sections.best import decisive_command
from concurve.report.sections.run import brief_run_document, run_document
from concurve.report.terminal import lines
from concurve.stats.best import best_centre, best_ratio, best_set, gap
from concurve.stats.blocks import Blocks
from concurve.stats.centre import centre
from concurve.stats.serial import stretched
from concurve.stats.signed_ranks import ranked
from concurve.store import Store
from concurve.terms import IndicatorInfo, Level
from tests.analysis.message_kinds import little_faster, undecided_versions
from tests.helpers.fakes import small_study
from tests.helpers.made import made_run

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "schema" / "export.schema.json").read_text(encoding="utf-8")
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(str(tmp_path / "s.db"))


def sentences(findings: Findings) -> str:
    return "\n".join(item.sentence for item in findings.sentences if item.kind == "answer")


def by_block(*columns: Iterable[float]) -> list[Blocks]:
    """Each column in the blocks 0, 1, 2, …"""
    return [dict(enumerate(map(float, column))) for column in columns]


def to_part(first: Sequence[float], second: Sequence[float]) -> int | None:
    """The trials that would show the difference of two settings."""
    found = gap(dict(enumerate(first)), dict(enumerate(second)))
    return None if found is None else found.trials(0.0, 0.95)


# -- the set ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "means", [(1.0, 1.0), (1.0,) * 8, (1.3, 1.0, 1.01, 1.02)], ids=["two", "eight", "close"]
)
@pytest.mark.parametrize("cv", [0.03, 0.08])
def test_the_set_contains_the_best_as_often_as_it_says(means: tuple[float, ...], cv: float) -> None:
    """95 % or more, less three standard errors of so many experiments."""
    rng = np.random.default_rng(7)
    best = means.index(min(means))
    held = 0
    for _ in range(300):
        cells = by_block(*(mean * rng.lognormal(0, cv, 5) for mean in means))
        held += best in best_set(cells).members
    assert held / 300 >= 0.95 - 3 * (0.95 * 0.05 / 300) ** 0.5


def test_a_clear_difference_is_found_nearly_always() -> None:
    rng = np.random.default_rng(8)
    alone = sum(
        best_set(by_block(*(m * rng.lognormal(0, 0.03, 8) for m in (1.0, 1.15, 1.3)))).members
        == (0,)
        for _ in range(200)
    )
    assert alone >= 180


def test_what_a_block_shares_drops_out() -> None:
    """Blocks vary by a factor of e, the settings by 5 %."""
    rng = np.random.default_rng(5)
    effects = rng.lognormal(0, 1, 8)
    cells = by_block(*(m * effects * rng.lognormal(0, 0.005, 8) for m in (1.05, 1.0, 1.1)))
    assert best_set(cells).members == (1,)


def test_constant_figures_are_told_apart_exactly() -> None:
    assert best_set(by_block([2.0] * 3, [1.0] * 3, [1.0] * 3)).members == (1, 2)
    within = best_set(by_block([1.05] * 9, [1.0] * 9), resolutions=[0.1, 0.1])
    assert within.members == (0, 1), "a tick of the clock apart"


def test_figures_that_are_not_all_above_0_are_compared_by_their_differences() -> None:
    zero, some = [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0], [5.0, 7.0, 6.0, 4.0, 5.0, 8.0, 5.0]
    assert best_set(by_block(some, zero)).members == (1,)
    assert best_set(by_block(some, zero), lower_is_better=False).members == (0,)


def test_settings_without_two_common_blocks_are_not_told_apart() -> None:
    assert best_set([{0: 1.0, 1: 1.0, 2: 1.0}, {2: 9.0, 3: 9.0, 4: 9.0}]).members == (0, 1)


def test_very_many_settings_take_no_time() -> None:
    cells = by_block(*([1.0 + i, 1.001 + i, 0.999 + i] for i in range(3000)))
    assert best_set(cells).members == (0,)


CELLS = st.lists(
    st.dictionaries(
        st.integers(0, 11),
        st.sampled_from([0.5, 1.0, 2.0]) | st.floats(min_value=0.01, max_value=100),
        min_size=1,
    ),
    min_size=2,
    max_size=5,
)


@given(CELLS, st.booleans(), st.sampled_from([0.0, 0.3]))
@example([dict.fromkeys(range(8), 0.5), {i: 0.5 if i < 3 else 1.0 for i in range(8)}], False, 0.0)
def test_the_set_is_that_of_the_test_of_each_pair(
    cells: list[dict[int, float]], lower: bool, off: float
) -> None:
    """All pairs at once are tested like each alone by its log ratios, spread where neighbouring
    trials are alike."""
    found = best_set(cells, lower, resolutions=[off] * len(cells))
    sign = 1 if lower else -1
    for index, cell in enumerate(cells):
        least = 1.0
        for other in cells[:index] + cells[index + 1 :]:
            share = sum(off / centre(list(side.values())) for side in (cell, other))
            logs = [
                sign * (math.log(cell[block]) - math.log(other[block]))
                for block in sorted(cell.keys() & other.keys())
            ]
            alone = ranked(stretched(logs), math.log1p(share))
            least = min(least, 1.0 if alone is None else alone.p_above())
        expected = min(1.0, 2 * least * (len(cells) - 1))
        if found.p_values[index] <= 0.05:  # one that left the set: its p-value is an upper bound
            assert expected <= found.p_values[index] + 1e-9
        else:
            assert found.p_values[index] == pytest.approx(expected, abs=1e-9)


def test_a_leader_and_its_rival_are_those_with_the_best_centres() -> None:
    best = best_set(by_block([1.2, 1.0, 1.1], [1.0, 1.1, 0.9], [9.0, 9.1, 9.2]))
    assert (best.leader, best.rival, best.members) == (1, 0, (0, 1))
    assert best_set(by_block([5.0, 5.1], [1.0, 1.1])).rival is None


def test_as_many_trials_as_it_says_do_tell_two_settings_apart() -> None:
    """The power holds where the difference and the spread are the true ones."""
    first = [1.0 + 0.03 * z for z in (-1.265, -0.632, 0.0, 0.632, 1.265)]
    second = [1.03 * first[place] for place in (2, 4, 1, 3, 0)]
    trials = to_part(first, second)
    assert trials is not None
    rng = np.random.default_rng(9)
    spread = np.std(np.log(first) - np.log(second), ddof=1) / math.sqrt(2)
    found = 0
    for _ in range(500):
        cells = by_block(*(mean * rng.lognormal(0, spread, trials) for mean in (1.0, 1.03)))
        found += best_set(cells).members == (0,)
    assert 0.75 <= found / 500 <= 0.9


def test_what_no_number_of_trials_tells_apart_has_none() -> None:
    assert to_part([1.0, 2.0, 3.0], [1.5, 1.99, 2.0]) is None
    assert to_part([1.0, 2.0], [1.0, 2.0]) is None
    assert to_part([1.0], [2.0, 3.0]) is None


def test_a_share_of_a_centre_of_0_is_one_of_the_other_centre() -> None:
    zero, some = by_block([0.0, 0.0, 1.0, 0.0, 0.0], [5.0, 7.0, 6.0, 4.0, 5.0])
    for first, second in ((zero, some), (some, zero)):
        found = gap(first, second)
        assert found is not None and found.is_of_centres
        assert found.share == pytest.approx(1.0, abs=0.1)
    rare, none = by_block([0.0, 4.0, 0.0, 0.0, 4.0], [0.0] * 5)
    both = gap(rare, none)
    assert both is not None and not both.is_of_centres
    assert math.isfinite(both.share)


@pytest.mark.parametrize(("block_seconds", "is_told"), [(0.01, False), (5.0, True), (None, False)])
def test_trials_that_this_allowance_would_not_hold_are_advised_with_one_that_does(
    block_seconds: float | None, is_told: bool
) -> None:
    plan = make_plan(small_study(n=(1, 2)), "quick", 1)
    columns = by_block([1.0, 1.3, 0.9, 1.2, 1.0], [1.05, 1.1, 1.0, 1.2, 0.9])
    wall = IndicatorInfo(name="wall_seconds", label="wall time", better="lower")
    (found,) = best_settings(plan, columns, wall, block_seconds=block_seconds)
    assert found.trials is not None and found.new_run is not None
    assert found.new_run.options.startswith(f"--repeats {found.trials}")
    assert (" --max-time " in found.new_run.options) == is_told
    assert ("would decide (about " in found.decide) == (block_seconds is not None)
    assert "--" not in found.decide, "the options stand in the command below the report"


@pytest.mark.parametrize(("had", "least"), [(0, 5), (3, 5), (5, 6), (12, 13)])
def test_no_advice_repeats_the_run_whatever_of_it_is_set_aside(had: int, least: int) -> None:
    """The spread of the trials that are left says that a few of them decide."""
    plan = make_plan(small_study(n=(1, 2)), "quick", 1)
    columns = by_block([1.0, 1.01, 0.99], [1.03, 1.05, 1.0])
    wall = IndicatorInfo(name="wall_seconds", label="wall time", better="lower")
    (found,) = best_settings(plan, columns, wall, had=had)
    assert found.trials is not None and found.trials >= least
    assert found.new_run is not None and found.new_run.trials == found.trials
    unclear = by_block([1.0, 1.25, 0.95], [0.9, 1.2, 1.0])
    (told,) = best_settings(plan, unclear, wall, had=had)
    assert told.is_open and told.trials is not None and told.trials >= least


@pytest.mark.parametrize(("had", "advised"), [(2, 10), (3, 10), (12, 13)])
def test_two_blocks_do_not_say_how_many_trials_would_decide(had: int, advised: int) -> None:
    """Of two blocks, the spread may be none by chance."""
    plan = make_plan(small_study(n=(1, 2)), "quick", 1)
    wall = IndicatorInfo(name="wall_seconds", label="wall time", better="lower")
    (found,) = best_settings(plan, by_block([1.0, 1.2], [1.01, 1.21]), wall, had=had)
    assert found.trials is None
    assert found.decide == (
        "2 trials of each to compare are too few to say how many would decide; "
        f"measure at least {advised}"
    )
    assert found.new_run is not None and found.new_run.options == f"--repeats {advised}"


def test_a_run_is_not_told_to_do_again_what_it_did() -> None:
    """One of three trials of each setting was disturbed and is set aside."""
    times = {"1": iter((1.0, 1.02, 1.0)), "2": iter((1.01, 1.0, 1.03))}
    found = made_run(
        Store(), lambda n: next(times[n]), cv=0, threads=(1, 2),
        rules=Rules(repeats_min=3, repeats_max=3, redo_max=0, redo_share=0.0),
        steal=lambda spec: 10**9 if spec.trial.split("/")[2] == "1" else 0,
    )  # fmt: skip
    best = found.best_overall
    assert best is not None and best.is_open
    assert [cell.indicators["wall_seconds"].n for cell in found.cells] == [2, 2]
    assert best.new_run is not None and best.new_run.options == "--repeats 10"


def test_more_trials_than_anybody_runs_are_no_advice() -> None:
    plan = make_plan(small_study(n=(1, 2)), "normal", 1)
    columns = by_block([1.0, 1.3, 0.9, 1.2, 1.0], [1.05, 1.1, 1.0, 1.2, 0.9])
    wall = IndicatorInfo(name="wall_seconds", label="wall time", better="lower")
    (found,) = best_settings(plan, columns, wall, block_seconds=600.0)
    assert found.trials is not None and found.new_run is None
    assert decisive_command([found], "ID") == "", "nor is a command for them shown"
    assert re.search(r"; that is \d+ h.*: longer trials or a quieter machine may", found.decide)


def test_a_sweep_is_told_to_measure_only_the_levels_that_are_not_decided() -> None:
    plan = make_plan(small_study(n=(1, 2, 4)), "quick", 1)
    worse = [3.0, 3.1, 2.9, 3.0, 3.05]
    near = [1.0, 1.3, 0.9, 1.2, 1.0], [1.05, 1.1, 1.0, 1.2, 0.9]
    wall = IndicatorInfo(name="wall_seconds", label="wall time", better="lower")
    columns = by_block(worse, *near)
    (found,) = best_settings(plan, columns, wall, block_seconds=3.0, is_sweep=True)
    assert found.new_run is not None
    assert found.new_run.options.startswith(f"--set n=2,4 --repeats {found.trials}")
    (of_file,) = best_settings(plan, columns, wall, block_seconds=3.0)
    assert of_file.new_run is not None and "--set" not in of_file.new_run.options
    assert of_file.trials == found.trials
    assert found.trials is not None
    assert f"(about {words.duration(2.0 * found.trials)})" in found.decide
    every = by_block(near[0], near[1], near[0])
    (all_open,) = best_settings(plan, every, wall, is_sweep=True)
    assert all_open.is_open and all_open.new_run is not None
    assert "--set" not in all_open.new_run.options, "none is to be left out"


@pytest.mark.parametrize("times", [1, 6])
def test_settings_with_centres_of_0_are_no_share_apart(times: int) -> None:
    plan = make_plan(small_study(n=(1, 2)), "normal", 1)
    columns = by_block([0, 3, 0, 0, 2, 0, 0] * times, [0, 0, 0, 4, 0, 1, 0] * times)
    (found,) = best_settings(
        plan, columns, IndicatorInfo(name="failed", label="failed", better="lower")
    )
    assert len(found.settings) == 2
    assert "no share says how far they lie apart" in found.decide


# -- the finding ------------------------------------------------------------------------------


def test_the_smallest_of_the_best_is_recommended(store: Store) -> None:
    found = made_run(
        store, lambda threads: 2 / min(int(threads), 2), threads=(8, 4, 2, 1), cv=0.005
    )
    best = found.best_overall
    assert best is not None and len(found.best) == 1
    assert {setting["threads"] for setting in best.settings} == {2, 4, 8}
    assert best.recommended == {"threads": 2}
    assert "Use 2; 4 and 8 are not significantly better." in sentences(found)


@pytest.mark.simulation
def test_no_relevant_difference_is_said_of_an_interval_and_not_of_a_point(store: Store) -> None:
    """Two equal settings: a spread of 0.2 % shows that they are alike, one of 5 % does not."""
    tight = made_run(store, lambda copy: 1.0, copy=("a", "b"), cv=0.002, name="tight")
    assert tight.best_overall is not None
    assert tight.best_overall.decide == (
        "the best two settings lie less than 1.0 % apart: no relevant difference"
    )
    said = set()
    for seed in range(1, 21):
        wide = made_run(store, lambda copy: 1.0, seed, 0.02, name="wide", copy=("a", "b"))
        assert wide.best_overall is not None
        if wide.best_overall.decide:
            assert "no relevant difference" not in wide.best_overall.decide
            said.add(wide.best_overall.decide.partition(";")[0])
    assert "the best two settings cannot be told apart" in said


def test_a_coarse_clock_shows_neither_a_best_setting_nor_that_there_is_none(store: Store) -> None:
    """All readings are 0.02 s or 0.03 s: the step is the clock's."""
    reads = itertools.cycle((0.02, 0.03, 0.03, 0.02, 0.02))
    found = made_run(store, lambda copy: next(reads), cv=0, copy=("a", "b"))
    best = found.best_overall
    assert best is not None and len(best.settings) == 2 and best.trials is None
    assert "the clock is too coarse: longer trials, or a finer clock" in best.decide
    assert "no relevant difference" not in best.decide


@pytest.mark.simulation
def test_the_answer_and_the_recommendation_say_the_same(store: Store) -> None:
    """A setting is the best of two where it is significantly faster; where it is not, the base is
    used if it is shown to be as good, and else nothing is decided."""
    told = open_ = 0
    for seed in range(1, 61):
        found = made_run(
            store, lambda k: 1.0 if k == "b" else 1.02, seed, 0.013, name="k", k=("a", "b")
        )
        said = sentences(found)
        gain, best = bool(re.search(r"=b is \d", said)), "Use k=b." in said
        is_open = said.startswith("Not decided: ")
        assert gain == best, said
        is_base = "Use k=a" in said or said.startswith("Whether ")
        assert is_open != (gain or is_base), said
        assert not gain or "No setting is significantly faster" not in said
        told, open_ = told + gain, open_ + is_open
    assert 5 < told < 55 and open_ < 55


@pytest.mark.simulation
def test_groups_are_judged_as_one_family(store: Store) -> None:
    for seed in range(1, 21):
        found = made_run(
            store,
            lambda cpus, k: 1.0 if k == "2" else 1.02,
            seed,
            0.012,
            name="g",
            cpus=(1, 2, 3),
            threads=(1, 2),
        )
        said = [item.sentence for item in found.sentences if item.kind == "answer"]
        for cpus in (1, 2, 3):
            own = " ".join(text for text in said if text.startswith(f"With cpus={cpus}"))
            none = "no number of threads is significantly" in own
            assert not (none and "Use 2" in own), own
            assert none or "2 threads" in own, own


def test_a_speedup_names_its_measure_where_the_study_asks_for_another(store: Store) -> None:
    by_time = made_run(store, lambda k: 1.0, cv=0.001, k=("a", "b"), name="time")
    assert "k=b is as fast as k=a by wall time, within 2 %: " in sentences(by_time)
    by_cpu = made_run(store, lambda n: 1.0, n=(1, 2), name="cpu", primary="cpu_seconds")
    assert "faster than n=1 by wall time." in sentences(by_cpu)
    versions = made_run(
        store, lambda k: 1.0, cv=0.001, k=("a", "b"), name="names", primary="cpu_seconds"
    )
    assert "as k=a by CPU time, within 2 %: " in sentences(versions)
    assert "Use k=a or k=b (by CPU time): neither loses 2 % or more." in sentences(versions)
    quick = made_run(store, float, base={"k": 2}, k=(1, 2), name="two", primary="cpu_seconds")
    assert re.search(r"k=1 is \S+ as fast as k=2 \[.*\] by wall time", sentences(quick))


def test_versions_that_are_as_fast_are_said_to_be_so_once(store: Store) -> None:
    found = made_run(store, lambda k: 1.0, k=("a", "b"))
    first, second, *_ = (item.sentence for item in found.sentences if item.kind == "answer")
    assert first.startswith("k=b is as fast as k=a by wall time, within 5 %: ")
    assert second == "Use k=a or k=b: neither loses 5 % or more."


def test_a_version_that_is_faster_by_less_than_matters_is_not_preferred() -> None:
    """The answer goes by the rule of the verdict: beyond 0 and beyond the effect."""
    third = (0.99, 0.985, 0.995, 0.99, 0.992, 0.988, 0.99, 0.985, 0.995, 0.99)
    for new in (1.0, 1.03):
        found = little_faster(None, new, third)
        of_third = (
            "version=third is as fast as version=old by wall time, within 2 %: 1.4 % faster ["
        )
        assert of_third in sentences(found)
        assert re.search(r"Use version=old(, version=new)? or version=third: n", sentences(found))
        (cell,) = compare_levels(found, "version", ("old", "third")).cells
        assert cell.verdict == "same"
    assert "Use version=third." in sentences(little_faster(0.01, 1.03, third))


def test_an_interval_of_the_answer_is_that_of_the_verdict() -> None:
    """It holds no difference where one is told, and none as large as the effect where two are said
    to be as fast."""
    for effect in (0.005, 0.01, 0.02, 0.03, 0.1):
        found = little_faster(effect, 1.01)
        compared = compare_levels(found, "version", options=Options(effect=effect))
        answers = [item.sentence for item in found.sentences if item.kind == "answer"]
        for cell, text in zip(compared.cells, answers, strict=False):
            ends = re.search(r"\[(\S+)( % slower to|,) (\S+) %", text)
            assert ends is not None, text
            low, high = float(ends[1]) * (-1 if "slower to" in text else 1), float(ends[3])
            if cell.verdict == "same":
                assert "is as fast as" in text and max(abs(low), high) <= 100 * effect + 0.05
            elif cell.verdict == "undecided":
                assert text.startswith("Whether "), text
            else:
                assert f" {cell.verdict} than" in text and "slower to" not in text


def test_between_versions_that_may_differ_the_base_is_not_preferred() -> None:
    """That nothing tells the new version from the old one is no decision for the old one."""
    found = undecided_versions()
    assert found.best_overall is not None and found.best_overall.recommended == {"version": "old"}
    first, second, *_ = (item.sentence for item in found.sentences if item.kind == "answer")
    assert re.fullmatch(
        r"Whether version=new or version=old is faster cannot be said by wall time: 2\.9 % "
        r"slower \[8\.5 % slower to 1\.3 % faster\]\.",
        first,
    )
    assert "Use" not in sentences(found) and "No setting" not in sentences(found)
    compared = compare_levels(found, "version")
    assert second in compared.advice, "the report and the comparison name one number"
    assert re.match(r"About (\d+) trials of each .*: --repeats \1 in a new run", second)


def test_two_trials_are_no_ground_to_use_a_setting() -> None:
    """The interval is said once, and what to do."""
    times = {"1": iter((1.0, 1.0)), "2": iter((0.586, 0.529))}
    two = Rules(repeats_min=2, repeats_max=2)
    found = made_run(Store(), lambda n: next(times[n]), cv=0, rules=two, workers=(1, 2))
    said = sentences(found)
    assert "(too wide to tell)" in said and "Use " not in said
    assert said.count("× to ") == 1 and "; measure at least 10 (about " in said


def test_a_neighbour_that_is_worse_is_told_on_both_sides() -> None:
    """Also where the figure that was asked for is not that of the speed-ups."""
    seconds = {"1": 4.0, "2": 2.0, "4": 1.08, "8": 1.0, "16": 1.07}
    levels = (1, 2, 4, 8, 16)
    found = made_run(Store(), lambda n: seconds[n], cv=0.003, clients=levels)
    assert "Use 8; 4 and 16 are worse." in sentences(found)
    found = made_run(Store(), lambda n: seconds[n], cv=0.003, clients=levels[2:])
    assert "Use 8; 16 is worse." in sentences(found), "its gain over 4 was said"


def test_smaller_settings_that_may_be_as_good_are_told_with_what_they_may_cost(
    store: Store,
) -> None:
    """Whoever wants the smaller one sees by how much the other may be faster."""
    draw = random.Random(0)
    cv = {"1": 0.001, "2": 0.05, "4": 0.001, "8": 0.001}
    centre_of = {"1": 1.0, "2": 0.54, "4": 0.5, "8": 0.5}
    found = made_run(
        store,
        lambda n: centre_of[n] * draw.lognormvariate(0, cv[n]),
        cv=0,
        threads=(1, 2, 4, 8),
    )
    (best,) = found.best
    assert (best.recommended, best.passed) == ({"threads": 4}, ({"threads": 2},))
    assert best.to_passed is not None and best.to_passed.low is not None
    assert best.to_passed.low < 0.54 / 0.5 < (best.to_passed.high or 0)
    assert re.search(
        r"Use 4; 2 may be as good \(4 is 0\.9\d× to 1\.1\d× as fast\), 8 is not", sentences(found)
    )


def test_a_base_that_the_best_is_not_told_from_may_be_as_good(store: Store) -> None:
    """It left the set by a test of each pair, and the speed-up of the best of several includes
    1."""
    for seed in range(60):
        draw = random.Random(seed)
        found = made_run(
            store,
            lambda n, draw=draw: {"1": 1.0, "2": 0.94, "4": 0.96}[n] * draw.lognormvariate(0, 0.05),
            cv=0,
            rules=Rules(repeats_min=10, repeats_max=10),
            threads=(1, 2, 4),
        )
        said = sentences(found)
        if "seem " in said and "Use 2" in said:
            assert re.search(r"Use 2; 1 (and 4 )?may be as good", said), said
            return
    pytest.fail("no run has such an answer")


def test_what_smaller_settings_may_cost_is_told_of_those_that_it_holds_for(store: Store) -> None:
    """The base was not compared with the recommended setting by that interval, and is said once."""
    made = made_run(store, lambda n: 1.0 / float(n), threads=(1, 2, 4))
    one, _, four = made.cells
    gain = Greatest("", four, one, False, "", Estimate(value=1.1, low=0.95, high=1.3, n=5))
    best = msgspec.structs.replace(
        made.best[0],
        recommended={"threads": 4},
        leader={"threads": 4},
        passed=({"threads": 2},),
        to_passed=Estimate(value=1.06, low=0.97, high=1.2, n=5),
        as_good=(),
        behind=({"threads": 1},),
    )
    plan = make_plan(small_study(Rules(), threads=(1, 2, 4)), "normal", 1)

    def told(item: BestFinding) -> str:
        (said,), _, _ = answers_of(plan, [gain], (item,), "wall_seconds")
        return said.partition("Use ")[2]

    assert told(best) == "4; 1 and 2 may be as good."
    alone = msgspec.structs.replace(best, passed=({"threads": 1}, {"threads": 2}))
    assert told(alone) == "4; 1 and 2 may be as good (4 is 0.97× to 1.20× as fast)."
    said_once = msgspec.structs.replace(best, passed=(), as_good=({"threads": 1},), behind=())
    assert told(said_once) == "4; 1 is not significantly better."


TOLD_WORSE = re.compile(r"(?:^|[;,.:)] )([\d, and]+?) (?:is|are|seems?) (?:worse|not(?=\.))")
RATIO = re.compile(r"× as fast as (\d+) \[([\d.]+), ([\d.]+)\]")
LEVELS = (1, 2, 4, 8)


def told_worse(said: str) -> set[int]:
    """The levels that an answer tells to be worse."""
    return {int(level) for names in TOLD_WORSE.findall(said) for level in re.findall(r"\d+", names)}


@pytest.mark.parametrize(
    ("said", "levels"),
    [
        ("2 threads seem best; 4 and 8 may be as good, 1 is not.", {1}),
        ("Use 2 or 4; 1 and 8 are worse. 4 is 0.97× to 1.12× as fast as 2.", {1, 8}),
        ("Use 4; 2 may be as good, 8 is not significantly better.", set()),
        ("With load=1, in doubt: 2 or 4 threads seem best (4 is 1.1× as fast as 1 [0.9, 1.2]); "
         "1 seems worse.", {1}),
    ],
)  # fmt: skip
def test_what_an_answer_tells_to_be_worse_is_read(said: str, levels: set[int]) -> None:
    assert told_worse(said) == levels


FORMS: dict[str, dict[str, Any]] = {
    "open": {"recommended": None, "is_open": True, "doubt": "the trials do not decide"},
    "in doubt": {"recommended": None, "is_tentative": True, "doubt": "not quiet"},
    "one of a few": {
        "recommended": None, "is_open": True, "first": {"threads": 2},
        "to_first": Estimate(value=1.1, low=0.97, high=1.2, n=5),
    },
    "the first of a few": {
        "recommended": None, "is_open": True, "first": {"threads": 2}, "first_is_alike": True,
        "to_first": Estimate(value=1.02, low=0.97, high=1.2, n=5),
    },
    "recommended": {"recommended": {"threads": 4}},
}  # fmt: skip


@pytest.fixture(name="report", scope="module")
def made_report() -> Report:
    return made_run(Store(), lambda n: 1.0 / float(n), threads=LEVELS)


@pytest.mark.parametrize("form", FORMS)
@given(
    cell=st.sampled_from([1, 2]),
    interval=st.tuples(st.floats(0.3, 1.4), st.floats(0.01, 0.9)),
    is_gain=st.booleans(),
    is_in_group=st.booleans(),
    has_as_good=st.booleans(),
)
def test_a_base_is_not_told_worse_beside_an_interval_that_holds_1(
    report: Report,
    form: str,
    cell: int,
    interval: tuple[float, float],
    is_gain: bool,
    is_in_group: bool,
    has_as_good: bool,
) -> None:
    """Whatever test had it leave the best set; where the interval leaves out 1, it may be."""
    low, high = interval[0], interval[0] + interval[1]
    fields = FORMS[form]
    group: dict[str, Level] = {"load": 1} if is_in_group else {}
    few = ({"threads": 2}, {"threads": 4})
    has_as_good = has_as_good or fields.get("first") is not None
    best = msgspec.structs.replace(
        report.best[0], group=group, settings=few if has_as_good else few[1:], compared=4,
        leader={"threads": 4}, passed=(), as_good=few[:1] if has_as_good else (),
        behind=({"threads": 1}, {"threads": 8}), **fields,
    )  # fmt: skip
    speedup = Estimate(value=(low + high) / 2, low=low, high=high, n=5,
                       in_doubt=bool(fields.get("is_tentative")))  # fmt: skip
    is_gain = is_gain and low > 1
    gain = Greatest(
        "load=1" if group else "", report.cells[cell], report.cells[0], is_gain, "", speedup
    )
    plan = make_plan(small_study(Rules(), threads=LEVELS), "normal", 1)
    answers, _, shorter = answers_of(plan, [gain], (best,), "wall_seconds")
    for said in (*answers, *shorter.values()):
        for base, least, most in RATIO.findall(said):
            is_told = float(least) > 1 or float(most) < 1
            assert is_told or int(base) not in told_worse(said), said


@pytest.mark.parametrize(
    ("form", "begun"),
    [
        ("in doubt", "; 1 and 2 may be as good."),
        ("open", "; 1 and 2 may be as good, 8 is not."),
        ("one of a few", "Use 2 or 4; 1 may be as good, 8 is worse."),
    ],
)
def test_such_a_base_is_named_among_those_that_may_be_as_good(
    report: Report, form: str, begun: str
) -> None:
    best = msgspec.structs.replace(
        report.best[0], settings=({"threads": 2}, {"threads": 4}), leader={"threads": 4},
        as_good=({"threads": 2},), behind=({"threads": 1}, {"threads": 8}), **FORMS[form],
    )  # fmt: skip
    cell = report.cells[1 if form == "one of a few" else 2]
    speedup = Estimate(value=1.61, low=0.92, high=1.83, n=5, in_doubt=form == "in doubt")
    plan = make_plan(small_study(Rules(), threads=LEVELS), "normal", 1)
    gain = Greatest("", cell, report.cells[0], False, "", speedup)
    said = " ".join(answers_of(plan, [gain], (best,), "wall_seconds")[0])
    assert "1.61× as fast as 1 [0.92, 1.83]" in said and begun in said, said


def test_a_base_that_the_interval_does_not_tell_may_be_as_good_in_a_run(store: Store) -> None:
    """Also where trials are in doubt, whose intervals hold the undisturbed ones."""
    for seed in range(12):
        found = made_run(
            store, lambda n: {"1": 1.0, "2": 0.8, "4": 0.75}[n], seed=seed, cv=0.25,
            rules=Rules(repeats_min=8, repeats_max=8, redo_max=0, redo_share=0.0),
            steal=(lambda _: 10**9) if seed % 2 else None, threads=(1, 2, 4),
        )  # fmt: skip
        said = sentences(found)
        for base, least, most in RATIO.findall(said):
            is_told = float(least) > 1 or float(most) < 1
            assert is_told or int(base) not in told_worse(said), said


def test_each_group_has_its_own_and_all_cells_have_one(store: Store) -> None:
    found = made_run(
        store,
        lambda cpus, threads: 2 / min(int(threads), int(cpus)),
        cpus=(1, 2),
        threads=(1, 2, 4),
    )
    one, two, whole = found.best
    assert one.group == {"cpus": 1} and one.recommended == {"threads": 1}
    assert two.group == {"cpus": 2} and two.recommended == {"threads": 2}
    assert whole.group == {} and whole.recommended == {"cpus": 2, "threads": 2}
    assert "With cpus=1: no number of threads is significantly faster than 1. Use 1." in sentences(
        found
    )
    assert re.search(r"With cpus=2: 2 threads are \S+ as fast as 1 \[.*\]. Use 2", sentences(found))
    assert sentences(found).startswith("Use cpus=2 threads=2; ")


def test_conditions_part_the_cells_and_are_not_recommended(store: Store) -> None:
    """A load is met, not chosen: the best setting is named under each, and over none."""
    found = made_run(
        store,
        lambda load, sync, threads: (1 + float(load)) / min(int(threads), 1 + (sync == "cas")),
        conditions=("load",),
        load=(0, 1),
        sync=("none", "cas"),
        threads=(1, 2),
    )
    whole = [item for item in found.best if item.factors == ("sync", "threads")]
    assert [item.group for item in whole] == [{"load": 0}, {"load": 1}]
    assert [item.recommended for item in whole] == [{"sync": "cas", "threads": 2}] * 2
    assert [item.group for item in found.best if item.factors == ("threads",)] == [
        {"load": load, "sync": sync} for load in (0, 1) for sync in ("none", "cas")
    ]
    assert found.best_overall is None
    assert "With load=1: use sync=cas threads=2." in sentences(found)
    assert "Over all cells" not in sentences(found)
    export = json.loads(to_json(found))
    jsonschema.validate(export, SCHEMA)
    assert "best" not in export and len(export["best_by_condition"]) == 6


def test_many_conditions_are_summed_by_what_is_best_of_all_settings(store: Store) -> None:
    found = made_run(
        store,
        lambda load, sync, threads: (1 + float(load)) / min(int(threads), 1 + (sync == "cas")),
        conditions=("load",),
        load=tuple(range(7)),
        sync=("none", "cas"),
        threads=(1, 2),
    )
    assert "Of 7 conditions, use sync=cas threads=2 under 7." in sentences(found)


def test_where_nothing_is_chosen_nothing_is_recommended(store: Store) -> None:
    """Nor is a speed-up reported over a cell of another load."""
    found = made_run(store, lambda load: 1 + float(load), conditions=("load",), load=(0, 1))
    assert found.best == ()
    assert not {"Use", "recommended", "fast"} & set(sentences(found).split())


def test_the_best_median_with_a_smaller_speedup_than_another_says_so(store: Store) -> None:
    """Four threads have the greater speed-up, block by block, as the table shows."""
    trials = {
        "1": [1.0, 1.01, 0.99, 4.0, 4.1],
        "2": [0.5, 0.51, 0.49, 3.9, 3.8],
        "4": [0.45, 0.55, 0.54, 1.0, 1.1],
    }
    each = {level: iter(values) for level, values in trials.items()}
    found = made_run(store, lambda threads: next(each[threads]), cv=0, threads=(1, 2, 4))
    speedups = [cell.indicators["speedup"].value for cell in found.cells]
    assert max(speedups) == speedups[2]
    assert sentences(found).startswith("4 threads are 2.")
    assert " Use 2 or 4; 1 is worse. 4 is 0.65× to 4.26× as fast as 2. " in sentences(found)


def test_the_work_factor_counts_first_and_words_by_their_place(store: Store) -> None:
    """Two threads with the later word take less than four with the first."""
    fast = {("none", "4"), ("method", "2"), ("cas", "2")}
    found = made_run(
        store,
        lambda sync, threads: 1.0 if (sync, threads) in fast else 1.5,
        sync=("none", "method", "cas"),
        threads=(2, 4),
    )
    assert found.best_overall is not None
    assert found.best_overall.recommended == {"sync": "method", "threads": 2}


def test_more_trials_are_asked_for_where_they_help(store: Store) -> None:
    found = made_run(store, lambda copy: 1.0 if copy == "a" else 1.03, copy=("a", "b"), cv=0.05)
    best = found.best_overall
    assert best is not None and len(best.settings) == 2
    assert best.trials is None or best.trials > 5
    assert best.is_open and "trials of each would decide" in best.decide
    page = " ".join(line.plain for line in lines(run_document(found), 400))
    assert best.decide[1:] in page


def test_where_the_trials_do_not_decide_what_seems_best_and_what_may_be_as_good_is_said(
    store: Store,
) -> None:
    """Noisy trials: the smallest is neither told from the best nor shown to be as good."""
    trials = {"1": [1.0, 1.25, 0.95], "2": [0.9, 1.2, 1.0], "4": [0.96, 0.97, 0.95]}
    each = {level: iter(values) for level, values in trials.items()}
    three = Rules(repeats_min=3, repeats_max=3)
    found = made_run(
        store, lambda threads: next(each[threads]), cv=0, threads=(1, 2, 4), rules=three
    )
    best = found.best_overall
    assert best is not None and best.recommended is None and best.is_open
    said = sentences(found)
    leader = best.leader["threads"]
    assert said.startswith(f"Not decided: {leader} threads seem best, ")
    assert " may be as good. " in said and "Use" not in said.split()
    assert re.search(r"About \d+ trials of each would decide \(about \S+ m?s\)\.", said)
    assert found.cell_to_explain is not None
    assert best.trials is not None and best.trials > 3
    shown = [line.plain for line in lines(brief_run_document(found), 90)]
    assert len(shown) <= 30
    export = json.loads(to_json(found))
    jsonschema.validate(export, SCHEMA)
    assert "recommended" not in export["best"] and export["best"]["doubt"]


def test_of_names_none_is_enough_for_being_the_first(store: Store) -> None:
    """Of threads the smaller one costs less; of versions the first one does not."""
    six = Rules(repeats_min=6, repeats_max=6)
    for levels, is_smaller in (((1, 2, 4), True), (("old", "new", "worst"), False)):
        close, other, worse = [1.0] * 6, [0.94, 1.02, 1.0, 1.04, 0.96, 1.0], [2.0, 2.1, 1.9] * 2
        columns = (worse, close, other) if is_smaller else (close, other, worse)
        times = {str(level): iter(each) for level, each in zip(levels, columns, strict=True)}
        name = f"smaller-{is_smaller}"
        found = made_run(
            store, lambda x, of=times: next(of[x]), cv=0, rules=six, name=name, x=levels
        )
        (best,) = found.best
        assert best.first is not None and best.to_first is not None
        assert (best.to_first.high or math.inf) < 1.11
        said = sentences(found)
        if is_smaller:
            assert "Use x=2: x=4 is not shown to be faster (0." in said
            assert "×). x=1 is worse. " in said
        else:
            assert "x=worst is worse. " in said and " is not shown to be " not in said


class Planted(NamedTuple):
    """Settings of which the trials do not decide between 2 and 4, and what they use of the CPUs."""

    four: tuple[float, ...] = (0.9, 1.03, 1.0, 1.08, 0.95, 1.0)
    cpus: tuple[float, float, float] = (2, 2, 2)
    used: tuple[float, float] = (1.93, 0)
    levels: tuple[Level, ...] = (1, 2, 4)
    roles: tuple[str, ...] = ("",)
    in_doubt: bool = False
    by: str = "wall_seconds"


OPEN = r"Use 2 or 4 threads; 1 is worse\. 4 is "
NOT_SHOWN = r"Use 2 threads: 4 is not shown to be faster \(0\.\d+× to [12]\.\d+×\)\. 1 is worse\. "
HARDLY = r"so more threads can hardly gain \(4: 0\.\d+× to 1\.\d+×\)\. 1 is worse\. "


@pytest.mark.parametrize(
    ("planted", "begins"),
    [
        (Planted(), rf"Use 2 threads: they use up the 2 CPUs, {HARDLY}"),
        (
            Planted(used=(0.98, 0), cpus=(1, 1, 1)),
            rf"Use 2 threads: they use up the one CPU, {HARDLY}",
        ),
        (
            Planted(used=(1.2, 0.75), roles=("", "load")),
            rf"Use 2 threads: server and load use up the 2 CPUs, {HARDLY}",
        ),
        (Planted(used=(1.2, 0.6), roles=("", "load")), NOT_SHOWN),
        (Planted(used=(1.88, 0)), NOT_SHOWN),
        # The factor is the number of CPUs: four may have more of them.
        (Planted(cpus=(1, 2, 4)), NOT_SHOWN),
        (Planted(in_doubt=True), NOT_SHOWN),
        # It seems better by more than 5 %, whatever is used up.
        (Planted(four=(0.83, 1.08, 0.86, 1.08, 0.88, 0.95)), OPEN),
        # It may be better by far, and does not seem so.
        (Planted(four=(0.6, 1.5, 1.0, 1.4, 0.8, 1.0), used=(1, 0)), NOT_SHOWN),
        # By another figure than that of the speed-ups, the CPUs are no bound.
        (Planted(by="p99"), r"Use 2 threads \(by .*\): 4 is not shown to be better \(0"),
    ],
)
def test_of_a_few_the_smallest_is_named_that_uses_up_the_cpus(
    planted: Planted, begins: str, store: Store
) -> None:
    """More workers may be as good all the same, and are told to be so with their interval."""
    columns = ([2.0, 2.1, 1.9] * 2, [1.0] * 6, planted.four)
    times = {str(n): iter(each) for n, each in zip(planted.levels, columns, strict=True)}
    six = Rules(repeats_min=6, repeats_max=6)
    run = made_run(store, lambda n: next(times[n]), cv=0, rules=six, threads=planted.levels)
    (best,) = run.best
    assert best.first == {"threads": 2} and best.used_up is None
    cells = []
    for cell in run.cells:
        like = msgspec.structs.replace(cell.indicators["wall_seconds"], in_doubt=planted.in_doubt)
        used = {
            f"{role}.cpus_used" if role else "cpus_used": msgspec.structs.replace(like, value=cpus)
            for role, cpus in zip(("", "load"), planted.used, strict=True)
        }
        cells.append(msgspec.structs.replace(cell, indicators={**cell.indicators, **used}))
    granted = {i: (Pool(planted.roles, cpus),) for i, cpus in enumerate(planted.cpus)}
    (found,) = with_used_up([best], cells, granted, "server", planted.by)
    assert msgspec.structs.replace(found, used_up=None) == best, "the set stays"
    plan = make_plan(small_study(six, threads=planted.levels), "normal", 1)
    found = msgspec.structs.replace(found, indicator=planted.by)
    said, _, _ = answers_of(plan, [], (found,), "wall_seconds")
    assert re.match(begins, said[0]), said


def test_a_smaller_setting_of_the_set_is_always_named_and_used_where_it_uses_up_the_cpus() -> None:
    """As of a server in Go: 4 is shown to be as good as the best, and 2 is in the set of the best,
    though compared with 4 alone it may be told to be behind."""
    six = Rules(repeats_min=6, repeats_max=6)
    plan = make_plan(small_study(six, threads=(1, 2, 4)), "normal", 1)
    rate = IndicatorInfo(name="x", label="rate", better="higher")
    made = made_run(Store(), lambda n: 1.0, rules=six, threads=(1, 2, 4))
    used = msgspec.structs.replace(made.cells[0].indicators["wall_seconds"], value=1.96)
    cells = [msgspec.structs.replace(it, indicators={"cpus_used": used}) for it in made.cells]
    granted = {index: (Pool(("",), 2.0),) for index in range(3)}
    found = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        columns = by_block(*(rng.lognormal(0, 0.02, 6) * mean for mean in (0.5, 0.97, 1.0)))
        (best,) = best_settings(plan, columns, rate)
        named = [best.recommended, *best.passed, *best.as_good]
        assert best.recommended is None or all(each in named for each in best.settings)
        if best.recommended != {"threads": 4} or {"threads": 2} not in best.settings:
            continue
        (said,), _, _ = answers_of(plan, [], (best,), "x")
        assert said.startswith("Use 4 threads (by rate); 2 may be as good (4 is ")
        (full,) = with_used_up([best], cells, granted, "server", "x")
        assert best.to_first is not None
        if best.to_first.value > 1.05:
            assert full.recommended == {"threads": 4}, "it seems to lose more than that"
            continue
        (said,), _, _ = answers_of(plan, [], (full,), "x")
        assert said.startswith("Use 2 threads (by rate): they use up the 2 CPUs, so more threads")
        assert full.settings == best.settings and full.named == {"threads": 2}
        found += 1
    assert found


@pytest.mark.parametrize("better", ["lower", "higher"])
def test_how_far_others_may_be_from_the_smallest_of_which_one_is_used(better: str) -> None:
    """Where the trials do not decide, and the rest is worse: the interval is that of the other one
    beside the smallest, whichever way is better, and holds the truth as often as it says."""
    plan = make_plan(small_study(Rules(), threads=(1, 2, 4)), "normal", 1)
    info = IndicatorInfo(name="x", label="x", better=better)  # type: ignore[arg-type]
    rng = np.random.default_rng(20261130)
    truth, held, told = 1.03, 0, 0
    for _ in range(200):
        fast = [rng.lognormal(0, 0.05, 10) * mean for mean in (0.5, 1.0, truth)]
        columns = by_block(*(1 / each if better == "lower" else each for each in fast))
        (found,) = best_settings(plan, columns, info)
        if found.first is None:
            assert found.to_first is None
        if found.first is None or found.recommended is not None:
            continue
        assert found.first == {"threads": 2} == found.named and found.recommended is None
        assert found.to_first is not None and found.to_first.low and found.to_first.high
        told += 1
        held += found.to_first.low <= truth <= found.to_first.high
    assert told > 50 and held / told >= 0.95 - 3 * (0.95 * 0.05 / told) ** 0.5


def test_a_setting_that_is_told_from_all_others_is_the_best(store: Store) -> None:
    found = made_run(store, float, n=(1, 2, 3))
    assert "n=1 is the fastest: n=2 is 0.50× as fast, n=3 0.33×. Use n=1." in sentences(found)


def test_where_all_others_are_slower_each_is_told_by_how_much(store: Store) -> None:
    """As of Redis' I/O threads on two CPUs: that no other is faster hides that they are slower."""
    found = made_run(store, float, threads=(1, 2, 4), cv=0.005, name="slower")
    said = sentences(found)
    assert "threads=1 is the fastest: 2 threads are 0.50× as fast, 4 threads 0.25×. Use 1." in said
    alike = made_run(
        store,
        lambda threads: {"1": 1.0, "2": 1.001, "4": 4.0}[threads],
        threads=(1, 2, 4),
        cv=0.02,
        name="alike",
    )
    assert "is the fastest" not in sentences(alike), "2 threads may be as fast"


def test_single_trials_tell_nothing(store: Store) -> None:
    once = Rules(repeats_min=1, repeats_max=1)
    found = made_run(store, float, n=(1, 2), rules=once)
    assert found.best_overall is not None and len(found.best_overall.settings) == 2
    assert "single trial" in found.best_overall.decide


def test_another_indicator_may_decide(store: Store) -> None:
    run = made_run(store, float, n=(1, 2, 3)).run.id
    by_rate = findings_of(store, store.find_run(run), "rate_per_second").best_overall
    assert by_rate is not None and by_rate.recommended == {"n": 1}, "a higher rate is better"
    with pytest.raises(RunError, match="higher or lower threads_peak is better") as refused:
        findings_of(store, store.find_run(run), "threads_peak")
    assert "--best-by threads_peak:lower" in refused.value.remedy
    by_peak = findings_of(store, store.find_run(run), "threads_peak:lower").best_overall
    assert by_peak is not None and by_peak.indicator == "threads_peak"
    with pytest.raises(RunError, match="no trial has the indicator 'speed'"):
        findings_of(store, store.find_run(run), "speed")


def test_a_run_of_one_cell_has_no_best(store: Store) -> None:
    found = made_run(store, lambda n: 1.0, n=(1,))
    assert found.best == () and "best" not in json.loads(to_json(found))


def test_the_export_has_bare_levels_for_one_factor_and_objects_for_several(store: Store) -> None:
    one = json.loads(to_json(made_run(store, lambda n: 1.0 if n == "2" else 2.0, n=(1, 2, 3))))
    assert one["best"]["levels"] == [2] and one["best"]["recommended"] == 2
    two = json.loads(
        to_json(made_run(store, lambda n, m: float(n) + float(m), n=(1, 2), threads=(1, 2)))
    )
    assert two["best"]["recommended"] == {"n": 1, "threads": 1}
    assert [group["group"] for group in two["best"]["groups"]] == [{"n": 1}, {"n": 2}]
    for export in (one, two):
        jsonschema.validate(export, SCHEMA)


def test_the_interval_of_the_best_holds_although_noise_helps_to_be_chosen() -> None:
    """Eight settings that are all alike: the best observed centre alone is biased."""
    random = np.random.default_rng(7)
    held, chosen = 0, []
    for _ in range(400):
        _, estimate = best_centre(by_block(*random.normal(10.0, 1.0, (8, 5))))
        assert estimate.low is not None and estimate.high is not None
        held += estimate.low <= 10.0 <= estimate.high
        chosen.append(estimate.value)
    assert held >= 0.95 * 400
    assert np.mean(chosen) < 9.7, "the bias that the interval must bear"


def test_the_ratio_of_the_best_of_two_groups_holds_whatever_the_blocks_share() -> None:
    random = np.random.default_rng(8)
    held = 0
    for _ in range(300):
        effects = random.lognormal(0, 0.5, 8)
        rows = effects * random.lognormal(0, 0.03, (6, 8))
        rows[0] *= 1.3
        found = best_ratio(by_block(*2 * rows[:3]), by_block(*rows[3:]))
        assert found is not None and found.low is not None and found.high is not None
        held += found.low <= 2.0 <= found.high
        assert found.high / found.low < 1.4, "the effects of the blocks drop out"
    assert held >= 0.95 * 300
    assert best_ratio(by_block([0.0, 1.0]), by_block([1.0, 1.0])) is None


def test_the_best_centre_may_be_the_greatest() -> None:
    columns = by_block([1.0, 1.1], [3.0, 3.1], [2.0, 2.1])
    index, estimate = best_centre(columns, lower_is_better=False)
    assert index == 1
    assert estimate.value == pytest.approx(3.05, abs=0.001)
    assert estimate.low is not None and estimate.low <= 3.05
    assert best_centre(by_block([1.0], [2.0, 2.1]))[1].low is None
    ratio = best_ratio(columns, columns[2:], lower_is_better=False)
    assert ratio is not None
    assert ratio.value == pytest.approx(1.49, abs=0.02)


def test_of_many_conditions_it_is_told_first_how_often_which(store: Store) -> None:
    def seconds(load: str, threads: str) -> float:
        """From load 6 on, more threads make it faster."""
        return 1.0 / int(threads) if int(load) >= 6 else 1.0 * int(threads)

    loads = tuple(range(1, 9))
    found = made_run(store, seconds, conditions=("load",), load=loads, threads=(1, 2))
    said = [item.sentence for item in found.sentences if item.kind == "answer"]
    assert re.fullmatch(r"With load=[678]: 2 threads are \S+× as fast as 1 \[.*\].", said[1])
    assert said[2] == "Under 5 of 8 conditions no cell is significantly faster than the base cell."
    assert said[0] == "Of 8 conditions, use threads=1 under 5 and threads=2 under 3."
    assert len(said) == 3
    each = [item.sentence for item in found.sentences if item.kind == "note"]
    assert sum(text.startswith("With load=") for text in each) == 8


def test_a_base_of_another_group_is_named_by_all_that_differs(store: Store) -> None:
    def seconds(latching: str, threads: str) -> float:
        return (4.0 if latching == "global" else 1.0) / int(threads)

    found = made_run(
        store, seconds, base={"latching": "global"}, latching=("global", "record"), threads=(1, 2)
    )
    said = [item.sentence for item in found.sentences if item.kind == "answer"]
    (gain,) = (text for text in said if "as fast as" in text)
    assert re.match(r"With latching=record: (threads=1 is|2 threads are) ", gain)
    assert re.search(r"× as fast as latching=global threads=[12] \[", gain)


@pytest.mark.parametrize("in_doubt", [False, True])
def test_the_figure_that_is_asked_for_is_answered_by_and_shown(
    store: Store, in_doubt: bool
) -> None:
    """CPU time grows with the threads, and wall time falls."""
    steal = (lambda spec: 10**9) if in_doubt else None
    found = made_run(store, lambda n: 1 / int(n), n=(1, 2), steal=steal)
    asked = findings_of(store, store.find_run(found.run.id), "cpu_seconds")
    shown = [line.plain for line in lines(brief_run_document(asked), 90)]
    (answer,) = [item.sentence for item in asked.sentences if item.kind == "answer"]
    if in_doubt:
        assert answer.startswith("No setting is recommended by CPU time: ")
    else:
        assert answer.startswith("Use n=2 (by CPU time); n=1 is worse. n=2 is 2.0")
    assert " by wall time" in answer
    heading = next(line for line in shown if "speed-up" in line)
    assert heading.index("CPU time") < heading.index("speed-up") < heading.index("wall time")
    default = [line.plain for line in lines(brief_run_document(found), 90)]
    assert shown != default


def test_settings_with_bases_of_another_group_have_no_fastest_among_them() -> None:
    """Each cell of mode=b is slower than that of mode=a with as many threads."""
    found = made_run(
        Store(), lambda mode, n: (2.0 if mode == "b" else 1.0) / int(n), base={"mode": "a"},
        mode=("a", "b"), threads=(1, 2, 4),
    )  # fmt: skip
    assert "fastest" not in sentences(found)


@pytest.mark.parametrize(
    ("threads", "said"),
    [
        ((1, 2, 4, 8), r"; 3 others with cpus=2 may be as good, 4 others are not\."),
        ((1, 2), r"; 1 other with cpus=2 may be as good, 2 others are not\."),
    ],
)
def test_what_all_that_may_be_as_good_have_is_said(
    store: Store, threads: tuple[int, ...], said: str
) -> None:
    """Settings of two CPUs cannot be told apart, and each is twice as fast as those of one."""
    six = Rules(repeats_min=6, repeats_max=6)
    found = made_run(
        store, lambda threads, cpus: 2.0 / float(cpus), cv=0.05, threads=threads, cpus=(1, 2),
        rules=six,
    )  # fmt: skip
    best = found.best_overall
    assert best is not None and best.is_open and len(best.as_good) == len(threads) - 1
    assert re.search(said, sentences(found))
