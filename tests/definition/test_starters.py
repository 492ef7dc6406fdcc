"""Which program a command line starts, and where that is looked for as the first one is."""

from __future__ import annotations

import shlex

import pytest

from concurve.definition.starters import container_of, script_of, started, started_here


@pytest.mark.parametrize(
    ("line", "inner"),
    [
        ("env A=1 B=2 ./prog x", "./prog x"),
        ("env -u A ./prog", "./prog"),
        ("taskset -c 0,1 nice -n 5 ./prog 2", "./prog 2"),
        ("timeout --signal TERM 5 ./prog", "./prog"),
        ("numactl --physcpubind 0 -m 0 ./prog", "./prog"),
        ("stdbuf -oL ./prog", "./prog"),
        # Its program is looked for in another place, or by another name.
        ("env PATH=/opt/bin prog", ""),
        ("env -C /opt ./prog", ""),
        ("env -S './prog 2'", ""),
        ("env -i ./prog", ""),
        ("docker exec db pgbench", ""),
        ("nice docker exec db pgbench", "docker exec db pgbench"),
        ("sudo -u postgres pgbench", ""),
        ("sh -c './prog && x'", ""),
        # What starts nothing, or is no starter.
        ("taskset -p 4711", ""),
        ("nice", ""),
        ("./prog 2", ""),
    ],
)
def test_the_program_that_starters_of_this_machine_start(line: str, inner: str) -> None:
    assert started_here(shlex.split(line)) == shlex.split(inner)


@pytest.mark.parametrize(
    "line",
    [
        "perf record --call-graph dwarf ./mine 2",
        "perf record -ag -F 99 -m 8M --max-size 1G ./mine 2",
        "perf stat -d --for-each-cgroup a,b --log-fd 3 ./mine 2",
    ],
)
def test_a_value_of_an_option_is_no_program(line: str) -> None:
    assert started(line.split()) == ["./mine", "2"]


@pytest.mark.parametrize(
    ("line", "container"),
    [
        ("docker exec cache redis-benchmark -c 8", "cache"),
        ("sudo -u root docker exec -it -e A=1 cache redis-benchmark", "cache"),
        ("podman container exec --user=0 cache pgbench", "cache"),
        ("sh -c 'cd x && docker exec cache pgbench | tail -1'", ""),
        ("sh -c 'cd x && docker exec cache pgbench'", "cache"),
        # Of a service, whose container has another name.
        ("docker compose exec cache pgbench", ""),
        ("docker run cache", ""),
        ("ssh db1 docker exec cache pgbench", ""),
        ("ip netns exec cache wrk", ""),
        ("wrk http://cache", ""),
        ("docker exec", ""),
    ],
)
def test_the_container_that_a_command_line_enters(line: str, container: str) -> None:
    assert container_of(shlex.split(line)) == container


@pytest.mark.parametrize(
    ("line", "script"),
    [
        ("python3 pool.py 4", "pool.py"),
        ("taskset -c 1 python3.11 bench/pool.py", "bench/pool.py"),
        ("env -C /opt python3 pool.py", ""),
        ("java -jar app.jar", "app.jar"),
        ("java -Xmx1g -jar app.jar 4", "app.jar"),
        ("java -cp x Main -jar y", ""),
        ("java -jar", ""),
        ("python3 -m pool", ""),
        ("python3 -c 'print()'", ""),
        ("python3 -", ""),
        ("python3", ""),
        ("./python3-like pool.py", ""),
    ],
)
def test_the_script_that_an_interpreter_runs(line: str, script: str) -> None:
    assert script_of(shlex.split(line)) == script
