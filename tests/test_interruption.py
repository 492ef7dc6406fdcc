"""Signals that ask a command to end leave nothing half done, and none is lost."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType

import pytest

from concurve import interruption
from concurve.errors import RunInterruptedError
from concurve.measuring.campaign_laboratory import CampaignRunner
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.store import Store
from concurve.store.sqlite import SqliteConnection
from tests.helpers.fakes import FakeClock, FakeEngine, small_study
from tests.measuring.test_campaign import engine, head_of


@pytest.fixture(autouse=True)
def handled() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with interruption.handled():
        yield
    signal.signal(signal.SIGINT, before)


def test_a_signal_raises_where_it_comes() -> None:
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_a_signal_within_what_is_whole_raises_at_its_end() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt):
        with interruption.whole(), interruption.whole():
            signal.raise_signal(signal.SIGINT)
            done.append("whole")
        done.append("more")
    assert done == ["whole"]


def test_the_second_signal_does_not_wait() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), interruption.whole():
        signal.raise_signal(signal.SIGINT)
        done.append("one")
        signal.raise_signal(signal.SIGINT)
        done.append("two")
    assert done == ["one"]


def test_a_wait_within_what_is_whole_ends() -> None:
    with pytest.raises(KeyboardInterrupt), interruption.whole():
        signal.raise_signal(signal.SIGINT)
        interruption.refuse_to_wait()
        raise AssertionError("it waits on")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_signal_that_python_ignored_raises_at_the_next_step() -> None:
    class Finalized:
        def __del__(self) -> None:
            signal.raise_signal(signal.SIGINT)

    interruption.refuse_if_asked()
    Finalized()
    with pytest.raises(KeyboardInterrupt):
        interruption.refuse_if_asked()


def test_only_the_outermost_block_begins_anew() -> None:
    """Between the studies of a campaign a signal may be lost, too."""
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), interruption.handled():
        interruption.refuse_if_asked()


def test_other_threads_know_nothing_of_a_signal() -> None:
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    refused: list[bool] = []

    def other() -> None:
        with interruption.handled():
            interruption.refuse_if_asked()
        refused.append(False)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert refused == [False]


def test_other_threads_wait_for_nothing() -> None:
    seen: list[str] = []

    def other() -> None:
        with interruption.handled(), interruption.whole():
            seen.append("within")
        interruption.refuse_to_wait()

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert seen == ["within"]
    assert signal.getsignal(signal.SIGINT) is interruption.interrupt


class _Struck:
    """A transaction with a signal when it has begun, before its caller knows."""

    def __init__(self, inner: AbstractContextManager[None]) -> None:
        self.inner = inner

    def __enter__(self) -> None:
        self.inner.__enter__()
        signal.raise_signal(signal.SIGINT)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> bool | None:
        return self.inner.__exit__(kind, error, where)


def test_a_write_is_whole_and_the_store_takes_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(str(tmp_path / "s.db"))
    begin = SqliteConnection.transaction
    head = new_head(small_study(), "quick", 1, "concurve run …")
    with monkeypatch.context() as patched:
        patched.setattr(
            SqliteConnection,
            "transaction",
            lambda self, is_patient: _Struck(begin(self, is_patient)),
        )
        with pytest.raises(KeyboardInterrupt):
            store.add_run(head.row())
    store.set_state(head.id, "interrupted", "stopped by the user")
    assert [run.state for run in store.runs()] == ["interrupted"]


def struck(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the next transaction, and no later one, meet a signal."""
    begin = SqliteConnection.transaction

    def once(self: SqliteConnection, is_patient: bool) -> AbstractContextManager[None]:
        monkeypatch.setattr(SqliteConnection, "transaction", begin)
        return _Struck(begin(self, is_patient))

    monkeypatch.setattr(SqliteConnection, "transaction", once)


def test_a_run_that_is_stopped_while_it_is_stored_can_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(str(tmp_path / "s.db"))
    head = new_head(small_study(), "quick", 1, "concurve run …")
    runner = Runner(head, store, FakeEngine(), clock=FakeClock(0.001))
    struck(monkeypatch)
    with pytest.raises(RunInterruptedError, match="stopped after 0 trials"):
        runner.start()
    assert [run.state for run in store.runs()] == ["interrupted"]
    assert Runner(head, store, FakeEngine(), clock=FakeClock(0.001)).resume()
    assert [run.state for run in store.runs()] == ["complete"]


def test_a_campaign_that_is_stopped_while_it_is_stored_can_be_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(str(tmp_path / "s.db"))
    head = head_of(tmp_path)
    stopped = CampaignRunner(head, store, engine(), clock=FakeClock(0.001))
    struck(monkeypatch)
    with pytest.raises(RunInterruptedError, match="every finished trial is stored"):
        stopped.start()
    assert [campaign.state for campaign in store.campaigns()] == ["interrupted"]
    rows = CampaignRunner(head, store, engine(), clock=FakeClock(0.001)).resume()
    assert {row.state for row in rows} == {"complete"}
