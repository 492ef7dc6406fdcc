"""The first page, and who may come in."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from concurve.errors import StudyError
from concurve.web.answers import as_json
from concurve.web.site import Site


def routes(site: Site) -> list[Route]:
    """The list of runs as the first page, and the login."""
    access = site.access

    async def home(_: Request) -> Response:
        return RedirectResponse("/runs", 303)

    async def log_in(request: Request) -> Response:
        """The session for the token."""
        try:
            given = msgspec.json.decode(await request.body(), type=dict[str, str])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise StudyError("the login cannot be read", "the login page") from error
        if not access.is_token(given.get("token", "")):
            return as_json(
                {"what": "this is not the token of this server",
                 "remedy": "the address that concurve web has printed: each start makes a new one"},
                403,
            )  # fmt: skip
        answer = as_json({"key": access.key})
        answer.set_cookie(access.cookie, access.session, httponly=True, samesite="strict", path="/")
        return answer

    return [Route("/", home), Route("/login", log_in, methods=["POST"])]
