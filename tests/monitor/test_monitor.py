"""Watching a running server: readings, what lies between two, and the verb."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from concurve.cli import monitor
from concurve.errors import ConcurveError
from concurve.monitor import asking
from concurve.monitor.asking import PlaceError, watching
from concurve.monitor.interval import RestartedError, between
from concurve.monitor.reading import NotOurServerError, Reading, parse
from concurve.monitor.show import lines
from tests.helpers import resp

PLACE = "127.0.0.1:7379"


def info(
    *, at: float = 0.0, cpu: float = 0.0, requests: int = 0, transactions: int = 0,
    busy: float = 0.0, engine_cpu: float | None = 0.0, clock: int = -94, found: int = 0,
    compiled: int = 0, latch: tuple[int, int, int, int] = (0, 0, 0, 0),
) -> str:  # fmt: skip
    """The answer to INFO of a server with two engines, the second of which does nothing; times in
    seconds."""
    us = 1_000_000
    counts = ",".join(
        f"{name}={count}"
        for name, count in zip(("acquisitions", "waits", "spins", "sleeps"), latch, strict=True)
    )
    own_cpu = "" if engine_cpu is None else f"cpu_us={round(engine_cpu * us)},"
    spent = (
        f"busy_us={round(busy * us)},spinning_us=0,asleep_us={round((at - busy) * us)},disk_us=0"
    )
    return "\r\n".join(
        [
            "# Server", "redis_version:7.0.0", "concurve_version:0.1.0", "service:statements",
            "engines:threads", "idle:spin:100", "connected_clients:64",
            "", "# Activity", f"read_at_us:{round(at * us)}", f"cpu_us:{round(cpu * us)}",
            f"requests:{requests}",
            f"transactions:{transactions}", "aborts:0",
            "", "# Engines", f"engine-1:{spent},{own_cpu}clock={clock}",
            f"engine-2:busy_us=0,spinning_us=0,asleep_us={round(at * us)},disk_us=0,cpu_us=0,"
            "clock=-102",
            "", "# Latches", f"procedure cache:{counts},held=0",
            "other:acquisitions=5,waits=0,spins=0,sleeps=0,held=1",
            "", "# Utilisation", f"procedure cache:used={2 * compiled},size=8000",
            "record cache:used=0,size=0",
            "", "# Statements", f"cached:{compiled}", "dropped:0", f"found:{found}",
            f"compiled:{compiled}", "exhausted:0", "", "# Records", "stopped:no", "",
        ]
    )  # fmt: skip


BEFORE = info(at=100.0, cpu=7.0, requests=1000, transactions=10, busy=3.0, engine_cpu=2.5,
              found=50, compiled=4, latch=(100, 10, 1000, 1))  # fmt: skip
AFTER = info(at=110.0, cpu=12.0, requests=41_000, transactions=5010, busy=9.0, engine_cpu=7.5,
             found=349, compiled=5, latch=(1100, 210, 9000, 41))  # fmt: skip


def reading(text: str) -> Reading:
    return parse(text, PLACE)


def test_an_interval_has_the_differences_of_both_meters() -> None:
    found = between(reading(BEFORE), reading(AFTER), PLACE)
    assert found.seconds == pytest.approx(10)
    assert found.cpus == pytest.approx(0.5)
    engine, idle = found.engines
    assert (engine.name, engine.died) == ("engine-1", False)
    assert engine.own == pytest.approx({"busy": 0.6, "spinning": 0, "disk": 0, "asleep": 0.4})
    assert engine.cpu == pytest.approx(0.5)
    assert idle.own["asleep"] == pytest.approx(1)
    assert idle.cpu == 0


def test_work_is_counted_for_a_second_of_cpu_time() -> None:
    found = between(reading(BEFORE), reading(AFTER), PLACE)
    requests, transactions, aborts = found.work
    assert requests.count == 40_000
    assert requests.per_second == pytest.approx(4000)
    assert requests.per_cpu_second == pytest.approx(8000)
    assert transactions.per_cpu_second == pytest.approx(1000)
    assert aborts.count == 0
    assert found.found_share == pytest.approx(299 / 300)


def test_latches_that_were_used_stand_in_the_order_of_their_waits() -> None:
    (latch,) = between(reading(BEFORE), reading(AFTER), PLACE).latches
    assert latch.name == "procedure cache"
    assert (latch.acquisitions, latch.sleeps) == (1000, 40)
    assert latch.contention == pytest.approx(0.2)
    assert latch.spins_per_wait == pytest.approx(40)


def test_what_is_in_use_is_as_of_the_end_of_the_interval() -> None:
    found = between(reading(BEFORE), reading(AFTER), PLACE)
    procedures, records = found.utilisation
    assert (procedures.name, procedures.used, procedures.size) == ("procedure cache", 10, 8000)
    assert procedures.share == pytest.approx(10 / 8000)
    assert records.share is None, "nothing is full that holds nothing"
    shown = lines(found, PLACE)
    (line,) = (line for line in shown if line.startswith("procedure cache") and "8,000" in line)
    assert line.split() == ["procedure", "cache", "10", "8,000", "0.1", "%"]


def test_without_any_work_there_is_nothing_to_divide_by() -> None:
    later = BEFORE.replace("read_at_us:100000000", "read_at_us:101000000")
    found = between(reading(BEFORE), reading(later), PLACE)
    assert found.work[0].per_cpu_second is None
    assert found.found_share is None
    assert found.latches == ()


GONE = AFTER.replace(f"cpu_us={7_500_000},", "")


@pytest.mark.parametrize(
    ("before", "after"),
    [(BEFORE, AFTER.replace("clock=-94", "clock=-110")), (BEFORE, GONE), (GONE, AFTER)],
)
def test_what_an_engine_spent_that_died_is_not_known_nor_is_any_sum_with_it(
    before: str, after: str
) -> None:
    before = before.replace("read_at_us:110", "read_at_us:100")
    found = between(reading(before), reading(after), PLACE)
    engine, other = found.engines
    assert (engine.died, engine.cpu, engine.own) == (True, None, {})
    assert not other.died and other.cpu == 0
    assert found.cpus is None
    assert all(item.per_cpu_second is None for item in found.work)
    shown = lines(found, PLACE)
    assert any(line.startswith("engine-1*") and line.count("–") == 5 for line in shown)
    assert any("died in the interval" in line for line in shown)


def test_an_engine_that_begins_has_spent_nothing_before() -> None:
    never = BEFORE.replace("clock=-94", "clock=0").replace("cpu_us=2500000,", "")
    engine = between(reading(never), reading(AFTER), PLACE).engines[0]
    assert not engine.died and engine.cpu == pytest.approx(7.5 / 110)
    (still, _) = between(reading(never), reading(never_later(never)), PLACE).engines
    assert (still.died, still.cpu, still.own["busy"]) == (False, 0, 0)


def never_later(text: str) -> str:
    return text.replace("read_at_us:100", "read_at_us:101")


@pytest.mark.parametrize("after", [BEFORE, info(at=200.0, requests=3)])
def test_counters_that_went_back_are_of_another_server(after: str) -> None:
    with pytest.raises(RestartedError, match="restarted"):
        between(reading(BEFORE), reading(after), PLACE)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("# Server\r\nredis_version:7.0.15\r\n", "no concurve-server"),
        ("", "no concurve-server"),
        ("# Server\r\nconcurve_version:0.0.9\r\n", "has other counters"),
        (BEFORE.replace("busy_us=", "work_us="), "has other counters"),
        (BEFORE.replace("cpu_us:7000000", "cpu_us:many"), "has other counters"),
    ],
)
def test_an_answer_that_is_none_is_refused_by_name(text: str, says: str) -> None:
    with pytest.raises(NotOurServerError, match=says) as caught:
        parse(text, PLACE)
    assert PLACE in str(caught.value)
    assert caught.value.remedy


def test_what_is_shown_fits_into_80_columns() -> None:
    great = info(at=110.0, cpu=12.0, requests=41_000_000_000, transactions=5_000_000_000, busy=9.0,
                 engine_cpu=7.5, found=3_000_000_000, compiled=5,
                 latch=(8_000_000_000, 4_000_000_000, 10**12, 4_000_000_000))  # fmt: skip
    shown = lines(between(reading(BEFORE), reading(great), PLACE), PLACE)
    assert max(map(len, shown)) <= 80
    text = "\n".join(shown)
    for part in ("60.0 %", "50.0 %", "engines threads", "64 clients", "procedure cache"):
        assert part in text


# ── the verb ─────────────────────────────────────────────────────────────────


@contextmanager
def answering(answer: Callable[[list[str]], bytes | None]) -> Iterator[int]:
    """A server that gives each command what a function makes of its words, or hangs up."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                link, _ = listener.accept()
            except OSError:
                return
            with link, link.makefile("rb") as requests:
                while line := requests.readline():
                    words = []
                    for _ in range(int(line[1:])):
                        size = int(requests.readline()[1:])
                        words.append(requests.read(size + 2)[:-2].decode())
                    reply = answer(words)
                    if reply is None:
                        break
                    link.sendall(reply)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()
    thread.join(60)


def bulk(text: str) -> bytes:
    return b"$%d\r\n%s\r\n" % (len(text), text.encode())


def readings(*texts: str) -> Callable[[list[str]], bytes | None]:
    left = list(texts)
    return lambda words: bulk(left.pop(0)) if left else None


def watch(*arguments: str) -> Result:
    return CliRunner().invoke(monitor.verb, [*arguments, "--interval", "1ms"])


def test_each_interval_is_printed() -> None:
    third = info(at=111.0, cpu=13.0, requests=41_500, transactions=5020, busy=9.5, engine_cpu=8.0,
                 found=349, compiled=5, latch=(1200, 210, 9000, 41))  # fmt: skip
    with answering(readings(BEFORE, AFTER, third)) as port:
        result = watch(f"127.0.0.1:{port}", "--count", "2")
    assert result.exit_code == 0, result.output
    assert "over 10 s" in result.output
    assert "over 1 s" in result.output
    assert result.output.count("Latches") == 2


def test_an_interval_is_a_line_of_json() -> None:
    with answering(readings(BEFORE, AFTER)) as port:
        result = watch(f"localhost:{port}", "--json")
    (line,) = result.output.splitlines()
    found = json.loads(line)
    assert found["engines"][0]["own"]["busy"] == pytest.approx(0.6)
    assert found["work"][1]["name"] == "transactions"


def test_a_password_is_taken_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONCURVE_TEST_PASSWORD", "secret")
    left = [BEFORE, AFTER]
    given: list[list[str]] = []

    def answer(words: list[str]) -> bytes:
        given.append(words)
        return b"+OK\r\n" if words[0] == "AUTH" else bulk(left.pop(0))

    with answering(answer) as port:
        result = watch(f"127.0.0.1:{port}", "--password-from", "CONCURVE_TEST_PASSWORD")
    assert result.exit_code == 0, result.output
    assert given[0] == ["AUTH", "secret"]


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (lambda _: b"-NOAUTH a password is needed\r\n", "NOAUTH"),
        (lambda _: b"HTTP/1.1 400 Bad Request\r\n", "is no concurve-server"),
        (lambda _: bulk("# Server\r\nredis_version:7.0.15\r\n"), "is no concurve-server"),
        (lambda _: None, "the connection was lost"),
        (readings(BEFORE), "the connection was lost"),
        (readings(BEFORE, BEFORE), "restarted"),
    ],
)
def test_another_server_is_named_in_the_error(
    answer: Callable[[list[str]], bytes | None], says: str
) -> None:
    with answering(answer) as port:
        result = watch(f"127.0.0.1:{port}")
    assert isinstance(result.exception, ConcurveError)
    assert says in str(result.exception)
    assert result.exception.remedy


def test_where_nobody_listens_says_so() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        result = watch(f"127.0.0.1:{closed.getsockname()[1]}")
    assert "no server answers at" in str(result.exception)


@pytest.mark.parametrize("place", ["localhost", "host:", "host:0", "host:70000", "::"])
def test_a_place_that_is_none_is_refused(place: str) -> None:
    result = watch(place)
    assert isinstance(result.exception, ConcurveError)
    assert (result.exception.exit_code, "is no HOST:PORT" in str(result.exception)) == (2, True)


def test_ctrl_c_ends_an_interval_early_and_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", interrupted)
    with answering(readings(BEFORE, AFTER)) as port:
        result = watch(f"127.0.0.1:{port}", "--count", "5")
    assert result.exit_code == 1  # click's word for it; the command makes 130 of it
    assert result.output.count("over 10 s") == 1


def test_a_real_ctrl_c_leaves_no_trace() -> None:
    at = 0

    def answer(_: list[str]) -> bytes:
        nonlocal at
        at += 1
        return bulk(info(at=float(at)))

    program = Path(sys.executable).with_name("concurve")
    with answering(answer) as port:
        watcher = subprocess.Popen(
            [str(program), "monitor", f"127.0.0.1:{port}", "--interval", "5ms", "--count", "99999"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert watcher.stdout is not None
        assert "over 1 s" in watcher.stdout.readline()
        watcher.send_signal(signal.SIGINT)
        _, err = watcher.communicate(timeout=120)
    assert (watcher.returncode, err.strip()) == (130, "concurve: stopped")


# ── a real server, in both modes ─────────────────────────────────────────────

MODES = {
    "threads": ("--engines", "threads", "--engine-count", "2", "--io-threads", "1"),
    "processes": ("--engines", "processes", "--engine-count", "2"),
}


@pytest.fixture(params=MODES)
def server(request: pytest.FixtureRequest) -> Iterator[resp.Server]:
    if resp.missing():
        pytest.skip(str(resp.missing()))
    with resp.serving("--idle", "spin:100", *MODES[request.param]) as running:
        yield running


def work(server: resp.Server, count: int) -> None:
    client = resp.Client(server.port)
    for number in range(count):
        client("LOCK", "T", f"{client.socket.getsockname()[1]}-{number}", "E")
    client.close()


def test_a_real_server_accounts_for_all_of_its_time(server: resp.Server) -> None:
    with watching("127.0.0.1", server.port) as watched:
        before = watched.read()
        work(server, 200)
        found = between(before, watched.read(), watched.place)
    names = [engine.name for engine in found.engines]
    assert names[:2] == ["engine-1", "engine-2"]
    assert ("io-1" in names) == (found.server["engines"] == "threads")
    for engine in found.engines:
        assert sum(engine.own.values()) == pytest.approx(1)
        assert engine.cpu is not None
    assert found.work[0].count >= 200
    assert found.cpus is not None and found.cpus > 0
    assert [(item.name, item.size) for item in found.utilisation] == [("lock table", 1_000_000)]
    assert sum(latch.acquisitions for latch in found.latches if "lock" in latch.name) > 0
    assert max(map(len, lines(found, watched.place))) <= 80


@pytest.mark.parametrize("replies", ["io-thread", "engine"])
def test_where_engines_take_from_a_queue_a_thread_of_its_own_waits_for_the_disk(
    tmp_path: Path, replies: str
) -> None:
    if resp.missing():
        pytest.skip(str(resp.missing()))
    backup = ("--backup", str(tmp_path / "locks"), "--durability", "power", "--replies", replies)
    with resp.serving(*backup) as server, watching("127.0.0.1", server.port) as watched:
        before = watched.read()
        client = resp.Client(server.port)
        for number in range(20):
            client("LOCK", "T", str(number), "E", "SCOPE", 3, "BACKUP")
        client.close()
        found = between(before, watched.read(), watched.place)
    own = {engine.name: engine.own["disk"] for engine in found.engines}
    assert list(own) == ["engine-1", "io-1", "disk-1"]
    assert own["disk-1"] > 0
    assert own["engine-1"] == own["io-1"] == 0
    assert found.server["replies"] == replies


def test_sections_of_info_may_be_asked_for(server: resp.Server) -> None:
    client = resp.Client(server.port)
    text = client("INFO", "engines", "LATCHES")
    assert [line for line in text.splitlines() if line.startswith("#")] == [
        "# Engines",
        "# Latches",
    ]
    assert client("INFO", "nothing") == ""
    assert client("INFO").startswith("# Server\r\nredis_version:")
    client.close()


def test_the_cpu_time_is_that_of_the_kernel(server: resp.Server) -> None:
    """Both are read while the server is idle, so what lies between the readings does not count."""

    def settled() -> tuple[float, float]:
        return watched.read().cpu_us / 1e6, tree_cpu_seconds(server.process.pid)

    with watching("127.0.0.1", server.port) as watched:
        work(server, 2000)
        monitor_seconds, proc_seconds = settled()
    # /proc counts in steps of 10 ms for each process, and includes the supervisor's own start.
    assert monitor_seconds == pytest.approx(proc_seconds, rel=0.05, abs=0.1)


def tree_cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    tasks = Path(f"/proc/{pid}/task").iterdir()
    children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    return own + sum(tree_cpu_seconds(child) for child in children)


@pytest.mark.parametrize("text", ["h:²", "h:٣", "h:" + "9" * 5000, "9" * 5000, "h:", "h:+1"])
def test_what_is_no_port_is_refused(text: str) -> None:
    result = watch(text)
    assert isinstance(result.exception, PlaceError) and result.exception.remedy


@pytest.mark.parametrize("host", ["a..b", "x" * 300, "a\0b"])
def test_what_no_name_of_a_host_can_be_is_refused(host: str) -> None:
    result = watch(f"{host}:7379")
    assert isinstance(result.exception, ConcurveError)
    assert "no server answers" in str(result.exception)


@pytest.mark.parametrize(
    "answer",
    [b"$" + b"9" * 5000 + b"\r\n", b"$\xb2\r\n", b"$-1\r\n", b"\r\n", b"\0" * 70_000, b"$3\r\nabc"],
    ids=["digits", "other-digits", "none", "empty", "no-line", "cut"],
)
def test_whatever_a_server_answers_is_an_error_in_words(
    monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    monkeypatch.setattr(asking, "_PATIENCE_SECONDS", 2.0)

    def once(_: list[str]) -> bytes | None:
        return told.pop() if told else None

    told = [answer]
    with answering(once) as port:
        raised = watch(f"127.0.0.1:{port}").exception
    assert isinstance(raised, ConcurveError), repr(raised)


def test_an_answer_that_comes_byte_by_byte_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it goes on: each byte comes in time."""
    monkeypatch.setattr(asking, "_PATIENCE_SECONDS", 0.3)
    listener = socket.create_server(("127.0.0.1", 0))

    def drip() -> None:
        link, _ = listener.accept()
        with link, suppress(OSError):
            while True:
                link.sendall(b"+")
                time.sleep(0.01)

    threading.Thread(target=drip, daemon=True).start()
    with listener:
        result = watch(f"127.0.0.1:{listener.getsockname()[1]}")
    assert "did not answer" in str(result.exception)


@pytest.mark.parametrize("number", ["0", "-1", str(2**63), str(10**400), "9" * 5000, "nan", ""])
def test_whatever_number_a_server_tells_is_shown_or_refused(number: str) -> None:
    for text in (BEFORE, AFTER):
        for match in re.finditer(r"(?<=[:=])-?[0-9]+(?=[,\r])", text):
            damaged = text[: match.start()] + number + text[match.end() :]
            pair = (damaged, AFTER) if text is BEFORE else (BEFORE, damaged)
            with suppress(ConcurveError):
                lines(between(reading(pair[0]), reading(pair[1]), PLACE), PLACE)


def test_a_password_may_have_any_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONCURVE_TEST_PASSWORD", "caf\udce9")
    result = watch("127.0.0.1:1", "--password-from", "CONCURVE_TEST_PASSWORD")
    assert isinstance(result.exception, ConcurveError)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"+OK\r\n")
        asking.Watched(ours, PLACE).log_in("caf\udce9")
        assert theirs.recv(100).endswith(b"\r\ncaf\xe9\r\n")
