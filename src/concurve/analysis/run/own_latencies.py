"""Does the mean latency that wrk prints fit its rate and its connections? Pure.

By Little's law (:mod:`concurve.models.little`) the rate times the mean latency is how many requests
were under way, and a closed loop without pauses has one under way on each connection. wrk gives a
mean that is too low where connections idle or connect anew, which it does not count, and one that
is too high where a pause made it add the latencies of requests that it did not send.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from concurve import words
from concurve.analysis.sentences.naming import name
from concurve.definition.extracting import is_of_tool
from concurve.definition.indicator_names import IndicatorName, split_name
from concurve.definition.study import Study
from concurve.findings.cells import CellFindings
from concurve.findings.run import Finding
from concurve.planning.plan import Plan

#: The mean contradicts the law where so much of the connections is missing, or too much.
_OFF = 0.2

_IDLE = "Some connections idle or connect anew, or fail (socket errors)."
_ADDED = "After a pause wrk adds latencies of requests that it did not send: trust its rate."


class _Read(NamedTuple):
    cell: CellFindings
    latency: str
    under_way: float
    connections: float

    @property
    def ratio(self) -> float:
        return self.under_way / self.connections

    @property
    def is_contradicted(self) -> bool:
        return abs(self.ratio - 1) > _OFF


def with_contradicted(plan: Plan, cells: Sequence[CellFindings]) -> tuple[CellFindings, ...]:
    """The cells with the names of the latencies by wrk that Little's law contradicts: a reader of
    the table sees it at the figure."""
    return tuple(
        msgspec.structs.replace(cell, contradicted=names) if names else cell
        for cell in cells
        for names in [_contradicted(plan, cell)]
    )


def _contradicted(plan: Plan, cell: CellFindings) -> tuple[str, ...]:
    found = (_read(role, cell) for role in _roles(plan.study))
    return tuple(it.latency for it in found if it is not None and it.is_contradicted)


def latency_sentences(plan: Plan, cells: Sequence[CellFindings]) -> Iterator[Finding]:
    """A warning for each role with wrk whose mean latency contradicts Little's law in a cell."""
    for role in _roles(plan.study):
        read = [it for it in (_read(role, cell) for cell in cells) if it is not None]
        for off, why in (
            ([it for it in read if it.is_contradicted and it.ratio < 1], _IDLE),
            ([it for it in read if it.is_contradicted and it.ratio > 1], _ADDED),
        ):
            if off:
                worst = max(off, key=lambda it: abs(it.ratio - 1))
                many = words.count_of(len(off), len(read), "cell")
                yield Finding(
                    kind="warning",
                    sentence=f"The latency by wrk contradicts Little's law in {many}: with "
                    f"{name(plan, worst.cell.parameters)} rate × latency gives "
                    f"{worst.under_way:.3g} under way on "
                    f"{words.count(round(worst.connections), 'connection')}. {why}",
                    subject="latency by wrk",
                )


def _roles(study: Study) -> list[str]:
    """The roles of which the figures of wrk are read; the measured one is empty."""
    found = [split_name(it.name)[0] for it in study.extracts if is_of_tool(it, "wrk")]
    return list(dict.fromkeys(found))


def _read(role: str, cell: CellFindings) -> _Read | None:
    """The requests under way and the connections of a cell; ``None`` where wrk did not print all
    that it takes."""

    def figure(own: str) -> float:
        found = cell.indicators.get(str(IndicatorName(role, own)))
        return 0.0 if found is None else found.value

    threads = figure("wrk_threads")
    if threads < 1:
        return None
    # Each thread has as many, and what is left of the division is not opened.
    connections = threads * (figure("wrk_connections") // threads)
    latency = "latency_seconds"
    under_way = figure("requests_per_second") * figure(latency)
    named = str(IndicatorName(role, latency))
    return _Read(cell, named, under_way, connections) if connections and under_way else None
