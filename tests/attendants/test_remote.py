"""The attendant of a remote role: counters before and after, as indicators of a trial."""

from __future__ import annotations

import http.server
import itertools
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from concurve.definition.purposes import alone
from concurve.definition.remote import remote_arguments
from concurve.engine.local import LocalEngine
from concurve.measuring.packaged import command
from concurve.readings.measures import NO_ACCOUNTS, measure
from concurve.readings.operations import Asked
from concurve.wire import decode_record
from concurve.wire.record import TrialRecord
from concurve.wire.spec import RoleSpec, TrialSpec


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
    raw = LocalEngine().run(TrialSpec(trial="t", roles=(server, load), time_limit_ns=60 * 10**9))
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
