"""Whether a quick run goes on where the pilot does not tell which setting to use: simulated runs.

Each run has its own seed, counted from a fixed one, so the shares below are always the same.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import msgspec
import pytest

from concurve.definition.study import DEFAULT_RULES, Rules
from concurve.definition.study_line import rules_from_options
from concurve.planning.plan import make_plan
from concurve.planning.protocol import Protocol, Stop, StopReason
from concurve.stats.best import ALIKE, best_set, choose
from concurve.store.rows import Outcome
from tests.helpers.fakes import small_study

RUNS = 60
QUICK = DEFAULT_RULES["quick"]
#: What a quick run did before: no more trials than the precision needs.
BEFORE = msgspec.structs.replace(QUICK, choosing_max=0)
EQUAL = (0.6, 0.0, 0.0)


def run(
    rules: Rules,
    apart: Sequence[float],
    spread: float,
    seed: int,
    seconds: float = 1.0,
    disturbed: float = 0.0,
) -> Protocol:
    """A simulated run to its end. ``apart``: the logarithm of the true wall time of each setting;
    each trial takes so many ``seconds``, and this share of them is in doubt."""
    threads = tuple(range(1, len(apart) + 1))
    protocol = Protocol(make_plan(small_study(rules, threads=threads), "normal", seed))
    rng = random.Random(seed)
    while not isinstance(key := protocol.next(), Stop):
        value = math.exp(apart[key.cell] + rng.gauss(0, spread))
        if rng.random() >= disturbed:
            protocol.record(Outcome(key, "ok", value, seconds, "", ""))
        else:
            outcome = Outcome(key, "contaminated", 1.3 * value, seconds, "foreign", "planted")
            protocol.record(outcome)
    return protocol


def columns(protocol: Protocol) -> list[dict[int, float]]:
    return [{b: value for b, (_, value) in cell.used.items()} for cell in protocol.cells]


def chosen(protocol: Protocol) -> int | None:
    """The setting to use, as reports choose it; ``None`` where that is open."""
    cells = columns(protocol)
    best = best_set(cells, is_staged=True)
    return choose(cells, best, sorted(best.members), is_staged=True).chosen


def runs(rules: Rules, apart: Sequence[float], spread: float) -> list[Protocol]:
    return [run(rules, apart, spread, 1000 + index) for index in range(RUNS)]


def blocks(protocol: Protocol) -> int:
    return len(protocol.cells[0].used)


@pytest.mark.parametrize(("spread", "share"), [(0.02, 0.9), (0.03, 0.85), (0.05, 0.7)])
def test_equal_settings_are_told_alike_more_often(spread: float, share: float) -> None:
    before, now = ([chosen(it) for it in runs(rules, EQUAL, spread)] for rules in (BEFORE, QUICK))
    told = sum(it is not None for it in now)
    assert told >= share * RUNS
    assert told > sum(it is not None for it in before)
    assert 0 not in now, "half as fast"


@pytest.mark.parametrize("apart", [(0.6, 0.08, 0.0), (0.6, 0.0, 0.08), (0.0, 0.08, 0.08)])
@pytest.mark.parametrize("spread", [0.02, 0.05])
def test_a_setting_that_is_worse_is_not_chosen_more_often(
    apart: tuple[float, ...], spread: float
) -> None:
    worse = [index for index, it in enumerate(apart) if it > math.log1p(ALIKE)]
    wrong = sum(chosen(it) in worse for it in runs(QUICK, apart, spread))
    assert wrong <= 0.05 * RUNS


def test_a_clear_answer_takes_no_further_trials() -> None:
    for seed in range(20):
        assert blocks(run(QUICK, (0.6, 0.3, 0.0), 0.02, seed)) <= 10


def test_nobody_waits_for_what_the_time_has_no_room_for() -> None:
    """Blocks of 9 s: two minutes have room for 13, and most pilots ask for more than twice these;
    some seem to tell by chance."""
    slow = [blocks(run(QUICK, EQUAL, 0.15, seed, seconds=3.0)) for seed in range(40)]
    assert sum(count <= 10 for count in slow) >= 25
    assert max(slow) <= 13


def test_a_run_that_goes_on_ends_within_its_time() -> None:
    for seed in range(20):
        protocol = run(QUICK, EQUAL, 0.05, seed, seconds=0.8)
        assert protocol.elapsed <= QUICK.time_allowed_seconds
        assert 5 <= blocks(protocol) <= QUICK.choosing_max


def test_it_says_why_it_went_on() -> None:
    (longer, *_) = (it for it in runs(QUICK, EQUAL, 0.05) if blocks(it) > 10)
    assert {cell.stop for cell in longer.cells} == {StopReason.CHOICE}
    assert longer.cells[0].stop_reason == "to tell the best settings apart"
    assert isinstance(longer.stop, Stop)
    assert "as many trials as should tell the best settings apart" in longer.stop.reason


def test_disturbed_trials_say_nothing_of_the_spread() -> None:
    """Those in doubt are 1.3 times as long; the quiet ones alone say how many blocks it takes."""
    for seed in range(20):
        protocol = run(QUICK, (0.6, 0.3, 0.0), 0.005, seed, disturbed=0.3)
        assert blocks(protocol) <= 10


def test_conditions_are_chosen_under_each_alone() -> None:
    """Settings of different conditions need not be told apart."""
    study = small_study(QUICK, threads=(1, 2), data=("small", "large"))
    study = msgspec.structs.replace(study, conditions=("data",))
    protocol = Protocol(make_plan(study, "normal", 1))
    rng = random.Random(1)
    while not isinstance(key := protocol.next(), Stop):
        threads = protocol.plan.cells[key.cell].parameters["threads"]
        value = math.exp(rng.gauss(0, 0.03)) / float(threads)
        protocol.record(Outcome(key, "ok", value, 0.2, "", ""))
    assert blocks(protocol) <= 10


def test_a_number_that_the_user_sets_is_kept() -> None:
    rules = msgspec.structs.replace(QUICK, **rules_from_options("5..10", None, None, None))
    assert rules.choosing_max == 0
    assert {blocks(run(rules, EQUAL, 0.05, seed)) for seed in range(10)} <= set(range(5, 11))


def test_a_stored_run_without_the_rule_is_replayed_without_it() -> None:
    stored = msgspec.json.decode(b'{"precision": 0.05, "repeats_max": 10}', type=Rules)
    assert stored.choosing_max == 0
