"""The pages of ``concurve web``: how soon they are painted with many trials and cells, and beside
many streams."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from measuring.estimates import median
from measuring.figures import Bound, Figure, MissingToolError
from measuring.running import scratch
from measuring.showing import alone
from synthetic_run import fill, head_of, write_trials

from concurve.store import Store
from concurve.store.rows import RUNNING, RunRow

PAINTED_SECONDS_MAX = 1.0
CELLS, REPEATS = 50, 100
CELLS_UNDER_WAY, TRIALS_UNDER_WAY = 1000, 5
STREAMS = 200
_CONCURVE = str(Path(sysconfig.get_path("scripts")) / "concurve")
_PAINT = "performance.getEntriesByName('first-contentful-paint').map((entry) => entry.startTime)"
_PATIENCE_SECONDS = 60.0


class _Served(NamedTuple):
    """A server that runs: its address, and what gives a session."""

    host: str
    port: int
    cookie: str
    key: str

    @property
    def origin(self) -> str:
        return f"http://{self.host}:{self.port}"

    def link(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.host, self.port, timeout=_PATIENCE_SECONDS)

    def get(self, link: http.client.HTTPConnection, path: str) -> http.client.HTTPResponse:
        link.request("GET", path, headers={"cookie": self.cookie})
        return link.getresponse()


def figures(quick: bool) -> Iterator[Figure]:
    """Each page is opened afresh each time."""
    browser_file = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if browser_file is None:
        raise MissingToolError("no Chromium: apt-get install chromium")
    cells, repeats = (10, 5) if quick else (CELLS, REPEATS)
    many = 20 if quick else CELLS_UNDER_WAY
    streams = 5 if quick else STREAMS
    times = 2 if quick else 7
    with scratch() as folder:
        whole = fill(folder / "whole.db", cells, repeats)
        running = _under_way(folder / "running.db", many)
        with _serving(folder / "whole.db") as done, _serving(folder / "running.db") as served:
            for name, where, path in (
                (f"list of runs with {cells * repeats:,} trials", done, "/runs"),
                (f"run of {cells * repeats:,} trials", done, f"/runs/{whole}"),
                (f"run of {many:,} cells under way", served, f"/runs/{running}"),
            ):
                yield Figure(
                    f"first paint: {name}",
                    f"first contentful paint in Chromium, median of {times}",
                    median(list(_painted(where, path, browser_file, times)), "s"),
                    Bound(high=PAINTED_SECONDS_MAX),
                )
            yield Figure(
                f"a page beside {streams} streams",
                f"GET /runs to its last byte, median of {4 * times}",
                median(list(_beside_streams(served, running, streams, 4 * times)), "s"),
                Bound(high=PAINTED_SECONDS_MAX),
            )


def _under_way(db: Path, cells: int) -> str:
    """A run that this process seems to measure; its id."""
    head = head_of(cells, TRIALS_UNDER_WAY, seed=2)
    store = Store(str(db))
    store.add_run(
        RunRow(head.id, head.study.name, head.started, RUNNING, "", msgspec.json.encode(head))
    )
    store.close()
    write_trials(db, head, seed=2)
    return head.id


@contextmanager
def _serving(db: Path) -> Iterator[_Served]:
    process = subprocess.Popen(
        [_CONCURVE, "web", "--port", "0", "--db", str(db)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        found = re.fullmatch(r"http://([\d.]+):(\d+)/#token=(\S+)", address)
        if found is None:
            raise SystemExit(f"concurve web did not start: {address or 'it said nothing'}")
        yield _logged_in(found[1], int(found[2]), found[3])
    finally:
        process.kill()
        process.communicate()


def _logged_in(host: str, port: int, token: str) -> _Served:
    link = http.client.HTTPConnection(host, port, timeout=_PATIENCE_SECONDS)
    headers = {"origin": f"http://{host}:{port}", "accept": "application/json"}
    link.request("POST", "/login", json.dumps({"token": token}), headers)
    answer = link.getresponse()
    key = json.loads(answer.read())["key"]
    link.close()
    return _Served(host, port, (answer.getheader("set-cookie") or "").partition(";")[0], key)


def _painted(served: _Served, path: str, browser_file: str, times: int) -> Iterator[float]:
    """Seconds from the request of the page to its first content."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=browser_file, args=["--no-sandbox"])
        for _ in range(times):
            context = browser.new_context(viewport={"width": 1200, "height": 800})
            name, _, value = served.cookie.partition("=")
            context.add_cookies([{"name": name, "value": value, "url": served.origin}])
            key = json.dumps(served.key)
            context.add_init_script(f"localStorage.setItem('concurve-key', {key})")
            tab = context.new_page()
            tab.goto(served.origin + path)
            yield _paint_of(tab)
            context.close()
        browser.close()


def _paint_of(tab: Any) -> float:
    """When the first content was painted. The page allows no script but its own, so it is asked
    again and again from outside."""
    until = time.monotonic() + _PATIENCE_SECONDS
    while not (found := tab.evaluate(_PAINT)):
        if time.monotonic() > until:
            raise SystemExit("nothing was painted")
        time.sleep(0.01)
    return float(found[0]) / 1000


def _beside_streams(served: _Served, run: str, streams: int, times: int) -> Iterator[float]:
    """Seconds of a page while so many browsers follow a run."""
    with ExitStack() as stack:
        for _ in range(streams):
            link = served.link()
            stack.callback(link.close)
            answer = served.get(link, f"/runs/{run}/live")
            assert answer.status == 200 and answer.readline().startswith(b"retry:")
        for _ in range(times):
            link = served.link()
            begun = time.perf_counter()
            served.get(link, "/runs").read()
            yield time.perf_counter() - begun
            link.close()


if __name__ == "__main__":
    sys.exit(alone(figures, __doc__))
