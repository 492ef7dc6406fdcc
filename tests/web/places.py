"""Stores, sites and servers for the tests of the web pages."""

from __future__ import annotations

import http.client
import json
import re
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from starlette.testclient import TestClient

from concurve.store import Store
from concurve.store.rows import RunRow
from concurve.web.app import app_of
from concurve.web.drawing import Drawings, Job, draw
from concurve.web.quiet import Quiet
from concurve.web.security import Access, new_access
from concurve.web.site import Site
from tests.helpers.made import made_run
from tests.helpers.real import Lab, first_line, wait_until

PORT = 8377
HOST = f"127.0.0.1:{PORT}"
OWN = {"origin": f"http://{HOST}"}


class HereDrawings(Drawings):
    """Makes reports in this process, and counts them."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[Job] = []

    async def make(self, job: Job, check: Callable[[], Awaitable[None]] | None = None) -> bytes:
        """Make it."""
        if check is not None:
            await check()
        self.made.append(job)
        found = draw(job)
        self._kept[job] = found
        return found


class Visited(NamedTuple):
    """A site and a browser that has a session, unless it is a stranger."""

    site: Site
    client: TestClient
    access: Access


@contextmanager
def visited(db: Path, holder: str = "", logged_in: bool = True) -> Iterator[Visited]:
    """A site on a store; ``holder`` measures meanwhile."""
    access = new_access(("127.0.0.1", "localhost"), PORT)
    quiet = Quiet(lambda run: None, look=lambda: holder, move=lambda cpus: None)
    site = Site(str(db), access, quiet, HereDrawings())
    cookies = {access.cookie: access.session} if logged_in else {}
    key = {"x-concurve-key": access.key} if logged_in else {}
    with TestClient(
        app_of(site),
        base_url=f"http://{HOST}",
        cookies=cookies,
        headers={"accept": "text/html", **key},
        raise_server_exceptions=False,
        follow_redirects=False,
    ) as client:
        yield Visited(site, client, access)


def small_run(store: Store, seed: int = 1, **more: Any) -> str:
    """A complete run of three cells; its id."""
    levels = more.pop("threads", (1, 2, 4))
    report = made_run(store, lambda n: 1.0 / int(n), seed=seed, threads=levels, **more)
    return report.run.id


def under_way(db: Path, trials: int, **more: Any) -> RunRow:
    """A run of which so many trials are stored, and the others would follow."""
    whole = Store(str(db.parent / "whole.db"))
    row = whole.find_run(small_run(whole, **more))._replace(state="running", reason="")
    store = Store(str(db))
    store.add_run(row)
    go_on(db, row, 0, trials)
    return row


def go_on(db: Path, row: RunRow, first: int, after: int) -> None:
    """Store the trials of a run from the ``first`` on, as if they had been made."""
    whole, store = Store(str(db.parent / "whole.db")), Store(str(db))
    trials, records = whole.trials(row.id), list(whole.records(row.id))
    for place in range(first, min(after, len(trials))):
        trial = trials[place]
        store.add_trial(row.id, trial.outcome, trial.figures, records[place].record)


class Served:
    """A real server, and what a browser asks of it."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process = process
        self.address = address
        found = re.fullmatch(r"http://([\d.]+):(\d+)/#token=(\S+)", address)
        assert found is not None, address
        self.host, self.port, self.token = found[1], int(found[2]), found[3]
        self.cookie, self.key = "", ""
        self.cookie, self.key = self._log_in()

    def ask(self, path: str, content: object = None, timeout: float = 60.0) -> tuple[int, Any]:
        """The status and the content of an answer: JSON where it is that."""
        link = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        try:
            self._send(link, path, content)
            answer = link.getresponse()
            body = answer.read().decode()
            kind = answer.getheader("content-type", "")
            return answer.status, json.loads(body) if "json" in kind else body
        finally:
            link.close()

    def stream(self, path: str) -> http.client.HTTPConnection:
        """A connection to a stream that has begun."""
        link = http.client.HTTPConnection(self.host, self.port, timeout=60.0)
        self._send(link, path, None)
        answer = link.getresponse()
        assert answer.status == 200
        assert answer.readline().startswith(b"retry:")
        return link

    def _send(self, link: http.client.HTTPConnection, path: str, content: object) -> None:
        headers = {
            "cookie": self.cookie,
            "x-concurve-key": self.key,
            "accept": "application/json",
            "origin": f"http://{self.host}:{self.port}",
        }
        body = None if content is None else json.dumps(content).encode()
        link.request("GET" if body is None else "POST", path, body, headers)

    def _log_in(self) -> tuple[str, str]:
        link = http.client.HTTPConnection(self.host, self.port, timeout=60.0)
        self._send(link, "/login", {"token": self.token})
        answer = link.getresponse()
        key = json.loads(answer.read())["key"]
        assert answer.status == 200
        link.close()
        return (answer.getheader("set-cookie") or "").partition(";")[0], key

    def started(self, kind: str, form: dict[str, Any]) -> str:
        """The run that a form starts."""
        status, said = self.ask(f"/new/start/{kind}", form)
        assert status == 200, said
        known = [said]

        def has_begun() -> bool:
            known[0] = self.ask(f"/measurements/{said['number']}")[1]
            assert known[0]["code"] in (None, 0), known[0]
            return bool(known[0]["run"])

        wait_until(has_begun, "the run")
        return str(known[0]["run"])


def serve(lab: Lab, **environment: str) -> Served:
    """Start the server of a laboratory and log in."""
    process = lab.start("web", "--port", "0", **environment)
    return Served(process, first_line(process))
