"""The window of document 002, and its bookmarks."""

from __future__ import annotations

import asyncio
import importlib

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from concurve.errors import StudyError
from concurve.host.java import Java, installed
from concurve.host.machine import allowed_cpus
from concurve.web import bookmarks, forms
from concurve.web.addresses.parts import number_of
from concurve.web.answers import as_json
from concurve.web.aside import in_time
from concurve.web.site import Site
from concurve.web.window.picture import Picture
from concurve.web.window.setting import Setting, built_in, kernel_of
from concurve.web.window.sweep import as_sweep


class _Window:
    def __init__(self, site: Site) -> None:
        self._site = site

    async def page(self, _: Request) -> Response:
        """The window: a picture, and how it is computed."""
        await asyncio.to_thread(importlib.import_module, "numpy")  # before a picture waits for it
        return self._site.page(
            "window", bookmark=built_in(), cpus=allowed_cpus(), javas=await self._javas()
        )

    async def _javas(self) -> list[Java]:
        """The Javas to choose from. Each is tried once, and none while a measurement runs."""
        if self._site.quiet.holder:
            return []
        return await in_time("Java", installed)

    async def start(self, request: Request) -> Response:
        """Compute a picture."""
        setting = forms.decode(await request.body(), Setting)
        await self._site.refuse_while_measured()
        kernel = await in_time("Java", kernel_of, setting)
        self._site.quiet.come_back()
        return as_json(self._site.window.start(setting, kernel).state())

    async def measure(self, request: Request) -> Response:
        """The form of a sweep over the threads of a picture."""
        setting = forms.decode(await request.body(), Setting)
        return as_json(await asyncio.to_thread(as_sweep, setting))

    async def state(self, request: Request) -> Response:
        """How a picture goes on; ``since`` is the number of the CPUs' readings that are known."""
        since = request.query_params.get("since", "0")
        if not since.isdecimal() or len(since) > 9:
            raise StudyError(f"since {since[:20]!r} is no number", "since=0")
        return as_json(self._picture(request).state(int(since)))

    async def picture(self, request: Request) -> Response:
        """The lines of a picture as they come."""
        lines = self._picture(request).lines()
        return StreamingResponse(lines, media_type="application/octet-stream")

    async def stop(self, request: Request) -> Response:
        """End a picture."""
        self._picture(request).stop()
        return as_json({})

    async def confine(self, request: Request) -> Response:
        """Confine a picture that is being computed to CPUs."""
        cpus = forms.decode(await request.body(), tuple[int, ...])
        self._picture(request).confine(cpus)
        return as_json({})

    def _picture(self, request: Request) -> Picture:
        return self._site.window.find(number_of(request))


async def _read_bookmark(request: Request) -> Response:
    """The bookmark in a file."""
    text = forms.decode(await request.body(), str)
    return as_json(bookmarks.parse(text))


async def _write_bookmark(request: Request) -> Response:
    """A bookmark as a file."""
    kinds = {"toml": bookmarks.to_toml, "xml": bookmarks.to_xml}
    ending = request.path_params["ending"]
    if ending not in kinds:
        raise HTTPException(404)
    bookmark = forms.decode(await request.body(), bookmarks.Bookmark)
    return PlainTextResponse(kinds[ending](bookmarks.check(bookmark)))


def routes(site: Site) -> list[Route]:
    """The addresses of the window."""
    window = _Window(site)
    return [
        Route("/window", window.page),
        Route("/window/start", window.start, methods=["POST"]),
        Route("/window/measure", window.measure, methods=["POST"]),
        Route("/window/{number}", window.state),
        Route("/window/{number}/picture", window.picture),
        Route("/window/{number}/stop", window.stop, methods=["POST"]),
        Route("/window/{number}/cpus", window.confine, methods=["POST"]),
        Route("/bookmark/read", _read_bookmark, methods=["POST"]),
        Route("/bookmark/{ending}", _write_bookmark, methods=["POST"]),
    ]
