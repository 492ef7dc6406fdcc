"""The simulated disk."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from concurve.web import forms
from concurve.web.answers import as_json
from concurve.web.aside import in_time
from concurve.web.disk import SCHEDULERS, DiskForm, simulate
from concurve.web.site import Site


def routes(site: Site) -> list[Route]:
    """The addresses of the disk."""

    async def page(_: Request) -> Response:
        return site.page("disk", schedulers=SCHEDULERS, form=DiskForm())

    async def simulated(request: Request) -> Response:
        """The same processes under two schedulers."""
        form = forms.decode(await request.body(), DiskForm)
        await site.refuse_while_measured()
        return as_json(await in_time("the simulator", simulate, form))

    return [Route("/disk", page), Route("/disk/simulate", simulated, methods=["POST"])]
