"""What older versions stored opens, shows and resumes; what a newer one stored is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from concurve.errors import StoreError
from concurve.figures import decode_figures
from concurve.formats import Versions
from concurve.planning.plan import plan_of
from concurve.store import Store, campaign_head, run_head
from concurve.store.campaign_head import decode_campaign
from concurve.store.rows import CampaignRow, RunRow
from concurve.store.run_head import decode_head
from concurve.wire import decode_record
from tests.helpers.real import Lab, missing

GOLDEN = Path(__file__).parents[2] / "schema" / "golden"
RUN_HEADS = sorted(GOLDEN.glob("run-head-*.json"))
CAMPAIGN_HEADS = sorted(GOLDEN.glob("campaign-head-*.json"))
FACTS: dict[str, dict[str, Any]] = json.loads((GOLDEN / "store-2-facts.json").read_bytes())

#: Values that are left out or written, as it comes.
DEFAULTS = {"compare": "none"}

#: The runs of the golden store, and its campaigns.
WHOLE_SWEEP, KILLED_SWEEP = "20261122-123329-ab60", "20261122-123332-8534"
WHOLE_CAMPAIGN, KILLED_CAMPAIGN = "c20261122-123334-6717", "c20261122-123337-b43e"


def stem(path: Path) -> str:
    return path.stem


def run_row(head: bytes) -> RunRow:
    return RunRow("20261121-1", "small", "2026-11-21T10:10:10+00:00", "running", "", head)


def campaign_row(head: bytes) -> CampaignRow:
    return CampaignRow("c20261121-1", "small", "2026-11-21T10:10:10+00:00", "running", "", head)


def kept(old: Any, new: Any) -> bool:
    """Is everything that the old JSON says in the new one, number for number and in order?"""
    if isinstance(old, dict):
        return isinstance(new, dict) and all(
            kept(item, new.get(key, DEFAULTS.get(key))) for key, item in old.items()
        )
    if isinstance(old, list):
        if not isinstance(new, list) or len(old) != len(new):
            return False
        return all(kept(*pair) for pair in zip(old, new, strict=True))
    return bool(old == new)


def test_there_are_goldens_of_every_format() -> None:
    for files, newest in ((RUN_HEADS, run_head.FORMAT), (CAMPAIGN_HEADS, campaign_head.FORMAT)):
        formats = {int(path.stem.split("-")[2]) for path in files}
        assert formats == set(range(1, newest + 1))


@pytest.mark.parametrize("path", RUN_HEADS, ids=stem)
def test_a_golden_run_head_loads_whole(path: Path) -> None:
    head = decode_head(run_row(path.read_bytes()))
    assert head.format == run_head.FORMAT
    written = json.loads(msgspec.json.encode(head))
    assert kept(without_number(json.loads(path.read_bytes())), written), "nothing is lost"
    assert decode_head(run_row(head.row().head)) == head
    assert plan_of(head).cells, "its plan can be made again"


@pytest.mark.parametrize("path", CAMPAIGN_HEADS, ids=stem)
def test_a_golden_campaign_head_loads_whole(path: Path) -> None:
    head = decode_campaign(campaign_row(path.read_bytes()))
    assert head.format == campaign_head.FORMAT
    written = json.loads(msgspec.json.encode(head))
    assert kept(without_number(json.loads(path.read_bytes())), written), "nothing is lost"
    assert decode_campaign(campaign_row(head.row().head)) == head
    assert head.member_rows()


def without_number(raw: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in raw.items() if key != "format"}


def test_a_run_head_of_a_newer_format_is_refused_by_name() -> None:
    raw = json.loads(RUN_HEADS[0].read_bytes()) | {"format": run_head.FORMAT + 1, "rules": "new"}
    with pytest.raises(StoreError, match=r"run 20261121-1 has format 4, .* newer") as refused:
        decode_head(run_row(json.dumps(raw).encode()))
    assert "reads up to 3" in refused.value.what
    assert refused.value.remedy == "install a newer version of concurve"


def test_a_campaign_head_of_a_newer_format_is_refused_by_name() -> None:
    raw = json.loads(CAMPAIGN_HEADS[0].read_bytes()) | {"format": campaign_head.FORMAT + 1}
    with pytest.raises(StoreError, match=r"campaign c20261121-1 has format 3, .* up to 2"):
        decode_campaign(campaign_row(json.dumps(raw).encode()))


@pytest.mark.parametrize("head", [b"", b"[]", b'{"format":"two"}', b'{"format":0}', b"{}"])
def test_a_damaged_head_is_refused_by_name(head: bytes) -> None:
    with pytest.raises(StoreError, match=r"not a run \(20261121-1\)") as refused:
        decode_head(run_row(head))
    assert "cut or edited" in refused.value.remedy
    with pytest.raises(StoreError, match=r"not a campaign \(c20261121-1\)"):
        decode_campaign(campaign_row(head))


class Third(msgspec.Struct):
    """A type whose format has changed twice."""

    format: int
    seconds: float
    name: str = "unnamed"


def test_upgrades_are_applied_in_order_from_the_format_that_is_stored() -> None:
    versions = Versions(
        Third,
        "thing",
        (
            lambda data: {"ms": data["milliseconds"]},
            lambda data: {"seconds": data["ms"] / 1000, "name": data.get("name", "unnamed")},
        ),
    )
    assert versions.newest == 3
    assert versions.decode(b'{"milliseconds":1500}') == Third(3, 1.5)
    assert versions.decode(b'{"format":1,"milliseconds":1500}') == Third(3, 1.5)
    assert versions.decode(b'{"format":2,"ms":250,"name":"a"}') == Third(3, 0.25, "a")
    assert versions.decode(b'{"format":3,"seconds":2}') == Third(3, 2.0)
    with pytest.raises(StoreError, match="has format 4"):
        versions.decode(b'{"format":4}')


def test_golden_figures_have_their_values() -> None:
    expected: dict[str, dict[str, float]] = json.loads((GOLDEN / "figures-1.json").read_bytes())
    names = list(expected)
    blobs = [(GOLDEN / f"figures-1-{name}.bin").read_bytes() for name in names]
    table = decode_figures(blobs)
    for index, name in enumerate(names):
        assert table.row(index) == expected[name]
        assert decode_figures([blobs[index]]).row(0) == expected[name]


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    """A laboratory that has a copy of the golden store."""
    if reason := missing():
        pytest.skip(reason)
    found = Lab(tmp_path)
    shutil.copy(GOLDEN / "store-2.db", found.db)
    return found


def test_every_head_trial_and_record_of_the_golden_store_loads(tmp_path: Path) -> None:
    shutil.copy(GOLDEN / "store-2.db", tmp_path / "s.db")
    store = Store.existing(str(tmp_path / "s.db"))
    assert len(store.runs()) == 6 and len(store.campaigns()) == 2
    for row in store.runs():
        head = decode_head(row)
        trials, records = store.trials(row.id), list(store.records(row.id))
        assert len(trials) == len(records) > 0
        assert all(decode_record(record.record).roles for record in records)
        assert {trial.outcome.key.cell for trial in trials} <= set(range(len(plan_of(head).cells)))
    for campaign in store.campaigns():
        members = decode_campaign(campaign).campaign.studies
        assert [m.name for m in store.members(campaign.id)] == [m.name for m in members]
    store.close()


@pytest.mark.real
def test_old_runs_show_what_they_showed(lab: Lab) -> None:
    listed = lab.run("runs").stdout
    assert WHOLE_SWEEP in listed and KILLED_CAMPAIGN in listed
    for run, facts in FACTS.items():
        done = lab.run("show", run, "--json")
        assert done.returncode == 0, done.stderr
        shown = json.loads(done.stdout)
        assert shown["run"]["trials"] == facts["trials"]
        assert {c["id"]: c["verdict"] for c in shown["claims"]} == facts["claims"]
        for cell, then in zip(shown["cells"], facts["cells"], strict=True):
            assert (cell["parameters"], cell["status"]) == (then["parameters"], then["status"])
            for name, estimate in then["indicators"].items():
                if name in ("speedup", "efficiency") and run == WHOLE_SWEEP:
                    # Its program sleeps for a fixed time, whatever it does: no speed-up follows.
                    assert name not in cell["indicators"]
                    assert "fixed time" in shown["best"]["doubt"]
                    continue
                # Version 0.1.0 showed means; the figure of today is the median (decision 25).
                now = cell["indicators"][name]
                if name in ("speedup", "efficiency"):
                    assert now["low"] <= estimate["high"] and estimate["low"] <= now["high"], name
                else:
                    assert now["mean"] == pytest.approx(estimate["value"]), name
                assert (now["n"], now["unit"]) == (estimate["n"], estimate["unit"]), name
    for run in (WHOLE_SWEEP, KILLED_SWEEP):
        for verb in ("show", "explain"):
            assert lab.run(verb, run).returncode == 0
    for campaign in (WHOLE_CAMPAIGN, KILLED_CAMPAIGN):
        done = lab.run("report", campaign, "--export-markdown", "report.md")
        assert done.returncode == 0, done.stderr
        assert f"campaign {campaign}" in (lab.folder / "report.md").read_text()


@pytest.mark.real
def test_old_runs_that_were_killed_resume(lab: Lab) -> None:
    done = lab.run("resume", KILLED_SWEEP, "--export-json", "run.json")
    assert done.returncode == 0, done.stderr
    export = json.loads((lab.folder / "run.json").read_bytes())
    assert export["run"]["state"] == "complete"
    used = [sum(trial["used"] for trial in cell["trials"]) for cell in export["cells"]]
    assert len(used) == 3 and min(used) >= 3
    done = lab.run("resume", KILLED_CAMPAIGN)
    assert done.returncode == 0, done.stderr
    store = Store.existing(str(lab.db))
    assert {row.state for row in store.members(KILLED_CAMPAIGN)} == {"complete"}
    run = store.find_run(KILLED_SWEEP)
    assert run.state == "complete"
    assert json.loads(run.head)["format"] == run_head.FORMAT, "stored again in the newest format"
    store.close()
