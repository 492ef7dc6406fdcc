"""Trials over hosts: how far apart roles start, how well clocks are known, what the engine adds.

Two agents of this machine are hosts, connected by sockets; they share the monotonic clock, so the
true offset is 0. What is Ray's own is measured over network namespaces, where Ray is installed.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import msgspec
from measuring.estimates import SEED, difference_of_medians, median, ratio_of_medians
from measuring.figures import Bound, Figure, MissingToolError, unless_missing
from measuring.running import busy_iterations, interleaved, scratch, target
from measuring.showing import alone
from tests.helpers.agents import Agents, Namespaces, inventory_of, no_namespaces

from concurve.definition.hosts_file import load_hosts
from concurve.definition.inventory import Inventory
from concurve.engine import Engine
from concurve.engine.local import LocalEngine, run_packed
from concurve.engine.tasks import Processes, Tasks
from concurve.estimate import Estimate
from concurve.host import native
from concurve.hosts import commands, daemons
from concurve.hosts.clocks import combined, estimate, measured
from concurve.hosts.connection import SocketConnection
from concurve.hosts.engine import HostsEngine
from concurve.wire import decode_record, encode_spec
from concurve.wire.spec import RoleSpec, TrialSpec

TWO = {"a": "127.0.0.1", "b": "127.0.0.2"}

SKEW_MS_MOST = 1.0
CLOCK_MS_MOST = 0.2
DELAY_MS, DELAY_SPREAD_MS = 5.0, 1.0
COVERED_MIN = 0.95
ADDED_MS_MOST = 150.0
ALIKE = Bound(low=0.98, high=1.02, parity=True)
IDLE_MB_MOST, IDLE_PERCENT_MOST, OURS_PERCENT_MOST = 250.0, 1.0, 0.5
UP_SECONDS_MOST = 15.0
SIMULATED_MIN = 1.75
SIMULATED_AT_ONCE, SIMULATED_SCALE = 16, "0.4"

CPU_MS = 300
"""The length of the program by which engines are compared."""

EXCHANGES = 16
"""Of an estimate with delays: each takes two of them."""


def figures(quick: bool) -> Iterator[Figure]:
    """Starts and clocks, engines, daemons, simulations."""
    with agents() as found, found.connected() as engine:
        yield from starts(engine, 5 if quick else 100)
        yield from engines(found, engine, 3 if quick else 60)
    with agents() as found:
        yield delayed(found.connections()["a"], 5 if quick else 200)
    yield simulations("processes of this machine", Processes, 2 if quick else 7)
    yield from of_ray(quick)


@contextlib.contextmanager
def agents() -> Iterator[Agents]:
    """An agent for each host."""
    with tempfile.TemporaryDirectory() as folder:
        found = Agents(Path(folder), inventory_of(TWO))
        try:
            found.start()
            yield found
        finally:
            found.end()


# -- starts and clocks ------------------------------------------------------------------------


def starts(engine: HostsEngine, trials: int) -> Iterator[Figure]:
    """How far apart two roles start at an agreed time, and how wrong the offsets are."""
    apart, wrong = list[float](), list[float]()
    roles = tuple(RoleSpec(name=f"load-{host}", argv=("true",), host=host) for host in TWO)
    for number in range(trials):
        record = decode_record(engine.run(TrialSpec(trial=f"skew-{number}", roles=roles)))
        if record.outcome.kind != "ok":
            raise SystemExit(f"a trial over two hosts failed: {record.outcome.message}")
        # The offsets were taken off, and are 0: what was taken off comes back.
        offsets = {host.name: host.clock_offset_ns or 0 for host in record.hosts}
        at = [role.released_ns + offsets[role.host or ""] for role in record.roles]
        apart.append(abs(at[0] - at[1]) / 1e6)
        wrong += [abs(offset) / 1e6 for offset in offsets.values()]
    yield Figure(
        "skew of a start, 95th percentile (ms)", f"two hosts, {trials} trials",
        Estimate(value=quantile(apart, 0.95), n=trials, unit="ms"), Bound(high=SKEW_MS_MOST),
    )  # fmt: skip
    yield Figure(
        "error of a clock's offset, worst (ms)", f"two hosts, {trials} trials",
        Estimate(value=max(wrong), n=len(wrong), unit="ms"), Bound(high=CLOCK_MS_MOST),
    )  # fmt: skip


def delayed(connection: SocketConnection, estimates: int) -> Figure:
    """How often the stated error of an offset covers the truth where each way is delayed."""
    draw = random.Random(SEED)

    def late() -> int:
        time.sleep(max(0.0, draw.gauss(DELAY_MS, DELAY_SPREAD_MS)) / 1e3)
        shown = connection.clock()
        time.sleep(max(0.0, draw.gauss(DELAY_MS, DELAY_SPREAD_MS)) / 1e3)
        return shown

    covered = 0
    for _ in range(estimates):
        exchanged = measured(late, time.monotonic_ns, EXCHANGES)
        found = combined((estimate([one]) for one in exchanged), time.monotonic_ns())
        covered += abs(found.ns) <= found.error_ns
    connection.close()
    return Figure(
        f"offsets within their stated error, of {estimates}",
        f"each way delayed by {DELAY_MS:g} ± {DELAY_SPREAD_MS:g} ms",
        Estimate(value=covered, n=estimates),
        Bound(low=COVERED_MIN * estimates, counted=True),
    )


def quantile(values: list[float], share: float) -> float:
    """The least value that at least this share of the values do not exceed."""
    return sorted(values)[max(0, -(-int(share * 1000) * len(values) // 1000) - 1)]


# -- engines ----------------------------------------------------------------------------------

Timed = Callable[[], Mapping[str, float]]


def timed(engine: Engine, role: RoleSpec) -> dict[str, float]:
    """The time of a program in a trial, and what the trial took beyond it, in ms."""
    spec = TrialSpec(trial=f"bench-{time.monotonic_ns()}", roles=(role,))
    begin = time.perf_counter()
    record = decode_record(engine.run(spec))
    taken = time.perf_counter() - begin
    if record.outcome.kind != "ok":
        raise SystemExit(f"trial of {role.argv[0]} failed: {record.outcome.message}")
    own = record.roles[0].wall_ns / 1e9
    return {"program": own * 1e3, "beyond": (taken - own) * 1e3}


def busy(host: str | None = None) -> RoleSpec:
    """A program of fixed work."""
    work = busy_iterations(CPU_MS)
    argv = target("busy", "--iterations", str(work))
    return RoleSpec(name="target", argv=tuple(argv), host=host)


def engines(found: Agents, engine: HostsEngine, rounds: int) -> Iterator[Figure]:
    """A program on this machine by the local engine, twice, and by that of hosts."""
    role, local = busy(), LocalEngine()
    there = RoleSpec(name=role.name, argv=role.argv, host="b")
    agent = found.pid("b")
    before, begin = daemons.cpu_ns([agent]), time.perf_counter()
    sides: dict[str, Timed] = {
        "local": lambda: timed(local, role),
        "again": lambda: timed(local, role),
        "hosts": lambda: timed(engine, there),
    }
    taken = interleaved(rounds, sides)
    ours = (daemons.cpu_ns([agent]) - before) / 1e9 / (time.perf_counter() - begin)
    yield from compared("agents by sockets", "hosts", taken, rounds)
    yield Figure(
        "CPU time of an agent while measuring (% of a core)", f"{rounds} rounds",
        Estimate(value=100 * ours, n=1, unit="%"), Bound(high=OURS_PERCENT_MOST),
    )  # fmt: skip


def compared(
    what: str, side: str, taken: Mapping[str, list[float]], rounds: int
) -> Iterator[Figure]:
    """An engine against the local one, and that against itself."""
    how = f"{rounds} interleaved rounds of {CPU_MS} ms of CPU time"
    local = taken["local program"]
    yield Figure("a program: local / local", how, ratio_of_medians(taken["again program"], local))
    yield Figure(
        f"a program: {what} / local", how, ratio_of_medians(taken[f"{side} program"], local), ALIKE
    )
    yield Figure(
        f"added time of a trial: {what} (ms)", how,
        difference_of_medians(taken[f"{side} beyond"], taken["local beyond"], 1.0, "ms"),
        Bound(high=ADDED_MS_MOST),
    )  # fmt: skip


# -- simulations ------------------------------------------------------------------------------


def simulations(what: str, tasks_of: Callable[[int], Tasks], rounds: int) -> Figure:
    """How many times as fast two workers simulate as one, with equal results."""
    program = str(native.binary("concurve-disk"))
    specs = [
        encode_spec(TrialSpec(trial=f"sim-{seed}", roles=(RoleSpec(name="target", argv=(
            program, "load", "--scheduler", "cfq", "--scale", SIMULATED_SCALE, "--seed", str(seed),
        )),)))
        for seed in range(SIMULATED_AT_ONCE)
    ]  # fmt: skip
    said = dict[int, list[object]]()

    def by(workers: int) -> dict[str, float]:
        begin = time.perf_counter()
        records = map(decode_record, tasks_of(workers).map(run_packed, specs, 600.0))
        said[workers] = [record.roles[0].indicators for record in records]
        return {"s": time.perf_counter() - begin}

    by(2)  # an engine starts its processes when they are first needed
    taken = interleaved(rounds, {"one": lambda: by(1), "two": lambda: by(2)})
    if said[1] != said[2]:
        raise SystemExit(f"{what}: simulations differ between one worker and two")
    return Figure(
        f"simulations: 2 workers / 1, {what}",
        f"{rounds} rounds of {SIMULATED_AT_ONCE} simulations, equal results",
        ratio_of_medians(taken["one s"], taken["two s"]), Bound(low=SIMULATED_MIN),
    )  # fmt: skip


# -- Ray --------------------------------------------------------------------------------------


class Some:
    """Tasks of which no more than so many are under way at once."""

    def __init__(self, tasks: Tasks, workers: int) -> None:
        self._tasks = tasks
        self._workers = workers

    def map(
        self, function: Callable[[Any], Any], items: Iterable[Any], seconds: float | None = None
    ) -> Iterator[Any]:
        """See :meth:`Tasks.map`: threads that each ask for one result after the other."""
        with ThreadPoolExecutor(self._workers) as threads:
            yield from threads.map(
                lambda item: next(iter(self._tasks.map(function, [item], seconds))), items
            )


#: Runs in the namespace of the head: a trial for each line that it is given.
_DRIVER = """
import json, sys
from pathlib import Path
import msgspec
from hosts import Some, simulations, timed
from concurve.definition.hosts_file import load_hosts
from concurve.hosts.ray_cluster import connected
from concurve.wire.spec import RoleSpec

inventory = load_hosts(Path(sys.argv[1]))
with connected(inventory, inventory.hosts) as engine:
    print("ready", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        if "simulations" in asked:
            tasks_of = lambda workers: Some(engine.tasks, workers)
            figure = simulations("Ray", tasks_of, asked["simulations"])
            print(msgspec.json.encode(figure.estimate).decode(), flush=True)
        else:
            role = RoleSpec(name="target", argv=tuple(asked["argv"]), host="b")
            print(json.dumps(timed(engine, role)), flush=True)
"""


class Cluster:
    """Ray over namespaces, with a laboratory in that of the head."""

    def __init__(self, namespaces: Namespaces, folder: Path) -> None:
        self.namespaces = namespaces
        token = folder / "token"
        token.write_text(uuid.uuid4().hex)
        token.chmod(0o600)
        self.file = folder / "lab.toml"
        hosts = "".join(
            f'[hosts.{name}]\naddress = "{address}"\n'
            for name, address in namespaces.addresses.items()
        )
        self.file.write_text(
            f'[ray]\nhead = "a"\nport = 7500\npython = "{sys.executable}"\n'
            f'token = "{token}"\n{hosts}'
        )
        self.inventory: Inventory = load_hosts(self.file)
        self.mark = commands.mark_of(self.inventory)

    def up(self) -> float:
        """Start it; how many seconds that took."""
        begin = time.perf_counter()
        for stage in commands.up(self.inventory):
            running = [
                subprocess.Popen(
                    [*self.namespaces.enter(step.host), "sh", "-c", step.words[-1]],
                    stdout=subprocess.DEVNULL,
                )
                for step in stage
            ]
            if any(process.wait(120) for process in running):
                raise SystemExit(f"{stage[0].says} failed over namespaces")
        return time.perf_counter() - begin

    def pids(self, host: str) -> list[int]:
        """The daemons on a host."""
        words = ["ip", "netns", "pids", self.namespaces.name(host)]
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        return [int(word) for word in done.stdout.split()]

    @contextlib.contextmanager
    def laboratory(self) -> Iterator[Callable[[dict[str, Any]], dict[str, float]]]:
        """Asks a laboratory in the namespace of the head."""
        words = [*self.namespaces.enter("a"), sys.executable, "-c", _DRIVER, str(self.file)]
        folders = [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
        with subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        ) as process:
            assert process.stdin is not None and process.stdout is not None
            try:
                if process.stdout.readline() != "ready\n":
                    raise SystemExit("the laboratory in the namespace of the head did not start")

                def ask(asked: dict[str, Any]) -> dict[str, float]:
                    assert process.stdin is not None and process.stdout is not None
                    process.stdin.write(json.dumps(asked) + "\n")
                    process.stdin.flush()
                    found: dict[str, float] = json.loads(process.stdout.readline())
                    return found

                yield ask
                process.stdin.close()
                process.wait(60)
            finally:
                process.kill()


def of_ray(quick: bool) -> Iterator[Figure]:
    """What Ray adds."""
    try:
        with contextlib.ExitStack() as stack:
            cluster = stack.enter_context(started())
            yield up_seconds(cluster)
            yield from idle(cluster, 2.0 if quick else 30.0)
            with cluster.laboratory() as ask:
                role, local = busy(), LocalEngine()
                rounds = 3 if quick else 60
                sides: dict[str, Timed] = {
                    "local": lambda: timed(local, role),
                    "again": lambda: timed(local, role),
                    "ray": lambda: ask({"argv": role.argv}),
                }
                yield from compared("Ray", "ray", interleaved(rounds, sides), rounds)
                count = 2 if quick else 7
                yield Figure(
                    "simulations: 2 workers / 1, Ray",
                    f"{count} rounds of {SIMULATED_AT_ONCE} simulations, equal results",
                    msgspec.convert(ask({"simulations": count}), Estimate),
                    Bound(low=SIMULATED_MIN),
                )  # fmt: skip
    except MissingToolError as error:
        yield Figure("Ray over three hosts", "network namespaces", missing=str(error))


@contextlib.contextmanager
def started() -> Iterator[Cluster]:
    """Three namespaces and the files of a cluster; what was started there is ended.

    Raises:
        MissingToolError: Ray or namespaces are not there.
    """
    if importlib.util.find_spec("ray") is None:
        raise MissingToolError("Ray: pip install 'concurve[ray]'")
    if (lacking := no_namespaces()) is not None:
        raise MissingToolError(lacking)
    with scratch() as folder, Namespaces(["a", "b", "c"]) as namespaces:
        cluster = Cluster(namespaces, folder)
        try:
            yield cluster
        finally:
            daemons.stop(cluster.mark)


def up_seconds(cluster: Cluster) -> Figure:
    """How soon three hosts are there."""
    return unless_missing(
        Figure("three hosts up (s)", "concurve hosts up, without OpenSSH", None,
               Bound(high=UP_SECONDS_MOST)),
        lambda: Estimate(value=cluster.up(), n=1, unit="s"),
    )  # fmt: skip


def idle(cluster: Cluster, seconds: float) -> Iterator[Figure]:
    """What a host that only takes part pays for Ray while nothing runs."""
    shares = []
    for _ in range(3):
        before, begin = daemons.cpu_ns(cluster.pids("c")), time.perf_counter()
        time.sleep(seconds)
        used = daemons.cpu_ns(cluster.pids("c")) - before
        shares.append(used / 1e7 / (time.perf_counter() - begin))
    how = f"a host that is not the head, 3 × {seconds:g} s"
    yield Figure(
        "Ray's daemons, idle (% of a core)", how, median(shares, "%"),
        Bound(high=IDLE_PERCENT_MOST),
    )  # fmt: skip
    yield Figure(
        "Ray's daemons, memory (MB)", how,
        Estimate(value=sum(map(own_bytes, cluster.pids("c"))) / 1e6, n=1, unit="MB"),
        Bound(high=IDLE_MB_MOST),
    )  # fmt: skip


def own_bytes(pid: int) -> int:
    """The proportional set size of a process: shared pages are shared out."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0


if __name__ == "__main__":
    sys.exit(alone(figures, __doc__))
