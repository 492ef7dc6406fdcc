"""Several laboratories, each with hosts of its own, on one store in PostgreSQL: none loses or
doubles what is another's, and a host is for one of them at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from string import Template

import pytest

from concurve.definition.study_file import parse_study
from concurve.errors import BusyError
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.store import Store
from concurve.wire import decode_record
from tests.helpers import real
from tests.helpers.agents import Agents, inventory_of
from tests.helpers.postgres import Server

pytestmark = [
    pytest.mark.real,
    pytest.mark.postgresql,
    pytest.mark.skipif(real.missing() is not None, reason=str(real.missing())),
]

#: A server on one host and its load on another, which begins when a file is there.
STUDY = """
[study]
name = "shared-store"
question = "Is anything lost or doubled?"

[factors]
amount = [1, 2]

[[roles]]
name = "server"
command = ["sleep", "300"]
end = "serve"
host = "$server"

[[roles]]
name = "target"
command = ["sh", "-c", "until test -e $go; do sleep 0.01; done; sleep 0.0{amount}"]
host = "$load"

[effort.quick]
repeats = 3
time_allowed = "1h"
"""

PLANNED = {(cell, block) for cell in range(2) for block in range(3)}


class Laboratory:
    """A laboratory with two hosts, which measures in a thread; ``go`` lets its loads begin. Hosts
    of one name are one host, whichever laboratory has them."""

    def __init__(self, folder: Path, url: str, server: str, load: str) -> None:
        self.go = folder / f"go-{server}-{load}"
        self.hosts = {server, load}
        self.store = Store(url)
        self.agents = Agents(folder, inventory_of({server: "127.0.0.1", load: "127.0.0.2"}))
        text = Template(STUDY).substitute(server=server, load=load, go=self.go)
        self._study = parse_study(text, 2, "mine.toml")
        self.run_id = ""

    def measure(self) -> None:
        self.agents.start()
        with self.agents.connected() as engine:
            head = new_head(self._study, "quick", 1, "again", engine.inventory, engine)
            self.run_id = head.id
            Runner(head, self.store, engine, site=engine).start()

    def check(self) -> None:
        """All that was planned is there, once, and measured on the hosts of this laboratory."""
        assert self.store.find_run(self.run_id).state == "complete"
        keys = list(self.store.trials(self.run_id).outcomes.keys())
        assert len(keys) == len(set(keys)) == self.store.count(self.run_id)
        assert {(key.cell, key.block) for key in keys} == PLANNED
        records = list(self.store.records(self.run_id))
        assert sorted(record.key for record in records) == sorted(keys)
        for record in records:
            decoded = decode_record(record.record)
            assert {host.name for host in decoded.hosts} == self.hosts
            assert decoded.trial.startswith(self.run_id)


@contextlib.contextmanager
def laboratories(
    folder: Path, url: str, *hosts: tuple[str, str]
) -> Iterator[tuple[list[Laboratory], ThreadPoolExecutor]]:
    found = [Laboratory(folder, url, *pair) for pair in hosts]
    with ThreadPoolExecutor(len(found)) as pool:
        try:
            yield found, pool
        finally:
            for one in found:
                one.go.touch()
    for one in found:
        one.agents.end()
        one.store.close()


def wait_until_it_measures(one: Laboratory, result: Future[None], store: Store) -> None:
    """Wait until a laboratory has its hosts, and the load of its first trial."""

    def measures() -> bool:
        if result.done():
            result.result()
        lines = one.agents.lab.alive().values()
        return any(str(one.go) in line and line.startswith("sh ") for line in lines)

    real.wait_until(measures, "the first trial")
    assert store.find_run(one.run_id).state == "running"


def test_two_laboratories_at_once_lose_and_double_nothing(tmp_path: Path, postgres: Server) -> None:
    url = postgres.database("two_laboratories")
    store = Store(url)
    with laboratories(tmp_path, url, ("a", "b"), ("c", "d")) as (both, pool):
        results = [pool.submit(one.measure) for one in both]
        for one, result in zip(both, results, strict=True):
            wait_until_it_measures(one, result, store)
        for one in both:  # each has begun before either goes on
            one.go.touch()
        for result in results:
            result.result(real.PATIENCE)
        for one in both:
            one.check()
    assert {row.id for row in store.runs()} == {one.run_id for one in both}
    store.close()


def test_a_host_that_another_laboratory_measures_on_is_refused_until_it_is_done(
    tmp_path: Path, postgres: Server
) -> None:
    url = postgres.database("one_host_shared")
    store = Store(url)
    with laboratories(tmp_path, url, ("a", "b"), ("c", "b")) as ((first, second), pool):
        result = pool.submit(first.measure)
        wait_until_it_measures(first, result, store)
        with pytest.raises(BusyError, match="host b: another measurement runs") as refused:
            second.measure()
        assert first.run_id in refused.value.what, "whose"
        assert "wait until it is done" in refused.value.remedy
        assert [row.id for row in store.runs()] == [first.run_id], "nothing of it is stored"
        first.go.touch()
        result.result(real.PATIENCE)
        first.check()
        second.go.touch()
        second.measure()
        second.check()
        first.check()
    assert {row.id for row in store.runs()} == {first.run_id, second.run_id}
    store.close()
