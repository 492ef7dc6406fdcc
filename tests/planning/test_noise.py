"""The protocol under noises that machines really have: simulated runs with planted disturbances.

Each run has its own seed, counted from a fixed one, so the shares below are always the same.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from statistics import fmean
from typing import Any

import msgspec
import pytest

from concurve.definition.study import DEFAULT_RULES, EffortName, Rules
from concurve.planning.plan import make_plan
from concurve.planning.protocol import Protocol, Stop
from concurve.planning.second_stage import trials_needed
from concurve.readings.contamination import MACHINE_WIDE
from concurve.stats.blocks import log_ratios
from concurve.stats.centre import centre_estimate
from concurve.store.rows import Outcome, TrialKey, Verdict
from tests.helpers.fakes import small_study

#: A trial → its verdict, its value and the cause of a verdict other than ok.
Machine = Callable[[TrialKey, random.Random], tuple[Verdict, float, str]]

RUNS = 300


def run(machine: Machine, seed: int, rules: Rules, cells: int = 2) -> Protocol:
    """A simulated run to its end; its trials take a second each."""
    study = small_study(rules, threads=tuple(range(1, cells + 1)))
    protocol = Protocol(make_plan(study, "normal", seed))
    rng = random.Random(seed)
    while not isinstance(key := protocol.next(), Stop):
        verdict, value, cause = machine(key, rng)
        protocol.record(Outcome(key, verdict, value, 1.0, cause, "planted" if cause else ""))
    return protocol


def runs(machine: Machine, rules: Rules, cells: int = 2, count: int = RUNS) -> list[Protocol]:
    return [run(machine, 1000 + index, rules, cells) for index in range(count)]


def rules_of(effort: EffortName, **changes: Any) -> Rules:
    return msgspec.structs.replace(DEFAULT_RULES[effort], time_allowed_seconds=1e9, **changes)


def blocks(protocol: Protocol, cell: int) -> dict[int, float]:
    return {block: value for block, (_, value) in protocol.cells[cell].used.items()}


def log_normal(spread: float) -> Machine:
    return lambda key, rng: ("ok", math.exp(rng.gauss(0, spread)), "")


def two_levels(share: float) -> Machine:
    def machine(key: TrialKey, rng: random.Random) -> tuple[Verdict, float, str]:
        return "ok", math.exp(rng.gauss(0, 0.01)) * (1.15 if rng.random() < share else 1.0), ""

    return machine


def slow_tail(key: TrialKey, rng: random.Random) -> tuple[Verdict, float, str]:
    value = math.exp(rng.gauss(0, 0.02))
    return "ok", value * (1 + rng.expovariate(2) if rng.random() < 0.1 else 1), ""


@pytest.mark.parametrize(
    "pilot", [[0.0] * 7 + [3.0], [0.0, 0.0, 0.0, 5.0, 7.0], [-3.0, -1.0, 0.0, 1.0, 3.0], [0.0] * 5]
)
def test_a_centre_of_0_asks_for_no_trials(pilot: list[float]) -> None:
    """No number of them reaches a share of 0, and the blocks are those of all cells."""
    rules = rules_of("normal")
    assert trials_needed(pilot, rules) == rules.repeats_min


def test_rigorous_reaches_one_percent_where_trials_spread_by_two() -> None:
    found = runs(log_normal(0.02), rules_of("rigorous"), cells=1)
    reached = 0
    for protocol in found:
        estimate = centre_estimate(protocol.cells[0].values(), is_staged=True)
        assert estimate.precision is not None
        reached += estimate.precision <= 0.01
    assert reached / RUNS >= 0.95
    assert fmean(len(protocol.cells[0].used) for protocol in found) <= 90, "at a bearable price"


@pytest.mark.parametrize(("effort", "share"), [("normal", 0.4), ("rigorous", 0.25)])
def test_a_slow_tail_does_not_send_every_run_to_the_cap(effort: EffortName, share: float) -> None:
    """The interval of a median needs no more trials because a tenth of them are far off. Of eight
    trials in a pilot two are slow in every fifth run: these cannot know."""
    found = runs(slow_tail, rules_of(effort, precision=0.03), cells=1, count=100)
    cap = DEFAULT_RULES[effort].repeats_max
    assert sum(len(protocol.cells[0].used) == cap for protocol in found) <= share * 100


@pytest.mark.parametrize("machine", [slow_tail, two_levels(0.2), log_normal(0.3)])
def test_a_value_alone_is_never_redone(machine: Machine) -> None:
    for protocol in runs(machine, rules_of("normal"), count=60):
        assert protocol.rejected == {}
        assert protocol.redos == 0


def test_the_slow_level_of_a_program_stays_in_its_share() -> None:
    values = [
        value
        for protocol in runs(two_levels(0.2), rules_of("quick"), count=200)
        for value in protocol.cells[0].values()
    ]
    assert sum(value > 1.07 for value in values) / len(values) == pytest.approx(0.2, abs=0.03)


def test_unequal_spreads_get_the_same_blocks() -> None:
    """A quiet cell goes on beside a noisy one: ratios need both in each block."""

    def machine(key: TrialKey, rng: random.Random) -> tuple[Verdict, float, str]:
        return "ok", math.exp(rng.gauss(0, 0.002 if key.cell == 0 else 0.04)), ""

    found = runs(machine, rules_of("normal"), count=40)
    assert all(list(p.cells[0].used) == list(p.cells[1].used) for p in found)
    assert fmean(len(p.cells[0].used) for p in found) > 20


def bias(machine: Machine, rules: Rules, truth: float) -> tuple[float, float]:
    """Mean of the ratio of cell 1 to cell 0 against the truth, and mean centre of cell 0."""
    ratios, centres = [], []
    for protocol in runs(machine, rules):
        found = log_ratios(blocks(protocol, 1), blocks(protocol, 0))
        assert found is not None
        ratios.append(found.value)
        centres.append(math.log(centre_estimate(protocol.cells[0].values()).value))
    return fmean(ratios) - math.log(truth), fmean(centres)


def disturbed(cause: str, seen: tuple[float, float], share: float = 0.15) -> Machine:
    """A share of the trials takes longer, by a half on average; a cell sees it with its own
    probability. The second cell takes half the time of the first."""

    def machine(key: TrialKey, rng: random.Random) -> tuple[Verdict, float, str]:
        value = math.exp(rng.gauss(0, 0.02)) * (1.0, 0.5)[key.cell]
        if rng.random() >= share:
            return "ok", value, ""
        value *= 1 + rng.expovariate(2)
        return (
            ("contaminated", value, cause) if rng.random() < seen[key.cell] else ("ok", value, "")
        )

    return machine


#: What the simulated mean of a ratio may be off, with its own standard error below 0.001.
BIAS_MAX = 0.003


@pytest.mark.parametrize("cause", MACHINE_WIDE)
@pytest.mark.parametrize("seen", [1.0, 0.5])
def test_a_redo_for_a_cause_that_each_cell_shows_alike_biases_no_ratio(
    cause: str, seen: float
) -> None:
    found, centre = bias(disturbed(cause, (seen, seen)), rules_of("normal"), 0.5)
    assert abs(found) <= BIAS_MAX
    assert -0.001 <= centre <= 0.006, "towards the quiet centre, never beyond it"


@pytest.mark.parametrize("seen", [(1.0, 0.0), (0.0, 1.0), (0.9, 0.3)])
def test_waiting_that_only_some_cells_can_show_biases_no_ratio(seen: tuple[float, float]) -> None:
    """The run-queue wait is a sign only where there is a CPU for each worker."""
    machine = disturbed("run_queue", seen, share=0.3)
    found, _ = bias(machine, rules_of("normal", redo_share=1.0), 0.5)
    assert abs(found) <= BIAS_MAX


def test_waiting_is_marked_though_it_is_not_redone() -> None:
    protocol = run(disturbed("run_queue", (1.0, 1.0), share=0.3), 5, rules_of("normal"))
    assert protocol.rejected == {}
    assert {cause for cause, _ in protocol.doubtful.values()} == {"run_queue"}
    assert all(key.attempt == 0 for key in protocol.doubtful)


def test_values_far_off_are_marked() -> None:
    def machine(key: TrialKey, rng: random.Random) -> tuple[Verdict, float, str]:
        far = key.cell == 0 and key.block == 4
        return "ok", 5.0 if far else math.exp(rng.gauss(0, 0.01)), ""

    protocol = run(machine, 3, rules_of("quick"))
    assert list(protocol.far_off()) == [TrialKey(0, 4, 0)]
    assert "median deviations" in protocol.far_off()[TrialKey(0, 4, 0)]
    assert 5.0 in protocol.cells[0].values(), "and it counts"
