"""The checker of histories accepts right ones and rejects wrong ones, which are planted here."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.histories.history import (
    NOTHING,
    History,
    Operation,
    Verdict,
    Way,
    check,
    missing,
    now_ns,
    write,
)
from tests.histories.running import Running, Worker
from tests.histories.services import Keys, RecordTransactions

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))


def verdict(folder: Path, operations: Sequence[Operation]) -> Verdict:
    write(operations, folder / "history")
    return check(folder / "history")


def did(call: int, finish: int | None, *ways: Way) -> Operation:
    """Each operation is one of a client of its own."""
    return Operation(call, call, finish, f"called at {call}", ways)


def wrote(value: str | None, register: str = "a") -> Way:
    return Way(sets={register: value})


def read(value: str | None, register: str = "a") -> Way:
    return Way(holds={register: value})


#: What happened, and whether some order explains it.
HISTORIES: dict[str, tuple[bool, list[Operation]]] = {
    "a read of what was written": (
        True, [did(1, 2, wrote("x")), did(3, 4, read("x"))],
    ),
    "a read of what nobody wrote": (
        False, [did(1, 2, wrote("x")), did(3, 4, read("y"))],
    ),
    "an older value after a newer one": (
        False, [did(1, 2, wrote("x")), did(3, 4, wrote("y")), did(5, 6, read("x"))],
    ),
    "either value beside a write": (
        True, [did(1, 2, wrote("x")), did(3, 9, wrote("y")), did(4, 5, read("x")),
               did(6, 7, read("y"))],
    ),
    "a value that goes and comes again beside one write": (
        False, [did(1, 2, wrote("x")), did(3, 9, wrote("y")), did(4, 5, read("y")),
                did(6, 7, read("x"))],
    ),
    "an acknowledged write that a kill has lost": (
        False, [did(1, 2, wrote("x")), did(3, 4, read(None))],
    ),
    "a volatile one that a kill has lost": (
        True, [did(1, 2, wrote("x")), did(3, 4, wrote(None)), did(5, 6, read(None))],
    ),
    "a volatile one that a kill has left": (
        False, [did(1, 2, wrote("x")), did(3, 4, wrote(None)), did(5, 6, read("x"))],
    ),
    "an unanswered write that has happened": (
        True, [did(1, None, wrote("x"), NOTHING), did(3, 4, read("x"))],
    ),
    "an unanswered write that has not happened": (
        True, [did(1, None, wrote("x"), NOTHING), did(3, 4, read(None))],
    ),
    "an unanswered write that happens late": (
        True, [did(1, None, wrote("x"), NOTHING), did(3, 4, read(None)), did(5, 6, read("x"))],
    ),
    "an unanswered write that happens after its server has ended": (
        False, [did(1, 2, wrote("x"), NOTHING), did(3, 4, read(None)), did(5, 6, read("x"))],
    ),
    "an unanswered write that is undone": (
        False, [did(1, None, wrote("x"), NOTHING), did(3, 4, read("x")), did(5, 6, read(None))],
    ),
    "an exclusive lock that is granted twice": (
        False, [did(1, 5, Way({"other": None}, {}, {"one": "1"})),
                did(2, 6, Way({"one": None}, {}, {"other": "1"})),
                did(7, 8, read("1", "one")), did(9, 10, read("1", "other"))],
    ),
    "a refusal although nobody holds the lock": (
        False, [did(1, 2, Way(differs={"one": None}), Way(differs={"other": None}))],
    ),
    "a refusal because somebody holds it": (
        True, [did(1, 2, wrote("1", "other")),
               did(3, 4, Way(differs={"one": None}), Way(differs={"other": None}))],
    ),
    "two transactions, one after the other": (
        True, [did(1, 5, Way({"a": None, "b": None}, {}, {"a": "1"})),
               did(2, 6, Way({"a": "1", "b": None}, {}, {"b": "2"}))],
    ),
    "write skew": (
        False, [did(1, 5, Way({"a": None, "b": None}, {}, {"a": "1"})),
                did(2, 6, Way({"a": None, "b": None}, {}, {"b": "2"}))],
    ),
    "a lost update": (
        False, [did(1, 5, Way({"a": None}, {}, {"a": "1"})),
                did(2, 6, Way({"a": None}, {}, {"a": "2"}))],
    ),
    "half a transaction": (
        False, [did(1, 2, Way({}, {}, {"a": "1", "b": "1"})),
                did(3, 4, Way({"a": "1", "b": None}))],
    ),
    "a serial order that is not that of time": (
        False, [did(1, 2, wrote("1")), did(3, 4, read(None)), did(5, 6, read("1"))],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HISTORIES)
def test_a_history_is_judged(tmp_path: Path, name: str) -> None:
    is_right, operations = HISTORIES[name]
    found = verdict(tmp_path, operations)
    assert found.outcome == ("accepted" if is_right else "rejected"), found.text
    assert (tmp_path / "history.html").exists() is not is_right


def test_a_rejection_names_what_does_not_fit(tmp_path: Path) -> None:
    right = [did(at, at + 1, wrote(str(at), "other")) for at in range(1, 40, 2)]
    wrong = [did(1, 2, wrote("x")), did(3, 4, read("y"))]
    text = verdict(tmp_path, [*right, *wrong]).text
    assert "no order explains 2 operations on a" in text
    ends_with, can_follow = text.split("none of these can follow")
    assert "1 to 2: called at 1" in ends_with and "3 to 4: called at 3" in can_follow


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("", "no operation"),
        ("{", "line 1"),
        ('{"client": 1, "call": 5, "return": 4, "what": "x", "ways": [{}]}', "returns before"),
        ('{"client": 1, "call": 1, "return": 2, "what": "x", "ways": []}', "no way"),
        ('{"client": 1, "call": 1, "return": 2, "what": "x", "ways": [{"was": {}}]}', "was"),
    ],
)
def test_what_is_no_history_is_refused(tmp_path: Path, content: str, why: str) -> None:
    path = tmp_path / "history"
    path.write_text(content)
    with pytest.raises(ValueError, match=why):
        check(path)
    with pytest.raises(ValueError, match="no such file"):
        check(tmp_path / "nowhere")


# -- the clients, with a server that lies ----------------------------------------------------------


class Connection:
    """A server of keys in this process; ``lie`` is what it does wrong, once."""

    def __init__(self, lie: str) -> None:
        self.lie, self.asked = lie, 0
        self.keys: dict[str, str] = {}

    def __call__(self, *words: str | int) -> object:
        self.asked += 1
        name, key, *more = map(str, words)
        old = self.keys.get(key)
        if self.asked == 200 and self.lie == "forgets":
            self.keys.clear()
        if name == "GET":
            return "stale" if self.lie == "stale" and self.asked > 200 and old else old
        if name == "SET":
            if ("NX" in more and old is not None) or ("XX" in more and old is None):
                return None
            if self.lie != "acknowledges in vain" or self.asked < 200:
                self.keys[key] = more[0]
            return "OK"
        is_removed = old is not None and (name == "DEL" or more[1] == old)
        if is_removed:
            del self.keys[key]
        return int(is_removed)


@pytest.mark.parametrize("lie", ["", "forgets", "stale", "acknowledges in vain"])
def test_a_server_that_lies_is_found_out(tmp_path: Path, lie: str) -> None:
    history = History()
    connection = Connection(lie)
    workers = [client_of(Keys, history, number, connection) for number in range(3)]
    draw = random.Random(3)
    for _ in range(400):
        draw.choice(workers).step()
    found = verdict(tmp_path, history.operations({}))
    assert found.outcome == ("rejected" if lie else "accepted"), found.text


def client_of(kind: type[Worker], history: History, number: int, connection: Any) -> Worker:
    worker = kind(number, Running(history, (), ((),)), "seed", 1.0)
    worker.connection, worker.client, worker.incarnation = connection, history.client(), 1
    return worker


def test_a_transaction_that_does_not_read_its_own_writes_is_told() -> None:
    worker = RecordTransactions(0, Running(History(), (), ((),)), "seed", 1.0)
    worker.reads, worker.writes, worker.told = {}, {}, []
    worker.seen("a", "1")
    worker.write("a", "2")
    worker.seen("a", "2")
    with pytest.raises(AssertionError, match="a is 1; a := 2"):
        worker.seen("a", "1")


def test_operations_are_bounded_by_the_end_of_their_server() -> None:
    history = History()
    begin = now_ns()
    history.add_unanswered(1, begin, 1, "SET a x", [wrote("x")])
    history.add_unanswered(2, begin + 1, 2, "SET a y", [wrote("y")])
    history.add_unanswered(3, begin + 10, 1, "SET a z", [wrote("z")])
    found = {it.what: it.finish_ns for it in history.operations({1: begin + 9})}
    assert found == {"SET a x -> ?": begin + 9, "SET a y -> ?": None}
    assert (history.answered, history.unanswered) == (0, 3)
