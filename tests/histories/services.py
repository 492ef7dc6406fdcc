"""What clients ask of each service, and what each reply says of the registers.

A register is a key of the lock service, the holds of a lock by one owner in one mode, a record, or
a field. The pages of the services in ``docs/programs`` say what each reply means.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar

from tests.helpers.resp import Client, ReplyError
from tests.histories.history import NOTHING, History, Operation, Value, Way, now_ns
from tests.histories.running import Running, Worker, code, unexpected

HOUR_MS = 3_600_000


def note(history: History, client: int, call_ns: int, register: str, value: Value) -> None:
    """A register that was read when no client was at work."""
    way = Way(holds={register: value})
    what = f"in the end {register} is {value}"
    history.add(Operation(client, call_ns, now_ns(), what, (way,)))


# -- keys of the lock service ----------------------------------------------------------------------


class Keys(Worker):
    """Sets, reads and removes keys that live longer than any test."""

    NAMES = tuple(f"key-{number}" for number in range(4))

    def step(self) -> None:
        key, value = self.draw.choice(self.NAMES), self.value()
        set_words = ("SET", key, value, "PX", HOUR_MS)
        kind = self.draw.randrange(10)
        if kind < 3:
            created = Way(holds={key: None}, sets={key: value})
            exists = Way(differs={key: None})
            self.do((*set_words, "NX"), by_reply({"OK": created, None: exists}), [created])
        elif kind == 3:
            replaced = Way(differs={key: None}, sets={key: value})
            absent = Way(holds={key: None})
            self.do((*set_words, "XX"), by_reply({"OK": replaced, None: absent}), [replaced])
        elif kind == 4:
            written = Way(sets={key: value})
            self.do(set_words, by_reply({"OK": written}), [written])
        elif kind < 7:
            self.get(key)
        elif kind == 7:
            removed = Way(differs={key: None}, sets={key: None})
            self.do(("DEL", key), by_reply({1: removed, 0: Way(holds={key: None})}), [removed])
        else:
            found = self.get(key) or value
            removed = Way(holds={key: found}, sets={key: None})
            another = Way(differs={key: found})
            self.do(("DELEX", key, "IFEQ", found), by_reply({1: removed, 0: another}), [removed])

    def get(self, key: str) -> str | None:
        def ways(reply: object) -> list[Way]:
            if reply is None or isinstance(reply, str):
                return [Way(holds={key: reply})]
            raise unexpected(reply)

        reply = self.do(("GET", key), ways)
        return None if reply is None else str(reply)

    @classmethod
    def observe(cls, client: Client, history: History) -> None:
        number = history.client()
        for key in cls.NAMES:
            note(history, number, now_ns(), key, client("GET", key))


def by_reply(ways: Mapping[object, Way]) -> Callable[[object], Sequence[Way]]:
    """The way of an operation by its reply, or by the first word of its error."""

    def way(reply: object) -> Sequence[Way]:
        found = ways.get(code(reply) or reply)
        if found is None:
            raise unexpected(reply)
        return [found]

    return way


# -- locks of owners -------------------------------------------------------------------------------


class Locks(Worker):
    """Takes and returns locks of its owner's update part: those of table B are backed up."""

    OWNERS = 5
    ARGUMENTS = ("0", "1", "2")
    #: Table, and the options of LOCK.
    TABLES: ClassVar[dict[str, tuple[str, ...]]] = {"B": ("BACKUP",), "V": ()}
    #: More holds of one lock than a client asks for.
    HOLDS_MAX = 8

    @staticmethod
    def register(table: str, argument: str, owner: int, mode: str) -> str:
        return f"{table}/{argument}/owner-{owner}/{mode}"

    @classmethod
    def registers(cls, table: str) -> list[str]:
        return [
            cls.register(table, argument, owner, mode)
            for argument in cls.ARGUMENTS
            for owner in range(cls.OWNERS)
            for mode in "SE"
        ]

    def greet(self) -> None:
        self.ask("OWNER", f"owner-{self.number}", "UPDATE")

    def step(self) -> None:
        table, argument = self.draw.choice(list(self.TABLES)), self.draw.choice(self.ARGUMENTS)
        mode = self.draw.choice("SSE")
        own = self.register(table, argument, self.number, mode)
        if self.draw.random() < 0.5:
            self.lock(table, argument, mode, own)
        else:
            self.unlock(table, argument, mode, own)

    def lock(self, table: str, argument: str, mode: str, own: str) -> None:
        hindering = [
            self.register(table, argument, other, its)
            for other in range(self.OWNERS)
            for its in ("SE" if mode == "E" else "E")
            if other != self.number
        ]
        free = dict.fromkeys(hindering)

        def granted(count: int) -> Way:
            return Way({**free, own: holds(count - 1)}, {}, {own: holds(count)})

        def ways(reply: object) -> Sequence[Way]:
            if isinstance(reply, int):
                return [granted(reply)]
            if code(reply) == "COLLISION":
                return [Way(differs={it: None}) for it in hindering]
            raise unexpected(reply)

        words = ("LOCK", table, argument, mode, *self.TABLES[table])
        reply = self.do(words, ways, [granted(it + 1) for it in range(self.HOLDS_MAX)])
        while isinstance(reply, int) and reply > 2:
            reply = self.unlock(table, argument, mode, own)

    def unlock(self, table: str, argument: str, mode: str, own: str) -> object:
        def returned(left: int) -> Way:
            return Way(holds={own: holds(left + 1)}, sets={own: holds(left)})

        def ways(reply: object) -> Sequence[Way]:
            if isinstance(reply, int):
                return [returned(reply)]
            if code(reply) == "NOTHELD":
                return [Way(holds={own: None})]
            raise unexpected(reply)

        words = ("UNLOCK", table, argument, mode)
        return self.do(words, ways, [returned(it) for it in range(self.HOLDS_MAX)])

    @classmethod
    def observe(cls, client: Client, history: History) -> None:
        number, call_ns = history.client(), now_ns()
        held = {
            f"{row['table']}/{row['argument']}/{row['owner']}/{row['mode']}": int(row["update"])
            for row in client.locks()
        }
        for table in cls.TABLES:
            for register in cls.registers(table):
                note(history, number, call_ns, register, holds(held.pop(register, 0)))
        assert not held, f"locks that nobody asked for: {held}"


def holds(count: int) -> Value:
    """The value of a register of a lock that is held so often."""
    return str(count) if count > 0 else None


# -- records, one at a time ------------------------------------------------------------------------


def record_key(number: int) -> str:
    return f"{number:012}"


class Records(Worker):
    """Inserts, reads, changes and deletes single records, outside of transactions."""

    FILE, NUMBERS = "records", range(4)

    def step(self) -> None:
        number = self.draw.choice(self.NUMBERS)
        kind = self.draw.randrange(10)
        if kind < 3:
            self.insert(number)
        elif kind < 5:
            self.get(number, ())
        else:
            bias = self.draw.choice([(), ("SINGLE",)])
            old = self.get(number, bias)
            if old is not None:
                self.change(number, old, self.value() if kind < 9 else None)

    def register(self, number: int) -> str:
        return f"{self.FILE}/{number}"

    def insert(self, number: int) -> None:
        register, value = self.register(number), self.value()
        made = Way(holds={register: None}, sets={register: value})
        exists = Way(differs={register: None})
        self.do(
            ("INSERT", self.FILE, record_key(number) + value),
            by_reply({"OK": made, "DUPLICATEKEY": exists, "DEADLOCK": NOTHING}),
            [made],
        )

    def get(self, number: int, bias: Sequence[str]) -> str | None:
        """The value of a record, which is then the position; ``None`` if there is none."""
        register = self.register(number)
        found: str | None = None

        def ways(reply: object) -> Sequence[Way]:
            nonlocal found
            if isinstance(reply, str) and reply.startswith(record_key(number)):
                found = reply[12:]
            elif code(reply) == "DEADLOCK":
                return [NOTHING]
            elif code(reply) != "KEYNOTFOUND":
                raise unexpected(reply)
            return [Way(holds={register: found})]

        self.do(("GET", "EQUAL", self.FILE, 0, record_key(number), *bias), ways)
        return found

    def change(self, number: int, old: str, new: str | None) -> None:
        """Update or delete the record at the position, if it is as it was read."""
        register = self.register(number)
        changed = Way(holds={register: old}, sets={register: new})
        another = Way(differs={register: old})
        update = ("UPDATE", self.FILE, f"{record_key(number)}{new}")
        self.do(
            update if new is not None else ("DELETE", self.FILE),
            by_reply({"OK": changed, "CONFLICT": another, "DEADLOCK": NOTHING}),
            [changed],
        )

    @classmethod
    def create(cls, client: Client) -> None:
        client("CREATE", cls.FILE, 24, "KEY", "0:12:text")

    @classmethod
    def observe(cls, client: Client, history: History) -> None:
        client_number, call_ns = history.client(), now_ns()
        found = dict(all_records(client, cls.FILE))
        assert found.keys() <= set(cls.NUMBERS)
        for number in cls.NUMBERS:
            note(history, client_number, call_ns, f"{cls.FILE}/{number}", found.get(number))


def all_records(client: Client, file: str) -> Iterator[tuple[int, str]]:
    """The numbers and values of all records of a file, in the order of the key."""
    wanted: tuple[str | int, ...] = ("FIRST", file, 0)
    while True:
        try:
            record = client("GET", *wanted)
        except ReplyError as error:
            if error.code != "ENDOFFILE":
                raise
            return
        yield int(record[:12]), record[12:]
        wanted = ("NEXT", file)


# -- transactions ----------------------------------------------------------------------------------


class AbortedError(Exception):
    """The transaction is aborted by the server; nothing of it has happened."""


class Transactions(Worker):
    """Whole transactions on few registers: what they read, and what they have written."""

    REGISTERS: tuple[str, ...] = ()

    def read_and_write(self) -> None:
        """What stands between BEGIN and END, by ``self.seen`` and ``self.write``."""
        raise NotImplementedError

    def step(self) -> None:
        #: What was read before it was written, what was written, and both as a text.
        self.reads: dict[str, Value] = {}
        self.writes: dict[str, Value] = {}
        self.told: list[str] = []
        call_ns = now_ns()
        self.expect("OK", "BEGIN")
        try:
            self.read_and_write()
        except AbortedError:
            self.expect("OK", "ABORT")
            return
        if self.draw.random() < 0.1:
            # What it has read was so, and it has changed nothing.
            self.writes = {}
            self.told.append("aborted")
            self.expect("OK", "ABORT")
        else:
            try:
                self.expect("OK", "END")
            except OSError:
                self.unanswered(call_ns, self.text(), self.ways() if self.writes else [])
                raise
        self.answered(call_ns, self.text(), self.ways())

    def ways(self) -> list[Way]:
        return [Way(holds=self.reads, sets=self.writes)]

    def text(self) -> str:
        return "; ".join(self.told)

    def expect(self, expected: object, *words: str | int) -> None:
        reply = self.ask(*words)
        if reply != expected:
            raise unexpected(reply)

    def ask_in(self, *words: str | int) -> object:
        """A request within the transaction.

        Raises:
            AbortedError: it is the victim of a deadlock.
        """
        reply = self.ask(*words)
        if code(reply) == "DEADLOCK":
            raise AbortedError
        return reply

    def seen(self, register: str, value: Value) -> None:
        """What the transaction has read: its own writes, or what others have left."""
        self.told.append(f"{register} is {value}")
        known = self.writes.get(register, self.reads.get(register, value))
        if register in self.writes or register in self.reads:
            assert known == value, f"a transaction read {value} where {known} was: {self.text()}"
        else:
            self.reads[register] = value

    def write(self, register: str, value: Value) -> None:
        self.told.append(f"{register} := {value}")
        self.writes[register] = value


class RecordTransactions(Transactions):
    """Transactions of several records, with searches through all of them."""

    FILE, NUMBERS = "accounts", range(8)
    REGISTERS = tuple(f"accounts/{number}" for number in NUMBERS)

    def read_and_write(self) -> None:
        for _ in range(self.draw.randrange(1, 4)):
            number = self.draw.choice(self.NUMBERS)
            kind = self.draw.randrange(10)
            if kind < 1:
                self.scan()
            elif kind < 4:
                self.get(number, ())
            elif kind < 6:
                self.insert(number)
            elif self.get(number, ("SINGLE",)):
                self.change(number, delete=kind == 9)

    def get(self, number: int, bias: Sequence[str]) -> bool:
        reply = self.ask_in("GET", "EQUAL", self.FILE, 0, record_key(number), *bias)
        if isinstance(reply, str) and reply.startswith(record_key(number)):
            self.seen(self.REGISTERS[number], reply[12:])
            return True
        if code(reply) != "KEYNOTFOUND":
            raise unexpected(reply)
        self.seen(self.REGISTERS[number], None)
        return False

    def insert(self, number: int) -> None:
        register, value = self.REGISTERS[number], self.value()
        reply = self.ask_in("INSERT", self.FILE, record_key(number) + value)
        if reply == "OK":
            self.seen(register, None)
            self.write(register, value)
        elif code(reply) == "DUPLICATEKEY":
            # Somebody has written it: a read says what.
            assert self.get(number, ()), f"{register} is a duplicate and is not found"
        else:
            raise unexpected(reply)

    def change(self, number: int, delete: bool) -> None:
        value = None if delete else self.value()
        update = ("UPDATE", self.FILE, f"{record_key(number)}{value}")
        reply = self.ask_in(*(("DELETE", self.FILE) if delete else update))
        if reply != "OK":
            raise unexpected(reply)
        self.write(self.REGISTERS[number], value)

    def scan(self) -> None:
        found: dict[int, str] = {}
        wanted: tuple[str | int, ...] = ("FIRST", self.FILE, 0)
        while True:
            reply = self.ask_in("GET", *wanted)
            if code(reply) == "ENDOFFILE":
                break
            if not isinstance(reply, str):
                raise unexpected(reply)
            found[int(reply[:12])] = reply[12:]
            wanted = ("NEXT", self.FILE)
        assert found.keys() <= set(self.NUMBERS), f"records that nobody inserted: {found}"
        for number in self.NUMBERS:
            self.seen(self.REGISTERS[number], found.get(number))

    @classmethod
    def create(cls, client: Client) -> None:
        client("CREATE", cls.FILE, 24, "KEY", "0:12:text")

    @classmethod
    def observe(cls, client: Client, history: History) -> None:
        client_number, call_ns = history.client(), now_ns()
        found = dict(all_records(client, cls.FILE))
        assert found.keys() <= set(cls.NUMBERS)
        for number, register in enumerate(cls.REGISTERS):
            note(history, client_number, call_ns, register, found.get(number))


class StatementTransactions(Transactions):
    """Transactions of several statements, with sums over all records."""

    NUMBERS = range(8)
    REGISTERS = tuple(f"balance/{number}" for number in NUMBERS)

    def read_and_write(self) -> None:
        for _ in range(self.draw.randrange(1, 4)):
            number = self.draw.choice(self.NUMBERS)
            kind = self.draw.randrange(10)
            if kind < 1:
                self.audit()
            elif kind < 4:
                self.get(number)
            elif kind < 6:
                self.insert(number)
            elif kind < 9:
                self.add(number)
            else:
                self.delete(number)

    def balance(self, reply: object) -> Value:
        if reply is None:
            return None
        if isinstance(reply, int):
            return str(reply)
        raise unexpected(reply)

    def get(self, number: int) -> Value:
        reply = self.ask_in("RUN", "GET accounts balance KEY ?", number)
        found = self.balance(reply)
        self.seen(self.REGISTERS[number], found)
        return found

    def insert(self, number: int) -> None:
        # A refused statement would fail the whole transaction.
        if self.get(number) is None:
            value = int(self.value())
            reply = self.ask_in("RUN", "INSERT accounts ? ?", number, value)
            if reply != "OK":
                raise unexpected(reply)
            self.write(self.REGISTERS[number], str(value))

    def add(self, number: int) -> None:
        by = int(self.value())
        reply = self.ask_in("RUN", f"ADD accounts balance ? KEY {number}", by)
        new = self.balance(reply)
        self.seen(self.REGISTERS[number], None if new is None else str(int(new) - by))
        if new is not None:
            self.write(self.REGISTERS[number], new)

    def delete(self, number: int) -> None:
        if self.get(number) is not None:
            reply = self.ask_in("RUN", "DELETE accounts KEY ?", number)
            if reply != "OK":
                raise unexpected(reply)
            self.write(self.REGISTERS[number], None)

    def audit(self) -> None:
        found = self.ask_in("RUN", "SUM accounts balance FROM 0 TO ?", len(self.NUMBERS))
        balances = [self.get(number) for number in self.NUMBERS]
        expected = sum(int(it) for it in balances if it is not None)
        assert found == expected, f"a sum of {found}, and records of {expected}: {self.text()}"

    @classmethod
    def create(cls, client: Client) -> None:
        client("CREATE", "accounts", "id", "balance")

    @classmethod
    def observe(cls, client: Client, history: History) -> None:
        client_number, call_ns = history.client(), now_ns()
        for number, register in enumerate(cls.REGISTERS):
            balance = client("RUN", "GET accounts balance KEY ?", number)
            value = None if balance is None else str(balance)
            note(history, client_number, call_ns, register, value)


@contextlib.contextmanager
def connected(running: Running) -> Iterator[Client]:
    """A connection for the test itself."""
    client, _ = running.connect()
    with contextlib.closing(client):
        yield client
