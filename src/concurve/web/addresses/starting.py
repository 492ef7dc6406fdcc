"""New measurements: their forms, plans and starts."""

from __future__ import annotations

import asyncio
import contextlib
import time
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from concurve.errors import StoreError
from concurve.web import forms
from concurve.web.addresses.parts import number_of
from concurve.web.answers import as_json
from concurve.web.aside import LateError
from concurve.web.catalogue import packaged
from concurve.web.measurements import Measurement
from concurve.web.site import Site

#: So long a start waits for a measurement that ends, looking so often.
ENDING_SECONDS = 2.0
_LOOK_SECONDS = 0.1

#: So long the answer to a start waits for the run to be stored.
BEGUN_SECONDS = 5.0


async def started(site: Site, words: list[str]) -> Response:
    """Start a command of ours that measures, and answer what is known of it.

    Raises:
        BusyError: another measurement runs.
    """
    await _wait_for_the_end(site)
    await site.refuse_while_measured()
    site.quiet.come_back()
    begun = await site.measurements.start(words)
    said, _ = await asyncio.gather(begun.begun(BEGUN_SECONDS), _make_room(site, begun))
    return as_json(said)


async def _make_room(site: Site, begun: Measurement) -> None:
    """End what would run beside a measurement once it has the machine, or says that it waits for a
    quiet one: it has the machine only after it saw that nothing runs there. A command line that is
    refused ends nothing."""
    until = time.monotonic() + BEGUN_SECONDS
    while time.monotonic() < until:
        if begun.has_ended:
            return
        if begun.waits.is_set():
            break
        with contextlib.suppress(LateError):
            if await site.looked():
                break
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(begun.waits.wait(), _LOOK_SECONDS)
    site.give_way()


async def _wait_for_the_end(site: Site) -> None:
    """Wait a moment for a measurement that ends: a run that was stopped is told as stopped before
    its process has ended."""
    until = time.monotonic() + ENDING_SECONDS
    while time.monotonic() < until:
        if not site.measurements.under_way() and not await site.looked():
            return
        await asyncio.sleep(_LOOK_SECONDS)


async def _words(request: Request) -> list[str]:
    """The words of the command line that a form means."""
    body, kind = await request.body(), request.path_params["kind"]
    if kind == "sweep":
        return forms.sweep_words(forms.decode(body, forms.SweepForm))
    if kind == "study":
        return forms.study_words(forms.decode(body, forms.StudyForm))
    raise HTTPException(404)


def _folder() -> str:
    """The folder in which measurements run; empty if it is gone."""
    with contextlib.suppress(OSError):
        return str(Path.cwd())
    return ""


class _Starting:
    def __init__(self, site: Site) -> None:
        self._site = site

    async def new(self, request: Request) -> Response:
        """The forms of a new measurement."""
        entries = await asyncio.to_thread(packaged)
        chosen = request.query_params.get("study", "")
        return self._site.page("new", entries=entries, chosen=chosen, folder=_folder())

    async def plan(self, request: Request) -> Response:
        """What would be measured, by a dry run, and the command line."""
        words = await _words(request)
        await self._site.refuse_while_measured()
        done = await self._site.measurements.plan(words)
        return as_json({
            "line": self._site.measurements.shown(words),
            "plan": done.output,
            "said": done.said.strip(),
            "is_refused": done.code != 0,
        })  # fmt: skip

    async def start(self, request: Request) -> Response:
        """Start a measurement."""
        return await started(self._site, await _words(request))

    async def said(self, request: Request) -> Response:
        """What a measurement that was started here says."""
        return as_json(self._found(request).said())

    async def stop(self, request: Request) -> Response:
        """Stop it, also before its run is stored."""
        self._found(request).stop()
        return as_json({})

    def _found(self, request: Request) -> Measurement:
        found = self._site.measurements.find(number_of(request))
        if found is None:
            raise StoreError("no such measurement was started here", "the list of runs")
        return found


def routes(site: Site) -> list[Route]:
    """The addresses of new measurements."""
    starting = _Starting(site)
    return [
        Route("/new", starting.new),
        Route("/new/plan/{kind}", starting.plan, methods=["POST"]),
        Route("/new/start/{kind}", starting.start, methods=["POST"]),
        Route("/measurements/{number}", starting.said),
        Route("/measurements/{number}/stop", starting.stop, methods=["POST"]),
    ]
