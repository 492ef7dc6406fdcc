"""A run is followed from its stored trials: what is told is what the protocol knows."""

from __future__ import annotations

import asyncio
import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from concurve.errors import BusyError, RunError
from concurve.store import Store
from concurve.store.run_head import decode_head
from concurve.web import streams
from concurve.web.live import LiveCell, LiveRun, _left
from concurve.web.streams import Streams, event
from tests.web.places import go_on, small_run, under_way, visited


def test_a_run_under_way_says_which_trial_it_makes(tmp_path: Path) -> None:
    db = tmp_path / "live.db"
    row = under_way(db, trials=4)
    live = LiveRun(row)
    assert live.read(Store(str(db)))
    state = live.state()
    assert (state.done, state.planned, state.state) == (4, 15, "running")
    assert "trial 2" in state.under_way and "threads=" in state.under_way
    assert state.left == "less than 1 s left"
    assert sum(cell.trials for cell in state.cells) == 4
    assert all(cell.target == 5 for cell in state.cells)


def test_only_what_changed_is_told_again(tmp_path: Path) -> None:
    db = tmp_path / "live.db"
    row = under_way(db, trials=4)
    live, store = LiveRun(row), Store(str(db))
    live.read(store)
    first = live.state()
    assert len(first.cells) == 3
    assert not live.read(store)
    assert live.version == first.version
    go_on(db, row, 4, 5)
    assert live.read(store)
    second = live.state(first.version)
    assert second.done == 5 and len(second.cells) == 1
    assert live.state(second.version).cells == ()
    assert len(live.state(-1).cells) == 3


def test_a_look_that_is_not_through_is_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Browsers are answered while another thread reads: a cell of a version that was told too early
    would be told no more."""
    db = tmp_path / "live.db"
    row = under_way(db, trials=4)
    live, store = LiveRun(row), Store(str(db))
    live.read(store)
    before, seen, estimated = live.state(), [], LiveRun._cell

    def slowly(run: LiveRun, index: int) -> LiveCell:
        seen.append((live.version, live.state()))
        return estimated(run, index)

    monkeypatch.setattr(LiveRun, "_cell", slowly)
    go_on(db, row, 4, 6)
    store.set_state(row.id, "interrupted", "stopped by the user")
    assert live.read(store)
    assert seen and all(told == (before.version, before) for told in seen)
    after = live.state(before.version)
    assert (after.done, after.state, len(after.cells)) == (6, "interrupted", len(seen))


def test_trial_by_trial_it_tells_what_it_tells_at_once(tmp_path: Path) -> None:
    db = tmp_path / "live.db"
    row = under_way(db, trials=0)
    slow, store = LiveRun(row), Store(str(db))
    for trial in range(15):
        go_on(db, row, trial, trial + 1)
        assert slow.read(store)
    at_once = LiveRun(row)
    at_once.read(store)
    assert slow.state(-1).cells == at_once.state(-1).cells
    assert slow.state().done == 15
    assert slow.state().under_way == "the last trial has ended"


def test_a_complete_run_has_the_estimates_of_its_report(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "a.db"))
    run = small_run(store)
    live = LiveRun(store.run(run))
    live.read(store)
    state = live.state()
    assert state.state == "complete" and state.left == "" and state.under_way == ""
    from concurve.analysis.run import findings_of

    cells = findings_of(store, store.run(run)).cells
    study = decode_head(store.run(run)).study
    for shown, cell in zip(state.cells, cells, strict=True):
        figure = cell.indicators[study.primary]
        assert shown.value == pytest.approx(figure.value)
        assert shown.trials == figure.n


def test_what_disturbed_trials_is_told(tmp_path: Path) -> None:
    db = tmp_path / "live.db"
    row = under_way(db, trials=1)
    whole, store = Store(str(tmp_path / "whole.db")), Store(str(db))
    outcome = whole.trials(row.id)[1].outcome
    record = list(whole.records(row.id))[1].record
    bad = outcome._replace(verdict="contaminated", cause="steal", detail="took \x1b[1m9 %")
    store.add_trial(row.id, bad, b"{}", record)
    live = LiveRun(row)
    live.read(store)
    (told,) = live.state().told
    assert "the hypervisor took CPU time" in told and "9 %" in told and "\x1b" not in told
    state = live.state()
    assert (state.done, state.planned) == (2, 16), "one of them is made again"


def test_a_run_under_way_names_its_figure_as_reports_do(tmp_path: Path) -> None:
    db = tmp_path / "live.db"
    row = under_way(db, trials=2)
    with visited(db) as site:
        text = site.client.get(f"/runs/{row.id}").text
    assert "wall time so far" in text and "wall_seconds so far" not in text


def test_less_than_a_second_is_not_told_to_the_millisecond() -> None:
    assert _left(0.452) == "less than 1 s left"
    assert _left(12.4) == "about 12 s left"


def test_trials_of_another_plan_are_refused(tmp_path: Path) -> None:
    db = tmp_path / "live.db"
    row = under_way(db, trials=0)
    go_on(db, row, 1, 2)
    with pytest.raises(RunError, match="where the plan has"):
        LiveRun(row).read(Store(str(db)))


# -- streams ------------------------------------------------------------------------------------


def data_of(raw: bytes) -> Any:
    name, _, data = raw.decode().partition("\ndata: ")
    return name.removeprefix("event: "), json.loads(data)


async def next_event(stream: Any) -> Any:
    while True:
        raw = await asyncio.wait_for(anext(stream), 60)
        if raw.startswith(b"event"):
            return data_of(raw)


def test_browsers_are_told_of_each_version_until_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(streams, "READ_SHARE_MAX", 1.0)
    db = tmp_path / "live.db"
    row = under_way(db, trials=4)

    async def watched() -> None:
        site = Streams(str(db))
        first, second = await site.of(row.id), await site.of(row.id)
        for stream in (first, second):
            name, state = await next_event(stream)
            assert name == "state" and state["done"] == 4
        assert len(site._followers) == 1, "both share what is read"
        go_on(db, row, 4, 6)
        done = 0
        while done < 6:
            _, state = await next_event(first)
            done = state["done"]
        Store(str(db)).set_state(row.id, "interrupted", "stopped by the user")
        while state["state"] == "running":
            _, state = await next_event(first)
        assert state["state"] == "interrupted"
        with pytest.raises(StopAsyncIteration):
            await anext(first)
        await first.aclose()
        await second.aclose()
        assert site._followers == {} and site._open == 0

    asyncio.run(watched())


def test_the_end_of_a_run_is_told_although_it_ends_while_another_state_is_sent(
    tmp_path: Path,
) -> None:
    db = tmp_path / "live.db"
    row = under_way(db, trials=4)
    live, store = LiveRun(row), Store(str(db))
    live.read(store)

    class Ending:
        """Who waits is told at once."""

        async def wait(self, version: int) -> LiveRun | None:
            return live if live.version > version else None

    async def told() -> list[str]:
        states = []
        async for raw in streams._events(Ending()):  # type: ignore[arg-type]
            states.append(data_of(raw)[1]["state"])
            store.set_state(row.id, "interrupted", "stopped by the user")
            live.read(store)
        return states

    assert asyncio.run(told()) == ["running", "interrupted"]


def test_a_stream_counts_before_its_first_event_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests that come together are all let in before any of them is answered."""
    monkeypatch.setattr(streams, "STREAMS_MAX", 1)
    db = tmp_path / "live.db"
    row = under_way(db, trials=2)

    async def asked() -> None:
        site = Streams(str(db))
        one = await site.of(row.id)
        with pytest.raises(BusyError, match="too many pages"):
            await site.of(row.id)
        await one.aclose()
        await (await site.of(row.id)).aclose()
        assert site._followers == {} and site._open == 0

    asyncio.run(asked())


def test_what_is_done_once_does_not_make_later_looks_rare(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The import behind the first interval was taken for what each reading takes, and a page stood
    still for 40 s."""
    db = tmp_path / "live.db"
    row = under_way(db, trials=4)
    clock = itertools.count(0.0, 0.25)  # each reading takes 0.25 s
    monkeypatch.setattr("concurve.web.streams.time.thread_time", lambda: next(clock))

    async def looked() -> None:
        follower = streams.Follower(row.id, str(db))
        follower._task.cancel()  # looks are made by hand
        assert follower._look() and follower._took == 0.0
        go_on(db, row, 4, 5)
        assert follower._look() and follower._took == 0.25

    asyncio.run(looked())


def test_no_reading_imports_what_estimates_need(tmp_path: Path) -> None:
    db = tmp_path / "live.db"
    row = under_way(db, trials=6)
    script = (
        "import sys\n"
        "from concurve.store import Store\n"
        "from concurve.web.live import LiveRun, load_estimates\n"
        "store = Store.existing(sys.argv[1])\n"
        "live = LiveRun(store.run(sys.argv[2]))\n"
        "load_estimates()\n"
        "before = set(sys.modules)\n"
        "assert live.read(store)\n"
        "assert all(cell.low is not None for cell in live.state().cells)\n"
        "print(sorted(set(sys.modules) - before))\n"
    )
    line = [sys.executable, "-c", script, str(db), row.id]
    said = subprocess.run(line, capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "[]"


def test_a_run_that_cannot_be_followed_is_told_of(tmp_path: Path) -> None:
    Store(str(tmp_path / "a.db")).close()

    async def watched() -> None:
        name, said = await next_event(await Streams(str(tmp_path / "a.db")).of("none"))
        assert name == "failed" and "no run 'none'" in said["what"]

    asyncio.run(watched())


def test_streams_end_at_once_with_the_server(tmp_path: Path) -> None:
    db = tmp_path / "live.db"
    row = under_way(db, trials=2)

    async def ended() -> None:
        site = Streams(str(db))
        stream = await site.of(row.id)
        await next_event(stream)
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0.05)
        site.close()
        with pytest.raises(StopAsyncIteration):
            await asyncio.wait_for(waiting, 30)

    asyncio.run(ended())


def test_no_text_ends_an_event_early() -> None:
    raw = event("state", {"text": "a\n\ndata: x\r\n"})
    assert raw.count(b"\n\n") == 1 and raw.endswith(b"\n\n")
    assert data_of(raw)[1] == {"text": "a\n\ndata: x\r\n"}
