"""Speed-ups where the cell that they would be taken over failed."""

from __future__ import annotations

import json

import msgspec
import pytest

from concurve.assemble import report_of
from concurve.findings.run import Report
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.report.json.export import to_json
from concurve.report.sections.run import brief_run_document, run_document
from concurve.report.terminal import lines
from concurve.store import Store
from concurve.terms import Level
from tests.analysis.message_kinds import THREE, without_zero
from tests.helpers.fakes import FakeClock, FakeEngine, small_study


def said(found: Report) -> str:
    return " ".join(item.sentence for item in found.sentences if item.kind == "answer")


def test_the_first_level_that_was_measured_is_the_base_in_all_views() -> None:
    found = without_zero(small_study(THREE, threads=(0, 1, 2)))
    assert said(found).startswith("2 threads are 2.0")
    assert "threads=0 failed, so speed-ups are against threads=1." in said(found)
    assert "speedup" not in found.cells[0].indicators
    assert [cell.base for cell in found.cells] == [1, 1, 1]
    assert found.cells[2].indicators["efficiency"].value == pytest.approx(1.0, abs=0.05)
    for document in (brief_run_document(found), run_document(found)):
        page = " ".join(line.plain for line in lines(document, 200))
        assert "2.0" in page and "threads=0 failed, so speed-ups are against threads=1." in page
    export = json.loads(to_json(found))
    assert export["cells"][2]["base"] == 1
    assert export["cells"][2]["indicators"]["speedup"]["value"] == pytest.approx(2.0, abs=0.1)


def test_what_is_explained_is_compared_with_it_too() -> None:
    store, study = Store(), small_study(THREE, threads=(0, 1, 2))
    kind_of = dict.fromkeys("0", "program_failed").get
    engine = FakeEngine(kind_of=lambda spec: kind_of(spec.roles[0].argv[1], "ok"))
    head = new_head(study, "normal", 1, "concurve sweep …")
    Runner(head, store, engine, clock=FakeClock(0.001)).start()
    explanation = report_of(store, store.find_run(head.id)).explanation
    assert explanation is not None
    assert [cell.base for cell in explanation.cells] == [None, None, {"threads": 1}]


def test_each_group_has_a_base_of_its_own() -> None:
    """The others keep the one that the plan has."""
    study = small_study(THREE, load=("a", "b"), threads=(0, 1, 2))
    found = without_zero(study, 2, "a")
    assert [cell.base for cell in found.cells] == [1, 1, 1, 3, 3, 3]
    assert "threads=0 failed in 1 of 2 settings of the other factors, so" in said(found)


def test_of_versions_it_is_the_next_one() -> None:
    found = without_zero(small_study(THREE, build=("0", "1", "2")))
    assert [cell.base for cell in found.cells] == [1, 1, 1]
    assert "build=0 failed, so speed-ups are against build=1." in said(found)
    assert "build=2 is 2.0" in said(found)


@pytest.mark.parametrize(
    ("levels", "base"), [((0, 1, 2), {"threads": 0}), ((0, 1), {})], ids=["named", "alone"]
)
def test_a_base_that_is_named_and_one_of_a_single_cell_stay(
    levels: tuple[Level, ...], base: dict[str, Level]
) -> None:
    study = msgspec.structs.replace(small_study(THREE, threads=levels), base=base)
    found = without_zero(study)
    assert {cell.base for cell in found.cells} == {0}
    assert "speed-ups are against" not in said(found)
    assert not any("speedup" in cell.indicators for cell in found.cells)
