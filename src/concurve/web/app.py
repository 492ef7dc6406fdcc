"""The site as an application: all addresses behind the guard."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from concurve.errors import ConcurveError
from concurve.report.html import script, style_sheet
from concurve.web import answers
from concurve.web.addresses import access, disk, runs, servers, several, starting, window
from concurve.web.security import App, BodyError, Guard
from concurve.web.site import Site

_PARTS = (access, runs, starting, several, servers, window, disk)


def app_of(site: Site) -> App:
    """The guarded application."""

    @contextlib.asynccontextmanager
    async def life(_: Starlette) -> AsyncIterator[None]:
        watching = asyncio.create_task(site.quiet.watch(site.give_way))
        try:
            yield
        finally:
            watching.cancel()
            site.end()

    starlette = Starlette(
        routes=[
            *(route for part in _PARTS for route in part.routes(site)),
            Route("/report.css", _style),
            Route("/report.js", _script),
            Mount("/static", StaticFiles(directory=Path(__file__).parent / "static")),
        ],
        exception_handlers={
            ConcurveError: answers.refused,
            BodyError: answers.body_refused,
            HTTPException: answers.not_found,
            OSError: answers.failed,
            ClientDisconnect: answers.gone,
        },
        lifespan=life,
    )
    return Guard(starlette, site.access, answers.guarded)


async def _style(_: Request) -> Response:
    """The style sheet of reports."""
    return Response(style_sheet(), media_type="text/css")


async def _script(_: Request) -> Response:
    """The script of reports."""
    return Response(script(), media_type="text/javascript")
