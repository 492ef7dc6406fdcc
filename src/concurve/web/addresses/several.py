"""Several runs: compared, and over time."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from concurve.errors import ComparisonError
from concurve.web.drawing import Job
from concurve.web.site import Site, stamp


class _Several:
    def __init__(self, site: Site) -> None:
        self._site = site

    async def compare(self, request: Request) -> Response:
        """Some runs against a base, or levels inside one, side by side."""
        asked = request.query_params
        found = await self._site.read(self._site.listed)
        return self._site.page(
            "compare",
            runs=[run for run in found if run.trials],
            base=asked.get("base", ""),
            new=" ".join(_news(request)),
            factor=asked.get("factor", ""),
            levels=asked.get("levels", ""),
            indicator=asked.get("indicator", ""),
            effect=asked.get("effect", ""),
            across=asked.get("across", ""),
            query=str(asked),
        )

    async def compare_report(self, request: Request) -> Response:
        """The comparison, as a part of its page."""
        asked = request.query_params
        base, factor = asked.get("base", "").strip(), asked.get("factor", "").strip()
        news = [] if factor else _news(request)
        if not base or not (factor or news):
            raise ComparisonError("two runs are compared", "a base and a new one")
        names = ",".join([base, *news]).split(",")
        stamps = await self._site.read(
            lambda store: [stamp(store, store.find_run(name.strip())) for name in names]
        )
        job = Job(
            kind="compare" if factor else "several",
            names=(base, *news),
            indicator=asked.get("indicator", "").strip(),
            effect=asked.get("effect", "").strip(),
            across_machines=bool(asked.get("across", "")),
            factor=factor,
            levels=asked.get("levels", "").strip(),
            stamp=" ".join(stamps),
        )
        return await self._site.drawn(request, job)

    async def history(self, request: Request) -> Response:
        """An indicator over the runs of a study."""
        asked = request.query_params
        found = await self._site.read(self._site.listed)
        return self._site.page(
            "history",
            studies=sorted({run.study for run in found if run.trials}),
            study=asked.get("study", ""),
            indicator=asked.get("indicator", ""),
            across=asked.get("across", ""),
            query=str(asked),
        )

    async def history_report(self, request: Request) -> Response:
        """The history, as a part of its page."""
        asked = request.query_params
        study = asked.get("study", "").strip()
        as_of = await self._site.read(
            lambda store: (
                repr(sorted((row.id, row.state) for row in store.runs(study)))
                + repr(sum(store.counts().values()))
            )
        )
        job = Job(
            kind="history",
            names=(study,),
            indicator=asked.get("indicator", "").strip(),
            across_machines=bool(asked.get("across", "")),
            stamp=as_of,
        )
        return await self._site.drawn(request, job)


def _news(request: Request) -> list[str]:
    """The runs that are compared with the base: blanks divide them, commas join the sessions of
    one."""
    return [name for text in request.query_params.getlist("new") for name in text.split()]


def routes(site: Site) -> list[Route]:
    """The addresses of comparisons and histories."""
    several = _Several(site)
    return [
        Route("/compare", several.compare),
        Route("/compare/report", several.compare_report),
        Route("/history", several.history),
        Route("/history/report", several.history_report),
    ]
