"""A run beside real competitors for the CPUs ends with a report, in its allowance."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from concurve.wire import decode_record
from tests.helpers.real import TARGETS, Lab, missing

pytestmark = pytest.mark.real

ALLOWED_SECONDS = 4.0


@pytest.fixture(params=[0, 19])
def nice(request: pytest.FixtureRequest) -> Iterator[int]:
    """The priority of competitors that keep every CPU busy, twice over."""
    line = f"import os; os.nice({request.param})\nwhile True: pass"
    hogs = [
        subprocess.Popen([sys.executable, "-c", line])
        for _ in range(2 * len(os.sched_getaffinity(0)))
    ]
    yield request.param
    for hog in hogs:
        hog.kill()
        hog.wait()


def test_a_sweep_beside_competitors_ends_with_a_report(tmp_path: Path, nice: int) -> None:
    if reason := missing():
        pytest.skip(reason)
    lab = Lab(tmp_path)
    more = str(4 * len(os.sched_getaffinity(0)))
    done = lab.run("sweep", "-P", "n", f"1,2,{more}", "--effort", "quick", "--seed", "3",
                   "--max-time", f"{ALLOWED_SECONDS}s", "--export-json", "run.json", "--",
                   TARGETS, "busy", "--cpu-ms", "200", "--threads", "{n}")  # fmt: skip
    assert done.returncode == 0, done.stderr
    export = json.loads((tmp_path / "run.json").read_bytes())
    assert export["run"]["state"] == "complete"

    trials = [trial for cell in export["cells"] for trial in cell["trials"]]
    assert any(trial["used"] for trial in trials), "something was measured"
    for cell in export["cells"]:
        name = f"n={cell['parameters']['n']}"
        used = any(trial["used"] for trial in cell["trials"])
        assert used or name in export["run"]["reason"], "or it is said by its name"
    doubts = [item["sentence"] for item in export["findings"] if item["kind"] == "warning"]
    assert any("in doubt" in doubt for doubt in doubts)

    store = lab_records(lab)
    assert sum(seconds for seconds, _ in store[:-1]) <= ALLOWED_SECONDS
    machines = [decode_record(raw).machine for _, raw in store]
    busy = [machine for machine in machines if machine.foreign_low_priority_ns is not None]
    assert busy, "others were looked for"
    for machine in busy:
        assert machine.foreign_processes or "foreign_processes" in machine.absent
    assert lab.wait_until_alone() == {}


def lab_records(lab: Lab) -> list[tuple[float, bytes]]:
    """Seconds and record of each trial, in order."""
    from concurve.store import Store

    store = Store.existing(str(lab.db))
    run = store.find_run("last").id
    records = {row.key: row.record for row in store.records(run)}
    found = [(row.outcome.seconds, records[row.outcome.key]) for row in store.trials(run)]
    store.close()
    return found
