"""Killed with SIGKILL at random moments and resumed, a run ends with exactly the planned trials:
none lost, none doubled, none torn."""

from __future__ import annotations

import json
import multiprocessing
import random
import signal
import sqlite3
import time
from pathlib import Path

import msgspec
import pytest

from concurve.analysis.run import findings_of
from concurve.store import Store
from concurve.store.rows import RecordRow, TrialKey, TrialRow
from concurve.wire import decode_record
from tests.helpers import killed
from tests.helpers.real import TARGETS, Lab, missing, wait_until

KILLS = 50

Contents = tuple[list[TrialRow], list[RecordRow]]


def contents(url: str) -> Contents:
    store = Store(url)
    both = list(store.trials(killed.RUN)), list(store.records(killed.RUN))
    store.close()
    return both


def check(url: str, whole: Contents) -> int:
    """What is stored is the beginning of what an undisturbed run stores, byte for byte."""
    trials, records = contents(url)
    assert len(trials) == len(records), "no trial without its record"
    keys = [row.outcome.key for row in trials]
    assert len(set(keys)) == len(keys), "none doubled"
    assert trials == whole[0][: len(trials)], "none lost, none torn"
    assert records == whole[1][: len(records)]
    for row in records:
        decode_record(row.record)
    return len(trials)


def finished(url: str, whole: Contents) -> None:
    """The run has come to its end, and says what the undisturbed one says, but for when it was
    resumed."""
    assert check(url, whole) == len(whole[0])
    store, reference = Store(url), Store(str(Path(url).with_name("whole.db")))
    assert store.runs()[0].state == "complete"
    found = findings_of(store, store.runs()[0])
    resumed = found.run.resumed_after
    assert sorted(set(resumed)) == list(resumed), "each time once, in order"
    run = msgspec.structs.replace(found.run, resumed_after=())
    alone = msgspec.structs.replace(found, run=run)
    assert alone == findings_of(reference, reference.runs()[0])
    connection = sqlite3.connect(url)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def test_fifty_kills_lose_double_and_tear_nothing(tmp_path: Path) -> None:
    killed.drive(str(tmp_path / "whole.db"))
    whole = contents(str(tmp_path / "whole.db"))
    verdicts = {row.outcome.verdict for row in whole[0]}
    assert verdicts == {"ok", "program_error", "contaminated"}, "the run is a varied one"

    processes = multiprocessing.get_context("forkserver")
    processes.set_forkserver_preload(["tests.helpers.killed"])
    rng = random.Random(20261121)
    runs, kills, moments, window = 0, 0, {0}, 0.08
    while kills < KILLS or len(moments) <= KILLS / 5:
        assert kills < 20 * KILLS, f"the kills hit the same moments: {sorted(moments)}"
        url = str(tmp_path / f"killed-{runs}.db")
        process = processes.Process(target=killed.drive, args=(url,))
        process.start()
        process.join(rng.uniform(0.0, window))
        process.kill()  # nothing, if it has ended
        process.join()
        if process.exitcode == 0:
            finished(url, whole)
            runs += 1
            continue
        assert process.exitcode == -signal.SIGKILL
        kills += 1
        stored = check(url, whole)
        # Where the machine is slow, kills come later, so that the run gets on.
        window *= 0.9 if stored not in moments else 1.2
        moments.add(stored)
    killed.drive(url)
    finished(url, whole)


@pytest.mark.real
def test_a_real_run_is_killed_and_resumed_and_leaves_nobody_behind(tmp_path: Path) -> None:
    if reason := missing():
        pytest.skip(reason)
    lab, rng = Lab(tmp_path), random.Random(7)
    # The target leaves a child behind, which must not survive either. Trials beyond a limit wait
    # until they are killed, so that no run ends before its kill, however late that comes: five
    # starts end at most 30 of 40 trials.
    waits = "while [ $(wc -l < begun) -gt $(cat limit) ]; do sleep 0.05; done"
    command = ["sh", "-c", f"sleep 1077 & echo >> begun; {waits}; {TARGETS} busy --threads {{n}} "
               "--cpu-ms 40"]  # fmt: skip
    first = ["sweep", "-P", "n", "1,2", "--repeats", "20..20", "--seed", "3", "--", *command]
    counts = [0]
    for start in (first, *[["resume", "last"]] * 4):
        (tmp_path / "limit").write_text(str(begun(tmp_path) + 6))
        process = lab.start(*start)
        wait_until(lambda: stored(lab) >= counts[-1] + 2, "two more trials", of=process)
        time.sleep(rng.uniform(0.0, 0.2))
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL, "in the middle of it"
        assert lab.wait_until_alone() == {}
        counts.append(stored(lab))
    (tmp_path / "limit").write_text("1000000")
    done = lab.run("resume", "last", "--export-json", "run.json")
    assert done.returncode == 0, done.stderr
    export = json.loads((tmp_path / "run.json").read_bytes())
    used = [
        TrialKey(cell["index"], trial["block"], 0)
        for cell in export["cells"]
        for trial in cell["trials"]
        if trial["used"]
    ]
    assert sorted(used) == [(cell, block, 0) for cell in (0, 1) for block in range(20)]
    assert export["run"]["trials"] == sum(len(cell["trials"]) for cell in export["cells"])
    assert counts[-1] < export["run"]["trials"]
    assert lab.wait_until_alone() == {}


def begun(folder: Path) -> int:
    """Trials that the real run has begun."""
    marks = folder / "begun"
    return len(marks.read_bytes().splitlines()) if marks.exists() else 0


def stored(lab: Lab) -> int:
    """Trials that the real run has stored."""
    if not lab.db.exists():
        return 0
    store = Store(str(lab.db))
    count = store.count(store.find_run("last").id) if store.runs() else 0
    store.close()
    return count
