"""The protocol: blocks, Stein's second stage, redo by cause, skipping, stopping, replay."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concurve.definition.study import Rules
from concurve.planning.plan import make_plan
from concurve.planning.protocol import Protocol, Stop, StopReason, replay
from concurve.stats.moments import mean, stdev, t_quantile
from concurve.store.rows import Outcome, TrialKey, Verdict
from tests.helpers.fakes import small_study

Answer = Callable[[TrialKey], tuple[Verdict, float | None]]


def drive(
    protocol: Protocol, answer: Answer, seconds: float = 1.0, limit: int = 10_000
) -> list[Outcome]:
    """Run a protocol to its end and give all outcomes."""
    outcomes: list[Outcome] = []
    for _ in range(limit):
        key = protocol.next()
        if isinstance(key, Stop):
            return outcomes
        verdict, value = answer(key)
        outcome = Outcome(key, verdict, value, seconds, verdict if verdict != "ok" else "", "why")
        protocol.record(outcome)
        outcomes.append(outcome)
    raise AssertionError("the protocol does not end")


def protocol_of(seed: int = 7, cells: int = 3, **rules: Any) -> Protocol:
    return Protocol(
        make_plan(small_study(Rules(**rules), threads=tuple(range(1, cells + 1))), "normal", seed)
    )


def noise(cv: float, seed: int = 1) -> Answer:
    rng = random.Random(seed)
    return lambda key: ("ok", math.exp(rng.gauss(0, cv)) * (key.cell + 1))


def test_each_pilot_block_has_every_cell_once_in_a_seeded_order() -> None:
    outcomes = drive(protocol_of(cells=5, repeats_min=5, repeats_max=5), noise(0.0))
    blocks = [[o.key.cell for o in outcomes if o.key.block == b] for b in range(5)]
    assert all(sorted(block) == [0, 1, 2, 3, 4] for block in blocks)
    assert len({tuple(block) for block in blocks}) > 1
    again = drive(protocol_of(cells=5, repeats_min=5, repeats_max=5), noise(0.0))
    assert [o.key for o in again] == [o.key for o in outcomes]
    other = drive(protocol_of(seed=8, cells=5, repeats_min=5, repeats_max=5), noise(0.0))
    assert [o.key for o in other] != [o.key for o in outcomes]


def test_second_stage_has_the_size_that_stein_gives() -> None:
    protocol = protocol_of(cells=1, precision=0.02, repeats_max=1000)
    outcomes = drive(protocol, noise(0.05))
    pilot = [o.value for o in outcomes[:5] if o.value is not None]
    wanted = math.ceil((t_quantile(0.975, 4) * stdev(pilot) / (0.02 * mean(pilot))) ** 2)
    assert wanted > 5
    assert len(outcomes) == wanted
    assert protocol.cells[0].stop is StopReason.PRECISION
    assert protocol.cells[0].stop_reason == "precision reached"


def test_a_noisy_cell_stops_at_the_cap_and_says_so() -> None:
    protocol = protocol_of(cells=1, precision=0.001, repeats_max=12)
    assert len(drive(protocol, noise(0.2))) == 12
    assert protocol.cells[0].stop is StopReason.CAP
    assert protocol.cells[0].stop_reason == "cap of 12 trials"
    assert protocol.stop is not None and "cap" in protocol.stop.reason


def test_only_noisy_cells_get_more_trials() -> None:
    rng = random.Random(3)
    protocol = protocol_of(cells=2)
    drive(protocol, lambda k: ("ok", rng.gauss(1, 0.05) if k.cell else 1.0))
    assert len(protocol.cells[0].used) == 5
    assert len(protocol.cells[1].used) > 5


def test_the_second_program_error_skips_the_cell_and_keeps_the_rest() -> None:
    protocol = protocol_of()
    outcomes = drive(protocol, lambda k: ("program_error", None) if k.cell == 1 else ("ok", 1.0))
    assert Counter(o.key.cell for o in outcomes)[1] == 2
    assert protocol.cells[1].skipped
    assert len(protocol.cells[0].used) == len(protocol.cells[2].used) == 5
    assert len(protocol.rejected) == 2


def test_one_program_error_is_redone_and_the_cell_goes_on() -> None:
    protocol = protocol_of()
    failed: list[TrialKey] = []

    def once(key: TrialKey) -> tuple[Verdict, float | None]:
        if key.cell == 1 and not failed:
            failed.append(key)
            return "program_error", None
        return "ok", 1.0

    outcomes = drive(protocol, once)
    assert len(outcomes) == 16
    assert [k for k in protocol.rejected] == failed
    assert len(protocol.cells[1].used) == 5


def test_contaminated_trials_are_redone_within_the_budget_then_used_with_a_doubt() -> None:
    protocol = protocol_of(repeats_max=5)
    outcomes = drive(protocol, lambda k: ("contaminated", 1.0))
    assert len(outcomes) == 15 + 3, "20 % of 15 planned trials may be redone"
    assert len(protocol.rejected) == 3
    assert len(protocol.doubtful) == 15
    assert all(len(cell.used) == 5 for cell in protocol.cells)


def test_a_trial_is_redone_at_most_twice() -> None:
    protocol = protocol_of(repeats_max=5, redo_share=9.0)
    outcomes = drive(protocol, lambda k: ("contaminated", 1.0))
    assert max(o.key.attempt for o in outcomes) == 2
    assert len(outcomes) == 15 * 3


def test_a_wild_value_is_redone_once_by_statistics_and_kept_as_a_reject() -> None:
    values = [1.0, 1.01, 0.99, 1.02, 5.0]

    def answer(key: TrialKey) -> tuple[Verdict, float | None]:
        return "ok", 1.0 if key.attempt else values[key.block]

    protocol = protocol_of(cells=1, repeats_max=5)
    outcomes = drive(protocol, answer)
    assert len(outcomes) == 6
    ((key, (cause, _)),) = protocol.rejected.items()
    assert (key.block, cause) == (4, "outlier")
    assert max(protocol.cells[0].values()) < 1.1


def test_giving_up_skips_the_cell_at_once() -> None:
    protocol = protocol_of()
    outcomes = drive(protocol, lambda k: ("abandon", 1.0) if k.cell == 0 else ("ok", 1.0))
    assert Counter(o.key.cell for o in outcomes)[0] == 1
    assert protocol.cells[0].skipped


def test_a_pilot_that_cannot_fit_the_allowance_is_refused_after_one_block() -> None:
    protocol = protocol_of(time_allowed_seconds=10.0)
    outcomes = drive(protocol, noise(0.0), seconds=1.0)
    assert len(outcomes) == 3
    assert protocol.stop is not None and protocol.stop.kind == "too_long"


def test_the_allowance_ends_the_second_stage_but_not_the_pilot() -> None:
    protocol = protocol_of(time_allowed_seconds=20.0, precision=0.001)
    outcomes = drive(protocol, noise(0.2), seconds=1.0)
    assert 15 <= len(outcomes) <= 20
    assert protocol.stop is not None and protocol.stop.kind == "time"
    assert protocol.cells[0].stop is StopReason.TIME
    assert protocol.cells[0].stop_reason == "time allowance"


VERDICTS: st.SearchStrategy[Verdict] = st.sampled_from(
    ["ok", "ok", "ok", "ok", "ok", "contaminated", "program_error", "wrong", "abandon"]
)


@given(seed=st.integers(0, 1000), cells=st.integers(1, 6), data=st.data())
@settings(max_examples=60, deadline=None)
def test_any_history_ends_is_consistent_and_replays_to_the_same_state(
    seed: int, cells: int, data: st.DataObject
) -> None:
    rng = random.Random(seed)

    def answer(_: TrialKey) -> tuple[Verdict, float | None]:
        verdict = data.draw(VERDICTS)
        return verdict, None if verdict == "program_error" else rng.gauss(10, 1)

    protocol = protocol_of(seed=seed, cells=cells, repeats_max=9)
    outcomes = drive(protocol, answer)
    keys = [o.key for o in outcomes]
    assert len(set(keys)) == len(keys), "no trial twice"
    for index, cell in enumerate(protocol.cells):
        if not cell.skipped:
            assert sorted(cell.used) == list(range(cell.target)), "exactly the planned trials"
        tried = {(k.block, k.attempt) for k in keys if k.cell == index}
        rejected = {(k.block, k.attempt) for k in protocol.rejected if k.cell == index}
        used = {(block, attempt) for block, (attempt, _) in cell.used.items()}
        assert used | rejected == tried and not used & rejected, "nothing is thrown away"

    cut = data.draw(st.integers(0, len(outcomes)))
    replayed = replay(protocol.plan, outcomes[:cut], "r")
    following = replayed.next()
    if cut < len(outcomes):
        assert following == outcomes[cut].key, "a resumed run goes on where it was"
    else:
        assert isinstance(following, Stop)


def test_replay_refuses_trials_that_do_not_follow_from_the_plan() -> None:
    plan = protocol_of().plan
    wrong = TrialKey(plan.order(0)[1], 0, 0)
    with pytest.raises(Exception, match="where the plan has"):
        replay(plan, [Outcome(wrong, "ok", 1.0, 1.0)], "r")
