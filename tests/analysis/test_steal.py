"""Is steal that the load itself may cause told from that of others?"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from concurve.analysis.run import trial_findings_of
from concurve.definition.study import Rules
from concurve.findings.run import TrialFindings
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.store import Store
from concurve.wire.spec import TrialSpec
from tests.helpers.fakes import FakeClock, FakeEngine, small_study

TRIALS = 9
#: As many redos as no run needs would hide what is asked.
RULES = Rules(repeats_min=TRIALS, repeats_max=TRIALS, redo_max=0, redo_share=0.0)


class Working(FakeEngine):
    """So many threads use as many CPUs, at most all of them, for a second. The hypervisor takes a
    tenth of the machine in the first trials of each level."""

    def __init__(self, stolen: dict[str, int], cpus: int) -> None:
        super().__init__()
        self.stolen, self.cpus = stolen, cpus

    def run(self, spec: TrialSpec) -> bytes:
        record: dict[str, Any] = json.loads(super().run(spec))
        threads, block = spec.roles[0].argv[1], int(spec.trial.split("/")[-2])
        wall = record["wall_ns"]
        is_stolen = block < self.stolen[threads]
        steal = wall * self.cpus // 10 if is_stolen else 0
        used = min(int(threads) * wall, self.cpus * wall - steal)
        record["roles"][0]["usage"]["cpu_ns"] = used
        record["machine"] |= {"cpus": self.cpus, "busy_ns": used, "steal_ns": steal}
        return json.dumps(record).encode()


def run_with_steal(
    stolen: dict[str, int], cpus: int = 2, machine: dict[str, Any] | None = None
) -> TrialFindings:
    store = Store()
    head = new_head(small_study(RULES, threads=tuple(map(int, stolen))), "normal", 1, "concurve …")
    known = {"topology": {"cpus": cpus}} if machine is None else machine
    head = msgspec.structs.replace(head, machine=known)
    Runner(head, store, Working(stolen, cpus), clock=FakeClock(0.001)).start()
    return trial_findings_of(store, store.find_run(head.id))


def said(findings: TrialFindings) -> list[str]:
    return [it.sentence for it in findings.sentences if "the load itself may cause" in it.sentence]


def test_steal_at_the_levels_that_use_most_cpus_may_be_that_of_the_load() -> None:
    (sentence,) = said(run_with_steal({"1": 0, "2": TRIALS}))
    assert sentence == (
        "The hypervisor took CPU time only where 1.8 or more of 2 CPUs were in use: the load "
        "itself may cause that, by a quota or credits of this virtual machine."
    )
    assert said(run_with_steal({"1": 0, "2": 0, "4": TRIALS, "8": TRIALS}, cpus=4))
    assert said(run_with_steal({"1": 0, "2": 6}))


@pytest.mark.parametrize(
    ("stolen", "cpus"),
    [
        ({"1": TRIALS, "2": TRIALS}, 2),
        ({"1": 2, "2": TRIALS}, 2),
        ({"1": TRIALS, "2": 0}, 2),
        ({"1": 0, "2": TRIALS}, 8),
        ({"1": 0, "2": 3}, 2),
        ({"2": 0, "4": TRIALS, "8": 0}, 4),
        ({"1": 0, "2": 0}, 2),
    ],
    ids=["all", "most", "the least", "few CPUs", "few trials", "one of two alike", "none"],
)
def test_other_steal_is_not_laid_to_the_load(stolen: dict[str, int], cpus: int) -> None:
    assert said(run_with_steal(stolen, cpus)) == []


def test_without_a_description_of_the_machine_nothing_is_said() -> None:
    assert said(run_with_steal({"1": 0, "2": TRIALS}, machine={})) == []
