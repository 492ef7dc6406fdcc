"""A run says early that its trials are disturbed, by whom, and says it once."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from concurve.definition.study import Rules
from concurve.findings.again import ATTACH_IT, lowest_priority
from concurve.measuring.disturbances import Disturbances
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.report.progress import Progress
from concurve.store import Store
from concurve.wire.record import ForeignProcess, HostRecord, TrialRecord
from concurve.wire.spec import TrialSpec
from tests.helpers.fakes import FakeClock, FakeEngine, record_of, small_study


def beside(**cpus: float) -> TrialRecord:
    """A trial of a second beside processes that take so many CPUs."""
    spec = TrialSpec(trial="r/0/0/0", roles=())
    found = [
        ForeignProcess(pid=10 + place, name=name, nice=0, cpu_ns=round(1e9 * used))
        for place, (name, used) in enumerate(cpus.items())
        if name != "others"
    ]
    record = record_of(spec, 1.0)
    machine = msgspec.structs.replace(
        record.machine,
        foreign_processes=tuple(found),
        foreign_cpu_ns=round(1e9 * sum(cpus.values())),
        foreign_low_priority_ns=0,
    )
    return msgspec.structs.replace(record, machine=machine)


def told(found: Disturbances, record: TrialRecord, trials: int, quiet: int = 0) -> list[str]:
    said = []
    for place in range(trials + quiet):
        found.take(record, is_disturbed=place < trials)
        said.append(found.said())
    return [text for text in said if text]


def test_a_program_that_may_be_the_server_is_to_be_attached() -> None:
    (said,) = told(Disturbances(True, True), beside(postgres=0.6), 4)
    assert said == (
        "4 of 4 trials disturbed so far: postgres (PID 10) took 0.6 CPUs; if postgres is the "
        f"server that this command loads: {ATTACH_IT} in a new run; Ctrl-C keeps what is measured"
    )
    for nobody in (beside(others=1.2), beside()):
        assert "--attach" not in told(Disturbances(True, True), nobody, 4)[0]
    unnamed = Disturbances(may_load_a_stranger=True)
    assert "--attach" not in told(unnamed, beside(postgres=0.6), 4)[0], "nothing shows a client"


def test_it_is_said_early_and_once() -> None:
    assert told(Disturbances(), beside(firefox=0.6, make=0.2), 40) == [
        "4 of 4 trials disturbed so far: others took 0.8 CPUs, firefox (PID 10) 0.6 of them; "
        "Ctrl-C keeps what is measured"
    ]


def test_a_program_has_its_processes_and_the_command_that_quiets_them() -> None:
    def quieting(nice: Mapping[int, int]) -> list[str]:
        return lowest_priority([pid for pid, value in nice.items() if value < 19], ())

    one = beside(firefox=0.6)
    small = ForeignProcess(pid=9, name="firefox", nice=0, cpu_ns=1_000_000)
    machine = msgspec.structs.replace(
        one.machine, foreign_processes=(*one.machine.foreign_processes, small)
    )
    one = msgspec.structs.replace(one, machine=machine)
    (said,) = told(Disturbances(quieting=quieting), one, 4)
    assert said == (
        "4 of 4 trials disturbed so far: firefox (PID 10) took 0.6 CPUs; to lower its priority: "
        "renice -n 19 -p 10; Ctrl-C keeps what is measured"
    )
    for nobody in (beside(concurve=0.6), beside(others=1.2)):
        assert "renice" not in told(Disturbances(quieting=quieting), nobody, 4)[0]
    serves = Disturbances(True, True, quieting)
    assert "renice" not in told(serves, beside(postgres=0.6), 4)[0], "it may be what is measured"
    (ended,) = told(Disturbances(quieting=lambda nice: []), one, 4)
    assert ended.endswith("took 0.6 CPUs; Ctrl-C keeps what is measured")


def test_another_run_is_not_taken_for_this_one() -> None:
    (said,) = told(Disturbances(), beside(concurve=0.6, make=0.3), 4)
    assert "disturbed so far: others took 0.9 CPUs, another concurve run 0.6 of them;" in said
    assert "--attach" not in told(Disturbances(True, True), beside(concurve=0.6), 4)[0]


@pytest.mark.parametrize(
    ("stolen", "make", "said"),
    [
        (0.6, 0.2, "the hypervisor took 0.6 CPUs, others 0.2;"),
        (0.08, 0.06, "the hypervisor took 0.1 CPUs;"),
        (0.6, 0.0, "the hypervisor took 0.6 CPUs;"),
    ],
)
def test_the_hypervisor_is_none_of_the_others(stolen: float, make: float, said: str) -> None:
    record = beside(make=make)
    machine = msgspec.structs.replace(record.machine, steal_ns=round(1e9 * stolen))
    stealing = msgspec.structs.replace(record, machine=machine)
    assert f"disturbed so far: {said}" in told(Disturbances(), stealing, 4)[0]


def test_few_of_many_are_not_told() -> None:
    found = Disturbances()
    assert told(found, beside(), 0, quiet=20) == []
    assert told(found, beside(firefox=1.0), 15) == []
    assert told(found, beside(firefox=1.0), 5) == [
        "20 of 40 trials disturbed so far: firefox (PID 10) took 1.0 CPUs; Ctrl-C keeps what is "
        "measured"
    ]


def test_it_is_said_again_where_much_changes() -> None:
    found = Disturbances()
    assert len(told(found, beside(firefox=0.4), 4)) == 1
    assert told(found, beside(firefox=0.7), 20) == []
    assert told(found, beside(firefox=0.3, make=0.4), 20) == [], "the same, by another name"
    assert [
        "make (PID 10) took 0.7 CPUs" in text for text in told(found, beside(make=0.7), 20)
    ] == [True]
    assert ["firefox (PID 10) took 1.5" in t for t in told(found, beside(firefox=1.5), 20)] == [
        True
    ]
    for _ in range(10):
        assert told(found, beside(make=1.8), 4) == told(found, beside(firefox=1.5), 4) == []


def test_whoever_it_is_has_a_name() -> None:
    assert (
        "short-lived or small processes took 1.2 CPUs"
        in told(Disturbances(), beside(others=1.2), 4)[0]
    )
    (waited,) = told(Disturbances(), beside(), 30)
    assert waited == "4 of 4 trials disturbed so far; Ctrl-C keeps what is measured"
    one = beside(firefox=0.6)
    host = HostRecord(name="east", wall_ns=one.wall_ns, machine=one.machine)
    of_hosts = msgspec.structs.replace(one, hosts=(host,))
    assert "firefox on east took 0.6 CPUs" in told(Disturbances(), of_hosts, 4)[0]


@pytest.mark.parametrize("live", [True, False])
def test_a_run_tells_it_on_terminals_and_in_lines(tmp_path: Path, live: bool) -> None:
    out = io.StringIO()
    rules = Rules(repeats_min=6, repeats_max=6)
    head = new_head(small_study(rules, threads=(1, 2)), "normal", 5, "concurve sweep …")
    engine = FakeEngine(steal_of=lambda spec: 700_000_000)
    runner = Runner(
        head, Store(str(tmp_path / "s.db")), engine, Progress(out, live=live), FakeClock()
    )
    runner.start()
    said = [line for line in out.getvalue().splitlines() if "disturbed so far" in line]
    assert len(said) == 1
    assert "4 of 4 trials disturbed so far: the hypervisor took 0.7 CPUs" in said[0]
