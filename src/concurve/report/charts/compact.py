"""The SVG of a chart in fewer bytes, for a page with many: what a reader sees and can point at
stays.

Coordinates are rounded to a hundredth of a pixel. The dots of single trials, which have no label,
become one path for each colour: thousands of them would otherwise make most of a page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

#: Attributes that hold coordinates.
_COORDINATES = re.compile(r' (?:d|transform|x|y|x1|x2|y1|y2|width|height)="[^"]*"')
_LONG = re.compile(r"-?\d+\.\d{3,}(?:e-?\d+)?")

_NUMBER = r"-?[\d.]+(?:e-?\d+)?"
#: A filled circle without a label, as Vega draws it: its place, radius, colour and opacity.
_DOT = re.compile(
    rf'<path transform="translate\((?P<x>{_NUMBER}),(?P<y>{_NUMBER})\)" '
    r'd="M(?P<r>[\d.]+),0A(?P=r),(?P=r),0,1,1,-(?P=r),0A(?P=r),(?P=r),0,1,1,(?P=r),0" '
    r'fill="(?P<colour>#\w+)" stroke-width="[\d.]+" opacity="(?P<opacity>[\d.]+)"/>'
)
_PLAIN = re.sub(r"\(\?P<\w+>", "(?:", _DOT.pattern).replace("(?P=r)", "[0-9.]+")
_DOTS = re.compile(f"(?:{_PLAIN})+")


def compact(svg: str) -> str:
    """The same picture in fewer bytes."""
    return _COORDINATES.sub(lambda match: _LONG.sub(_rounded, match[0]), _together(svg))


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def _together(svg: str) -> str:
    """Dots side by side, as one path of each look."""
    return _DOTS.sub(lambda run: "".join(_paths(run[0])), svg)


def _paths(run: str) -> Iterator[str]:
    """A line of no length with round ends is a dot."""
    places: dict[tuple[str, str, str], list[str]] = {}
    for dot in _DOT.finditer(run):
        look = (dot["r"], dot["colour"], dot["opacity"])
        places.setdefault(look, []).append(f"M{dot['x']},{dot['y']}h0")
    for (radius, colour, opacity), lines in places.items():
        yield (
            f'<path d="{"".join(lines)}" fill="none" stroke="{colour}" '
            f'stroke-width="{2 * float(radius):g}" stroke-linecap="round" opacity="{opacity}"/>'
        )
