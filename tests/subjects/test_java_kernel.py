"""The JVM kernel as its users meet it, on every Java that is installed here."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from concurve.errors import HostError
from concurve.host.java import find_java
from concurve.measuring import packaged

ROOT = Path(__file__).parents[2]
SMALL = ("--width", "53", "--height", "37", "--iterations", "300")
SECONDS = 120.0


def missing(version: str) -> str | None:
    """Why the kernel cannot run on this Java here, or ``None``."""
    try:
        packaged.command("mandelbrot-java", "test", version)
    except HostError as error:
        return error.what
    return None


@pytest.fixture(params=["17", "25"])
def java(request: pytest.FixtureRequest) -> str:
    """Each Java version that the kernel is tried on."""
    if (reason := missing(request.param)) is not None:
        pytest.skip(reason)
    return str(request.param)


@pytest.fixture
def some_java() -> str:
    """Any Java that will do."""
    if (reason := missing("17+")) is not None:
        pytest.skip(reason)
    return "17+"


def argv(java: str, *arguments: str, jvm: Sequence[str] = ()) -> list[str]:
    return [*packaged.command("mandelbrot-java", "test", java, jvm), *arguments]


def run(java: str, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if k != "CONCURVE_REPORT"}
    return subprocess.run(
        argv(java, *arguments),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env=environment,
        **options,
    )


def figures(text: str) -> list[dict[str, str]]:
    """The sets of ``key value`` lines, one a computation."""
    pairs = [line.split(" ", 1) for line in text.splitlines()]
    return [dict(pairs[i : i + 3]) for i in range(0, len(pairs), 3)]


def reported(java: str, *arguments: str) -> list[dict[str, Any]]:
    """The lines that a run writes to its report channel."""
    reader, writer = os.pipe()
    environment = {**os.environ, "CONCURVE_REPORT": str(writer)}
    with subprocess.Popen(
        argv(java, *arguments),
        env=environment,
        pass_fds=[writer],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    ) as process:
        os.close(writer)
        with os.fdopen(reader) as channel:
            lines = [json.loads(line) for line in channel]
        _, said = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, said
    return lines


def test_the_pixel_sum_is_that_of_the_native_kernel(java: str) -> None:
    try:
        kernel = str(packaged.program("mandelbrot", "test"))
    except HostError as error:
        pytest.skip(error.what)
    ours = subprocess.run([kernel, *SMALL], capture_output=True, text=True, check=True).stdout
    for kind in ("platform", "forkjoin", "parallel-stream"):
        theirs = run(java, *SMALL, "--kind", kind, "--sync", "cas", "--threads", "3").stdout
        assert figures(theirs)[0]["pixel_sum"] == figures(ours)[0]["pixel_sum"], kind


def test_the_report_channel_gets_valid_lines(java: str) -> None:
    schema = json.loads((ROOT / "schema" / "report-line.schema.json").read_text())
    validator = jsonschema.Draft202012Validator(schema)
    lines = reported(java, *SMALL, "--computations", "3", "--threads", "2", "--sync", "method")
    for line in lines:
        validator.validate(line)
    facts = {line["fact"]: line["value"] for line in lines if "fact" in line}
    assert facts["java_version"].startswith(java)
    assert "-Xlog:disable" in facts["jvm_flags"]
    assert facts["thread_kind"] == "platform"
    phases = [line["phase"] for line in lines if line.get("edge") == "begin"]
    assert phases == ["first", "measure", "measure"]
    values = {line["indicator"]: line["value"] for line in lines if "indicator" in line}
    assert values["operations"] == 2 * 53 * 37
    assert values["worker_kernel_threads"] == 2
    assert values["kernel_threads"] == 2 + values["service_threads"]
    assert values["compute_seconds"] == values["steady_compute_seconds"]
    series = [line for line in lines if line.get("indicator") == "computation_seconds"]
    assert series[0]["value"] == values["first_compute_seconds"]
    assert len(series) == 3
    pixels = [line["value"] for line in lines if line.get("indicator") == "worker_pixels"]
    assert (len(pixels), sum(pixels)) == (4, 2 * 53 * 37)


def test_one_computation_is_the_measured_one(some_java: str) -> None:
    lines = reported(some_java, *SMALL)
    assert [line["phase"] for line in lines if "phase" in line] == ["measure"] * 2
    names = [line["indicator"] for line in lines if "indicator" in line]
    assert "first_compute_seconds" in names
    assert "steady_compute_seconds" not in names


def test_without_workers_only_the_jvm_is_seen(some_java: str) -> None:
    lines = reported(some_java, *SMALL, "--threads", "0", "--hold-ms", "1")
    values = {line["indicator"]: line["value"] for line in lines if "indicator" in line}
    assert values["worker_kernel_threads"] == 0
    assert values["service_threads"] == values["kernel_threads"] > 1
    assert [line["phase"] for line in lines if "phase" in line] == ["hold"] * 2


def test_the_listing_is_that_of_the_document(some_java: str) -> None:
    text = run(some_java, *SMALL, "--listing", "--threads", "2", "--priority", "7").stdout
    lines = text.splitlines()
    assert lines[:4] == [". . . . .", "Calculating...", "X: 1 to 53", "Y: 1 to 37"]
    done = [f"Thread Thread-{number} done (Priority 7)" for number in (1, 2)]
    assert sorted(lines[4:6]) == done
    assert lines[7:] == [f"Number of pixels rendered: {53 * 37}"]


def test_virtual_threads_need_java_21(java: str) -> None:
    done = run(java, *SMALL, "--kind", "virtual", "--threads", "300")
    if int(java) < 21:
        assert (done.returncode, done.stdout) == (1, "")
        assert "virtual threads need Java 21" in done.stderr
    else:
        assert done.returncode == 0, done.stderr
        assert figures(done.stdout)[0]["pixels"] == str(53 * 37)


def test_virtual_threads_run_on_carriers() -> None:
    if (reason := missing("21+")) is not None:
        pytest.skip(reason)
    lines = reported("21+", *SMALL, "--kind", "virtual", "--threads", "300")
    values = {line["indicator"]: line["value"] for line in lines if "indicator" in line}
    assert values["worker_kernel_threads"] == 0
    assert 1 <= values["carrier_threads"] < 300


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--priority", "11"], 2, ["--priority", "1..=10"]),
        (["--kind", "green"], 2, ["--kind", "virtual"]),
        (["--sync", "lock"], 2, ["--sync", "cas"]),
        (["--threads", "4000000000"], 1, ["0 of 4000000000", "the limit that bit"]),
        (["--png", "/nonexistent/x.png"], 1, ["/nonexistent/x.png", "--png"]),
        (["--location", "/nonexistent"], 1, ["/nonexistent", "--location"]),
    ],
)
def test_refusals(some_java: str, arguments: list[str], code: int, words: list[str]) -> None:
    done = run(some_java, *arguments)
    assert (done.returncode, done.stdout) == (code, "")
    for word in words:
        assert word in done.stderr


def test_a_report_channel_that_cannot_be_opened_is_refused(some_java: str) -> None:
    environment = {**os.environ, "CONCURVE_REPORT": "977"}
    done = subprocess.run(
        argv(some_java, *SMALL), capture_output=True, text=True, env=environment, check=False
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "CONCURVE_REPORT" in done.stderr


@pytest.fixture
def pids_cgroup() -> Iterator[Path]:
    """A cgroup of our own that lets 100 threads through."""
    parent = next(
        (p for p in map(Path, ("/sys/fs/cgroup/pids", "/sys/fs/cgroup")) if _counts_pids(p)), None
    )
    if parent is None:
        pytest.skip("no pids cgroup can be made here")
    group = parent / f"concurve-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / "pids.max").write_text("100")
    except OSError as error:
        pytest.skip(f"no pids cgroup can be made here: {error.strerror}")
    yield group
    deadline = time.monotonic() + 10
    while (group / "cgroup.procs").read_text() and time.monotonic() < deadline:
        time.sleep(0.02)
    group.rmdir()


def _counts_pids(folder: Path) -> bool:
    if folder.name == "pids":
        return (folder / "tasks").exists()
    control = folder / "cgroup.subtree_control"
    return control.exists() and "pids" in control.read_text().split()


@pytest.mark.parametrize(
    ("kind", "create"),  # a pool creates at run time only the threads that it finds it needs
    [("platform", "start"), ("platform", "run"), ("forkjoin", "start")],
)
def test_too_many_threads_are_told_with_the_limit(
    java: str, pids_cgroup: Path, kind: str, create: str
) -> None:
    shell = ["sh", "-c", f'echo $$ > {pids_cgroup}/cgroup.procs && exec "$@"', "sh"]
    done = subprocess.run(
        [*shell, *argv(java, *SMALL, "--threads", "200", "--kind", kind, "--create", create)],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert "of 200 could be created" in done.stderr
    assert f"the limit that bit: pids.max of {pids_cgroup} = 100" in done.stderr


@pytest.mark.parametrize(("policy", "nices"), [("0", None), ("1", [4, -5])])
def test_priorities_reach_the_kernel(some_java: str, policy: str, nices: list[int] | None) -> None:
    """Without the policy the threads keep the nice value that these tests run under."""
    if os.geteuid() != 0:
        pytest.skip("only root may raise priorities")
    found = [worker_nice(some_java, policy, priority) for priority in ("1", "10")]
    assert found == (nices or [os.nice(0)] * 2)


def worker_nice(java: str, policy: str, priority: str) -> int:
    """The nice value of the worker as the kernel has it."""
    reader, writer = os.pipe()
    jvm = [f"-XX:ThreadPriorityPolicy={policy}"]
    process = subprocess.Popen(
        argv(java, *SMALL, "--priority", priority, "--hold-ms", "600000", jvm=jvm),
        env={**os.environ, "CONCURVE_REPORT": str(writer)},
        pass_fds=[writer],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(writer)
    try:
        with os.fdopen(reader) as channel:
            assert any('"hold"' in line for line in channel)
        stats = [path.read_text() for path in Path(f"/proc/{process.pid}/task").glob("*/stat")]
        worker = next(text for text in stats if "(Thread-1)" in text)
        return int(worker.rpartition(")")[2].split()[16])
    finally:
        process.kill()
        process.wait()


def test_the_java_that_was_found_is_the_version_asked_for(java: str) -> None:
    assert find_java(java, "test").major == int(java)
