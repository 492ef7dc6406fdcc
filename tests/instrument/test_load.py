"""``concurve load`` as one uses it, on a reference server."""

from __future__ import annotations

import csv
import json
import os
import pty
import re
import resource
import select
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hdrh.histogram import HdrHistogram

from concurve.errors import HostError
from concurve.host import native
from tests.cli.test_hdr_log import read
from tests.helpers import real
from tests.helpers.resp import Server, missing, serving

PATIENCE_S = 120.0
CPUS = os.cpu_count() or 1
ERASE = "\r\x1b[K"


def why_not() -> str | None:
    try:
        native.binary("concurve-load")
    except HostError as error:
        return str(error)
    return missing() or real.missing()


pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(why_not() is not None, reason=str(why_not())),
]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


@pytest.fixture
def url(server: Server) -> str:
    return f"redis://127.0.0.1:{server.port}"


def load(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    line = [real.CONCURVE, "load", *arguments]
    options |= {"capture_output": True, "text": True, "timeout": PATIENCE_S}
    return subprocess.run(line, check=False, stdin=subprocess.DEVNULL, **options)


def test_a_table_that_fits_a_terminal(url: str) -> None:
    done = load(url, "--mix", "get=80,set=20", "--sessions", "8", "--duration", "300ms")
    assert (done.returncode, done.stderr) == (0, "")
    # A busy machine is told first.
    lines = [line for line in done.stdout.splitlines() if not line.startswith("in doubt: ")]
    assert "8 sessions on one thread, closed loop" in lines[0], done.stdout
    assert [line.split()[0] for line in lines[3:6]] == ["get", "set", "all"]
    warned = [line for line in lines if line.startswith("warning: ")]
    assert all(len(line) <= 80 for line in lines if line not in warned), done.stdout
    assert re.search(
        r"^answered +[\d,]+ in 0\.30 s \(0 refused, 0 errors, [\d,]+ empty\)$", done.stdout, re.M
    )


def test_figures_as_json(url: str) -> None:
    done = load(
        url, "--workload", "set-nx-del", "--sessions", "5", "--transactions", "500", "--json"
    )
    figures = json.loads(done.stdout)
    assert figures["operations"] + figures["errors"] == 500
    assert sum(figures["session_operations"]) == 500
    assert figures["kinds"][0]["round_trips"] == 2
    assert 0 < figures["latency_ns"]["p50"] <= figures["latency_ns"]["max"]


def test_an_open_loop_accounts_for_all_that_was_due(url: str, tmp_path: Path) -> None:
    log = tmp_path / "requests.csv"
    done = load(url, "--mix", "get=1,set=1", "--sessions", "8", "--rate", "300", "--duration", "1s",
                "--json", "--log-requests", str(log))  # fmt: skip
    figures = json.loads(done.stdout)
    # One each 1/300 s: the last is due at the end itself, give or take a rounding.
    assert figures["due"] in (299, 300)
    names = ("answered", "transactions_lost", "unanswered", "skipped")
    counts = {name: figures[name] for name in names}
    assert figures["due"] == sum(counts.values())
    with log.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == figures["due"]
    assert {row["kind"] for row in rows} == {"get", "set"}
    answered = [row for row in rows if row["outcome"] == "ok"]
    assert len(answered) == counts["answered"]
    latencies = sorted(int(row["answered_ns"]) - int(row["due_ns"]) for row in answered)
    assert figures["latency_ns"]["max"] >= latencies[-1]
    assert all(int(row["due_ns"]) <= int(row["sent_ns"]) for row in answered)


def test_a_server_that_answers_no_more_is_seen_on_the_terminal() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def accept() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1)
                held.wait()

        held = threading.Event()
        thread = threading.Thread(target=accept)
        thread.start()
        url = f"redis://127.0.0.1:{listener.getsockname()[1]}"
        terminal = Terminal(
            real.CONCURVE, "load", url, "--sessions", "1", "--rate", "50", "--duration", "1h"
        )
        try:
            terminal.until(lambda text: "no answer" in text and " unanswered" in text)
            terminal.process.send_signal(signal.SIGINT)
            assert terminal.end() == 130
        finally:
            held.set()
            thread.join()
    drawn, _, rest = terminal.text.rpartition(ERASE)
    assert all(len(line) <= 80 for line in drawn.split(ERASE))
    assert re.search(r"due +[\d,]+: 0 answered, [\d,]+ unanswered, 0 skipped", rest)
    assert "were not answered" in rest


def test_a_log_that_a_library_reads(url: str, tmp_path: Path) -> None:
    file = tmp_path / "a.hdr"
    done = load(url, "--mix", "get=1,set=1", "--sessions", "4", "--duration", "1200ms",
                "--hdr", str(file), "--json")  # fmt: skip
    figures, found = json.loads(done.stdout), read(file)
    kinds = {kind["name"]: kind for kind in figures["kinds"]}
    assert set(found) == {"", "get", "set"}
    assert found[""].get_total_count() == figures["operations"]
    for tag, latency in [("", figures["latency_ns"])] + [
        (name, kind["latency_ns"]) for name, kind in kinds.items()
    ]:
        for name, percentile in (("p50", 50), ("p99", 99), ("max", 100)):
            # One library rounds the rank, the other takes the next one: neighbours count. Half a
            # rank more, since a percentile that is the neighbour's own may be rounded back.
            more = 150 / found[tag].get_total_count()
            low = found[tag].get_value_at_percentile(max(0, percentile - more))
            high = found[tag].get_value_at_percentile(min(100, percentile + more))
            assert low * 0.998 <= latency[name] <= high * 1.002


def test_a_log_from_a_stored_run(url: str, tmp_path: Path) -> None:
    lab = real.Lab(tmp_path)
    program = str(native.binary("concurve-load"))
    done = lab.run(
        "sweep", "--repeats", "2..2", "-P", "sessions", "1,3", "--", program, url,
        "--sessions", "{sessions}", "--threads", "1", "--transactions", "300",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    done = lab.run("export", "last", "--format", "hdr", "-o", "run.hdr")
    assert done.returncode == 0, done.stderr
    found = read(tmp_path / "run.hdr")
    cells = json.loads(lab.run("export", "last").stdout)["cells"]
    for sessions in (1, 3):
        histogram: HdrHistogram = found[f"sessions={sessions}/target/latency"]
        assert histogram.get_total_count() == 600
    said = [
        line["value"]
        for cell in cells
        for trial in cell["trials"]
        if trial["used"]  # not those that were redone: they are not in the log
        for line in trial["record"]["roles"][0]["indicators"]
        if line["indicator"] == "latency_ns_max"
    ]
    greatest = max(it.get_max_value() for tag, it in found.items() if tag.endswith("/latency"))
    assert greatest == pytest.approx(max(said), rel=2e-3)


def test_a_run_without_histograms_is_refused_by_name(tmp_path: Path) -> None:
    lab = real.Lab(tmp_path)
    assert lab.run("sweep", "--repeats", "2..2", "--", "true").returncode == 0
    done = lab.run("export", "last", "--format", "hdr")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no program of this run reported a histogram" in done.stderr


# -- on a terminal ---------------------------------------------------------------------------


class Terminal:
    """A program on a terminal of its own; what it prints is collected."""

    def __init__(self, *argv: str) -> None:
        self.ours, theirs = pty.openpty()
        self.text = ""
        self.process = subprocess.Popen(
            argv, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        os.close(theirs)

    def until(self, happened: Callable[[str], bool]) -> None:
        """Read until what is printed satisfies ``happened``."""
        deadline = time.monotonic() + PATIENCE_S
        while not happened(self.text):
            assert time.monotonic() < deadline, self.text
            if not self.read(1.0):
                assert happened(self.text), self.text

    def read(self, seconds: float) -> bool:
        """Read the available output; false if its end is reached."""
        if not select.select([self.ours], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.ours, 65536)
        except OSError:  # the other side is closed
            return False
        self.text += data.decode()
        return bool(data)

    def end(self) -> int:
        """Read to the end; the exit code."""
        while self.read(1.0):
            pass
        os.close(self.ours)
        return self.process.wait(PATIENCE_S)


def test_progress_is_shown_on_a_terminal_and_cleared(url: str) -> None:
    terminal = Terminal(real.CONCURVE, "load", url, "--sessions", "4", "--duration", "1h")
    terminal.until(lambda text: text.count("/s  p50 ") >= 2)
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == 130
    drawn, _, rest = terminal.text.rpartition(ERASE)
    assert all(len(line) <= 80 for line in drawn.split(ERASE))
    assert re.search(r"of 3600 s  [\d,]+/s  p50 .* p99 .*  0 errors", drawn)
    assert "answered" in rest and "these are the figures so far" in rest


def test_a_search_shows_what_it_tries(url: str) -> None:
    terminal = Terminal(
        real.CONCURVE, "load", url, "--sessions", "4", "--slo", "p99=5s", "--duration", "1h"
    )
    terminal.until(lambda text: "without pauses" in text)
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == 130
    assert "it cannot be said what rate keeps p99=5s" in terminal.text


@pytest.fixture
def hogs() -> Iterator[None]:
    """Twice as many competitors as there are CPUs."""
    argv = [real.TARGETS, "busy", "--threads", "1", "--until-stopped"]
    started = [subprocess.Popen(argv, stdout=subprocess.DEVNULL) for _ in range(2 * CPUS)]
    yield
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.soak  # what runs beside it would be slow
@pytest.mark.usefixtures("hogs")
@pytest.mark.parametrize("rate", [(), ("--rate", "200")])
def test_what_a_search_finds_on_a_busy_machine_is_in_doubt(url: str, rate: tuple[str, ...]) -> None:
    """Whatever it finds: who had the CPUs is named. That there is no answer needs no doubt."""
    words = (url, "--sessions", "4", "--slo", "p99=1ms", "--duration", "3s", *rate)
    text, found = load(*words), json.loads(load(*words, "--json").stdout)
    for done in (text.stdout + text.stderr, str(found["warnings"])):
        assert re.search(r"the CPUs of this machine were busy .*concurve-target", done), done
    said = text.stdout.partition("\n")[0]
    assert ("in doubt, because the machine was busy" in said) is ("cannot be said" not in said), (
        said
    )
    assert found["in_doubt"] is (found["outcome"] != "undecided")


# -- what goes wrong -------------------------------------------------------------------------


def test_no_server_is_there() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        done = load(f"redis://127.0.0.1:{free.getsockname()[1]}", "--transactions", "1")
    assert (done.returncode, done.stdout) == (1, "")
    assert "is the server up?" in done.stderr


def test_another_service_is_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        url = f"redis://127.0.0.1:{listener.getsockname()[1]}"
        done = load(url, "--transactions", "1", "--sessions", "1")
        thread.join()
    assert done.returncode == 1
    assert "which is not RESP: is this the right port?" in done.stderr


def test_a_password_is_asked_for() -> None:
    with serving(CONCURVE_PASSWORD="open sesame") as server:
        url = f"redis://127.0.0.1:{server.port}"
        without = load(url, "--transactions", "5", "--sessions", "1")
        assert without.returncode == 1
        assert "--password-from VARIABLE" in without.stderr
        environment = {**os.environ, "SECRET": "open sesame"}
        given = load(
            url, "--transactions", "5", "--sessions", "1", "--password-from", "SECRET",
            env=environment,
        )  # fmt: skip
        assert given.returncode == 0, given.stderr


def test_too_many_sessions_for_the_limit_of_open_files(url: str) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))

    done = load(url, "--sessions", "200", "--transactions", "1000", preexec_fn=limit)
    assert done.returncode == 2
    assert "this process may open 100: raise the limit (ulimit -Hn)" in done.stderr


def test_the_soft_limit_of_open_files_is_raised(url: str) -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard))

    done = load(url, "--sessions", "200", "--transactions", "1000", preexec_fn=limit)
    assert done.returncode == 0, done.stderr


def test_help_and_wrong_options() -> None:
    helped = load("--help")
    assert helped.returncode == 0 and "--slo" in helped.stdout
    nonsense = load("redis://127.0.0.1", "--sessions", "many")
    assert nonsense.returncode == 2 and "many" in nonsense.stderr


# -- beside Redis ----------------------------------------------------------------------------


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="apt-get install redis-server")
def test_resp3_on_redis(tmp_path: Path) -> None:
    path = tmp_path / "redis.sock"
    process = subprocess.Popen(
        ["redis-server", "--port", "0", "--unixsocket", str(path), "--save", ""],
        stdout=subprocess.DEVNULL,
        cwd=tmp_path,
    )
    try:
        real.wait_until(path.exists, "the socket of Redis", of=process)
        done = load(f"unix://{path}?protocol=3", "--mix", "get=1,incr=1", "--transactions", "500")
        assert done.returncode == 0, done.stderr
        assert "0 errors" in done.stdout
    finally:
        process.terminate()
        process.wait(PATIENCE_S)
