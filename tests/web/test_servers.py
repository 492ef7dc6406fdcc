"""A running server in a page: what the monitor shows, or why there is nothing to show."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from concurve.errors import ConcurveError, HostError, StudyError
from concurve.host.machine import allowed_cpus
from concurve.monitor.asking import PlaceError, address_of
from concurve.monitor.interval import between
from concurve.monitor.reading import parse
from concurve.store import Store
from concurve.web import aside, servers
from concurve.web.servers import Second, Turning, Watching
from tests.helpers import resp
from tests.monitor.test_monitor import AFTER, BEFORE
from tests.web.places import OWN, Visited, visited

JSON = {"accept": "application/json", **OWN}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Visited]:
    Store(str(tmp_path / "web.db")).close()
    with visited(tmp_path / "web.db") as found:
        yield found


def read(site: Visited, **form: str) -> Any:
    return site.client.post("/servers/read", json=form, headers=JSON)


@pytest.mark.parametrize(
    ("text", "address"),
    [("127.0.0.1:7379", ("127.0.0.1", 7379)), (":7379", ("127.0.0.1", 7379)),
     ("7379", ("127.0.0.1", 7379)), ("[::1]:7379", ("::1", 7379))],
)  # fmt: skip
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert address_of(text) == address


@pytest.mark.parametrize("text", ["", "x", "host:", "host:0", "host:65536", "host:-1"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(PlaceError):
        address_of(text)


def test_the_page_says_why_there_is_nothing(site: Visited) -> None:
    assert "127.0.0.1:7379" in site.client.get("/servers").text
    answer = read(site, place="127.0.0.1:1")
    assert answer.status_code == 500 and "no server answers" in answer.json()["what"]
    answer = read(site, place="x")
    assert "no HOST:PORT" in answer.json()["what"]


def test_a_password_is_named_by_its_variable_and_never_shown(site: Visited) -> None:
    answer = read(site, place="127.0.0.1:1", password_from="Sesam-Open-1")
    assert answer.status_code == 400 and "Sesam" not in answer.text


def test_what_it_did_over_a_second(site: Visited, monkeypatch: pytest.MonkeyPatch) -> None:
    second = Second("h:1", {"seconds": 1.0}, None)
    asked: list[Watching] = []

    def read_it(form: Watching) -> Second:
        asked.append(form)
        return second

    monkeypatch.setattr("concurve.web.addresses.servers.watched", read_it)
    answer = read(site, place="h:1", password_from="P")
    assert answer.json() == {"place": "h:1", "interval": {"seconds": 1.0}, "dials": None}
    assert asked == [Watching("h:1", "P")]


def test_a_measured_machine_is_left_alone(tmp_path: Path) -> None:
    Store(str(tmp_path / "web.db")).close()
    with visited(tmp_path / "web.db", holder="pid 1, x") as site:
        assert read(site, place="127.0.0.1:1").status_code == 409


def test_a_server_that_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "WATCH_SECONDS", 0.0)
    with pytest.raises(ConcurveError):
        servers.watched(Watching("127.0.0.1:1"))


def test_no_link_makes_it_connect_and_send_a_password(
    site: Visited, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An image of a page of another port is asked for with the cookie, and without an origin."""
    asked: list[object] = []
    monkeypatch.setattr("concurve.web.addresses.servers.watched", lambda *what: asked.append(what))
    for path in ("/servers/read", "/servers"):
        answer = site.client.get(f"{path}?place=127.0.0.1:1&password_from=PATH")
        assert answer.status_code in (200, 405)
        assert "PATH" not in answer.text
    answer = site.client.post("/servers/read?place=127.0.0.1:1&password_from=PATH", headers=OWN)
    assert answer.status_code == 400
    assert asked == []


@pytest.mark.parametrize("place", ["h:²", "h:" + "9" * 5000, "a..b:1", "x" * 300 + ":1", "a\0:1"])
def test_an_odd_address_is_refused_in_words(site: Visited, place: str) -> None:
    answer = read(site, place=place)
    assert answer.status_code in (400, 500) and answer.json()["remedy"]


def test_a_server_that_hangs_is_given_up(site: Visited, monkeypatch: pytest.MonkeyPatch) -> None:
    may_end = threading.Event()
    monkeypatch.setattr("concurve.web.addresses.servers.watched", lambda *_: may_end.wait())
    monkeypatch.setattr(aside, "PATIENCE_SECONDS", 0.05)
    try:
        answer = read(site, place="h:1")
        assert answer.status_code == 503 and "did not answer" in answer.json()["what"]
    finally:
        may_end.set()


# -- what is shown, and the dials -----------------------------------------------------------------


class Near:
    """A server of ours on this machine, as far as the dials ask it."""

    place = "127.0.0.1:7379"
    is_near = True

    def __init__(self) -> None:
        self.readings = iter([BEFORE, AFTER])

    def read(self) -> Any:
        return parse(next(self.readings), self.place)


@pytest.fixture
def near(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """A server on this machine, and its process, which has a child: engines may be processes."""
    code = (
        "import subprocess, sys, time; "
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); "
        "print(child.pid, flush=True); time.sleep(600)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    child = int(process.stdout.readline())

    @contextmanager
    def reached(_: Watching) -> Iterator[Near]:
        yield Near()

    monkeypatch.setattr(servers, "_reached", reached)
    monkeypatch.setattr(servers, "WATCH_SECONDS", 0.0)
    monkeypatch.setattr(servers, "serving", lambda port: [process.pid, child])
    yield [process.pid, child]
    os.kill(child, 9)
    process.kill()
    process.communicate()


def test_a_second_has_both_meters_and_the_dials(near: list[int]) -> None:
    second = servers.watched(Watching("7379"))
    expected = between(parse(BEFORE, ""), parse(AFTER, ""), "")
    assert second.interval["cpus"] == expected.cpus
    engine = second.interval["engines"][0]
    assert engine["own"]["busy"] == expected.engines[0].own["busy"]
    assert engine["cpu"] == expected.engines[0].cpu
    assert [latch["name"] for latch in second.interval["latches"]] == ["procedure cache"]
    assert second.dials is not None and second.dials.allowed == allowed_cpus()


def test_the_dials_reach_all_processes_of_a_server(near: list[int]) -> None:
    cpu = allowed_cpus()[0]
    dials = servers.turn(Turning("7379", cpus=(cpu,), nice=7))
    assert dials.cpus == (cpu,) and dials.nice == 7
    for pid in near:
        assert os.sched_getaffinity(pid) == {cpu}
        assert os.getpriority(os.PRIO_PROCESS, pid) == 7
    assert servers.turn(Turning("7379", cpus=allowed_cpus())).nice == 7, "what is not asked stays"


@pytest.mark.parametrize(
    ("form", "says"),
    [(Turning("7379", cpus=()), "CPUs"), (Turning("7379", cpus=(100_000,)), "100000"),
     (Turning("7379", nice=20), "nice"), (Turning("7379", nice=-21), "nice")],
)  # fmt: skip
def test_a_dial_that_cannot_be_set(near: list[int], form: Turning, says: str) -> None:
    before = [os.sched_getaffinity(pid) for pid in near]
    with pytest.raises(StudyError, match=says):
        servers.turn(form)
    assert [os.sched_getaffinity(pid) for pid in near] == before


def test_a_server_elsewhere_has_no_dials(near: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """A stranger's server may name any process as its own."""
    monkeypatch.setattr(Near, "is_near", False)
    with pytest.raises(HostError, match="not to be seen"):
        servers.turn(Turning("7379", nice=7))
    assert os.getpriority(os.PRIO_PROCESS, near[0]) != 7
    assert servers.watched(Watching("7379")).dials is None


def test_dials_are_turned_by_a_page_of_ours_alone(site: Visited, tmp_path: Path) -> None:
    assert site.client.get("/servers/turn").status_code == 405
    answer = site.client.post("/servers/turn", json={"place": "127.0.0.1:1"}, headers=JSON)
    assert answer.status_code == 500 and "no server answers" in answer.json()["what"]
    answer = site.client.post(
        "/servers/turn", json={"place": "127.0.0.1:1"}, headers={**JSON, "x-concurve-key": "x"}
    )
    assert answer.status_code == 403
    with visited(tmp_path / "web.db", holder="pid 1, x") as measured:
        answer = measured.client.post("/servers/turn", json={"place": "h:1"}, headers=JSON)
        assert answer.status_code == 409


def test_names_of_a_server_are_shown_without_control_characters(
    near: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.web.test_servers.AFTER", AFTER.replace("threads", "th\x1b[31mr"))
    assert "\x1b" not in repr(servers.watched(Watching("7379")).interval["server"])


@pytest.mark.real
@pytest.mark.skipif(resp.missing() is not None, reason=str(resp.missing()))
@pytest.mark.parametrize("service", ["locks", "statements"])
def test_a_server_has_no_dials_of_its_own(service: str, tmp_path: Path) -> None:
    """The page offers those outside alone: if the protocol learns to set options, it lacks some."""
    folder = ["--folder", str(tmp_path / "records")] if service == "statements" else []
    options = ("--service", service, *folder)
    with (
        resp.serving(*options) as server,
        closing(resp.Client(server.port)) as client,
        pytest.raises(resp.ReplyError, match="set on the command line"),
    ):
        client("CONFIG", "SET", "idle", "block")
