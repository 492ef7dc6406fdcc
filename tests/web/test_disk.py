"""The simulated disk in a page: the same processes under two schedulers, event by event."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from concurve.errors import HostError, StudyError
from concurve.store import Store
from concurve.web import disk
from concurve.web.disk import REQUESTS_MAX, SCHEDULERS, DiskForm, simulate
from tests.helpers.real import missing
from tests.web.places import OWN, Visited, visited

JSON = {"accept": "application/json", **OWN}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Visited]:
    Store(str(tmp_path / "web.db")).close()
    with visited(tmp_path / "web.db") as found:
        yield found


def form(**more: Any) -> DiskForm:
    return msgspec.structs.replace(DiskForm(), **more)


def test_the_page_has_every_scheduler(site: Visited) -> None:
    text = site.client.get("/disk").text
    assert all(f">{name}</option>" in text for name in SCHEDULERS)


@pytest.mark.parametrize(
    ("form", "says"),
    [
        (form(sequential_readers=0, writers=0), "processes"),
        (form(writers=17), "writers"),
        (form(random_readers=8, writers=9), "processes"),
        (form(requests=REQUESTS_MAX), "requests of all"),
        (form(requests=0), "requests"),
        (form(depth=129), "depth"),
        (form(think_ms=-1), "think time"),
        (form(request_kib=513), "KiB"),
        (form(seed=-1), "seed"),
    ],
)
def test_a_value_out_of_its_range(form: DiskForm, says: str) -> None:
    with pytest.raises(StudyError, match=says) as raised:
        simulate(form)
    assert raised.value.remedy


@pytest.mark.parametrize(
    "content",
    [{"schedulers": ["cfq"]}, {"schedulers": ["cfq", "--help"]}, {"requests": "9"}, {"more": 1}],
)
def test_a_form_that_is_none(site: Visited, content: dict[str, Any]) -> None:
    answer = site.client.post("/disk/simulate", json=content, headers=JSON)
    assert answer.status_code == 400 and "form" in answer.json()["what"]


def test_a_measured_machine_is_left_alone(tmp_path: Path) -> None:
    Store(str(tmp_path / "web.db")).close()
    with visited(tmp_path / "web.db", holder="pid 1, x") as site:
        assert site.client.post("/disk/simulate", json={}, headers=JSON).status_code == 409


def test_a_simulator_that_refuses_or_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "command", lambda *_: ("sh", "-c", "echo no such disk >&2; exit 2"))
    with pytest.raises(HostError, match="no such disk"):
        simulate(DiskForm())
    monkeypatch.setattr(disk, "command", lambda *_: ("sh", "-c", "exec sleep 600"))
    monkeypatch.setattr(disk, "SIMULATION_SECONDS", 0.05)
    with pytest.raises(HostError, match="did not end"):
        simulate(DiskForm())


@pytest.mark.real
@pytest.mark.skipif(missing() is not None, reason=missing() or "")
class TestSimulator:
    """With the real simulator."""

    def test_both_schedulers_serve_the_same_requests(self, site: Visited) -> None:
        content = {"schedulers": ["as", "noop"], "requests": 30, "random_readers": 1}
        answer = site.client.post("/disk/simulate", json=content, headers=JSON)
        assert answer.status_code == 200, answer.text
        first, second = answer.json()
        assert [first["scheduler"], second["scheduler"]] == ["as", "noop"]
        for one in (first, second):
            names = [event["event"] for event in one["events"]]
            assert names[-1] == "end" and names.count("arrive") == 4 * 30
            assert names.count("serve") + names.count("merge") == 4 * 30
            assert one["cylinders"] > 0 and "simulated time" in one["figures"]
        arrived = [
            sorted((event.get("process", 0), event.get("cylinder", 0)) for event in one["events"]
                   if event["event"] == "arrive")
            for one in (first, second)
        ]  # fmt: skip
        assert arrived[0] == arrived[1], "only the order and the times differ"

    def test_the_answer_stays_small(self, site: Visited) -> None:
        content = {"requests": REQUESTS_MAX // 3}
        answer = site.client.post("/disk/simulate", json=content, headers=JSON)
        assert answer.status_code == 200 and len(answer.content) < 4_000_000
