"""The step of a clock is found in its readings, and only there."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import pytest

from concurve.stats.resolution import relative, step_of, step_of_looks, step_of_rates, tick_of


@pytest.mark.parametrize("tick", [1.0, 0.01, 0.004, 0.015625, 1e-6])
def test_the_step_of_a_clock_is_found(tick: float) -> None:
    generator = random.Random(1)
    readings = [tick * round(generator.uniform(40, 70)) for _ in range(20)]
    assert step_of(readings) == pytest.approx(tick, rel=1e-6)
    rates = [1000 / reading for reading in readings]
    assert step_of_rates(rates) == pytest.approx(tick / 1000, rel=1e-6)


def test_readings_that_lie_anywhere_have_no_step() -> None:
    generator = random.Random(2)
    for _ in range(200):
        readings = [generator.lognormvariate(0, 0.1) for _ in range(generator.choice([2, 5, 30]))]
        assert step_of(readings) == 0
        assert step_of_rates(readings) == 0
    nanoseconds = [round(generator.uniform(0.9e9, 1.1e9)) / 1e9 for _ in range(30)]
    assert step_of(nanoseconds) == 0


@pytest.mark.parametrize(
    ("reading", "step"),
    [
        (0.04, 0.01), (1.25, 0.01), (3.0, 1.0), (300.0, 1.0), (0.0, 0.0),
        (4.2e-13, 1e-14), (3.04e-9, 1e-11), (1234567.25, 0.01), (1234567.1251, 0.0),
    ],
)  # fmt: skip
def test_one_single_reading_is_as_fine_as_it_is_printed(reading: float, step: float) -> None:
    assert step_of([reading] * 5) == pytest.approx(step, abs=0.0)
    assert step_of([1 / 3] * 5) == 0


def test_rounding_of_floats_is_no_step() -> None:
    assert step_of([0.1 + 0.2, 0.3, 0.4, 0.7]) == pytest.approx(0.1)


def test_the_tick_of_readings_that_were_rounded_is_found() -> None:
    generator = random.Random(3)
    cells = [
        [round(round(generator.gauss(true, 0.02) * 30) / 30, 3) for _ in range(8)]
        for true in (0.5, 1.01, 2.0)
    ]
    step = step_of(value for cell in cells for value in cell)
    assert step == pytest.approx(0.001)
    assert tick_of(cells, step) == pytest.approx(1 / 30, abs=0.003)


@pytest.mark.parametrize("spread", [0.0003, 0.001, 0.003, 0.01, 0.1])
@pytest.mark.parametrize("trials", [5, 30])
def test_readings_between_the_ticks_leave_the_step(spread: float, trials: int) -> None:
    generator = random.Random(trials)
    for _ in range(200):
        cells = [
            [round(generator.gauss(true, spread), 3) for _ in range(trials)]
            for true in (0.5, 1.01, 2.0)
        ]
        assert tick_of(cells, 0.001) == 0.001
    assert tick_of([[1.0] * 8, [1.5] * 8, [2.25] * 8], 0.001) == 0.001, "cells that differ"
    assert tick_of([[0.5, 0.7, 0.5]], 0.0) == 0.0


def test_a_share_of_the_centre() -> None:
    assert relative(0.01, [0.1, 0.2, 0.4]) == pytest.approx(0.05)
    assert relative(0.0, []) == 0


def looking(generator: random.Random, step: float, middle: float, spread: float) -> float:
    """A time of work that is known to be done at the next look, after a start."""
    work = middle * generator.lognormvariate(0, spread)
    return 0.01 + 0.01 * generator.random() * step + step * math.ceil(work / step)


@pytest.mark.parametrize("step", [1.0, 0.5, 0.25, 0.2, 0.1])
def test_the_step_of_a_program_that_looks_whether_it_is_done_is_found(step: float) -> None:
    generator = random.Random(4)
    for middles in ((3.2, 2.6, 4.1), (6.3, 4.4), (2.5, 2.5, 2.5, 5.1)):
        cells = [[looking(generator, step, it * step, 0.2) for _ in range(8)] for it in middles]
        assert step_of_looks(cells) == step
        cells[0][0] += 0.4 * step  # one that something kept waiting
        assert step_of_looks(cells) == step


def noisy(generator: random.Random, spread: float, slow: float) -> float:
    """A factor of noise; a share of the trials is slowed down by a fifth on the average."""
    tail = 1 + generator.expovariate(5) if generator.random() < slow else 1.0
    return generator.lognormvariate(0, spread) * tail


#: Programs that look at nothing: the levels of their cells, from a time and another one.
DESIGNS: dict[str, Callable[[float, float], list[list[float]]]] = {
    "two builds": lambda time, _: [[time], [1.03 * time]],
    "equal cells": lambda time, _: [[time], [time]],
    "one cell": lambda time, _: [[time]],
    "twice and four times as fast": lambda time, _: [[time], [time / 2], [time / 4]],
    "2, 1 and 0.5 s": lambda *_: [[2.0], [1.0], [0.5]],
    "two levels in each cell": lambda time, other: [[time, time, other], [time / 2, other / 2]],
    "a pause in some trials": lambda time, other: [[it, it, it + other] for it in (time, 2 * time)],
}


@pytest.mark.parametrize("design", DESIGNS)
def test_times_without_looks_have_no_such_step(design: str) -> None:
    generator = random.Random(5)
    wrong = 0
    for _ in range(600):
        spread = generator.choice([0.001, 0.005, 0.02, 0.1, 0.4])
        slow = generator.choice([0.0, 0.05, 0.08, 0.15])
        count = generator.choice([3, 5, 10, 15, 40])
        time = generator.uniform(0.1, 4.0)
        levels = DESIGNS[design](time, time * generator.uniform(1.1, 2.0))
        wrong += (
            step_of_looks(
                [generator.choice(own) * noisy(generator, spread, slow) for _ in range(count)]
                for own in levels
            )
            != 0
        )
    assert wrong <= 3, "one of two hundred"


def test_times_that_a_load_was_told_to_last_show_no_looks() -> None:
    generator = random.Random(6)
    cells = [[told + 0.01 * generator.random() for _ in range(8)] for told in (0.5, 1.0, 1.5, 2.0)]
    assert step_of_looks(cells) == 0


def test_times_at_the_limits_of_a_float_show_no_looks() -> None:
    for extreme in (math.inf, math.nan, 1.7e308, 5e-324, -1.0, 0.0):
        assert step_of_looks([[extreme, 0.51, 0.76] * 6]) == 0
        assert step_of_looks([[extreme] * 12]) == 0
