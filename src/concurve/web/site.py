"""What the addresses share: the store, who measures, and what is kept for browsers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from concurve.errors import BusyError
from concurve.store import Store
from concurve.store.rows import RunRow
from concurve.web.aside import in_time
from concurve.web.drawing import Drawings, Job
from concurve.web.listing import Glance, Listed, listed
from concurve.web.measurements import Measurements
from concurve.web.pages import page
from concurve.web.quiet import Quiet, head_in
from concurve.web.security import Access
from concurve.web.streams import Streams
from concurve.web.window.picture import Window

Given = TypeVar("Given")


class Site:
    """The state behind all pages. ``db`` is the store as ``--db`` takes it."""

    def __init__(
        self,
        db: str | None,
        access: Access,
        quiet: Quiet | None = None,
        drawings: Drawings | None = None,
    ) -> None:
        self.db = db
        self.access = access
        self.quiet = quiet or Quiet(head_in(db))
        self.streams = Streams(db)
        self.measurements = Measurements(db)
        self.drawings = drawings or Drawings()
        self.window = Window()
        self._glances: dict[str, Glance] = {}

    def end(self) -> None:
        """End what would keep the server from ending: streams, and the picture."""
        self.streams.close()
        self.window.close()

    def give_way(self) -> None:
        """End what would run beside a measurement: the picture of the window, and a report whose
        reader does not insist."""
        self.window.give_way()
        self.drawings.give_way()

    def page(self, name: str, **content: object) -> Response:
        """A page by the name of its template."""
        return HTMLResponse(page(name, holder=self.quiet.holder, **content))

    async def read(self, read: Callable[[Store], Given]) -> Given:
        """Something that is read from the store, beside the loop that answers others."""

        def with_store() -> Given:
            store = Store.existing(self.db)
            try:
                return read(store)
            finally:
                store.close()

        return await in_time("the store", with_store)

    def listed(self, store: Store) -> list[Listed]:
        """All runs as the list shows them."""
        return listed(store, self._glances)

    async def looked(self) -> str:
        """Who measures now; the store is asked which CPUs they use."""
        return await in_time("the store", self.quiet.look)

    async def drawn(self, request: Request, job: Job) -> Response:
        """A report; while a measurement runs only one that is there already, unless its reader
        insists."""
        job = msgspec.structs.replace(job, db=self.db)
        made = self.drawings.kept(job)
        if made is None:
            insists = request.query_params.get("now")
            made = await self.drawings.make(job, None if insists else self._leave_alone)
        return Response(made, media_type="text/html; charset=utf-8")

    async def refuse_while_measured(self) -> None:
        """Refuse what would disturb, and what another measurement keeps from beginning.

        Raises:
            BusyError: a measurement runs on this machine.
        """
        if holder := await self.looked():
            raise BusyError(
                f"another measurement runs on this machine: {holder}",
                "wait until it has ended; two at once would disturb each other",
            )

    async def _leave_alone(self) -> None:
        """Refuse a report while a measurement runs."""
        if holder := await self.looked():
            raise BusyError(
                f"a measurement runs on this machine ({holder}), and a report takes CPU time",
                "wait until it has ended, or show it now: the trials beside it may be disturbed",
            )


def stamp(store: Store, row: RunRow) -> str:
    """What a report of a run follows from."""
    digest = hashlib.blake2b(row.head, digest_size=16).hexdigest()
    return f"{row.id} {row.state} {row.reason} {store.count(row.id)} {digest}"
