"""Bookmarks: both forms say the same, and what is no bookmark is refused by name."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from concurve.errors import StudyError
from concurve.web.bookmarks import DEPTH_MAX, SIDE_MAX, Bookmark, parse, to_toml, to_xml

ROOT = Path(__file__).parents[2]
BUILT_IN = ROOT / "subjects/mandelbrot/data/benchmark-location.toml"

ONE = Bookmark(
    x_min=-0.75, x_max=-0.5, y_min=0.1, y_max=0.2, width=1016, height=718,
    iterations_quick=2500, iterations_normal=19000, iterations_rigorous=240000,
)  # fmt: skip

reals = st.floats(-2, 2)
sides = st.integers(1, SIDE_MAX)
depths = st.integers(1, DEPTH_MAX)


@given(x=st.tuples(reals, reals), y=st.tuples(reals, reals), side=sides, depth=depths)
def test_both_forms_keep_every_bit(
    x: tuple[float, float], y: tuple[float, float], side: int, depth: int
) -> None:
    if x[0] == x[1] or y[0] == y[1]:
        return
    bookmark = msgspec.structs.replace(
        ONE, x_min=min(x), x_max=max(x), y_min=min(y), y_max=max(y), width=side,
        iterations_normal=depth,
    )  # fmt: skip
    assert parse(to_toml(bookmark)) == bookmark
    assert parse(to_xml(bookmark)) == bookmark


@pytest.mark.skipif(not BUILT_IN.exists(), reason="not a checkout")
def test_the_benchmark_location_is_a_bookmark() -> None:
    found = parse(BUILT_IN.read_text(encoding="utf-8"))
    assert (found.width, found.height) == (1016, 718)
    assert parse(to_xml(found)) == found


def test_what_editors_add_is_read() -> None:
    assert parse("\ufeff" + to_xml(ONE)) == ONE
    assert parse(to_toml(ONE).replace("\n", "\r\n")) == ONE
    assert parse("# a comment\n" + to_toml(ONE)) == ONE
    assert parse(to_xml(ONE).replace("<width>", "<!-- pixels --><width>")) == ONE
    assert (
        parse(to_toml(msgspec.structs.replace(ONE, x_min=-2.0)).replace("-2.0", "-2")).x_min == -2
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "x_min"),
        ("{", "bookmark"),
        ("<", "bookmark"),
        ("<other/>", "<other>"),
        (to_toml(ONE).replace("width = 1016\n", ""), "width"),
        (to_toml(ONE) + "colour = 3\n", "colour"),
        (to_toml(ONE).replace("1016", '"1016"'), "width"),
        (to_toml(ONE).replace("1016", "0"), "width"),
        (to_toml(ONE).replace("718", "16385"), "height"),
        (to_toml(ONE).replace("2500", "-1"), "iterations_quick"),
        (to_toml(ONE).replace("-0.75", "nan"), "x_min"),
        (to_toml(ONE).replace("-0.5", "-0.9"), "x_max"),
        (to_toml(ONE) * 2, "bookmark"),
        (to_xml(ONE).replace("1016", "wide"), "width"),
        (to_xml(ONE).replace("<width>1016</width>", ""), "width"),
        (to_xml(ONE).replace("<width>", "<width>1</width><width>"), "width"),
        (to_xml(ONE).replace("1016", "<b/>"), "width"),
        (to_xml(ONE).replace("-0.75", "1e999"), "x_min"),
        ('<!DOCTYPE b [<!ENTITY a "aaaa">]>' + to_xml(ONE), "document type"),
        ('<bookmark a="&b;"/>', "bookmark"),
    ],
)
def test_what_is_no_bookmark(text: str, says: str) -> None:
    with pytest.raises(StudyError) as raised:
        parse(text)
    assert says in raised.value.what + raised.value.remedy
    assert raised.value.remedy


@given(st.text(max_size=300) | st.text(alphabet="<>/!bookmark \n=.x_min1", max_size=300))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse(text)
    except StudyError as error:
        assert error.remedy
