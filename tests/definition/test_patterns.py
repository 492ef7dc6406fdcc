"""Patterns are matched in linear time, and a search ends."""

from __future__ import annotations

import time

import pytest

from concurve.definition import patterns
from concurve.definition.study import Extract
from concurve.readings.extraction import MissedExtractError, extracted
from concurve.wire.record import Output, RoleRecord

#: Patterns that take exponential or high polynomial time by backtracking, and texts.
SLOW = {
    "nested": (r"((?:a+)+)b", "a" * 50_000),
    "alternatives": (r"((?:a|aa)+)b", "a" * 50_000),
    "blanks": (r"(\s*\s*\s*\s*)x", " " * 50_000),
    "greedy": (r"(.*.*.*.*.*)=x", "y" * 50_000),
}


def role(text: str) -> RoleRecord:
    return RoleRecord(name="target", stdout=Output(bytes=len(text), head=text))


@pytest.mark.parametrize("name", SLOW)
def test_what_stops_a_backtracking_engine_ends(name: str) -> None:
    pattern, text = SLOW[name]
    with pytest.raises(MissedExtractError):
        extracted(Extract(name="x", pattern=pattern), role(text))


def test_a_search_that_takes_too_long_ends_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = iter(range(100))
    monkeypatch.setattr(time, "monotonic", lambda: float(next(clock)))
    with pytest.raises(MissedExtractError) as missed:
        extracted(Extract(name="x", pattern="(a)"), role("a" * 50))
    assert missed.value.reason.startswith(f"the search took more than {patterns.SEARCH_SECONDS:g}")


def test_text_that_is_no_utf8_is_searched() -> None:
    assert extracted(Extract(name="x", pattern=r"(\d+) µs"), role("\udcff 5 µs")) == 5.0


@pytest.mark.parametrize(
    ("pattern", "text", "figure"),
    [
        (r"(\d+) (?P<unit>ms|s)", "took 12 ms\ntook 5 ms", 0.005),
        (r"in (?P<unit>ms): (?P<value>\d+)", "in ms: 7", 0.007),
        (r"(\d+)(?P<unit>[KMG]iB)", "3KiB 2MiB", 2.0 * 2**20),
        (r"(\d+) (?P<unit>\w+)", "5 parsecs", None),
        (r"(\d+) (?P<unit>\S+)", "5 ops/ms", 5000.0),
        (r"(\d+) (?P<unit>\S+)", "5 us/op", 5e-6),
    ],
)
def test_a_unit_that_the_program_chose_is_converted(
    pattern: str, text: str, figure: float | None
) -> None:
    extract = Extract(name="x", pattern=pattern)
    if figure is None:
        with pytest.raises(MissedExtractError):
            extracted(extract, role(text))
    else:
        assert extracted(extract, role(text)) == pytest.approx(figure)


def test_the_sum_over_all_matches() -> None:
    extract = Extract(name="x", pattern=r"iops=([\d.]+)(?P<unit>k?)", combine="sum")
    assert extracted(extract, role("iops=1.5k\niops=20")) == 1520.0
