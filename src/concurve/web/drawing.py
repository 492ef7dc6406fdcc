"""Reports, made by a process of their own and kept.

A report takes seconds of CPU time and the whole of the analysis. In a process of its own it keeps
no page waiting, yields to everything else, and is gone when it is done. ``python -m
concurve.web.drawing`` reads what is asked for from standard input, so that a URL of a store is in
no command line, and writes what was made to standard output.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Literal

import msgspec

from concurve.errors import BusyError, ConcurveError, error_of
from concurve.host.own_python import module
from concurve.secrets import KNOWN

if TYPE_CHECKING:
    from concurve.analysis.comparison.options import Options
    from concurve.report.document import Document
    from concurve.store import Store

#: What a report is asked to be: a part of a page, or a file.
Form = Literal["page", "html", "markdown", "json", "csv"]

#: So long a report may take.
DRAW_SECONDS = 300.0

#: So many parts of pages are kept, and none that is larger.
KEPT_MAX = 40
KEPT_BYTES_MAX = 8 << 20

#: How much it yields to other processes.
_NICE = 10

#: The exit code of a report that could not be made, for a reason in words.
_EXIT_REFUSED = 3


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be made of which runs: of one, or of a base and others. ``stamp`` is what it
    follows from besides: a report is made again when that has changed."""

    kind: Literal["run", "campaign", "compare", "several", "history"]
    names: tuple[str, ...]
    form: Form = "page"
    db: str | None = None
    indicator: str = ""
    effect: str = ""
    across_machines: bool = False
    factor: str = ""
    levels: str = ""
    stamp: str = ""


class _Refused(msgspec.Struct, frozen=True):
    kind: str
    what: str
    remedy: str


class Drawings:
    """Makes what is asked for, one after another, and keeps parts of pages."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Job, bytes] = OrderedDict()
        self._turn = asyncio.Lock()
        self._patience: asyncio.Timeout | None = None

    def kept(self, job: Job) -> bytes | None:
        """What was made of it before; ``None`` where that is not kept."""
        found = self._kept.get(job)
        if found is not None:
            self._kept.move_to_end(job)
        return found

    async def make(self, job: Job, check: Callable[[], Awaitable[None]] | None = None) -> bytes:
        """Make it, or take it from what is kept. ``check`` refuses it by an error, and is asked
        when it is the turn of this report: others may have taken minutes. What is made with a
        ``check`` gives way to a measurement (:meth:`give_way`).

        Raises:
            BusyError: a measurement has begun meanwhile.
            ConcurveError: it cannot be made, or not in time; what ``check`` raises.
        """
        async with self._turn:
            if (found := self.kept(job)) is not None:
                return found
            if check is None:
                made = await _made(job)
            else:
                await check()
                made = await self._made_until_measured(job)
        if job.form == "page" and len(made) <= KEPT_BYTES_MAX:
            self._kept[job] = made
            while len(self._kept) > KEPT_MAX:
                self._kept.popitem(last=False)
        return made

    def give_way(self) -> None:
        """End the report that is being made, unless it was asked for beside a measurement."""
        if self._patience is not None:
            self._patience.reschedule(asyncio.get_running_loop().time())
            self._patience = None

    async def _made_until_measured(self, job: Job) -> bytes:
        try:
            async with asyncio.timeout(None) as self._patience:
                return await _made(job)
        except TimeoutError as error:
            raise BusyError(
                "a measurement begins on this machine, and a report takes CPU time",
                "wait until it has ended, or show it now: the trials beside it may be disturbed",
            ) from error
        finally:
            self._patience = None


async def _made(job: Job) -> bytes:
    process = await asyncio.create_subprocess_exec(
        *module("concurve.web.drawing"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    asked = msgspec.structs.replace(job, db=None if job.db is None else KNOWN.reveal(job.db))
    try:
        async with asyncio.timeout(DRAW_SECONDS):
            made, said = await process.communicate(msgspec.json.encode(asked))
    except TimeoutError as error:
        raise ConcurveError(
            f"the report was not made within {DRAW_SECONDS:.0f} s", "concurve report on the machine"
        ) from error
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    if process.returncode == _EXIT_REFUSED:
        refused = msgspec.json.decode(said, type=_Refused)
        raise error_of(refused.kind, refused.what, refused.remedy)
    if process.returncode != 0:
        last = KNOWN.hide(said.decode(errors="replace")).strip().rpartition("\n")[2]
        raise ConcurveError(
            f"the report could not be made: {last or f'exit code {process.returncode}'}",
            "concurve report on the machine says more",
        )
    return made


# -- in the process that makes a report -----------------------------------------------------------


def draw(job: Job) -> bytes:
    """Make it.

    Raises:
        ConcurveError: there is no such run, or what is asked for cannot be made of it.
    """
    from concurve.store import Store as Opened

    store = Opened.existing(job.db)
    if job.kind == "run":
        return _run(store, job)
    if job.kind == "campaign":
        return _campaign(store, job)
    return _page(_ABOUT_RUNS[job.kind](store, job))


def _run(store: Store, job: Job) -> bytes:
    from concurve.assemble import report_of
    from concurve.exports import export_run
    from concurve.report.sections.run import run_document

    row = store.run(job.names[0])
    if job.form != "page":
        return export_run(store, row, job.form)
    return _page(run_document(report_of(store, row)))


def _campaign(store: Store, job: Job) -> bytes:
    from concurve.assemble import campaign_of
    from concurve.errors import StoreError
    from concurve.exports import export_campaign
    from concurve.report.sections.campaign import campaign_document

    row = store.find_campaign(job.names[0])
    if row is None:
        raise StoreError(f"no campaign {job.names[0]!r}", "concurve runs lists them")
    if job.form != "page":
        return export_campaign(store, row, job.form)
    return _page(campaign_document(campaign_of(store, row)))


def _compared(store: Store, job: Job) -> Document:
    from concurve.analysis.stored_runs import compare_stored
    from concurve.report.document import Detail
    from concurve.report.sections.comparison import comparison_document

    [found] = compare_stored(store, job.names, job.factor, job.levels, _options(job))
    return comparison_document(found, Detail.FULL)


def _several(store: Store, job: Job) -> Document:
    from concurve.analysis.comparison.several import check_number, compare_several
    from concurve.assemble import report_of
    from concurve.report.sections.several import several_document

    options = _options(job)
    check_number(len(job.names) - 1)
    base, *news = (
        [report_of(store, store.find_run(name.strip())) for name in side.split(",")]
        for side in job.names
    )
    return several_document(compare_several(base, news, options))


def _options(job: Job) -> Options:
    from concurve.analysis.comparison.options import Options as Chosen
    from concurve.definition.units import parse_share
    from concurve.stats.comparison import EFFECT

    return Chosen(
        indicators=(job.indicator,) if job.indicator else (),
        effect=parse_share(job.effect, "the effect") if job.effect else EFFECT,
        across_machines=job.across_machines,
    )


def _over_time(store: Store, job: Job) -> Document:
    from concurve.analysis.stored_runs import history_of_stored
    from concurve.report.sections.history import history_document

    (study,) = job.names
    return history_document(history_of_stored(store, study, job.indicator, job.across_machines))


_ABOUT_RUNS: dict[str, Callable[[Store, Job], Document]] = {
    "compare": _compared,
    "several": _several,
    "history": _over_time,
}


def _page(document: Document) -> bytes:
    from concurve.report.html import to_fragment

    return to_fragment(document).encode()


def main() -> None:
    """Make what standard input asks for."""
    os.nice(_NICE)
    job = msgspec.json.decode(sys.stdin.buffer.read(), type=Job)
    KNOWN.add_environment()
    try:
        made = draw(job)
    except ConcurveError as error:
        refused = _Refused(type(error).__name__, error.what, error.remedy)
        sys.stderr.buffer.write(msgspec.json.encode(refused))
        sys.exit(_EXIT_REFUSED)
    sys.stdout.buffer.write(made)


if __name__ == "__main__":
    main()
