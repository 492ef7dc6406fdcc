"""Stored runs and campaigns: the list, a page each, reports, files, and what is done to them."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from concurve.definition.measured import MEASURED
from concurve.definition.study import Study
from concurve.errors import StoreError, StudyError
from concurve.planning.plan import plan_of
from concurve.readings.measures import cpu_info
from concurve.report import format as fmt
from concurve.store import Store
from concurve.store.campaign_head import decode_campaign
from concurve.store.rows import INTERRUPTED, RUNNING, CampaignRow, MemberRow, RunRow
from concurve.store.run_head import RunHead, decode_head
from concurve.terms import label_of
from concurve.web import forms
from concurve.web.addresses.parts import id_of
from concurve.web.addresses.starting import started
from concurve.web.answers import as_json
from concurve.web.drawing import Form, Job
from concurve.web.listing import STATES, Choice, page_of
from concurve.web.measurements import stop_run
from concurve.web.site import Site, stamp

#: The files of a run that can be had, and their endings and types.
FILES: dict[str, tuple[Form, str]] = {
    "html": ("html", "text/html; charset=utf-8"),
    "md": ("markdown", "text/markdown; charset=utf-8"),
    "csv": ("csv", "text/csv; charset=utf-8"),
    "json": ("json", "application/json"),
}


class _Runs:
    def __init__(self, site: Site) -> None:
        self._site = site

    async def all(self, request: Request) -> Response:
        """The list of runs."""
        choice = Choice.of(request.query_params)
        number = request.query_params.get("page", "1")
        if not number.isdecimal() or len(number) > 9:
            raise StudyError(f"page {number[:20]!r} is no number", "page=1")
        found = await self._site.read(self._site.listed)
        return self._site.page(
            "runs",
            choice=choice,
            shown=page_of(found, choice, int(number)),
            studies=sorted({run.study for run in found}),
            machines=sorted({run.machine for run in found if run.machine}),
            states=STATES,
        )

    async def one(self, request: Request) -> Response:
        """A run: its report, or how it goes on."""
        id_ = id_of(request)

        def read(store: Store) -> tuple[RunRow, int, CampaignRow | None]:
            return store.run(id_), store.count(id_), store.campaign_of(id_)

        row, trials, campaign = await self._site.read(read)
        head = decode_head(row)
        is_running = row.state == RUNNING
        return self._site.page(
            "run",
            row=row,
            head=head,
            figure=_label(head.study),
            trials=trials,
            campaign="" if campaign is None else campaign.id,
            is_running=is_running,
            cells=_settings(head) if trials and not is_running else [],
            more_max=forms.MORE_MAX,
            may_resume=row.state in (INTERRUPTED, "failed"),
            endings=list(FILES),
        )

    async def live(self, request: Request) -> Response:
        """The events of a run."""
        id_ = id_of(request)
        await self._site.read(lambda store: store.run(id_))
        events = await self._site.streams.of(id_)
        return StreamingResponse(events, media_type="text/event-stream")

    async def report(self, request: Request) -> Response:
        """The report of a run, as a part of its page."""
        id_ = id_of(request)
        as_of = await self._site.read(lambda store: stamp(store, store.run(id_)))
        return await self._site.drawn(request, Job(kind="run", names=(id_,), stamp=as_of))

    async def file(self, request: Request) -> Response:
        """The report of a run as a file."""
        id_, ending = id_of(request), request.path_params["ending"]
        if ending not in FILES:
            raise HTTPException(404)
        form, media = FILES[ending]
        answer = await self._site.drawn(request, Job(kind="run", names=(id_,), form=form))
        answer.headers["content-type"] = media
        answer.headers["content-disposition"] = f'attachment; filename="{id_}.{ending}"'
        return answer

    async def stop(self, request: Request) -> Response:
        """Stop a run in order."""
        id_ = id_of(request)
        await self._site.read(lambda store: stop_run(id_, store))
        return as_json({})

    async def more(self, request: Request) -> Response:
        """Measure one cell of a run some times more."""
        id_ = id_of(request)
        form = forms.decode(await request.body(), forms.MoreForm)
        head = decode_head(await self._site.read(lambda store: store.run(id_)))
        cells = plan_of(head).cells
        if not 0 <= form.cell < len(cells):
            raise StudyError(f"run {id_} has no cell {form.cell}", f"0 to {len(cells) - 1}")
        setting = cells[form.cell].parameters
        words = forms.more_words(id_, head.effort, setting, form.trials)
        return await started(self._site, words)

    async def resume(self, request: Request) -> Response:
        """Go on with a run or a campaign."""
        id_ = id_of(request)
        form = forms.decode(await request.body(), forms.ResumeForm)
        return await started(self._site, forms.resume_words(id_, form))


def _label(study: Study) -> str:
    """The primary indicator of a study as reports name it."""
    name = study.primary
    declared = next((item.label for item in study.indicators if item.name == name), "")
    measured = MEASURED.get(name) or cpu_info(name)
    return declared or (measured.label if measured else label_of(name, study.primary_unit))


def _settings(head: RunHead) -> list[str]:
    """The cells of a run in words, by their numbers."""
    return [fmt.setting(cell.parameters) or "the only cell" for cell in plan_of(head).cells]


class _Campaigns:
    def __init__(self, site: Site) -> None:
        self._site = site

    async def one(self, request: Request) -> Response:
        """A campaign: its studies, and its report."""
        id_ = id_of(request)

        def read(store: Store) -> tuple[CampaignRow, list[MemberRow]]:
            row = store.find_campaign(id_)
            if row is None:
                raise StoreError(f"no campaign {id_!r} in {store.shown()}", "the list of runs")
            return row, store.members(row.id)

        row, members = await self._site.read(read)
        head = decode_campaign(row)
        return self._site.page(
            "campaign",
            row=row,
            head=head,
            members=members,
            may_resume=row.state not in (RUNNING, "complete"),
            has_runs=any(member.run for member in members),
        )

    async def report(self, request: Request) -> Response:
        """The report of a campaign, as a part of its page."""
        id_ = id_of(request)

        def as_of(store: Store) -> str:
            counts = store.counts()
            return repr([(*member, counts.get(member.run)) for member in store.members(id_)])

        job = Job(kind="campaign", names=(id_,), stamp=await self._site.read(as_of))
        return await self._site.drawn(request, job)


def routes(site: Site) -> list[Route]:
    """The addresses of runs and campaigns."""
    runs, campaigns = _Runs(site), _Campaigns(site)
    return [
        Route("/runs", runs.all),
        Route("/runs/{run}", runs.one),
        Route("/runs/{run}/live", runs.live),
        Route("/runs/{run}/report", runs.report),
        Route("/runs/{run}/file/{ending}", runs.file),
        Route("/runs/{run}/stop", runs.stop, methods=["POST"]),
        Route("/runs/{run}/resume", runs.resume, methods=["POST"]),
        Route("/runs/{run}/more", runs.more, methods=["POST"]),
        Route("/campaigns/{run}", campaigns.one),
        Route("/campaigns/{run}/report", campaigns.report),
        Route("/campaigns/{run}/resume", runs.resume, methods=["POST"]),
    ]
