"""How the bench of experiments counts what they say."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from confirm import (
    NO_CAUSE,
    REFUSED,
    Counts,
    Plant,
    _built,
    call_places,
    lock_of,
    plants,
    promises_too_much,
)
from measuring.figures import Figure

from concurve.errors import RunError
from concurve.estimate import Estimate
from concurve.explain.experiments import cell_to_confirm
from concurve.findings.confirmation import Confirmation, Confirmed, Gain
from concurve.findings.explanation import CellExplanation
from concurve.terms import Level

HARMLESS = [plant for plant in plants() if plant.verdict == NO_CAUSE]
TRUE = Estimate(value=1.01, low=1.0, high=1.015, n=7)
LISTING = """
0000000000001200 <(anonymous namespace)::under_lock(unsigned long&, long)>:
    1200:\tpush   %rbp
    1204:\tcall   1080 <pthread_mutex_lock@plt>
    1209:\tmov    %rax,%rbx
    120c:\tcallq  1090 <pthread_mutex_unlock@plt>
    1211:\tret

0000000000001220 <under_lock_elsewhere>:
    1220:\tcall   1080 <pthread_mutex_lock@plt>
    1225:\tret
"""


def figure(counts: Counts, name: str) -> Figure:
    return next(it for it in counts.figures() if it.name == name)


def said(result: Confirmed, low: float = 1.0) -> Confirmation:
    times = Estimate(value=low + 0.05, low=low, high=low + 0.1, n=5)
    return Confirmation(
        run="r", of="o", study="s", parameters={}, cause="lock", result=result, evidence="",
        gain=Gain(held=0.5, times=times),
    )  # fmt: skip


def test_a_run_that_failed_is_neither_quiet_nor_right_and_fails_the_bench() -> None:
    counts = Counts()
    counts.take_harmless([NO_CAUSE] * 19 + ["failed"])
    assert (counts.quiet, counts.harmless) == (19, 19)
    assert figure(counts, "harmless").held is True
    assert figure(counts, "failed").held is False
    counts = Counts()
    counts.take_harmless([NO_CAUSE] * 18 + ["confirmed", "open"])
    assert figure(counts, "harmless").held is True and figure(counts, "failed").held is True
    counts.take_harmless(["confirmed"])
    assert figure(counts, "harmless").held is False


@pytest.mark.parametrize("wanted", [{}, {"threads": 2}])
def test_a_run_with_nothing_to_confirm_is_known_by_what_is_said_of_it(
    wanted: dict[str, Level],
) -> None:
    cell = CellExplanation(parameters={"threads": 2}, cause="none", evidence="")
    explained = SimpleNamespace(run="r", cells=(cell,))
    with pytest.raises(RunError, match=REFUSED):
        cell_to_confirm(explained, wanted)  # type: ignore[arg-type]


def test_verdicts_below_their_bound_fail_the_bench() -> None:
    counts = Counts()
    counts.said, counts.runs = 54, 57
    assert figure(counts, "verdicts").held is False
    counts.said = 55
    assert figure(counts, "verdicts").held is True


@pytest.mark.parametrize(
    ("result", "low", "true", "too_much"),
    [
        ("not confirmed", 1.0, TRUE, False),
        ("open", 1.3, TRUE, False),
        ("confirmed", 1.001, TRUE, True),  # there is none
        ("confirmed", 1.3, Estimate(value=1.1, low=1.05, high=1.2, n=7), True),
        ("confirmed", 1.1, Estimate(value=1.1, low=1.05, high=1.2, n=7), False),
    ],
)
def test_a_gain_may_be_promised_that_is_truly_there(
    result: Confirmed, low: float, true: Estimate, too_much: bool
) -> None:
    """Who holds a lock shorter has less work, too."""
    assert promises_too_much(said(result, low), true) is too_much


def test_a_lock_that_no_experiment_reached_is_not_harmless() -> None:
    counts = Counts()
    counts.take_tried([said("not confirmed")] * 2, TRUE)
    assert figure(counts, "harmless, tried out").held is True
    counts.take_tried([said("out of reach")], TRUE)
    assert (counts.modest, counts.tried) == (2, 2)
    assert figure(counts, "failed").held is False
    counts.take_tried([said("confirmed")], TRUE)
    assert figure(counts, "harmless, tried out").held is False


def test_the_width_of_the_intervals_is_shown() -> None:
    counts = Counts()
    counts.widths = [0.1, 0.2, 0.6]
    shown = figure(counts, "predicted gains: width")
    assert shown.estimate is not None and shown.estimate.value == 0.2 and shown.bound is None


def test_calls_are_found_in_the_function_that_takes_the_lock() -> None:
    assert call_places(LISTING, "under_lock", "pthread_mutex_lock") == ("0x1208",)
    assert call_places(LISTING, "under_lock", "pthread_mutex_unlock") == ("0x1210",)
    assert call_places(LISTING, "under", "pthread_mutex_lock") == ()


@pytest.mark.parametrize("plant", HARMLESS, ids=lambda plant: plant.name)
def test_the_lock_of_a_harmless_program_can_be_held_longer(plant: Plant, tmp_path: Path) -> None:
    if plant.name == "lines of their own":
        assert not plant.function
        return
    for tool in ("gcc", "g++", "objdump"):
        if shutil.which(tool) is None:
            pytest.skip(f"no {tool} here")
    program = _built(plant, tmp_path).program
    found = lock_of(plant, program)
    assert found.offsets and found.module == str(program) and found.operation == plant.call
