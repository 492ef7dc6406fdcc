"""The attendant of a remote role: counters before and after, as indicators of a trial."""

from __future__ import annotations

import contextlib
import http.server
import itertools
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from concurve.attendants import remote
from concurve.attendants.attendant import AttendantError
from concurve.definition.purposes import alone
from concurve.definition.remote import remote_arguments
from concurve.engine.local import LocalEngine
from concurve.errors import StudyError
from concurve.measuring.judgement import unread_counters
from concurve.measuring.packaged import command
from concurve.readings.measures import NO_ACCOUNTS, measure
from concurve.readings.operations import Asked
from concurve.wire import decode_record
from concurve.wire.record import TrialRecord
from concurve.wire.spec import RoleSpec, TrialSpec
from tests.helpers.real import wait_until


@pytest.fixture
def metrics() -> Iterator[str]:
    """A server whose counter grows by 100 with each reading."""
    readings = itertools.count(1)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != "/metrics":
                self.send_error(404)
                return
            self.send_response(200)
            self.end_headers()
            number = next(readings)
            self.wfile.write(f"jobs_total {100 * number}\nclients {number}\n".encode())

        def log_message(self, *_: object) -> None: ...

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/metrics"
    server.shutdown()
    thread.join()
    server.server_close()


def _trial(*arguments: str) -> TrialRecord:
    server = RoleSpec(
        name="server",
        argv=(*command("remote", "test"), "redis://db1:6379", *arguments),
        end="serve",
        ready="report",
    )
    load = RoleSpec(name="load", argv=("sleep", "0.05"))
    raw = LocalEngine().run(
        TrialSpec(trial="remote", roles=(server, load), time_limit_ns=60 * 10**9)
    )
    return decode_record(raw)


def test_counters_over_http_are_indicators_of_the_trial(metrics: str) -> None:
    record = _trial(*remote_arguments(metrics, None, (), "test"))
    assert record.outcome.kind == "ok", record.outcome
    figures = measure(record, Asked(alone("load")))
    assert figures.values["server.jobs_total"] == 100
    assert figures.values["server.clients"] == 2
    assert "server.cpu_seconds" not in figures.values, "those of the program that reads"
    assert figures.absent["server.cpu_seconds"] == NO_ACCOUNTS
    assert "server.threads_peak" not in figures.values


def test_counters_of_a_command_chosen_by_name(tmp_path: Path) -> None:
    counter = tmp_path / "n"
    script = (
        "import pathlib, sys; f = pathlib.Path(sys.argv[1]); "
        "n = int(f.read_text() or 0) + 7 if f.exists() else 7; f.write_text(str(n)); "
        "print('jobs_total', n); print('other', 1)"
    )
    told = (sys.executable, "-c", script, str(counter))
    record = _trial(*remote_arguments(None, told, ("jobs_*",), "test"))
    assert record.outcome.kind == "ok", record.outcome
    figures = measure(record, Asked(alone("load"))).values
    assert figures["server.jobs_total"] == 7
    assert "server.other" not in figures


def test_an_address_alone_has_no_figures() -> None:
    record = _trial()
    assert record.outcome.kind == "ok", record.outcome
    assert record.roles[0].facts == {"remote": "redis://db1:6379"}
    assert record.roles[0].indicators == ()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--http", "http://127.0.0.1:9/metrics"), "cannot be read"),
        (("--http", "{metrics}x"), "404"),
        (("--command", "/no/such"), "cannot be started"),
        (("--command", "sh", "-c", "echo not today >&2; exit 3"), "exited with 3: not today"),
        (("--command", "echo", "hello"), "no figure in Prometheus' text format"),
        (("--http",), "usage"),
    ],
)
def test_counters_that_cannot_be_read(metrics: str, arguments: tuple[str, ...], says: str) -> None:
    record = _trial(*(text.replace("{metrics}", metrics) for text in arguments))
    assert record.outcome.kind == "not_ready"
    assert says in record.roles[0].stderr.head
    assert record.roles[1].pid is None, "the load was never started"


@pytest.mark.parametrize(
    ("script", "names", "says"),
    [
        # It answers before the load, and no more after it.
        ("[ ! -e $0 ] || exit 4; touch $0; echo jobs_total 1", (), "exited with 4"),
    ],
)
def test_counters_that_cannot_be_read_after_the_load_fail_the_trial(
    tmp_path: Path, script: str, names: tuple[str, ...], says: str
) -> None:
    told = ("sh", "-c", script, str(tmp_path / "seen"))
    record = _trial(*remote_arguments(None, told, names, "test"))
    assert record.outcome.kind == "ok", "the runner had stopped it"
    said = unread_counters(record)
    assert said.startswith("role server: counters of redis://db1:6379: ")
    assert says in said
    assert unread_counters(_trial()) == ""


def test_a_name_that_no_figure_has_is_a_warning() -> None:
    """A server may show a counter only once it has counted something."""
    told = ("echo", "jobs_total 1")
    record = _trial(*remote_arguments(None, told, ("errors_*",), "test"))
    assert record.outcome.kind == "ok" and unread_counters(record) == ""
    (said,) = record.roles[0].facts["warnings"]
    assert said == "no figure of echo jobs_total 1 is called errors_*; it has jobs_total"


def test_too_many_figures_are_refused_before_the_load() -> None:
    lines = "seq 201 | sed 's/.*/n&_total 1/'"
    record = _trial("--command", "sh", "-c", lines)
    assert record.outcome.kind == "not_ready"
    assert "201 figures such as n1_total" in record.roles[0].stderr.head
    assert _trial("--name", "n1*", "--command", "sh", "-c", lines).outcome.kind == "ok"


@pytest.mark.parametrize(
    ("http", "command", "says"),
    [
        ("http://me:pw@db1:9121/metrics", None, "the URL has a login"),
        (None, ("redis-cli", "info", "|", "awk", "x"), "no shell reads the command, so"),
    ],
)
def test_ways_to_counters_that_would_fail(
    http: str | None, command: tuple[str, ...] | None, says: str
) -> None:
    with pytest.raises(StudyError, match=says) as refused:
        remote_arguments(http, command, (), "--counters")
    assert "pw" not in str(refused.value)


# -- sources without an end ----------------------------------------------------------------------


def test_a_command_that_prints_without_an_end_is_ended() -> None:
    record = _trial("--command", "yes", "jobs_total 1")
    assert record.outcome.kind == "not_ready"
    assert "more than 16 MiB" in record.roles[0].stderr.head


def test_what_a_command_says_is_kept_in_part() -> None:
    with pytest.raises(AttendantError, match="exited with 3: the last"):
        remote._printed(["sh", "-c", "head -c 1000000 /dev/zero >&2; echo >&2; echo the last >&2; "
                         "exit 3"])  # fmt: skip


def test_a_command_that_does_not_end_is_ended_with_what_it_has_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(remote, "READING_SECONDS", 0.5)
    place = tmp_path / "pid"
    with pytest.raises(AttendantError, match="did not print the counters within"):
        remote._printed(["sh", "-c", f"sleep 1077 & echo $! > {place}; echo jobs_total 1"])
    pid = int(place.read_text())
    wait_until(lambda: not is_alive(pid), "its end")


def test_an_answer_that_comes_byte_by_byte_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it goes on: each byte comes in time."""
    monkeypatch.setattr(remote, "READING_SECONDS", 0.5)

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError):
                while not has_ended.wait(0.02):
                    self.wfile.write(b"a")
                    self.wfile.flush()

        def log_message(self, *_: object) -> None: ...

    has_ended = threading.Event()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        with pytest.raises(AttendantError, match="did not come within"):
            remote._fetched(f"http://127.0.0.1:{server.server_port}/")
    finally:
        has_ended.set()
        server.shutdown()
        thread.join()
        server.server_close()


def test_an_answer_that_is_too_long_is_refused(
    metrics: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "BYTES_MAX", 20)
    with pytest.raises(AttendantError, match="shows more than"):
        remote._fetched(metrics)
    monkeypatch.setattr(remote, "BYTES_MAX", 16 << 20)
    assert "jobs_total" in remote._fetched(metrics)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
