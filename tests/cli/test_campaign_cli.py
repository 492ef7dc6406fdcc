"""A real tiny campaign on the command line: run, stopped, resumed, shown, reported."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from concurve.errors import CampaignError, RunInterruptedError, StudyError
from concurve.store import Store
from tests.helpers.campaigns import write_campaign
from tests.helpers.real import PATIENCE, Lab, missing, wait_until

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(missing() is not None, reason=missing() or ""),
]


def script(path: Path, body: str) -> str:
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def campaign(lab: Lab, first: str = "true", second: str = "true") -> str:
    return str(write_campaign(lab.folder / "campaign", (first, second)))


def test_a_campaign_whose_first_study_cannot_run_here(lab: Lab) -> None:
    path = campaign(lab, first="no-such-program")
    files = ("--export-html", "c.html", "--export-markdown", "c.md", "--export-json", "c.json")
    done = lab.run("run", path, "--effort", "quick", "--seed", "7", *files)
    assert done.returncode == CampaignError.exit_code, done.stderr
    assert "study 1 of 2, tc01: Find how far tc01 scales." in done.stderr
    assert "tc01 was not run: " in done.stderr
    assert "study 2 of 2, tc02" in done.stderr
    assert "1 of 2 studies is missing: tc01 (not run)" in done.stderr
    assert "1 of 2 studies is done" in done.stdout
    assert "report: c.html" in done.stdout
    export = json.loads((lab.folder / "c.json").read_text())
    assert [study["state"] for study in export["studies"]] == ["not run", "complete"]
    assert len(export["studies"][1]["run"]["cells"][0]["trials"]) >= 5
    assert "**Not run.**" in (lab.folder / "c.md").read_text()

    id_ = export["campaign"]["id"]
    for name in ("small-campaign", id_):
        assert "tc01 not run" in lab.run("show", name).stdout
    listed = lab.run("runs", "small-campaign").stdout
    assert f"{id_}  small-campaign  incomplete" in listed
    assert f"of {id_}" in lab.run("runs").stdout
    assert json.loads(lab.run("show", id_, "--json").stdout)["campaign"]["id"] == id_
    assert lab.run("export", id_, "--format", "markdown").stdout.startswith("# A small campaign")
    refused = lab.run("compare", "small-campaign", "last")
    assert "'small-campaign' is a campaign, not a run" in refused.stderr
    written = lab.run("report", "small-campaign", "--export-json", "again.json", "-o", "again.md")
    assert written.stdout.split() == ["again.json", "again.md"]
    assert (lab.folder / "again.md").read_text() == (lab.folder / "c.md").read_text()


def test_a_campaign_in_which_cells_failed_says_so_to_a_script(lab: Lab) -> None:
    """As a sweep does: the answers are without them."""
    failing = script(lab.folder / "failing", '[ "$2" = 1 ]')
    done = lab.run("run", campaign(lab, second=failing), "--effort", "quick")
    assert done.returncode == CampaignError.exit_code == 7, done.stderr
    assert begun(lab) == ["complete", "complete"]
    assert "2 of 2 studies are done" in done.stdout
    assert "cells of 1 of 2 studies failed: tc02 (2 of 4 cells)" in " ".join(done.stderr.split())
    assert lab.run("resume", "small-campaign").returncode == 7


def test_a_campaign_that_is_interrupted_and_resumed(lab: Lab) -> None:
    hold = lab.folder / "hold"
    hold.touch()
    started = lab.folder / "started"
    body = f"touch {started}; while [ -e {hold} ]; do sleep 0.02; done"
    waiting = script(lab.folder / "waiting", body)
    process = lab.start("run", campaign(lab, second=waiting), "--effort", "quick")
    wait_until(started.exists, "the second study's first trial", of=process)
    assert begun(lab) == ["complete", "begun"]
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == RunInterruptedError.exit_code, stderr
    id_ = Store(str(lab.db)).campaigns()[0].id
    assert f"concurve resume {id_}" in stderr
    assert "after 1 of 2 studies" in stderr
    assert stdout == ""

    hold.unlink()
    done = lab.run("resume", "last")
    assert done.returncode == 0, done.stderr
    assert "study 1 of 2" not in done.stderr
    assert "2 of 2 studies are done" in done.stdout
    assert begun(lab) == ["complete", "complete"]


def begun(lab: Lab) -> list[str]:
    store = Store(str(lab.db))
    states = [m.state for row in store.campaigns() for m in store.members(row.id)]
    store.close()
    return states


def test_the_plan_of_a_campaign(lab: Lab) -> None:
    done = lab.run("run", campaign(lab), "--only", "tc02,tc01,tc02", "--dry-run")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines if line[:2] == "tc"] == ["tc01", "tc02"]
    assert "4 cells × 5 each = 20" in done.stdout
    assert lines[-1] == "in all    at most 2 h 00 min"
    assert Store(str(lab.db)).campaigns() == []


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--only", "tc2"), "did you mean 'tc02'?"),
        (("--only", ""), "has no study ''"),
        (("--only", "tc01", "--export-csv", "x.csv"), "no single table for CSV"),
        (("--export-html", "no/such/folder.html"), "does not exist"),
    ],
)
def test_what_a_campaign_refuses_before_it_measures(
    lab: Lab, arguments: tuple[str, ...], says: str
) -> None:
    done = lab.run("run", campaign(lab), *arguments)
    assert done.returncode != 0
    assert says in done.stderr
    assert not lab.db.exists() or Store(str(lab.db)).campaigns() == []


def test_only_is_for_campaigns(lab: Lab) -> None:
    done = lab.run("run", "thread-scaling", "--only", "tc01")
    assert done.returncode == StudyError.exit_code
    assert "--only is for campaigns" in done.stderr
