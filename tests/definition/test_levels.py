"""Levels: what each notation stands for, and what is refused."""

from __future__ import annotations

import itertools

import pytest

from concurve.definition.levels import (
    LEVELS_MAX,
    fallen_together,
    levels_among,
    levels_meant,
    parse_levels,
    ranges_meant,
    resolve_levels,
    several_meant,
    texts_like_ranges,
)
from concurve.errors import StudyError
from concurve.terms import Level, joined_levels, split_levels

GOOD: dict[str, tuple[Level, ...]] = {
    "1,2,4,8": (1, 2, 4, 8),
    " 1 , 2 ": (1, 2),
    "8,1": (8, 1),
    "1..4": (1, 2, 3, 4),
    "3..3": (3,),
    "-1..1": (-1, 0, 1),
    "1..10+4": (1, 5, 9),
    "1..64*2": (1, 2, 4, 8, 16, 32, 64),
    "1..50*3": (1, 3, 9, 27),
    "0.1..0.3+0.1": (0.1, 0.2, 0.3),
    "1,2..4,16..64*2": (1, 2, 3, 4, 16, 32, 64),
    "50%,100%,200%": (2, 4, 8),
    "none,method,object": ("none", "method", "object"),
    "0.5,-2": (0.5, -2),
    "v1.2.3": ("v1.2.3",),
    "007": ("007",),
    "3.9,3.10,3.11": ("3.9", "3.10", "3.11"),
    "1,2.50,x": ("1", "2.50", "x"),
    "0.00001": ("0.00001",),
    r"awk -F\, x,cut": ("awk -F, x", "cut"),
    "1 .. 4": (1, 2, 3, 4),
    "1..64 * 2, 100": (1, 2, 4, 8, 16, 32, 64, 100),
    "1 ..10 + 4": (1, 5, 9),
    "1 ..": (1, 2, 4, 8),
    "4 ../data,8 ../data": ("4 ../data", "8 ../data"),
    "2.. /x": ("2.. /x",),
    "5..10ms,0..HEAD,3..5.txt,100..max": ("5..10ms", "0..HEAD", "3..5.txt", "100..max"),
}


@pytest.mark.parametrize("text", GOOD)
def test_a_notation_stands_for_its_levels(text: str) -> None:
    levels = parse_levels(text, 4, "-P n")
    assert levels == GOOD[text]
    assert [type(level) for level in levels] == [type(level) for level in GOOD[text]]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("1-4", "1..4"),
        ("1...16", "1..16"),
        ("1:4", "1..4"),
        ("1 to 4", "1..4"),
        ("1 2 4", "1,2,4"),
        ("1; 2; 4", "1,2,4"),
        ("70:30", ""),
        ("2024-01", ""),
        ("8080:80", ""),
        ("0-0", ""),
        ("1..4", ""),
        ("1,2", ""),
        ("-4", ""),
        ("4", ""),
        ("v1-4", ""),
        ("two words", ""),
    ],
)
def test_one_level_that_may_be_meant_as_several(text: str, meant: str) -> None:
    assert several_meant(text) == meant


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("1-4,8", {"1-4": "1..4"}),
        ("1-4,50%,8..", {"1-4": "1..4"}),
        ("1-4", {"1-4": "1..4"}),
        ("1 2 4", {"1 2 4": "1,2,4"}),
        (r"a\,b,1-4", {"1-4": "1..4"}),
        ("30:70,50:50", {}),
        ("30:70,70:30,none", {}),
        ("10:20,20:30", {}),
        ("2024-01,2024-02", {}),
        ("0,0-1", {}),
        ("1,2", {}),
    ],
)
def test_of_what_is_no_list_of_ranges_nothing_is_told(text: str, meant: dict[str, str]) -> None:
    assert ranges_meant(text) == meant


@pytest.mark.parametrize(
    ("text", "texts"),
    [("1..4,0..HEAD,2.. /x,word", ["0..HEAD", "2.. /x"]), ("1 .. 4,50%,4 ../data,1..2x", [])],
)
def test_texts_that_begin_as_ranges(text: str, texts: list[str]) -> None:
    assert texts_like_ranges(text) == texts


BAD = {
    "": "an empty level",
    "1,,2": "an empty level",
    "1,2,": "an empty level",
    "[1,2]": "no brackets",
    "(1, 2)": "no brackets",
    "1,2,1": "level 1 is repeated",
    "1,1.0": "is repeated",
    "1..4,2,007": "level 2 is repeated (from '1..4' and '2')",
    "1..4,3": "level 3 is repeated",
    "4..1": "runs backwards",
    "1..2..3": "'1..2..3' is no range",
    "1..8*": "'1..8*' is no range",
    "1..2X": "'1..2X' is no range",
    "1..100%": "'1..100%' is no range",
    "50%..200%": "'50%..200%' is no range",
    "1...16": "'1...16' is no range",
    "1..16/2": "'1..16/2' is no range",
    "1..16:2": "'1..16:2' is no range",
    "1..8 by 2": "'1..8 by 2' is no range",
    "1..n": "'1..n' is no range",
    "1..cpus": "'1..cpus' is no range",
    "1..64 * 2 * 2": "'1..64 * 2 * 2' is no range",
    "1..9+0": "has no step",
    "1..9*1": "does not grow",
    "0..9*2": "does not grow",
    "a,b,a": "level 'a' is repeated",
    "50%,0%": "0% of the CPUs is none",
    "-50%": "-50% of the CPUs is none",
    "0..100000000": f"more than {LEVELS_MAX} levels",
}


@pytest.mark.parametrize("text", BAD)
def test_a_bad_level_is_refused_with_place_and_remedy(text: str) -> None:
    with pytest.raises(StudyError) as refused:
        parse_levels(text, 4, "-P threads")
    assert refused.value.what.startswith("-P threads: ")
    assert BAD[text] in refused.value.what
    assert refused.value.remedy


@pytest.mark.parametrize(
    ("text", "remedy"),
    [("1..2X", "1..2x"), ("1...16", "1..16"), ("50%..200%", "50%,100%,200%"), ("16...1", "1..16")],
)
def test_what_is_no_range_is_refused_with_what_may_be_meant(text: str, remedy: str) -> None:
    with pytest.raises(StudyError) as refused:
        parse_levels(text, 4, "-P n")
    assert remedy in refused.value.remedy


@pytest.mark.parametrize(
    ("text", "cpus", "levels", "told"),
    [
        ("50%,100%,200%", 1, (1, 2), "50% and 100% both give 1"),
        ("25%,50%,100%", 1, (1,), "25%, 50% and 100% all give 1"),
        ("25%,50%,100%,200%", 2, (1, 2, 4), "25% and 50% both give 1"),
        ("1,50%,100%", 4, (1, 2, 4), ""),
        ("1,50%,100%", 2, (1, 2), "1 and 50% both give 1"),
        ("50%,1,8", 2, (1, 8), "50% and 1 both give 1"),
        ("1..,8,16", 4, (1, 2, 4, 8, 16), "1.. and 8 both give 8"),
        ("1..,50%,100%", 2, (1, 2, 4), "1.. and 50% both give 1; 1.. and 100% both give 2"),
        ("1..,1..4x", 1, (1, 2, 4), "1.. and 1..4x both give 1 and 2"),
    ],
)
def test_levels_that_follow_from_the_cpus_may_fall_together(
    text: str, cpus: int, levels: tuple[int, ...], told: str
) -> None:
    assert parse_levels(text, cpus, "-P n") == levels
    assert fallen_together(text, cpus) == told


@pytest.mark.parametrize("text", ["50%,50%", "1..,1..", "50%,1,1.0", "1,50%,1.0"])
def test_what_is_named_twice_is_refused_on_any_machine(text: str) -> None:
    with pytest.raises(StudyError, match="is repeated"):
        parse_levels(text, 2, "-P n")


def test_percentages_never_fall_below_one_cpu() -> None:
    assert parse_levels("1%", 2, "-P n") == (1,)


def test_levels_of_a_file_keep_their_types() -> None:
    assert resolve_levels([1, 2.5, "on", "4..6"], 2, "factors, n") == (1, 2.5, "on", 4, 5, 6)


def test_no_levels_and_booleans_are_refused() -> None:
    with pytest.raises(StudyError, match="factors, n: no levels"):
        resolve_levels([], 2, "factors, n")
    with pytest.raises(StudyError, match="is a boolean"):
        resolve_levels([True], 2, "factors, n")
    with pytest.raises(StudyError, match="is not finite"):
        resolve_levels([1.0, float("nan")], 2, "factors, n")


@pytest.mark.parametrize(
    ("text", "cpus", "levels"),
    [
        ("1..", 1, (1, 2)),
        ("1..", 2, (1, 2, 4)),
        ("1..", 6, (1, 2, 4, 6, 8, 12)),
        ("1..", 64, (1, 2, 4, 8, 16, 32, 64, 128)),
        ("1..1x", 6, (1, 2, 4, 6)),
        ("1..4x", 2, (1, 2, 4, 8)),
        ("1..2x", 3, (1, 2, 3, 4, 6)),
        ("1..0.5x", 8, (1, 2, 4)),
        ("3..", 4, (3, 4, 6, 8)),
        ("1..2x,100", 2, (1, 2, 4, 100)),
    ],
)
def test_levels_follow_from_the_cpus(text: str, cpus: int, levels: tuple[int, ...]) -> None:
    assert parse_levels(text, cpus, "-P n") == levels


@pytest.mark.parametrize("text", ["9..", "0..", "0..2x", "1.5..", "-1..", "8..1x", "1..0.1x"])
def test_open_ranges_that_have_no_levels_are_refused(text: str) -> None:
    with pytest.raises(StudyError, match="range") as refused:
        parse_levels(text, 4, "-P n")
    assert refused.value.remedy


@pytest.mark.parametrize(
    ("levels", "others", "found"),
    [
        ((3.9, 3.11), ("3.9", "3.10", "3.11"), ("3.9", "3.11")),
        ((3.12,), ("3.9", "3.10"), ("3.12",)),
        (("3.9", "3.10"), (3.9, 3.11), (3.9, "3.10")),
        ((1, 2), (1, 2, "many"), (1, 2)),
        ((3,), (1, 2, "many"), (3,)),
    ],
)
def test_a_further_list_of_a_factor_has_the_levels_of_the_main_one(
    levels: tuple[Level, ...], others: tuple[Level, ...], found: tuple[Level, ...]
) -> None:
    got = levels_among(levels, others)
    assert list(map(repr, got)) == list(map(repr, found))


def test_a_level_that_is_named_is_the_one_of_the_factor() -> None:
    factors: dict[str, tuple[Level, ...]] = {"python": ("3.9", "3.10"), "n": (1, 2)}
    named: dict[str, Level] = {"python": 3.9, "n": "2"}
    assert repr(levels_meant(named, factors)) == repr({"python": "3.9", "n": 2})
    assert levels_meant({"n": 3, "other": 1}, factors) == {"n": 3, "other": 1}


@pytest.mark.parametrize(
    ("levels", "text"),
    [
        ((1, "two", 3.5), "1,two,3.5"),
        (("a,b", "c"), r"a\,b,c"),
        (("C:\\", "D:\\"), "C:\\\\,D:\\"),
        (("a\\,b", "c"), r"a\\\,b,c"),
        (("\\\\", ",", "\\,\\"), "\\\\\\\\,\\,,\\\\\\,\\"),
        ((r"\d+\s", r"\\host\d"), r"\d+\s,\\host\d"),
        (("a\\\n", "b"), "a\\\n,b"),
    ],
)
def test_levels_that_are_joined_are_divided_into_the_same(
    levels: tuple[Level, ...], text: str
) -> None:
    assert joined_levels(levels) == text
    assert split_levels(text) == list(map(str, levels))


def test_any_levels_that_are_joined_are_divided_into_the_same() -> None:
    texts = ["".join(it) for size in range(1, 4) for it in itertools.product("a\\,", repeat=size)]
    for pair in itertools.product(texts, repeat=2):
        assert split_levels(joined_levels(pair)) == list(pair)


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("none,", "remove the last comma"),
        ("none, ,", "remove the last 2 commas"),
        ("1,,2", "remove what is too many of the commas: 1,2"),
        (",none,fine", "remove what is too many of the commas: none,fine"),
        ("", "for example 1,2,4,8"),
    ],
)
def test_a_comma_too_many_is_named(text: str, remedy: str) -> None:
    with pytest.raises(StudyError, match="an empty level") as refused:
        parse_levels(text, 4, "-P lock")
    assert refused.value.remedy.startswith(remedy)
    assert remedy.startswith("for") or refused.value.remedy == remedy
