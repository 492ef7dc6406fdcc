"""The protocol: blocks, the second stage, redo by cause, skipping, stopping, replay."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from concurve.definition.study import Rules
from concurve.planning.plan import make_plan
from concurve.planning.protocol import Protocol, Stop, StopReason, replay
from concurve.stats.centre import centre_estimate
from concurve.store.rows import Outcome, TrialKey, Verdict
from concurve.store.run_head import EARNING_PROTOCOL, ENDING_PROTOCOL
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
        cause = {"ok": "", "contaminated": "steal"}.get(verdict, verdict)
        outcome = Outcome(key, verdict, value, seconds, cause, "why")
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


def test_what_broke_off_is_no_length_of_a_trial() -> None:
    protocol = protocol_of(cells=2, repeats_min=5, repeats_max=5)
    for place, seconds in enumerate((60.0, 1.0)):
        key = protocol.next()
        assert isinstance(key, TrialKey)
        failed = Outcome(key, "program_error", None, seconds, "not_ready", "why")
        protocol.record(failed if not place else Outcome(key, "ok", 1.0, seconds))
        assert protocol.has_length is bool(place)
        assert protocol.all_failed() is not bool(place)
    assert protocol.seconds_of(3) == pytest.approx(3.0)
    assert protocol.seconds_left() == pytest.approx(9.0)
    assert protocol.seconds_for_all() == pytest.approx(1 + 1.5 * (61 + 9))


@pytest.mark.parametrize(("pilot", "margin"), [(5, 1.0), (8, 1.5), (15, 1.5)])
def test_the_second_stage_scales_the_printed_interval_of_the_pilot(
    pilot: int, margin: float
) -> None:
    protocol = protocol_of(cells=1, precision=0.02, repeats_min=pilot, repeats_max=10_000)
    outcomes = drive(protocol, noise(0.05))
    values = [o.value for o in outcomes[:pilot] if o.value is not None]
    reached = centre_estimate(values, is_staged=True).precision
    assert reached is not None
    wanted = math.ceil(pilot * (margin * reached / 0.02) ** 2)
    assert wanted > pilot
    assert len(outcomes) == wanted
    assert protocol.cells[0].stop is StopReason.PRECISION
    assert protocol.cells[0].stop_reason == "enough for the spread"


def test_where_the_number_of_trials_is_fixed_the_data_set_nothing() -> None:
    protocol = protocol_of(repeats_min=5, repeats_max=5)
    assert len(drive(protocol, noise(0.3))) == 5 * len(protocol.cells)
    assert {cell.stop for cell in protocol.cells} == {StopReason.FIXED}


def test_values_that_are_no_numbers_ask_for_the_cap() -> None:
    protocol = protocol_of(cells=1, repeats_max=12)
    assert len(drive(protocol, lambda k: ("ok", math.inf))) == 12
    assert protocol.cells[0].stop is StopReason.CAP


def test_a_noisy_cell_stops_at_the_cap_and_says_so() -> None:
    protocol = protocol_of(cells=1, precision=0.001, repeats_max=12)
    assert len(drive(protocol, noise(0.2))) == 12
    assert protocol.cells[0].stop is StopReason.CAP
    assert protocol.cells[0].stop_reason == "cap of 12 trials"
    assert protocol.stop is not None and "cap" in protocol.stop.reason


def test_a_quiet_cell_runs_on_in_the_blocks_of_a_noisy_one() -> None:
    rng = random.Random(3)
    protocol = protocol_of(cells=2, repeats_max=1000)
    outcomes = drive(protocol, lambda k: ("ok", rng.gauss(1, 0.05) if k.cell else 1.0))
    quiet, noisy = protocol.cells
    assert len(quiet.used) == len(noisy.used) == noisy.needed
    assert (quiet.needed, noisy.needed) == (5, len(outcomes) // 2)
    assert noisy.needed is not None and noisy.needed > 5
    order = [o.key.cell for o in outcomes if o.key.block == 7]
    assert sorted(order) == [0, 1]


def test_a_cell_that_is_skipped_leaves_the_blocks_and_asks_for_none() -> None:
    rng = random.Random(3)

    def answer(key: TrialKey) -> tuple[Verdict, float | None]:
        if key.cell == 1 and key.block > 1:
            return "program_error", None
        return "ok", rng.gauss(1, 5) ** 2 if key.cell == 1 else 1.0

    protocol = protocol_of(cells=2)
    drive(protocol, answer)
    assert protocol.cells[1].skipped
    assert len(protocol.cells[0].used) == 5


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
    assert len(outcomes) == 15 + 9, "20 % of 15 planned trials may be redone, and six more"
    assert len(protocol.rejected) == 9
    assert len(protocol.doubtful) == 15
    assert all(len(cell.used) == 5 for cell in protocol.cells)


def seldom_quiet(share: float, seed: int = 1) -> Answer:
    """Something disturbs all but this share of the trials."""
    rng = random.Random(seed)
    return lambda _key: ("ok" if rng.random() < share else "contaminated", 1.0)


def test_quiet_redos_earn_further_ones() -> None:
    protocol = protocol_of(repeats_min=30, repeats_max=30)
    drive(protocol, seldom_quiet(0.5))
    assert protocol.redos > 18 + 20, "20 % of 90 planned trials, and many that these earned"
    assert protocol.redos <= 90, "no more than other trials"
    assert len(protocol.doubtful) < 20, "in an eighth, all three attempts are disturbed"


def test_a_machine_that_is_hardly_ever_quiet_is_given_up() -> None:
    protocol = protocol_of(repeats_min=30, repeats_max=30)
    drive(protocol, seldom_quiet(0.05))
    assert 18 < protocol.redos <= 18 + 6 + 4 * 6, "of 24 redos one or two are quiet"


def test_runs_stored_before_quiet_redos_earned_further_ones_have_none_of_these() -> None:
    before = protocol_of(repeats_min=30, repeats_max=30)
    before.plan = msgspec.structs.replace(before.plan, protocol=EARNING_PROTOCOL - 1)
    drive(before, seldom_quiet(0.5))
    assert before.redos == 18


def test_a_run_without_redos_earns_none() -> None:
    protocol = protocol_of(repeats_min=30, repeats_max=30, redo_share=0.0)
    drive(protocol, seldom_quiet(0.5))
    assert protocol.redos == 0


def test_a_trial_is_redone_at_most_twice() -> None:
    protocol = protocol_of(repeats_max=5, redo_share=9.0)
    outcomes = drive(protocol, lambda k: ("contaminated", 1.0))
    assert max(o.key.attempt for o in outcomes) == 2
    assert len(outcomes) == 15 * 3


@pytest.mark.parametrize("cause", ["run_queue", "low_priority"])
def test_what_only_some_cells_can_show_is_marked_and_not_redone(cause: str) -> None:
    protocol = protocol_of(repeats_max=5)
    while not isinstance(key := protocol.next(), Stop):
        protocol.record(Outcome(key, "contaminated", 1.0, 1.0, cause, "why"))
    assert protocol.done == 15 and not protocol.rejected
    assert set(protocol.doubtful.values()) == {(cause, "why")}


def test_giving_up_skips_the_cell_at_once() -> None:
    protocol = protocol_of()
    outcomes = drive(protocol, lambda k: ("abandon", 1.0) if k.cell == 0 else ("ok", 1.0))
    assert Counter(o.key.cell for o in outcomes)[0] == 1
    assert protocol.cells[0].skipped


def test_the_allowance_ends_the_second_stage() -> None:
    protocol = protocol_of(time_allowed_seconds=20.0, precision=0.001)
    outcomes = drive(protocol, noise(0.2), seconds=1.0)
    assert len(outcomes) == 18, "six blocks; the seventh would end at 21 s"
    assert protocol.stop is not None and protocol.stop.kind == "time"
    assert protocol.cells[0].stop is StopReason.TIME
    assert protocol.cells[0].stop_reason == "time allowance"


def state_of(protocol: Protocol) -> tuple[object, ...]:
    """What views and a resumed run read of a protocol."""
    cells = [
        (cell.used, cell.errors, cell.skipped, cell.target, cell.needed, cell.stop, cell.seconds)
        for cell in protocol.cells
    ]
    return (cells, protocol.rejected, protocol.doubtful, protocol.elapsed, protocol.done,
            protocol.redos, protocol.stop)  # fmt: skip


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

    assert state_of(replay(protocol.plan, outcomes, "r")) == state_of(protocol), "block by block"

    cut = data.draw(st.integers(0, len(outcomes)))
    replayed = replay(protocol.plan, outcomes[:cut], "r")
    following = replayed.next()
    if cut < len(outcomes):
        assert following == outcomes[cut].key, "a resumed run goes on where it was"
    else:
        assert isinstance(following, Stop)


@pytest.mark.parametrize("block", [1, 3])
def test_a_later_block_in_another_order_is_refused(block: int) -> None:
    """Blocks are replayed whole where they went as planned."""
    protocol = protocol_of(repeats_max=5)
    outcomes = drive(protocol, lambda k: ("ok", 1.0))
    replay(protocol.plan, outcomes, "r")
    first = next(place for place, o in enumerate(outcomes) if o.key.block == block)
    outcomes[first], outcomes[first + 1] = outcomes[first + 1], outcomes[first]
    with pytest.raises(Exception, match="where the plan has"):
        replay(protocol.plan, outcomes, "r")


def test_replay_refuses_trials_that_do_not_follow_from_the_plan() -> None:
    plan = protocol_of().plan
    wrong = TrialKey(plan.order(0)[1], 0, 0)
    with pytest.raises(Exception, match="where the plan has"):
        replay(plan, [Outcome(wrong, "ok", 1.0, 1.0)], "r")


def test_the_number_of_trials_may_grow_until_the_pilot_has_set_it() -> None:
    plan = make_plan(small_study(Rules(repeats_min=2, repeats_max=9), n=(1,)), "normal", 1)
    protocol = Protocol(plan)
    assert protocol.may_grow()
    fixed = make_plan(small_study(Rules(repeats_min=2, repeats_max=2), n=(1,)), "normal", 1)
    assert not Protocol(fixed).may_grow()


def test_a_stored_run_with_a_centre_of_0_ended_after_its_pilot() -> None:
    """Counts of errors, most of them 0: by another rule the stored run would not be complete."""
    plan = make_plan(small_study(Rules(repeats_min=8), threads=(1, 2)), "normal", 7)
    stored = [
        Outcome(TrialKey(cell, block, 0), "ok", 3.0 if block == 7 else 0.0, 1.0)
        for block in range(8)
        for cell in plan.order(block)
    ]
    shown = replay(plan, stored, "r")
    assert shown.stop is not None and shown.stop.kind == "complete"
    assert {(cell.needed, cell.stop) for cell in shown.cells} == {(8, StopReason.PRECISION)}


@pytest.mark.parametrize(("allowed", "left"), [(60.0, 9.0), (4.0, 1.0)])
def test_what_the_allowance_has_no_room_for_is_known(allowed: float, left: float) -> None:
    rules = Rules(repeats_min=6, repeats_max=6, time_allowed_seconds=allowed)
    protocol = Protocol(make_plan(small_study(rules, threads=(1, 2)), "normal", 1))
    assert not protocol.ends_by_allowance()
    for _ in range(3):
        key = protocol.next()
        assert not isinstance(key, Stop)
        protocol.record(Outcome(key, "ok", 1.0, 1.0, "", ""))
    assert protocol.seconds_left() == left
    assert protocol.ends_by_allowance() == (allowed == 4.0)


def protocol_of_names(cells: int, **rules: Any) -> Protocol:
    names = tuple(f"v{number}" for number in range(cells))
    return Protocol(make_plan(small_study(Rules(**rules), version=names), "normal", 7))


def one_good(good: int) -> Answer:
    return lambda key: ("ok", 1.0) if key.cell == good else ("program_error", None)


def test_a_run_ends_where_all_cells_but_one_failed_at_once() -> None:
    """A new version that crashes makes nobody wait for all trials of the old one."""
    protocol = protocol_of_names(cells=3, repeats_min=40, repeats_max=40)
    outcomes = drive(protocol, one_good(0))
    assert len(outcomes) == 1 + 2 * 2, "one trial, and two that failed of each other cell"
    stop = protocol.next()
    assert isinstance(stop, Stop) and stop.kind == "complete"
    assert stop.reason == "2 of 3 cells skipped: nothing is left to compare with the other one"
    assert protocol.planned() == 1 and protocol.cells[0].stop is StopReason.ALONE
    again = replay(protocol.plan, outcomes, "run")
    assert again.next() == stop


def test_a_run_goes_on_where_two_cells_are_left_or_the_failed_one_has_figures() -> None:
    two = protocol_of_names(cells=3, repeats_min=10, repeats_max=10)
    drive(two, lambda key: ("program_error", None) if key.cell == 2 else ("ok", 1.0))
    assert [len(cell.used) for cell in two.cells] == [10, 10, 0]
    late = protocol_of_names(cells=2, repeats_min=10, repeats_max=10)
    drive(late, lambda key: ("program_error", None) if key.cell and key.block > 4 else ("ok", 1.0))
    assert [len(cell.used) for cell in late.cells] == [10, 5]
    given_up = protocol_of_names(cells=2, repeats_min=10, repeats_max=10)
    drive(given_up, lambda key: ("abandon", None) if key.cell else ("ok", 1.0))
    assert len(given_up.cells[0].used) == 10, "what its check gave up is no failure"


def test_stored_runs_with_one_cell_left_go_on_as_they_did() -> None:
    before = protocol_of_names(cells=2, repeats_min=10, repeats_max=10)
    before.plan = msgspec.structs.replace(before.plan, protocol=ENDING_PROTOCOL - 1)
    assert len(drive(before, one_good(0))) == 10 + 2


@pytest.mark.parametrize("more", [{}, {"mode": ("old",)}])
def test_a_number_of_workers_has_all_its_trials_where_the_others_failed(
    more: dict[str, tuple[str, ...]],
) -> None:
    """Figures of clients=2 are worth having where clients=200 failed."""
    study = small_study(Rules(repeats_min=2, repeats_max=2), clients=(2, 200), **more)
    protocol = Protocol(make_plan(study, "normal", 7))
    drive(protocol, one_good(0))
    assert [len(cell.used) for cell in protocol.cells] == [2, 0]
    assert protocol.cells[0].stop is StopReason.FIXED
    stop = protocol.next()
    assert isinstance(stop, Stop) and stop.reason == "1 of 2 cells skipped"
