"""Is a cold start told from a slow trial, and from a program that reads from disk each time?"""

from __future__ import annotations

import json
import random
from typing import Any

import msgspec
import pytest

from concurve.analysis.run import findings_of
from concurve.assemble import report_of
from concurve.definition.study import Indicator, Rules, Study
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.store import Store
from concurve.wire.spec import TrialSpec
from tests.helpers.fakes import FakeClock, FakeEngine, small_study

#: So many blocks of 512 bytes are a megabyte.
MEGABYTE = 2000


class ReadingFromDisk(FakeEngine):
    """Threads read from disk in each trial: the first one of a cell so many faults and megabytes,
    and so many the others; in ``cold`` alone the first is slower or faster by a ratio."""

    def __init__(
        self,
        first: tuple[int, int],
        later: tuple[int, int] = (0, 0),
        ratio: float = 1.3,
        cold: tuple[str, ...] = ("1", "2"),
    ) -> None:
        super().__init__(self.seconds)
        self.first, self.later, self.ratio, self.cold = first, later, ratio, cold

    def is_first(self, spec: TrialSpec) -> bool:
        block = spec.trial.split("/")[-2]
        return block == "0" and spec.roles[0].argv[1] in self.cold

    def seconds(self, spec: TrialSpec, rng: random.Random) -> float:
        # No trial but the first is beyond the others by more than 5 %.
        return rng.uniform(1.0, 1.05) * (self.ratio if self.is_first(spec) else 1.0)

    def run(self, spec: TrialSpec) -> bytes:
        record = json.loads(super().run(spec))
        faults, megabytes = self.first if self.is_first(spec) else self.later
        usage: dict[str, Any] = record["roles"][0]["usage"]
        usage |= {"major_faults": faults, "block_inputs": megabytes * MEGABYTE}
        return json.dumps(record).encode()


def said_of(engine: FakeEngine, study: Study | None = None, repeats: int = 6) -> list[str]:
    store = Store()
    rules = Rules(repeats_min=repeats, repeats_max=repeats)
    head = new_head(study or small_study(rules, threads=(1, 2)), "normal", 1, "concurve sweep …")
    Runner(head, store, engine, clock=FakeClock(0.001)).start()
    row = store.find_run(head.id)
    assert not any("cold" in it.sentence for it in findings_of(store, row).sentences), (
        "this view reads no records"
    )
    found = [it for it in report_of(store, row).sentences if "cold start" in it.sentence]
    assert all(it.kind == "warning" for it in found)
    return [it.sentence for it in found]


def test_a_cold_start_is_told_with_what_it_read() -> None:
    (said,) = said_of(ReadingFromDisk((312, 45), (2, 0), cold=("1",)))
    assert said == (
        "The first trial of threads=1 was a cold start, and the worst of its cell: 312 major "
        "faults and 46 MB from disk, against at most 2 and 0 MB in later ones. It counts; a new "
        "run finds the files in memory."
    )
    (said,) = said_of(ReadingFromDisk((312, 45)))
    assert " of its cell (as in 1 other cell): " in said


@pytest.mark.parametrize("first", [(300, 0), (0, 50)])
def test_faults_or_bytes_are_enough(first: tuple[int, int]) -> None:
    assert said_of(ReadingFromDisk(first))


@pytest.mark.parametrize(
    "engine",
    [
        ReadingFromDisk((0, 0)),
        ReadingFromDisk((15, 0)),
        ReadingFromDisk((300, 50), (290, 48)),
        ReadingFromDisk((300, 50), (100, 20)),
        ReadingFromDisk((300, 50), ratio=0.9),
    ],
    ids=["slow alone", "few faults", "in every trial", "a third in every trial", "not slower"],
)
def test_what_is_no_cold_start_is_not_told(engine: ReadingFromDisk) -> None:
    assert said_of(engine) == []


def test_a_reading_that_later_trials_lack_is_not_taken_for_none() -> None:
    class Lacking(ReadingFromDisk):
        def run(self, spec: TrialSpec) -> bytes:
            record = json.loads(super().run(spec))
            if not self.is_first(spec):
                del record["roles"][0]["usage"]["major_faults"]
            return json.dumps(record).encode()

    assert said_of(Lacking((300, 0))) == []


def test_few_later_trials_tell_nothing() -> None:
    assert said_of(ReadingFromDisk((300, 50)), repeats=3) == []
    assert said_of(ReadingFromDisk((300, 50)), repeats=4)


@pytest.mark.parametrize(("ratio", "is_told"), [(1.3, False), (0.7, True)])
def test_where_more_is_better_the_first_trial_is_the_lowest(ratio: float, is_told: bool) -> None:
    rules = Rules(repeats_min=6, repeats_max=6)
    study = small_study(rules, threads=(1, 2))
    # Its wall time stands for any figure of which more is better.
    asked = (Indicator(name="wall_seconds", better="higher"),)
    study = msgspec.structs.replace(study, indicators=asked)
    assert bool(said_of(ReadingFromDisk((300, 50), ratio=ratio), study)) == is_told
