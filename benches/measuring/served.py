"""A server of ``concurve web`` and a browser that shows its pages."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from measuring.figures import MissingToolError

CONCURVE = str(Path(sysconfig.get_path("scripts")) / "concurve")
PATIENCE_SECONDS = 60.0


class Served(NamedTuple):
    """A server that runs: its process, its address, and what gives a session."""

    process: subprocess.Popen[str]
    host: str
    port: int
    cookie: str
    key: str

    @property
    def origin(self) -> str:
        return f"http://{self.host}:{self.port}"

    def link(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE_SECONDS)

    def get(self, link: http.client.HTTPConnection, path: str) -> http.client.HTTPResponse:
        link.request("GET", path, headers={"cookie": self.cookie})
        return link.getresponse()


@contextmanager
def serving(db: Path) -> Iterator[Served]:
    """A server that shows this store; it ends with the block."""
    process = subprocess.Popen(
        [CONCURVE, "web", "--port", "0", "--db", str(db)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        found = re.fullmatch(r"http://([\d.]+):(\d+)/#token=(\S+)", address)
        if found is None:
            raise SystemExit(f"concurve web did not start: {address or 'it said nothing'}")
        yield _logged_in(process, found[1], int(found[2]), found[3])
    finally:
        process.kill()
        process.communicate()


def _logged_in(process: subprocess.Popen[str], host: str, port: int, token: str) -> Served:
    link = http.client.HTTPConnection(host, port, timeout=PATIENCE_SECONDS)
    headers = {"origin": f"http://{host}:{port}", "accept": "application/json"}
    link.request("POST", "/login", json.dumps({"token": token}), headers)
    answer = link.getresponse()
    key = json.loads(answer.read())["key"]
    link.close()
    cookie = (answer.getheader("set-cookie") or "").partition(";")[0]
    return Served(process, host, port, cookie, key)


def browser() -> str:
    """The browser's program.

    Raises:
        MissingToolError: there is none.
    """
    found = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if found is None:
        raise MissingToolError("no Chromium: apt-get install chromium")
    return found


@contextmanager
def tabs(served: Served, script: str = "") -> Iterator[Callable[[], Any]]:
    """Opens empty tabs of a browser that is logged in, each in a context of its own; ``script``
    runs in a page before the page's own scripts."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=browser(), args=["--no-sandbox"])

        def open_tab() -> Any:
            context = running.new_context(viewport={"width": 1200, "height": 800})
            name, _, value = served.cookie.partition("=")
            context.add_cookies([{"name": name, "value": value, "url": served.origin}])
            key = json.dumps(served.key)
            context.add_init_script(f"localStorage.setItem('concurve-key', {key}); {script}")
            return context.new_page()

        yield open_tab
        running.close()
