"""What uses the CPUs now, from made-up ``/proc`` trees."""

from __future__ import annotations

from pathlib import Path

import pytest

from concurve.host.granted import granted_cpus
from concurve.host.load import NAMED_MAX, Load, Process, between, load_over, loads_over, read
from concurve.host.machine import allowed_cpus
from concurve.host.quotas import cpu_quota
from concurve.wire.spec import Attach, AttachedProcess
from tests.host.test_machine import tree


def stat(pid: int, name: str, ticks: int, nice: int = 0, started: int = 7, parent: int = 1) -> str:
    fields = [
        "S",
        str(parent),
        *["0"] * 9,
        str(ticks),
        "0",
        "0",
        "0",
        "20",
        str(nice),
        "1",
        "0",
        str(started),
    ]
    return f"{pid} ({name}) {' '.join(fields)} 0 0\n"


def machine(idle: int, busy: int, steal: int = 0) -> str:
    return f"cpu  {busy} 0 0 {idle} 0 0 0 {steal} 0 0\ncpu0 1 2 3\n"


def test_the_priority_of_a_session_is_shown_where_the_scheduler_goes_by_sessions(
    tmp_path: Path,
) -> None:
    files = {"proc/stat": machine(0, 0), "proc/20/stat": stat(20, "hog", 0)}
    tree(tmp_path, {**files, "proc/20/autogroup": "/autogroup-7 nice 19\n"})
    before = read(tmp_path)
    tree(tmp_path, {"proc/stat": machine(50, 50), "proc/20/stat": stat(20, "hog", 50)})
    (plain,) = between(before, read(tmp_path)).processes
    assert plain.nice == 0, "it is off"
    tree(tmp_path, {"proc/sys/kernel/sched_autogroup_enabled": "1\n"})
    (grouped,) = between(before, read(tmp_path)).processes
    assert grouped.nice == 19


def test_the_processes_that_used_most_are_named(tmp_path: Path) -> None:
    ticks = {1: ("init", 5), 20: ("cc1plus (x) y", 100), 30: ("dd", 50), 40: ("ours", 10),
             50: ("a", 0), 60: ("b", 3)}  # fmt: skip
    tree(tmp_path, {
        "proc/stat": machine(1000, 0),
        **{f"proc/{pid}/stat": stat(pid, name, 0) for pid, (name, _) in ticks.items()},
        "proc/self/stat": "no number",
        "proc/70/stat": "torn",
    })  # fmt: skip
    before = read(tmp_path)
    tree(tmp_path, {
        "proc/stat": machine(1800, 180, 20),
        **{f"proc/{pid}/stat": stat(pid, name, used) for pid, (name, used) in ticks.items()},
        "proc/80/stat": stat(80, "new", 8, nice=19),
    })  # fmt: skip
    load = between(before, read(tmp_path), own=40)
    assert load.foreign == pytest.approx(0.17), "without our own 10 ticks"
    assert load.steal == pytest.approx(0.02)
    assert [(item.name, item.pid, item.nice) for item in load.processes] == [
        ("cc1plus (x) y", 20, 0), ("dd", 30, 0), ("new", 80, 19),
    ]  # fmt: skip
    assert len(load.processes) == NAMED_MAX
    assert load.named.startswith("cc1plus (x) y (pid 20, nice 0) 10 %, dd (pid 30")


def test_a_name_is_shown_on_one_line_without_control_characters(tmp_path: Path) -> None:
    tree(tmp_path, {"proc/stat": machine(0, 0), "proc/9/stat": stat(9, "a\nb\x1b[2J", 0)})
    before = read(tmp_path)
    tree(tmp_path, {"proc/stat": machine(50, 50), "proc/9/stat": stat(9, "a\nb\x1b[2J", 50)})
    (process,) = between(before, read(tmp_path), own=1).processes
    assert str(process) == "a b�[2J (pid 9, nice 0) 50 %"


def test_a_reused_pid_is_another_process(tmp_path: Path) -> None:
    tree(tmp_path, {"proc/stat": machine(100, 0), "proc/9/stat": stat(9, "old", 50, started=1)})
    before = read(tmp_path)
    tree(tmp_path, {"proc/stat": machine(150, 50), "proc/9/stat": stat(9, "new", 30, started=2)})
    (process,) = between(before, read(tmp_path), own=1).processes
    assert (process.name, process.share) == ("new", 0.3)


def seen(root: Path, own: int, **found: tuple[int, int, int]) -> Load:
    """The load of processes that each have a name, a number, a parent and ticks."""
    tree(root, {"proc/stat": machine(0, 0)})
    for used in (0, 1):
        tree(root, {f"proc/{pid}/stat": stat(pid, name.replace("_", "-"), ticks * used,
                                             parent=parent)
                    for name, (pid, parent, ticks) in found.items()})  # fmt: skip
        if not used:
            before = read(root)
    busy = sum(ticks for _, _, ticks in found.values())
    tree(root, {"proc/stat": machine(1000 - busy, busy)})
    return between(before, read(root), own=own)


def test_threads_of_the_kernel_are_no_strangers(tmp_path: Path) -> None:
    """They write what a trial wrote that has just ended."""
    load = seen(tmp_path, 40, kthreadd=(2, 0, 10), kworker=(9, 2, 300), cc1=(30, 1, 50))
    assert load.foreign == pytest.approx(0.05)
    assert [process.name for process in load.processes] == ["cc1"]


def test_in_a_container_any_process_may_be_the_second(tmp_path: Path) -> None:
    load = seen(tmp_path, 40, bash=(2, 1, 10), cc1=(30, 2, 300))
    assert load.foreign == pytest.approx(0.31)


def test_another_run_of_concurve_is_named(tmp_path: Path) -> None:
    """Its programs are known by who has started them, whatever its lock is; ours are not another
    run, also if they were started by the same page of a browser."""
    load = seen(
        tmp_path, 41, web=(5, 1, 0), concurve=(40, 5, 0), ours=(41, 40, 0), child=(42, 40, 20),
        bash=(10, 1, 0), concurve_trial=(11, 12, 40), own_server=(13, 11, 100),
    )  # fmt: skip
    assert all(process.run in (None, 11) for process in load.processes)
    run = {process.name: process for process in load.processes}
    assert run["own-server"].run == run["concurve-trial"].run == 11
    assert run["child"].run is None
    assert str(run["own-server"]) == (
        "own-server (pid 13, nice 0, of a concurve command, pid 11) 10 %"
    )
    assert (run["own-server"].whose, run["child"].whose) == ("another concurve run", "child")


def test_only_what_runs_trials_is_another_run(tmp_path: Path) -> None:
    """A server of pages and a generator of load are programs like others. The first process of a
    run is of it: who ends it ends the run."""
    load = seen(
        tmp_path, 40, mine=(40, 1, 0), concurve=(11, 1, 60), load=(12, 11, 50), page=(13, 11, 40)
    )
    assert [process.run for process in load.processes] == [None] * 3
    trial = seen(
        tmp_path, 40, mine=(40, 1, 0), concurve=(11, 1, 60), concurve_trial=(12, 11, 50),
        target=(13, 12, 40),
    )  # fmt: skip
    assert {process.name: process.run for process in trial.processes} == {
        "concurve": 11, "concurve-trial": 11, "target": 11,
    }  # fmt: skip


SERVER = Attach(process=AttachedProcess(20, 7))


def attached_load(root: Path, *attached: Attach) -> Load:
    """A server (20) with a worker (21) and what that has started (22), and a stranger (30)."""
    found = ((20, "server", 1, 100), (21, "worker", 20, 60), (22, "job", 21, 40),
             (30, "stranger", 1, 50))  # fmt: skip
    tree(root, {"proc/stat": machine(0, 0)})
    tree(root, {f"proc/{pid}/stat": stat(pid, name, 0, parent=parent)
                for pid, name, parent, _ in found})  # fmt: skip
    before = read(root)
    tree(root, {"proc/stat": machine(750, 250)})
    tree(root, {f"proc/{pid}/stat": stat(pid, name, used, parent=parent)
                for pid, name, parent, used in found})  # fmt: skip
    return between(before, read(root), own=1, attached=attached)


def test_an_attached_process_and_its_descendants_are_no_strangers(tmp_path: Path) -> None:
    alone = attached_load(tmp_path / "none")
    assert (alone.foreign, alone.processes[0].name) == (0.25, "server")
    load = attached_load(tmp_path / "server", SERVER)
    assert load.foreign == pytest.approx(0.05)
    assert [item.name for item in load.processes] == ["stranger"]
    reused = attached_load(tmp_path / "reused", Attach(process=AttachedProcess(20, 3)))
    assert reused.foreign == 0.25, "another process with that number"


def test_those_of_an_attached_cgroup_are_none_either(tmp_path: Path) -> None:
    tree(tmp_path, {"unit/cgroup.procs": "20\n", "unit/below/cgroup.procs": "21\n22\n"})
    load = attached_load(tmp_path / "root", Attach(cgroup=str(tmp_path / "unit")))
    assert [item.name for item in load.processes] == ["stranger"]


def test_numbers_that_are_read_as_each_others_parents_end(tmp_path: Path) -> None:
    """A number was used again while the processes were read."""
    tree(tmp_path, {"proc/stat": machine(0, 0), "proc/20/stat": stat(20, "a", 0, parent=21),
                    "proc/21/stat": stat(21, "b", 0, parent=20)})  # fmt: skip
    before = read(tmp_path)
    tree(tmp_path, {"proc/stat": machine(1, 1)})
    assert between(before, read(tmp_path), own=1, attached=[SERVER]).processes == ()


def test_no_time_has_passed_and_old_kernels_count_no_steal(tmp_path: Path) -> None:
    tree(tmp_path, {"proc/stat": "cpu 10 0 0 10\n"})
    assert between(read(tmp_path), read(tmp_path)).foreign == 0.0


def test_this_machine_can_be_looked_at() -> None:
    load = load_over(0.0, lambda _: None)
    assert 0 <= load.foreign <= 1 and 0 <= load.steal <= 1


def test_each_part_of_a_look_has_its_own_load(tmp_path: Path) -> None:
    stat = "7 (tick) R 1 0 0 0 0 0 0 0 0 0 {} 0 0 0 20 0 1 0 9"
    ticks = iter([0, 30, 30, 60, 60])
    total = iter([100, 200, 300, 400, 500])

    def tick() -> None:
        used, of = next(ticks), next(total)
        tree(
            tmp_path,
            {"proc/stat": f"cpu {used} 0 0 {of - used}\n", "proc/7/stat": stat.format(used)},
        )

    tick()
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        tick()

    load, parts = loads_over(2.0, 4, sleep, tmp_path)
    assert slept == [0.5] * 4
    assert [part.foreign for part in parts] == [0.3, 0, 0.3, 0]
    assert (load.foreign, load.seen[0].share) == (0.15, 0.15)


# -- the CPUs granted ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({}, None),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "max 100000\n"}, None),
        ({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "150000 100000\n"}, 1.5),
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                "sys/fs/cgroup/a/cpu.max": "50000 100000\n",
                "sys/fs/cgroup/a/b/cpu.max": "max 100000\n",
            },
            0.5,
        ),
        ({"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/cpu.max": "200000 100000\n"}, 2.0),
        (
            {
                "proc/self/cgroup": "4:cpu,cpuacct:/j\n3:memory:/j\n",
                "sys/fs/cgroup/cpu/j/cpu.cfs_quota_us": "25000\n",
                "sys/fs/cgroup/cpu/j/cpu.cfs_period_us": "50000\n",
            },
            0.5,
        ),
        (
            {
                "proc/self/cgroup": "4:cpu:/j\n",
                "sys/fs/cgroup/cpu/j/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/j/cpu.cfs_period_us": "50000\n",
            },
            None,
        ),
        ({"proc/self/cgroup": "torn\n"}, None),
    ],
)
def test_the_least_quota_counts(tmp_path: Path, files: dict[str, str], quota: float | None) -> None:
    tree(tmp_path, files)
    assert cpu_quota(tmp_path) == quota
    granted = granted_cpus(tmp_path)
    assert granted == (len(allowed_cpus()) if quota is None else min(len(allowed_cpus()), 1
                       if quota <= 1 else 2))  # fmt: skip


def test_what_the_named_processes_leave_is_told() -> None:
    one = Process("make", 7, 0, 0.02)
    assert Load(0.51, 0.0, (one,)).named == (
        "make (pid 7, nice 0) 2 %, others or short-lived ones 49 %"
    )
    assert Load(0.02, 0.0, (one,)).named == "make (pid 7, nice 0) 2 %"
