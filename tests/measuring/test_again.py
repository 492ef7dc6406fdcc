"""The command that repeats a run has the seed that was drawn, once."""

from __future__ import annotations

import shlex

import pytest

from concurve.measuring.heads import again_line


@pytest.mark.parametrize(
    ("given", "again"),
    [
        ("sweep -P n 1,2 -- ./b {n}", "sweep --seed 9 -P n 1,2 -- ./b {n}"),
        ("sweep --seed 7 -- ./b", "sweep --seed 7 -- ./b"),
        ("sweep --seed=7 -- ./b", "sweep --seed=7 -- ./b"),
        ("sweep -P n 1,2 -- ./b --seed 3 {n}", "sweep --seed 9 -P n 1,2 -- ./b --seed 3 {n}"),
        ("run thread-scaling", "run --seed 9 thread-scaling"),
    ],
)
def test_the_drawn_seed_is_written_unless_one_was_given(
    given: str, again: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["concurve", *shlex.split(given)])
    assert shlex.split(again_line(9)) == ["concurve", *shlex.split(again)]
