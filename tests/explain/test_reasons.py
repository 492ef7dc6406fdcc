"""Why a cause is named, in a sentence that fits on two lines."""

from __future__ import annotations

import pytest

from concurve.explain.sentences import REASON_CHARS, reason
from concurve.explain.stations import Station, more_of_it
from concurve.explain.verdict import Verdict
from concurve.findings.explanation import CellExplanation
from tests.helpers.explaining import line_of

OTHERS = "processes outside the trial used 40 % of the machine"


@pytest.mark.parametrize(
    ("verdict", "said"),
    [
        (
            Verdict(
                "client",
                "the load's thread redis-benchmark runs 95 % of the time, while the server used "
                "0.68 CPUs (redis-server 0.68), at 0.20 × the CPU time",
            ),
            "With n=4 the load's thread redis-benchmark runs 95 % of the time, while the server "
            "used 0.68 CPUs",
        ),
        (
            Verdict(
                "cpu",
                "server and load together use all 2 CPUs (main 0.51, load 0.72), at 3.2 × "
                "the CPU time; more clients only queue; threads spin while they wait for others",
            ),
            "With n=4 server and load together use all 2 CPUs (main 0.51, load 0.72)",
        ),
        (
            Verdict("cpu", "8.1 % of it on a CPU, 92 % waiting for one"),
            "With n=4 an operation spends 8.1 % of its thread time on a CPU, 92 % waiting for one",
        ),
        (
            Verdict("kernel", "1.4 × the CPU time, and 60 % of it is spent in the kernel"),
            "With n=4 an operation takes 1.4 × the CPU time, and 60 % of it is spent in the kernel",
        ),
        (
            Verdict("contamination", f"8 % of it on a CPU, 90 % blocked, while {OTHERS}"),
            f"With n=4 {OTHERS}",
        ),
    ],
)
def test_a_reason_is_the_first_clause_of_the_evidence(verdict: Verdict, said: str) -> None:
    assert reason("n=4", verdict) == said
    assert len(said) <= REASON_CHARS


def test_a_long_reason_keeps_what_server_and_load_used() -> None:
    """How many threads the server has goes first: without its figure, the load is not known."""
    used = "server and load together use all 2 CPUs (web 1.80 in 8 threads, load 0.15)"
    said = reason("connections=64 procs=4 variant=unlocked", Verdict("cpu", used, limit="CPUs"))
    assert said == (
        "With connections=64 procs=4 variant=unlocked server and load together use all 2 CPUs "
        "(web 1.80, load 0.15)"
    )


def test_a_long_reason_keeps_the_parts_of_the_cpus_that_are_used_up() -> None:
    """Without one of them the others would not use up the CPUs."""
    used = (
        "the 2 CPUs are used up: 1.09 by the server (nginx 1.09 in 5 processes), 0.61 by its load "
        "(wrk) and 0.29 by others"
    )
    said = reason("connections=64 procs=4 variant=unlocked", Verdict("cpu", used, limit="CPUs"))
    assert said == (
        "With connections=64 procs=4 variant=unlocked the 2 CPUs are used up: 1.09 by the server, "
        "0.61 by its load and 0.29 by others"
    )
    assert reason("procs=4", Verdict("cpu", used)) == (
        "With procs=4 the 2 CPUs are used up: 1.09 by the server (nginx 1.09), 0.61 by its load "
        "and 0.29 by others"
    )


def test_what_else_the_cause_may_be_stays_however_long_the_reason_is() -> None:
    words = "92 % of it waiting for the client, or inside for a lock (in poll or epoll)"
    said = reason(
        "io-threads=4 clients=64 workers=8 procs=16 mode=direct", Verdict("client", words)
    )
    assert said.endswith("waiting for the client, or inside for a lock")


def test_a_run_of_one_setting_names_none() -> None:
    assert reason("", Verdict("cpu", "the 2 CPUs are used up")) == "The 2 CPUs are used up"


@pytest.mark.parametrize(
    ("name", "threads", "said"),
    [
        (
            "redis-benchmark",
            1,
            "more threads (redis-benchmark --threads 2, with -n for 5 s or more)",
        ),
        ("wrk", 2, "more threads (wrk -t4)"),
        ("hload", 1, "more threads (h2load -t2)"),  # the kind of a thread has no digits
        ("ab", 1, "more threads, or run several loads"),
    ],
)
def test_a_load_that_is_used_up_is_to_be_given_more(name: str, threads: int, said: str) -> None:
    remedy = more_of_it(Station(name, threads, 0.95, 0.95))
    assert remedy == f"the load cannot ask for more: give it {said}"
    cell = CellExplanation(
        parameters={"n": 4}, cause="client", evidence="With n=4 …: it is busy.", limit="load",
        trials=5, reason="With n=4 it is busy", remedy=remedy,
    )  # fmt: skip
    assert line_of(cell).text == (
        f"the load generator. With n=4 it is busy. The load cannot ask for more: give it {said}."
    )
