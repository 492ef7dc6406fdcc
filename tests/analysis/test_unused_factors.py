"""What a run of an older version varied in vain stands with its answer."""

from __future__ import annotations

from pathlib import Path

import msgspec

from concurve.analysis.run import findings_of
from concurve.definition.study import Rules
from concurve.measuring.heads import new_head
from concurve.measuring.laboratory import Runner
from concurve.store import Store
from tests.helpers.fakes import FakeClock, FakeEngine, small_study


def test_a_factor_that_nothing_uses_is_a_warning_of_a_stored_run(tmp_path: Path) -> None:
    store = Store(str(tmp_path / "s.db"))
    study = small_study(Rules(repeats_min=3, repeats_max=3), procs=(1, 2))
    role = msgspec.structs.replace(study.roles[0], command=("true",))
    head = new_head(msgspec.structs.replace(study, roles=(role,)), "normal", 5, "concurve sweep …")
    Runner(head, store, FakeEngine(), clock=FakeClock()).start()
    said = findings_of(store, store.find_run("last")).sentences
    assert [item.kind for item in said if "Nothing uses {procs}" in item.sentence] == ["warning"]
