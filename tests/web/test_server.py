"""The server as a process: it starts and stops runs, ends at once, loses nothing when killed."""

from __future__ import annotations

import http.client
import logging
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from concurve.store import Store
from concurve.web import server
from concurve.web.server import PlaceError, names_of
from tests.helpers.real import Lab, missing, wait_until
from tests.web.places import Served, serve

real = [
    pytest.mark.real,
    pytest.mark.skipif(missing() is not None, reason=missing() or ""),
]


def sweep(seconds: float, levels: str = "1,2", repeats: str = "2..2") -> dict[str, Any]:
    """A form of a sweep whose trials last so long."""
    return {
        "command": f"sh -c 'sleep {seconds}' {{n}}",
        "parameters": [{"name": "n", "levels": levels}],
        "effort": "normal",  # whose time allowance no test reaches
        "repeats": repeats,
    }


@pytest.fixture
def served(lab: Lab) -> Iterator[Served]:
    found = serve(lab)
    yield found
    found.process.kill()
    found.process.communicate()


def state(lab: Lab, run: str) -> str:
    store = Store(str(lab.db))
    try:
        return store.run(run).state
    finally:
        store.close()


def wait_for_state(lab: Lab, run: str, wanted: str) -> None:
    """Wait until a run has ended, and as it should."""
    wait_until(lambda: state(lab, run) != "running", f"the run's state {wanted}")
    assert state(lab, run) == wanted


def wait_for_trials(lab: Lab, run: str, many: int) -> None:
    """Wait until a run that is under way has so many trials."""
    wait_until(lambda: trials(lab, run) >= many or state(lab, run) != "running", "a trial")
    assert trials(lab, run) >= many, state(lab, run)


def trials(lab: Lab, run: str) -> int:
    store = Store(str(lab.db))
    try:
        return store.count(run)
    finally:
        store.close()


class TestServer:
    """With real processes."""

    pytestmark = real

    def test_a_run_is_started_stopped_and_resumed(self, lab: Lab, served: Served) -> None:
        form = sweep(0.2, repeats="60..60")
        status, plan = served.ask("/new/plan/sweep", form)
        assert status == 200 and "2 cells × 60 each" in plan["plan"]
        assert plan["line"].startswith("concurve sweep -P n 1,2 ")
        run = served.started("sweep", form)
        wait_for_trials(lab, run, 1)
        status, said = served.ask("/new/start/sweep", form)
        assert status == 409 and "measure" in said["what"]
        assert served.ask(f"/runs/{run}/stop", {}) == (200, {})
        wait_for_state(lab, run, "interrupted")
        wait_until(lambda: "sleep" not in " ".join(lab.alive().values()), "the end")
        stopped = trials(lab, run)
        wait_until(lambda: served.ask(f"/runs/{run}/resume", {})[0] == 200, "the resume")
        wait_until(lambda: trials(lab, run) > stopped, "a further trial")
        assert state(lab, run) == "running"
        assert served.ask(f"/runs/{run}/stop", {}) == (200, {})
        wait_for_state(lab, run, "interrupted")

    def test_what_the_command_line_refuses_is_said(self, served: Served) -> None:
        form = {"command": "true", "parameters": [{"name": "n", "levels": "4..1"}]}
        status, said = served.ask("/new/plan/sweep", form)
        assert status == 200 and said["is_refused"] and "4..1" in said["said"]
        status, said = served.ask("/new/start/sweep", {"command": "/no/such/program"})
        assert status == 200

        def has_ended() -> bool:
            return served.ask(f"/measurements/{said['number']}")[1]["code"] is not None

        wait_until(has_ended, "the refusal")
        told = served.ask(f"/measurements/{said['number']}")[1]
        assert told["code"] != 0 and "/no/such/program" in " ".join(told["lines"])

    def test_a_killed_server_loses_nothing(self, lab: Lab, served: Served) -> None:
        run = served.started("sweep", sweep(0.1))
        served.process.send_signal(signal.SIGKILL)
        served.process.wait()
        wait_for_state(lab, run, "complete")
        assert trials(lab, run) >= 4  # some may have been redone
        again = serve(lab)
        try:
            assert again.ask(f"/runs/{run}")[0] == 200
        finally:
            again.process.kill()
            again.process.communicate()

    def test_it_ends_with_streams_open_and_its_run_goes_on(self, lab: Lab, served: Served) -> None:
        run = served.started("sweep", sweep(0.2, repeats="60..60"))
        streams = [served.stream(f"/runs/{run}/live") for _ in range(10)]
        served.process.send_signal(signal.SIGINT)
        begun = time.monotonic()
        _, said = served.process.communicate(timeout=60)
        took = time.monotonic() - begun
        assert served.process.returncode == 0, said
        assert f"{run} goes on" in said and "Traceback" not in said
        # The limit is 2 s; a busy machine may stretch it, a wait for streams would take for ever.
        assert took < 20
        for stream in streams:
            stream.close()
        wait_for_trials(lab, run, trials(lab, run) + 1)

    def test_it_ends_without_the_rest_of_a_request(self, served: Served) -> None:
        head = (
            f"POST /login HTTP/1.1\r\nHost: {served.host}:{served.port}\r\n"
            f"Origin: http://{served.host}:{served.port}\r\nContent-Length: 50\r\n\r\n"
        )
        with socket.create_connection((served.host, served.port)) as link:
            link.sendall(head.encode() + b'{"to')
            # It is asked later than that, so it has taken the half of a request by then.
            assert served.ask("/runs")[0] == 200
            served.process.send_signal(signal.SIGTERM)
            _, said = served.process.communicate(timeout=60)
        assert said == ""  # of tasks that had to be cancelled, uvicorn tells

    def test_slow_clients_keep_no_page_waiting(self, served: Served) -> None:
        slow = [socket.create_connection((served.host, served.port)) for _ in range(50)]
        for link in slow:
            link.sendall(b"GET /runs HTTP/1.1\r\nHost: ")
        assert served.ask("/runs", timeout=30)[0] == 200
        for link in slow:
            link.close()

    def test_a_long_header_is_refused(self, served: Served) -> None:
        with socket.create_connection((served.host, served.port), timeout=30) as link:
            link.sendall(b"GET / HTTP/1.1\r\nX: " + b"x" * 200_000)
            answer = b""
            try:
                while part := link.recv(4096):
                    answer += part
            except ConnectionResetError:
                pass
        assert not answer or b" 400 " in answer.splitlines()[0]
        assert served.ask("/runs")[0] == 200

    def test_the_token_and_the_port_are_its_own(self, lab: Lab, served: Served) -> None:
        link = http.client.HTTPConnection(served.host, served.port, timeout=30)
        link.request("GET", "/runs", headers={"accept": "application/json"})
        assert link.getresponse().status == 401
        done = lab.run("web", "--port", str(served.port))
        assert done.returncode == 3
        assert f"port {served.port}" in done.stderr and "--port 0" in done.stderr
        listening = Path(f"/proc/{served.process.pid}/net/tcp").read_text()
        assert f"0100007F:{served.port:04X}" in listening


@pytest.mark.real
def test_a_bad_store_is_refused_before_anything_listens(lab: Lab) -> None:
    (lab.folder / "other.db").write_text("no store")
    done = lab.run("web", "--db", str(lab.folder / "other.db"))
    assert done.returncode == 4 and "try:" in done.stderr


@pytest.mark.parametrize(
    ("bind", "others", "names"),
    [
        ("127.0.0.1", (), ("127.0.0.1", "localhost", "[::1]")),
        ("::1", ("lab",), ("[::1]", "127.0.0.1", "localhost", "lab")),
        ("127.0.0.2", (), ("127.0.0.2", "127.0.0.1", "localhost", "[::1]")),
        ("2001:db8::0:1", (), ("[2001:db8::1]",)),
        ("10.1.2.3", ("lab",), ("10.1.2.3", "lab")),
        ("0.0.0.0", ("lab",), ("lab",)),
        ("fe80::1", (), ("[fe80::1]",)),
    ],
)
def test_the_names_of_a_server(bind: str, others: tuple[str, ...], names: tuple[str, ...]) -> None:
    assert names_of(bind, others) == names


@pytest.mark.parametrize("bind", ["0.0.0.0", "::", "lab.example", "", "127.0.0.1:80"])
def test_an_address_that_needs_more(bind: str) -> None:
    with pytest.raises(PlaceError) as raised:
        names_of(bind, ())
    assert raised.value.remedy and bind in raised.value.what


def test_answers_that_are_cut_off_at_the_end_are_no_error() -> None:
    told = "Cancel %s running task(s), timeout graceful shutdown exceeded"
    cut = logging.makeLogRecord({"msg": told, "args": (1,)})
    assert not server._is_no_cut(cut)
    assert server._is_no_cut(logging.makeLogRecord({"msg": "an answer failed"}))
