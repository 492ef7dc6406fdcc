"""Several processes of a load are one load: their histograms are added, bin by bin."""

from __future__ import annotations

import msgspec
import pytest
from hdrh.histogram import HdrHistogram
from hypothesis import given, settings
from hypothesis import strategies as st

from concurve.definition.programs import program
from concurve.definition.study import Role
from concurve.definition.study_file import parse_study
from concurve.histogram import Histogram, decode, merged
from concurve.readings.copies import Copied, copied_roles, merged_figures
from concurve.readings.measures import measure
from concurve.readings.operations import asked_of
from concurve.wire.record import Outcome, RoleRecord, TrialRecord
from concurve.wire.report import HistogramLine, IndicatorLine
from tests.cli.test_hdr_log import HOUR_NS, encoded

LATENCIES = st.lists(st.integers(1, 10**8), min_size=1, max_size=40)

#: The library encodes slowly.
FEW = settings(max_examples=20)

STUDY = """
[study]
name = "two-loads"
question = "How fast is it?"

[factors]
threads = [1, 2]

[[roles]]
name = "target"
program = "server"
arguments = ["--io-threads", "{threads}"]
end = "serve"
ready = "report"

[[roles]]
name = "load"
program = "load"
arguments = ["127.0.0.1:7000"]
copies = 2

[[indicators]]
name = "load.latency_ns_p99"
better = "lower"
"""


def load(name: str, latencies: list[int], sessions: list[float], **more: float) -> RoleRecord:
    """A load that reported what concurve-load does: its figures, its sessions, its histogram."""
    own = {"operations": float(len(latencies)), "lag_ns_max": 5.0, **more}
    return RoleRecord(
        name=name,
        wall_ns=1_000_000_000,
        indicators=(
            *(IndicatorLine(indicator=key, value=value) for key, value in own.items()),
            *(
                IndicatorLine(indicator="session_operations", value=value, worker=f"session-{i}")
                for i, value in enumerate(sessions)
            ),
        ),
        histograms=(HistogramLine(histogram="latency", unit="ns", encoded=encoded(latencies)),),
    )


def record(*roles: RoleRecord) -> TrialRecord:
    return TrialRecord(
        format=1,
        trial="t",
        outcome=Outcome(kind="ok"),
        roles=(RoleRecord(name="target", wall_ns=1_000_000_000), *roles),
        wall_ns=1_000_000_000,
    )


def figures(*roles: RoleRecord) -> dict[str, float]:
    """The figures of a trial of the study above."""
    return measure(record(*roles), asked_of(parse_study(STUDY, 2, "mine.toml"))).values


def of_library(latencies: list[int]) -> HdrHistogram:
    histogram = HdrHistogram(1, HOUR_NS, 3)
    for value in latencies:
        histogram.record_value(value)
    return histogram


@FEW
@given(st.lists(LATENCIES, min_size=1, max_size=4))
def test_the_merged_histogram_is_that_of_the_pooled_values_bin_by_bin(
    parts: list[list[int]],
) -> None:
    pooled = decode(encoded([value for part in parts for value in part]))
    assert merged([decode(encoded(part)) for part in parts]) == pooled


@FEW
@given(LATENCIES, st.floats(0.001, 1.0))
def test_percentiles_are_those_of_the_library(latencies: list[int], share: float) -> None:
    ours, theirs = decode(encoded(latencies)), of_library(latencies)
    assert ours.total == theirs.get_total_count()
    assert ours.greatest() == theirs.get_max_value()
    # The library rounds the rank to the nearest one: its value is ours for a rank that is whole.
    rank = max(1, round(share * len(latencies)))
    exact = rank / len(latencies)
    assert ours.quantile(exact - 1e-9) == theirs.get_value_at_percentile(exact * 100)
    assert ours.mean() == pytest.approx(theirs.get_mean_value(), rel=2e-3)


def test_histograms_of_other_bins_are_not_added() -> None:
    fine, coarse = Histogram(3, 1, {5: 1}), Histogram(2, 1, {5: 1})
    with pytest.raises(ValueError, match="bins differ"):
        merged([fine, coarse])
    with pytest.raises(ValueError, match="no histogram"):
        merged([])


def test_the_percentiles_of_two_loads_are_not_the_mean_of_theirs() -> None:
    slow, quick = [9_000_000] * 10, [1_000] * 990
    found = figures(load("load-1", slow, [5.0, 5.0]), load("load-2", quick, [495.0, 495.0]))
    together = decode(encoded(slow + quick))
    assert found["load.latency_ns_p99"] == together.quantile(0.99) == pytest.approx(1000, rel=2e-3)
    assert found["load.latency_ns_p999"] == pytest.approx(9e6, rel=2e-3)
    assert found["load.operations"] == 1000
    assert found["load.lag_ns_max"] == 5
    assert found["load-1.operations"] == 10, "those of each load stay"


def test_fairness_is_that_of_all_sessions() -> None:
    found = figures(load("load-1", [5], [10.0, 10.0]), load("load-2", [5], [30.0, 30.0]))
    assert found["load-1.session_operations_jain"] == pytest.approx(1.0)
    assert found["load.session_operations_jain"] == pytest.approx(80**2 / (4 * 2000))


def test_ages_of_what_was_not_answered_count_as_in_each_load() -> None:
    ages = HistogramLine(histogram="age of unanswered", unit="ns", encoded=encoded([7_000_000] * 5))
    first = load("load-1", [1_000] * 95, [1.0])
    hanging = msgspec.structs.replace(first, histograms=(*first.histograms, ages))
    found = figures(hanging, load("load-2", [1_000] * 100, [1.0]))
    whole = decode(encoded([1_000] * 195 + [7_000_000] * 5))
    assert found["load.latency_ns_p99"] == whole.quantile(0.99)


def test_times_from_sending_are_merged_where_the_loads_have_a_schedule() -> None:
    """A closed loop has none, and does not lack any."""

    def paced(name: str, times: list[int]) -> RoleRecord:
        one = load(name, times, [1.0], rate_asked_per_second=500.0)
        both = (HistogramLine(histogram=it, unit="ns", encoded=encoded(times))
                for it in ("service", "lag"))  # fmt: skip
        return msgspec.structs.replace(one, histograms=(*one.histograms, *both))

    first, second = [1_000] * 99, [9_000] * 101
    found = figures(paced("load-1", first), paced("load-2", second))
    whole = decode(encoded(first + second))
    for name in ("service_ns", "lag_ns"):
        assert found[f"load.{name}_p99"] == whole.quantile(0.99)
    assert found["load.rate_asked_per_second"] == 1000
    study = parse_study(STUDY, 2, "mine.toml")
    closed = measure(
        record(load("load-1", [5], [1.0]), load("load-2", [5], [1.0])), asked_of(study)
    )
    assert not {"load.service_ns", "load.lag_ns"} & closed.absent.keys()
    mixed = measure(record(paced("load-1", [5]), load("load-2", [5], [1.0])), asked_of(study))
    assert mixed.absent["load.service_ns"] == "load-2 reported no histogram 'service'"


def test_a_load_that_reported_nothing_is_never_left_out_of_a_sum() -> None:
    silent = RoleRecord(name="load-2", wall_ns=1_000_000_000)
    study = parse_study(STUDY, 2, "mine.toml")
    found = measure(record(load("load-1", [5], [1.0]), silent), asked_of(study))
    assert "load.operations" not in found.values
    assert found.absent["load.operations"] == "load-2 did not report it"
    assert found.absent["load.latency_ns"] == "load-2 reported no histogram 'latency'"


def test_a_rate_that_each_load_keeps_is_kept_by_all_as_their_sum() -> None:
    """Each sends its own while the others send theirs; if one does not keep it, all do not."""

    def checked(name: str, indicator: str) -> RoleRecord:
        line = IndicatorLine(indicator=indicator, value=1000.0)
        one = load(name, [5], [1.0])
        return msgspec.structs.replace(one, indicators=(*one.indicators, line))

    kept, missed = "slo_rate_low_per_second", "slo_rate_high_per_second"
    assert figures(checked("load-1", kept), checked("load-2", kept))[f"load.{kept}"] == 2000
    study = parse_study(STUDY, 2, "mine.toml")
    found = measure(record(checked("load-1", kept), checked("load-2", missed)), asked_of(study))
    assert f"load.{kept}" not in found.values
    assert found.absent[f"load.{kept}"] == "load-2 did not report it"


def test_a_damaged_histogram_is_a_reason() -> None:
    broken = msgspec.structs.replace(
        load("load-2", [5], [1.0]),
        histograms=(HistogramLine(histogram="latency", unit="ns", encoded="AAAA"),),
    )
    study = parse_study(STUDY, 2, "mine.toml")
    found = measure(record(load("load-1", [5], [1.0]), broken), asked_of(study))
    assert "histogram of load-2 cannot be read" in found.absent["load.latency_ns"]


def test_one_process_of_a_role_has_its_own_figures_alone() -> None:
    found = figures(load("load", [1_000], [1.0]))
    assert found["load.operations"] == 1
    assert "load.latency_ns_p50" not in found, "it reported none, and nothing is added to it"


def test_which_roles_have_copies() -> None:
    study = parse_study(STUDY, 2, "mine.toml")
    (copied,) = copied_roles(study)
    table = program("load")
    assert table is not None
    assert copied == Copied("load", table.copies)
    each = Role(name="probe", command=("true",), host="each")
    with_each = msgspec.structs.replace(study, roles=(*study.roles, each))
    assert [item.role for item in copied_roles(with_each)] == ["load", "probe"]


def test_the_tables_name_what_their_programs_report() -> None:
    table = program("load")
    assert table is not None
    named = {*table.copies.sum, *table.copies.greatest}
    assert named <= set(table.indicators)
    assert all(f"{base}_p99" in table.indicators for base in table.copies.histograms)


def test_a_role_named_like_a_copy_is_none() -> None:
    merged_ones = merged_figures(
        record(load("load-1", [5], []), load("load-x", [5], [])),
        [Copied("load", program("load").copies)],  # type: ignore[union-attr]
        {},
    )
    assert merged_ones.values == {}


def followed(name: str, **more: float) -> RoleRecord:
    return msgspec.structs.replace(
        load(name, [1], [1.0], **more), facts={"slo_outcome": "followed"}
    )


def merged_of(*copies: RoleRecord) -> tuple[dict[str, float], dict[str, str]]:
    """The figures of copies of a load together, and why others are absent."""
    figures = {
        f"{copy.name}.{line.indicator}": line.value
        for copy in copies
        for line in copy.indicators
        if line.worker is None
    }
    rules = program("load").copies  # type: ignore[union-attr]
    found = merged_figures(record(*copies), [Copied("load", rules)], figures)
    return found.values, found.absent


def test_the_load_that_leads_a_search_has_its_answer() -> None:
    leads = load(
        "load-1",
        [1],
        [1.0],
        slo_rate_per_second=900.0,
        slo_rate_low_per_second=800.0,
        closed_rate_per_second=2000.0,
        slo_requests=70.0,
        slo_bad_share=0.02,
    )
    values, absent = merged_of(leads, followed("load-2", slo_requests=30.0, slo_bad_share=0.05))
    assert values["load.slo_rate_per_second"] == 900.0
    assert values["load.slo_rate_low_per_second"] == 800.0, "a bound is no sum"
    assert values["load.closed_rate_per_second"] == 2000.0
    assert values["load.slo_requests"] == 100.0
    assert values["load.slo_bad_share"] == 0.05, "that of the slowest"
    assert "load.slo_rate_high_per_second" not in values, "the search found none"
    assert absent["load.slo_rate_high_per_second"] == "load-1 reported none for all copies"


def test_loads_of_which_none_leads_have_no_common_answer() -> None:
    """One keeps the rate that it checks, and the other misses its own."""
    kept = load("load-1", [1], [1.0], slo_rate_low_per_second=800.0)
    values, absent = merged_of(kept, load("load-2", [1], [1.0], slo_rate_high_per_second=800.0))
    assert "load.slo_rate_low_per_second" not in values
    assert absent["load.slo_rate_low_per_second"] == "load-2 did not report it"
    values, _ = merged_of(kept, load("load-2", [1], [1.0], slo_rate_low_per_second=800.0))
    assert values["load.slo_rate_low_per_second"] == 1600.0
