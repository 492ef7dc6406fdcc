"""What clients asked and were answered, as operations on registers, and the checker of it.

A history is linearizable if each operation can have happened at one moment between its call and its
return (Herlihy and Wing, "Linearizability", TOPLAS 12(3), 1990). With whole transactions as
operations this is strict serialisability. The search is done by a program in Go,
``tests/histories/checker``, with the module porcupine; ``make checker`` builds it.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHECKER = ROOT / "build" / "histories-checker"

#: Seconds for the search in each part of a history; those of these tests take a fraction of one.
SEARCH_SECONDS = 300

#: Of a register: ``None`` if it was never set, or was taken away.
Value = str | None


def missing() -> str | None:
    """Why no history can be checked here, or ``None``."""
    if CHECKER.is_file():
        return None
    return "the checker of histories is not built: make checker says why (it needs golang-go)"


@dataclass(frozen=True)
class Way:
    """One way in which an operation can have gone: what the registers were (``holds``) and were not
    (``differs``) before it, and what it has set."""

    holds: Mapping[str, Value] = field(default_factory=dict)
    differs: Mapping[str, Value] = field(default_factory=dict)
    sets: Mapping[str, Value] = field(default_factory=dict)


#: It had no effect.
NOTHING = Way()


@dataclass(frozen=True)
class Operation:
    """``finish_ns`` is ``None`` if no reply came and nothing else bounds when it took effect."""

    client: int
    call_ns: int
    finish_ns: int | None
    what: str
    ways: tuple[Way, ...]

    def line(self) -> str:
        """As the checker reads it."""
        ways = [{"is": it.holds, "isnt": it.differs, "set": it.sets} for it in self.ways]
        return json.dumps(
            {
                "client": self.client,
                "call": self.call_ns,
                "return": self.finish_ns,
                "what": self.what,
                "ways": ways,
            }
        )


def now_ns() -> int:
    """The clock of all clients: they are threads of one process."""
    return time.monotonic_ns()


class History:
    """Collects the operations of many clients.

    A client that is not answered begins anew with another number, because its operation may still
    be under way. The *incarnation* is the number of the server's start, which bounds that.
    """

    def __init__(self) -> None:
        self._latch = threading.Lock()
        self._answered: list[Operation] = []
        self._unanswered: list[tuple[int, Operation]] = []
        self._numbers = itertools.count()

    def client(self) -> int:
        """A number for a new client."""
        return next(self._numbers)

    @property
    def answered(self) -> int:
        """The number of operations that were answered so far."""
        return len(self._answered)

    @property
    def unanswered(self) -> int:
        """The number of operations whose outcome the clients do not know."""
        return len(self._unanswered)

    def add(self, operation: Operation) -> None:
        """An operation that was answered."""
        with self._latch:
            self._answered.append(operation)

    def add_unanswered(
        self, client: int, call_ns: int, incarnation: int, what: str, ways: Iterable[Way]
    ) -> None:
        """An operation that has gone one of these ways, or had no effect."""
        operation = Operation(client, call_ns, None, f"{what} -> ?", (*ways, NOTHING))
        with self._latch:
            self._unanswered.append((incarnation, operation))

    def operations(self, ends_ns: Mapping[int, int]) -> list[Operation]:
        """All of them. What was unanswered has happened before the server that it was sent to has
        ended, which it did at these times, by incarnation; what was sent later, never."""
        bounded = []
        for incarnation, it in self._unanswered:
            end_ns = ends_ns.get(incarnation)
            if end_ns is None or it.call_ns <= end_ns:
                bounded.append(replace(it, finish_ns=end_ns))
        return sorted([*self._answered, *bounded], key=lambda it: it.call_ns)


@dataclass(frozen=True)
class Verdict:
    """``outcome`` is ``accepted``, ``rejected`` or ``undecided``; ``text`` says why."""

    outcome: str
    text: str


OUTCOMES = {0: "accepted", 1: "rejected", 3: "undecided"}


def write(operations: Sequence[Operation], path: Path) -> None:
    """Write a history as a file for the checker."""
    path.write_text("".join(it.line() + "\n" for it in operations))


def check(path: Path) -> Verdict:
    """Whether the history in a file is linearizable.

    Raises:
        ValueError: the checker cannot read it.
    """
    line = [str(CHECKER), "-timeout", f"{SEARCH_SECONDS}s", "-html", f"{path}.html", str(path)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode not in OUTCOMES:
        raise ValueError(done.stderr)
    return Verdict(OUTCOMES[done.returncode], done.stdout)
