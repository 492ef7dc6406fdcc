"""Figures packed for the store come back as they were, also where trials differ in names."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from concurve.figures import decode_figures, encode_figures

NAMES = st.text(st.characters(codec="utf-8"), max_size=8)
FIGURES = st.dictionaries(NAMES, st.floats(allow_nan=False, allow_infinity=False), max_size=5)


@given(st.lists(FIGURES, max_size=8))
def test_every_trial_comes_back(trials: list[dict[str, float]]) -> None:
    table = decode_figures(map(encode_figures, trials))
    assert [table.row(index) for index in range(len(trials))] == trials
    assert set(table.names) == {name for trial in trials for name in trial}


def test_no_trials_and_no_figures() -> None:
    assert decode_figures([]).values.shape == (0, 0)
    assert decode_figures([encode_figures({})]).row(0) == {}
