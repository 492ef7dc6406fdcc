"""Stored runs whose threads wait for locks at places that are known."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from concurve.definition.study import Rules
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.store import Store
from concurve.wire.record import SiteRecord, SitesRecord
from concurve.wire.spec import TrialSpec
from tests.helpers.explaining import record, role, thread
from tests.helpers.fakes import FakeClock, FakeEngine, small_study

FIVE = Rules(repeats_min=5, repeats_max=5)


def waiting_run(
    store: Store, seed: int, places: Mapping[str, int], waits: float = 0.5, sampled: bool = True
) -> str:
    """A run over 1, 2 and 4 threads; with several, each waits for so much of its time, and is seen
    to wait so often at each of the places. Its id."""
    study = small_study(FIVE)
    head = new_head(study, "normal", seed, "concurve sweep …")
    started = f"2026-{1 + seed // 28:02d}-{1 + seed % 28:02d}T10:00:00+00:00"
    head = msgspec.structs.replace(head, started=started)
    Runner(head, store, _Engine(places, waits, sampled), clock=FakeClock(0.001)).start()
    return head.id


class _Engine(FakeEngine):
    """Answers with records of threads that wait where the program has more than one."""

    def __init__(self, places: Mapping[str, int], waits: float, sampled: bool) -> None:
        super().__init__()
        self._places, self._waits, self._sampled = places, waits, sampled

    def run(self, spec: TrialSpec) -> bytes:
        threads = int(spec.roles[0].argv[1])
        futex = self._waits if threads > 1 else 0.0
        each = thread(1 - futex, futex=futex)
        # Alone it does as much as two: a loss, without which nothing is accused.
        done = 1000 * max(2, threads)
        made = role([each] * threads, done, sampled=self._sampled)
        if futex and self._sampled:
            made = msgspec.structs.replace(made, sites=_sites(self._places, threads))
        return msgspec.json.encode(msgspec.structs.replace(record(made), trial=spec.trial))


def _sites(places: Mapping[str, int], threads: int) -> SitesRecord:
    listed = tuple(
        SiteRecord(
            primitive="mutex",
            call="futex",
            module="/opt/app",
            offset="0x1234",
            found="cfi",
            readings=readings,
            threads=threads,
            function=function,
            callers=("work", "main"),
        )
        for function, readings in places.items()
    )
    return SitesRecord(readings=sum(places.values()), listed=listed)
