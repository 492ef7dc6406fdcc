"""Durations, read and written."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from concurve import words
from concurve.definition.readiness import parse_ready
from concurve.definition.study_line import parse_repeats
from concurve.definition.units import (
    base_unit,
    in_base_unit,
    is_time_unit,
    parse_duration,
    parse_share,
    seconds_by_name,
    time_by_name,
    units_by_name,
)
from concurve.errors import StudyError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("1.5s", 1.5), ("200ms", 0.2), ("4m", 240), ("1h", 3600), ("7 us", 7e-6),
     (30, 30), (2.5, 2.5), (" 3 s ", 3)],
)  # fmt: skip
def test_a_duration_in_seconds(text: str | float, seconds: float) -> None:
    assert parse_duration(text, "--timeout") == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("seconds", "text"), [(7.6, "8s"), (120, "120s"), (121, "3m"), (1443, "25m"), (35_941, "10h")]
)
def test_a_duration_as_an_option_has_it(seconds: float, text: str) -> None:
    assert words.option_duration(seconds) == text
    assert parse_duration(text, "--max-time") >= round(seconds)


@pytest.mark.parametrize(
    "text", ["", "fast", "5 d", "-3s", "1e3", "inf", "nan", "1,5s", "0", "0s", "9000h"]
)
def test_what_is_no_duration_is_refused_with_the_option(text: str) -> None:
    with pytest.raises(StudyError) as refused:
        parse_duration(text, "--timeout")
    assert refused.value.what.startswith("--timeout: ")
    assert refused.value.remedy


TIMES = (
    "elapsed makespan minutes ms_per_op seconds_per_operation seconds wallTime wall_s p99_latency "
    "latency_p99_ms ms/op runtime total_time cpu_seconds query_ms elapsed_sec request_latency_us"
)
RATES = (
    "requests_per_second ops/s msgs/sec rps tps timesteps throughput_ms hit_rate speedup "
    "rate_per_second operations_per_ms rss_bytes_max workers s latencies_min transactions "
    "aws_s3_requests load_10s"
)
EITHER = "ops_sec MB_sec tx_s requests_ms opsSec rows_seconds"


@pytest.mark.parametrize(
    ("names", "time"), [(TIMES, True), (RATES, False), (EITHER, None)], ids=["times", "rates", "?"]
)
def test_names_of_times(names: str, time: bool | None) -> None:
    assert {name: time_by_name(name) for name in names.split()} == dict.fromkeys(
        names.split(), time
    )


@pytest.mark.parametrize(
    ("names", "seconds"),
    [
        ("latency_ms ms_per_op ms/op ms millis latencyMs latency_ms_min ms_min p99_msec", 1e-3),
        ("us_per_op µs latency_us_p99 microseconds", 1e-6),
        ("minutes minutes_per_run", 60.0),
        ("wall_s seconds_per_operation", 1.0),
        ("s latency latencies_min min load_min", None),
        ("latency_us_min", 1e-6),
        ("latency_ms_1min latency_ms_10s p99ms latency_ms_99th latencyMsP99", 1e-3),
        ("aws_s3_latency_ms us_east_latency_ms second_try_ms latency_us_as_ms", 1e-3),
        ("us_east_ms_per_op us_east_ms_latency_p99 second_try_ms_mean latency_per_op_ms", 1e-3),
        ("ms_of_second_try latency_ms_second_try us_east_ms_again", None),
        ("second_try_seconds latency_s_of_second_try", 1.0),
        ("aws_s3_latency latency_per_second load_10s", None),
    ],
)
def test_the_unit_that_a_name_of_a_time_says(names: str, seconds: float | None) -> None:
    found = {name: seconds_by_name(name) for name in names.split()}
    assert found == dict.fromkeys(names.split(), seconds)


def test_the_units_that_a_name_may_mean() -> None:
    assert units_by_name("ms_of_second_try") == ["ms", "second"]
    assert units_by_name("aws_s3_latency_per_second") == []


@pytest.mark.parametrize(
    ("unit", "is_time"),
    [("ms", True), ("s", True), ("ns/op", True), ("k", False), ("ops/ms", False), ("", False),
     ("ms/request", True), ("m/s", False), ("ms/s", False),
     ("MB", False), ("ms/", False), ("milliseconds", True), ("min", True), ("hours", True)],
)  # fmt: skip
def test_units_of_time(unit: str, is_time: bool) -> None:
    assert is_time_unit(unit) is is_time
    assert not is_time or in_base_unit(unit) is not None


@pytest.mark.parametrize(
    ("unit", "base"),
    [("ms", "s"), ("s", "s"), ("seconds", "seconds"), ("min", "s"), ("ns/op", "s/op"), ("", ""),
     ("ops/ms", "ops/s"), ("1/s", "1/s"), ("req/min", "req/s"), ("MB/s", "B/s"), ("KiB", "B"),
     ("Mbit/s", "bit/s"), ("krps", "rps"), ("k", "1"), ("%", "%"), ("tasks", "tasks"),
     ("task/s", "task/s"), ("m/s", "m/s"), ("B", "B"), ("Mbps", "bps"), ("kB/op", "B/op"),
     ("kiops", "iops"), ("krows/min", "rows/s"), ("xyz", "xyz"), ("Mxyz/min", "Mxyz/min")],
)  # fmt: skip
def test_the_unit_of_a_figure_that_was_converted(unit: str, base: str) -> None:
    assert base_unit(unit) == base


@pytest.mark.parametrize(
    ("unit", "factor"),
    [("MB/s", 1e6), ("MiB/s", 2.0**20), ("B/s", 1), ("Mbit/s", 1e6), ("Mb/s", 1e6), ("bps", 1),
     ("Mbps", 1e6), ("krps", 1e3), ("rps", 1), ("kiops", 1e3), ("KIOPS", 1e3), ("1/s", 1),
     ("rows/min", 1 / 60), ("krows/ms", 1e6), ("ops/ms", 1e3), ("M/s", 1e6), ("req/h", 1 / 3600),
     ("MB", 1e6), ("k", 1e3), ("", 1), ("ns/op", 1e-9), ("ms/request", 1e-3), ("kB/op", 1e3),
     # Of these it is not known whether they begin with a prefix.
     ("Mxyz/s", None), ("mb/s", None), ("m/s", None), ("parsecs", None), ("%", None)],
)  # fmt: skip
def test_what_one_of_a_unit_is_in_base_units(unit: str, factor: float | None) -> None:
    known = in_base_unit(unit)
    assert known == (None if factor is None else pytest.approx(factor))
    assert (known in (None, 1)) == (base_unit(unit) == unit), "both agree"


@pytest.mark.parametrize(("text", "share"), [("2%", 0.02), (" 1.5 % ", 0.015), ("0.02", 0.02)])
def test_a_share(text: str, share: float) -> None:
    assert parse_share(text, "--precision") == pytest.approx(share)


@pytest.mark.parametrize("text", ["2%x", "2%%", "1%5", "2 percent", "", "%", "100%"])
def test_what_is_no_share_is_refused_with_the_option(text: str) -> None:
    with pytest.raises(StudyError, match=r"^--precision: .* is not a share") as refused:
        parse_share(text, "--precision")
    assert refused.value.remedy


def test_a_unit_beside_a_number_may_be_a_whole_word() -> None:
    assert in_base_unit("milliseconds") == in_base_unit("ms") == 1e-3


@pytest.mark.parametrize(
    ("parse", "text", "typed"),
    [
        (lambda text: parse_duration(text, "--max-time"), "5min", "5m"),
        (lambda text: parse_duration(text, "--max-time"), "90 seconds", "90s"),
        (lambda text: parse_duration(text, "--max-time"), "200 milliseconds", "200ms"),
        (lambda text: parse_duration(text, "--max-time"), "1.5 Hours", "1.5h"),
        (lambda text: parse_share(text, "--precision"), "3", "3%"),
        (parse_repeats, "5-10", "5..10"),
        (parse_repeats, "10..5", "5..10"),
        (parse_repeats, "5 to 10", "5..10"),
        (lambda text: parse_ready(text, "--ready"), "8080", "tcp:8080"),
        (lambda text: parse_ready(text, "--ready"), "localhost:8080", "tcp:localhost:8080"),
        (lambda text: parse_ready(text, "--ready"), "{free_port}", "tcp:{free_port}"),
    ],
)
def test_a_value_in_another_form_is_named_as_it_is_typed(
    parse: Callable[[str], object], text: str, typed: str
) -> None:
    with pytest.raises(StudyError) as error:
        parse(text)
    assert str(error.value).endswith(f"try: {typed}")
    parse(typed)


@pytest.mark.parametrize("text", ["soon", "5 parsecs", ""])
def test_what_is_no_duration_at_all_has_examples(text: str) -> None:
    with pytest.raises(StudyError, match=r"200ms, 1\.5s, 4m, 1h"):
        parse_duration(text, "--max-time")
