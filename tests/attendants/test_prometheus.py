"""Counters in Prometheus' text format, and what changed between two readings."""

from __future__ import annotations

import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from concurve.attendants.prometheus import (
    FIGURES_MAX,
    LINE_CHARS_MAX,
    Sample,
    Series,
    changes,
    indicators,
    parse,
)
from tests.helpers.fuzzing import fuzz

#: As redis_exporter, node_exporter and PostgreSQL's exporter write it, shortened.
TEXT = """\
# HELP redis_commands_processed_total commands_processed_total metric
# TYPE redis_commands_processed_total counter
redis_commands_processed_total 1.2031e+06
# TYPE redis_connected_clients gauge
redis_connected_clients 51
# TYPE redis_commands_duration_seconds_total counter
redis_commands_duration_seconds_total{cmd="get"} 0.25
redis_commands_duration_seconds_total{cmd="set",db="0"} 1.5 1700000000000
# TYPE http_request_duration_seconds histogram
http_request_duration_seconds_bucket{le="0.1"} 33
http_request_duration_seconds_bucket{le="+Inf"} 44
http_request_duration_seconds_sum 9.5
http_request_duration_seconds_count 44
# TYPE rpc_seconds summary
rpc_seconds{quantile="0.5"} 0.05
rpc_seconds_sum 17
path_total{path="C:\\\\dir\\"x\\" }"} 3
temperature NaN
broken{ 1
just words
"""


def named(text: str) -> dict[str, Sample]:
    found = parse(text)
    names = indicators(found)
    return {names[series]: sample for series, sample in found.items()}


def test_figures_have_names_of_indicators() -> None:
    assert named(TEXT) == {
        "redis_commands_processed_total": Sample(1203100.0, True),
        "redis_connected_clients": Sample(51.0, False),
        "redis_commands_duration_seconds_total_cmd_get": Sample(0.25, True),
        "redis_commands_duration_seconds_total_cmd_set_db_0": Sample(1.5, True),
        "http_request_duration_seconds_sum": Sample(9.5, True),
        "http_request_duration_seconds_count": Sample(44.0, True),
        "rpc_seconds_sum": Sample(17.0, True),
        "path_total_path_C_dir_x": Sample(3.0, True),
    }


def test_a_type_says_more_than_a_name() -> None:
    text = (
        "# TYPE odd_total gauge\nodd_total 5\n"
        "# TYPE requests counter\nrequests 7\nrequests_total 8\n"
    )
    assert named(text) == {
        "odd_total": Sample(5.0, False),
        "requests": Sample(7.0, True),
        "requests_total": Sample(8.0, True),
    }


def test_counters_grow_and_other_figures_stand() -> None:
    before = parse("a_total 10\nb 5\ngone_total 1\nreset_total 100\n")
    after = parse("a_total 14\nb 3\nnew_total 6\nreset_total 2\n")
    assert dict(changes(before, after)) == {"a_total": 4.0, "b": 3.0, "new_total": 6.0}, (
        "a counter that was set back is left out"
    )


def test_series_whose_names_are_alike_stay_apart() -> None:
    """Whatever of their labels is no part of a name, and in whichever reading they come first."""
    lines = ('x_total{path="/a/"} {}', 'x_total{path="/a"} {}', 'x_total{path="/a/2"} {}')
    before, after = (
        "".join(
            line.replace("{}", str(value)) + "\n" for line, value in zip(lines, values, strict=True)
        )
        for values in ((5, 100, 1), (6, 102, 4))
    )
    grown = dict(changes(parse(before), parse(after)))
    assert sorted(grown.values()) == [1.0, 2.0, 3.0] and grown["x_total_path__a_2"] == 3.0
    late = dict(changes(parse(before.splitlines()[0]), parse(after)))
    own = {name for name, value in grown.items() if value == 1.0}
    assert own <= {name for name, value in late.items() if value == 1.0}, "compared with itself"


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    for name, sample in named(text).items():
        assert name.isidentifier() or name[0].isdigit()
        assert isinstance(sample.value, float)


@pytest.mark.fuzz
def test_what_changes_between_any_two_texts_is_finite() -> None:
    def read(data: bytes) -> None:
        text = data.decode(errors="replace")
        half = len(text) // 2
        for before, after in ((TEXT, text), (text, TEXT), (text[:half], text[half:])):
            for _, grown in changes(parse(before), parse(after)):
                assert math.isfinite(grown)

    words = [b"# TYPE a counter\n", b"_total ", b'{le="', b'"} ', b"1e308", b"-1e308", b"+Inf"]
    fuzz(read, [TEXT.encode(), b"a_total -1e308\na_total 1e308\n"], words)


def cpu_seconds(text: str) -> float:
    """What it takes to read a text, at best."""

    def once() -> float:
        begun = time.thread_time()
        parse(text)
        return time.thread_time() - begun

    return min(once() for _ in range(5))


@pytest.mark.parametrize("part", ["a", "a=", 'a="b",', '\\"', "{", "} ", "a "])
def test_a_long_line_takes_time_linear_in_its_length(part: str) -> None:
    """Eight times as long takes about eight times as long, and not 64 times."""
    for begin, end in (("x{", "} 1"), ("x{", ""), ('x{a="', '"} 1'), ("", "")):
        short, long = (f"{begin}{part * (n // len(part))}{end}" for n in (8_000, 64_000))
        assert cpu_seconds(long) < 30 * cpu_seconds(short) + 0.02, (begin, part)


def test_what_is_too_much_is_left_out_or_refused() -> None:
    assert parse("x" * LINE_CHARS_MAX + " 1\nok 1\n") == {Series("ok"): Sample(1.0, False)}
    with pytest.raises(ValueError, match="more than"):
        parse("".join(f"a{n} 1\n" for n in range(FIGURES_MAX + 1)))
