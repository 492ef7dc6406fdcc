"""The addresses: what each answers, and what it says where it cannot."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from starlette.responses import Response

from concurve.definition.catalogue import campaigns, entries
from concurve.store import Store
from concurve.web.answers import as_json
from tests.helpers.waiting import waiting_run
from tests.web.places import OWN, HereDrawings, Visited, small_run, visited

pytestmark = pytest.mark.usefixtures("empty_charts")

JSON = {"accept": "application/json", **OWN}
HOLDER = "pid 1, concurve run 20261123-091200-abcd (other)"


class Stored:
    """A store with two runs of one study."""

    def __init__(self, folder: Path) -> None:
        self.db = folder / "web.db"
        store = Store(str(self.db))
        self.first = small_run(store, seed=1)
        self.second = small_run(store, seed=2)
        self.third = small_run(store, seed=3)
        store.close()


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    return Stored(tmp_path_factory.mktemp("stored"))


@pytest.fixture
def site(stored: Stored) -> Iterator[Visited]:
    with visited(stored.db) as found:
        yield found


def drawings(site: Visited) -> HereDrawings:
    assert isinstance(site.site.drawings, HereDrawings)
    return site.site.drawings


def test_the_first_page_is_the_list_of_runs(site: Visited, stored: Stored) -> None:
    answer = site.client.get("/")
    assert answer.status_code == 303 and answer.headers["location"] == "/runs"
    text = site.client.get("/runs").text
    assert f'href="/runs/{stored.first}"' in text and "3 of 3 runs" in text
    assert text.index(stored.second) < text.index(stored.first)


def test_an_empty_store_leads_to_the_first_run(tmp_path: Path) -> None:
    Store(str(tmp_path / "empty.db")).close()
    with visited(tmp_path / "empty.db") as site:
        assert "Start the first one" in site.client.get("/runs").text


def test_a_search_that_finds_nothing_says_so(site: Visited) -> None:
    assert "None of the 3 runs fits" in site.client.get("/runs?text=nothing").text
    assert site.client.get("/runs?page=x").status_code == 400
    assert site.client.get("/runs?since=x").status_code == 400


def test_a_run_has_its_report(site: Visited, stored: Stored) -> None:
    page = site.client.get(f"/runs/{stored.first}").text
    assert f'data-src="/runs/{stored.first}/report"' in page
    assert "How does it scale?" in page
    report = site.client.get(f"/runs/{stored.first}/report")
    assert report.status_code == 200
    assert "<h1>How does it scale?</h1>" in report.text and "<svg" in report.text
    assert "<script" not in report.text and "<html" not in report.text


def test_a_report_is_made_once_for_the_same_trials(tmp_path: Path) -> None:
    db = tmp_path / "own.db"
    store = Store(str(db))
    run = small_run(store)
    with visited(db) as site:
        for _ in range(2):
            assert site.client.get(f"/runs/{run}/report").status_code == 200
        assert len(drawings(site).made) == 1
        store.set_state(run, "interrupted", "stopped by the user")
        assert "stopped by the user" in site.client.get(f"/runs/{run}/report").text
        assert len(drawings(site).made) == 2


@pytest.mark.parametrize(
    ("ending", "begins"), [("md", b"# How"), ("csv", b"cell,"), ("json", b"{"), ("html", b"<!d")]
)
def test_a_run_can_be_saved(site: Visited, stored: Stored, ending: str, begins: bytes) -> None:
    answer = site.client.get(f"/runs/{stored.first}/file/{ending}")
    assert answer.status_code == 200 and answer.content.strip().startswith(begins)
    assert f'"{stored.first}.{ending}"' in answer.headers["content-disposition"]


def test_the_events_of_a_run_that_has_ended(site: Visited, stored: Stored) -> None:
    answer = site.client.get(f"/runs/{stored.first}/live")
    assert answer.headers["content-type"].startswith("text/event-stream")
    data = answer.text.partition("data: ")[2].partition("\n")[0]
    assert json.loads(data)["state"] == "complete" and len(json.loads(data)["cells"]) == 3


@pytest.mark.parametrize(
    "path",
    ["/nothing", "/runs/no-such-run", "/runs/no-such-run/report", "/runs/no-such-run/live",
     "/runs/a.b", "/runs/--help", "/runs/-h/live", "/campaigns/none",
     "/measurements/7", "/runs/x/file/exe"],
)  # fmt: skip
def test_what_is_not_there(site: Visited, path: str) -> None:
    answer = site.client.get(path)
    assert answer.status_code == 404
    assert "Try:" in answer.text and "Traceback" not in answer.text
    said = site.client.get(path, headers=JSON).json()
    assert said["what"] and said["remedy"]


def test_no_id_is_an_option_of_a_command_line(site: Visited) -> None:
    for path in ("/runs/--help/resume", "/campaigns/-x/resume", "/runs/-/more"):
        answer = site.client.post(path, json={}, headers={**JSON, **OWN})
        assert answer.status_code == 404
    assert site.site.measurements.find(1) is None


def test_of_many_who_ask_at_once_no_more_follow_runs_than_may(
    site: Visited, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others have come while the store was read for this one."""
    monkeypatch.setattr("concurve.web.streams.STREAMS_MAX", 1)
    read = site.site.read

    async def slow(function: Callable[[Store], object]) -> object:
        found = await read(function)
        site.site.streams._open = 1
        return found

    monkeypatch.setattr(site.site, "read", slow)
    answer = site.client.get(f"/runs/{stored.first}/live", headers=JSON)
    site.site.streams._open = 0
    assert answer.status_code == 409


def test_a_file_of_an_unknown_ending(site: Visited, stored: Stored) -> None:
    assert site.client.get(f"/runs/{stored.first}/file/exe").status_code == 404


def test_two_runs_are_compared(site: Visited, stored: Stored) -> None:
    query = f"base={stored.first}&new={stored.second}"
    page = site.client.get(f"/compare?{query}").text
    assert "/compare/report?" in page
    report = site.client.get(f"/compare/report?{query}")
    assert report.status_code == 200, report.text
    assert f"{stored.second} against {stored.first}" in report.text


def test_several_runs_are_compared_with_a_base(site: Visited, stored: Stored) -> None:
    for query in (
        f"base={stored.first}&new={stored.second}&new={stored.third}",
        f"base={stored.first}&new={stored.second}+{stored.third}",
    ):
        page = site.client.get(f"/compare?{query}").text
        assert f'value="{stored.second} {stored.third}"' in page, "the address shows it again"
        report = site.client.get(f"/compare/report?{query}")
        assert report.status_code == 200, report.text
        assert f"{stored.second}, {stored.third} against {stored.first}" in report.text
        assert "What differs" in report.text


def test_blocked_time_is_compared_or_the_page_says_why_not(
    site: Visited, stored: Stored, tmp_path: Path
) -> None:
    report = site.client.get(f"/compare/report?base={stored.first}&new={stored.second}").text
    assert 'id="blocked"' in report and "Where blocked time differs" in report
    assert f"{stored.first} has no samples of what its threads waited for" in report
    store = Store(str(tmp_path / "waits.db"))
    base = waiting_run(store, 1, {"Table::add": 90, "Log::write": 10})
    new = waiting_run(store, 2, {"Log::write": 70})
    store.close()
    with visited(tmp_path / "waits.db") as found:
        report = found.client.get(f"/compare/report?base={base}&new={new}").text
    assert f"Where blocked time goes, threads=4: {new}" in report
    assert "has no samples" not in report


def test_two_levels_are_compared(site: Visited, stored: Stored) -> None:
    query = f"base={stored.first}&new=&factor=threads&levels=1,4&effect=5%25"
    assert site.client.get(f"/compare/report?{query}").status_code == 200


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("base=&new=", "two runs are compared"),
        ("base=nothing&new=nothing", "no run"),
        ("base={first}&new={first}", "on both sides"),
        ("base={first}&new={second}&indicator=nothing", "indicator"),
        ("base={first}&new={second}&effect=x", "effect"),
        ("base={first}&factor=threads&levels=1", "nothing to compare"),
        ("base={first},{second}&factor=threads", "inside one run, not in 2"),
        ("base={first}&factor=colour&levels=1,2", "colour"),
    ],
)
def test_what_cannot_be_compared(site: Visited, stored: Stored, query: str, says: str) -> None:
    asked = query.format(first=stored.first, second=stored.second)
    answer = site.client.get(f"/compare/report?{asked}", headers=JSON)
    assert answer.status_code in (400, 404)
    assert says in answer.json()["what"]


def test_a_study_has_a_history(site: Visited) -> None:
    assert "small" in site.client.get("/history").text
    report = site.client.get("/history/report?study=small")
    assert report.status_code == 200 and "over 3 runs" in report.text
    wrong = site.client.get("/history/report?study=nothing", headers=JSON)
    assert wrong.status_code == 400 and "no run of 'nothing'" in wrong.json()["what"]


def test_the_forms_offer_what_is_packaged(site: Visited) -> None:
    text = site.client.get("/new?study=thread-scaling").text
    for entry in [*entries(), *campaigns()]:
        assert f'value="{entry.name}"' in text
    assert '<option value="thread-scaling" selected>' in text
    assert 'value="java-threads/tc01"' in text
    assert f"<code>{Path.cwd()}</code>" in text, "where programs are looked for"


def test_while_another_measurement_runs_nothing_disturbs_it(
    stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("concurve.web.addresses.starting.ENDING_SECONDS", 0.0)
    with visited(stored.db, holder=HOLDER) as site:
        answer = site.client.get(f"/runs/{stored.first}/report", headers=JSON)
        assert answer.status_code == 409 and "CPU time" in answer.json()["what"]
        for path in ("/new/plan/sweep", "/new/start/sweep"):
            answer = site.client.post(path, json={"command": "true"}, headers=JSON)
            assert answer.status_code == 409 and HOLDER in answer.json()["what"]
        assert drawings(site).made == []
        assert site.client.get("/runs").status_code == 200
        assert HOLDER in site.client.get("/runs").text
        assert site.client.get(f"/runs/{stored.first}/report?now=1").status_code == 200
        assert site.client.get(f"/runs/{stored.first}/report").status_code == 200, "it is kept"


@pytest.mark.parametrize(
    ("path", "form", "says"),
    [
        ("/new/start/sweep", {"command": ""}, "no command"),
        ("/new/plan/sweep", {"command": "x", "colour": "red"}, "colour"),
        ("/new/start/study", {"study": "--copy"}, "no study"),
        ("/new/plan/study", {}, "study"),
    ],
)
def test_a_form_that_means_nothing(site: Visited, path: str, form: object, says: str) -> None:
    answer = site.client.post(path, json=form, headers=JSON)
    assert answer.status_code == 400 and says in answer.json()["what"]


def test_only_a_run_that_is_under_way_can_be_stopped(site: Visited, stored: Stored) -> None:
    answer = site.client.post(f"/runs/{stored.first}/stop", json={}, headers=JSON)
    assert answer.status_code == 404 and "not under way" in answer.json()["what"]


def test_who_measures_elsewhere_cannot_be_stopped_here(tmp_path: Path) -> None:
    db = tmp_path / "own.db"
    store = Store(str(db))
    run = small_run(store)
    store.set_state(run, "running", "")
    store.close()
    import sqlite3

    with sqlite3.connect(db) as link:
        link.execute("UPDATE concurve_meta SET value = 'other b n 7 8' WHERE key LIKE 'holder %'")
    link.close()
    with visited(db) as site:
        answer = site.client.post(f"/runs/{run}/stop", json={}, headers=JSON)
        assert answer.status_code == 404 and "not on this machine" in answer.json()["what"]
        assert "Stop" in site.client.get(f"/runs/{run}").text


def test_a_damaged_run_is_named(tmp_path: Path) -> None:
    db = tmp_path / "own.db"
    store = Store(str(db))
    run = small_run(store)
    store.set_head(run, b'{"format": 999}')
    store.close()
    with visited(db) as site:
        assert site.client.get("/runs").status_code == 200
        answer = site.client.get(f"/runs/{run}")
        assert answer.status_code == 404 and run in answer.text and "Try:" in answer.text


def test_more_trials_of_a_cell_are_asked_for(
    site: Visited, stored: Stored, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = site.client.get(f"/runs/{stored.first}").text
    assert '<option value="2">threads=4</option>' in page
    asked: list[list[str]] = []

    async def started(_: object, words: list[str]) -> Response:
        asked.append(words)
        return as_json({})

    monkeypatch.setattr("concurve.web.addresses.runs.started", started)
    form = {"cell": 2, "trials": 7}
    answer = site.client.post(f"/runs/{stored.first}/more", json=form, headers=JSON)
    assert answer.status_code == 200, answer.text
    ((_, run, *options),) = asked
    assert run == f"run:{stored.first}"
    assert {"--repeats=7", "--set=threads=4"} <= set(options)
    for wrong in ({"cell": 3, "trials": 7}, {"cell": -1, "trials": 7}, {"cell": 0, "trials": 0}):
        answer = site.client.post(f"/runs/{stored.first}/more", json=wrong, headers=JSON)
        assert answer.status_code == 400 and answer.json()["remedy"]
    assert len(asked) == 1
    assert site.client.get(f"/runs/{stored.first}/more").status_code == 405
