"""Stored records → what each thread did in the course of a trial, for reports."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from concurve.analysis.run import StoredRun
from concurve.analysis.timelines import FirstTrialReader
from concurve.explain.sites import short_name
from concurve.findings.places import place_of
from concurve.findings.timelines import ThreadLane, ThreadState, ThreadTimelines, TrialThreads
from concurve.terms import Level
from concurve.wire.record import RoleRecord, SiteRecord, ThreadTimeline, TrialRecord

#: At most this many cells are shown, spread evenly over the plan, each with so many threads.
_CELLS_MAX = 4
_LANES_MAX = 16
#: The kinds of waits by their letters in records.
_KINDS = {
    "f": "futex",
    "d": "disk",
    "n": "network",
    "p": "poll",
    "|": "pipe",
    "s": "sleep",
    "h": "child",
    "l": "file_lock",
    "m": "memory",
    "w": "wake_up",
    "o": "other",
}


class ThreadTimelineReader(FirstTrialReader[TrialThreads]):
    """What the threads did."""

    def __init__(self, run: StoredRun) -> None:
        super().__init__(run, _CELLS_MAX, threads_of)

    def found(self) -> ThreadTimelines | None:
        """What is known; ``None`` where no trial that was read says anything."""
        if not self.shown:
            return None
        return ThreadTimelines(factors=self.factors, cells=self.shown, remark=self.remark)


def threads_of(record: TrialRecord, parameters: dict[str, Level]) -> TrialThreads | None:
    """The threads of a trial of the cell with these levels that did most, in the order of roles;
    ``None`` where its record follows none."""
    lanes = [lane for role in record.roles for lane in _lanes(role)]
    if not lanes:
        return None
    busiest = sorted(range(len(lanes)), key=lambda at: -_busy_seconds(lanes[at]))[:_LANES_MAX]
    followed = (role.thread_timelines for role in record.roles)
    return TrialThreads(
        parameters=parameters,
        lanes=tuple(lanes[at] for at in sorted(busiest)),
        threads=sum(it.threads for it in followed if it is not None),
    )


def _busy_seconds(lane: ThreadLane) -> float:
    return sum((it.end - it.begin) * (it.running + it.runnable) for it in lane.states)


def _lanes(role: RoleRecord) -> Iterator[ThreadLane]:
    followed = role.thread_timelines
    if followed is None:
        return
    seconds = [0.0, *(end / 1e9 for end in followed.ends_ns)]
    spans = list(pairwise(seconds))
    names = {thread.tid: thread.name for thread in role.threads.listed}
    sites = () if role.sites is None else role.sites.listed
    for thread in followed.listed:
        states = tuple(_states(thread, spans, sites))
        if states:
            yield ThreadLane(
                role=role.name, tid=thread.tid, name=names.get(thread.tid) or "", states=states
            )


def _states(
    thread: ThreadTimeline, spans: list[tuple[float, float]], sites: tuple[SiteRecord, ...]
) -> Iterator[ThreadState]:
    places = thread.sites or (-1,) * len(thread.running)
    told = zip(
        spans[thread.first :], thread.running, thread.runnable, thread.waits, places, strict=False
    )
    for (begin, end), running, runnable, wait, place in told:
        if end > begin:
            yield ThreadState(
                begin=begin,
                end=end,
                running=min(1.0, running / 100),
                runnable=min(1.0, runnable / 100),
                wait=_KINDS.get(wait, ""),
                place=_place(sites[place]) if 0 <= place < len(sites) else "",
            )


def _place(site: SiteRecord) -> str:
    place = place_of(site.file, site.line)
    line = f" ({place})" if place else ""
    return f"{short_name(site.function)}{line}" if site.function else ""
