"""Which run ``last`` means where a clock was set back."""

from __future__ import annotations

import msgspec
import pytest

from concurve.cli.measuring import clock_set_back
from concurve.measuring.heads import new_head
from concurve.store import Store
from tests.helpers.fakes import small_study
from tests.helpers.made import made_run
from tests.helpers.real import Lab, missing


def test_a_run_that_will_not_be_last_is_told() -> None:
    store = Store()
    head = new_head(small_study(), "normal", 1, "concurve sweep …")
    assert clock_set_back(head, store) == ""
    other = made_run(store, lambda n: 1.0, threads=(1, 2)).run
    assert clock_set_back(head, store) == ""
    earlier = msgspec.structs.replace(head, started="2001-01-01T10:00:00+00:00")
    said = clock_set_back(earlier, store)
    assert said.startswith(f"run {other.id} in this store began later")
    assert said.endswith(f"this run is {head.id}")


@pytest.mark.real
@pytest.mark.skipif(missing() is not None, reason=missing() or "")
def test_a_sweep_says_so_before_it_measures(lab: Lab) -> None:
    store = Store(str(lab.db))
    run = made_run(store, lambda n: 1.0, threads=(1, 2)).run
    row = store.find_run(run.id)
    store.add_run(row._replace(id="20990101-101112-ab12", started="2099-01-01T10:00:00+00:00"))
    store.close()
    done = lab.run("sweep", "-P", "n", "1,2", "--effort", "quick", "--repeats", "2..2", "--",
                   "sleep", "0.0{n}")  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stderr.split())
    assert "note: run 20990101-101112-ab12 in this store began later" in said
