"""Who may ask for a page: the guard before all addresses.

Whoever can ask may start any program as the user who started the server. So a request needs the
session that the token of the command line gives, comes from a page of ours if it changes anything,
asks for us by a name that is ours (against DNS rebinding), and is small. What is answered may load
nothing from elsewhere, and be shown in no frame.

Browsers send cookies to all ports of a host, so another user's server on this machine may get the
session. A page's storage belongs to one port: a request that changes something also needs the key
that is kept there.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any, NamedTuple

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

#: The greatest body of a request. A form of a sweep has a few hundred bytes.
BODY_BYTES_MAX = 64 * 1024

#: The greatest head of a request: its address and its headers.
HEAD_BYTES_MAX = 16 * 1024

#: So long a client may take to send a body, in all.
BODY_SECONDS = 10.0

_METHODS = ("GET", "HEAD", "POST")

#: What a page needs before its reader has a session. Nothing of it is about runs.
OPEN_PATHS = frozenset({"/login", "/static/login.js", "/static/web.css", "/report.css"})

#: The header that has the key.
KEY_HEADER = b"x-concurve-key"

#: No script of a page's own text, no ``eval``, nothing from elsewhere. Charts of reports have style
#: attributes.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)

HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Access(NamedTuple):
    """What gives access: the ``token`` of the command line; for it, the ``session`` that a browser
    keeps as a cookie, and the ``key`` that our pages keep; the ``hosts`` (with port) by which we
    are asked for; and the name of the cookie: one for each port, since browsers send cookies to all
    ports of a host."""

    token: str
    session: str
    key: str
    hosts: frozenset[str]
    cookie: str

    def is_token(self, given: str) -> bool:
        """Is this the token? It takes as long for a wrong one."""
        return _is(given, self.token)

    def is_session(self, cookies: str) -> bool:
        """Has a header of cookies the session? Pages of other ports may add cookies of its name."""
        return any(_is(value, self.session) for value in _values(cookies, self.cookie))

    def is_key(self, given: str) -> bool:
        """Is this the key?"""
        return _is(given, self.key)


def new_access(names: Iterable[str], port: int) -> Access:
    """Access by a new token to a server that is asked for by these names."""
    hosts = {f"{name.lower()}:{port}" for name in names}
    if port == 80:  # browsers leave it out
        hosts |= {name.lower() for name in names}
    token, session, key = (secrets.token_urlsafe(24) for _ in range(3))
    return Access(token, session, key, frozenset(hosts), f"concurve-{port}")


def _is(given: str, secret: str) -> bool:
    return hmac.compare_digest(given.encode(errors="replace"), secret.encode())


def _values(cookies: str, name: str) -> list[str]:
    """The values of a cookie in a header, in time linear in its length: ``http.cookies`` of older
    versions of Python takes minutes for a hostile one (CVE-2024-7592)."""
    pairs = (part.partition("=") for part in cookies.split(";"))
    return [value.strip() for given, equals, value in pairs if equals and given.strip() == name]


class Refusal(NamedTuple):
    """Why a request is not answered: a status of HTTP, what is wrong, and what to try."""

    status: int
    what: str
    remedy: str


class Asked(NamedTuple):
    """The parts of a request that decide whether it is answered."""

    method: str
    path: str
    host: str
    origin: str | None
    cookies: str
    length: str | None
    key: str = ""
    #: How the page that asks and this server are related, and what is asked for (Fetch Metadata).
    site: str = ""
    mode: str = ""
    head_bytes: int = 0


def judge(asked: Asked, access: Access) -> Refusal | None:
    """Why a request is refused; ``None`` if it is not."""
    if asked.method not in _METHODS:
        return Refusal(405, f"the method {asked.method[:20]} is not known", "GET or POST")
    if asked.host.lower() not in access.hosts:
        return Refusal(
            421,
            f"this server is not {asked.host[:100] or 'without a name'}",
            "the address that concurve web has printed; --host NAME allows another name",
        )
    return _judge_origin(asked) or _judge_size(asked) or _judge_access(asked, access)


def _judge_size(asked: Asked) -> Refusal | None:
    if asked.head_bytes > HEAD_BYTES_MAX:
        return Refusal(431, f"a head of {asked.head_bytes} bytes", f"at most {HEAD_BYTES_MAX}")
    if asked.length is not None and not _is_small(asked.length):
        return Refusal(413, f"a body of {asked.length[:20]} bytes", f"at most {BODY_BYTES_MAX}")
    return None


def _judge_access(asked: Asked, access: Access) -> Refusal | None:
    """Who has no session sees the login alone; a request to change something needs the key, too."""
    if asked.path in OPEN_PATHS:
        return None
    whole = "the whole address that concurve web has printed, with #token=… at its end"
    if not access.is_session(asked.cookies):
        return Refusal(401, "this browser has no session", whole)
    if asked.method == "POST" and not access.is_key(asked.key):
        return Refusal(403, "the page that asks has no key of this server", whole)
    return None


def _judge_origin(asked: Asked) -> Refusal | None:
    """A page of another origin neither reads nor changes anything. It may link to ours."""
    own = f"http://{asked.host.lower()}"
    if asked.origin is not None and asked.origin.lower() != own:
        return Refusal(403, f"a page of {asked.origin[:100]} asks", "a page of this server")
    if asked.origin is None and asked.method == "POST":
        return Refusal(403, "a request to change something names no origin", f"Origin: {own}")
    # Of an image or a script, say, browsers name no origin, and with it they send the cookie if
    # only the port is another.
    is_link = asked.method != "POST" and asked.mode == "navigate"
    if asked.site not in ("", "none", "same-origin") and not is_link:
        return Refusal(403, "a page of another origin asks", "a page of this server")
    return None


def _is_small(length: str) -> bool:
    return length.isascii() and length.isdecimal() and len(length) < 10 and (
        int(length) <= BODY_BYTES_MAX
    )  # fmt: skip


class BodyError(Exception):
    """A body that is too long, or that does not come; raised where it is read."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.what)
        self.refusal = refusal


class Guard:
    """Answers refused requests by ``refuse``, and passes the others on to ``app``."""

    def __init__(self, app: App, access: Access, refuse: Callable[[Scope, Refusal], App]) -> None:
        self._app = app
        self._access = access
        self._refuse = refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # web sockets: uvicorn answers with 403
            await send({"type": "websocket.close", "code": 1008})
            return
        guarded = _with_headers(send)
        if (refusal := judge(asked_of(scope), self._access)) is not None:
            await self._refuse(scope, refusal)(scope, receive, guarded)
            return
        await self._app(scope, _bounded(receive), guarded)


def asked_of(scope: Scope) -> Asked:
    """The deciding parts of a request."""
    found: dict[bytes, list[bytes]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.lower(), []).append(value)
    headers: Mapping[bytes, str] = {
        # Twice the same header is none that we know.
        name: b", ".join(values).decode("latin-1")
        for name, values in found.items()
    }
    return Asked(
        scope["method"],
        scope["path"],
        headers.get(b"host", ""),
        headers.get(b"origin"),
        headers.get(b"cookie", ""),
        headers.get(b"content-length"),
        headers.get(KEY_HEADER, ""),
        headers.get(b"sec-fetch-site", ""),
        headers.get(b"sec-fetch-mode", ""),
        sum(len(name) + len(value) + 4 for name, value in scope["headers"])
        + len(scope.get("raw_path") or b"")
        + len(scope["query_string"]),
    )


def _with_headers(send: Send) -> Send:
    """What is sent, with the headers that each answer has, unless it sets them itself."""

    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", []))
            own = {name.lower() for name, _ in headers}
            headers += [
                (name.encode(), value.encode())
                for name, value in HEADERS.items()
                if name.encode() not in own
            ]
            message = {**message, "headers": headers}
        await send(message)

    return guarded


def _bounded(receive: Receive) -> Receive:
    """What is received: a body within its bounds, in time."""
    size, is_whole = 0, False
    deadline: float | None = None

    async def bounded() -> Message:
        nonlocal size, is_whole, deadline
        if is_whole:  # what is waited for now is that the client goes
            return await receive()
        if deadline is None:
            deadline = asyncio.get_running_loop().time() + BODY_SECONDS
        try:
            async with asyncio.timeout_at(deadline):
                message = await receive()
        except TimeoutError as error:
            raise BodyError(
                Refusal(408, f"the body did not come in {BODY_SECONDS:.0f} s", "another attempt")
            ) from error
        size += len(message.get("body", b""))
        is_whole = message["type"] != "http.request" or not message.get("more_body", False)
        if size > BODY_BYTES_MAX:
            raise BodyError(
                Refusal(413, f"a body of more than {BODY_BYTES_MAX} bytes", "a shorter text")
            )
        return message

    return bounded
