"""A trial that the time allowance cuts is one that took long: what that does to the centre."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from statistics import fmean

import msgspec
import pytest

from concurve.definition.study import DEFAULT_RULES
from concurve.planning.plan import make_plan
from concurve.planning.protocol import CUT, Protocol, Stop
from concurve.stats.centre import centre
from concurve.store.rows import Outcome
from tests.helpers.fakes import small_study

Draw = Callable[[random.Random], float]

RUNS = 400
#: By how much the mean of a centre may be off: as every figure.
BIAS_MAX = 0.005


def slow_trials(rng: random.Random) -> float:
    """One trial in ten takes longer, by a half on average."""
    slow = rng.random() < 0.1
    return math.exp(rng.gauss(0, 0.02)) * (1 + rng.expovariate(2) * slow)


def two_levels(rng: random.Random) -> float:
    return math.exp(rng.gauss(0, 0.01)) * (1.5 if rng.random() < 0.3 else 1.0)


def run(draw: Draw, seed: int, blocks: int, cells: int, cuts: bool) -> tuple[Protocol, bool]:
    """A run with time for about so many blocks, and whether a trial of it was cut; without
    ``cuts``, the last trial may end."""
    rng = random.Random(seed)
    allowed = (blocks + rng.random()) * 1.07 * cells
    rules = msgspec.structs.replace(DEFAULT_RULES["normal"], time_allowed_seconds=allowed)
    study = small_study(rules, threads=tuple(range(1, cells + 1)))
    protocol, was_cut = Protocol(make_plan(study, "normal", seed)), False
    while not isinstance(key := protocol.next(), Stop):
        value, left = draw(rng), allowed - protocol.elapsed
        if cuts and protocol.done and value > left:
            was_cut = True
            protocol.record(Outcome(key, "program_error", None, left, CUT, "stopped"))
        else:
            protocol.record(Outcome(key, "ok", value, value))
    return protocol, was_cut


@pytest.mark.parametrize("draw", [slow_trials, two_levels])
@pytest.mark.parametrize("cells", [1, 2])
@pytest.mark.parametrize("blocks", [5, 8])
@pytest.mark.simulation
def test_a_cut_trial_does_not_bias_the_centre(draw: Draw, cells: int, blocks: int) -> None:
    """Both runs have the same trials, but for the last: so their difference is the cut's alone."""
    moved, cut = [], 0
    for seed in range(RUNS):
        (own, was_cut), (whole, _) = (
            run(draw, seed, blocks, cells, cuts) for cuts in (True, False)
        )
        cut += was_cut
        moved += [
            math.log(centre(one.values()) / centre(other.values()))
            for one, other in zip(own.cells, whole.cells, strict=True)
        ]
    assert cut >= 0.01 * RUNS, "trials were really cut"
    assert abs(fmean(moved)) <= BIAS_MAX


def test_a_cut_trial_leaves_no_value_and_no_error() -> None:
    found = (run(slow_trials, seed, 5, 2, True) for seed in range(RUNS))
    protocol = next(protocol for protocol, was_cut in found if was_cut)
    ((key, (cause, _)),) = protocol.rejected.items()
    assert cause == CUT
    assert key.block not in protocol.cells[key.cell].used
    assert not any(cell.errors or cell.skipped for cell in protocol.cells)
