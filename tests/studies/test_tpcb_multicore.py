"""The campaign of document 004: what each cell runs, what the document says, and a tiny version of
it, whole."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from concurve.definition import catalogue
from concurve.definition.campaign import Campaign, at_effort
from concurve.host.temporary import remove_abandoned
from concurve.planning.plan import make_plan
from tests.helpers import real
from tests.helpers.forked import NO_REDO
from tests.helpers.lacking import lacking
from tests.helpers.packaged import find
from tests.helpers.planned import argv, study_of

FOLDER = dict(catalogue.campaigns())["tpcb-multicore"]

#: Figures 3 and 4: sessions, first and second column, in percent.
FIGURES = {
    "3": [(8, 10, 6), (16, 86, 77), (32, 206, 191), (64, 297, 302), (96, 347, 328)],
    "4": [(8, 79, 69), (16, 136, 116), (32, 240, 232), (64, 292, 284), (96, 326, 304)],
}
STUDIES = {
    "embedded": "3", "service": "3", "postgresql": "4", "mariadb": "4", "sqlite": "4",
    "relational": "4",
}  # fmt: skip
#: Studies of the embedded engine beside the comparison, and their claims.
ALONE = {
    "checkpoints": {"background-work"},
    "files": {"more-files", "independent-files", "own-data"},
    "operations": {"atomic-better", "atomic-read-alike", "atomic-update-alike"},
    "readers": {"readers-in-parallel"},
}
#: Claims on single operations and on 4 files, which servers are asked at effort rigorous.
BESIDE = {"more-files", *ALONE["operations"]}


@pytest.fixture(scope="module")
def campaign() -> Campaign:
    found = find("tpcb-multicore", 8)
    assert isinstance(found, Campaign)
    return found


def test_quick_is_the_record_engine_alone(campaign: Campaign) -> None:
    assert [member.name for member in campaign.studies] == [*STUDIES, *ALONE]
    quick = at_effort(campaign, "quick")
    assert [member.name for member in quick.studies] == ["embedded"]
    assert quick.studies[0].study.effort("quick").rules.time_allowed_seconds < 180


@pytest.mark.parametrize("name", STUDIES)
def test_every_figure_of_the_document_is_there(campaign: Campaign, name: str) -> None:
    figure = STUDIES[name]
    held = [f for f in study_of(campaign, name).published if f.compare == "improvement"]
    assert {f.figure for f in held} == {figure}
    printed = {(f.parameters["sessions"], f.row): f.value for f in held}
    assert printed == {
        (sessions, column): value
        for sessions, *values in FIGURES[figure]
        for column, value in zip(("first column", "second column"), values, strict=True)
    }
    option = next(iter(held[0].base))
    assert all(f.base_parameters[option] != f.parameters[option] for f in held)


def test_the_published_cells_are_cells(campaign: Campaign) -> None:
    """Those of 16 and 64 sessions at effort rigorous alone."""
    for member in campaign.studies:
        cells = [cell.parameters for cell in make_plan(member.study, "rigorous", 1).cells]
        for figure in member.study.published:
            if figure.compare == "improvement":
                assert figure.parameters in cells and figure.base_parameters in cells


@pytest.mark.parametrize("name", STUDIES)
def test_every_statement_of_the_document_is_a_claim(campaign: Campaign, name: str) -> None:
    asked = {claim.id for claim in study_of(campaign, name).claims}
    everywhere = {
        "old-declines", "new-keeps", "new-stable", "old-slower-on-many", "old-costs-more",
        "new-uses-cpus", "new-better", "typically-double", "up-to-300", "gain-grows",
    }  # fmt: skip
    assert asked >= everywhere | (set() if name in ("embedded", "relational") else BESIDE)
    if name == "embedded":
        assert asked >= {"waiting-in-line", "caches", "no-recompiling", "all-of-the-era"}


def test_what_the_document_says_of_one_engine_is_asked_of_it(campaign: Campaign) -> None:
    for name, claims in ALONE.items():
        assert {claim.id for claim in study_of(campaign, name).claims} == claims


def test_16_files_are_four_sets_with_as_many_branches_in_all(campaign: Campaign) -> None:
    embedded = study_of(campaign, "files")
    for files, sets, scale in ((4, "1", "96"), (16, "4", "24")):
        roles = argv(embedded, files=files, latching="record", sessions=32, cpus="all")
        assert roles["fill"][1:3] == ("/t/engine", "records:/t/engine")
        assert (
            roles["target"][1] == "records:/t/engine?latching=record&durability=none&cache_mib=128"
        )
        for words in roles.values():
            assert words[words.index("--files") + 1] == sets
            assert words[words.index("--scale") + 1] == scale
        assert roles["target"][-2:] == roles["verify"][-2:] == ("--ledger", "/t/ledger")
        assert "--verify-only" in roles["verify"]


def test_the_relational_interface_has_the_engine_of_the_other_one(campaign: Campaign) -> None:
    """Nothing but the latching differs within a kind of engines; data are made before the load."""
    relational = study_of(campaign, "relational")
    for engines, dials in (("threads", "inline"), ("processes", "--engine-count")):
        roles = {
            latching: argv(relational, "rigorous", engines=engines, latching=latching, sessions=32)
            for latching in ("global", "record")
        }
        old, new = (roles[latching]["target"] for latching in ("global", "record"))
        assert {(a, b) for a, b in zip(old, new, strict=True) if a != b} == {("global", "record")}
        assert dials in old and "statements" in old
        made, loaded = roles["record"]["make"], roles["record"]["load"]
        assert made[-3] == "--init-only" and made[1] == loaded[1]
        assert made[-2:] == loaded[-2:] == ("--password-from", "CONCURVE_PASSWORD")
    load = next(role for role in relational.roles if role.name == "load")
    assert load.after == ("make",)


def test_servers_have_their_data_from_their_attendants(campaign: Campaign) -> None:
    roles = argv(
        study_of(campaign, "postgresql"), "rigorous", version=18, files=16, workload="read"
    )
    assert roles["target"][0] == "postgresql-18"
    at = roles["target"].index("--data")
    made = roles["target"][at + 1].split()
    assert list(roles["load"][2 : 2 + len(made)]) == made, "what was made is what is loaded"
    assert roles["load"][1] == roles["verify"][1]
    roles = argv(study_of(campaign, "mariadb"), threads="pool-of-threads")
    assert "--thread-handling=pool-of-threads" in roles["target"]
    roles = argv(study_of(campaign, "service"), "rigorous", latching="file")
    assert roles["target"][roles["target"].index("--latching") + 1] == "file"


def test_all_of_a_trial_is_checked_before_it_counts(campaign: Campaign) -> None:
    for member in campaign.studies:
        verify = next(role for role in member.study.roles if role.name == "verify")
        assert verify.after in (("target",), ("load",))


# -- tiny versions, whole ---------------------------------------------------------------------

TINY = """[effort.quick]
factors = {{ workload = ["{workload}"], cpus = {cpus}, files = [{files}], sessions = [4] }}
repeats = 1
time_allowed = "1h"
"""

# A trial ends with its transactions: within a time, a busy machine may complete none.
QUICK_TIMES = re.compile(r"^(quick = \{ times = )\[[^\]]*\]", re.MULTILINE)
COUNTED = '["--transactions", "400"]'


def tiny(text: str) -> str:
    """A study file whose effort quick is one trial of each design, of the first workload and the
    fewest files."""
    (workload,) = re.findall(r'^workload = \["([^"]*)', text, re.MULTILINE)
    (files,) = re.findall(r"^files = \[(.*)\]", text, re.MULTILINE)
    # Where one CPU is what all are compared with, it stays.
    cpus = '[1, "all"]' if "base = { cpus = 1 }" in text else '["all"]'
    quick = TINY.format(workload=workload, cpus=cpus, files=min(files.split(", "), key=int))
    text, count = re.subn(r"\[effort\.quick\].*?\n(?=\n)", quick, text, flags=re.DOTALL)
    assert count == 1
    return re.sub(r"^sessions = \[", "sessions = [4, ", text, flags=re.MULTILINE)


LACKING = {
    "postgresql": lacking("postgresql-10", "postgresql-18"),
    "mariadb": lacking("mariadb"),
}


def replace(file: Path, old: str, new: str) -> None:
    """Change a study file that has the old text."""
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new), encoding="utf-8")


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[real.Lab]:
    laboratory = real.Lab(tmp_path)
    shutil.copytree(FOLDER, tmp_path / "campaign")
    for file in (tmp_path / "campaign").glob("*/study.toml"):
        file.write_text(tiny(file.read_text(encoding="utf-8")), encoding="utf-8")
    for file in (tmp_path / "campaign").rglob("*.toml"):
        text = file.read_text(encoding="utf-8")
        file.write_text(QUICK_TIMES.sub(r"\1" + COUNTED, text), encoding="utf-8")
    replace(tmp_path / "campaign" / "shared.toml", "sets = 1, scale = 96", "sets = 1, scale = 4")
    replace(tmp_path / "campaign" / "shared.toml", "sets = 4, scale = 24", "sets = 4, scale = 1")
    yield laboratory
    laboratory.end()
    remove_abandoned()


@pytest.mark.skipif(real.missing() is not None, reason=str(real.missing()))
@pytest.mark.parametrize("name", [*STUDIES, *ALONE])
def test_a_tiny_version_runs_whole(lab: real.Lab, name: str) -> None:
    if LACKING.get(name):
        pytest.skip(LACKING[name])
    cache = {"XDG_CACHE_HOME": str(lab.folder / "cache"), **NO_REDO}
    file = f"campaign/{name}/study.toml"
    done = lab.run("run", file, "--effort", "quick", "--export-json", "run.json", **cache)
    assert done.returncode == 0, done.stderr
    exported = json.loads((lab.folder / "run.json").read_text(encoding="utf-8"))
    assert {cell["status"] for cell in exported["cells"]} == {"ok"}
    load = "load." if name in ("service", "postgresql", "mariadb", "relational") else ""
    for cell in exported["cells"]:
        figures = cell["indicators"]
        assert figures["rate_per_second"]["value"] > 0
        assert figures[f"{load}latency_ns_p99"]["value"] > figures[f"{load}latency_ns_p50"]["value"]
        assert 0 < figures[f"{load}session_fairness"]["value"] <= 1
        assert figures[f"{load}errors"]["value"] == 0
    explained = lab.run("explain", "last")
    assert explained.returncode == 0, explained.stderr
    assert lab.wait_until_alone() == {}


@pytest.mark.skipif(real.missing() is not None, reason=str(real.missing()))
def test_a_trial_that_breaks_an_invariant_is_no_figure(lab: real.Lab) -> None:
    """A second load that the ledger knows nothing of: its history has no acknowledgement."""
    file = lab.folder / "campaign" / "embedded" / "study.toml"
    text = (lab.folder / "campaign" / "shared.toml").read_text(encoding="utf-8")
    role = text[text.index('[[roles]]\nname = "verify"') : text.index("[protocol]")]
    unknown = role.replace('"verify"', '"background"').replace('"--verify-only", ', "")
    unknown = unknown.replace('"--ledger", "{trial_folder}/ledger"', '"--transactions", "10"')
    late = role.replace('after = ["{with.load}"]', 'after = ["background"]')
    assert late != role
    replace(file, '"target", "verify"]\n', '"target"]\n\n' + unknown + late)
    done = lab.run("run", str(file), "--effort", "quick", "--set", "cpus=1",
                   "--set", "latching=record",
                   XDG_CACHE_HOME=str(lab.folder / "cache"))  # fmt: skip
    assert done.returncode != 0
    assert "are found: 10 too many" in done.stderr


@pytest.fixture
def passable() -> Iterator[Path]:
    """A temporary folder that the server's user may enter, unlike that of the tests."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o711)
        yield Path(name)


@pytest.mark.skipif(real.missing() is not None, reason=str(real.missing()))
@pytest.mark.skipif(bool(LACKING["postgresql"]), reason=LACKING["postgresql"])
@pytest.mark.parametrize("victim", ["concurve-trial", "attend"])
def test_a_killed_trial_leaves_no_server_and_no_folder(
    lab: real.Lab, passable: Path, victim: str
) -> None:
    places = {"TMPDIR": str(passable), "XDG_CACHE_HOME": str(lab.folder / "cache")}
    file = lab.folder / "campaign" / "postgresql" / "study.toml"
    replace(lab.folder / "campaign" / "shared.toml", COUNTED, '["--duration", "20s"]')
    running = lab.start("run", str(file), "--effort", "quick", **places)

    def pid_of(*words: str) -> int | None:
        found = [p for p, line in lab.alive().items() if all(word in line for word in words)]
        return found[0] if found else None

    # The load runs, so the server is up; the one that fills it only makes the data.
    real.wait_until(lambda: pid_of("concurve-load", "--ledger") is not None, "the load", of=running)
    pid = pid_of(victim)
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    running.terminate()  # not another trial
    running.communicate(timeout=real.PATIENCE)
    assert lab.wait_until_alone() == {}

    def clean() -> bool:
        subprocess.run(
            [sys.executable, "-c", "from concurve.host.temporary import *; remove_abandoned()"],
            env={**os.environ, **places}, check=True,
        )  # fmt: skip
        return not list(passable.iterdir())

    real.wait_until(clean, "an empty folder")


def test_published_figures_stand_once(campaign: Campaign) -> None:
    with (FOLDER / "published.csv").open(encoding="utf-8", newline="") as file:
        rows = [tuple(row.values()) for row in csv.DictReader(file)]
    assert len(rows) == len(set(rows)) == 6 * 10 + 4
