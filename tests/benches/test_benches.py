"""The benches run and print their figures; what the figures are is judged by `make bench`."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.real import PATIENCE

ROOT = Path(__file__).resolve().parents[2]
BENCHES = ROOT / "benches"

FIGURES = {
    "exact": (
        "wall time, concurve-trial / hyperfine -N",
        "user time, concurve-trial / perf stat",
        "CPU of 64 threads summed / wait4's",
    ),
    "light": ("added by the runner to `true`", "added by the laboratory to `true`"),
    "probing": ("probing 64 busy threads, of one CPU", "slow-down of 64 busy threads"),
    "scale": ("concurve --version", "concurve studies", "show 100 trials in 20 cells"),
    "kernel": ("kernel, scalar / best plain C", "kernel, speed-up of --simd"),
    "kernel-modes": (
        "engine, thread / process, one client apart",
        "… with a network thread, 50 clients",
    ),
    "monitor": (
        "threads: throughput, read / not read",
        "processes: 10 readings a second",
        "processes: CPU time, the monitor / /proc",
    ),
    "hostile": ("throughput, attacked / alone", "… p99", "… hostile clients"),
    "aa": ("A/A: a program found different from itself", "A/B: a slow-down of 5 % found"),
    "causes": ("no bottleneck, threads=2", "spin beyond the CPUs, threads=8"),
    "page": ("first paint of 50 trials", "page of 50 trials"),
    "demo": ("make demo", "… lines of make demo", "… page of make demo"),
    "examples": ("wrong examples as the machine is",),
}


def python(*arguments: str, timeout: float = PATIENCE) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
    )


#: Beside other tests nearly every trial is disturbed, and no figure is judged.
WITHOUT_REDO = f"""
import runpy, sys
from tests.helpers.forked import never_redo
never_redo()
sys.path.insert(0, {str(BENCHES)!r})
runpy.run_path({str(BENCHES / "run_all.py")!r}, run_name="__main__")
"""


@pytest.fixture(scope="module")
def shown() -> subprocess.CompletedProcess[str]:
    """What a quick run of them all shows: to import them takes longer than to run most."""
    chosen = [part for subject in FIGURES for part in ("--only", subject)]
    return python("-c", WITHOUT_REDO, "--quick", *chosen, timeout=2 * PATIENCE)


@pytest.mark.real
@pytest.mark.parametrize("subject", FIGURES)
def test_a_bench_runs_and_prints_its_figures(
    subject: str, shown: subprocess.CompletedProcess[str]
) -> None:
    assert shown.returncode == 0, shown.stdout + shown.stderr
    lines = shown.stdout.splitlines()
    for name in FIGURES[subject]:
        found = [line for line in lines if line.startswith(name)]
        assert len(found) == 1, shown.stdout
        # A figure that is counted, such as the bytes of a page, has no interval.
        counted = found[0].removeprefix(name).strip()
        assert "[" in counted or "not measured: " in counted or counted[:1].isdigit()


@pytest.mark.real
def test_what_sampling_costs_needs_no_judge() -> None:
    """The other figures of this bench compile a crate first."""
    done = python("benches/sites.py", "--quick", "--only", "cost")
    assert done.returncode == 0, done.stdout + done.stderr
    names = [line for line in done.stdout.splitlines() if line.startswith("cost: ")]
    expected = (
        "64 busy threads", "512 busy threads", "a lock on two CPUs", "a lock on two CPUs, sites",
        "mmap against mmap, gcc", "mmap against mmap, go", "threads seen traced or stopped",
    )  # fmt: skip
    for name in expected:
        assert any(line.startswith(f"cost: {name}") for line in names), done.stdout


def test_an_unknown_subject_is_refused() -> None:
    done = python("benches/run_all.py", "--only", "nothing")
    assert done.returncode == 2
    assert "exact" in done.stderr


def helpers(code: str) -> str:
    """What a snippet prints that uses the shared helpers."""
    parts = ("figures", "estimates", "showing", "tools")
    head = f"import sys; sys.path.insert(0, {str(BENCHES)!r})\n"
    head += "".join(f"from measuring.{part} import *\n" for part in parts)
    done = python("-c", head + code)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_bounds_ask_for_the_whole_interval_and_parity_for_its_near_end() -> None:
    said = helpers(
        "e = Estimate(value=1.0, low=0.98, high=1.005)\n"
        "print(Bound(0.99, 1.01).holds(e), Bound(high=1.005).holds(e), Bound(low=0.98).holds(e),\n"
        "      Bound(high=0.99).holds(e), Bound(high=0.99, parity=True).holds(e),\n"
        "      Bound(high=0.97, parity=True).holds(e))"
    )
    assert said.split() == ["False", "True", "True", "False", "True", "False"]


def test_parity_is_not_shown_by_an_interval_that_is_wider_than_its_margin() -> None:
    said = helpers(
        "alike = Bound(0.98, 1.02, parity=True)\n"
        "for ends in ((0.97, 1.005), (0.99, 1.03), (0.975, 1.025), (0.9, 1.1), (1.03, 1.04)):\n"
        "    print(alike.holds(Estimate(value=1.0, low=ends[0], high=ends[1])))\n"
        "print(alike.holds(Estimate(value=1.0)))"
    )
    assert said.split() == ["True", "True", "False", "False", "False", "False"]


def test_rounds_follow_until_there_are_enough() -> None:
    """Nothing is looked at before the least, and nothing is taken beyond the most."""
    said = helpers(
        "from measuring.running import interleaved\n"
        "def rounds(least, most, enough):\n"
        "    looks = []\n"
        "    def is_enough(found):\n"
        "        looks.append(len(found['a n']))\n"
        "        return looks[-1] >= enough\n"
        "    found = interleaved(least, {'a': lambda: {'n': 1.0}}, most, is_enough)\n"
        "    return len(found['a n']), looks\n"
        "print(rounds(5, 0, 0), rounds(5, 60, 20), rounds(5, 12, 99), sep=';')"
    )
    assert said.strip() == "(5, []);(25, [5, 15, 25]);(12, [5])"


OF_HOSTS = """
import os, time, types
import hosts
first = hosts.cpu_ns(os.getpid())
print(0 < first <= time.process_time_ns() <= hosts.cpu_ns(os.getpid()))
# Two trials of 1 ms in 100 ms, then two of 2 s in 4 s.
clock = iter([0, 100e6, 1e9, 5e9])
cpu = {7: iter([0, 6e6, 8e6, 18e6]), 8: iter([0, 2e6, 2e6, 32e6])}
hosts.timed, hosts.busy = lambda run, role: {}, lambda ms: hosts.RoleSpec(name="target")
hosts.time = types.SimpleNamespace(monotonic_ns=lambda: next(clock))
hosts.cpu_ns = lambda pid: next(cpu[pid])
for figure in hosts.own_cpu(None, {"agent": [7], "actor": [8]}, 2, "b"):
    print(figure.name, figure.estimate.value, figure.bound is not None, sep=": ")
"""


def test_the_cpu_time_of_an_agent_is_that_of_its_own_trials() -> None:
    """Of the agent alone, and with its actor; what they used between is not counted."""
    assert helpers(OF_HOSTS).splitlines() == [
        "True",
        "CPU time while measuring, agent (% of a core): 0.25: True",
        "CPU time while measuring, agent and actor (% of a core): 1.0: True",
        "CPU time of a trial of 1 ms, agent (ms): 3.0: False",
        "CPU time of a trial of 1 ms, actor (ms): 1.0: False",
    ]


KEPT = """
import hosts, pathlib
hosts.AUTOGROUP = pathlib.Path(FILE)
hosts.describe_machine = lambda: {"autogroup": hosts.AUTOGROUP.read_text()}
hosts.os.geteuid = lambda: USER
try:
    with hosts.autogroups_off() as how:
        print(how, hosts.AUTOGROUP.read_text())
        raise SystemExit(1)
except SystemExit:
    print(hosts.AUTOGROUP.read_text())
"""


@pytest.mark.parametrize(
    ("user", "before", "said"),
    [
        (0, "1", ["switched off meanwhile 0", "1"]),
        (0, "0", ["off 0", "0"]),
        (1000, "1", ["on 1", "1"]),
    ],
)
def test_the_kernels_shares_of_sessions_are_as_before_in_the_end(
    tmp_path: Path, user: int, before: str, said: list[str]
) -> None:
    file = tmp_path / "autogroup"
    file.write_text(before)
    assert helpers(f"FILE, USER = {str(file)!r}, {user}\n{KEPT}").splitlines() == said


def test_a_missed_bound_fails_the_bench_but_not_a_quick_run() -> None:
    said = helpers(
        "def missed(quick):\n"
        "    yield Figure('f', 'how', Estimate(value=2.0), Bound(high=1.0))\n"
        "for quick in (False, True):\n"
        "    print(exit_code(list(missed(quick)), quick), lines(*missed(quick)).split()[-2])"
    )
    assert said.split() == ["1", "NO", "0", "NO"]


def test_paired_rounds_cancel_what_both_sides_share() -> None:
    said = helpers(
        "drift = [1 + 0.1 * n for n in range(40)]\n"
        "r = ratio_of_medians([1.02 * d for d in drift], drift)\n"
        "print(f'{r.value:.3f} {r.low:.3f} {r.high:.3f}')\n"
        "d = difference_of_medians([3.0] * 9, [1.0] * 9, 1e3, 'ms')\n"
        "print(d.value, d.low, d.high)"
    )
    assert said.splitlines() == ["1.020 1.020 1.020", "2000.0 2000.0 2000.0"]


def test_perf_output_is_read_by_event() -> None:
    said = helpers(
        "print(parse_perf_stat('''# started on Sat Nov 21\\n\\n"
        "184583316,ns,duration_time,184583316,100.00,1.007,G/sec\\n"
        "183987000,ns,user_time,183987000,100.00,1.004,G/sec\\n'''))\n"
        "try:\n    parse_perf_stat('<not supported>,,user_time,0,100.00,,')\n"
        "except MissingToolError as error:\n    print(error)"
    )
    assert "{'wall': 0.184583316, 'user': 0.183987}" in said
    assert "no event user_time" in said


@pytest.mark.real
@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="Ray would be measured")
def test_what_needs_ray_says_so_and_is_no_failure() -> None:
    parts = ("ray", "redis", "p99", "studies")
    chosen = [word for part in parts for word in ("--only", part)]
    done = python("benches/hosts.py", "--quick", *chosen)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("not measured: Ray: pip install 'concurve[ray]'") == len(parts)
    assert done.stdout.splitlines()[-1] == "failed: none; missed: none"


def test_a_bench_that_cannot_begin_says_what_is_missing_and_the_others_run() -> None:
    said = helpers(
        "def lacking(quick):\n"
        "    raise MissingToolError('no tool: apt-get install tool')\n"
        "    yield\n"
        "def sound(quick):\n"
        "    yield Figure('f', 'how', Estimate(value=2.0))\n"
        "show([lacking, sound], True)\n"
    )
    assert "not measured: no tool: apt-get install tool" in said
    assert said.splitlines()[-2].startswith("f ")
