"""The SVG of a page's charts: fewer bytes, the same picture and the same labels."""

from __future__ import annotations

import re

from concurve.report.charts.compact import compact

CIRCLE = "M1.936,0A1.936,1.936,0,1,1,-1.936,0A1.936,1.936,0,1,1,1.936,0"
LABELLED = (
    '<path aria-label="threads=2: 1.23456 s" role="graphics-symbol" '
    f'transform="translate(57.512345,85.71428571428571)" d="{CIRCLE}" stroke="#0072b2"/>'
)


def dot(x: float, y: float, colour: str = "#d55e00", opacity: str = "0.6") -> str:
    return (
        f'<path transform="translate({x},{y})" d="{CIRCLE}" fill="{colour}" stroke-width="2" '
        f'opacity="{opacity}"/>'
    )


def places(svg: str) -> list[tuple[str, float, float]]:
    """The colour and the place of each dot in merged paths, in order."""
    found = []
    for path in re.finditer(r'<path d="([^"]*)" fill="none" stroke="(#\w+)"', svg):
        for x, y in re.findall(r"M([-\d.]+),([-\d.]+)h0", path[1]):
            found.append((path[2], float(x), float(y)))
    return found


def test_dots_of_trials_are_one_path_for_each_look() -> None:
    svg = f"<g>{dot(1.5, 2)}{dot(3, -4.123456)}{dot(5, 6, '#0072b2')}{dot(7, 8)}</g>"
    small = compact(svg)
    assert small.count("<path") == 2
    assert sorted(places(small)) == sorted(
        [
            ("#d55e00", 1.5, 2.0),
            ("#d55e00", 3.0, -4.12),
            ("#d55e00", 7.0, 8.0),
            ("#0072b2", 5.0, 6.0),
        ]
    )
    assert 'stroke-width="3.872" stroke-linecap="round" opacity="0.6"' in small


def test_dots_that_look_otherwise_stay_apart() -> None:
    small = compact(dot(1, 2) + dot(3, 4, opacity="0.3"))
    assert small.count("<path") == 2


def test_a_mark_with_a_label_stays_a_mark() -> None:
    small = compact(dot(1, 2) + LABELLED + dot(3, 4))
    assert 'aria-label="threads=2: 1.23456 s"' in small, "what it says is not rounded"
    assert "translate(57.51,85.71)" in small
    assert places(small) == [("#d55e00", 1.0, 2.0), ("#d55e00", 3.0, 4.0)]


def test_coordinates_are_rounded_to_what_can_be_seen() -> None:
    svg = (
        '<path d="M0.123456,-0.001L1e-7,250"/><text x="3.14159">3.14159</text><line x2="-12.9999"/>'
    )
    small = compact(svg)
    assert small == '<path d="M0.12,-0L1e-7,250"/><text x="3.14">3.14159</text><line x2="-13"/>'


def test_many_trials_take_few_bytes() -> None:
    svg = "".join(dot(number / 7, number / 3) for number in range(3000))
    small = compact(svg)
    assert len(places(small)) == 3000
    assert len(small) < len(svg) / 8
