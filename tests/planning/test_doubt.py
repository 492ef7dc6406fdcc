"""What a list says of a run by its outcomes alone is what the whole report says of it."""

from __future__ import annotations

import random

import pytest

from concurve.definition.study import Rules
from concurve.planning.doubt import remarks
from concurve.planning.protocol import shown_state
from concurve.store import Store
from concurve.store.rows import Told
from concurve.wire.spec import TrialSpec
from tests.helpers.made import made_run


@pytest.mark.parametrize("share", [0.0, 0.15, 0.3, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_a_list_doubts_the_runs_whose_figures_are_in_doubt(share: float, seed: int) -> None:
    def steal(spec: TrialSpec) -> int:
        is_disturbed = random.Random(f"{seed}/{spec.trial}").random() < share
        return 10**10 if is_disturbed else 0

    rules = Rules(repeats_min=9, repeats_max=9, redo_share=0.2)
    store = Store(":memory:")
    run = made_run(store, lambda level: 1.0, rules=rules, steal=steal, n=(1, 2))
    told = remarks(store.not_plain().get(run.run.id, ()))
    is_doubted = any(cell.indicators["wall_seconds"].in_doubt for cell in run.cells)
    assert told == (["in doubt"] if is_doubted else [])


def test_a_cell_that_failed_is_told() -> None:
    ok = [Told(cell, block, "ok", "", True) for cell in (0, 1) for block in range(5)]
    failed = Told(1, 5, "program_error", "program failed", False)
    assert remarks([*ok, failed]) == [], "it was redone"
    assert remarks([*ok, failed, failed]) == ["with failures"]
    assert remarks([*ok, failed._replace(verdict="abandon")]) == ["with failures"]
    disturbed = [Told(0, block, "contaminated", "steal", True) for block in range(5)]
    assert remarks([*disturbed, failed, failed]) == ["with failures", "in doubt"]


def test_the_state_says_it_of_runs_that_have_ended() -> None:
    assert shown_state("complete", "", ["in doubt"]) == "complete, in doubt"
    assert shown_state("complete", "", ["with failures", "in doubt"]).endswith("failures, in doubt")
    assert shown_state("interrupted", "", ["in doubt"]) == "interrupted"
