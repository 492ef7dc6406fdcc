"""Every view counts the trials of a run alike: rejected, used, used with a doubt, set aside."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from concurve.analysis.comparison import compare_levels
from concurve.analysis.run import trial_findings_of
from concurve.definition.study import Rules
from concurve.findings.cells import Reject
from concurve.findings.counts import count_trials
from concurve.findings.run import TrialFindings
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.report import csv
from concurve.report.sections import rejected
from concurve.store import Store
from concurve.wire.spec import TrialSpec
from tests.helpers.fakes import FakeClock, FakeEngine, small_study

BLOCKS = 12


def place(spec: TrialSpec) -> tuple[int, int, int]:
    cell, block, attempt = map(int, spec.trial.split("/")[-3:])
    return cell, block, attempt


def run_of_all_kinds(*, with_steal: bool = True) -> TrialFindings:
    """A trial fails once; two are disturbed whenever they are made, which shows in every cell
    alike, unless nothing is taken; a third waits for its CPU, which does not."""
    rules = Rules(repeats_min=BLOCKS, repeats_max=BLOCKS, redo_max=1, redo_share=1.0)
    head = new_head(small_study(rules, version=("old", "new")), "normal", 1, "concurve sweep …")
    engine = FakeEngine(
        kind_of=lambda spec: "program_failed" if place(spec) == (0, 0, 0) else "ok",
        steal_of=lambda spec: 10**9 if with_steal and place(spec)[:2] in {(1, 6), (1, 7)} else 0,
        waited_of=lambda spec: 0.3 if place(spec)[:2] == (0, 9) else 0.0,
    )
    store = Store()
    Runner(head, store, engine, clock=FakeClock(0.001)).start()
    return trial_findings_of(store, store.find_run(head.id))


def test_all_views_have_the_same_numbers() -> None:
    found = run_of_all_kinds()
    counts = count_trials(found.run.trials, found.rejects, found.cells)
    assert (counts.made, counts.rejected, counts.in_use, counts.used) == (27, 3, 24, 22)
    assert (counts.doubted, counts.set_aside) == (3, 2)
    assert counts.rejected == found.run.rejected
    assert counts.in_use == sum(cell.trials for cell in found.cells)
    assert counts.used == sum(cell.indicators["wall_seconds"].n for cell in found.cells)
    assert counts.doubted == sum(cell.doubtful for cell in found.cells)
    said = "3 of 24 trials are in doubt (2 set aside)"
    assert any(item.sentence.startswith(said) for item in found.sentences)
    assert f"run {found.run.id}: {said}" in compare_levels(found, "version").warnings
    assert rejected.summary(found).startswith("3 of 27 trials rejected, 22 used, 2 set aside: ")
    assert "3 trials in doubt (2 set aside): " in rejected.summary(found)
    cells, trials = csv.cell_rows(found), csv.trial_rows(found)
    column = cells.heading.index("set_aside")
    assert sum(int(str(row[column])) for row in cells.rows) == counts.set_aside
    for name, number in (("set_aside", counts.set_aside), ("in_doubt", counts.doubted)):
        column = trials.heading.index(name)
        assert sum(row[column] is True for row in trials.rows) == number, name


def test_each_trial_in_use_with_a_doubt_is_listed_beside_those_rejected() -> None:
    found = run_of_all_kinds()
    counts = count_trials(found.run.trials, found.rejects, found.cells)
    leads = [str(item.lead) for item in rejected._each(found)]

    def listed(of: Sequence[str]) -> int:
        again = re.findall(r"\((\d+) attempts", " ".join(of))
        once = [lead for lead in of if "attempts" not in lead]
        numbers = [re.sub(r" of \S+", "", lead.partition("trial")[2]) for lead in once]
        return sum(map(int, again)) + sum(len(re.findall(r"\d+", text)) for text in numbers)

    assert listed([lead for lead in leads if lead.startswith("in use: ")]) == counts.doubted
    assert listed(leads) == counts.rejected + counts.doubted, "each once"


def test_trials_of_one_reason_are_one_line() -> None:
    def reject(n: int, block: int, attempt: int, cause: str, detail: str) -> Reject:
        return Reject(
            cell=n, parameters={"n": n}, block=block, attempt=attempt, cause=cause, detail=detail
        )

    found = msgspec.structs.replace(
        run_of_all_kinds(),
        rejects=(
            *(reject(2, block, 0, "steal", f"{block} % stolen") for block in (2, 6, 7, 8)),
            *(reject(1, 0, attempt, "not_ready", "no port") for attempt in (0, 1)),
            reject(2, 0, 0, "not_ready", "no port"),
            reject(2, 1, 0, "program_failed", "exited with 1"),
            reject(2, 3, 0, "program_failed", "exited with 2"),
        ),
    )
    shown = [f"{item.lead}: {item.text}" for item in rejected._each(found)]
    assert shown == [
        "trials 3, 7-9 of n=2: the hypervisor took CPU time: the first: 2 % stolen",
        "trial 1 of n=1 (2 attempts); trial 1 of n=2: was not ready: no port",
        "trial 2 of n=2: the program failed: exited with 1",
        "trial 4 of n=2: the program failed: exited with 2",
    ]
