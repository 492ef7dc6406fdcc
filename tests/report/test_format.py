"""Numbers as text: signs kept, no digit shown that the interval does not justify."""

from __future__ import annotations

import math
from decimal import Context, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concurve.estimate import Estimate
from concurve.report import format as fmt

values = st.floats(min_value=-1e12, max_value=1e12, allow_subnormal=False).filter(
    lambda v: v == 0 or abs(v) > 1e-12
)
halves = st.floats(min_value=1e-12, max_value=1e12)


def around(value: float, half: float, unit: str = "") -> Estimate:
    return Estimate(value=value, low=value - half, high=value + half, n=5, unit=unit)


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        (around(1.482, 0.031, "s"), "1.482 ± 0.031 s"),
        (around(0.00123, 0.0001, "s"), "1.23 ± 0.10 ms"),
        (around(0.00000123, 1e-8, "s"), "1.230 ± 0.010 µs"),
        (around(1_482_000_000, 31_000_000, "ns"), "1.482 ± 0.031 s"),
        (around(10_485_760, 1_048_576, "bytes"), "10.0 ± 1.0 MiB"),
        (around(1_234_567, 30_000), "1,235,000 ± 30,000"),
        (around(1.93, 0.02, "×"), "1.930 ± 0.020×"),
        (around(0.936, 0.045, "fraction"), "93.6 ± 4.5 %"),
        (around(25908, 120, "s"), "25,910 ± 120 s"),
        (around(5.5, 0, ""), "5.5"),
        (around(0.0, 0.5, ""), "0.00 ± 0.50"),
        (around(-3, 500, ""), "-3 ± 500"),
        (Estimate(value=0.0, low=0.0, high=1e-6, n=9, unit="s"), "0 s (0 to 1.00e-6 s)"),
        (around(9.999, 0.1), "10.00 ± 0.10"),
        (around(2.0, 0.0996), "2.00 ± 0.10"),
        (Estimate(value=2.23, low=1.2, high=4.14, n=5), "2.2 (1.2 to 4.1)"),
        (Estimate(value=1.88, low=1.54, high=2.3, n=8), "1.88 ± 0.38"),
        (Estimate(value=0.02, low=0.016, high=0.032, unit="s"), "20.0 ms (16.0 to 32.0 ms)"),
        (around(0.002236067977, 0), "0.0022361"),
        (around(0.002236067977, 1e-18), "0.0022361"),
        (around(1.234567e-9, 0), "1.23e-9"),
        (around(0.9999969, 0.0000098), "0.9999969 ± 0.0000098"),
        (Estimate(value=0.00123, unit="s"), "1.23 ms"),
        (Estimate(value=12345.0), "12,345"),
        (Estimate(value=math.nan, unit="s"), "– s"),
        (Estimate(value=2.0, low=-math.inf, high=math.inf), "2"),
    ],
)
def test_estimate(figure: Estimate, text: str) -> None:
    assert fmt.estimate(figure).text == text


def test_what_follows_a_value_in_a_table() -> None:
    skewed = Estimate(value=0.41, low=0.09, high=1.99, n=3)
    shown = [fmt.estimate(figure).spread for figure in (around(1.5, 0.2), around(5, 0), skewed)]
    assert shown == ["± 0.20", "", "(0.09 to 1.99)"]


def digits_after_point(text: str) -> int:
    exponent = Decimal(text.replace(",", "")).as_tuple().exponent
    assert isinstance(exponent, int)
    return -exponent


@given(values, halves)
def test_sign_and_size_survive(value: float, half: float) -> None:
    shown = fmt.estimate(around(value, half))
    back = float(shown.value.replace(",", ""))
    assert (back < 0) == (value < 0)
    assert (back == 0) == (value == 0)
    # Rounded to a place of the half width, or to the value's own first digit.
    assert abs(back - value) <= max(0.5 * abs(value) * 1.000001, 0) or abs(back - value) <= half


@given(values, halves)
def test_no_more_digits_than_the_interval_justifies(value: float, half: float) -> None:
    figure = around(value, half)
    assert figure.half_width is not None
    shown = fmt.estimate(figure)
    if not shown.half:
        return
    significant = Decimal(shown.half.replace(",", "")).normalize().as_tuple().digits
    assert len(significant) <= 2
    first_digit_of_value = math.floor(math.log10(abs(value))) if value else 0
    half_place = math.floor(math.log10(float(f"{figure.half_width:.1e}"))) - 1
    allowed = max(0, -min(half_place, first_digit_of_value))
    assert digits_after_point(shown.value) <= allowed + (value == 0)


@given(values, halves)
def test_interval_stands_around_the_value(value: float, half: float) -> None:
    shown = fmt.estimate(around(value, half))
    assert shown.low is not None and shown.high is not None
    low, high = (float(bound.replace(",", "")) for bound in (shown.low, shown.high))
    assert low <= high


@given(st.floats(allow_nan=True, allow_infinity=True), st.sampled_from(["", "s", "bytes", "km"]))
def test_no_float_breaks_it(value: float, unit: str) -> None:
    assert fmt.estimate(Estimate(value=value, unit=unit)).text
    assert fmt.estimate(Estimate(value=value, low=value, high=value, unit=unit)).text


def test_a_column_shares_a_scale_that_keeps_its_values_readable() -> None:
    assert fmt.scale_for([1.8, 0.9, 0.4], "s").symbol == "s"
    assert fmt.scale_for([0.4, 0.3], "s").symbol == "ms"
    assert fmt.scale_for([12.0, 0.002, 0.003], "s").symbol == "ms"
    assert fmt.scale_for([], "s").symbol == "s"
    assert fmt.scale_for([0.0], "bytes").symbol == "B"


def test_precision() -> None:
    assert fmt.precision(around(100, 2.1)) == "±2.1 %"
    assert fmt.precision(around(100, 21)) == "±21 %"
    assert fmt.precision(around(0, 1)) == ""
    assert fmt.precision(around(1e-9, 1)) == "±>999 %"


@given(st.text())
def test_clean_text_steers_nothing(text: str) -> None:
    cleaned = fmt.clean(text)
    assert len(cleaned) == len(text)
    assert not any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 for char in cleaned)


@pytest.mark.parametrize(
    ("level", "text"), [(4, "4"), (0.5, "0.5"), (2.0, "2.0"), ("a\nb", "a b"), (1e300, "1e+300")]
)
def test_level(level: int | float | str, text: str) -> None:
    assert fmt.level(level) == text


@given(
    st.floats(-1e16, 1e16) | st.integers(-(10**7), 10**7).map(lambda n: n / 1000) | values,
    st.integers(-9, 3),
)
def test_a_figure_is_rounded_as_its_decimal_value_is(value: float, place: int) -> None:
    """Also 2.675, which is a little less as a float: half of a last digit goes to the even one."""
    exact = Decimal(repr(value)).quantize(Decimal(1).scaleb(place), context=Context(prec=700))
    shown = fmt._fixed(value, place)
    assert Decimal(shown.replace(",", "")) == exact
    assert not (exact == 0 and shown.startswith("-"))


@given(st.floats(5e-324, 1.7e308))
def test_the_power_of_ten_of_the_first_digit(value: float) -> None:
    assert fmt._exponent(value) == fmt._exponent(-value) == Decimal(repr(value)).adjusted()


def test_settings_in_brackets() -> None:
    assert fmt.in_brackets(["a=1", "a=2"], 3) == " (a=1; a=2)"
    assert fmt.in_brackets(["a=1", "a=2", "a=3"], 2) == " (a=1; a=2 and 1 more)"
    assert fmt.in_brackets([""], 3) == "", "the only cell has no levels"
