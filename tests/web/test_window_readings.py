"""What stands beside a picture: CPUs over time, threads as the scheduler sees them, reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from concurve.web.window import cpus
from concurve.web.window.cpus import CpusOverTime, parse
from concurve.web.window.reported import Reported
from concurve.web.window.threads import ThreadsOf

# Of a machine with two CPUs: user nice system idle iowait irq softirq steal guest guest_nice.
STAT = """\
cpu  211 0 90 1700 9 0 3 7 0 0
cpu0 111 0 40 800 9 0 3 7 100 0
cpu1 100 0 50 900 0 0 0 0 0 0
intr 5 0 0
ctxt 77
"""


def test_ticks_of_each_cpu() -> None:
    # What guests use is in user time already.
    assert parse(STAT) == {0: (809, 970), 1: (900, 1050)}


def test_ticks_of_an_old_kernel() -> None:
    assert parse("cpu0 1 2 3 4\n") == {0: (4, 10)}


class Machine:
    """CPUs whose ticks are written by hand, and a clock."""

    def __init__(self, folder: Path) -> None:
        self.stat = folder / "stat"
        self.now = 0.0
        self.ticks = {0: [0, 0], 1: [0, 0]}
        self.goes_on(0.0, {})

    def goes_on(self, seconds: float, busy: dict[int, float]) -> None:
        self.now += seconds
        for cpu, share in busy.items():
            self.ticks[cpu][0] += round(100 * seconds * share)
            self.ticks[cpu][1] += round(100 * seconds * (1 - share))
        lines = (f"cpu{cpu} {used} 0 0 {idle}\n" for cpu, (used, idle) in self.ticks.items())
        self.stat.write_text("".join(lines))

    def over_time(self, *of: int) -> CpusOverTime:
        return CpusOverTime(of, self.stat, lambda: self.now)


def test_cpus_over_time(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.goes_on(100.0, {0: 0.5, 1: 0.5})
    found = machine.over_time(0, 1, 7)
    machine.goes_on(1.0, {0: 1.0, 1: 0.25})
    found.look()
    machine.goes_on(0.5, {0: 0.0, 1: 1.0})
    found.look()
    seen = found.since(0)
    assert (seen.first, seen.cpus, seen.seconds) == (0, (0, 1, 7), (1.0, 1.5))
    # A CPU that is not there, or is switched off, has no share: not 0.
    assert seen.busy == ((1.0, 0.25, None), (0.0, 1.0, None))
    assert found.since(1).busy == ((0.0, 1.0, None),) and found.since(1).first == 1
    assert found.since(2).busy == () and found.since(2).first == 2


def test_readings_that_are_kept_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpus, "KEPT_MAX", 3)
    machine = Machine(tmp_path)
    found = machine.over_time(0)
    for _ in range(5):
        machine.goes_on(1.0, {0: 1.0})
        found.look()
    seen = found.since(0)
    assert (seen.first, seen.seconds) == (2, (3.0, 4.0, 5.0))
    assert found.since(4).seconds == (5.0,)


def test_counters_that_stand_or_go_back(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.goes_on(10.0, {0: 0.5})
    found = machine.over_time(0)
    found.look()
    machine.ticks[0] = [600, 490]  # of a virtual machine: idle went back
    machine.goes_on(0.0, {})
    found.look()
    machine.stat.write_text("cpu0 x\n")
    found.look()
    assert found.since(0).busy == ((None,), (1.0,), (None,))


def thread(root: Path, number: int, name: str, *, cpu_ns: int = 0, nice: int = 0,
           policy: int = 0, rt: int = 0) -> None:  # fmt: skip
    """A thread in a folder that is as ``/proc`` is."""
    folder = root / "7/task" / str(number)
    folder.mkdir(parents=True)
    priority = -1 - rt if policy in (1, 2) else 20 + nice
    fields = [*["0"] * 15, str(priority), str(nice), *["0"] * 21, str(policy), "0"]
    (folder / "stat").write_text(f"{number} ({name}) {' '.join(fields)}\n")
    (folder / "schedstat").write_text(f"{cpu_ns} 0 3\n")
    switches = "voluntary_ctxt_switches:\t5\nnonvoluntary_ctxt_switches:\t6\n"
    (folder / "status").write_text(f"Name:\t{name}\n{switches}")


def test_threads_as_the_scheduler_sees_them(tmp_path: Path) -> None:
    thread(tmp_path, 70, "java) (x", cpu_ns=10**9)
    thread(tmp_path, 71, "Thread-1", cpu_ns=5 * 10**8, nice=5)
    thread(tmp_path, 72, "Thread-2", policy=2, rt=1)
    thread(tmp_path, 73, "Thread-3", policy=5)
    thread(tmp_path, 74, "ForkJoinPool-1-", nice=-10)
    thread(tmp_path, 75, "G1 Conc#0", cpu_ns=2 * 10**9)
    threads = ThreadsOf(7, tmp_path)
    assert threads.others is None and sorted(threads.ids()) == [70, 71, 72, 73, 74, 75]
    threads.look()
    # As PRI of ps: 19 at nice 0, 41 at the lowest real-time priority, -1 with SCHED_IDLE.
    priorities = {name: seen.priority for name, seen in threads.workers.items()}
    assert priorities == {"Thread-1": 14, "Thread-2": 41, "Thread-3": -1, "carrier 74": 29}
    first = threads.workers["Thread-1"]
    assert (first.cpu_seconds, first.voluntary_switches, first.involuntary_switches) == (0.5, 5, 6)
    assert threads.others is not None
    count, others = threads.others
    assert (count, others.cpu_seconds, others.voluntary_switches) == (2, 3.0, 10)
    for number in range(70, 76):
        (tmp_path / "7/task" / str(number) / "stat").unlink()
    threads.look()
    assert threads.workers["Thread-1"] == first, "a thread that has ended is remembered"


def lines(*content: dict[str, object]) -> list[bytes]:
    return [json.dumps(line).encode() + b"\n" for line in content]


def test_what_the_native_kernel_reports() -> None:
    reported = Reported("native")
    for raw in lines(
        {"fact": "threads", "value": 2},
        {"indicator": "compute_seconds", "value": 0.5, "unit": "s"},
        {"fact": "pixel_sum", "value": 12},
        {"indicator": "worker_pixels", "value": 7.0, "worker": "Thread-1"},
        {"indicator": "compute_seconds", "value": 0.25, "unit": "s"},
    ):
        reported.take(raw)
    assert (reported.computations, reported.compute_seconds) == (2, 0.25)
    assert reported.pixel_sum == 12 and reported.workers == {"Thread-1": {"worker_pixels": 7.0}}


def test_the_mean_of_the_jvm_is_no_computation() -> None:
    reported = Reported("jvm")
    for raw in lines(
        {"fact": "jvm_flags", "value": ["-Xlog:disable"]},
        {"fact": "collector", "value": "Serial"},
        {"indicator": "computation_seconds", "value": 0.5, "unit": "s"},
        {"indicator": "computation_seconds", "value": 0.3, "unit": "s"},
        {"indicator": "compute_seconds", "value": 0.3, "unit": "s"},
    ):
        reported.take(raw)
    assert (reported.computations, reported.compute_seconds) == (2, 0.3)
    assert reported.collector == "Serial"


@pytest.mark.parametrize("raw", [b"", b"{", b"\xff", b"[1]\n", b'{"indicator": 7}\n',
                                 b'{"fact": "pixel_sum", "value": true}\n'])  # fmt: skip
def test_a_line_that_is_none_of_ours(raw: bytes) -> None:
    reported = Reported("native")
    reported.take(raw)
    assert reported.pixel_sum is None and reported.computations == 0
