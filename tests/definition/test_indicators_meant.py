"""The indicators that are meant by a name that none has."""

from __future__ import annotations

import pytest

from concurve.definition.indicators_meant import indicator_meant, known_before, names_meant

PLAIN, LOAD = known_before(["./mine"]), known_before(["concurve", "load", "redis://h"])


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("cpu", "cpu_seconds"),
        ("CPU time", "cpu_seconds"),
        ("cpu-time", "cpu_seconds"),
        ("wall", "wall_seconds"),
        ("time", "wall_seconds"),
        ("elapsed", "wall_seconds"),
        ("wal_seconds", "wall_seconds"),
        ("rate", "rate_per_second"),
        ("throughput", "rate_per_second"),
        ("memory", "rss_bytes_max"),
        ("rss", "rss_bytes_max"),
        ("speed", "speedup"),
        ("worker rate", "rate_per_worker"),
    ],
)
def test_what_is_measured_of_any_program_is_found_by_its_usual_words(
    written: str, meant: str
) -> None:
    assert names_meant(written, PLAIN)[0] == meant
    assert names_meant(written, LOAD)[0] == meant


@pytest.mark.parametrize("written", ["p99", "foo", "score", "latency", "", "_"])
def test_what_has_nothing_alike_has_no_suggestion(written: str) -> None:
    assert names_meant(written, PLAIN) == []


def test_a_word_of_a_name_counts_as_a_whole() -> None:
    found = names_meant("p99", LOAD)
    assert found[0] == "latency_ns_p99", "before other times of a load"
    assert found[1:] == ["lag_ns_p99", "service_ns_p99"], "and not p999"
    of_roles = ["load.latency_ns_p999", "load.latency_ns_p99", "server.cpu_seconds"]
    assert names_meant("p99", of_roles) == ["load.latency_ns_p99"]
    assert names_meant("load.p99", of_roles) == ["load.latency_ns_p99"]
    assert names_meant("memory", ["server.rss_bytes_max"]) == ["server.rss_bytes_max"]


def test_a_remedy_names_them_or_all() -> None:
    assert indicator_meant("cpu", ["cpus_used", "cpu_seconds"]) == "did you mean 'cpu_seconds'?"
    assert indicator_meant("xyz", ["a", "b"]) == "one of a, b"
    assert indicator_meant("xyz", ["a", "b"], "another one") == "another one"
