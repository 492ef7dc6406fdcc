"""The log of histograms, read back by a public library."""

from __future__ import annotations

from pathlib import Path

import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
from hypothesis import given
from hypothesis import strategies as st

from concurve import hdr_log
from concurve.errors import ConcurveError
from concurve.wire.record import Outcome, PhaseRecord, RoleRecord, TrialRecord
from concurve.wire.report import HistogramLine

HOUR_NS = 3_600_000_000_000
SECOND = 1_000_000_000


def encoded(values: list[int]) -> str:
    histogram = HdrHistogram(1, HOUR_NS, 3)
    for value in values:
        histogram.record_value(value)
    return str(histogram.encode().decode())


def record(trial: str, started: int, *histograms: HistogramLine) -> TrialRecord:
    phase = PhaseRecord(name="measure", begin_ns=2 * SECOND, wall_ns=10 * SECOND)
    role = RoleRecord(name="load", histograms=histograms, phases=(phase,), wall_ns=13 * SECOND)
    return TrialRecord(
        format=1,
        trial=trial,
        outcome=Outcome(kind="ok"),
        roles=(role,),
        started_unix_ns=started,
    )


def read(path: Path) -> dict[str, HdrHistogram]:
    """All histograms of a log by their tags; those of one tag together."""
    found: dict[str, HdrHistogram] = {}
    reader = HistogramLogReader(str(path), HdrHistogram(1, HOUR_NS, 3))
    while (histogram := reader.get_next_interval_histogram()) is not None:
        tag = histogram.get_tag() or ""
        if tag in found:
            found[tag].add(histogram)
        else:
            found[tag] = histogram
    return found


def line(values: list[int], worker: str | None = None) -> HistogramLine:
    return HistogramLine(histogram="latency get", unit="ns", encoded=encoded(values), worker=worker)


def test_a_library_reads_what_was_recorded(tmp_path: Path) -> None:
    first = record("a", 1_700_000_000 * SECOND, line([1000] * 90 + [5_000_000] * 10))
    second = record("b", 1_700_000_020 * SECOND, line([2000] * 7, worker="worker-1"))
    path = tmp_path / "run.hdr"
    path.write_text(hdr_log.log([("threads=2, cpus=1", second), ("threads=1", first)]))
    found = read(path)
    assert list(found) == [
        "threads=1/load/latency_get",
        "threads=2_cpus=1/load/latency_get/worker-1",
    ]
    histogram = found["threads=1/load/latency_get"]
    assert histogram.get_total_count() == 100
    assert histogram.get_value_at_percentile(50) == pytest.approx(1000, rel=1e-3)
    assert histogram.get_value_at_percentile(95) == pytest.approx(5_000_000, rel=1e-3)
    assert histogram.get_start_time_stamp() == pytest.approx(1_700_000_002_000)
    assert histogram.get_end_time_stamp() == pytest.approx(1_700_000_012_000)


@given(st.lists(st.integers(1, HOUR_NS), max_size=20))
def test_the_greatest_value_stands_in_the_log_in_ms(values: list[int]) -> None:
    text = hdr_log.log([("cell", record("a", 0, line(values)))])
    greatest = float(text.splitlines()[-1].split(",")[3])
    histogram = HdrHistogram(1, HOUR_NS, 3)
    for value in values:
        histogram.record_value(value)
    assert greatest == pytest.approx(histogram.get_max_value() / 1e6, abs=6e-4)


def test_without_histograms_there_is_no_log() -> None:
    with pytest.raises(ConcurveError, match="no program of this run reported a histogram"):
        hdr_log.log([("cell", record("a", 0))])


@pytest.mark.parametrize("text", ["", "x", "AAAA", encoded([1, 2, 3])[:-8]])
def test_a_histogram_that_cannot_be_read_is_named(text: str) -> None:
    broken = HistogramLine(histogram="latency", unit="ns", encoded=text)
    with pytest.raises(ConcurveError, match="trial a: the histogram cell/load/latency is not"):
        hdr_log.log([("cell", record("a", 0, broken))])
