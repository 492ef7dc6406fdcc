"""Running servers: watched, and their dials."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from concurve.web import forms
from concurve.web.answers import as_json
from concurve.web.aside import in_time
from concurve.web.servers import Turning, Watching, turn, watched
from concurve.web.site import Site


class _Servers:
    def __init__(self, site: Site) -> None:
        self._site = site

    async def page(self, request: Request) -> Response:
        """A running reference server."""
        return self._site.page("servers", place=request.query_params.get("place", ""))

    async def read(self, request: Request) -> Response:
        """What the server did over a second. It may be told a password, so no link does it."""
        form = forms.decode(await request.body(), Watching)
        await self._site.refuse_while_measured()
        return as_json(await in_time("the server", watched, form))

    async def turn(self, request: Request) -> Response:
        """Set the CPUs and the nice value of a server on this machine."""
        form = forms.decode(await request.body(), Turning)
        await self._site.refuse_while_measured()
        return as_json(await in_time("the server", turn, form))


def routes(site: Site) -> list[Route]:
    """The addresses of servers."""
    servers = _Servers(site)
    return [
        Route("/servers", servers.page),
        Route("/servers/read", servers.read, methods=["POST"]),
        Route("/servers/turn", servers.turn, methods=["POST"]),
    ]
