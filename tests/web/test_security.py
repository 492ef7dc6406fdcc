"""Who may ask: each attack is refused with a reason, before anything of a run is told."""

from __future__ import annotations

import asyncio
import errno
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from concurve.errors import BusyError
from concurve.store import Store
from concurve.web import security
from concurve.web.app import app_of
from concurve.web.security import BODY_BYTES_MAX, HEAD_BYTES_MAX, Asked, judge, new_access
from concurve.web.window.setting import Setting, built_in
from tests.web.places import HOST, OWN, Visited, small_run, visited

ACCESS = new_access(("127.0.0.1", "localhost"), 8377)
COOKIE = f"{ACCESS.cookie}={ACCESS.session}"
JSON = {"accept": "application/json"}
GOOD = Asked("GET", "/runs", HOST, None, COOKIE, None)
POST = GOOD._replace(
    method="POST", path="/new/start/sweep", origin=f"http://{HOST}", key=ACCESS.key
)
#: What a browser asks for because another page, of another port of this host say, wants it.
IMAGE = GOOD._replace(site="same-site", mode="no-cors")
LINK = GOOD._replace(site="cross-site", mode="navigate")
LOGIN = POST._replace(path="/login", cookies="", key="")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Visited]:
    Store(str(tmp_path / "web.db")).close()
    with visited(tmp_path / "web.db") as found:
        yield found


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[Visited]:
    Store(str(tmp_path / "web.db")).close()
    with visited(tmp_path / "web.db", logged_in=False) as found:
        yield found


@pytest.mark.parametrize(
    "asked",
    [
        GOOD,
        POST,
        GOOD._replace(host="LocalHost:8377"),
        GOOD._replace(site="same-origin", mode="cors"),
        GOOD._replace(site="none", mode="navigate"),
        LINK,
        LINK._replace(site="same-site"),
        POST._replace(site="same-origin", mode="cors"),
        LOGIN,
        # A page of another port may add cookies of this name.
        GOOD._replace(cookies=f"{ACCESS.cookie}=x; {COOKIE}; {ACCESS.cookie}"),
    ],
)
def test_who_has_a_session_may_ask(asked: Asked) -> None:
    assert judge(asked, ACCESS) is None


@pytest.mark.parametrize(
    ("status", "asked"),
    [
        (405, GOOD._replace(method="DELETE")),
        (405, GOOD._replace(method="TRACE")),
        (421, GOOD._replace(host="evil.example:8377")),
        (421, GOOD._replace(host="127.0.0.1:9999")),
        (421, GOOD._replace(host="127.0.0.1")),
        (421, GOOD._replace(host="")),
        (421, GOOD._replace(host=f"{HOST}, {HOST}")),
        (403, GOOD._replace(origin="http://evil.example")),
        (403, POST._replace(origin="http://localhost:8377")),  # another name of ours
        (403, POST._replace(origin=f"https://{HOST}")),
        (403, POST._replace(origin="null")),
        (403, POST._replace(origin=None)),
        (413, POST._replace(length=str(BODY_BYTES_MAX + 1))),
        (413, POST._replace(length="9" * 400)),
        (413, POST._replace(length="-1")),
        (413, POST._replace(length="٣")),
        (401, GOOD._replace(cookies="")),
        (401, GOOD._replace(cookies=f"{ACCESS.cookie}=")),
        (401, GOOD._replace(cookies=f"{ACCESS.cookie}=x{ACCESS.session}")),
        (401, GOOD._replace(cookies=f"other={ACCESS.session}")),
        (401, GOOD._replace(cookies=f"{ACCESS.cookie}={ACCESS.token}")),
        (401, GOOD._replace(cookies="=;;,\x7f")),
        (401, POST._replace(cookies="")),
        (403, IMAGE),
        (403, IMAGE._replace(site="cross-site")),
        (403, IMAGE._replace(site="same-site", mode="")),
        (403, IMAGE._replace(path="/static/login.js")),
        (403, POST._replace(site="same-site", mode="navigate")),
        (403, LOGIN._replace(site="cross-site", mode="cors")),
        (403, POST._replace(key="")),
        (403, POST._replace(key=ACCESS.session)),
        (403, POST._replace(key=f"{ACCESS.key}, {ACCESS.key}")),
        (403, POST._replace(key="\xe4")),
        (431, GOOD._replace(head_bytes=HEAD_BYTES_MAX + 1)),
        (431, LOGIN._replace(head_bytes=HEAD_BYTES_MAX + 1)),
    ],
)
def test_what_is_refused(status: int, asked: Asked) -> None:
    refusal = judge(asked, ACCESS)
    assert refusal is not None and refusal.status == status
    assert refusal.what and refusal.remedy
    for secret in (ACCESS.session, ACCESS.token, ACCESS.key):
        assert secret not in str(refusal)


def test_two_servers_have_nothing_in_common() -> None:
    other = new_access(("127.0.0.1",), 8377)
    secrets = {*other[:3], *ACCESS[:3]}
    assert len(secrets) == 6 and min(map(len, secrets)) >= 32


def test_a_server_at_the_port_of_http_is_asked_for_without_it() -> None:
    assert "lab.example" in new_access(("lab.example",), 80).hosts


def test_a_stranger_gets_a_page_to_log_in_and_nothing_else(stranger: Visited) -> None:
    for path in ("/", "/runs", "/runs/x", "/new", "/static/run.js", "/report.js", "/nothing"):
        answer = stranger.client.get(path)
        assert answer.status_code == 401, path
        assert "Token" in answer.text
    answer = stranger.client.get("/runs", headers={"accept": "application/json"})
    assert answer.status_code == 401 and "#token=" in answer.text


def test_the_token_gives_a_session(stranger: Visited) -> None:
    answer = stranger.client.post("/login", json={"token": stranger.access.token}, headers=OWN)
    assert answer.status_code == 200
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie
    assert stranger.client.get("/runs").status_code == 200
    assert answer.json() == {"key": stranger.access.key}


@pytest.mark.parametrize("content", [b'{"token": "wrong"}', b'{"token": "\\u00e4"}', b"{}"])
def test_another_token_gives_none(stranger: Visited, content: bytes) -> None:
    answer = stranger.client.post("/login", content=content, headers=OWN)
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers
    assert stranger.client.get("/runs").status_code == 401


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff", b'{"token": 1}', b"[" * 5000])
def test_a_malformed_login_is_refused(stranger: Visited, content: bytes) -> None:
    answer = stranger.client.post("/login", content=content, headers=OWN)
    assert answer.status_code == 400


@pytest.mark.parametrize("path", ["/runs", "/new", "/static/web.css", "/nothing", "/login"])
def test_every_answer_has_the_headers_that_protect_it(site: Visited, path: str) -> None:
    headers = site.client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    script = next(part for part in policy.split(";") if "script-src" in part)
    assert script.split() == ["script-src", "'self'"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


@pytest.mark.parametrize(
    "path",
    ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static/....//app.py",
     "/static//etc/passwd", "/runs/..%2f..%2fetc", "/runs/%00", "/static/%00"],
)  # fmt: skip
def test_no_path_leads_out_of_the_site(site: Visited, path: str) -> None:
    answer = site.client.get(path)
    assert answer.status_code in (404, 400), answer.text
    assert "root:" not in answer.text and "import" not in answer.text


def test_a_body_without_a_length_is_bounded(site: Visited) -> None:
    def parts() -> Iterator[bytes]:
        for _ in range(BODY_BYTES_MAX // 1024 + 2):
            yield b"x" * 1024

    answer = site.client.post("/new/plan/sweep", content=parts(), headers=OWN)
    assert answer.status_code == 413


def test_a_body_that_does_not_come_is_given_up(
    site: Visited, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(security, "BODY_SECONDS", 0.05)
    sent: list[Any] = []

    async def never() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app_of(site.site)(site_scope(site), never, send))  # type: ignore[arg-type]
    assert sent[0]["status"] == 408


def test_a_script_in_a_name_is_text(tmp_path: Path) -> None:
    db = tmp_path / "web.db"
    bad = "<script>alert(1)</script>"
    store = Store(str(db))
    run = small_run(store, name=bad)
    store.set_state(run, "failed", f"{bad} \x1b[31m\u202e")
    with visited(db) as found:
        pages = ["/runs", f"/runs/{run}", f"/runs/{run}/report", f"/runs?text={bad}",
                 f"/compare?base={bad}&new={bad}", f"/history?study={bad}",
                 f"/history/report?study={bad}", f"/compare/report?base={bad}&new=x",
                 f"/new?study={bad}", f"/nothing/{bad}"]  # fmt: skip
        for path in pages:
            text = found.client.get(path).text
            assert "<script>alert" not in text, path
            assert "\x1b" not in text and "\u202e" not in text, path


def test_no_page_loads_anything_from_elsewhere(site: Visited) -> None:
    for path in ("/runs", "/new", "/compare", "/history", "/login", "/nothing"):
        assert "//" not in site.client.get(path).text.replace("http://db1:9187", "").replace(
            "redis://127", ""
        )


# -- what is not a form of ours -------------------------------------------------------------------

#: Requests that change something. Each address that takes POST has to be here.
CHANGES: dict[str, object] = {
    "/login": None,
    "/runs/{run}/stop": {},
    "/runs/{run}/resume": {},
    "/runs/{run}/more": {"cell": 0, "trials": 5},
    "/campaigns/{run}/resume": {},
    "/new/plan/{kind}": {"command": "true"},
    "/new/start/{kind}": {"command": "true"},
    "/measurements/{number}/stop": {},
    "/servers/read": {"place": "127.0.0.1:1"},
    "/servers/turn": {"place": "127.0.0.1:1", "nice": 1},
    "/disk/simulate": {},
    "/window/start": {},
    "/window/measure": {},
    "/window/{number}/stop": {},
    "/window/{number}/cpus": [],
    "/bookmark/read": "x",
    "/bookmark/{ending}": {},
}


def test_the_session_alone_changes_nothing_and_starts_nothing(site: Visited) -> None:
    """Browsers send the cookie to all ports of a host: another user of the machine may have it."""
    routes = routes_of(site)
    posts = {route.path for route in routes if "POST" in (route.methods or ())}
    assert posts == set(CHANGES)
    for path in posts - {"/login"}:
        address = re.sub(r"\{\w+\}", "1", path)
        for key in ("", site.access.session, site.access.token):
            answer = site.client.post(
                address, json=CHANGES[path], headers={**OWN, "x-concurve-key": key}
            )
            assert answer.status_code == 403, path
    assert {"GET", "HEAD"} == {
        method for route in routes if route.path not in posts for method in route.methods or ()
    }


def routes_of(site: Visited) -> list[Any]:
    """The addresses of the site, but for the folder of files."""
    guard: Any = app_of(site.site)
    return [route for route in guard._app.routes if hasattr(route, "methods")]


ODD = ["9" * 5000, "%00", "%ff", "-1", "1e9", "\u0663", "%ED%A0%80", "..", "a" * 60, "1" * 9]


@pytest.mark.parametrize("odd", ODD, ids=lambda it: it[:8])
def test_no_address_ends_in_an_error_of_ours(site: Visited, odd: str) -> None:
    """With odd parts and odd questions: what cannot be answered is refused in words."""
    for route in routes_of(site):
        path = re.sub(r"\{\w+\}", odd, route.path)
        question = f"?page={odd}&study={odd}&text={odd}&since={odd}&state={odd}&place={odd}"
        question += f"&base={odd}&new={odd}&factor={odd}&levels={odd}&effect={odd}"
        answer = site.client.get(path + (question if len(odd) < 1000 else ""))
        assert answer.status_code < 500 or "Internal" not in answer.text, path
        assert "Traceback" not in answer.text, path


@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"[]", b"{}", b"\xff", b'"\\ud800"', b'{"token": "\\ud800"}', b"[" * 60_000,
     b'{"a": ' * 10_000, b"9" * 60_000, b"1e999", b'{"levels": {"\\u0000": "\\u0000"}}',
     b'"x_min = ' + b"9" * 5000 + b'"',
     b'"<bookmark><width>' + b"9" * 5000 + b'</width></bookmark>"'],
    ids=range(14),
)  # fmt: skip
def test_no_body_ends_in_an_error_of_ours(
    site: Visited, body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def start(*_: object) -> None:
        raise BusyError("nothing is started here", "elsewhere")

    monkeypatch.setattr(site.site.measurements, "start", start)
    for path in sorted(CHANGES):
        address = path.replace("{kind}", "sweep").replace("{ending}", "toml")
        answer = site.client.post(re.sub(r"\{\w+\}", "1", address), content=body, headers=OWN)
        assert answer.status_code < 500 or "Internal" not in answer.text, (path, answer.text)


def test_the_cookies_of_a_request_take_time_linear_in_their_length() -> None:
    """Eight times as long takes about eight times as long, and not 64 times."""

    def seconds(cookies: str) -> float:
        begun = time.thread_time()
        assert not ACCESS.is_session(cookies)
        return time.thread_time() - begun

    for part in ("\\", "\\3", ";", "=", '"', f"{ACCESS.cookie}=;"):
        short, long = (
            f'{ACCESS.cookie}="{part * (length // len(part))}"' for length in (8_000, 64_000)
        )
        best = [min(seconds(cookies) for _ in range(5)) for cookies in (short, long)]
        assert best[1] < 30 * best[0] + 0.01, part


def test_a_body_has_so_long_in_all(site: Visited, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many parts of it come: each of them comes in time."""
    monkeypatch.setattr(security, "BODY_SECONDS", 0.2)
    sent: list[Any] = []

    left = [b"x"] * 200

    async def parts() -> Any:
        await asyncio.sleep(0.01)
        return {"type": "http.request", "body": left.pop(), "more_body": bool(left)}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app_of(site.site)(site_scope(site), parts, send))  # type: ignore[arg-type]
    assert sent[0]["status"] == 408


def site_scope(site: Visited) -> Any:
    """A request that may change something."""
    access = site.access
    headers = [(b"host", HOST.encode()), (b"origin", OWN["origin"].encode()),
               (b"x-concurve-key", access.key.encode()),
               (b"cookie", f"{access.cookie}={access.session}".encode())]  # fmt: skip
    return {
        "type": "http", "method": "POST", "path": "/new/plan/sweep", "raw_path": b"/new/plan/sweep",
        "headers": headers, "query_string": b"", "http_version": "1.1", "scheme": "http",
        "root_path": "", "server": ("127.0.0.1", 8377),
    }  # fmt: skip


def test_who_goes_while_a_body_is_read_leaves_no_error(site: Visited) -> None:
    async def goes() -> Any:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None: ...

    asyncio.run(app_of(site.site)(site_scope(site), goes, send))  # type: ignore[arg-type]


def test_a_full_disk_is_said(site: Visited, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "/tmp/x")

    monkeypatch.setattr("concurve.web.addresses.window.kernel_of", lambda *_: ("kernel",))
    monkeypatch.setattr(site.site.window, "start", full)
    setting = msgspec.to_builtins(Setting(bookmark=built_in(), iterations=1))
    answer = site.client.post("/window/start", json=setting, headers={**OWN, **JSON})
    assert answer.status_code == 500
    assert answer.json()["what"].endswith("/tmp/x: No space left on device")
