"""The native study of document 002: what each cell runs."""

from __future__ import annotations

import pytest

from concurve.definition.catalogue import find_study
from tests.helpers.planned import argv


def value(words: tuple[str, ...], option: str) -> str:
    return words[words.index(option) + 1]


@pytest.mark.parametrize(
    ("sync", "grain"),
    [("none", "line"), ("method", "pixel"), ("object", "pixel"), ("cas", "pixel")],
)
def test_what_is_handed_out_is_a_pixel_as_in_test_case_9(sync: str, grain: str) -> None:
    """``method-collapse`` is about table 27, whose figures a line cannot give."""
    words = argv(find_study("thread-scaling", 2), "rigorous", sync=sync, threads=32)["target"]
    assert (value(words, "--sync"), value(words, "--grain")) == (sync, grain)


def test_normal_computes_as_briefly_as_quick() -> None:
    study = find_study("thread-scaling", 2)
    depths = {
        effort: value(argv(study, effort, threads=2)["target"], "--depth")
        for effort in ("quick", "normal", "rigorous")
    }
    assert depths == {"quick": "quick", "normal": "quick", "rigorous": "rigorous"}
