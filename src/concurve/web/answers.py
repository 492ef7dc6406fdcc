"""Answers that several addresses give: JSON, and what is wrong in words."""

from __future__ import annotations

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response

from concurve.errors import (
    BusyError,
    ComparisonError,
    ConcurveError,
    HostError,
    RunError,
    StoreError,
    StudyError,
)
from concurve.secrets import KNOWN
from concurve.web.aside import LateError
from concurve.web.pages import page
from concurve.web.security import App, BodyError, Refusal, Scope

#: The status of an answer that says what is wrong; the first that fits.
_STATUS: tuple[tuple[type[ConcurveError], int], ...] = (
    (BusyError, 409),
    (HostError, 409),
    (StoreError, 404),
    (StudyError, 400),
    (ComparisonError, 400),
    (RunError, 409),
    (LateError, 503),
)


def as_json(content: object, status: int = 200) -> Response:
    """An answer that a script of ours reads."""
    return Response(msgspec.json.encode(content), status, media_type="application/json")


async def refused(request: Request, error: Exception) -> Response:
    """The answer to what cannot be done."""
    assert isinstance(error, ConcurveError)
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), 500)
    return _said(request.headers.get("accept", ""), Refusal(status, error.what, error.remedy))


async def body_refused(request: Request, error: Exception) -> Response:
    """The answer to a body that is too long, or does not come."""
    assert isinstance(error, BodyError)
    return _said(request.headers.get("accept", ""), error.refusal)


async def failed(request: Request, error: Exception) -> Response:
    """The answer where the system refuses something."""
    assert isinstance(error, OSError)
    where = f"{error.filename}: " if error.filename else ""
    what = f"the system refused it: {where}{error.strerror or error}"
    refusal = Refusal(500, what, "more space, or what else the system lacks")
    return _said(request.headers.get("accept", ""), refusal)


async def gone(_: Request, error: Exception) -> Response:
    """The answer to a client that has gone: nobody reads it."""
    assert isinstance(error, ClientDisconnect)
    return Response(status_code=400)


async def not_found(request: Request, error: Exception) -> Response:
    """The answer to an address that is none."""
    assert isinstance(error, HTTPException)
    what = "there is no such page" if error.status_code == 404 else error.detail
    refusal = Refusal(error.status_code, what, "the list of runs")
    return _said(request.headers.get("accept", ""), refusal)


def guarded(scope: Scope, refusal: Refusal) -> App:
    """The answer to a request that the guard refuses: a page to log in on, or the reason."""
    accept = dict(scope["headers"]).get(b"accept", b"").decode("latin-1")
    if refusal.status == 401 and "text/html" in accept:
        return HTMLResponse(page("login"), 401)
    if "application/json" in accept:
        return as_json({"what": refusal.what, "remedy": refusal.remedy}, refusal.status)
    return PlainTextResponse(f"{refusal.what}; try: {refusal.remedy}\n", refusal.status)


def _said(accept: str, refusal: Refusal) -> Response:
    refusal = refusal._replace(what=KNOWN.hide(refusal.what), remedy=KNOWN.hide(refusal.remedy))
    if "application/json" in accept:
        return as_json({"what": refusal.what, "remedy": refusal.remedy}, refusal.status)
    text = page("error", holder="", what=refusal.what, remedy=refusal.remedy)
    return HTMLResponse(text, refusal.status)
