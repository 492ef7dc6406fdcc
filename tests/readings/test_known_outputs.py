"""The figures that are read by name from the usual output of tools, of more than one version."""

from __future__ import annotations

from pathlib import Path

import pytest

from concurve.cli.sweep import TOOLS
from concurve.definition.extracting import parse_extract, tools
from concurve.readings.extraction import MissedExtractError, extracted
from concurve.wire.record import Output, RoleRecord

OUTPUTS = Path(__file__).parent / "outputs"

#: The file → the tool, and every figure that must be read, in base units.
EXPECTED: dict[str, tuple[str, dict[str, float]]] = {
    "hyperfine-1.15": ("hyperfine", {
        "mean_seconds": 0.0585, "deviation_seconds": 0.0071, "min_seconds": 0.0514}),
    "hyperfine-1.15-single": ("hyperfine", {"mean_seconds": 0.0511}),
    "hyperfine-1.18-several": ("hyperfine", {
        "mean_seconds": 912.4e-6, "deviation_seconds": 31e-6, "min_seconds": 880.1e-6}),
    "pgbench-15": ("pgbench", {
        "tps": 1535.6786, "latency_seconds": 1.296e-3, "operations": 1540,
        "failed_transactions": 0}),
    "pgbench-15-scripts": ("pgbench", {
        "tps": 81.318631, "latency_seconds": 12.297e-3, "operations": 82,
        "failed_transactions": 0}),
    "pgbench-9.6": ("pgbench", {
        "tps": 85.296346, "latency_seconds": 11.013e-3, "operations": 10000}),
    "pgbench-9.5": ("pgbench", {
        "tps": 4660.296346, "latency_seconds": 0.859e-3, "operations": 9310}),
    "redis-benchmark-7.0": ("redis-benchmark", {
        "requests_per_second": 12254.9, "latency_seconds_p50": 0.063e-3,
        "latency_seconds_p99": 4.847e-3, "operations": 5000}),
    "redis-benchmark-7.0-quiet": ("redis-benchmark", {
        "requests_per_second": 15290.52, "latency_seconds_p50": 0.063e-3}),
    "redis-benchmark-5.0": ("redis-benchmark", {
        "requests_per_second": 133511.35, "operations": 100000}),
    "wrk-4.1": ("wrk", {
        "requests_per_second": 21132.07, "latency_seconds": 525.29e-6,
        "latency_seconds_p99": 1.56e-3, "operations": 44377, "failed_responses": 12,
        "response_bytes": 4.54 * 1024**2 / 44377, "wrk_threads": 2, "wrk_connections": 16}),
    "wrk-4.1-errors": ("wrk", {
        "requests_per_second": 12093.62, "latency_seconds": 1.29e-3, "operations": 12107,
        "failed_responses": 12107, "socket_errors": 123, "late_responses": 7,
        "response_bytes": 3.72 * 1024**2 / 12107,
        "wrk_threads": 2, "wrk_connections": 100}),
    "wrk-4.2-short": ("wrk", {
        "requests_per_second": 35710.03, "latency_seconds": 79.41e-3, "operations": 1080925,
        "socket_errors": 2847, "late_responses": 4898,
        "response_bytes": 191.69 * 1024**2 / 1080925, "wrk_threads": 12,
        "wrk_connections": 400}),
    "wrk2-4.0": ("wrk", {
        "requests_per_second": 2000.28, "latency_seconds": 6.6e-3,
        "latency_seconds_p99": 10.69e-3, "operations": 60018,
        "response_bytes": 19.81 * 1024**2 / 60018}),
    "sysbench-1.0-oltp": ("sysbench", {
        "events_per_second": 30.94, "latency_seconds": 64.51e-3, "latency_seconds_p95": 86e-3,
        "operations": 620, "failed_events": 0}),
    "sysbench-1.0-cpu": ("sysbench", {
        "events_per_second": 2011.36, "latency_seconds": 0.5e-3, "latency_seconds_p95": 0.51e-3,
        "operations": 20117}),
    "sysbench-1.1-oltp": ("sysbench", {
        "events_per_second": 259.3851, "latency_seconds": 3.85e-3,
        "latency_seconds_p95": 4.65e-3, "operations": 31128}),
    "sysbench-0.4-oltp": ("sysbench", {
        "events_per_second": 541.20, "latency_seconds": 14.77e-3,
        "latency_seconds_p95": 25.27e-3, "operations": 10000, "failed_events": 1}),
    "sysbench-1.1-threads": ("sysbench", {
        "events_per_second": 1234.5678, "latency_seconds": 0.81e-3,
        "latency_seconds_p95": 0.92e-3, "operations": 12347}),
    "sysbench-fileio-1.0": ("sysbench-fileio", {
        "operations_per_second": 447.81 + 298.54 + 958.51, "latency_seconds": 0.58e-3,
        "latency_seconds_p95": 1.64e-3, "operations": 51268}),
    "sysbench-fileio-1.1": ("sysbench-fileio", {
        "operations_per_second": 1234.56 + 823.04 + 2633.95, "latency_seconds": 0.21e-3,
        "latency_seconds_p95": 0.83e-3}),
    "sysbench-fileio-0.4": ("sysbench-fileio", {
        "operations_per_second": 998.49, "latency_seconds": 0.4e-3,
        "latency_seconds_p95": 0.02e-3, "operations": 10000}),
    "fio-3.32-mixed": ("fio", {
        "iops": 13487, "bytes_per_second": 48.8 * 2**20 + 3950 * 2**10,
        "latency_seconds": 28.07318e-6, "read_latency_seconds": 68.75e-6,
        "write_latency_seconds": 28.07318e-6}),
    "fio-2.1": ("fio", {
        "iops": 6086, "bytes_per_second": 24345e3, "latency_seconds": 330.2e-6,
        "read_latency_seconds": 330.2e-6}),
    "k6-1.0": ("k6", {
        "requests_per_second": 6.56109, "latency_seconds": 0.14036,
        "latency_seconds_p95": 0.14821, "iterations_per_second": 6.56109,
        "operations": 45, "failed_share": 0}),
    "k6-1.0-full": ("k6", {
        "requests_per_second": 6.56109, "latency_seconds": 0.14036,
        "latency_seconds_p95": 0.14821, "iterations_per_second": 6.56109,
        "operations": 45, "failed_share": 2.22, "failed_checks_share": 10}),
    "k6-0.48": ("k6", {
        "requests_per_second": 4.36938, "latency_seconds": 144.56e-6,
        "latency_seconds_p95": 215.95e-6, "iterations_per_second": 1.092345,
        "operations": 180, "failed_share": 12.5}),
    "ab-2.3": ("ab", {
        "requests_per_second": 9932.36, "latency_seconds": 0.805e-3, "operations": 2000,
        "failed_requests": 0, "response_bytes": 6}),
    "ab-2.3-errors": ("ab", {
        "requests_per_second": 50053.81, "latency_seconds": 0.16e-3, "operations": 2000,
        "failed_requests": 0, "failed_responses": 500, "response_bytes": 6}),
    "hey-0.1.5": ("hey", {
        "requests_per_second": 4541.3266, "latency_seconds": 1.7e-3,
        "latency_seconds_p99": 12.3e-3, "operations": 2000, "failed_responses": 500,
        "response_bytes": 6}),
    "hey-0.1.5-errors": ("hey", {
        "requests_per_second": 1657.1286, "latency_seconds": 4.4e-3,
        "latency_seconds_p99": 23.8e-3, "operations": 200, "request_errors": 6,
        "response_bytes": 6}),
    "oha-1.9-errors": ("oha", {
        "requests_per_second": 16947.3796, "latency_seconds": 0.4706e-3,
        "latency_seconds_p99": 4.412e-3, "operations": 2000, "failed_responses": 400,
        "request_errors": 60, "response_bytes": 6}),
    "oha-0.5": ("oha", {
        "requests_per_second": 14321.1203, "latency_seconds": 0.5e-3,
        "latency_seconds_p99": 1.9e-3, "operations": 28673,
        "response_bytes": 6}),
    "bombardier-1.1": ("bombardier", {
        "requests_per_second": 48231, "latency_seconds": 1.32e-3, "operations": 200000,
        "failed_responses": 0, "request_errors": 0}),
    "bombardier-1.2-errors": ("bombardier", {
        "requests_per_second": 9052.87, "latency_seconds": 3.51e-3,
        "latency_seconds_p99": 18.02e-3, "operations": 45280, "failed_responses": 700,
        "request_errors": 468}),
    "h2load-1.52": ("h2load", {
        "requests_per_second": 13522.0, "latency_seconds": 591e-6, "operations": 27044,
        "failed_requests": 0}),
    "h2load-1.52-errors": ("h2load", {
        "requests_per_second": 5889.28, "latency_seconds": 608e-6, "operations": 200,
        "failed_requests": 170}),
    "h2load-1.69": ("h2load", {
        "requests_per_second": 41613.78, "latency_seconds": 182e-6,
        "latency_seconds_p99": 1.12e-3, "operations": 2000, "failed_requests": 0}),
    "vegeta-12": ("vegeta", {
        "requests_per_second": 321.09, "latency_seconds": 302.346e-6,
        "latency_seconds_p99": 1.044e-3, "operations": 927, "failed_requests": 231}),
    "vegeta-6-errors": ("vegeta", {
        "requests_per_second": 90.1, "latency_seconds": 3.204415e-3,
        "latency_seconds_p99": 9.407716e-3, "operations": 900, "failed_requests": 400}),
    "memtier_benchmark-2.1": ("memtier_benchmark", {
        "operations_per_second": 11565.37, "latency_milliseconds": 0.69358,
        "latency_milliseconds_p99": 13.759, "operations": 8000}),
    "memtier_benchmark-1.4-cluster": ("memtier_benchmark", {
        "operations_per_second": 59981.25, "latency_milliseconds": 1.66421,
        "latency_milliseconds_p99": 4.735, "operations": 1200000}),
    "memtier_benchmark-1.2": ("memtier_benchmark", {
        "operations_per_second": 108153.65, "latency_milliseconds": 1.846}),
    "ycsb-0.18": ("ycsb", {
        "operations_per_second": 4255.31914893617, "read_latency_seconds": 0.637e-6,
        "read_latency_seconds_p99": 0, "update_latency_seconds": 0.02193419740777667e-6,
        "operations": 3003}),
    "ycsb-0.18-errors": ("ycsb", {
        "operations_per_second": 7797.270955165692, "read_latency_seconds": 0.007343124165554072e-6,
        "read_latency_seconds_p99": 0, "update_latency_seconds": 0.01199400299850075e-6,
        "operations": 3499, "failed_operations": 501}),
    "iperf3-3.12": ("iperf3", {"bits_per_second": 12.5e9, "retransmits": 0}),
    "iperf3-3.12-parallel": ("iperf3", {"bits_per_second": 9.46e9, "retransmits": 16}),
    "iperf3-3.12-bidir": ("iperf3", {"bits_per_second": 6.59e9, "retransmits": 3}),
    "iperf3-3.12-udp": ("iperf3", {"bits_per_second": 78.8e6, "lost_share": 20}),
    "iperf3-3.1-udp": ("iperf3", {"bits_per_second": 95.1e6, "lost_share": 0}),
    "jmh-1.37": ("jmh", {"score_per_second": 1234567.0}),
    "jmh-1.21-single": ("jmh", {"score_per_second": 2201034.901}),
    "jmh-1.37-decimal-comma": ("jmh", {"score_per_second": 1234567.0}),
    "jmh-0.5": ("jmh", {"score_per_second": 57217.1}),
    "jmh-time-1.37": ("jmh-time", {"score_seconds": 0.145e-6}),
    "jmh-time-1.19": ("jmh-time", {"score_seconds": 0.142e-3}),
    "jmh-time-1.37-no-signs": ("jmh-time", {"score_seconds": 0.145e-6}),
    "criterion-0.5": ("criterion", {
        "iteration_seconds": 1.2249e-6, "elements_per_second": 816390.0}),
    "criterion-0.2": ("criterion", {
        "iteration_seconds": 3.8957e-3, "bytes_per_second": 17 * 2**20}),
    "google-benchmark-1.8": ("google-benchmark", {
        "iteration_seconds": 1299e-9, "items_per_second": 6.22113e6}),
    "google-benchmark-1.4": ("google-benchmark", {
        "iteration_seconds": 55e-6, "items_per_second": 1.25e6}),
    "google-benchmark-1.8-blanks": ("google-benchmark", {
        "iteration_seconds": 1234e-9, "items_per_second": 6.5e6}),
    "google-benchmark-1.8-repeated": ("google-benchmark", {"iteration_seconds": 2.21e-3}),
}  # fmt: skip


def role_of(text: str) -> RoleRecord:
    return RoleRecord(name="target", stdout=Output(bytes=len(text), head=text))


def read(tool: str, text: str) -> dict[str, float]:
    found = {}
    for item in parse_extract(tool):
        try:
            found[item.extract.name] = extracted(item.extract, role_of(text))
        except MissedExtractError:
            assert item.extract.optional, f"{item.extract.name} must be there"
    return found


@pytest.mark.parametrize("name", EXPECTED)
def test_every_figure_of_an_output_is_read(name: str) -> None:
    tool, figures = EXPECTED[name]
    text = (OUTPUTS / f"{name}.txt").read_text(encoding="utf-8")
    assert read(tool, text) == pytest.approx(figures)


def test_every_output_and_every_tool_is_tried_with_more_than_one() -> None:
    assert {path.stem for path in OUTPUTS.iterdir()} == set(EXPECTED)
    tried = [tool for tool, _ in EXPECTED.values()]
    assert set(tried) == set(tools()) == set(TOOLS)
    assert all(tried.count(tool) > 1 for tool in tools())


@pytest.mark.parametrize("tool", tools())
def test_a_tool_has_a_primary_figure_with_a_direction_and_a_unit(tool: str) -> None:
    first, *others = parse_extract(tool)
    assert first.is_primary and not first.extract.optional and first.extract.unit
    assert all(item.extract.optional and not item.is_primary for item in others)
    # What a tool was told, and prints, is neither better nor worse.
    told = {"wrk_threads", "wrk_connections"} if tool == "wrk" else set()
    undirected = {it.indicator.name for it in (first, *others) if it.indicator.better == "neither"}
    # Neither is the size of what it was sent.
    assert undirected - {"response_bytes"} == told


def test_of_several_runs_of_k6_the_last_one_counts() -> None:
    full, plain = ((OUTPUTS / f"k6-1.0{end}.txt").read_text("utf-8") for end in ("-full", ""))
    again = full.replace("6.56109/s", "7.5/s").replace("10.00%", "20.00%")
    found = read("k6", plain + full + again)
    assert (found["requests_per_second"], found["failed_checks_share"]) == (7.5, 20)


def test_the_group_of_a_long_summary_of_k6_is_not_taken_for_its_total() -> None:
    """The total may be before the gap, or in it; an old summary has neither total nor groups."""
    full, old = ((OUTPUTS / f"k6-{end}.txt").read_text("utf-8") for end in ("1.0-full", "0.48"))
    begin = full.index("  █ GROUP")
    rate = parse_extract("k6")[0].extract

    def cut(head: str, tail: str) -> RoleRecord:
        return RoleRecord(name="target", stdout=Output(head=head, tail=tail, dropped=777))

    for head in (full[:begin], "running\n"):
        with pytest.raises(MissedExtractError) as missed:
            extracted(rate, cut(head, full[begin:]))
        assert "777 bytes of" in missed.value.reason
    assert extracted(rate, cut("running\n", full)) == 6.56109
    assert extracted(rate, cut("running\n", old)) == 4.36938


@pytest.mark.parametrize("score", ["≈ 10⁻⁹", "? 10??"])
def test_a_score_that_jmh_rounds_away_is_named(score: str) -> None:
    """That of the benchmark before it is none of the last one."""
    lines = f"Bench.cold  avgt  5  0.002 ± 0.001  s/op\nBench.warm  avgt  5  {score}  s/op\n"
    with pytest.raises(MissedExtractError) as missed:
        extracted(parse_extract("jmh-time")[0].extract, role_of(lines))
    assert f"'{score}' is a figure that is rounded" in missed.value.reason
    assert "-tu ns" in missed.value.remedy


FIO = "job{0}: (groupid=0, jobs=1): err= 0: pid={0}\n  read: IOPS=1000, BW=3950KiB/s\n"


def test_a_sum_over_an_output_of_which_a_part_was_dropped_is_refused() -> None:
    head, tail = FIO.format(1), FIO.format(64)
    iops = parse_extract("fio")[0].extract
    whole = RoleRecord(name="target", stdout=Output(head=head, tail=tail))
    assert extracted(iops, whole) == 2000
    cut = RoleRecord(name="target", stdout=Output(head=head, tail=tail, dropped=4777))
    with pytest.raises(MissedExtractError) as missed:
        extracted(iops, cut)
    assert missed.value.reason == "it is a sum, and 4,777 bytes of the output were dropped"
    assert "--group_reporting" in missed.value.remedy


@pytest.mark.parametrize("tool", tools())
def test_the_output_of_another_program_has_none_of_it(tool: str) -> None:
    first = parse_extract(tool)[0]
    with pytest.raises(MissedExtractError):
        extracted(first.extract, role_of("done in 5 s\n12 files, 3 errors\n"))


@pytest.mark.parametrize(
    ("pattern", "printed", "figure"),
    [
        (r"(?P<per>\d+) in (\d+)(?P<unit>MB)", "4 in 8MB", 2e6),
        (r"(?P<per>\d+) in (\d+)(?P<unit1024>[KM]?B)", "4 in 8MB", 2 * 1024**2),
        (r"(?P<per>\d+) in (\d+)(?P<unit1024>[KM]?B)", "4 in 8B", 2),
        # A name that only begins so is that of the figure.
        (r"(?P<percent>\d+) %, (\d+)", "4 %, 8", 4),
    ],
)
def test_a_figure_may_be_divided_by_a_count_beside_it(
    pattern: str, printed: str, figure: float
) -> None:
    (found,) = parse_extract(f"size={pattern}")
    assert extracted(found.extract, role_of(printed)) == figure


def test_nothing_is_divided_by_no_count() -> None:
    (found,) = parse_extract(r"size=(?P<per>\d+) in (\d+)B")
    with pytest.raises(MissedExtractError) as missed:
        extracted(found.extract, role_of("0 in 8B"))
    assert "divided by '0'" in missed.value.reason
