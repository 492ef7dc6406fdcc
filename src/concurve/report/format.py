"""Numbers as text: the one place where figures are rounded and units are scaled.

A value is shown with the digits that its interval justifies: the half width is rounded to two
digits, and the value to the same decimal place (GUM 7.2.6). At least the first digit of a
value is always shown, so that a figure smaller than its own interval keeps its sign and its size.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import NamedTuple

from concurve import words
from concurve.estimate import Estimate
from concurve.terms import Level

#: As texts everywhere have them.
MISSING = words.MISSING
count = words.count
all_of = words.all_of
duration = words.duration
percent = words.whole_percent
clean = words.clean

# Digits shown where no interval says how many are justified.
_DIGITS_WITHOUT_INTERVAL = 3
# Digits shown at most, however narrow the interval is.
_DIGITS_MAX = 7
# The greatest distance between the middle of an interval and the value, as a share of the half
# width, at which ± is used. With more, ± would show bounds that are not those of the interval.
_SKEWED_FROM = 0.2
# Values in [0.1, 1) are shown with the maximum number of digits.
_PLACE_MIN = -_DIGITS_MAX
# A half width below this share of the value counts as 0.
_EXACT_FROM = 1e-12
# Precise enough to round any float to the decimal place of any other.
_EXACT = Context(prec=700)
# Integers stay whole up to this size without an interval.
_WHOLE_MAX = 10**15


class Scale(NamedTuple):
    """A unit as shown: values are divided by ``divisor`` and followed by ``symbol``."""

    divisor: float
    symbol: str


class Shown(NamedTuple):
    """A figure as text; ``half``, ``low`` and ``high`` are ``None`` without an interval.

    ``half`` is empty for an exact figure, such as the speed-up of the base cell over itself.
    """

    value: str
    half: str | None
    low: str | None
    high: str | None
    unit: str
    is_skewed: bool = False
    in_doubt: bool = False

    @property
    def text(self) -> str:
        """Value, half width and unit in one: ``1.482 ± 0.031 s``.

        The interval itself where the value is not near its middle: ``2.2 (1.2 to 4.1)``.
        """
        doubt = " (in doubt)" if self.in_doubt else ""
        if self.is_skewed:
            span = with_unit(self.span, self.unit)
            return f"{with_unit(self.value, self.unit)} ({span}){doubt}"
        plus = f" ± {self.half}" if self.half else ""
        return with_unit(f"{self.value}{plus}", self.unit) + doubt

    @property
    def spread(self) -> str:
        """The text after the value in a table: ``± 0.031`` or ``(1.2 to 4.1)``; empty if exact."""
        if not self.half:
            return ""
        return f"({self.span})" if self.is_skewed else f"± {self.half}"

    @property
    def span(self) -> str:
        """The interval: ``1.451 to 1.513``, or nothing."""
        return f"{self.low} to {self.high}" if self.half else ""


_TIME = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_BYTES = ((2.0**40, "TiB"), (2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB"), (1.0, "B"))
_LADDERS: dict[str, tuple[float, tuple[tuple[float, str], ...]]] = {
    # unit of the figure: (its size in the ladder's own unit, ladder)
    "s": (1.0, _TIME),
    "ms": (1e-3, _TIME),
    "us": (1e-6, _TIME),
    "µs": (1e-6, _TIME),
    "ns": (1e-9, _TIME),
    "bytes": (1.0, _BYTES),
    "byte": (1.0, _BYTES),
    "B": (1.0, _BYTES),
    "KiB": (2.0**10, _BYTES),
    "MiB": (2.0**20, _BYTES),
    "GiB": (2.0**30, _BYTES),
}
_BARE = {"", "1", "count", "ratio", "number"}
_SYMBOLS = {"fraction": Scale(0.01, "%"), "percent": Scale(1.0, "%"), "x": Scale(1.0, "×")}


def scale_for(values: Iterable[float], unit: str) -> Scale:
    """The scale that suits a column of values.

    The largest in which the greatest value reaches 1 and the smallest 0.1; if there is none, the
    scale of the median value.
    """
    if unit in _BARE:
        return Scale(1.0, "")
    if unit in _SYMBOLS:
        return _SYMBOLS[unit]
    if unit not in _LADDERS:
        return Scale(1.0, unit)
    size, ladder = _LADDERS[unit]
    magnitudes = sorted(abs(value) * size for value in values if math.isfinite(value) and value)
    if not magnitudes:
        return Scale(1.0, {"bytes": "B", "byte": "B"}.get(unit, unit))
    least, middle, greatest = magnitudes[0], magnitudes[len(magnitudes) // 2], magnitudes[-1]
    suits_all = (rung for rung in ladder if greatest >= rung[0] and least >= rung[0] / 10)
    suits_middle = (rung for rung in ladder if middle >= rung[0])
    step, symbol = next(suits_all, next(suits_middle, ladder[-1]))
    return Scale(step / size, symbol)


def estimate(figure: Estimate, scale: Scale | None = None) -> Shown:
    """An estimate as text, in its own best unit or in the scale given."""
    scale = scale or scale_for([figure.value], figure.unit)
    if not math.isfinite(figure.value):
        return Shown(MISSING, None, None, None, scale.symbol)
    half = figure.half_width
    if half is None or not math.isfinite(half):
        return Shown(plain(figure.value, scale), None, None, None, scale.symbol)
    assert figure.low is not None and figure.high is not None
    value, half = figure.value / scale.divisor, half / scale.divisor
    if not math.isfinite(value) or not math.isfinite(half):  # beyond a float in this scale
        return Shown(MISSING, None, None, None, scale.symbol)
    if half < _EXACT_FROM * abs(value):  # a constant, apart from floating-point rounding
        half = 0.0
    middle = (figure.low + figure.high) / 2 / scale.divisor
    place = _place(value, half)
    return Shown(
        _fixed(value, _at_least_one_digit(value, place)),
        _fixed(half, place) if half else "",
        _fixed(figure.low / scale.divisor, place),
        _fixed(figure.high / scale.divisor, place),
        scale.symbol,
        abs(middle - value) > max(_SKEWED_FROM * half, 10.0**place),
        figure.in_doubt,
    )


def plain(value: float, scale: Scale | None = None) -> str:
    """A value without an interval: whole numbers whole, others to three digits."""
    scaled = value / scale.divisor if scale else value
    if not math.isfinite(scaled):
        return MISSING
    if scaled == 0:
        return "0"
    if scaled == int(scaled) and abs(scaled) < _WHOLE_MAX:
        return f"{int(scaled):,}"
    return _fixed(scaled, min(_exponent(scaled) - _DIGITS_WITHOUT_INTERVAL + 1, 0))


def with_unit(text: str, unit: str) -> str:
    """A figure and its unit, one blank between them; ``×`` follows at once."""
    if not unit:
        return text
    return f"{text}{unit}" if unit == "×" else f"{text} {unit}"


def precision(figure: Estimate) -> str:
    """The interval relative to the value, ``±2.1 %``; empty where there is none."""
    relative = figure.precision
    if relative is None or not math.isfinite(relative):
        return ""
    percent = relative * 100
    if percent >= 1000:
        return "±>999 %"
    return f"±{percent:.0f} %" if percent >= 9.95 else f"±{percent:.1f} %"


def moment(text: str) -> str:
    """A time in ISO 8601 to the minute: ``2026-11-21 09:30 UTC``; another text as it is."""
    try:
        when = datetime.fromisoformat(text).astimezone(UTC)
    except ValueError:
        return text
    return f"{when:%Y-%m-%d %H:%M} UTC"


def state(name: str) -> str:
    """The state of a run that is not complete, as a sentence: ``This run was interrupted``."""
    return {
        "interrupted": "This run was interrupted",
        "failed": "This run failed",
        "running": "This run has not ended",
    }.get(name, f"This run is {name}")


def level(value: Level) -> str:
    """A factor's level as text, safe to print."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return clean(str(value))


def setting(parameters: Mapping[str, Level]) -> str:
    """A combination of levels as text: ``cpus=2 threads=8``."""
    return " ".join(f"{clean(name)}={level(value)}" for name, value in parameters.items())


def in_brackets(settings: Sequence[str], most: int) -> str:
    """`` (threads=2; threads=4 and 3 more)``: some settings behind what is said of them, at most so
    many; empty where the only one has no levels."""
    named = [text for text in settings if text]
    more = f" and {len(named) - most} more" if len(named) > most else ""
    return f" ({'; '.join(named[:most])}{more})" if named else ""


def clean_lines(text: str) -> str:
    """The same for text that may have several lines, such as a command."""
    return "\n".join(clean(line) for line in text.splitlines())


def _exponent(value: float) -> int:
    """Power of ten of the first digit."""
    # By the shortest digits that mean it: in seventeen, 1e-12 begins with a 9.
    return Decimal(repr(abs(value))).adjusted()


def _place(value: float, half: float) -> int:
    """Power of ten of the last digit that the half width justifies."""
    least = _exponent(value) - _DIGITS_MAX + 1 if value else None
    if half == 0:
        # Exact: every digit counts, up to the most that are shown.
        if value == 0:
            return 0
        assert least is not None
        digits = Decimal(repr(value)).normalize().as_tuple().exponent
        place = max(least, min(int(digits), 0))
        # Not beyond the greatest number of decimals, unless three digits need it.
        three = _exponent(value) - _DIGITS_WITHOUT_INTERVAL + 1
        return max(place, min(_PLACE_MIN, three))
    # Rounded to two digits before its place is taken: 0.0996 is 0.10.
    place = _exponent(float(f"{half:.1e}")) - 1
    return place if least is None else max(place, least)


def _at_least_one_digit(value: float, place: int) -> int:
    """The place itself, or the first digit of the value where that stands further right."""
    return min(place, _exponent(value)) if value else place


def _fixed(value: float, place: int) -> str:
    """The value rounded to a power of ten, with thousands separators."""
    if (
        _PLACE_MIN <= place <= 0
        and abs(value) < _WHOLE_MAX / 10
        and _is_rounded_alike(value, -place)
    ):
        text = f"{value:,.{-place}f}"
        return text if text.strip("-0.,") else text.removeprefix("-")
    rounded = Decimal(repr(value)).quantize(
        Decimal(1).scaleb(place), rounding=ROUND_HALF_EVEN, context=_EXACT
    )
    if rounded == 0:
        rounded = abs(rounded)
        if place < _PLACE_MIN:  # with so many zeros it is no more exact
            return "0"
    if place < _PLACE_MIN or rounded.adjusted() >= 15:
        return f"{rounded:.{max(rounded.adjusted() - place, 0)}e}".replace("e+", "e")
    return f"{rounded:,.{max(-place, 0)}f}"


def _is_rounded_alike(value: float, decimals: int) -> bool:
    """Is a float rounded as its shortest decimal value is? Not where that lies in the middle
    between two roundings, or has so few decimals that others of the float would show."""
    fraction = repr(value).partition(".")[2]
    left = len(fraction) - decimals
    return left > 0 and "e" not in fraction and not (left == 1 and fraction[-1] == "5")
