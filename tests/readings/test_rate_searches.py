"""Why a search for a rate gave none: what the search of the role said that is asked for."""

from __future__ import annotations

from concurve.readings.rate_searches import why_no_rate
from concurve.wire.record import Outcome, RoleRecord, TrialRecord


def record(**verdicts: str) -> TrialRecord:
    return TrialRecord(
        format=1,
        trial="t",
        outcome=Outcome(kind="ok"),
        roles=tuple(
            RoleRecord(name=name.replace("_", "-"), facts={"slo": {"verdict": verdict}})
            for name, verdict in verdicts.items()
        ),
    )


def test_the_search_of_the_role_is_asked() -> None:
    both = record(load_check="of the check", load="of the load", target="of the target")
    assert why_no_rate(both, "load.slo_rate_per_second", "target") == "of the load"
    assert why_no_rate(both, "slo_rate_per_second", "target") == "of the target"
    assert why_no_rate(both, "load-check.slo_rate_per_second", "target") == "of the check"


def test_of_copies_the_one_that_leads_is_asked() -> None:
    copies = record(load_1="too few windows")
    assert why_no_rate(copies, "load.slo_rate_per_second", "target") == "too few windows"


def test_another_figure_is_none_of_a_search() -> None:
    assert why_no_rate(record(load="x"), "load.latency_ns_p99", "load") is None
    assert why_no_rate(record(load="x"), "load.slo_bad_share", "load") is None
    assert why_no_rate(record(load=""), "load.slo_rate_per_second", "load") is None
    assert why_no_rate(record(other="x"), "load.slo_rate_per_second", "target") is None
