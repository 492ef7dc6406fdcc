"""Numbers in sentences: counts with their nouns and verbs, lists, durations, shares."""

from __future__ import annotations

import math

import pytest

from concurve import words


@pytest.mark.parametrize(
    ("number", "singular", "text"),
    [
        (0, "trial", "0 trials"),
        (1, "trial", "1 trial"),
        (12_000, "trial", "12,000 trials"),
        (2, "study", "2 studies"),
        (1, "study", "1 study"),
        (3, "day", "3 days"),
        (2, "more warning", "2 more warnings"),
    ],
)
def test_a_count_has_its_noun(number: int, singular: str, text: str) -> None:
    assert words.count(number, singular) == text


@pytest.mark.parametrize(
    ("number", "total", "text"),
    [
        (1, 1, "1 study is"),
        (0, 1, "0 of 1 study are"),
        (1, 2, "1 of 2 studies is"),
        (2, 2, "2 of 2 studies are"),
        (0, 6, "0 of 6 studies are"),
    ],
)
def test_a_part_of_a_count_has_its_noun_and_its_verb(number: int, total: int, text: str) -> None:
    assert f"{words.count_of(number, total, 'study')} {words.verb(number)}" == text


@pytest.mark.parametrize(
    ("number", "text"), [(2, "both cells"), (3, "all 3 cells"), (1_000, "all 1,000 cells")]
)
def test_all_of_two_are_both(number: int, text: str) -> None:
    assert words.all_of(number, "cell") == text


def test_another_plural_and_another_verb() -> None:
    assert words.count(2, "index", "indices") == "2 indices"
    assert [words.verb(number, "has", "have") for number in (0, 1, 2)] == ["have", "has", "have"]


def test_a_list_reads_as_one() -> None:
    assert words.listed(["a"]) == "a"
    assert words.listed(["a", "b"]) == "a and b"
    assert words.listed(["a", "b", "c"], "or") == "a, b or c"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (3.14e-9, "3.14 ns"),
        (24.6e-6, "24.6 µs"),
        (0.04, "40 ms"),
        (0.85, "850 ms"),
        (0.9996, "1.0 s"),
        (3.24, "3.2 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (12.4, "12 s"),
        (89.4, "89 s"),
        (89.6, "1 min 30 s"),
        (120, "2 min"),
        (130, "2 min 10 s"),
        (3599.9, "1 h 00 min"),
        (7500, "2 h 05 min"),
        (180_000, "2 d 2 h"),
        (math.inf, "–"),
        (-1.0, "–"),
    ],
)
def test_a_duration(seconds: float, text: str) -> None:
    assert words.duration(seconds) == text


@pytest.mark.parametrize(
    ("part", "share", "percent", "whole"),
    [
        (0.0034, "0.34 %", "0.3 %", "<1 %"),
        (0.021, "2.1 %", "2.1 %", "2 %"),
        (0.51, "51 %", "51 %", "51 %"),
        (0.0, "0.00 %", "0.0 %", "0 %"),
    ],
)
def test_shares(part: float, share: str, percent: str, whole: str) -> None:
    found = (words.share(part), words.percent(part), words.whole_percent(part))
    assert found == (share, percent, whole)


def test_a_name_that_is_none_has_the_ones_that_may_be_meant() -> None:
    names = ["latency_ns_p50", "latency_ns_p99", "latency_ns_p999", "wall_seconds"]
    assert words.meant("p50", names) == "did you mean 'latency_ns_p50'?"
    assert words.meant("p99", names) == "did you mean 'latency_ns_p99' or 'latency_ns_p999'?"
    assert words.meant("wal_seconds", names) == "did you mean 'wall_seconds'?"
    assert words.meant("xyz", [f"a{number}" for number in range(20)]).endswith("a11 and 8 more")
    assert words.meant("xyz", names, "write it in full") == "write it in full"
    assert words.meant("xyz", []) == "one of none"
    assert words.meant("n", names) == f"one of {', '.join(names)}", "one letter is part of much"
    assert words.meant("16", ["1", "6"]) == "one of 1, 6", "a number is no slip for another"
    assert words.meant("100", ["50", "1000"]) == "one of 50, 1000"
    assert words.meant("2026", ["20261127-1"]) == "did you mean '20261127-1'?"
    assert words.did_you_mean("a", "b") == "did you mean 'a' or 'b'?"
    assert words.did_you_mean(None) == ""


def test_a_sentence_keeps_the_name_of_a_figure_that_it_begins_with() -> None:
    assert words.sentence("trials differ") == "Trials differ"
    assert words.sentence("load.unanswered differs") == "load.unanswered differs"
    assert words.sentence("wall_seconds differs") == "wall_seconds differs"


@pytest.mark.parametrize(
    ("figures", "digits"),
    [
        ((2.02, 1.92, 2.11), 2),
        ((1.004, 1.002, 1.006), 3),
        ((0.997, 0.995, 0.999), 3),
        ((1.0004, 1.0003, 1.0005), 4),
        ((1.0, 0.96, 1.04), 2),
        ((1.0, None, None), 2),
        ((0.0025, 0.0024, 0.0026), 4),
        ((0.05, 0.04, 0.06), 3),
    ],
)
def test_a_ratio_shows_on_which_side_of_1_it_is(
    figures: tuple[float, float | None, float | None], digits: int
) -> None:
    assert words.ratio_digits(*figures) == digits
